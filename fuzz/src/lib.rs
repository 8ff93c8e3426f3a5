//! Fuzz targets: functions of arbitrary bytes that must neither panic nor break a stated law.
//!
//! The targets are plain functions, so that they build on stable Rust and run in two ways:
//!
//! - `cargo test -p shardtool-fuzz` runs each over the committed fixtures and random mutations of them, for one second or
//!   `FUZZ_SECONDS`. The seed is fixed unless `FUZZ_SEED` is set, and a failure prints the input as hex.
//! - A coverage-guided fuzzer (cargo-fuzz on nightly, honggfuzz, AFL) needs one line per target:
//!   `fuzz_target!(|data: &[u8]| shardtool_fuzz::manifest(data));`. Mutation from valid fixtures reaches the same parsers,
//!   because targets whose input is guarded by CRCs correct the CRCs first, without which every mutation stops there.
#![forbid(unsafe_code)]

use shardtool_decode::{self as decode, ConvertedFormat, DecodeOptions, Limits, Truncated};
use shardtool_format::example::{Column, Example, Feature, encode};
use shardtool_format::frame::{self, Check};
use shardtool_format::index::{FramePart, Index, SourceFile, frame_parts};
use shardtool_format::manifest::Manifest;
use shardtool_format::{Compression, DeletedRows};
use shardtool_format::{checksum, example};
use shardtool_order::ResumeState;

pub mod sources;

/// A fuzz target.
pub type Target = fn(&[u8]);

/// Name and function of every target.
pub const TARGETS: &[(&str, Target)] = &[
    ("frame", frame),
    ("example", example),
    ("index", index),
    ("deleted_rows", deleted_rows),
    ("virtual_frame", virtual_frame),
    ("manifest", manifest),
    ("state", state),
    ("image", image),
    ("jpeg", jpeg),
    ("fax", fax),
    ("conversion", conversion),
    ("entry_points", entry_points),
    ("webdataset", sources::webdataset),
    ("parquet", sources::parquet),
    ("tfrecord", sources::tfrecord),
    ("mds", sources::mds),
    ("list", sources::list),
    ("coco", sources::coco),
    ("voc", sources::voc),
    ("yolo", sources::yolo),
    ("tar_in_place", sources::tar_in_place),
    ("parquet_in_place", sources::parquet_in_place),
    ("hub_list", hub_list),
    ("segmentation", segmentation),
];

/// What objects cover: what is accepted can be drawn, in any bit, and other bits stay.
pub fn segmentation(bytes: &[u8]) {
    let size = (5, 4);
    let Ok(segmentation) = serde_json::from_slice::<decode::Segmentation>(bytes) else { return };
    let drawn = [0, 7].map(|bit| {
        let mut map = decode::LabelMap::default();
        map.set(size, decode::LabelDtype::U8, &[0x3c; 20]).expect("a byte for each pixel");
        map.draw(&segmentation, bit).ok()?;
        assert!(map.values().iter().all(|value| value & !(1 << bit) == 0x3c), "another bit changed");
        Some(map.values().iter().map(|value| value >> bit & 1).collect::<Vec<_>>())
    });
    assert_eq!(drawn[0], drawn[1]);
    assert_eq!(drawn[0].is_some(), segmentation.check(size).is_ok());
}

/// TFRecord frames: an accepted frame is the one that its data frames to.
pub fn frame(bytes: &[u8]) {
    let _ = Compression::detect(bytes);
    if let Some(at) = frame::resync(bytes, bytes.len() as u64) {
        assert!(frame::data(&bytes[at..], 0, Check::LengthOnly).is_ok(), "resync finds a whole frame");
    }
    if let Ok(data) = frame::data(bytes, 0, Check::Data) {
        let header = frame::header(data.len() as u64);
        let whole = [&header[..], data, &frame::footer(checksum::crc32c(data))].concat();
        assert!(bytes.starts_with(&whole));
    }
}

