//! The state over an image's segments: the tables in force, the scans. Everything a decoder relies on is checked here.

use crate::error::{Error, Feature, Result};
use crate::huffman::HuffmanSpec;
use crate::markers::header::{Color, Component, Frame, Header, Limits, Process};
use crate::markers::segment::{self, APP0, APP14, DAC, DHT, DNL, DQT, DRI, EOI, SOI, SOS, Segment, be16};
use crate::markers::standard;

/// One component's part in a scan.
#[derive(Clone, Copy, Default)]
pub(crate) struct ScanComponent {
    /// Index of the component in the frame.
    pub index: usize,
    /// Number of the DC and of the AC table.
    pub tables: (usize, usize),
}

/// One scan: its header and where its data start.
#[derive(Clone, Copy)]
pub(crate) struct ScanHeader {
    components: [ScanComponent; 3],
    count: usize,
    /// First and last coefficient, in zigzag order.
    pub band: (u8, u8),
    /// Successive approximation: bits not yet known before, and after this scan.
    pub bits: (u8, u8),
    /// MCUs between restarts, or 0.
    pub restart_interval: u32,
    /// Where the SOS marker is.
    pub offset: usize,
    /// First byte of the entropy-coded data.
    pub data: usize,
}

impl ScanHeader {
    pub(crate) fn components(&self) -> &[ScanComponent] {
        &self.components[..self.count]
    }
}

