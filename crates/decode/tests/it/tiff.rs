//! Generated TIFF files of the kinds that writers produce, compared with pixels computed from their samples.

use std::io::Write;

use shardtool_decode::{DecodeOptions, EncodedImage, Error, FloatRange, Limits, PixelFormat, decode, probe};

const WIDTH: u32 = 21;
const HEIGHT: u32 = 13;

/// A file with one directory, to which the offsets and byte counts of the chunks are added.
struct Tiff {
    big_endian: bool,
    tags: Vec<(u16, Vec<u32>)>,
    chunks: Vec<Vec<u8>>,
}

impl Tiff {
    fn new(photometric: u32, bits: u32, samples: u32) -> Self {
        let tags = [(256, WIDTH), (257, HEIGHT), (258, bits), (259, 1), (262, photometric), (277, samples)];
        Tiff { big_endian: false, tags: tags.map(|(tag, value)| (tag, vec![value])).into(), chunks: vec![] }
    }

    fn tag(mut self, tag: u16, values: impl Into<Vec<u32>>) -> Self {
        self.tags.retain(|(other, _)| *other != tag);
        self.tags.push((tag, values.into()));
        self
    }

    fn u16(&self, value: u16) -> [u8; 2] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    fn u32(&self, value: u32) -> [u8; 4] {
        if self.big_endian { value.to_be_bytes() } else { value.to_le_bytes() }
    }

    /// Splits packed rows into strips of 5 rows, which are compressed if the compression is Deflate.
    fn strips(mut self, rows: &[Vec<u8>]) -> Vec<u8> {
        let deflated = self.tags.contains(&(259, vec![8]));
        let compressed = |strip: Vec<u8>| {
            let mut zlib = flate2::write::ZlibEncoder::new(vec![], flate2::Compression::fast());
            zlib.write_all(&strip).unwrap();
            zlib.finish().unwrap()
        };
        let strips = rows.chunks(5).map(<[_]>::concat);
        self.chunks.extend(strips.map(|strip| if deflated { compressed(strip) } else { strip }));
        let (offsets, lengths) = (273, 279);
        self.tag(278, [5]).bytes(offsets, lengths)
    }

    fn bytes(self, offsets: u16, lengths: u16) -> Vec<u8> {
        let mut file = if self.big_endian { b"MM\0*".to_vec() } else { b"II*\0".to_vec() };
        let mut places = vec![];
        let mut data = vec![];
        for chunk in &self.chunks {
            places.push(8 + data.len() as u32);
            data.extend(chunk);
        }
        data.resize(data.len().next_multiple_of(2), 0);
        file.extend(self.u32(8 + data.len() as u32));
        file.extend(data);
        let counts = self.chunks.iter().map(|chunk| chunk.len() as u32).collect::<Vec<_>>();
        let mut tags = [self.tags.clone(), vec![(offsets, places), (lengths, counts)]].concat();
        tags.sort();
        let mut beyond = file.len() as u32 + 2 + 12 * tags.len() as u32 + 4;
        let mut values = vec![];
        file.extend(self.u16(tags.len() as u16));
        for (tag, list) in &tags {
            file.extend(self.u16(*tag));
            file.extend(self.u16(4));
            file.extend(self.u32(list.len() as u32));
            if let [value] = list[..] {
                file.extend(self.u32(value));
            } else {
                file.extend(self.u32(beyond));
                values.extend(list.iter().flat_map(|value| self.u32(*value)));
                beyond += 4 * list.len() as u32;
            }
        }
        file.extend([0; 4]);
        file.extend(values);
        file
    }
}

fn sample(x: u32, y: u32, channel: u32) -> u8 {
    (x * 11 + y * 7 + channel * 60 + x * y) as u8
}

