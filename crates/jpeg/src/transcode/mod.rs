//! Lossless re-plan: the same coefficients in one sequential scan, with the best codes and without metadata.

mod huffman_encoder;
mod symbols;

use crate::decoder::Decoder;
use crate::error::{Error, Result};
use crate::markers::header::Header;
use crate::markers::segment::{self, APP0, APP1, APP14, DHT, DQT, EOI, SOI, SOS};
use crate::markers::standard::ZIGZAG;
use crate::transcode::huffman_encoder::{Code, EntropyWriter, Frequencies};
use crate::transcode::symbols::{Symbols, table};

/// An image in its new plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transcoded {
    /// The new image.
    pub jpeg: Vec<u8>,
    /// Whether the original held its coefficients in several scans (progressive, or a scan for each component), so that it
    /// had no entry points: the new image has.
    pub was_multi_scan: bool,
}

/// Writes `jpeg` anew as one sequential scan of all components with optimal Huffman tables and no restart markers.
/// Coefficients and quantisation tables stay as they are, so the pixels do: the result is read again and compared before
/// it is returned. Of the metadata only what changes the picture is kept: JFIF, Adobe, and an EXIF segment with nothing
/// but the orientation, if that is not the usual one.
///
/// A sequential image almost always becomes smaller, a progressive one mostly larger: compare.
///
/// # Errors
/// What is wrong with the image; [`Error::Unsupported`] for what a sequential scan of 8-bit samples cannot hold;
/// [`Error::TranscodeMismatch`] if the comparison fails.
pub fn transcode(jpeg: &[u8], decoder: &mut Decoder) -> Result<Transcoded> {
    let symbols = Symbols::read(jpeg, decoder)?;
    let header = &symbols.header;
    // No table of colour where there is none.
    let tables = 2 * header.components().len().min(2);
    let codes: Vec<Code> = symbols.counts[..tables].iter().map(|c| Code::new(&Frequencies(*c))).collect();

    let mut out = Vec::with_capacity(jpeg.len() + 1024);
    out.extend([0xff, SOI]);
    metadata(jpeg, &mut out)?;
    frame(header, &symbols.quant, &mut out);
    for (i, code) in codes.iter().enumerate() {
        let (class, number) = (i & 1, i >> 1);
        segment(&mut out, DHT, &[&[(class << 4 | number) as u8], &code.lengths, &code.symbols]);
    }
    let n = header.components().len();
    let parts: Vec<u8> =
        header.components().iter().enumerate().flat_map(|(i, c)| [c.id, 0x11 * table(i) as u8]).collect();
    segment(&mut out, SOS, &[&[n as u8], &parts, &[0, 63, 0]]);
    let mut writer = EntropyWriter::new(out, &codes);
    symbols.all.iter().for_each(|&symbol| writer.put(symbol));
    let mut out = writer.finish();
    out.extend([0xff, EOI]);

    match Symbols::read(&out, decoder)? == symbols {
        true => Ok(Transcoded { jpeg: out, was_multi_scan: symbols.several_scans }),
        false => Err(Error::TranscodeMismatch),
    }
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
        let s = segment::next(jpeg, at)?;
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
    use crate::bitstream::unstuffed::UnstuffedData;
    use crate::markers::parser::Parser;
    use crate::multiscan::coefficients::Coefficients;

    type Image = (Header, [Option<[u16; 64]>; 3], Coefficients);

    fn coefficients(jpeg: &[u8]) -> Option<Image> {
        let (reader, scan) = Parser::start(jpeg, &crate::Limits::default()).ok()?;
        let mut all = Coefficients::default();
        let header = reader.header;
        let quant = all.read(reader, &scan, &mut UnstuffedData::default()).ok()?;
        Some((header, quant, all))
    }

    /// Coefficients of the blocks that are seen, component after component.
    fn seen(all: &Coefficients, n: usize) -> Vec<[i16; 64]> {
        let at = |g: &crate::multiscan::coefficients::BlockGrid| {
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
                let Ok(Transcoded { jpeg: again, .. }) = transcode(&jpeg, &mut decoder) else { continue };
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
