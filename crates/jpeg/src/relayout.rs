//! Lossless re-layout: the same coefficients in one sequential scan, with the best codes and without metadata.

use crate::codes::{Code, Counts, Writer};
use crate::coefficients::Coefficients;
use crate::decoder::Decoder;
use crate::error::{Error, Feature, Result};
use crate::header::Header;
use crate::reader::Reader;
use crate::segments::{self, APP0, APP1, APP14, DHT, DQT, EOI, SOI, SOS};
use crate::standard::ZIGZAG;

/// Writes `jpeg` anew as one sequential scan of all components with optimal Huffman tables and no restart markers.
/// Coefficients and quantisation tables stay as they are, so the pixels do. Of the metadata only what changes the picture
/// is kept: JFIF, Adobe, and an EXIF segment with nothing but the orientation, if that is not the usual one.
///
/// The result is smaller for almost all images, but not always: compare.
///
/// # Errors
/// What is wrong with the image, and [`Error::Unsupported`] for what a sequential scan of 8-bit samples cannot hold.
pub fn relayout(jpeg: &[u8], decoder: &mut Decoder) -> Result<Vec<u8>> {
    let (reader, scan) = Reader::start(jpeg, decoder.limits())?;
    let header = reader.header;
    let mut coefficients = Coefficients::default();
    let quant = coefficients.read(reader, &scan, &mut decoder.plain)?;

    let mut counts = [[Counts([0; 256]), Counts([0; 256])], [Counts([0; 256]), Counts([0; 256])]];
    symbols(&header, &coefficients, |table, class, symbol, _, _| {
        counts[table][class].0[usize::from(symbol)] += 1;
    })?;
    let codes = counts.map(|classes| classes.map(|c| Code::new(&c)));

    let mut out = vec![0xff, SOI];
    metadata(jpeg, &mut out)?;
    frame(&header, &quant, &mut out);
    let tables = header.components().len().min(2);
    for (table, classes) in codes.iter().enumerate().take(tables) {
        for (class, code) in classes.iter().enumerate() {
            let head = [(class << 4 | table) as u8];
            segment(&mut out, DHT, &[&head, &code.lengths, &code.symbols]);
        }
    }
    let n = header.components().len();
    let parts: Vec<u8> =
        header.components().iter().enumerate().flat_map(|(i, c)| [c.id, 0x11 * table(i) as u8]).collect();
    segment(&mut out, SOS, &[&[n as u8], &parts, &[0, 63, 0]]);
    let mut writer = Writer::new(out);
    symbols(&header, &coefficients, |table, class, symbol, magnitude, size| {
        writer.put(&codes[table][class], symbol, magnitude, size);
    })?;
    writer.finish();
    writer.bytes.extend([0xff, EOI]);
    Ok(writer.bytes)
}

/// Number of the tables of a component: the first has its own.
fn table(component: usize) -> usize {
    usize::from(component > 0)
}