/// Walks the segments of an image and remembers the tables in force.
pub(crate) struct Parser<'a> {
    pub jpeg: &'a [u8],
    pub header: Header,
    /// DC and AC tables in force.
    pub huffman: [[Option<HuffmanSpec<'a>>; 4]; 2],
    /// Quantisation table of each component, in natural order, fixed by its first scan.
    pub quant: [Option<[u16; 64]>; 3],
    quant_in_force: [Option<[u16; 64]>; 4],
    at: usize,
    restart_interval: u32,
    scans_left: u32,
    max_scans: u32,
}

impl<'a> Parser<'a> {
    /// Reads up to the end of the first scan's header.
    pub(crate) fn start(jpeg: &'a [u8], limits: &Limits) -> Result<(Parser<'a>, ScanHeader)> {
        segment::check_start(jpeg)?;
        let mut frame: Option<(Frame, Segment<'a>)> = None;
        let (mut jfif, mut adobe) = (false, None);
        let mut reader = Parser {
            jpeg,
            header: Header {
                width: 0,
                height: 0,
                process: Process::Sequential,
                color: Color::Grey,
                one_scan: false,
                restart_interval: 0,
                components: [Component::default(); 3],
            },
            huffman: [[None; 4]; 2],
            quant: [None; 3],
            quant_in_force: [None; 4],
            at: 2,
            restart_interval: 0,
            scans_left: limits.scans,
            max_scans: limits.scans,
        };
        loop {
            let s = segment::next(jpeg, reader.at)?;
            reader.at = s.end;
            match s.marker {
                SOI => return Err(s.error("one SOI", 2u8)),
                EOI => return Err(Error::Ends { offset: s.offset, expected: "a scan" }),
                0xc3 | 0xc5..=0xc7 => return Err(Error::Unsupported(Feature::Lossless)),
                0xc8..=0xcf if s.marker != DAC => return Err(Error::Unsupported(Feature::Arithmetic)),
                0xc0..=0xc2 if frame.is_some() => return Err(s.error("one frame header", 2u8)),
                0xc0..=0xc2 => frame = Some((Frame::parse(&s, limits)?, s)),
                APP0 if s.body.len() >= 14 && s.body.starts_with(b"JFIF\0") => jfif = true,
                APP14 if s.body.len() >= 12 && s.body.starts_with(b"Adobe") => adobe = Some(s.body[11]),
                SOS => {
                    let (frame, _) = frame.ok_or_else(|| s.error("a frame header before the first scan", 0u8))?;
                    reader.header = frame.header(jfif, adobe)?;
                    reader.header.restart_interval = reader.restart_interval;
                    let scan = reader.scan(&s)?;
                    let in_order = scan.components().iter().map(|c| c.index).eq(0..reader.header.components().len());
                    reader.header.one_scan = in_order && reader.header.process == Process::Sequential;
                    return Ok((reader, scan));
                }
                _ => reader.tables(&s)?,
            }
        }
    }

    /// The next scan after the entropy-coded data that end at byte `from`; `None` at the end of the image.
    pub(crate) fn next_scan(&mut self, from: usize) -> Result<Option<ScanHeader>> {
        self.at = from;
        loop {
            let s = segment::next(self.jpeg, self.at)?;
            self.at = s.end;
            match s.marker {
                EOI => return Ok(None),
                SOS => return self.scan(&s).map(Some),
                0xc0..=0xc3 | 0xc5..=0xc7 => return Err(s.error("one frame header", 2u8)),
                _ => self.tables(&s)?,
            }
        }
    }

    /// Takes in a segment that may hold tables.
    fn tables(&mut self, s: &Segment<'a>) -> Result<()> {
        match s.marker {
            DQT => self.quantisation(s),
            DHT => self.codes(s),
            DRI if s.body.len() == 2 => {
                self.restart_interval = u32::from(be16(s.body, 0));
                Ok(())
            }
            DRI => Err(s.error("2 bytes", s.body.len() as u64)),
            DNL => Err(Error::Unsupported(Feature::Height)),
            _ => Ok(()),
        }
    }

    fn quantisation(&mut self, s: &Segment<'a>) -> Result<()> {
        let mut body = s.body;
        while let [head, rest @ ..] = body {
            let (wide, number) = (usize::from(head >> 4), usize::from(head & 15));
            if wide > 1 || number > 3 {
                return Err(s.error("a table of 8 or 16 bits numbered 0 to 3", *head));
            }
            let size = 64 << wide;
            let values = rest.get(..size).ok_or_else(|| s.error("a whole quantisation table", rest.len() as u64))?;
            let mut table = [0; 64];
            for (k, &natural) in standard::ZIGZAG.iter().enumerate() {
                let value = if wide == 1 { be16(values, 2 * k) } else { u16::from(values[k]) };
                table[usize::from(natural)] = value;
            }
            self.quant_in_force[number] = Some(table);
            body = &rest[size..];
        }
        Ok(())
    }

    fn codes(&mut self, s: &Segment<'a>) -> Result<()> {
        let mut body = s.body;
        while let [head, rest @ ..] = body {
            let (class, number) = (usize::from(head >> 4), usize::from(head & 15));
            if class > 1 || number > 3 {
                return Err(s.error("a DC or AC table numbered 0 to 3", *head));
            }
            let counts = rest.first_chunk::<16>().ok_or_else(|| s.error("16 counts of codes", rest.len() as u64))?;
            let n: usize = counts.iter().map(|&c| usize::from(c)).sum();
            let symbols = rest.get(16..16 + n).ok_or_else(|| s.error("a symbol for every code", n as u64))?;
            let spec = HuffmanSpec { counts, symbols };
            if n > 256 || !spec.is_code() {
                return Err(s.error("counts that describe a prefix code", n as u64));
            }
            self.huffman[class][number] = Some(spec);
            body = &rest[16 + n..];
        }
        Ok(())
    }

    fn scan(&mut self, s: &Segment<'a>) -> Result<ScanHeader> {
        let found = self.max_scans - self.scans_left + 1;
        let beyond = Error::Limit { what: "scans", allowed: self.max_scans.into(), found: found.into() };
        self.scans_left = self.scans_left.checked_sub(1).ok_or(beyond)?;
        let count = usize::from(*s.body.first().ok_or_else(|| s.error("a number of components", 0u8))?);
        if count == 0 || count > self.header.components().len() {
            return Err(s.error("as many components as the frame has, or fewer", count as u64));
        }
        let [first, last, bits] = *s.body[1..]
            .get(2 * count..)
            .and_then(|b| b.first_chunk::<3>())
            .ok_or_else(|| s.error("two bytes a component and three more", s.body.len() as u64))?;
        let mut scan = ScanHeader {
            components: [ScanComponent::default(); 3],
            count,
            band: (first, last),
            bits: (bits >> 4, bits & 15),
            restart_interval: self.restart_interval,
            offset: s.offset,
            data: s.end,
        };
        for i in 0..count {
            let (id, tables) = (s.body[1 + 2 * i], s.body[2 + 2 * i]);
            let named = self.header.components().iter().position(|c| c.id == id);
            let index = named.ok_or_else(|| s.error("a component of the frame", id))?;
            if scan.components[..i].iter().any(|c| c.index == index) {
                return Err(s.error("each component once", id));
            }
            if tables >> 4 > 3 || tables & 15 > 3 {
                return Err(s.error("tables numbered 0 to 3", tables));
            }
            scan.components[i] = ScanComponent { index, tables: (usize::from(tables >> 4), usize::from(tables & 15)) };
            if self.quant[index].is_none() {
                let number = self.header.components[index].table;
                let table = self.quant_in_force[usize::from(number)];
                self.quant[index] = Some(table.ok_or_else(|| s.error("the quantisation table it names", number))?);
            }
        }
        match self.header.process {
            // What a sequential scan says of bands and bits means nothing, and libjpeg ignores it too.
            Process::Sequential => (scan.band, scan.bits) = ((0, 63), (0, 0)),
            Process::Progressive => check_progression(&scan, s)?,
        }
        Ok(scan)
    }

    /// The table in force, or the standard one that motion JPEG leaves out.
    pub(crate) fn spec(&self, scan: &ScanHeader, dc: bool, number: usize) -> Result<HuffmanSpec<'a>> {
        let spec = self.huffman[usize::from(!dc)][number].or_else(|| standard::spec(dc, number));
        let fail = |expected, found| Error::Segment { marker: SOS, offset: scan.offset, expected, found };
        let spec = spec.ok_or_else(|| fail("the Huffman table it names", number as u64))?;
        match spec.symbols.iter().find(|&&s| dc && s > 15) {
            Some(&s) => Err(fail("DC symbols up to 15", s.into())),
            None => Ok(spec),
        }
    }
}

fn check_progression(scan: &ScanHeader, s: &Segment<'_>) -> Result<()> {
    let ((first, last), (high, low)) = (scan.band, scan.bits);
    let dc = first == 0;
    if last > 63 || first > last || (dc && last != 0) {
        return Err(s.error("a band of DC alone, or of AC up to 63", last));
    }
    if !dc && scan.count != 1 {
        return Err(s.error("one component in an AC scan", scan.count as u64));
    }
    if low > 13 || (high != 0 && high != low + 1) {
        return Err(s.error("one bit more precision than before", low));
    }
    Ok(())
}