/// Rows of values of `bits` bits, packed from the highest bit.
fn packed(bits: u32, value: impl Fn(u32, u32) -> u8) -> Vec<Vec<u8>> {
    let per_byte = 8 / bits;
    let byte = |y: u32, first: u32| {
        (first..first + per_byte).fold(0u8, |byte, x| {
            let value = if x < WIDTH { value(x, y) } else { 0 };
            ((u32::from(byte) << bits) as u8) | value
        })
    };
    (0..HEIGHT).map(|y| (0..WIDTH).step_by(per_byte as usize).map(|x| byte(y, x)).collect()).collect()
}

fn pixels(rgb: impl Fn(u32, u32) -> [u8; 3]) -> Vec<u8> {
    (0..HEIGHT).flat_map(|y| (0..WIDTH).map(move |x| (x, y))).flat_map(|(x, y)| rgb(x, y)).collect()
}

fn decoded(file: &[u8]) -> Vec<u8> {
    let pixels = decode(file, &DecodeOptions::default()).unwrap();
    assert_eq!((pixels.width, pixels.height), (WIDTH, HEIGHT));
    pixels.data
}

#[test]
fn decodes_grey_of_every_depth() {
    for big_endian in [false, true] {
        for (bits, highest) in [(1, 1), (2, 3), (4, 15), (8, 255)] {
            let value = |x, y| sample(x, y, 0) & highest;
            for white_is_zero in [true, false] {
                for low_bits_first in [true, false] {
                    let mut rows = packed(bits, value);
                    if low_bits_first {
                        rows.iter_mut().flatten().for_each(|byte| *byte = byte.reverse_bits());
                    }
                    let tiff = Tiff { big_endian, ..Tiff::new(u32::from(!white_is_zero), bits, 1) };
                    let file = tiff.tag(266, [if low_bits_first { 2 } else { 1 }]).strips(&rows);
                    assert_eq!(probe(&file, &Limits::default()).unwrap().channels, 1);
                    let scaled = |x, y| (u32::from(value(x, y)) * 255 / u32::from(highest)) as u8;
                    let expected = pixels(|x, y| [if white_is_zero { 255 - scaled(x, y) } else { scaled(x, y) }; 3]);
                    assert_eq!(decoded(&file), expected, "{bits} bits, white is zero: {white_is_zero}");
                }
            }
        }
    }
}

#[test]
fn decodes_palettes_of_every_depth() {
    for bits in [1, 2, 4, 8] {
        let colors = 1u32 << bits;
        // The high byte is used.
        let map: Vec<u32> = (0..3 * colors).map(|i| (i * 37 % 256) << 8 | 0x5A).collect();
        let value = |x, y| (u32::from(sample(x, y, 0)) % colors) as u8;
        let file = Tiff::new(3, bits, 1).tag(320, map).strips(&packed(bits, value));
        let color = |i: u32, channel: u32| ((channel * colors + i) * 37 % 256) as u8;
        let expected = pixels(|x, y| [0, 1, 2].map(|channel| color(value(x, y).into(), channel)));
        assert_eq!(decoded(&file), expected, "{bits} bits");
    }
}

#[test]
fn keeps_the_upper_8_of_12_and_16_bits() {
    for big_endian in [false, true] {
        let deep = |x: u32, y: u32| (x * 3001 + y * 177) as u16;
        let tiff = Tiff { big_endian, ..Tiff::new(1, 16, 1) };
        let row = |y| (0..WIDTH).flat_map(|x| tiff.u16(deep(x, y))).collect();
        let rows: Vec<Vec<u8>> = (0..HEIGHT).map(row).collect();
        let expected = pixels(|x, y| [(deep(x, y) >> 8) as u8; 3]);
        assert_eq!(decoded(&tiff.strips(&rows)), expected);
        let rows: Vec<Vec<u8>> = (0..HEIGHT)
            .map(|y| {
                let value = |x: u32| if x < WIDTH { deep(x, y) >> 4 } else { 0 };
                let pair = |x| [(value(x) >> 4) as u8, (value(x) << 4 | value(x + 1) >> 8) as u8, value(x + 1) as u8];
                (0..WIDTH).step_by(2).flat_map(pair).take((WIDTH as usize * 12).div_ceil(8)).collect()
            })
            .collect();
        assert_eq!(decoded(&Tiff { big_endian, ..Tiff::new(1, 12, 1) }.strips(&rows)), expected);
    }
}

