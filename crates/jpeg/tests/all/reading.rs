//! Photographs outside the repository: all decode paths agree, and transcoding changes no pixel.

use crate::corpora::shared;
use crate::decoding::{decode, part, rect, whole};
use crate::images::files;
use shardtool_jpeg::{Decoder, Header, Limits, Request, Scale, entries, transcode};

#[test]
fn photographs_decode_the_same_by_every_path() {
    let Some(folder) = shared("imagenet-sample") else { return };
    let (mut decoder, mut portable, mut state) = (Decoder::new(), Decoder::new().with_simd(false), 3);
    // Every fourth one; `oracle.py` compares all of them with libjpeg-turbo.
    for path in files(&folder).into_iter().step_by(4) {
        let jpeg = std::fs::read(&path).unwrap();
        let header = Header::parse(&jpeg, &Limits::default()).unwrap();
        let all = decode(&mut decoder, &jpeg, None, &whole(Scale::Full)).unwrap();
        assert!(all == decode(&mut portable, &jpeg, None, &whole(Scale::Full)).unwrap(), "{path:?}");
        let mut payload = Vec::new();
        entries::find(&jpeg, entries::default_step(&header), &mut decoder, &mut payload).unwrap();
        let rect = rect((header.width, header.height), &mut state);
        let request = Request { rect: Some(rect), scale: Scale::Full, ..Request::default() };
        let crop = decode(&mut decoder, &jpeg, Some(&payload), &request).unwrap();
        assert!(crop == part(&all, header.width, rect), "{path:?} {rect:?}");
    }
}

#[test]
fn transcoded_photographs_are_smaller_and_have_the_same_pixels() {
    let Some(folder) = shared("imagenet-sample") else { return };
    let (mut decoder, mut before, mut after) = (Decoder::new(), 0, 0);
    for path in files(&folder).into_iter().step_by(4) {
        let jpeg = std::fs::read(&path).unwrap();
        let again = transcode(&jpeg, &mut decoder).unwrap().jpeg;
        let [a, b] = [&jpeg, &again].map(|j| decode(&mut decoder, j, None, &whole(Scale::Full)).unwrap());
        assert!(a == b, "{path:?}");
        (before, after) = (before + jpeg.len(), after + again.len());
    }
    assert!(after < before, "{before} bytes became {after}");
}
