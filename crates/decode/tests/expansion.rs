//! Images whose parts expand: what an image does not need for its pixels is not decompressed, and what its header claims is
//! not allocated.

#[expect(dead_code, reason = "another test counts calls")]
#[path = "made/counting_allocator.rs"]
mod counting_allocator;

use counting_allocator::{Allocated, allocated};
use shardtool_decode::{ConvertedFormat, DecodeOptions, Error, Format, LabelDtype, LabelMap, Limits, decode, probe};
use std::io::Write;
use std::sync::Mutex;

/// Tests measure one after the other.
static MEASURED: Mutex<()> = Mutex::new(());

/// Returns a chunk of a PNG: length, type, data, CRC.
fn chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let mut crc = flate2::Crc::new();
    crc.update(kind);
    crc.update(data);
    [&(data.len() as u32).to_be_bytes()[..], kind, data, &crc.sum().to_be_bytes()].concat()
}

fn deflated(bytes: &[u8]) -> Vec<u8> {
    let mut zlib = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::fast());
    zlib.write_all(bytes).unwrap();
    zlib.finish().unwrap()
}

/// Returns a grey PNG of 4x3 pixels with chunks between its header and its pixels, of which `split` makes several IDATs.
fn png(between: &[Vec<u8>], split: usize) -> Vec<u8> {
    let rows: Vec<u8> = (0..3u8).flat_map(|y| [0, y, y + 1, y + 2, y + 3]).collect();
    let pixels = deflated(&rows);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    file.extend(chunk(b"IHDR", &[0, 0, 0, 4, 0, 0, 0, 3, 8, 0, 0, 0, 0]));
    between.iter().for_each(|chunk| file.extend(chunk));
    let (last, empty) = (pixels.len() - 1, split);
    file.extend(chunk(b"IDAT", &pixels[..last]));
    (0..empty).for_each(|_| file.extend(chunk(b"IDAT", &[])));
    file.extend(chunk(b"IDAT", &pixels[last..]));
    file.extend(chunk(b"IEND", &[]));
    file
}

#[test]
fn colour_profiles_and_texts_of_a_png_are_not_decompressed_beyond_a_limit() {
    let _alone = MEASURED.lock().unwrap();
    let plain = png(&[], 0);
    let expected = decode(&plain, &DecodeOptions::default()).unwrap().data;
    let zeros = deflated(&vec![0; 64 << 20]);
    let exif = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0".as_slice();
    let between = [
        chunk(b"iCCP", &[b"icc\0\0".as_slice(), &zeros].concat()),
        chunk(b"zTXt", &[b"text\0\0".as_slice(), &zeros].concat()),
        chunk(b"iTXt", &[b"XML:com.adobe.xmp\0\x01\0\0\0".as_slice(), &zeros].concat()),
        chunk(b"eXIf", exif),
    ];
    let hostile = png(&between, 0);
    const MOST: usize = 2 << 20;
    let (info, Allocated { peak: bytes, .. }) = allocated(|| probe(&hostile, &Limits::default()).unwrap());
    assert!(bytes < MOST, "probe: {bytes} bytes");
    assert_eq!((info.width, info.height, info.channels, info.orientation), (4, 3, 1, 6));
    let (pixels, Allocated { peak: bytes, .. }) = allocated(|| decode(&hostile, &DecodeOptions::default()).unwrap());
    assert!(bytes < MOST, "decode: {bytes} bytes");
    assert_eq!(pixels.data, expected);
    let mut map = LabelMap::default();
    let ((), Allocated { peak: bytes, .. }) =
        allocated(|| map.decode(&hostile, LabelDtype::U8, &Limits::default()).unwrap());
    assert!(bytes < MOST, "labels: {bytes} bytes");
}