/// Planar tiles that extend beyond the image, with which the `tiff` crate panics.
#[test]
fn decodes_planar_tiles_beyond_the_edge() {
    for (bits, samples) in [(8, 3), (16, 3), (8, 4)] {
        let mut tiff = Tiff::new(2, bits, samples).tag(284, [2]).tag(322, [16]).tag(323, [16]);
        for channel in 0..samples {
            for (left, top) in [(0, 0), (16, 0)] {
                let tile = (0..256).map(|i| sample(left + i % 16, top + i / 16, channel));
                tiff.chunks.push(match bits {
                    8 => tile.collect(),
                    _ => tile.flat_map(|value| [0x77, value]).collect(),
                });
            }
        }
        let file = tiff.bytes(324, 325);
        assert_eq!(decoded(&file), pixels(|x, y| [0, 1, 2].map(|channel| sample(x, y, channel))), "{bits} x {samples}");
    }
}

#[test]
fn decodes_packbits_and_horizontal_predictor() {
    let rgb = |x, y| [0, 1, 2].map(|channel| sample(x, y, channel));
    let differences = |y: u32| -> Vec<u8> {
        let before = |x: u32| if x == 0 { [0; 3] } else { rgb(x - 1, y) };
        (0..WIDTH).flat_map(|x| [0, 1, 2].map(|i| rgb(x, y)[i].wrapping_sub(before(x)[i]))).collect()
    };
    let rows: Vec<Vec<u8>> = (0..HEIGHT).map(differences).collect();
    assert_eq!(decoded(&Tiff::new(2, 8, 3).tag(259, [8]).tag(317, [2]).strips(&rows)), pixels(rgb));
    // Without LZW, Deflate and Zstandard libtiff ignores the tag.
    let rows: Vec<Vec<u8>> = (0..HEIGHT).map(|y| (0..WIDTH).flat_map(|x| rgb(x, y)).collect()).collect();
    assert_eq!(decoded(&Tiff::new(2, 8, 3).tag(317, [2]).strips(&rows)), pixels(rgb));

    let grey = |x: u32, y: u32| if x < 9 { 77 } else { sample(x, y, 0) };
    let run = |y: u32| {
        let literal = (9..WIDTH).map(|x| grey(x, y));
        [vec![257u16.wrapping_sub(9) as u8, 77, (WIDTH - 10) as u8], literal.collect()].concat()
    };
    let rows: Vec<Vec<u8>> = (0..HEIGHT).map(run).collect();
    assert_eq!(decoded(&Tiff::new(1, 8, 1).tag(259, [32773]).strips(&rows)), pixels(|x, y| [grey(x, y); 3]));
}

#[test]
fn divides_out_premultiplied_alpha_and_drops_other_alpha() {
    let rgba = |x, y| [sample(x, y, 0), sample(x, y, 1), sample(x, y, 2), sample(x, y, 3)];
    let rows: Vec<Vec<u8>> = (0..HEIGHT).map(|y| (0..WIDTH).flat_map(|x| rgba(x, y)).collect()).collect();
    let kept = pixels(|x, y| [0, 1, 2].map(|i| rgba(x, y)[i]));
    assert_eq!(decoded(&Tiff::new(2, 8, 4).tag(338, [2]).strips(&rows)), kept);
    let divided = pixels(|x, y| {
        let [rgb @ .., alpha] = rgba(x, y).map(u32::from);
        rgb.map(|v| (v * 255).checked_div(alpha).unwrap_or(0).min(255) as u8)
    });
    let file = Tiff::new(2, 8, 4).tag(338, [1]).strips(&rows);
    assert_eq!(decoded(&file), divided);
    assert_eq!(probe(&file, &Limits::default()).unwrap().channels, 4);
}

