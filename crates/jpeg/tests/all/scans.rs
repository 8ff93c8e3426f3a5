//! Images of several scans: a request reads no more of them than it needs.

use std::time::{Duration, Instant};

use shardtool_jpeg::{Channels, Damage, Decoder, Error, Feature, Header, Limits, Rect, Request, Scale, transcode};

use crate::corpora::crc32;
use crate::decoding::{decode, part, whole};

/// A scan of an image: its component, or `None` for several, whether it has AC coefficients, and where its data are.
struct Scan {
    component: Option<u8>,
    ac: bool,
    data: std::ops::Range<usize>,
}

/// Returns the scans of an image without restart markers.
fn scans(jpeg: &[u8]) -> Vec<Scan> {
    let starts = memchr::memmem::find_iter(jpeg, &[0xff, 0xda]);
    starts
        .map(|at| {
            let length = usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]]));
            let body = &jpeg[at + 4..at + 2 + length];
            let from = at + 2 + length;
            let size = memchr::memchr_iter(0xff, &jpeg[from..]).find(|&i| jpeg[from + i + 1] != 0).unwrap();
            Scan {
                component: (body[0] == 1).then(|| body[1]),
                ac: body[1 + 2 * usize::from(body[0])] > 0,
                data: from..from + size,
            }
        })
        .collect()
}

/// Ends the data of scans at a fraction of their length, with a marker that does not belong there.
fn cut(jpeg: &[u8], scans: &[Scan], at: impl Fn(&Scan) -> Option<f64>) -> Vec<u8> {
    let mut damaged = jpeg.to_vec();
    for scan in scans {
        if let Some(at) = at(scan) {
            let mut from = scan.data.start + (scan.data.len() as f64 * at) as usize;
            // Not inside a stuffed pair.
            from -= usize::from(damaged[from - 1] == 0xff);
            damaged[from..from + 2].copy_from_slice(&[0xff, 0xd0]);
        }
    }
    damaged
}

#[test]
fn reads_only_the_scans_that_a_request_needs() {
    let mut decoder = Decoder::new();
    let jpeg = include_bytes!("../data/progressive-420.jpg");
    let scans = scans(jpeg);
    let luma = scans[0].component.or(scans[1].component).unwrap();
    let no_chroma = cut(jpeg, &scans, |scan| (scan.ac && scan.component != Some(luma)).then_some(0.0));
    assert!(matches!(
        decode(&mut decoder, &no_chroma, None, &whole(Scale::Full)),
        Err(Error::Damaged { damage: Damage::Ends, .. })
    ));
    for scale in Scale::ALL {
        let gray = Request { channels: Channels::Gray, ..whole(scale) };
        assert_eq!(decode(&mut decoder, &no_chroma, None, &gray), decode(&mut decoder, jpeg, None, &gray));
    }
    let only_dc = cut(jpeg, &scans, |scan| scan.ac.then_some(0.0));
    let eighth = Request { channels: Channels::Gray, ..whole(Scale::Eighth) };
    assert_eq!(decode(&mut decoder, &only_dc, None, &eighth), decode(&mut decoder, jpeg, None, &eighth));
    // A sample of subsampled chroma is made from more than DC.
    assert!(decode(&mut decoder, &only_dc, None, &whole(Scale::Eighth)).is_err());
    assert!(decode(&mut decoder, &only_dc, None, &whole(Scale::Quarter)).is_err());
}

#[test]
fn reads_no_rows_below_a_rectangle() {
    let mut decoder = Decoder::new();
    let jpeg = include_bytes!("../data/progressive-420.jpg");
    let pixels = decode(&mut decoder, jpeg, None, &whole(Scale::Full)).unwrap();
    let header = Header::parse(jpeg, decoder.limits()).unwrap();
    let damaged = cut(jpeg, &scans(jpeg), |_| Some(0.9));
    assert!(decode(&mut decoder, &damaged, None, &whole(Scale::Full)).is_err());
    let rect = Rect { x: 3, y: 5, width: header.width - 5, height: header.height / 3 };
    let request = Request { rect: Some(rect), ..Request::default() };
    assert!(decode(&mut decoder, &damaged, None, &request) == Ok(part(&pixels, header.width, rect)));
}