#[test]
fn chunks_of_a_png_are_limited() {
    let _alone = MEASURED.lock().unwrap();
    let plain = decode(&png(&[], 0), &DecodeOptions::default()).unwrap().data;
    let several = png(&[], 1000);
    assert_eq!(decode(&several, &DecodeOptions::default()).unwrap().data, plain);
    for hostile in [png(&[], 70_000), png(&vec![chunk(b"tEXt", b"a\0b"); 70_000], 0)] {
        let refused = |error| match error {
            Error::Chunks { format: Format::Png, found, allowed: 65_536 } => assert!(found > 70_000),
            other => panic!("{other}"),
        };
        refused(probe(&hostile, &Limits::default()).unwrap_err());
        refused(decode(&hostile, &DecodeOptions::default()).unwrap_err());
        refused(LabelMap::default().decode(&hostile, LabelDtype::U8, &Limits::default()).unwrap_err());
    }
}

#[test]
fn images_that_are_converted_are_limited_before_they_are_decoded() {
    let _alone = MEASURED.lock().unwrap();
    let side = 60_000u32;
    let qoi =
        [b"qoif".as_slice(), &side.to_be_bytes(), &side.to_be_bytes(), &[4, 0, 0xfe, 1, 2, 3], &[0xfd; 64]].concat();
    let [low, high] = (side as u16).to_le_bytes();
    let tga = [0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 0, 0, low, high, low, high, 32, 0, 0xff, 1, 2, 3, 4];
    let dib = [&[40, 0, 0, 0][..], &side.to_le_bytes(), &(2 * side).to_le_bytes(), &[1, 0, 32, 0], &[0; 24]].concat();
    let entry = [&[0, 0, 0, 0, 1, 0, 32, 0][..], &(dib.len() as u32).to_le_bytes(), &22u32.to_le_bytes()].concat();
    let ico = [b"\0\0\x01\0\x01\0".as_slice(), &entry, &dib].concat();
    for file in [b"P6 60000 60000 255\n".as_slice(), b"P1\n60000 60000\n1", &qoi, &tga, &ico] {
        let format = ConvertedFormat::detect(file, Some("a.tga")).unwrap();
        let (result, Allocated { peak: bytes, .. }) = allocated(|| format.to_png(file, &Limits::default()).map(drop));
        assert!(bytes < 1 << 16, "{format}: {bytes} bytes");
        assert!(matches!(result, Err(Error::Limit { .. })), "{format}: {result:?}");
    }
    let small = Limits::default().with_max_bytes(1 << 20);
    let bitmap = b"P4 30000 30000\n".as_slice();
    let format = ConvertedFormat::detect(bitmap, None).unwrap();
    assert!(matches!(format.to_png(bitmap, &small), Err(Error::Limit { .. })));
}

/// Returns a WebP with a chunk that claims `claimed` bytes and has four.
fn webp(kind: &[u8; 4], claimed: u32) -> Vec<u8> {
    let flags = if kind == b"EXIF" { 8 } else { 32 };
    let mut chunks = b"WEBPVP8X".to_vec();
    chunks.extend(10u32.to_le_bytes());
    chunks.extend([flags, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let extra = |chunks: &mut Vec<u8>| {
        chunks.extend(kind);
        chunks.extend(claimed.to_le_bytes());
        chunks.extend([0; 4]);
    };
    extra(&mut chunks);
    [b"RIFF".as_slice(), &(chunks.len() as u32).to_le_bytes(), &chunks].concat()
}

#[test]
fn chunks_of_a_webp_are_not_allocated_before_their_bytes_are_there() {
    let _alone = MEASURED.lock().unwrap();
    for kind in [b"EXIF", b"ICCP"] {
        let hostile = webp(kind, 512 << 20);
        let (result, Allocated { peak: bytes, .. }) = allocated(|| probe(&hostile, &Limits::default()));
        assert!(bytes < 2 << 20, "{bytes} bytes, {result:?}");
        let (result, Allocated { peak: bytes, .. }) =
            allocated(|| decode(&hostile, &DecodeOptions::default()).map(drop));
        assert!(result.is_err() && bytes < 2 << 20, "{bytes} bytes, {result:?}");
    }
}
