//! Arrays: round trips compared with element-wise indexing, and damaged chunks.

use proptest::prelude::*;
use shardtool_decode::{Error, Limits, decode_array, decode_chunk, encode_array};
use shardtool_format::Damage;
use shardtool_format::array::{ArrayDtype, ArrayLayout};

/// The elements of a chunk, found one by one.
fn gathered(layout: &ArrayLayout<'_>, number: u64, data: &[u8]) -> Vec<u8> {
    let size = layout.dtype().bytes();
    let region: Vec<_> = layout.region(number).collect();
    let mut out = vec![];
    for at in 0..layout.bytes() as usize / size {
        let mut rest = at as u64;
        let inside = layout.shape().iter().zip(&region).rev().all(|(length, range)| {
            let index = rest % *length as u64;
            rest /= *length as u64;
            range.contains(&index)
        });
        if inside {
            out.extend_from_slice(&data[at * size..][..size]);
        }
    }
    out
}

fn dimensions() -> impl Strategy<Value = (Vec<i64>, Vec<i64>)> {
    (1..5usize).prop_flat_map(|d| (vec![0..6i64; d], vec![1..8i64; d]))
}

proptest! {
    #[test]
    fn decodes_what_it_encodes((shape, chunk) in dimensions(), dtype in 0..13usize, zstd: bool, seed: u64) {
        let dtype = ArrayDtype::ALL[dtype];
        let codec: &[u8] = if zstd { b"zstd" } else { b"raw" };
        let layout = ArrayLayout::new(&shape, &chunk, dtype.name().as_bytes(), codec).unwrap();
        let data: Vec<u8> = (0..layout.bytes()).map(|i| (seed.wrapping_mul(i | 1) >> 7) as u8).collect();
        let chunks = encode_array(&layout, &data, 3).unwrap();
        prop_assert_eq!(chunks.len() as u64, layout.chunks());
        let mut scratch = vec![];
        for (number, chunk) in (0..).zip(&chunks) {
            let found = decode_chunk(&layout, number, chunk, &Limits::default(), &mut scratch).unwrap();
            prop_assert_eq!(found, gathered(&layout, number, &data));
        }
        let mut out = vec![0xa5; data.len()];
        decode_array(&layout, chunks.iter().map(Vec::as_slice), &Limits::default(), &mut scratch, &mut out).unwrap();
        prop_assert_eq!(out, data);
    }
}

#[test]
fn refuses_damaged_chunks_by_name() {
    let layout = ArrayLayout::new(&[40], &[25], b"u8", b"zstd").unwrap();
    let good = encode_array(&layout, &[7; 40], 1).unwrap();
    let damage = |chunk: &[u8]| {
        let mut scratch = vec![];
        let decoded = decode_chunk(&layout, 0, chunk, &Limits::default(), &mut scratch).map(<[u8]>::to_vec);
        decoded.map_err(|error| error.damage())
    };
    assert_eq!(damage(&good[0]), Ok(vec![7; 25]));
    let trailing = [&good[0][..], b"x"].concat();
    let skippable = [0x50, 0x2a, 0x4d, 0x18, 1, 0, 0, 0, 9];
    for chunk in [&trailing[..], &good[0][..good[0].len() - 1], &skippable, &[&good[0][..], &skippable].concat(), b""] {
        assert_eq!(damage(chunk), Err(Damage::ImageDecode), "{chunk:02x?}");
    }
    // A frame of one raw block, with descriptor bits for the sizes of content and dictionary id (RFC 8878, 3.1.1).
    let block = [&[25 << 3 | 1, 0, 0][..], &[7; 25]].concat();
    let magic = [0x28, 0xb5, 0x2f, 0xfd];
    assert_eq!(damage(&[&magic[..], &[0x20, 25], &block].concat()), Ok(vec![7; 25]));
    assert_eq!(damage(&[&magic[..], &[0x21, 1, 25], &block].concat()), Err(Damage::ImageDecode), "a dictionary");
    assert_eq!(damage(&[&magic[..], &[0x00, 0x00], &block].concat()), Err(Damage::PixelsLength), "no content size");
    assert_eq!(damage(&[&magic[..], &[0x20, 24], &block].concat()), Err(Damage::PixelsLength), "another content size");
    assert_eq!(damage(&good[1]), Err(Damage::PixelsLength), "the chunk of another position");
    let raw = ArrayLayout::new(&[40], &[25], b"u8", b"raw").unwrap();
    let of_raw = |chunk: &[u8]| decode_chunk(&raw, 1, chunk, &Limits::default(), &mut vec![]).map(<[u8]>::len);
    assert_eq!(of_raw(&[0; 15]).unwrap(), 15);
    assert_eq!(of_raw(&[0; 25]).unwrap_err().damage(), Damage::PixelsLength);
}

#[test]
fn checks_counts_and_limits_before_decoding() {
    let layout = ArrayLayout::new(&[40], &[25], b"f64", b"zstd").unwrap();
    let data = [1; 320];
    let good = encode_array(&layout, &data, 1).unwrap();
    let decode = |chunks: &[Vec<u8>], limits: Limits, bytes: usize| {
        let chunks = chunks.iter().map(Vec::as_slice);
        decode_array(&layout, chunks, &limits, &mut vec![], &mut vec![0; bytes])
    };
    let limits = Limits::default();
    assert!(decode(&good, limits, 320).is_ok());
    assert_eq!(decode(&good[..1], limits, 320).unwrap_err().damage(), Damage::PixelsLength);
    assert!(matches!(decode(&good, limits, 319), Err(Error::ArrayBuffer { expected: 320, found: 319 })));
    assert!(decode(&good, limits.with_max_bytes(200), 320).is_ok());
    let error = decode(&good, limits.with_max_bytes(199), 320).unwrap_err();
    assert!(matches!(error, Error::ArrayLimit { needed: 200, allowed: 199 }));
    assert!(matches!(encode_array(&layout, &data[1..], 1), Err(Error::ArrayBuffer { .. })));
}
