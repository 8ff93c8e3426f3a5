//! Images of the size of dataset photographs (`tests/large`), compared with libjpeg-turbo: they reach speculative and scan-only
//! decoding with the production parameters. `tests/large/make.py` made the images and the CRCs with Pillow.

use std::path::Path;

use crate::corpora::crc32;
use crate::decoding::{decode, part, rect, whole};
use crate::images::files;
use shardtool_jpeg::{DecodePath, Decoder, Header, Limits, Rect, Request, Scale, entries};

/// The committed images, by name.
fn images() -> Vec<(String, Vec<u8>)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/large");
    let jpegs = files(&folder).into_iter().filter(|p| p.extension().is_some_and(|e| e == "jpg"));
    jpegs.map(|p| (p.file_stem().unwrap().to_string_lossy().into_owned(), std::fs::read(&p).unwrap())).collect()
}

#[test]
fn whole_large_images_equal_libjpeg_turbo_at_every_scale() {
    let images = images();
    let mut checked = 0;
    for line in include_str!("../large/expected.txt").lines().filter(|l| !l.starts_with('#')) {
        let [name, divisor, width, height, crc] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (_, jpeg) = images.iter().find(|(n, _)| n == name).unwrap();
        let scale = Scale::ALL.into_iter().find(|s| s.divisor().to_string() == divisor).unwrap();
        let (w, h) = Header::parse(jpeg, &Limits::default()).unwrap().size(scale);
        assert_eq!((w.to_string(), h.to_string()), (width.to_owned(), height.to_owned()), "{line}");
        for mut decoder in [Decoder::new(), Decoder::new().with_simd(false)] {
            let mut payload = Vec::new();
            entries::find(jpeg, 2, &mut decoder, &mut payload).unwrap();
            for hints in [None, Some(&payload[..])] {
                let pixels = decode(&mut decoder, jpeg, hints, &whole(scale)).unwrap();
                assert_eq!(format!("{:08x}", crc32(&pixels)), crc, "{line}, entry points: {}", hints.is_some());
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 6 * 4 * 2 * 2);
}

#[test]
fn production_parameters_speculate_in_scans_without_restart_markers() {
    for (name, jpeg) in images() {
        let without_restarts = matches!(&name[..], "420" | "444");
        let mut decoder = Decoder::new();
        decode(&mut decoder, &jpeg, None, &whole(Scale::Full)).unwrap();
        let decoded = decoder.speculative_mcus();
        assert_eq!(decoded > 0, without_restarts, "{name}: decoding");
        let mut payload = Vec::new();
        entries::find(&jpeg, 1, &mut decoder, &mut payload).unwrap();
        assert_eq!(decoder.speculative_mcus() > decoded, without_restarts, "{name}: scan-only decoding");
    }
}

#[test]
fn rectangles_of_large_images_equal_the_whole_by_every_path() {
    let (mut state, mut paths) = (5, Vec::new());
    for (name, jpeg) in images() {
        let mut decoder = Decoder::new();
        let header = Header::parse(&jpeg, &Limits::default()).unwrap();
        let size = header.size(Scale::Full);
        let all = decode(&mut decoder, &jpeg, None, &whole(Scale::Full)).unwrap();
        let mut payload = Vec::new();
        entries::find(&jpeg, entries::default_step(&header), &mut decoder, &mut payload).unwrap();
        // Rows at the bottom, so that most of the scan is skipped; then random rectangles.
        let bottom = Rect { x: 3, y: size.1 - 20, width: size.0 - 7, height: 20 };
        for rect in std::iter::once(bottom).chain((0..12).map(|_| rect(size, &mut state))) {
            for hints in [None, Some(&payload[..])] {
                let request = Request { rect: Some(rect), scale: Scale::Full, ..Request::default() };
                let mut out = vec![0; rect.width as usize * rect.height as usize * 3];
                let outcome = decoder.decode(&jpeg, hints, &request, &mut out, rect.width as usize * 3).unwrap();
                assert!(out == part(&all, size.0, rect), "{name} {rect:?} {:?}", outcome.path);
                assert!(!outcome.entries_rejected || name.contains("progressive"), "{name} {rect:?}");
                paths.push(outcome.path);
            }
        }
    }
    for path in [DecodePath::Entries, DecodePath::Restarts, DecodePath::Start, DecodePath::Scans] {
        assert!(paths.contains(&path), "no image was decoded by {path:?}");
    }
}