fn segment(marker: u8, body: &[u8]) -> Vec<u8> {
    [&[0xff, marker][..], &(body.len() as u16 + 2).to_be_bytes(), body].concat()
}

/// Returns the segments before the first scan. Component `i` has identifier `ids[i]` and sampling factors `sampling[i]`; every
/// table has one code, 0: no difference, or no coefficients.
fn head(marker: u8, side: u16, ids: &[u8], sampling: &[u8]) -> Vec<u8> {
    let mut jpeg = vec![0xff, 0xd8];
    jpeg.extend(segment(0xdb, &[&[0][..], &[1; 64]].concat()));
    let components = ids.iter().zip(sampling).flat_map(|(&id, &sampling)| [id, sampling, 0]);
    let [high, low] = side.to_be_bytes();
    let frame: Vec<u8> = [8, high, low, high, low, ids.len() as u8].into_iter().chain(components).collect();
    jpeg.extend(segment(marker, &frame));
    for class in [0, 0x10] {
        jpeg.extend(segment(0xc4, &[&[class, 1][..], &[0; 15], &[0]].concat()));
    }
    jpeg
}

/// Returns a scan of components, with `zeros` bytes of data.
fn scan(ids: &[u8], [first, last, bits]: [u8; 3], zeros: usize) -> Vec<u8> {
    let parts = ids.iter().flat_map(|&id| [id, 0]);
    let body: Vec<u8> = [ids.len() as u8].into_iter().chain(parts).chain([first, last, bits]).collect();
    [segment(0xda, &body), vec![0; zeros]].concat()
}

/// The checksums are those of libjpeg-turbo 3.2.0 by Pillow. Of the first files all AC coefficients are missing.
#[test]
fn estimates_the_low_frequencies_of_missing_scans() {
    let jpeg = include_bytes!("../data/progressive-420.jpg");
    let expected = [
        0x64e1_ce2c,
        0xf1bd_c234,
        0xb8ca_1258,
        0x415e_5884,
        0x14ac_f147,
        0xc547_2540,
        0x8095_8b83,
        0xbcbe_d988,
        0x4e1b_7152,
    ];
    let mut decoder = Decoder::new();
    let starts: Vec<_> = memchr::memmem::find_iter(jpeg, &[0xff, 0xda]).skip(1).collect();
    for (count, (cut, expected)) in starts.iter().zip(expected).enumerate() {
        let part = [&jpeg[..*cut], &[0xff, 0xd9]].concat();
        let pixels = decode(&mut decoder, &part, None, &whole(Scale::Full)).unwrap();
        assert_eq!(crc32(&pixels), expected, "{} scans", count + 1);
        let rect = Rect { x: 11, y: 30, width: 40, height: 9 };
        let request = Request { rect: Some(rect), ..Request::default() };
        assert!(decode(&mut decoder, &part, None, &request).unwrap() == self::part(&pixels, 70, rect));
        assert_eq!(transcode(&part, &mut decoder), Err(Error::Unsupported(Feature::Incomplete)));
        // No damage, although scans are missing; without the last bytes of data there is.
        let fill = |jpeg: &[u8], decoder: &mut Decoder| {
            let mut out = vec![0; 3 * 70 * 70];
            let request = Request { fill: true, ..Request::default() };
            decoder.decode(jpeg, None, &request, &mut out, 3 * 70).unwrap().filled
        };
        assert!(!fill(&part, &mut decoder), "{} scans", count + 1);
        let scan = memchr::memmem::rfind(&part, &[0xff, 0xda]).unwrap();
        let data = scan + 2 + usize::from(part[scan + 3]);
        assert!(fill(&[&part[..data], &[0xff, 0xd9]].concat(), &mut decoder), "{} scans", count + 1);
    }
    assert_eq!(starts.len(), expected.len());
}

