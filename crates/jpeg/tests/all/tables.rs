//! Images with random Huffman tables, such as no encoder writes: codes of one bit and of 16 only, without an end-of-block symbol,
//! magnitudes of 15 bits, runs beyond the block. All decode paths must agree on the pixels, and on the error.

use shardtool_jpeg::{Decoder, Error, Header, Limits, Request, Scale, entries};

use crate::decoding::{decode, part, random, rect, whole};

/// The codes of a table: length, code, symbol.
type Codes = Vec<(u32, u32, u8)>;

fn below(state: &mut u64, n: usize) -> usize {
    (random(state) % n as u64) as usize
}

/// Returns the lengths of a prefix code, not always a complete one.
fn lengths(state: &mut u64) -> Vec<u32> {
    let mut lengths = match below(state, 8) {
        0 => vec![1],
        1 => (1..=16).collect(),
        2 => vec![16; 1 + below(state, 200)],
        3 => {
            let n = 1 + below(state, 4) as u32;
            vec![n; 1 << n]
        }
        4 => [vec![1 + below(state, 4) as u32], vec![13 + below(state, 4) as u32; 1 + below(state, 100)]].concat(),
        _ => {
            // Splits leaves of a tree, the last ones more often, so that there are long codes.
            let mut leaves = vec![1u32, 1];
            for _ in 0..[8, 40, 250][below(state, 3)] {
                let at = if below(state, 2) == 0 { leaves.len() - 1 } else { below(state, leaves.len()) };
                if leaves[at] < 16 {
                    leaves[at] += 1;
                    leaves.push(leaves[at]);
                }
            }
            leaves
        }
    };
    lengths.sort_unstable();
    // A code of ones only is reserved (T.81, C.2), and not all files respect it.
    if below(state, 2) == 0 && lengths.len() > 1 {
        lengths.pop();
    }
    lengths
}

fn table(dc: bool, state: &mut u64) -> Codes {
    let style = below(state, 6);
    let mut symbols = std::iter::repeat_with(|| match (dc, style) {
        (true, 0) => 15,
        (true, 1) => below(state, 4) as u8,
        (true, _) => below(state, 16) as u8,
        (false, 0) => (below(state, 16) << 4) as u8 | 15,
        (false, 1) => below(state, 4) as u8,
        (false, 2) => [0xf0, 0xff, 0, 1][below(state, 4)],
        (false, 3) => (below(state, 2) << 4) as u8 | below(state, 12) as u8,
        (false, _) => random(state) as u8,
    })
    .take(256)
    .collect::<Vec<_>>();
    if !dc && below(state, 4) > 0 {
        symbols[below(state, 4)] = 0;
    }
    let (mut code, mut last) = (0, 0);
    let assign = |(length, symbol)| {
        code <<= length - last;
        last = length;
        code += 1;
        (length, code - 1, symbol)
    };
    lengths(state).into_iter().zip(symbols).map(assign).collect()
}

/// Entropy-coded data with byte stuffing.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    held: u32,
    count: u32,
}

impl Bits {
    fn put(&mut self, value: u32, size: u32) {
        for bit in (0..size).rev() {
            (self.held, self.count) = (self.held << 1 | value >> bit & 1, self.count + 1);
            if self.count == 8 {
                self.bytes.push(self.held as u8);
                if self.held as u8 == 0xff {
                    self.bytes.push(0);
                }
                (self.held, self.count) = (0, 0);
            }
        }
    }

    /// Appends a block of random symbols. One in `wild` goes beyond its end, if that is not 0.
    fn put_block(&mut self, dc: &Codes, ac: &Codes, wild: usize, state: &mut u64) {
        let mut symbol = |codes: &Codes, fits: &dyn Fn(u8) -> bool| {
            let first = below(state, codes.len());
            let mut from_first = codes[first..].iter().chain(&codes[..first]);
            let wanted = |&&(_, _, symbol): &&(u32, u32, u8)| fits(symbol);
            let any = wild > 0 && below(state, wild) == 0;
            let &(length, code, symbol) = if any { from_first.next() } else { from_first.find(wanted) }?;
            self.put(code, length);
            let size = u32::from(symbol & 15);
            self.put(random(state) as u32 & ((1 << size) - 1), size);
            Some(symbol)
        };
        symbol(dc, &|_| true);
        let mut coefs = 1;
        while coefs < 64 {
            let fits = |symbol: u8| coefs + u32::from(symbol >> 4) < 64;
            match symbol(ac, &fits) {
                None => return,
                Some(symbol) if symbol & 15 == 0 && symbol != 0xf0 => return,
                Some(symbol) => coefs += u32::from(symbol >> 4) + 1,
            }
        }
    }

    fn pad(&mut self) {
        while self.count > 0 {
            self.put(1, 1);
        }
    }
}

fn segment(jpeg: &mut Vec<u8>, marker: u8, body: &[u8]) {
    jpeg.extend([0xff, marker]);
    jpeg.extend((body.len() as u16 + 2).to_be_bytes());
    jpeg.extend(body);
}

