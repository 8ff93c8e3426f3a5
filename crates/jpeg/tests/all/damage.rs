//! Damaged and unusual images: a short run of the mutation tests, and corpora.

use std::fmt::Write;

use crate::corpora::{crc32, shared};
use crate::decoding::{decode, whole};
use crate::images::{files, images};
use crate::mutate;
use shardtool_jpeg::{Decoder, Header, Limits, Rect, Request, Scale, entries, transcode};

#[test]
fn damaged_images_decode_the_same_by_every_path_and_never_panic() {
    let tally = mutate::run(&images(), 1, 20_000);
    let mutate::Tally { decoded, refused, hinted, speculative_mcus } = tally;
    assert!([decoded, refused, hinted, speculative_mcus].iter().all(|&n| n > 1000), "{tally:?}");
}

/// In a truncated image, finding entry points and decoding the last row fail as decoding the whole does, wherever it is cut,
/// and also if speculation starts beyond the cut.
#[test]
fn rejects_truncated_scans_by_every_path() {
    let mut seen = 0;
    for (name, jpeg) in images() {
        let header = Header::parse(&jpeg, &Limits::default()).unwrap();
        let scan = jpeg.windows(2).rposition(|w| w == [0xff, 0xda]).unwrap() + 14;
        for mut decoder in [Decoder::new(), Decoder::new().with_simd(false), Decoder::new().with_eager_speculation()] {
            for end in (scan..jpeg.len() - 8).step_by(1 + jpeg.len() / 400) {
                let cut = &jpeg[..end];
                let all = decode(&mut decoder, cut, None, &whole(Scale::Full));
                let found = entries::find(cut, 1, &mut decoder, &mut Vec::new());
                assert_eq!(found.is_ok(), all.is_ok() || !header.one_scan, "{name}, the first {end} bytes");
                let last = Rect { x: 0, y: header.height - 1, width: 1, height: 1 };
                let last = decode(
                    &mut decoder,
                    cut,
                    None,
                    &Request { rect: Some(last), scale: Scale::Full, ..Request::default() },
                );
                assert_eq!(last.is_ok(), all.is_ok(), "{name}, the first {end} bytes");
                seen += usize::from(all.is_err());
            }
        }
    }
    assert!(seen > 5000, "{seen}");
}

#[test]
fn broken_files_never_panic() {
    let Some(folder) = shared("jpeg-corpus/crashtest") else { return };
    let limits = Limits::default().with_pixels(1 << 24);
    let (mut decoder, mut seen) = (Decoder::new().with_limits(limits), 0);
    for path in files(&folder) {
        let jpeg = std::fs::read(path).unwrap();
        for scale in Scale::ALL {
            let _ = decode(&mut decoder, &jpeg, None, &whole(scale));
        }
        let _ = transcode(&jpeg, &mut decoder);
        seen += 1;
    }
    assert!(seen > 100);
}

/// Compares the CRC-32 of the pixels, or the error, of each file of `reftest` with `reftest.txt`, whose CRCs come from
/// libjpeg-turbo (`reftest.py`).
#[test]
fn unusual_files_decode_or_fail_as_listed() {
    let Some(folder) = shared("jpeg-corpus/reftest") else { return };
    let (mut decoder, mut found) = (Decoder::new(), String::new());
    for path in files(&folder) {
        let jpeg = std::fs::read(&path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        match decode(&mut decoder, &jpeg, None, &whole(Scale::Full)) {
            Ok(pixels) => writeln!(found, "{name}: ok {:08x}", crc32(&pixels)).unwrap(),
            Err(e) => writeln!(found, "{name}: {e}").unwrap(),
        }
    }
    let listed: Vec<&str> = include_str!("../reftest.txt").lines().filter(|l| !l.starts_with('#')).collect();
    assert_eq!(found.lines().collect::<Vec<_>>(), listed);
}