#[test]
fn rejects_unsupported_kinds_by_name_but_reads_their_headers() {
    let rows = vec![vec![0; WIDTH as usize * 12]; HEIGHT as usize];
    for (tiff, name) in [
        (Tiff::new(1, 24, 1).tag(339, [3]), "floating-point samples of other than"),
        (Tiff::new(8, 8, 3), "CIELab"),
        (Tiff::new(6, 8, 3).tag(530, [3, 1]), "YCbCr of other than 4:4:4"),
        (Tiff::new(6, 16, 3).tag(530, [1, 1]), "YCbCr of other than 3 samples"),
        (Tiff::new(5, 8, 3), "CMYK of other than"),
        (Tiff::new(1, 8, 1).tag(259, [3]), "fax compression of other than 1-bit"),
        (Tiff::new(6, 8, 3).tag(259, [6]), "old-style JPEG"),
        (Tiff::new(2, 8, 3).tag(259, [34925]), "LZMA"),
        (Tiff::new(1, 3, 1), "samples of other than 1, 2, 4"),
        (Tiff::new(1, 8, 1).tag(258, [8, 4]).tag(277, [2]), "samples of different"),
    ] {
        let different = name.starts_with("samples of different");
        let file = tiff.strips(&rows);
        let error = decode(&file, &DecodeOptions::default()).unwrap_err();
        assert!(matches!(error, Error::Unsupported { .. }) && error.to_string().contains(name), "{error}");
        assert_eq!(probe(&file, &Limits::default()).is_err(), different, "{name}");
    }
}

/// A row of floating-point samples, stored in a byte order and with predictor 1 (none) or 3 (floating point).
fn float_row(values: &[f64], bits: u32, big_endian: bool, predictor: u32, samples: usize) -> Vec<u8> {
    let big = |value: &f64| match bits {
        16 => half::f16::from_f64(*value).to_be_bytes().to_vec(),
        32 => (*value as f32).to_be_bytes().to_vec(),
        _ => value.to_be_bytes().to_vec(),
    };
    let stored: Vec<Vec<u8>> = values.iter().map(big).collect();
    if predictor == 1 {
        let order = |mut bytes: Vec<u8>| {
            if !big_endian {
                bytes.reverse();
            }
            bytes
        };
        return stored.into_iter().flat_map(order).collect();
    }
    let mut row: Vec<u8> = (0..bits as usize / 8).flat_map(|k| stored.iter().map(move |bytes| bytes[k])).collect();
    for i in (samples..row.len()).rev() {
        row[i] = row[i].wrapping_sub(row[i - samples]);
    }
    row
}

#[test]
fn scales_floating_point_samples_by_the_given_range() {
    let (low, high) = (-1.0, 4.0);
    let options = DecodeOptions::default().with_float_range(FloatRange::new(low, high));
    let value = |x: u32, y: u32, channel: u32| f64::from(sample(x, y, channel)) / 32.0 - 2.0;
    let scaled = |value: f64| ((value - low) / (high - low) * 255.0).clamp(0.0, 255.0).round_ties_even() as u8;
    for (bits, big_endian) in [16, 32, 64].into_iter().flat_map(|bits| [(bits, false), (bits, true)]) {
        for (predictor, samples) in [(1, 1), (1, 3), (3, 1), (3, 3)] {
            let rows: Vec<Vec<u8>> = (0..HEIGHT)
                .map(|y| {
                    let row: Vec<f64> = (0..WIDTH).flat_map(|x| (0..samples).map(move |c| value(x, y, c))).collect();
                    float_row(&row, bits, big_endian, predictor, samples as usize)
                })
                .collect();
            let tiff = Tiff { big_endian, ..Tiff::new(if samples == 3 { 2 } else { 1 }, bits, samples) };
            let file = tiff.tag(339, [3]).tag(259, [8]).tag(317, [predictor]).strips(&rows);
            let expected = pixels(|x, y| [0, 1, 2].map(|c| scaled(value(x, y, c.min(samples - 1)))));
            let case = format!("{bits} bits, big endian: {big_endian}, predictor {predictor}, {samples} samples");
            assert_eq!(decode(&file, &options).unwrap().data, expected, "{case}");
            let refused = decode(&file, &DecodeOptions::default()).unwrap_err();
            assert!(matches!(refused, Error::FloatSamples { .. }), "{case}: {refused}");
            assert!(refused.to_string().contains("`float_range`"), "{refused}");
        }
    }
}