/// Returns an image with random tables and data; some are damaged.
fn image(state: &mut u64) -> Vec<u8> {
    const SAMPLINGS: [&[(usize, usize)]; 5] =
        [&[(1, 1)], &[(1, 1); 3], &[(2, 2), (1, 1), (1, 1)], &[(2, 1), (1, 1), (1, 1)], &[(1, 2), (1, 1), (1, 1)]];
    let sampling = SAMPLINGS[below(state, 5)];
    let (width, height) = if below(state, 4) == 0 { (1 + below(state, 200), 1 + below(state, 99)) } else { (40, 48) };
    let components = sampling.len();
    let tables = if below(state, 3) == 0 { 1 } else { components };
    let number = |component: usize| component.min(tables - 1) as u8;
    let mut jpeg = vec![0xff, 0xd8];
    segment(&mut jpeg, 0xdb, &[&[0][..], &[1 + below(state, 30) as u8; 64]].concat());
    let mut frame = vec![8, 0, height as u8, 0, width as u8, components as u8];
    sampling.iter().zip(1..).for_each(|(&(h, v), id)| frame.extend([id, (h << 4 | v) as u8, 0]));
    segment(&mut jpeg, 0xc1, &frame);
    let [dc, ac] = [true, false].map(|dc| (0..tables).map(|_| table(dc, state)).collect::<Vec<_>>());
    for (class, tables) in [(0, &dc), (0x10, &ac)] {
        for (codes, number) in tables.iter().zip(0..) {
            let mut body = vec![class | number];
            body.extend((1..=16).map(|n| codes.iter().filter(|code| code.0 == n).count() as u8));
            body.extend(codes.iter().map(|code| code.2));
            segment(&mut jpeg, 0xc4, &body);
        }
    }
    let (h, v) = sampling[0];
    let (across, down) = (width.div_ceil(8 * h), height.div_ceil(8 * v));
    let interval = [0, 0, across, 1 + below(state, 2 * across)][below(state, 4)];
    segment(&mut jpeg, 0xdd, &(interval as u16).to_be_bytes());
    let mut scan = vec![components as u8];
    (0..components).for_each(|i| scan.extend([i as u8 + 1, number(i) << 4 | number(i)]));
    segment(&mut jpeg, 0xda, &[&scan[..], &[0, 63, 0]].concat());

    let (mut bits, start) = (Bits::default(), jpeg.len());
    let kind = below(state, 8);
    let wild = [0, 0, 0, 3000, 100][below(state, 5)];
    for mcu in 0..across * down {
        if interval > 0 && mcu > 0 && mcu.is_multiple_of(interval) {
            bits.pad();
            bits.bytes.extend([0xff, 0xd0 + ((mcu / interval - 1) & 7) as u8]);
        }
        for (i, (h, v)) in sampling.iter().enumerate() {
            for _ in 0..h * v {
                let n = usize::from(number(i));
                match kind {
                    0 => bits.put(random(state) as u32, 1 + below(state, 32) as u32),
                    _ => bits.put_block(&dc[n], &ac[n], wild, state),
                }
            }
        }
    }
    bits.pad();
    jpeg.extend(bits.bytes);
    if kind == 1 {
        jpeg.truncate(start + below(state, jpeg.len() - start));
    } else if kind == 2 && jpeg.len() > start {
        let at = start + below(state, jpeg.len() - start);
        jpeg[at] ^= 1 << below(state, 8);
    }
    jpeg.extend([0xff, 0xd9]);
    jpeg
}

#[test]
fn all_paths_agree_for_any_huffman_tables() {
    let new = || Decoder::new().with_limits(Limits::default().with_pixels(1 << 17));
    let (mut fast, mut portable) = (new(), new().with_simd(false));
    let mut eager = [new().with_eager_speculation(), new().with_simd(false).with_eager_speculation()];
    let (mut decoded, mut damaged) = (0, 0);
    for seed in 0..3000 {
        let state = &mut u64::wrapping_mul(seed + 1, 0x2545_f491_4f6c_dd1d);
        let jpeg = image(state);
        let Ok(header) = Header::parse(&jpeg, fast.limits()) else { panic!("seed {seed}: a header") };
        let scale = [Scale::Full, Scale::Full, Scale::Half, Scale::Eighth][below(state, 4)];
        let all = decode(&mut fast, &jpeg, None, &whole(scale));
        assert!(all == decode(&mut portable, &jpeg, None, &whole(scale)), "seed {seed}: vector and portable code");
        for eager in &mut eager {
            let found = decode(eager, &jpeg, None, &whole(scale));
            assert!(all == found || all.is_err() && found.is_err(), "seed {seed}: speculation");
        }
        match &all {
            Ok(_) => decoded += 1,
            Err(Error::Damaged { .. }) => damaged += 1,
            Err(error) => panic!("seed {seed}: {error}"),
        }
        let mut payload = Vec::new();
        let found = entries::find(&jpeg, 1 + below(state, 3) as u32, &mut fast, &mut payload);
        assert_eq!(found.is_ok(), decode(&mut fast, &jpeg, None, &whole(Scale::Full)).is_ok(), "seed {seed}: finding");
        if let Ok(all) = all {
            let size = header.size(scale);
            let rect = rect(size, state);
            let expected = part(&all, size.0, rect);
            let request = Request { rect: Some(rect), scale, ..Request::default() };
            for decoder in [&mut fast, &mut portable] {
                for hints in [None, Some(&payload[..])] {
                    assert!(decode(decoder, &jpeg, hints, &request).as_ref() == Ok(&expected), "seed {seed}: a crop");
                }
            }
        }
    }
    assert!(decoded > 1000 && damaged > 500, "{decoded} decoded, {damaged} damaged");
}
