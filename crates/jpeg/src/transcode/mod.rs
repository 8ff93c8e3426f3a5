//! Lossless transcoding, as with jpegtran: the same coefficients in one sequential scan, with optimal Huffman codes and without
//! metadata.
//!
//! | file | part |
//! |---|---|
//! | `symbols` | the symbols of the scan, and their frequencies |
//! | `huffman_encoder` | optimal codes, and the entropy-coded data |

mod huffman_encoder;
mod symbols;

use crate::decoder::Decoder;
use crate::error::{Error, Result};
use crate::markers::header::{Header, MAX_COMPONENTS};
use crate::markers::metadata::{EXIF_PREFIX, Metadata, exif_of_orientation};
use crate::markers::segment::{APP0, APP1, APP14, DHT, DQT, EOI, SOI, SOS, next_segment, write_segment};
use crate::markers::standard::ZIGZAG;
use huffman_encoder::{EntropyWriter, HuffmanCode};
use symbols::{Symbols, table_pair};

/// A transcoded image.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Transcoded {
    /// The new image.
    pub jpeg: Vec<u8>,
    /// Whether the original had its coefficients in several scans (progressive, or a scan for each component), and so could
    /// have no entry points. The transcoded image can.
    pub was_multi_scan: bool,
}

/// Transcodes `jpeg` to one sequential scan of all components with optimal Huffman tables and without restart markers.
/// Coefficients and quantisation tables, and therefore the pixels, stay the same: the result is parsed again and compared
/// before it is returned. Of the metadata, only what changes the appearance is kept: JFIF, Adobe, and an EXIF segment with the
/// orientation alone, if it is not 1.
///
/// A sequential image usually becomes smaller, a progressive one usually larger; compare the lengths.
///
/// ```
/// # let jpeg = include_bytes!("../../tests/data/progressive-420.jpg");
/// use shardtool_jpeg::{Decoder, Header, Limits, transcode};
///
/// let transcoded = transcode(jpeg, &mut Decoder::new())?;
/// assert!(transcoded.was_multi_scan);
/// assert!(Header::parse(&transcoded.jpeg, &Limits::default())?.one_scan);
/// # Ok::<(), shardtool_jpeg::Error>(())
/// ```
///
/// # Errors
/// As [`Decoder::decode`] for the whole image; [`Error::Unsupported`] for coefficients that a sequential scan of 8-bit samples
/// cannot have; [`Error::TranscodeMismatch`] if the comparison fails.
pub fn transcode(jpeg: &[u8], decoder: &mut Decoder) -> Result<Transcoded> {
    let symbols = Symbols::read(jpeg, decoder)?;
    let header = &symbols.header;
    // A grey image has no tables for chroma.
    let tables = 2 * header.components().len().min(2);
    let codes: Vec<HuffmanCode> = symbols.frequencies[..tables].iter().map(HuffmanCode::optimal).collect();

    let mut out = Vec::with_capacity(jpeg.len() + 1024);
    out.extend([0xff, SOI]);
    copy_metadata(jpeg, &mut out)?;
    write_frame(header, &symbols.quant, &mut out);
    for (i, code) in codes.iter().enumerate() {
        let (class, number) = (i & 1, i >> 1);
        write_segment(&mut out, DHT, &[&[(class << 4 | number) as u8], &code.lengths, &code.symbols]);
    }
    let n = header.components().len();
    let parts: Vec<u8> =
        header.components().iter().enumerate().flat_map(|(i, c)| [c.id, 0x11 * table_pair(i) as u8]).collect();
    write_segment(&mut out, SOS, &[&[n as u8], &parts, &[0, 63, 0]]);
    let mut writer = EntropyWriter::new(out, &codes);
    symbols.all.iter().for_each(|&symbol| writer.put(symbol));
    let mut out = writer.finish();
    out.extend([0xff, EOI]);

    match Symbols::read(&out, decoder)? == symbols {
        true => Ok(Transcoded { jpeg: out, was_multi_scan: symbols.was_multi_scan }),
        false => Err(Error::TranscodeMismatch),
    }
}

