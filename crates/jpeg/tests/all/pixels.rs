//! The pixels of every decode path equal those of libjpeg-turbo.

use crate::corpora::crc32;
use crate::decoding::{decode, part, part_of, random, rect, whole};
use crate::images::images;
use shardtool_jpeg::{
    Channels, Color, DecodePath, Decoder, Error, Feature, FrameInfo, Header, Limits, ParsedImage, Rect, Request, Scale,
    entries, transcode,
};

fn decoders() -> [Decoder; 2] {
    [Decoder::new(), Decoder::new().with_simd(false)]
}

fn found(jpeg: &[u8], step: u32, decoder: &mut Decoder) -> Vec<u8> {
    let mut payload = Vec::new();
    entries::find(jpeg, step, decoder, &mut payload).unwrap();
    payload
}

#[test]
fn whole_images_equal_libjpeg_turbo_at_every_scale() {
    equal_libjpeg_turbo(include_str!("../data/expected.txt"), Channels::Rgb);
}

#[test]
fn grey_of_whole_images_equals_libjpeg_turbo_at_every_scale() {
    equal_libjpeg_turbo(include_str!("../data/expected-gray.txt"), Channels::Gray);
}

fn equal_libjpeg_turbo(expected: &str, channels: Channels) {
    let images = images();
    let mut checked = 0;
    for line in expected.lines().filter(|l| !l.starts_with('#')) {
        let [name, divisor, width, height, crc] = line.split(' ').collect::<Vec<_>>()[..] else { panic!("{line}") };
        let (_, jpeg) = images.iter().find(|(n, _)| n == name).unwrap();
        let scale = Scale::ALL.into_iter().find(|s| s.divisor().to_string() == divisor).unwrap();
        let size = Header::parse(jpeg, &Limits::default()).unwrap().size(scale);
        assert_eq!((size.0.to_string(), size.1.to_string()), (width.to_owned(), height.to_owned()), "{line}");
        for mut decoder in decoders() {
            let request = Request { channels, ..whole(scale) };
            let pixels = decode(&mut decoder, jpeg, None, &request).unwrap();
            assert_eq!(format!("{:08x}", crc32(&pixels)), crc, "{line}");
            checked += 1;
        }
    }
    assert!(checked > 100, "{checked}");
}

/// Images as small as these are decoded without speculation by default.
#[test]
fn speculation_changes_neither_pixels_nor_entry_points() {
    let mut state = 7;
    for simd in [true, false] {
        let mut eager = Decoder::new().with_simd(simd).with_eager_speculation();
        for (name, jpeg) in images() {
            let mut plain = Decoder::new();
            let before = eager.speculative_mcus();
            for scale in Scale::ALL {
                let all = decode(&mut plain, &jpeg, None, &whole(scale)).unwrap();
                assert!(decode(&mut eager, &jpeg, None, &whole(scale)).unwrap() == all, "{name} {scale:?}");
                let size = Header::parse(&jpeg, &Limits::default()).unwrap().size(scale);
                for _ in 0..20 {
                    let rect = rect(size, &mut state);
                    let request = Request { rect: Some(rect), scale, ..Request::default() };
                    let pixels = decode(&mut eager, &jpeg, None, &request).unwrap();
                    assert!(pixels == part(&all, size.0, rect), "{name} {request:?}");
                }
            }
            for step in 1..=8 {
                assert!(found(&jpeg, step, &mut eager) == found(&jpeg, step, &mut plain), "{name}, every {step} rows");
            }
            assert_eq!(plain.speculative_mcus(), 0, "{name}");
            match &name[..] {
                // In a long scan without restart markers, the speculative part synchronises.
                "420" | "422" | "best-quality" => {
                    assert!(eager.speculative_mcus() > before, "{name}: never synchronised")
                }
                // All components share one table, so that speculation could confuse them: it is off.
                "rgb" => assert_eq!(eager.speculative_mcus(), before, "{name}"),
                _ => {}
            }
        }
    }
}

