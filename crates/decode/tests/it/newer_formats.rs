//! AVIF, HEIF, JPEG XL and JPEG 2000: headers in every build, pixels if the feature is enabled.

use shardtool_decode::{DecodeOptions, Error, Format, ImageInfo, LimitKind, Limits, decode, probe, sniff};

/// 7x5 pixels, value 2i in byte i, lossless; written by libjxl.
const JXL: &str =
    "ff0a2040100908000100a0004b28b06db48fc2ef282828090a0a0a1c1b1183252a706a8cd1313870811801ca8092ab3ae000c900";
/// The same pixels, written by OpenJPEG.
const JP2: &str = "0000000c6a5020200d0a870a00000014667479706a703220000000006a7032200000002d6a703268000000166968647200000005000000070003070700000000000f636f6c7201000000000010000000bb6a703263ff4fff51002f000000000007000000050000000000000000000000070000000500000000000000000003070101070101070101ff52000c00000001000204040001ff5c000a4040484850484850ff640025000143726561746564206279204f70656e4a5045472076657273696f6e20322e352e34ff90000a00000000003d0001ff93df803007a35046eb7fcfb41806124252457fcfb4140612424f4ec0f901000cfac0f901000cfac0f901000cfa808080ffd9";
/// The same pixels, lossy; written by libavif.
const AVIF: &str = "00000020667479706176696600000000617669666d6966316d6961664d413142000000eb6d657461000000000000002168646c72000000000000000070696374000000000000000000000000000000000e7069746d0000000000010000001e696c6f63000000004400000100010000000100000113000000290000002869696e660000000000010000001a696e6665020000000001000061763031436f6c6f72000000006a697072700000004b6970636f0000001469737065000000000000000700000005000000107069786900000000030808080000000c6176314381000c0000000013636f6c726e636c780001000d0006800000001769706d61000000000000000100010401028304000000316d64617412000a081808b46880868342321b1947878621879e79e68040009040ca3ed2789e7fffffdd14c60c30";

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|i| u8::from_str_radix(&hex[i..i + 2], 16).unwrap()).collect()
}

/// A box with its length.
fn boxed(kind: &[u8; 4], payload: &[u8]) -> Vec<u8> {
    [&(payload.len() as u32 + 8).to_be_bytes(), &kind[..], payload].concat()
}

fn fields(info: &ImageInfo) -> (Format, u32, u32, u8, u8) {
    (info.format, info.width, info.height, info.channels, info.orientation)
}

/// The codestream in a container, in two parts.
fn jxl_container() -> Vec<u8> {
    let jxl = bytes(JXL);
    let signature = b"\0\0\0\x0cJXL \r\n\x87\n\0\0\0\x14ftypjxl \0\0\0\0jxl ";
    let part = |number: u32, part: &[u8]| boxed(b"jxlp", &[&number.to_be_bytes(), part].concat());
    [&signature[..], &part(0, &jxl[..20]), &part(1 << 31 | 1, &jxl[20..])].concat()
}

/// The codestream without its container.
fn j2k() -> Vec<u8> {
    let jp2 = bytes(JP2);
    let start = jp2.windows(4).position(|w| w == [0xFF, 0x4F, 0xFF, 0x51]).unwrap();
    jp2[start..].to_vec()
}

/// The AVIF under another brand.
fn heif(brand: &[u8; 4]) -> Vec<u8> {
    let mut file = bytes(AVIF);
    file[8..12].copy_from_slice(brand);
    file[16..20].copy_from_slice(brand);
    file
}

#[test]
fn reads_headers_in_every_build() {
    let limits = Limits::default();
    for (file, format) in [
        (bytes(JXL), Format::Jxl),
        (jxl_container(), Format::Jxl),
        (bytes(JP2), Format::Jp2),
        (j2k(), Format::Jp2),
        (bytes(AVIF), Format::Avif),
        (heif(b"heic"), Format::Heif),
        (heif(b"mif1"), Format::Heif),
    ] {
        assert_eq!(sniff(&file), Some(format));
        assert_eq!(fields(&probe(&file, &limits).unwrap()), (format, 7, 5, 3, 1));
        let small = limits.with_max_pixels(34);
        let refused = decode(&file, &DecodeOptions::default().with_limits(small));
        assert!(matches!(refused, Err(Error::Limit { kind: LimitKind::Pixels, needed: 35, .. })), "{format}");
    }
}