/// Writes the quantisation tables, each distinct one once, and the frame header.
fn write_frame(header: &Header, quant: &[Option<[u16; 64]>; MAX_COMPONENTS], out: &mut Vec<u8>) {
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
            write_segment(out, DQT, &[&[u8::from(wide) << 4 | written.len() as u8], &values]);
            written.push(*table);
            written.len() - 1
        });
        numbers.push(number as u8);
    }
    let wide = written.iter().flatten().any(|&v| v > 255);
    let parts: Vec<u8> = components.iter().zip(numbers).flat_map(|(c, table)| [c.id, c.h << 4 | c.v, table]).collect();
    let (height, width) = ((header.height as u16).to_be_bytes(), (header.width as u16).to_be_bytes());
    // Baseline frames (SOF0) have 8-bit quantisation tables only; extended sequential ones (SOF1) may have 16-bit tables.
    write_segment(out, if wide { 0xc1 } else { 0xc0 }, &[&[8], &height, &width, &[components.len() as u8], &parts]);
}

/// Copies the metadata that change the appearance.
fn copy_metadata(jpeg: &[u8], out: &mut Vec<u8>) -> Result<()> {
    let (mut at, mut metadata) = (2, Metadata::default());
    let (mut jfif, mut adobe) = (None, None);
    loop {
        let s = next_segment(jpeg, at)?;
        at = s.end;
        match s.marker {
            SOS => break,
            APP0 if s.body.len() >= 14 && s.body.starts_with(b"JFIF\0") => jfif = Some(&s.body[..12]),
            APP1 => metadata.add_app1(s.body),
            APP14 if s.body.len() >= 12 && s.body.starts_with(b"Adobe") => adobe = Some(s.body),
            _ => {}
        }
    }
    if let Some(jfif) = jfif {
        // Without the thumbnail.
        write_segment(out, APP0, &[jfif, &[0, 0]]);
    }
    if let Some(exif) = exif_of_orientation(metadata.orientation()) {
        write_segment(out, APP1, &[EXIF_PREFIX, &exif]);
    }
    if let Some(adobe) = adobe {
        write_segment(out, APP14, &[adobe]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::image::ParsedImage;
    use crate::multiscan::decoder::MultiScanDecoder;

    type Image = (Header, [Option<[u16; 64]>; MAX_COMPONENTS], Vec<[i16; 64]>);

    /// Returns the coefficients of the blocks with pixels of the image, row of MCUs after row of MCUs.
    fn coefficients(jpeg: &[u8]) -> Option<Image> {
        let image = ParsedImage::parse(jpeg, &crate::Limits::default()).ok()?;
        let header = *image.header();
        let mut decoder = MultiScanDecoder::default();
        let quant = decoder.begin(&image, false).ok()?;
        let mut visible = Vec::new();
        for row in 0..header.mcus().1 {
            let coefs = decoder.decode_row(&image, row).ok()?;
            for grid in &coefs.grids[..header.components().len()] {
                for y in (row as usize * grid.v..(row as usize + 1) * grid.v).filter(|&y| y < grid.blocks.1) {
                    visible.extend((0..grid.blocks.0).map(|x| coefs.blocks()[grid.index(x, y)]));
                }
            }
        }
        Some((header, quant, visible))
    }

    #[test]
    fn keeps_coefficients_and_quantisation_tables() {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
        let root = std::env::var_os("SHARDTOOL_SHARED").unwrap_or_else(|| root.into());
        let mut folders = vec![
            std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data")),
            std::path::PathBuf::from(root).join("data"),
        ];
        let (mut decoder, mut transcoded) = (Decoder::new(), 0);
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
                assert!(quant[..n] == quant_again[..n] && a == b, "{}", path.display());
                transcoded += 1;
            }
        }
        assert!(transcoded >= 18);
    }
}
