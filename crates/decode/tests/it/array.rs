//! Arrays: round trips compared with element-wise indexing, and damaged chunks.

use proptest::prelude::*;
use shardtool_decode::{
    ArrayBox, Error, Limits, decode_array, decode_array_box, decode_array_box_of, decode_chunk, encode_array,
};
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

/// A box of an array that is flipped and transposed on the way, found element by element.
#[derive(Debug, Clone)]
struct Moved {
    shape: Vec<i64>,
    chunk: Vec<i64>,
    start: Vec<u64>,
    size: Vec<u64>,
    flip: Vec<bool>,
    /// Which dimension of the output each dimension of the box becomes.
    order: Vec<usize>,
}

fn moved() -> impl Strategy<Value = Moved> {
    (1..5usize)
        .prop_flat_map(|d| {
            let side = (1..8i64, 1..8i64, 0..8u64, 1..8u64, any::<bool>());
            (prop::collection::vec(side, d), Just((0..d).collect::<Vec<_>>()).prop_shuffle())
        })
        .prop_map(|(sides, order)| {
            let mut moved = Moved { shape: vec![], chunk: vec![], start: vec![], size: vec![], flip: vec![], order };
            for (length, chunk, start, size, flip) in sides {
                let start = start % length as u64;
                moved.shape.push(length);
                moved.chunk.push(chunk);
                moved.start.push(start);
                moved.size.push(size.min(length as u64 - start));
                moved.flip.push(flip);
            }
            moved
        })
}

/// All indices of a shape, in C order.
fn indices(size: &[u64]) -> Vec<Vec<u64>> {
    size.iter().fold(vec![vec![]], |outer, length| {
        outer.iter().flat_map(|index| (0..*length).map(move |i| [&index[..], &[i]].concat())).collect()
    })
}

proptest! {
    #[test]
    fn a_box_is_decoded_from_the_chunks_it_meets(moved in moved(), dtype in 0..13usize, zstd: bool, gap in 0..4u64) {
        let Moved { shape, chunk, start, size, flip, order } = moved;
        let dtype = ArrayDtype::ALL[dtype];
        let (codec, bytes): (&[u8], _) = (if zstd { b"zstd" } else { b"raw" }, dtype.bytes());
        let layout = ArrayLayout::new(&shape, &chunk, dtype.name().as_bytes(), codec).unwrap();
        let data: Vec<u8> = (0..layout.bytes()).map(|i| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as u8).collect();
        let chunks = encode_array(&layout, &data, 3).unwrap();
        // The output's shape, with `gap` elements before the box.
        let mut lengths = vec![0; order.len()];
        order.iter().zip(&size).for_each(|(to, length)| lengths[*to] = *length);
        let stride = |to: usize| lengths[to + 1..].iter().product::<u64>() as i64;
        let (mut part, mut origin) = (ArrayBox::contiguous(start.clone(), size.clone()), gap as i64);
        for d in 0..order.len() {
            part.strides[d] = if flip[d] { -stride(order[d]) } else { stride(order[d]) };
            origin += if flip[d] { stride(order[d]) * (size[d] as i64 - 1) } else { 0 };
        }
        part.origin = origin;
        let elements = gap + size.iter().product::<u64>();
        let mut expected = vec![0xa5; elements as usize * bytes];
        let element = |index: &[u64], lengths: &[u64]| index.iter().zip(lengths).fold(0, |at, (i, n)| at * n + i) as usize;
        let lengths_of_array: Vec<u64> = shape.iter().map(|n| *n as u64).collect();
        let mut met = std::collections::BTreeSet::new();
        for index in indices(&size) {
            let source: Vec<u64> = index.iter().zip(&start).map(|(i, start)| i + start).collect();
            let mut target = vec![0; order.len()];
            for d in 0..order.len() {
                target[order[d]] = if flip[d] { size[d] - 1 - index[d] } else { index[d] };
            }
            let (from, to) = (element(&source, &lengths_of_array), gap as usize + element(&target, &lengths));
            expected[to * bytes..][..bytes].copy_from_slice(&data[from * bytes..][..bytes]);
            let inside = |number: &u64| layout.region(*number).zip(&source).all(|(range, i)| range.contains(i));
            met.extend((0..layout.chunks()).find(inside));
        }
        let mut out = vec![0xa5; elements as usize * bytes];
        let mut asked = vec![];
        let chunk = |number: u64| {
            asked.push(number);
            Ok::<_, Error>(&chunks[number as usize][..])
        };
        decode_array_box(&layout, &part, chunk, &Limits::default(), &mut vec![], &mut out).unwrap();
        prop_assert_eq!(&out, &expected);
        prop_assert_eq!(asked, met.into_iter().collect::<Vec<_>>());
        let mut again = vec![0xa5; elements as usize * bytes];
        let values = || chunks.iter().map(Vec::as_slice);
        decode_array_box_of(&layout, &part, values, &Limits::default(), &mut vec![], &mut again).unwrap();
        prop_assert_eq!(again, expected);
    }
}