#[test]
fn rejects_truncated_headers() {
    for file in [bytes(JXL), jxl_container(), bytes(JP2), j2k(), bytes(AVIF)] {
        for end in 0..file.len() {
            if let Ok(info) = probe(&file[..end], &Limits::default()) {
                assert_eq!((info.width, info.height), (7, 5), "cut at {end}");
            }
            let decoded = decode(&file[..end], &DecodeOptions::default());
            assert!(!matches!(decoded, Err(Error::Panic { .. })), "cut at {end}: {decoded:?}");
        }
        assert!(probe(&file[..5], &Limits::default()).is_err());
    }
}

#[test]
fn converts_rotation_and_mirror_properties_to_orientation() {
    let file = heif(b"heic");
    let at = file.windows(4).position(|w| w == b"colr").unwrap();
    for (property, value, orientation) in
        [(b"irot", 1, 8), (b"irot", 2, 3), (b"irot", 3, 6), (b"imir", 0, 4), (b"imir", 1, 2)]
    {
        let mut file = file.clone();
        file[at..at + 4].copy_from_slice(property);
        file[at + 4] = value;
        assert_eq!(probe(&file, &Limits::default()).unwrap().orientation, orientation);
    }
}

#[test]
fn rejects_avif_and_heif_by_name() {
    for file in [bytes(AVIF), heif(b"heic")] {
        let error = decode(&file, &DecodeOptions::default()).unwrap_err();
        assert!(matches!(error, Error::NotDecoded { .. }), "{error}");
        assert!(error.to_string().contains("convert it, for instance with"), "{error}");
        assert!(error.to_string().contains("python -c \"") && !error.to_string().contains("  "), "{error}");
    }
}

/// Compressed metadata: brotli data, whose length when decompressed is not known before. These are not even brotli.
#[cfg(feature = "jxl")]
#[test]
fn compressed_metadata_of_jpeg_xl_is_not_decompressed() {
    let metadata = boxed(b"brob", &[b"Exif".as_slice(), &[0xff; 64]].concat());
    let mut file = jxl_container();
    let after_type = 12 + 20;
    file.splice(after_type..after_type, metadata);
    let pixels = decode(&file, &DecodeOptions::default()).unwrap();
    assert_eq!(pixels.data, decode(&bytes(JXL), &DecodeOptions::default()).unwrap().data);
}

#[cfg(feature = "jxl")]
#[test]
fn decodes_jpeg_xl() {
    for file in [bytes(JXL), jxl_container()] {
        let pixels = decode(&file, &DecodeOptions::default()).unwrap();
        assert_eq!(pixels.data, (0..105).map(|i| 2 * i as u8).collect::<Vec<_>>());
    }
}

#[cfg(feature = "jp2")]
#[test]
fn decodes_jpeg_2000() {
    for file in [bytes(JP2), j2k()] {
        let pixels = decode(&file, &DecodeOptions::default()).unwrap();
        assert_eq!(pixels.data, (0..105).map(|i| 2 * i as u8).collect::<Vec<_>>());
    }
}

/// Its capabilities (CAP segment) follow the size (SIZ segment).
#[cfg(feature = "jp2")]
#[test]
fn rejects_high_throughput_jpeg_2000_by_name() {
    let mut file = j2k();
    let after_size = 4 + usize::from(u16::from_be_bytes([file[4], file[5]]));
    file.splice(after_size..after_size, *b"\xff\x50\0\x08\0\x02\0\0\0\0");
    let error = decode(&file, &DecodeOptions::default()).unwrap_err();
    assert!(error.to_string().contains("HTJ2K"), "{error}");
}

#[cfg(not(all(feature = "jxl", feature = "jp2")))]
#[test]
fn error_of_a_build_without_a_decoder_names_the_feature() {
    for (file, feature, built) in [(JXL, "`jxl`", cfg!(feature = "jxl")), (JP2, "`jp2`", cfg!(feature = "jp2"))] {
        match decode(&bytes(file), &DecodeOptions::default()) {
            Ok(_) => assert!(built),
            Err(error) => assert!(error.to_string().contains(feature), "{error}"),
        }
    }
}
