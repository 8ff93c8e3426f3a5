//! Removal of metadata: what is gone, what stays, and damaged files.

mod tiff_file;

use crate::split_mix::SplitMix;
use shardtool_decode::{
    DecodeOptions, Error, Format, Limits, Random, Truncated, decode, embedded_metadata, probe, strip_metadata,
};
use std::borrow::Cow;
use tiff_file::{Kind, Value};

/// Every piece of metadata in the files below has this text, or these numbers.
const SECRET: &[u8] = b"SECRET";
const LATITUDE: [(u32, u32); 3] = [(481_516, 1000), (2342, 100), (1_080_910, 7)];
const PROFILE: &[u8] = b"a colour profile, which stays";
const ORIENTATION: u16 = 6;

fn gps() -> Value {
    Value::Directory(vec![
        (1, Value::Ascii(b"N\0")),
        (2, Value::Rationals(LATITUDE.to_vec())),
        (29, Value::Ascii(b"SECRET-DATE\0")),
    ])
}

/// Returns EXIF metadata with a position, a serial number, a comment and a thumbnail.
fn exif(kind: Kind) -> Vec<u8> {
    let details = vec![(0x9286, Value::Ascii(b"SECRET-COMMENT\0")), (0xa431, Value::Ascii(b"SECRET-SERIAL\0"))];
    let first = vec![
        (0x010f, Value::Ascii(b"SECRET-MAKE\0")),
        (0x0112, Value::Shorts(vec![ORIENTATION])),
        (0x8769, Value::Directory(details)),
        (0x8825, gps()),
    ];
    let thumbnail = b"\xff\xd8SECRET-THUMBNAIL\xff\xd9".to_vec();
    let length = thumbnail.len() as u32;
    kind.file(vec![first, vec![(0x0201, Value::Chunks(vec![thumbnail])), (0x0202, Value::Longs(vec![length]))]])
}

const CLASSIC: Kind = Kind { big_endian: false, big: false };