#[test]
fn rectangles_equal_the_whole_by_every_path() {
    let (mut state, mut paths) = (1, Vec::new());
    for (name, jpeg) in images() {
        for mut decoder in decoders() {
            let header = Header::parse(&jpeg, &Limits::default()).unwrap();
            for scale in Scale::ALL {
                let size = header.size(scale);
                let all = decode(&mut decoder, &jpeg, None, &whole(scale)).unwrap();
                let gray = Request { channels: Channels::Gray, ..whole(scale) };
                let gray_all = decode(&mut decoder, &jpeg, None, &gray).unwrap();
                for round in 0..40 {
                    let rect = rect(size, &mut state);
                    let payload = found(&jpeg, 1 + round % 8, &mut decoder);
                    let hints = (round % 4 > 0).then_some(&payload[..]);
                    let request = Request { rect: Some(rect), scale, ..Request::default() };
                    let pixels = decode(&mut decoder, &jpeg, hints, &request).unwrap();
                    assert!(pixels == part(&all, size.0, rect), "{name} {request:?} entries {}", hints.is_some());
                    let gray = Request { channels: Channels::Gray, ..request };
                    let grey = decode(&mut decoder, &jpeg, hints, &gray).unwrap();
                    assert!(grey == part_of(1, &gray_all, size.0, rect), "{name} {gray:?}");
                    let mut out = vec![0; pixels.len()];
                    let outcome = decoder.decode(&jpeg, hints, &request, &mut out, rect.width as usize * 3).unwrap();
                    assert_eq!(outcome.path == DecodePath::Entries, hints.is_some_and(|h| !h.is_empty()), "{name}");
                    paths.push(outcome.path);
                }
            }
        }
    }
    for path in [DecodePath::Entries, DecodePath::Restarts, DecodePath::Start, DecodePath::Scans] {
        assert!(paths.contains(&path), "no image was decoded by {path:?}");
    }
}

#[test]
fn damaged_entry_points_never_change_pixels() {
    let mut state = 2;
    for (name, jpeg) in images() {
        let mut decoder = Decoder::new();
        let header = Header::parse(&jpeg, &Limits::default()).unwrap();
        let good = found(&jpeg, 1, &mut decoder);
        if good.is_empty() {
            continue;
        }
        let all = decode(&mut decoder, &jpeg, None, &whole(Scale::Full)).unwrap();
        for _ in 0..300 {
            let mut bad = good.clone();
            match random(&mut state) % 3 {
                0 => bad.truncate(random(&mut state) as usize % bad.len()),
                1 => {
                    let at = random(&mut state) as usize % bad.len();
                    bad[at] ^= 1 << (random(&mut state) % 8);
                }
                _ => {
                    let entry = if header.components().len() == 1 { 6 } else { 10 };
                    let n = (bad.len() - 2) / entry;
                    let (a, b) = (random(&mut state) as usize % n, random(&mut state) as usize % n);
                    for i in 0..entry {
                        bad.swap(2 + a * entry + i, 2 + b * entry + i);
                    }
                }
            }
            let pixels = decode(&mut decoder, &jpeg, Some(&bad), &whole(Scale::Full)).unwrap();
            assert!(pixels == all, "{name} {bad:?}");
        }
    }
}

#[test]
fn entry_points_follow_the_documented_layout() {
    for (name, jpeg) in images() {
        let header = Header::parse(&jpeg, &Limits::default()).unwrap();
        let payload = found(&jpeg, 1, &mut Decoder::new());
        if payload.is_empty() {
            continue;
        }
        let components = header.components().len();
        assert_eq!(payload[..2], [1, components as u8], "{name}");
        let entries: Vec<_> = payload[2..].chunks(4 + 2 * components).collect();
        let bits: Vec<_> = entries.iter().map(|e| u32::from_le_bytes(e[..4].try_into().unwrap()) as usize).collect();
        assert!(bits.is_sorted_by(|a, b| a < b), "{name}");
        for (bit, entry) in bits.iter().zip(&entries) {
            let byte = bit / 8;
            assert!(!(jpeg[byte] == 0 && jpeg[byte - 1] == 0xff), "{name}: inside a stuffed pair");
            if name.starts_with("restart-rows-444") {
                assert_eq!(
                    (bit % 8, jpeg[byte - 2], jpeg[byte - 1] & 0xf8),
                    (0, 0xff, 0xd0),
                    "{name}: after the marker"
                );
                assert!(entry[4..].iter().all(|&b| b == 0), "{name}: predictors are 0");
            }
        }
    }
}