/// Rows of virtual shards: the parts of a frame have its length, and no range is empty; a source file that is decoded is encoded as it
/// was.
pub fn virtual_frame(bytes: &[u8]) {
    let Some((length, rows)) = bytes.split_first_chunk::<2>() else { return };
    let length = u64::from(u16::from_le_bytes(*length));
    let (ranges, literal) = rows.split_at(rows.len() / 33 * 32);
    if let Ok(parts) = frame_parts(ranges, literal, length) {
        assert_eq!(parts.iter().map(FramePart::len).sum::<u64>(), length);
        assert!(parts.iter().all(|part| part.len() > 0));
    }
    for at in [0, 1, length] {
        let Some(file) = SourceFile::decode(bytes, at) else { continue };
        let mut encoded = vec![];
        file.encode(&mut encoded);
        assert!(bytes[at as usize..].starts_with(&encoded) && encoded.len() as u64 == file.bytes());
        if file.has_plain_name() {
            let path = std::path::Path::new("/folder").join(file.name);
            assert!(
                path.components().all(|part| part != std::path::Component::ParentDir) && path.starts_with("/folder")
            );
        }
    }
}

/// Lists of the Hugging Face Hub: all that is accepted lies in the folder whose list it is.
pub fn hub_list(bytes: &[u8]) {
    for folder in ["", "data"] {
        for path in shardtool_store::listed_by_hub(bytes, folder).into_iter().flatten() {
            let path = std::path::Path::new(&path);
            assert!(path.components().all(|part| matches!(part, std::path::Component::Normal(_))), "{path:?}");
            assert_eq!(path.parent(), Some(std::path::Path::new(folder)));
        }
    }
}

/// Examples: what is parsed is written in canonical form, and that parses to the same values.
pub fn example(bytes: &[u8]) {
    let Ok(parsed) = Example::parse(bytes) else { return };
    let values: Vec<_> = parsed.features().iter().map(|(name, feature)| (&**name, Values::of(feature))).collect();
    let strings: Vec<Vec<&[u8]>> = values
        .iter()
        .map(|(_, values)| match values {
            Values::Bytes(list) => list.iter().map(Vec::as_slice).collect(),
            _ => vec![],
        })
        .collect();
    let mut columns: Vec<_> = values
        .iter()
        .zip(&strings)
        .filter_map(|((name, values), strings)| match values {
            Values::Missing => None,
            Values::Bytes(_) => Some((*name, Column::Bytes(strings))),
            Values::Float(list) => Some((*name, Column::Float(list))),
            Values::Int64(list) => Some((*name, Column::Int64(list))),
        })
        .collect();
    let mut canonical = vec![];
    encode(&mut columns, &mut canonical);
    let again = Example::parse(&canonical).expect("the canonical form is an Example");
    for (name, values) in &values {
        let expected = format!("{values:?}");
        let found = again.get(name).map_or(Values::Missing, |feature| Values::of(&feature));
        assert_eq!(format!("{found:?}"), expected, "{name}");
    }
    let image = parsed.bytes("image/encoded").and_then(|image| example::range_within(bytes, image));
    assert!(image.is_none_or(|range| range.end <= bytes.len()));
}

/// The values of a feature, copied.
#[derive(Debug)]
enum Values {
    Missing,
    Bytes(Vec<Vec<u8>>),
    Float(Vec<f32>),
    Int64(Vec<i64>),
}

impl Values {
    fn of(feature: &Feature<'_>) -> Self {
        match feature {
            Feature::Empty => Values::Missing,
            Feature::Bytes(list) => Values::Bytes(list.iter().map(<[u8]>::to_vec).collect()),
            Feature::Float(list) => Values::Float(list.iter().collect()),
            Feature::Int64(list) => Values::Int64(list.iter().collect()),
        }
    }
}