/// Calls `put` with table, class (0 DC, 1 AC), symbol, magnitude and its size in bits, for all that the scan holds.
fn symbols(
    header: &Header,
    coefficients: &Coefficients,
    mut put: impl FnMut(usize, usize, u8, u32, u32),
) -> Result<()> {
    let (across, down) = header.mcus();
    let (mut predictors, blocks) = ([0i16; 3], coefficients.values.as_chunks::<64>().0);
    let fits = |size: u32, most: u32| if size > most { Err(Error::Unsupported(Feature::Range)) } else { Ok(()) };
    for (y, x) in (0..down as usize).flat_map(|y| (0..across as usize).map(move |x| (y, x))) {
        for (i, grid) in coefficients.grids.iter().enumerate().take(header.components().len()) {
            for (v, h) in (0..grid.v).flat_map(|v| (0..grid.h).map(move |h| (v, h))) {
                let (x, y) = (x * grid.h + h, y * grid.v + v);
                // A block that only fills the MCU costs least as a repetition of the one before.
                let shown = x < grid.blocks.0 && y < grid.blocks.1;
                let block = if shown { &blocks[grid.index(x, y)] } else { &[0; 64] };
                let dc = if shown { block[0] } else { predictors[i] };
                let (magnitude, size) = coded(i32::from(dc) - i32::from(predictors[i]));
                fits(size, 11)?;
                put(table(i), 0, size as u8, magnitude, size);
                predictors[i] = dc;
                let mut run = 0;
                for &natural in &ZIGZAG[1..] {
                    let value = block[usize::from(natural)];
                    if value == 0 {
                        run += 1;
                        continue;
                    }
                    for _ in 0..run / 16 {
                        put(table(i), 1, 0xf0, 0, 0);
                    }
                    let (magnitude, size) = coded(value.into());
                    fits(size, 10)?;
                    put(table(i), 1, (run % 16) << 4 | size as u8, magnitude, size);
                    run = 0;
                }
                if run > 0 {
                    put(table(i), 1, 0, 0, 0);
                }
            }
        }
    }
    Ok(())
}

/// Magnitude bits of a value, and how many there are (T.81, F.1.2.1).
fn coded(value: i32) -> (u32, u32) {
    let size = 32 - value.unsigned_abs().leading_zeros();
    ((if value < 0 { value - 1 } else { value }) as u32, size)
}

fn segment(out: &mut Vec<u8>, marker: u8, parts: &[&[u8]]) {
    let length = 2 + parts.iter().map(|p| p.len()).sum::<usize>();
    out.extend([0xff, marker]);
    out.extend((length as u16).to_be_bytes());
    parts.iter().for_each(|p| out.extend_from_slice(p));
}

/// Quantisation tables and frame header. A component has the table of its number.
fn frame(header: &Header, quant: &[Option<[u16; 64]>; 3], out: &mut Vec<u8>) {
    let components = header.components();
    let tables: Vec<[u16; 64]> = quant.iter().flatten().copied().collect();
    let mut written: Vec<[u16; 64]> = Vec::new();
    let mut numbers = Vec::new();
    for table in &tables[..components.len()] {
        let number = written.iter().position(|t| t == table).unwrap_or_else(|| {
            let wide = table.iter().any(|&v| v > 255);
            let values: Vec<u8> = ZIGZAG
                .iter()
                .map(|&natural| table[usize::from(natural)].to_be_bytes())
                .flat_map(|b| if wide { b.to_vec() } else { b[1..].to_vec() })
                .collect();
            segment(out, DQT, &[&[u8::from(wide) << 4 | written.len() as u8], &values]);
            written.push(*table);
            written.len() - 1
        });
        numbers.push(number as u8);
    }
    let wide = written.iter().flatten().any(|&v| v > 255);
    let parts: Vec<u8> = components.iter().zip(numbers).flat_map(|(c, table)| [c.id, c.h << 4 | c.v, table]).collect();
    let (height, width) = ((header.height as u16).to_be_bytes(), (header.width as u16).to_be_bytes());
    // 16-bit quantisation tables are beyond baseline, but not beyond an extended sequential frame.
    segment(out, if wide { 0xc1 } else { 0xc0 }, &[&[8], &height, &width, &[components.len() as u8], &parts]);
}

