//! Formats that are converted to PNG.

use shardtool_decode::{ConvertedFormat, Error, Limits};

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