/// As in a first scan: libjpeg stores the coefficient at the last index.
#[test]
fn rejects_a_new_coefficient_beyond_the_band_of_a_refining_scan() {
    // Codes 00 (16 zeros) and 01 (15 zeros and a coefficient).
    let table = segment(0xc4, &[&[0x10, 0, 2][..], &[0; 14], &[0xf0, 0xf1]].concat());
    let refining = |data: &[u8]| {
        let scans =
            [scan(&[1], [0, 0, 0x00], 1), scan(&[1], [1, 63, 0x01], 1), table.clone(), scan(&[1], [1, 63, 0x10], 0)];
        [&head(0xc2, 8, &[1], &[0x11])[..], &scans.concat(), data, &[0xff, 0xd9]].concat()
    };
    let mut decoder = Decoder::new();
    // 48 zeros, and 16 more of the 15 coefficients left.
    assert!(decode(&mut decoder, &refining(&[0b0000_0000]), None, &whole(Scale::Full)).is_ok());
    let result = decode(&mut decoder, &refining(&[0b0000_0001, 0b1000_0000]), None, &whole(Scale::Full));
    assert!(matches!(result, Err(Error::Damaged { damage: Damage::Block, .. })), "{result:?}");
}

/// A scan of a few bytes can go over all blocks of a large image, so that the time for its scans has to be bounded in advance.
#[test]
fn refuses_too_many_passes_over_the_blocks_of_an_image() {
    let limits = Limits::default().with_pixels(u64::MAX);
    let mut decoder = Decoder::new().with_limits(limits);
    let image = |side, count: usize| {
        let mut jpeg = head(0xc2, side, &[1], &[0x11]);
        jpeg.extend(scan(&[1], [0, 0, 0], 64));
        (1..count).for_each(|_| jpeg.extend(scan(&[1], [1, 63, 0x10], 64)));
        [&jpeg[..], &[0xff, 0xd9]].concat()
    };
    let corner = Request { rect: Some(Rect { x: 0, y: 0, width: 1, height: 1 }), ..Request::default() };
    let begin = Instant::now();
    for side in [2000, 65_500] {
        let refused = decode(&mut decoder, &image(side, 101), None, &corner);
        assert_eq!(refused, Err(Error::Limit { what: "passes over its blocks", allowed: 100, found: 101 }));
    }
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    assert!(matches!(decode(&mut decoder, &image(64, 501), None, &corner), Err(Error::Limit { what: "scans", .. })));
    decode(&mut decoder, &image(2000, 100), None, &corner).unwrap();
    decode(&mut decoder, &image(64, 500), None, &corner).unwrap();
}

/// As in libjpeg, the number of blocks in an MCU matters only where components are interleaved, and components that are
/// interleaved come in the order of the frame.
#[test]
fn refuses_scans_that_libjpeg_refuses() {
    let mut decoder = Decoder::new();
    let mut refusal = |sampling: &[u8], ids: [u8; 3], scans: &[&[u8]]| {
        let mut jpeg = head(0xc0, 32, &ids, sampling);
        scans.iter().for_each(|ids| jpeg.extend(scan(ids, [0, 63, 0], 64)));
        jpeg.extend([0xff, 0xd9]);
        decode(&mut decoder, &jpeg, None, &whole(Scale::Full)).err()
    };
    let too_large = Some(Error::Unsupported(Feature::McuBlocks));
    let ids = [1, 2, 3];
    assert_eq!(refusal(&[0x24, 0x21, 0x21], ids, &[&[1, 2, 3]]), too_large);
    assert_eq!(refusal(&[0x24, 0x21, 0x21], ids, &[&[1, 2], &[3]]), None);
    assert_eq!(refusal(&[0x44, 0x11, 0x11], ids, &[&[1, 2], &[3]]), too_large);
    assert_eq!(refusal(&[0x44, 0x11, 0x11], ids, &[&[3], &[1], &[2]]), None);
    assert_eq!(refusal(&[0x33, 0x21, 0x11], ids, &[&[1], &[2, 3]]), Some(Error::Unsupported(Feature::Sampling)));
    assert!(matches!(refusal(&[0x11; 3], ids, &[&[2, 1], &[3]]), Some(Error::Segment { marker: 0xda, .. })));
    assert_eq!(refusal(&[0x11; 3], ids, &[&[3, 2], &[1]]), None);
    assert_eq!(refusal(&[0x11; 3], [7, 7, 7], &[&[7, 7, 7]]), None);
    assert!(matches!(refusal(&[0x11; 3], [7, 7, 8], &[&[8, 8]]), Some(Error::Segment { marker: 0xda, .. })));
}