#[test]
fn transcoded_images_have_the_same_pixels_in_one_scan() {
    for (name, jpeg) in images() {
        let mut decoder = Decoder::new();
        let again = transcode(&jpeg, &mut decoder).unwrap().jpeg;
        for scale in Scale::ALL {
            let [a, b] = [&jpeg, &again].map(|j| decode(&mut decoder, j, None, &whole(scale)).unwrap());
            assert!(a == b, "{name}");
        }
        let header = Header::parse(&again, &Limits::default()).unwrap();
        assert_eq!(header.process, shardtool_jpeg::Process::Sequential);
        assert!(again.len() <= jpeg.len(), "{name}: {} bytes became {}", jpeg.len(), again.len());
    }
}

#[test]
fn transcoding_keeps_only_the_orientation_of_exif() {
    let (_, jpeg) = images().remove(0);
    for (little, orientation) in [(true, 6u8), (false, 8), (true, 1)] {
        let short = |v: u16| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let long = |v: u32| if little { v.to_le_bytes() } else { v.to_be_bytes() };
        let mut exif = b"Exif\0\0".to_vec();
        exif.extend(if little { b"II" } else { b"MM" });
        exif.extend([&short(42)[..], &long(8), &short(2)].concat());
        exif.extend([&short(0x0100)[..], &short(4), &long(1), &long(99)].concat());
        exif.extend([&short(0x0112)[..], &short(3), &long(1), &short(orientation.into()), &[0, 0], &long(0)].concat());
        let mut tagged = vec![0xff, 0xd8, 0xff, 0xe1];
        tagged.extend((exif.len() as u16 + 2).to_be_bytes());
        tagged.extend(&exif);
        tagged.extend(&jpeg[2..]);
        let again = transcode(&tagged, &mut Decoder::new()).unwrap().jpeg;
        let at = again.windows(6).position(|w| w == b"Exif\0\0");
        assert_eq!(at.is_some(), orientation > 1);
        if let Some(at) = at {
            let length = usize::from(u16::from_be_bytes(again[at - 2..at].try_into().unwrap()));
            assert_eq!(length, 2 + 6 + 8 + 2 + 12 + 4);
            assert_eq!(again[at + 6 + 8 + 2 + 8], orientation);
        }
    }
}

#[test]
fn transcoding_keeps_an_orientation_that_only_xmp_has() {
    let (_, jpeg) = images().remove(0);
    let mut xmp = b"http://ns.adobe.com/xap/1.0/\0<rdf:Description tiff:Orientation=\"6\"/>".to_vec();
    xmp.splice(0..0, (xmp.len() as u16 + 2).to_be_bytes());
    let tagged = [&jpeg[..2], b"\xff\xe1", &xmp, &jpeg[2..]].concat();
    assert_eq!(FrameInfo::parse(&tagged).unwrap().orientation, 6);
    let again = transcode(&tagged, &mut Decoder::new()).unwrap().jpeg;
    assert_eq!(FrameInfo::parse(&again).unwrap().orientation, 6);
    assert!(!again.windows(4).any(|w| w == b"http"));
}

#[test]
fn rejects_rectangles_and_buffers_that_do_not_fit() {
    let (_, jpeg) = images().remove(0);
    let mut decoder = Decoder::new();
    let header = Header::parse(&jpeg, &Limits::default()).unwrap();
    let (w, h) = header.size(Scale::Full);
    for (x, y, width, height) in [(0, 0, w + 1, h), (0, 0, w, h + 1), (w, 0, 1, 1), (0, 0, 0, 1), (u32::MAX, 0, 2, 1)] {
        let request = Request { rect: Some(Rect { x, y, width, height }), scale: Scale::Full, ..Request::default() };
        let result = decoder.decode(&jpeg, None, &request, &mut [0; 1 << 16], 3 * w as usize + 3);
        assert!(matches!(result, Err(Error::Rectangle { .. })), "{result:?}");
    }
    let need = 3 * (w * h) as usize;
    for (bytes, stride) in [(need - 1, 3 * w as usize), (need, 3 * w as usize - 1), (need, usize::MAX)] {
        let result = decoder.decode(&jpeg, None, &whole(Scale::Full), &mut vec![0; bytes], stride);
        assert!(matches!(result, Err(Error::Buffer { .. })), "{result:?}");
    }
    let few = Limits::default().with_pixels(u64::from(w * h) - 1);
    assert!(matches!(Header::parse(&jpeg, &few), Err(Error::Limit { .. })));
}