/// White and black codes of T.4, as bits, and the rows that they encode: the first with an end-of-line code that ends at a byte.
#[test]
fn decodes_fax_data_of_every_coding() {
    // 3 white, 7 black, 11 white: 1000 00011 01000; end of line: 000000000001.
    let row = "10000001101000";
    let bits = |text: String| -> Vec<u8> {
        let text = text.replace(' ', "");
        text.as_bytes().chunks(8).map(|b| b.iter().enumerate().fold(0, |v, (i, b)| v | (b - b'0') << (7 - i))).collect()
    };
    let black = |x: u32| (3..10).contains(&x);
    let expected = pixels(|x, _| if black(x) { [0; 3] } else { [255; 3] });
    let end = "000000000001";
    // Vertical mode, unchanged: three changes, that at the end of the row included.
    let same = "111";
    let strip = |first: &str, others: &str| bits(format!("{first}{}", others.repeat(4)));
    let aligned = format!("0000{end}{row}00");
    for (compression, options, strip) in [
        (2, 0, strip(&format!("{row}00"), &format!("{row}00"))),
        (3, 0, strip(&format!("{end}{row}"), &format!("{end}{row}"))),
        (3, 4, strip(&aligned, &aligned)),
        (3, 1, strip(&format!("{end}1{row}"), &format!("{end}0{same}"))),
        (4, 0, strip(&format!("001{}1", "100000011"), same)),
    ] {
        for low_bits_first in [false, true] {
            let mut tiff = Tiff::new(0, 1, 1).tag(259, [compression]).tag(292, [options]).tag(278, [5]);
            let order = |byte: &u8| if low_bits_first { byte.reverse_bits() } else { *byte };
            tiff.chunks = vec![strip.iter().map(order).collect(); HEIGHT.div_ceil(5) as usize];
            let file = tiff.tag(266, [if low_bits_first { 2 } else { 1 }]).bytes(273, 279);
            assert_eq!(decoded(&file), expected, "compression {compression}, options {options}");
        }
    }
}

/// What Pillow 13 writes for `Image.new("1", (64, 16), 0).save(file, "TIFF", compression="group3")`.
#[test]
fn decodes_group_3_as_pillow_writes_it() {
    let mut tiff = Tiff::new(1, 1, 1).tag(259, [3]).tag(256, [64]).tag(257, [16]).tag(278, [16]);
    let strip: Vec<u8> = [
        0x00, 0x1d, 0x9a, 0x80, 0x0e, 0xcd, 0x40, 0x07, 0x66, 0xa0, 0x03, 0xb3, 0x50, 0x01, 0xd9, 0xa8, 0x00, 0xec,
        0xd4, 0x00, 0x76, 0x6a, 0x00, 0x3b, 0x35, 0x00, 0x1d, 0x9a, 0x80, 0x0e, 0xcd, 0x40, 0x07, 0x66, 0xa0, 0x03,
        0xb3, 0x50, 0x01, 0xd9, 0xa8, 0x00, 0xec, 0xd4, 0x00, 0x76, 0x6a, 0x00, 0x3b, 0x35,
    ]
    .into();
    tiff.chunks = vec![strip];
    let pixels = decode(&tiff.bytes(273, 279), &DecodeOptions::default()).unwrap();
    assert_eq!((pixels.width, pixels.height, pixels.data), (64, 16, vec![0; 64 * 16 * 3]));
}

#[test]
fn names_the_row_of_damaged_fax_data() {
    let mut tiff = Tiff::new(0, 1, 1).tag(259, [4]).tag(278, [HEIGHT]);
    // One row that is white, then a code that does not exist.
    tiff.chunks = vec![vec![0b1000_0000, 0, 0]];
    let error = decode(&tiff.bytes(273, 279), &DecodeOptions::default()).unwrap_err();
    let source = std::error::Error::source(&error).unwrap();
    assert_eq!(source.to_string(), "damaged fax data in row 1 of a strip or tile");
    assert!(source.source().is_some());
}

