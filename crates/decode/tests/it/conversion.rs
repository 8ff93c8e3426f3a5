//! Formats that are converted to PNG.

use shardtool_decode::{ConvertedFormat, DecodeOptions, Error, LabelDtype, LabelMap, Limits, decode};

fn converted(file: &[u8]) -> Result<Vec<u8>, Error> {
    let format = ConvertedFormat::detect(file, None).expect("a signature");
    format.to_png(file, &Limits::default()).map(std::borrow::Cow::into_owned)
}

/// Returns the message of the refusal.
fn refused(file: &[u8]) -> String {
    converted(file).expect_err("it is refused").to_string()
}

/// A PAM of one row of two pixels.
fn pam(depth: usize, tuple_type: &str) -> Vec<u8> {
    let samples: Vec<u8> = (0..2 * depth as u8).collect();
    let header = format!("P7\nWIDTH 2\nHEIGHT 1\nDEPTH {depth}\nMAXVAL 255\n{tuple_type}ENDHDR\n");
    [header.as_bytes(), &samples].concat()
}

#[test]
fn tuple_types_of_pam_must_be_read_and_match_the_depth() {
    for (depth, name) in [
        (1, "BLACKANDWHITE"),
        (1, "GRAYSCALE"),
        (2, "BLACKANDWHITE_ALPHA"),
        (2, "GRAYSCALE_ALPHA"),
        (3, "RGB"),
        (4, "RGB_ALPHA"),
    ] {
        let line = format!("TUPLTYPE {name}\n");
        assert_eq!(converted(&pam(depth, &line)).unwrap(), converted(&pam(depth, "")).unwrap(), "{name}");
        let other = refused(&pam(depth % 4 + 1, &line));
        assert!(other.contains(&format!("`{name}` has {depth} samples a pixel, but its DEPTH is")), "{other}");
    }
    for name in ["", " "] {
        assert!(converted(&pam(3, &format!("TUPLTYPE{name}\n"))).is_ok());
    }
    // Ghostscript's device `pamcmyk32` writes inks.
    let inks = refused(&pam(4, "TUPLTYPE CMYK\n"));
    assert!(inks.contains("samples of the tuple type `CMYK` are not read"), "{inks}");
    assert!(refused(&pam(3, "TUPLTYPE RGB\nTUPLTYPE planes\n")).contains("`RGB planes`"));
    for name in ["rgb", "_ALPHA", "CMYK_ALPHA", "\u{1}\u{7}"] {
        assert!(refused(&pam(4, &format!("TUPLTYPE {name}\n"))).contains("are not read"), "{name}");
    }
    assert!(refused(&pam(4, &format!("TUPLTYPE {}\n", "X".repeat(5000)))).len() < 200);
}

/// Returns colour type, bits and samples of the PNG that has the numbers of a file.
fn numbers(file: &[u8]) -> (png::ColorType, u8, Vec<u8>) {
    let format = ConvertedFormat::detect(file, None).expect("a signature");
    let png = format.to_png_unscaled(file, &Limits::default()).unwrap();
    let mut reader = png::Decoder::new(std::io::Cursor::new(&png)).read_info().unwrap();
    let mut samples = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut samples).unwrap();
    (info.color_type, info.bit_depth as u8, samples)
}

#[test]
fn numbers_are_not_scaled() {
    use png::ColorType::{Grayscale, Rgb};
    for maximum in [1, 6, 254, 255] {
        let file = format!("P2 2 1 {maximum}\n0 {maximum}\n");
        assert_eq!(numbers(file.as_bytes()), (Grayscale, 8, vec![0, maximum]));
        let file = [format!("P5 2 1 {maximum}\n").as_bytes(), &[0, maximum]].concat();
        assert_eq!(numbers(&file), (Grayscale, 8, vec![0, maximum]));
        let file = [format!("P6 1 1 {maximum}\n").as_bytes(), &[0, 1, maximum]].concat();
        assert_eq!(numbers(&file), (Rgb, 8, vec![0, 1, maximum]));
    }
    for maximum in [256, 4095, 65535u16] {
        let depths = [[0; 2], 7u16.to_be_bytes(), maximum.to_be_bytes()].concat();
        let text = format!("P2 3 1 {maximum}\n0 7 {maximum}\n");
        assert_eq!(numbers(text.as_bytes()), (Grayscale, 16, depths.clone()));
        let file = [format!("P5 3 1 {maximum}\n").as_bytes(), &depths].concat();
        assert_eq!(numbers(&file), (Grayscale, 16, depths.clone()));
    }
    // The picture is scaled.
    let picture = decode(&converted(b"P2 2 1 6\n0 6\n").unwrap(), &DecodeOptions::default()).unwrap();
    assert_eq!(picture.data, [0, 0, 0, 255, 255, 255]);
}

#[test]
fn numbers_of_bitmaps_are_not_inverted() {
    for file in [b"P1 9 2\n101000001\n000000000\n".as_slice(), b"P4 9 2\n\xa0\x80\0\x7f"] {
        let foreground = [vec![1, 0, 1, 0, 0, 0, 0, 0, 1], vec![0; 9]].concat();
        assert_eq!(numbers(file), (png::ColorType::Grayscale, 8, foreground.clone()));
        let format = ConvertedFormat::detect(file, None).unwrap();
        let png = format.to_png_unscaled(file, &Limits::default()).unwrap();
        LabelMap::default().decode(&png, LabelDtype::U8, &Limits::default()).unwrap();
        // As a further image it has the same numbers; 1 is black in the picture.
        let grey = |png: &[u8]| decode(png, &DecodeOptions::default()).unwrap().data.into_iter().step_by(3).collect();
        let (numbers, picture): (Vec<u8>, Vec<u8>) = (grey(&png), grey(&converted(file).unwrap()));
        assert_eq!(numbers, foreground);
        assert_eq!(picture, foreground.iter().map(|bit| if *bit == 1 { 0 } else { 255 }).collect::<Vec<u8>>());
    }
}