/// Bitmaps of deleted rows: the rows that are not deleted are numbered without a gap, and found by their numbers.
pub fn deleted_rows(bytes: &[u8]) {
    let [first, bits @ ..] = bytes else { return };
    let records = (bits.len() as u64 * 8).saturating_sub(u64::from(first % 8));
    let deleted = bits.iter().map(|byte| u64::from(byte.count_ones())).sum();
    let _ = DeletedRows::parse(bits, u64::from(*first), deleted);
    let Ok(rows) = DeletedRows::parse(bits, records, deleted) else { return };
    assert_eq!((rows.records(), rows.live_rows() + deleted, rows.as_bytes()), (records, records, bits));
    let live = (0..records).filter(|row| !rows.contains(*row));
    for (n, row) in live.enumerate() {
        assert_eq!((rows.rank(row), rows.live_row(n as u64)), (Some(n as u64), Some(row)));
    }
    assert_eq!((rows.live_row(rows.live_rows()), rows.rank(records)), (None, None));
}

/// Indexes and companions, also with the CRCs of header and directory corrected. A checked column yields one value per record.
pub fn index(bytes: &[u8]) {
    parse_index(bytes);
    let mut corrected = bytes.to_vec();
    if let Some(length) = bytes.get(44..48) {
        let length = u32::from_le_bytes(*length.first_chunk().expect("four bytes")) as usize;
        if let Some(directory) = length.checked_add(64).and_then(|end| bytes.get(64..end)) {
            corrected[56..60].copy_from_slice(&checksum::crc32c(directory).to_le_bytes());
        }
    }
    if bytes.len() >= 64 {
        let crc = checksum::crc32c(&corrected[..60]);
        corrected[60..64].copy_from_slice(&crc.to_le_bytes());
        parse_index(&corrected);
    }
}

fn parse_index(bytes: &[u8]) {
    [Index::parse(bytes), Index::parse_companion(bytes)].iter().flatten().for_each(columns);
}

fn columns(index: &Index<&[u8]>) {
    for column in 0..index.columns().len() {
        let checked = index.check(column).is_ok();
        let numbers = [
            index.fixed::<u32>(column).map(|c| c.iter().count()),
            index.fixed::<u64>(column).map(|c| c.iter().count()),
            index.fixed::<i64>(column).map(|c| c.iter().count()),
            index.fixed::<f32>(column).map(|c| c.iter().count()),
        ];
        let rows =
            index.variable(column).map(|c| (c.iter().count(), c.iter().flatten().map(<[u8]>::len).sum::<usize>()));
        for count in numbers.into_iter().flatten().chain(rows.map(|(count, _)| count)) {
            assert_eq!(count as u64, index.records());
        }
        if let (true, Some((count, bytes))) = (checked, rows) {
            let validity = if index.columns()[column].nullable() { count.div_ceil(8) } else { 0 };
            let parts = validity + 8 * (count + 1) + bytes;
            assert_eq!(index.columns()[column].bytes(), parts as u64, "rows cover all bytes");
        }
    }
}

/// Manifests, also with the CRC corrected: an accepted one is written so that it parses to the same.
pub fn manifest(bytes: &[u8]) {
    parse_manifest(bytes);
    // `  "crc32c": "hhhhhhhh"`, LF, `}`, LF: eight digits and four more bytes at the end.
    if let Some(digits) = bytes.len().checked_sub(12) {
        let mut corrected = bytes.to_vec();
        corrected[digits..digits + 8].fill(b'0');
        let crc = format!("{:08x}", checksum::crc32c(&corrected));
        corrected[digits..digits + 8].copy_from_slice(crc.as_bytes());
        parse_manifest(&corrected);
    }
}

fn parse_manifest(bytes: &[u8]) {
    if let Ok(manifest) = Manifest::parse(bytes) {
        let again = Manifest::parse(manifest.to_json().as_bytes()).expect("what is written parses");
        assert_eq!(again, manifest);
        assert!(manifest.splits.iter().all(|split| split.records() < 1 << 63));
    }
}