#[test]
fn refuses_boxes_that_leave_the_array_or_the_buffer() {
    let layout = ArrayLayout::new(&[4, 6], &[3, 3], b"u16", b"raw").unwrap();
    let chunks = encode_array(&layout, &[1; 48], 0).unwrap();
    let decode = |part: &ArrayBox, bytes: usize| {
        let values = || chunks.iter().map(Vec::as_slice);
        decode_array_box_of(&layout, part, values, &Limits::default(), &mut vec![], &mut vec![0; bytes])
    };
    let part = ArrayBox::contiguous(vec![1, 2], vec![3, 4]);
    assert!(decode(&part, 24).is_ok());
    assert!(matches!(decode(&part, 23), Err(Error::ArrayBox { .. })));
    let refused = |part: ArrayBox| assert!(matches!(decode(&part, 24), Err(Error::ArrayBox { .. })), "{part:?}");
    refused(ArrayBox { start: vec![2, 2], ..part.clone() });
    refused(ArrayBox { start: vec![u64::MAX, 2], ..part.clone() });
    refused(ArrayBox { size: vec![3], ..part.clone() });
    refused(ArrayBox { origin: -1, ..part.clone() });
    refused(ArrayBox { origin: i64::MAX, ..part.clone() });
    refused(ArrayBox { strides: vec![4, -1], ..part.clone() });
    refused(ArrayBox { strides: vec![i64::MIN, 1], ..part.clone() });
    assert!(decode(&ArrayBox { size: vec![0, 4], strides: vec![i64::MAX; 2], ..part.clone() }, 0).is_ok(), "empty");
    let missing = || chunks[..3].iter().map(Vec::as_slice);
    let found = decode_array_box_of(&layout, &part, missing, &Limits::default(), &mut vec![], &mut [0; 24]);
    assert_eq!(found.unwrap_err().damage(), Damage::PixelsLength);
    // Chunks that the box does not meet are not looked at.
    let mut damaged = chunks.clone();
    damaged[0] = vec![];
    let inner = ArrayBox::contiguous(vec![3, 3], vec![1, 3]);
    let decode_damaged = |part: &ArrayBox| {
        let values = || damaged.iter().map(Vec::as_slice);
        decode_array_box_of(&layout, part, values, &Limits::default(), &mut vec![], &mut [0; 24])
    };
    assert!(decode_damaged(&inner).is_ok());
    assert_eq!(decode_damaged(&part).unwrap_err().damage(), Damage::PixelsLength);
}

/// Noise on a slope, which zstd compresses a little, in several blocks of 128 KiB.
fn noisy(elements: usize) -> Vec<u8> {
    let mut state = 1u32;
    let mut noise = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u16
    };
    (0..elements).flat_map(|i| ((i / 500) as u16 + noise() / 16).to_le_bytes()).collect()
}

#[test]
fn a_box_decodes_only_the_blocks_of_a_chunk_that_it_needs() {
    let (shape, dtype) = ([48i64, 64, 64], b"u16");
    let layout = ArrayLayout::new(&shape, &shape, dtype, b"zstd").unwrap();
    let data = noisy(48 * 64 * 64);
    let mut chunks = encode_array(&layout, &data, 3).unwrap();
    // A frame with a checksum, as other writers make them.
    let mut encoder = zstd::bulk::Compressor::new(3).unwrap();
    encoder.include_checksum(true).unwrap();
    let checked = encoder.compress(&data).unwrap();
    let decode = |chunks: &[Vec<u8>], scratch: &mut Vec<u8>, start: u64, planes: u64| {
        let part = ArrayBox::contiguous(vec![start, 3, 5], vec![planes, 60, 50]);
        let mut out = vec![0xa5; planes as usize * 60 * 50 * 2];
        let values = || chunks.iter().map(Vec::as_slice);
        decode_array_box_of(&layout, &part, values, &Limits::default(), scratch, &mut out).map(|()| out)
    };
    let expected = |start: u64, planes: u64| {
        let rows = (start..start + planes).flat_map(|z| (3..63).map(move |y| ((z * 64 + y) * 64 + 5) as usize));
        rows.flat_map(|at| data[at * 2..(at + 50) * 2].to_vec()).collect::<Vec<_>>()
    };
    let mut scratch = vec![];
    for (start, planes) in [(0, 1), (0, 16), (0, 17), (15, 2), (30, 3), (0, 47), (47, 1), (0, 48), (20, 28), (5, 1)] {
        for chunk in [&chunks[0], &checked] {
            let found = decode(std::slice::from_ref(chunk), &mut scratch, start, planes).unwrap();
            assert!(found == expected(start, planes), "planes {start} to {}", start + planes);
        }
    }
    // Damage in the last block is found by whom needs it only.
    let end = chunks[0].len();
    chunks[0][end - 2000..].fill(0xff);
    assert!(decode(&chunks, &mut scratch, 0, 16).unwrap() == expected(0, 16));
    assert_eq!(decode(&chunks, &mut scratch, 0, 48).unwrap_err().damage(), Damage::ImageDecode);
    assert!(decode(&chunks, &mut scratch, 0, 1).unwrap() == expected(0, 1), "after an error");
    // A frame that ends early has the error of the whole frame.
    chunks[0].truncate(100_000);
    assert_eq!(decode(&chunks, &mut scratch, 0, 1).unwrap_err().damage(), Damage::ImageDecode);
}
