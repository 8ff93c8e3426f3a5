//! Images of several scans: a request reads no more of them than it needs.

use shardtool_jpeg::{Channels, Damage, Decoder, Error, Rect, Request, Scale};

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
    let mut decoder = Decoder::from_env();
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
    let mut decoder = Decoder::from_env();
    let jpeg = include_bytes!("../data/progressive-420.jpg");
    let pixels = decode(&mut decoder, jpeg, None, &whole(Scale::Full)).unwrap();
    let header = shardtool_jpeg::Header::parse(jpeg, decoder.limits()).unwrap();
    let damaged = cut(jpeg, &scans(jpeg), |_| Some(0.9));
    assert!(decode(&mut decoder, &damaged, None, &whole(Scale::Full)).is_err());
    let rect = Rect { x: 3, y: 5, width: header.width - 5, height: header.height / 3 };
    let request = Request { rect: Some(rect), ..Request::default() };
    assert!(decode(&mut decoder, &damaged, None, &request) == Ok(part(&pixels, header.width, rect)));
}