/// Files that libjpeg refuses because of their headers, and files that it reads although T.81 does not allow them.
#[test]
fn reads_the_headers_that_libjpeg_reads() {
    let parse = |from: &[u8], to: &[u8]| {
        let mut jpeg = head(0xc0, 16, &[1, 2, 3], &[0x11; 3]);
        jpeg.extend(scan(&[1], [0, 63, 0], 64));
        jpeg.extend([0xff, 0xd9]);
        let at = memchr::memmem::find(&jpeg, from).unwrap();
        jpeg.splice(at..at + from.len(), to.iter().copied());
        decode(
            &mut Decoder::new().with_limits(Limits::default().with_pixels(u64::MAX)),
            &jpeg,
            None,
            &Request { rect: Some(Rect { x: 0, y: 0, width: 1, height: 1 }), ..Request::default() },
        )
    };
    let refused = |marker, from: &[u8], to: &[u8]| match parse(from, to) {
        Err(Error::Segment { marker: found, .. }) => assert_eq!(found, marker),
        other => panic!("{other:?}"),
    };
    let frame = [0xff, 0xc0, 0, 17, 8, 0, 16, 0, 16, 3];
    parse(&frame, &frame).unwrap();
    // A comment and an APP segment of lengths 0 and 1.
    parse(&frame, &[&[0xff, 0xfe, 0, 0, 0xff, 0xed, 0, 1][..], &frame].concat()).unwrap();
    refused(0xdd, &frame, &[&[0xff, 0xdd, 0, 1][..], &frame].concat());
    // Sides of 65,500 and of one more.
    parse(&frame, &[0xff, 0xc0, 0, 17, 8, 0xff, 0xdc, 0, 16, 3]).unwrap();
    refused(0xc0, &frame, &[0xff, 0xc0, 0, 17, 8, 0xff, 0xdd, 0, 16, 3]);
    refused(0xc0, &frame, &[0xff, 0xc0, 0, 17, 8, 0, 16, 0xff, 0xdd, 3]);
    // A byte after the components.
    refused(0xc0, &frame, &[0xff, 0xc0, 0, 18, 8, 0, 16, 0, 16, 3]);
    refused(0xda, &[0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0], &[0xff, 0xda, 0, 9, 1, 1, 0, 0, 63, 0, 0]);
    // A quantisation table that does not exist matters to the components of scans only.
    parse(&[3, 0x11, 0, 0xff, 0xc4], &[3, 0x11, 9, 0xff, 0xc4]).unwrap();
    refused(0xda, &[1, 0x11, 0, 2], &[1, 0x11, 9, 2]);
    refused(0xda, &[1, 0x11, 0, 2], &[1, 0x11, 3, 2]);
}

#[test]
fn ignores_a_height_that_is_given_again() {
    let mut decoder = Decoder::new();
    let jpeg = |height, dnl: &[u8]| {
        let mut head = head(0xc0, 16, &[1, 2, 3], &[0x11; 3]);
        let frame = memchr::memmem::find(&head, &[0xff, 0xc0]).unwrap();
        head[frame + 6] = height;
        [&head[..], &scan(&[1], [0, 63, 0], 64), dnl, &scan(&[2, 3], [0, 63, 0], 64), &[0xff, 0xd9]].concat()
    };
    let dnl = segment(0xdc, &[0, 8]);
    let pixels = decode(&mut decoder, &jpeg(16, &dnl), None, &whole(Scale::Full)).unwrap();
    assert_eq!(pixels, decode(&mut decoder, &jpeg(16, &[]), None, &whole(Scale::Full)).unwrap());
    assert_eq!(Header::parse(&jpeg(0, &dnl), &Limits::default()), Err(Error::Unsupported(Feature::Height)));
}