#[test]
fn errors_of_truncated_images_say_where() {
    for (name, jpeg) in images() {
        let mut decoder = Decoder::new();
        for cut in (0..jpeg.len()).step_by(7) {
            match decode(&mut decoder, &jpeg[..cut], None, &whole(Scale::Full)) {
                Ok(_) => assert!(cut + 8 > jpeg.len(), "{name} cut at {cut} of {} decoded", jpeg.len()),
                Err(Error::NotJpeg { .. }) => assert!(cut < 2, "{name} {cut}"),
                Err(Error::Ends { offset, .. }) => assert!(offset <= cut, "{name} {cut}"),
                Err(Error::Damaged { row, rows, offset, .. }) => assert!(row < rows && offset <= cut, "{name} {cut}"),
                Err(Error::Unsupported(Feature::Incomplete)) => {}
                Err(e) => panic!("{name} cut at {cut}: {e}"),
            }
        }
    }
}

/// Each pixel of a CMYK image, from its samples by Pillow's formula, is that of the whole image; a stream of two components has
/// samples, but is not an image.
#[test]
fn samples_of_four_and_two_components_are_not_converted() {
    let inks: Vec<u8> = (0..40 * 30 * 4u32).map(|i| (i / 4 % 40 * 6 + i % 4 * 50 + i / 160 * 3) as u8).collect();
    let mut jpeg = vec![];
    let mut encoder = jpeg_encoder::Encoder::new(&mut jpeg, 95);
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_1_1);
    encoder.encode(&inks, 40, 30, jpeg_encoder::ColorType::Cmyk).unwrap();
    for mut decoder in decoders() {
        let rgb = decode(&mut decoder, &jpeg, None, &whole(Scale::Full)).unwrap();
        let image = ParsedImage::parse_samples(&jpeg, &Limits::default()).unwrap();
        assert_eq!(image.header().color, Color::Samples(4));
        let mut samples = vec![0; 40 * 30 * 4];
        decoder.decode_parsed(&image, None, &whole(Scale::Full), &mut samples, 40 * 4).unwrap();
        let expected = samples.chunks_exact(4).flat_map(|s| {
            let k = f64::from(s[3]);
            [0, 1, 2].map(|i| (k - (f64::from(255 - s[i]) * k / 255.0).round()) as u8)
        });
        assert!(rgb.into_iter().eq(expected));
    }
    // The third component's specification is taken out of the frame and the scan of a colour image.
    let mut colour = vec![];
    let mut encoder = jpeg_encoder::Encoder::new(&mut colour, 95);
    encoder.set_sampling_factor(jpeg_encoder::SamplingFactor::F_1_1);
    encoder.encode(&[200; 8 * 8 * 3], 8, 8, jpeg_encoder::ColorType::Rgb).unwrap();
    let marker = |jpeg: &[u8], second: u8| jpeg.windows(2).position(|w| w == [0xff, second]).unwrap();
    let frame = marker(&colour, 0xc0);
    colour.drain(frame + 4 + 6 + 6..frame + 4 + 6 + 9);
    (colour[frame + 3], colour[frame + 9]) = (14, 2);
    let scan = marker(&colour, 0xda);
    colour.drain(scan + 5 + 4..scan + 5 + 6);
    (colour[scan + 3], colour[scan + 4]) = (10, 2);
    let refused = Header::parse(&colour, &Limits::default()).unwrap_err();
    assert!(matches!(refused, Error::Unsupported(Feature::Components(2))), "{refused}");
    let image = ParsedImage::parse_samples(&colour, &Limits::default()).unwrap();
    let mut samples = vec![0; 8 * 8 * 2];
    Decoder::new().decode_parsed(&image, None, &whole(Scale::Full), &mut samples, 16).unwrap();
    assert_eq!(samples, [200, 128].repeat(64));
}