/// The expected pixels are Pillow's `convert("RGB")` of these inks.
#[test]
fn converts_inks_as_pillow_does() {
    let samples =
        [([245, 55, 225, 215], [2, 31, 5]), ([0, 255, 127, 0], [255, 0, 128]), ([254, 1, 128, 126], [1, 128, 64])];
    for (inks, rgb) in samples {
        for planar in [false, true] {
            let row = |plane: usize| vec![inks[plane]; WIDTH as usize];
            let rows = |of: Vec<u8>| vec![of; HEIGHT as usize];
            let tiff = Tiff::new(5, 8, 4).tag(284, [if planar { 2 } else { 1 }]);
            let file = match planar {
                false => tiff.strips(&rows(inks.repeat(WIDTH as usize))),
                true => {
                    let mut tiff = tiff.tag(278, [HEIGHT]);
                    tiff.chunks = (0..4).map(|plane| rows(row(plane)).concat()).collect();
                    tiff.bytes(273, 279)
                }
            };
            assert_eq!(decoded(&file), pixels(|_, _| rgb), "planar: {planar}");
        }
    }
}

#[test]
fn rejects_truncated_files() {
    let file = Tiff::new(1, 8, 1).strips(&packed(8, |x, y| sample(x, y, 0)));
    for end in 4..file.len() {
        let error = decode(&file[..end], &DecodeOptions::default());
        assert!(!matches!(error, Ok(_) | Err(Error::Panic { .. })), "cut at {end}");
    }
}

#[test]
fn checks_limits_before_allocating_a_tile() {
    let mut tiff = Tiff::new(1, 8, 1).tag(322, [1 << 30]).tag(323, [1 << 30]);
    tiff.chunks.push(vec![0; 16]);
    let error = decode(&tiff.bytes(324, 325), &DecodeOptions::default()).unwrap_err();
    assert!(matches!(error, Error::Limit { .. }), "{error}");
}

#[test]
fn headers_say_which_samples_are_not_delivered_as_stored() {
    let changed = |photometric, bits, samples, extra: &[u32]| {
        let tiff = Tiff::new(photometric, bits, samples);
        let tiff = if extra.is_empty() { tiff } else { tiff.tag(338, extra) };
        let row = vec![0; (WIDTH * bits * samples).div_ceil(8) as usize];
        let file = tiff.strips(&vec![row; HEIGHT as usize]);
        EncodedImage::parse(&file).unwrap().stored_samples().unwrap().unchanged()
    };
    let (alpha, other) =
        (Err("an image with alpha, which is dropped"), Err("an image with extra samples, which are dropped"));
    // White is 0, black is 0, and RGB.
    assert_eq!(changed(1, 8, 1, &[]), Ok(PixelFormat::GRAY8));
    assert_eq!(changed(1, 16, 1, &[]), Ok(PixelFormat::GRAY16));
    assert_eq!(changed(2, 8, 3, &[]), Ok(PixelFormat::RGB8));
    assert_eq!(changed(2, 16, 3, &[]), Ok(PixelFormat::RGB16));
    for bits in [8, 16] {
        assert_eq!(changed(0, bits, 1, &[]), Err("an image in which 0 is white, which is inverted"));
        assert_eq!(changed(1, bits, 2, &[2]), alpha);
        assert_eq!(changed(1, bits, 2, &[0]), other);
        assert_eq!(changed(2, bits, 4, &[1]), alpha);
        assert_eq!(changed(2, bits, 4, &[2]), alpha);
        assert_eq!(changed(2, bits, 5, &[0, 0]), other);
    }
    assert_eq!(changed(1, 4, 1, &[]), Err("grey of fewer than 8 bits, which is scaled to 0 to 255"));
}