/// Returns a JPEG with metadata before, between and after its parts.
fn jpeg(name: &str) -> Vec<u8> {
    let plain = std::fs::read(format!("{}/../jpeg/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let segment =
        |marker: u8, body: &[u8]| [&[0xff, marker], &(body.len() as u16 + 2).to_be_bytes()[..], body].concat();
    let mut out = plain[..2].to_vec();
    out.extend(segment(0xe1, &[b"Exif\0\0", &exif(CLASSIC)[..]].concat()));
    out.extend(segment(0xe2, &[b"ICC_PROFILE\0\x01\x01", PROFILE].concat()));
    out.extend(segment(0xfe, b"SECRET-COMMENT"));
    out.extend_from_slice(&plain[2..]);
    out.extend_from_slice(SECRET);
    out
}

fn png_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(kind);
    crc.update(data);
    [&(data.len() as u32).to_be_bytes(), &kind[..], data, &crc.sum().to_be_bytes()].concat()
}

fn photo() -> image::RgbImage {
    image::RgbImage::from_fn(13, 7, |x, y| image::Rgb([x as u8 * 19, y as u8 * 36, (x * y) as u8 * 3]))
}

fn encoded(format: image::ImageFormat) -> Vec<u8> {
    let mut file = std::io::Cursor::new(vec![]);
    photo().write_to(&mut file, format).unwrap();
    file.into_inner()
}

fn png() -> Vec<u8> {
    let plain = encoded(image::ImageFormat::Png);
    // Before the pixels, and after them.
    let end = plain.len() - 12;
    let mut out = plain[..33].to_vec();
    out.extend(png_chunk(b"tEXt", b"Comment\0SECRET-TEXT"));
    out.extend(png_chunk(b"iCCP", &[b"x\0\0", PROFILE].concat()));
    out.extend(png_chunk(b"tIME", SECRET));
    out.extend(png_chunk(b"prVt", SECRET));
    out.extend_from_slice(&plain[33..end]);
    out.extend(png_chunk(b"eXIf", &exif(CLASSIC)));
    out.extend(png_chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0SECRET-XMP"));
    out.extend_from_slice(&plain[end..]);
    out.extend_from_slice(SECRET);
    out
}

fn webp_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut out = [kind, &(data.len() as u32).to_le_bytes()[..], data].concat();
    out.resize(out.len().next_multiple_of(2), 0);
    out
}

/// Returns a lossy WebP with alpha.
fn lossy_webp() -> Vec<u8> {
    std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/lossy-alpha.webp")).unwrap()
}

/// Returns a lossless WebP of [`photo`] in an extended file.
fn lossless_webp() -> Vec<u8> {
    let plain = encoded(image::ImageFormat::WebP);
    assert_eq!(&plain[12..16], b"VP8L");
    let body = [&webp_chunk(b"VP8X", &[0, 0, 0, 0, 12, 0, 0, 6, 0, 0]), &plain[12..]].concat();
    [b"RIFF", &(body.len() as u32 + 4).to_le_bytes()[..], b"WEBP", &body].concat()
}

/// Returns an extended WebP with metadata.
fn webp(plain: &[u8]) -> Vec<u8> {
    assert_eq!(&plain[12..16], b"VP8X");
    let mut header = plain[20..30].to_vec();
    header[0] |= 0x20 | 0x08 | 0x04;
    let mut body = webp_chunk(b"VP8X", &header);
    body.extend(webp_chunk(b"ICCP", PROFILE));
    body.extend(webp_chunk(b"prVt", SECRET));
    body.extend_from_slice(&plain[30..]);
    body.extend(webp_chunk(b"EXIF", &exif(CLASSIC)));
    body.extend(webp_chunk(b"XMP ", b"SECRET-XMP"));
    [b"RIFF", &(body.len() as u32 + 4).to_le_bytes()[..], b"WEBP", &body, SECRET].concat()
}

fn gif() -> Vec<u8> {
    let plain = encoded(image::ImageFormat::Gif);
    assert_eq!(plain.last(), Some(&0x3b));
    let mut out = plain[..plain.len() - 1].to_vec();
    out.extend(b"\x21\xfe\x0eSECRET-COMMENT\0");
    out.extend(b"\x21\xff\x0bXMP DataXMP\x0aSECRET-XMP\0");
    out.extend(b"\x21\xff\x0bNETSCAPE2.0\x03\x01\0\0\0;SECRET");
    out
}

fn bmp() -> Vec<u8> {
    [&encoded(image::ImageFormat::Bmp)[..], SECRET].concat()
}

/// The entries of an image of two strips.
fn image(strips: [Vec<u8>; 2], compression: u16, more: Vec<(u16, Value)>) -> Vec<(u16, Value)> {
    let lengths = strips.iter().map(|strip| strip.len() as u32).collect();
    let mut entries = vec![
        (256, Value::Longs(vec![16])),
        (257, Value::Longs(vec![16])),
        (258, Value::Shorts(vec![8])),
        (259, Value::Shorts(vec![compression])),
        (262, Value::Shorts(vec![1])),
        (273, Value::Chunks(strips.into())),
        (277, Value::Shorts(vec![1])),
        (278, Value::Longs(vec![8])),
        (279, Value::Longs(lengths)),
        (282, Value::Rationals(vec![(72, 1)])),
    ];
    entries.extend(more);
    entries.sort_by_key(|(tag, _)| *tag);
    entries
}

fn strips() -> [Vec<u8>; 2] {
    [(0..128).collect(), (100..228).collect()]
}

/// Returns a TIFF of two pages with metadata of every kind, a thumbnail between them and one below the first.
fn tiff(kind: Kind) -> Vec<u8> {
    let details = vec![(0x9286, Value::Ascii(b"SECRET-COMMENT\0")), (0xa431, Value::Ascii(b"SECRET-SERIAL\0"))];
    let reduced = || {
        let pixels = [b"SECRET-PIXELS-OF-A-THUMBNAIL".to_vec(), SECRET.to_vec()];
        image(pixels, 1, vec![(254, Value::Longs(vec![1]))])
    };
    let first = image(
        strips(),
        1,
        vec![
            (270, Value::Ascii(b"SECRET-DESCRIPTION\0")),
            (271, Value::Ascii(b"SEC\0")),
            (274, Value::Shorts(vec![ORIENTATION])),
            (330, Value::Directory(reduced())),
            (700, Value::Bytes(b"<SECRET-XMP tiff:Orientation=\"3\"/>".to_vec())),
            (33723, Value::Bytes(b"SECRET-IPTC".to_vec())),
            (34665, Value::Directory(details)),
            (34675, Value::Bytes(PROFILE.to_vec())),
            (34853, gps()),
            (65000, Value::Bytes(b"SECRET-PRIVATE".to_vec())),
        ],
    );
    let second = image(strips(), 1, vec![(270, Value::Ascii(b"SECRET-SECOND-PAGE\0"))]);
    let mut file = kind.file(vec![first, reduced(), second]);
    file.extend_from_slice(SECRET);
    file
}

/// Every container, with whether it has the position of [`exif`] or [`gps`], and a profile.
fn all() -> Vec<(&'static str, Vec<u8>, bool)> {
    let tiffs = Kind::ALL.map(|kind| ("tiff", tiff(kind), true));
    let others = [
        ("jpeg", jpeg("progressive-420.jpg"), true),
        ("sequential jpeg", jpeg("restart-rows-420.jpg"), true),
        ("png", png(), true),
        ("webp", webp(&lossless_webp()), true),
        ("lossy webp", webp(&lossy_webp()), true),
        ("gif", gif(), false),
        ("bmp", bmp(), false),
    ];
    others.into_iter().chain(tiffs).collect()
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// The parts of a file by which metadata is recognised: the text, and the latitude in both byte orders.
fn secrets(bytes: &[u8]) -> bool {
    let numbers = |big: bool| {
        let number = |n: u32| if big { n.to_be_bytes() } else { n.to_le_bytes() };
        LATITUDE.map(|(above, _)| contains(bytes, &number(above))).contains(&true)
    };
    contains(bytes, SECRET) || numbers(false) || numbers(true) || contains(bytes, b"SEC\0")
}

fn pixels(bytes: &[u8]) -> Result<(u32, u32, Vec<u8>), Error> {
    let options = DecodeOptions::default().with_apply_orientation(true).with_truncated(Truncated::Fill);
    decode(bytes, &options).map(|pixels| (pixels.width, pixels.height, pixels.data))
}

#[test]
fn metadata_is_gone_and_the_image_stays() {
    for (name, file, has_exif) in all() {
        assert!(secrets(&file), "{name}");
        let stripped = strip_metadata(&file).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(!secrets(&stripped), "{name}");
        assert!(stripped.len() <= file.len(), "{name}");
        assert_eq!(contains(&stripped, PROFILE), has_exif, "{name}");
        let (before, after) =
            (probe(&file, &Limits::default()).unwrap(), probe(&stripped, &Limits::default()).unwrap());
        assert_eq!(before, after, "{name}");
        assert_eq!(before.orientation, if has_exif { ORIENTATION as u8 } else { 1 }, "{name}");
        assert_eq!(pixels(&file).unwrap(), pixels(&stripped).unwrap(), "{name}");
        assert!(matches!(strip_metadata(&stripped), Ok(Cow::Borrowed(_))), "{name} is stripped twice");
    }
}

#[test]
fn finds_positions_and_thumbnails() {
    for (name, file, has_exif) in all() {
        let found = embedded_metadata(&file);
        let has_thumbnail = has_exif;
        assert_eq!((found.position, found.thumbnail), (has_exif, has_thumbnail), "{name}");
        assert_eq!(embedded_metadata(&strip_metadata(&file).unwrap()), Default::default(), "{name}");
    }
}

#[test]
fn a_date_is_no_position_and_an_empty_directory_no_thumbnail() {
    for kind in Kind::ALL {
        let found = |gps: u16, second: u16| {
            let first = vec![(0x8825, Value::Directory(vec![(gps, Value::Rationals(LATITUDE.to_vec()))]))];
            let exif = kind.file(vec![first, vec![(second, Value::Longs(vec![8]))]]);
            let mut file = encoded(image::ImageFormat::Png);
            file.splice(33..33, png_chunk(b"eXIf", &exif));
            let found = embedded_metadata(&file);
            (found.position, found.thumbnail)
        };
        assert_eq!(found(7, 0x0103), (false, false), "{kind:?}");
        assert_eq!(found(4, 0x0201), (true, true), "{kind:?}");
        assert_eq!(found(0x16, 0x0111), (true, true), "{kind:?}");
    }
}

#[test]
fn frames_of_an_animated_webp_lose_unknown_chunks() {
    let plain = encoded(image::ImageFormat::WebP);
    // At the left top, 13x7 pixels, 100 ms; no blending.
    let frame =
        [&[0, 0, 0, 0, 0, 0, 12, 0, 0, 6, 0, 0, 100, 0, 0, 2], &plain[12..], &webp_chunk(b"prVt", SECRET)[..]].concat();
    let header = [2, 0, 0, 0, 12, 0, 0, 6, 0, 0];
    let chunks = [webp_chunk(b"VP8X", &header), webp_chunk(b"ANIM", &[0; 6]), webp_chunk(b"ANMF", &frame)].concat();
    let file = [b"RIFF", &(chunks.len() as u32 + 4).to_le_bytes()[..], b"WEBP", &chunks].concat();
    assert!(secrets(&file));
    let stripped = strip_metadata(&file).unwrap();
    assert!(!secrets(&stripped));
    assert_eq!(pixels(&stripped).unwrap(), pixels(&file).unwrap());
    assert_eq!(pixels(&stripped).unwrap().2, *photo().as_raw());
}

#[test]
fn pages_of_full_size_stay() {
    for kind in Kind::ALL {
        let stripped = strip_metadata(&tiff(kind)).unwrap().into_owned();
        // Both pages have these strips.
        let [first, second] = strips();
        for strip in [first, second] {
            assert_eq!(stripped.windows(128).filter(|window| *window == strip).count(), 2, "{kind:?}");
        }
    }
}

#[test]
fn xmp_of_a_tiff_leaves_its_orientation() {
    for kind in Kind::ALL {
        let file = kind.file(vec![image(
            strips(),
            1,
            vec![(700, Value::Bytes(b"<SECRET tiff:Orientation=\"8\"/>".to_vec()))],
        )]);
        let stripped = strip_metadata(&file).unwrap();
        assert!(!secrets(&stripped));
        assert_eq!(probe(&stripped, &Limits::default()).unwrap().orientation, 8);
        assert_eq!(pixels(&file).unwrap(), pixels(&stripped).unwrap());
    }
}

#[test]
fn jpegs_in_a_tiff_lose_their_metadata() {
    let grey = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../jpeg/tests/data/grey.jpg")).unwrap();
    let info = probe(&grey, &Limits::default()).unwrap();
    let dirty = [&grey[..2], b"\xff\xfe\0\x10SECRET-COMMENT", &grey[2..], SECRET].concat();
    let mut entries = image([dirty, vec![]], 7, vec![]);
    for (tag, value) in &mut entries {
        match tag {
            256 => *value = Value::Longs(vec![info.width]),
            257 | 278 => *value = Value::Longs(vec![info.height]),
            _ => {}
        }
    }
    let file = CLASSIC.file(vec![entries]);
    assert!(secrets(&file));
    let stripped = strip_metadata(&file).unwrap();
    assert!(!secrets(&stripped));
    assert_eq!(pixels(&stripped).unwrap(), pixels(&file).unwrap());
    assert_eq!(pixels(&stripped).unwrap().2, pixels(&grey).unwrap().2);
}

#[test]
fn refuses_what_it_cannot_strip() {
    let full_size = image(strips(), 1, vec![(330, Value::Directory(image(strips(), 1, vec![])))]);
    let webp_inside = image(strips(), 50001, vec![]);
    // The length of the strips covers the description that follows them.
    let mut shared = image(strips(), 1, vec![(270, Value::Ascii(b"SECRET-DESCRIPTION\0"))]);
    shared.iter_mut().filter(|(tag, _)| *tag == 279).for_each(|(_, value)| *value = Value::Longs(vec![128, 4000]));
    let mut critical = encoded(image::ImageFormat::Png);
    critical.splice(33..33, png_chunk(b"PRVT", SECRET));
    let mut text = gif();
    text.splice(text.len() - 7..text.len() - 7, *b"\x21\x01\x0cSECRET-SECRE\0");
    let avif = b"\0\0\0\x18ftypavif\0\0\0\0avifmif1".to_vec();
    for file in [
        CLASSIC.file(vec![full_size]),
        CLASSIC.file(vec![webp_inside]),
        CLASSIC.file(vec![shared]),
        critical,
        text,
        avif,
    ] {
        let error = strip_metadata(&file).unwrap_err();
        assert!(matches!(error, Error::Metadata { .. }), "{error}");
    }
    assert!(matches!(strip_metadata(b"text"), Err(Error::UnknownFormat { .. })));
    let mut linked = vec![0; 14 + 124];
    linked[..2].copy_from_slice(b"BM");
    linked[14] = 124;
    linked[70..74].copy_from_slice(b"KNIL");
    assert!(matches!(strip_metadata(&linked), Err(Error::Metadata { format: Format::Bmp, .. })));
}

/// Real photographs of the shared test data, if they are here.
#[test]
fn photographs_keep_their_pixels() {
    let root = std::env::var_os("SHARDTOOL_SHARED")
        .unwrap_or_else(|| concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared").into());
    let mut folders = vec![std::path::PathBuf::from(root).join("data")];
    let (mut stripped, mut clean) = (0, 0);
    while let Some(folder) = folders.pop() {
        let Ok(entries) = std::fs::read_dir(&folder) else {
            eprintln!("skipped: no {}", folder.display());
            return;
        };
        for path in entries.map(|entry| entry.unwrap().path()) {
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let file = std::fs::read(&path).unwrap();
            let Ok(out) = strip_metadata(&file) else { continue };
            match out {
                Cow::Borrowed(_) => clean += 1,
                Cow::Owned(_) => stripped += 1,
            }
            for part in [&b"Photoshop 3.0"[..], b"http://ns.adobe.com/", b"JFXX\0"] {
                assert!(!contains(&out, part), "{}", path.display());
            }
            // An EXIF segment that holds an orientation alone has 34 bytes.
            let exif = out.windows(8).find(|window| window[2..] == *b"Exif\0\0");
            assert!(exif.is_none_or(|window| window[..2] == [0, 34]), "{}", path.display());
            let (before, after) = (pixels(&file), pixels(&out));
            assert_eq!(before.is_ok(), after.is_ok(), "{}", path.display());
            assert!(before.ok() == after.ok(), "{}", path.display());
        }
    }
    assert!(stripped > 50 && clean > 50, "{stripped} stripped, {clean} had no metadata");
}

/// Returns where the coded pixels of a WebP are. Those of a damaged one are compared as bytes, since libwebp reads bits beyond their
/// chunk, so that decoded pixels would depend on the metadata behind it. Returns an empty range for other formats.
fn coded_pixels_of_webp(file: &[u8]) -> std::ops::Range<usize> {
    let chunk = file.windows(4).position(|kind| matches!(kind, b"VP8 " | b"VP8L"));
    chunk.map_or(0..0, |at| at + 8..at + 8 + u32::from_le_bytes(*file[at + 4..].first_chunk().unwrap()) as usize)
}

/// Flips bits and cuts the files. What is stripped decodes to the pixels of the damaged file, wherever that decodes.
#[test]
fn damaged_files_are_refused_or_keep_their_pixels() {
    const VARIANTS: u64 = 10_000;
    shardtool_decode::silence_decoder_panics();
    let mut random = SplitMix(44);
    for (name, file, _) in all() {
        let (mut stripped, mut decoded) = (0u64, 0u64);
        let coded = coded_pixels_of_webp(&file);
        for _ in 0..VARIANTS {
            let (mut damaged, mut damages_pixels) = (file.clone(), false);
            for _ in 0..=random.below(3) {
                // Half of the flips are in the first bytes, where headers are.
                let range = if random.below(2) == 0 { file.len() as u64 } else { 600.min(file.len() as u64) };
                let at = random.below(range) as usize;
                damaged[at] ^= 1 << random.below(8);
                damages_pixels |= coded.contains(&at);
            }
            if random.below(4) == 0 {
                damaged.truncate(random.below(file.len() as u64) as usize);
            }
            let Ok(clean) = strip_metadata(&damaged) else { continue };
            stripped += 1;
            assert!(matches!(strip_metadata(&clean), Ok(Cow::Borrowed(_))), "{name}: stripped twice");
            if damages_pixels {
                let same_chunks = damaged[..coded.start] == file[..coded.start];
                assert!(!same_chunks || contains(&clean, &damaged[coded.clone()]), "{name}: other coded pixels");
                continue;
            }
            let Ok(before) = pixels(&damaged) else { continue };
            decoded += 1;
            let after = pixels(&clean).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(after == before, "{name}: other pixels");
        }
        // The test has no meaning if all damaged files are refused.
        assert!(stripped > VARIANTS / 10 && decoded > VARIANTS / 100, "{name}: {stripped} stripped, {decoded} decoded");
    }
}