/// Copies what says how the pixels are to be seen.
fn metadata(jpeg: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (mut at, mut orientation) = (2, None);
    let (mut jfif, mut adobe) = (None, None);
    loop {
        let s = segments::next(jpeg, at)?;
        at = s.end;
        match s.marker {
            SOS => break,
            APP0 if s.body.len() >= 14 && s.body.starts_with(b"JFIF\0") => jfif = Some(&s.body[..12]),
            APP1 if orientation.is_none() => orientation = exif_orientation(s.body),
            APP14 if s.body.len() >= 12 && s.body.starts_with(b"Adobe") => adobe = Some(s.body),
            _ => {}
        }
    }
    if let Some(jfif) = jfif {
        // No thumbnail.
        segment(out, APP0, &[jfif, &[0, 0]]);
    }
    if let Some(orientation @ 2..=8) = orientation {
        // A TIFF header and one directory with one entry: tag 0x0112, one SHORT.
        let tiff = b"Exif\0\0II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0";
        segment(out, APP1, &[tiff, &[orientation as u8, 0, 0, 0], &[0; 4]]);
    }
    if let Some(adobe) = adobe {
        segment(out, APP14, &[adobe]);
    }
    Ok(())
}

/// The orientation in the body of an EXIF segment (CIPA DC-008, tag 0x0112 of the first directory).
fn exif_orientation(body: &[u8]) -> Option<u16> {
    let tiff = body.strip_prefix(b"Exif\0\0")?;
    let little = match tiff.get(..2)? {
        b"II" => true,
        b"MM" => false,
        _ => return None,
    };
    let u16_at = |at: usize| {
        let b = *tiff.get(at..)?.first_chunk()?;
        Some(if little { u16::from_le_bytes(b) } else { u16::from_be_bytes(b) })
    };
    let u32_at = |at: usize| {
        let b = *tiff.get(at..)?.first_chunk()?;
        Some(if little { u32::from_le_bytes(b) } else { u32::from_be_bytes(b) } as usize)
    };
    let directory = u32_at(4)?;
    let entries = usize::from(u16_at(directory)?);
    let entry = (0..entries).map(|i| directory + 2 + 12 * i).find(|&at| u16_at(at) == Some(0x0112))?;
    (u16_at(entry + 2)? == 3).then(|| u16_at(entry + 8))?
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plain::Plain;

    type Image = (Header, [Option<[u16; 64]>; 3], Coefficients);

    fn coefficients(jpeg: &[u8]) -> Option<Image> {
        let (reader, scan) = Reader::start(jpeg, &crate::Limits::default()).ok()?;
        let mut all = Coefficients::default();
        let header = reader.header;
        let quant = all.read(reader, &scan, &mut Plain::default()).ok()?;
        Some((header, quant, all))
    }

    /// Coefficients of the blocks that are seen, component after component.
    fn seen(all: &Coefficients, n: usize) -> Vec<[i16; 64]> {
        let at = |g: &crate::coefficients::Grid| {
            let (g, (w, h)) = (*g, g.blocks);
            (0..h).flat_map(move |y| (0..w).map(move |x| g.index(x, y)))
        };
        all.grids[..n].iter().flat_map(at).map(|i| all.values.as_chunks::<64>().0[i]).collect()
    }

    #[test]
    fn coefficients_and_tables_stay_as_they_were() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
        let root = std::env::var_os("SHARDTOOL_SHARED").unwrap_or_else(|| root.into());
        let mut folders = vec![
            std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")),
            std::path::PathBuf::from(root).join("data"),
        ];
        let (mut decoder, mut relaid) = (Decoder::new(), 0);
        while let Some(folder) = folders.pop() {
            let Ok(entries) = std::fs::read_dir(&folder) else {
                eprintln!("skipped: no {}", folder.display());
                continue;
            };
            for path in entries.map(|e| e.unwrap().path()) {
                if path.is_dir() {
                    folders.push(path);
                    continue;
                }
                let jpeg = std::fs::read(&path).unwrap();
                let Ok(again) = relayout(&jpeg, &mut decoder) else { continue };
                let (header, quant, a) = coefficients(&jpeg).unwrap();
                let (_, quant_again, b) = coefficients(&again).unwrap();
                let n = header.components().len();
                assert!(quant[..n] == quant_again[..n] && seen(&a, n) == seen(&b, n), "{}", path.display());
                relaid += 1;
            }
        }
        assert!(relaid >= 18);
    }
}
