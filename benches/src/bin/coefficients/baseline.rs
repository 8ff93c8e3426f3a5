//! The coefficients of a JPEG of one sequential scan without restart intervals, as `shardtool_jpeg::transcode` writes it. Decodes bit
//! by bit (T.81, annex F), so that it shares nothing with the decoder that is compared.

/// Coefficients of a block in zigzag order, not dequantised.
pub(crate) type Block = [i16; 64];

/// The blocks of a component, row by row, with those that only fill the last MCUs.
#[derive(Clone)]
pub(crate) struct Plane {
    pub(crate) blocks: Vec<Block>,
    /// Blocks in a row.
    pub(crate) across: usize,
    /// Rows of blocks in a row of MCUs.
    pub(crate) down: usize,
}

/// A JPEG's coefficients, component by component.
#[derive(Clone)]
pub(crate) struct Coefficients {
    pub(crate) planes: Vec<Plane>,
    /// Rows of MCUs.
    pub(crate) rows: usize,
    /// Rows of pixels in a row of MCUs.
    pub(crate) row_pixels: usize,
}

/// A Huffman table (T.81, annex C): for each length of codes, the first code and the place of its symbol.
#[derive(Default)]
struct Table {
    first: [(u32, usize); 17],
    counts: [u32; 17],
    symbols: Vec<u8>,
}

impl Table {
    fn new(counts: &[u8], symbols: &[u8]) -> Self {
        let mut table = Table { symbols: symbols.to_vec(), ..Table::default() };
        let (mut code, mut place) = (0, 0);
        for length in 1..=16 {
            table.first[length] = (code, place);
            table.counts[length] = counts[length - 1].into();
            code = (code + table.counts[length]) << 1;
            place += usize::from(counts[length - 1]);
        }
        table
    }
}

struct Bits<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Bits<'_> {
    fn bit(&mut self) -> u32 {
        let bit = self.bytes.get(self.at / 8).map_or(0, |byte| byte >> (7 - self.at % 8) & 1);
        self.at += 1;
        bit.into()
    }

    fn symbol(&mut self, table: &Table) -> u8 {
        let mut code = 0;
        for length in 1..=16 {
            code = code << 1 | self.bit();
            let (first, place) = table.first[length];
            if code.wrapping_sub(first) < table.counts[length] {
                return table.symbols[place + (code - first) as usize];
            }
        }
        panic!("a code that the table lacks")
    }

    /// Returns a value of `size` magnitude bits (T.81, F.2.2.1).
    fn value(&mut self, size: u8) -> i16 {
        let bits = (0..size).fold(0, |bits, _| bits << 1 | self.bit() as i32);
        let is_negative = size > 0 && bits >> (size - 1) == 0;
        (if is_negative { bits - (1 << size) + 1 } else { bits }) as i16
    }
}

impl Coefficients {
    /// Parses a JPEG.
    ///
    /// # Panics
    /// For any other than the transcode writes.
    pub(crate) fn parse(jpeg: &[u8]) -> Self {
        let mut tables: [Table; 4] = Default::default();
        let (mut frame, mut at) = (&jpeg[..0], 2);
        loop {
            let (marker, length) = (jpeg[at + 1], usize::from(u16::from_be_bytes([jpeg[at + 2], jpeg[at + 3]])));
            let segment = &jpeg[at + 4..at + 2 + length];
            at += 2 + length;
            match marker {
                0xc0 | 0xc1 => frame = segment,
                0xc4 => {
                    let number = usize::from(segment[0] >> 4 | segment[0] << 1) & 3;
                    tables[number] = Table::new(&segment[1..17], &segment[17..]);
                }
                0xda => break,
                _ => {}
            }
        }
        let mut data = vec![];
        while jpeg[at..at + 2] != [0xff, 0xd9] {
            data.push(jpeg[at]);
            at += if jpeg[at] == 0xff { 2 } else { 1 };
        }
        Self::scan(frame, &tables, &data)
    }

    fn scan(frame: &[u8], tables: &[Table; 4], data: &[u8]) -> Self {
        let side = |at: usize| usize::from(u16::from_be_bytes([frame[at], frame[at + 1]]));
        let (height, width) = (side(1), side(3));
        // The only component of a scan has no sampling factors (T.81, A.2.2).
        let sampling: Vec<(usize, usize)> = match frame[5] {
            1 => vec![(1, 1)],
            _ => frame[6..].chunks_exact(3).map(|c| ((c[1] >> 4).into(), (c[1] & 15).into())).collect(),
        };
        let most = |f: fn(&(usize, usize)) -> usize| sampling.iter().map(f).max().expect("a component");
        let (h, v) = (most(|s| s.0), most(|s| s.1));
        let (across, rows) = (width.div_ceil(8 * h), height.div_ceil(8 * v));
        let plane = |&(h, v): &(usize, usize)| Plane {
            blocks: vec![[0; 64]; across * h * rows * v],
            across: across * h,
            down: v,
        };
        let mut planes: Vec<Plane> = sampling.iter().map(plane).collect();
        let (mut bits, mut before) = (Bits { bytes: data, at: 0 }, vec![0i16; planes.len()]);
        for (row, column) in (0..rows).flat_map(|row| (0..across).map(move |column| (row, column))) {
            for (number, &(h, v)) in sampling.iter().enumerate() {
                // The first component has two tables, the others two; DC and AC alternate in what `transcode` writes.
                let pair = usize::from(number > 0);
                for (y, x) in (0..v).flat_map(|y| (0..h).map(move |x| (y, x))) {
                    let at = (row * v + y) * planes[number].across + column * h + x;
                    let block = &mut planes[number].blocks[at];
                    let size = bits.symbol(&tables[2 * pair]);
                    before[number] = before[number].wrapping_add(bits.value(size));
                    block[0] = before[number];
                    let mut k = 1;
                    while k < 64 {
                        let symbol = bits.symbol(&tables[2 * pair + 1]);
                        match (symbol >> 4, symbol & 15) {
                            (15, 0) => k += 16,
                            (_, 0) => break,
                            (run, size) => {
                                k += usize::from(run);
                                block[k] = bits.value(size);
                                k += 1;
                            }
                        }
                    }
                }
            }
        }
        Coefficients { planes, rows, row_pixels: 8 * v }
    }
}