/// Resume states: an accepted one round-trips.
pub fn state(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Ok(state) = ResumeState::parse(text)
    {
        assert_eq!(ResumeState::parse(&state.to_string()).expect("what is written parses"), state);
    }
}

fn limits() -> Limits {
    let mut limits = Limits::default();
    (limits.max_pixels, limits.max_bytes) = (1 << 20, 1 << 26);
    limits
}

/// Images of any format: the header and the decoded pixels agree, and pixels fill the size.
pub fn image(bytes: &[u8]) {
    let _ = decode::check_complete(bytes);
    let options = DecodeOptions::default().with_limits(limits());
    let info = decode::probe(bytes, &limits());
    let decoded = decode::decode(bytes, &options);
    let filled = decode::decode(bytes, &options.with_truncated(Truncated::Fill));
    assert!(decoded.is_err() || filled.is_ok(), "what is whole is decoded also if damage is filled");
    for pixels in [decoded, filled].into_iter().flatten() {
        assert!(info.is_ok(), "what decodes can be probed");
        assert_eq!(pixels.data.len(), pixels.width as usize * pixels.height as usize * 3);
    }
}

/// As [`image`], for bytes that begin like a JPEG: others need not be tried by every decoder.
pub fn jpeg(bytes: &[u8]) {
    if bytes.starts_with(&[0xff, 0xd8]) {
        image(bytes);
    }
}

/// Fax data of every coding, in a TIFF of 61 x 40 pixels: pixels or an error, but no panic that is caught.
pub fn fax(bytes: &[u8]) {
    const ENTRIES: u16 = 8;
    for (compression, options) in [(2, 0), (3, 0), (3, 1), (3, 5), (4, 0)] {
        let data = 8 + 2 + u32::from(ENTRIES) * 12 + 4;
        let mut tiff = b"II*\0\x08\0\0\0".to_vec();
        tiff.extend(ENTRIES.to_le_bytes());
        let fields = [
            (256, 61),
            (257, 40),
            (259, compression),
            (262, 0),
            (273, data),
            (278, 40),
            (279, bytes.len() as u32),
            (292, options),
        ];
        for (tag, value) in fields {
            let [long, one] = [4u16.to_le_bytes().to_vec(), 1u32.to_le_bytes().to_vec()];
            tiff.extend([u16::to_le_bytes(tag).to_vec(), long, one, value.to_le_bytes().to_vec()].concat());
        }
        tiff.extend([0; 4]);
        tiff.extend(bytes);
        image(&tiff);
        let decoded = decode::decode(&tiff, &DecodeOptions::default().with_limits(limits()));
        assert!(!matches!(decoded, Err(decode::Error::Panic { .. })), "our decoder does not panic");
    }
}

/// Images of formats that are stored as PNG: what is converted is a PNG of the size in the header, within the limits.
pub fn conversion(bytes: &[u8]) {
    let Some(format) = ConvertedFormat::detect(bytes, Some("a.tga")) else { return };
    for converted in [format.to_png(bytes, &limits()), format.to_png_unscaled(bytes, &limits())] {
        match converted {
            Ok(png) => {
                // An ICO holds any PNG.
                assert!(decode::probe(&png, &limits()).is_ok() || format == ConvertedFormat::Ico, "a PNG");
                assert!(png.len() <= 1 << 26);
            }
            Err(error) => assert!(!matches!(error, decode::Error::Panic { .. }), "no decoder panics"),
        }
    }
}

/// JPEG entry points of any bytes, and any bytes as entry points: those that are found are accepted.
pub fn entry_points(bytes: &[u8]) {
    let found = decode::entry_points(bytes);
    assert!(found.is_empty() || decode::check_entries(bytes, &found));
    let (entries, image) = bytes.split_at(bytes.len().min(64));
    let _ = decode::check_entries(image, entries);
}
