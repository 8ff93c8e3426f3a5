//! Parses the segments of an image in order: the tables in force, and the scan headers. Everything that the decoders rely on
//! is checked here; in particular that Huffman tables are prefix codes, and that DC symbols are at most 15.

use super::header::{Color, Component, Frame, Header, Limits, MAX_COMPONENTS, Process, frame_process};
use super::huffman_spec::HuffmanSpec;
use super::segment::{self, APP0, APP14, DAC, DHT, DQT, DRI, EOI, JPG, SOI, SOS, Segment, be16};
use super::standard;
use crate::error::{Error, Feature, Result};

/// The components of a scan with entry points, unless it has a single one. An image of two or four is decoded like one of several scans.
pub(crate) const SEQUENTIAL_COMPONENTS: usize = 3;

/// A component in a scan header.
#[derive(Clone, Copy, Default)]
pub(crate) struct ScanComponent {
    /// Index of the component in the frame.
    pub index: usize,
    /// Indices of its DC and AC table.
    pub tables: (usize, usize),
}

/// A scan header (T.81, B.2.3), and where the scan's data start.
#[derive(Clone, Copy)]
pub(crate) struct ScanHeader {
    components: [ScanComponent; MAX_COMPONENTS],
    count: usize,
    /// First and last zigzag index (Ss, Se).
    pub band: (u8, u8),
    /// Successive approximation (Ah, Al): the number of low bits not yet known before this scan, and after it.
    pub bits: (u8, u8),
    /// MCUs between restart markers; 0 if there are none.
    pub restart_interval: u32,
    /// Byte offset of the SOS marker.
    pub offset: usize,
    /// Byte offset of the entropy-coded data.
    pub data: usize,
}

impl ScanHeader {
    /// The components of the scan, in its order.
    pub(crate) fn components(&self) -> &[ScanComponent] {
        &self.components[..self.count]
    }
}

/// The state of parsing: the position, and the tables in force there.
#[derive(Clone)]
pub(crate) struct Parser<'a> {
    pub jpeg: &'a [u8],
    pub header: Header,
    /// DC and AC tables in force, by index.
    huffman: [[Option<HuffmanSpec<'a>>; 4]; 2],
    /// Quantisation table of each component in natural order: the one in force at its first scan.
    pub quant: [Option<[u16; 64]>; MAX_COMPONENTS],
    quant_in_force: [Option<[u16; 64]>; 4],
    at: usize,
    restart_interval: u32,
    scans_left: u32,
    limits: Limits,
}

impl<'a> Parser<'a> {
    /// Parses the segments up to and including the first scan header. With `samples`, two and four components have no colour space.
    pub(crate) fn start(jpeg: &'a [u8], limits: &Limits, samples: bool) -> Result<(Parser<'a>, ScanHeader)> {
        segment::check_start(jpeg)?;
        let mut frame: Option<Frame> = None;
        let (mut jfif, mut adobe) = (false, None);
        let mut parser = Parser {
            jpeg,
            header: Header {
                width: 0,
                height: 0,
                process: Process::Sequential,
                color: Color::Grey,
                one_scan: false,
                restart_interval: 0,
                components: [Component::default(); MAX_COMPONENTS],
                first_v: 1,
            },
            huffman: [[None; 4]; 2],
            quant: [None; MAX_COMPONENTS],
            quant_in_force: [None; 4],
            at: 2,
            restart_interval: 0,
            scans_left: limits.scans,
            limits: *limits,
        };
        loop {
            let s = segment::next_segment(jpeg, parser.at)?;
            parser.at = s.end;
            match s.marker {
                SOI => return Err(s.error("one SOI", 2u8)),
                EOI => return Err(Error::Ends { offset: s.offset, expected: "a scan" }),
                JPG => return Err(Error::Unsupported(Feature::Arithmetic)),
                APP0 if s.body.len() >= 14 && s.body.starts_with(b"JFIF\0") => jfif = true,
                APP14 if s.body.len() >= 12 && s.body.starts_with(b"Adobe") => adobe = Some(s.body[11]),
                SOS => {
                    let frame = frame.ok_or_else(|| s.error("a frame header before the first scan", 0u8))?;
                    parser.header = frame.header(jfif, adobe, samples)?;
                    parser.header.restart_interval = parser.restart_interval;
                    let scan = parser.scan_header(&s)?;
                    let components = parser.header.components().len();
                    parser.header.one_scan = scan.components().len() == components
                        && matches!(components, 1 | SEQUENTIAL_COMPONENTS)
                        && parser.header.process == Process::Sequential;
                    return Ok((parser, scan));
                }
                marker => match frame_process(marker) {
                    Some(process) => {
                        let process = process?;
                        if frame.is_some() {
                            return Err(s.error("one frame header", 2u8));
                        }
                        frame = Some(Frame::parse(&s, process, limits)?);
                    }
                    None => parser.parse_tables(&s)?,
                },
            }
        }
    }

    /// Parses the next scan header, after the entropy-coded data that end at byte `from`; `None` at the end of the image.
    pub(crate) fn next_scan(&mut self, from: usize) -> Result<Option<ScanHeader>> {
        self.at = from;
        loop {
            let s = segment::next_segment(self.jpeg, self.at)?;
            self.at = s.end;
            match s.marker {
                EOI => return Ok(None),
                SOS => return self.scan_header(&s).map(Some),
                SOI => return Err(s.error("one SOI", 2u8)),
                0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => return Err(s.error("one frame header", 2u8)),
                0x02..=0xbf | JPG | 0xde | 0xdf | 0xf0..=0xfd => return Err(s.error("a marker of an image", s.marker)),
                _ => self.parse_tables(&s)?,
            }
        }
    }

    /// The limits in force.
    pub(crate) fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Parses a segment that may define tables; ignores others.
    fn parse_tables(&mut self, s: &Segment<'a>) -> Result<()> {
        match s.marker {
            DQT => self.quantisation_tables(s),
            DHT => self.huffman_tables(s),
            DRI if s.body.len() == 2 => {
                self.restart_interval = u32::from(be16(s.body, 0));
                Ok(())
            }
            DAC => check_conditioning(s),
            DRI => Err(s.error("2 bytes", s.body.len() as u64)),
            _ => Ok(()),
        }
    }

    fn quantisation_tables(&mut self, s: &Segment<'a>) -> Result<()> {
        let mut body = s.body;
        while let [head, rest @ ..] = body {
            // Any precision other than 0 is that of 16 bits in libjpeg.
            let (wide, number) = (usize::from(*head > 15), usize::from(head & 15));
            if number > 3 {
                return Err(s.error("a table with an index from 0 to 3", *head));
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

    fn huffman_tables(&mut self, s: &Segment<'a>) -> Result<()> {
        let mut body = s.body;
        while let [head, rest @ ..] = body {
            let (class, number) = (usize::from(head >> 4), usize::from(head & 15));
            if class > 1 || number > 3 {
                return Err(s.error("a DC or AC table from 0 to 3", *head));
            }
            let counts = rest.first_chunk::<16>().ok_or_else(|| s.error("16 counts of codes", rest.len() as u64))?;
            let n: usize = counts.iter().map(|&c| usize::from(c)).sum();
            let symbols = rest.get(16..16 + n).ok_or_else(|| s.error("a symbol for every code", n as u64))?;
            let spec = HuffmanSpec { counts, symbols };
            if n > 256 {
                return Err(s.error("at most 256 codes", n as u64));
            }
            self.huffman[class][number] = Some(spec);
            body = &rest[16 + n..];
        }
        Ok(())
    }

    fn scan_header(&mut self, s: &Segment<'a>) -> Result<ScanHeader> {
        let allowed = self.limits.scans;
        let found = allowed - self.scans_left + 1;
        let beyond = Error::Limit { what: "scans", allowed: allowed.into(), found: found.into() };
        self.scans_left = self.scans_left.checked_sub(1).ok_or(beyond)?;
        let count = usize::from(*s.body.first().ok_or_else(|| s.error("a number of components", 0u8))?);
        if count == 0 || count > self.header.components().len() {
            return Err(s.error("as many components as the frame has, or fewer", count as u64));
        }
        let parameters = s.body[1..].get(2 * count..).and_then(|b| <[u8; 3]>::try_from(b).ok());
        let expected = "two bytes a component and four more";
        let [first, last, bits] = parameters.ok_or_else(|| s.error(expected, s.body.len() as u64))?;
        let mut scan = ScanHeader {
            components: [ScanComponent::default(); MAX_COMPONENTS],
            count,
            band: (first, last),
            bits: (bits >> 4, bits & 15),
            restart_interval: self.restart_interval,
            offset: s.offset,
            data: s.end,
        };
        for i in 0..count {
            let (id, tables) = (s.body[1 + 2 * i], s.body[2 + 2 * i]);
            // libjpeg takes the first component with this identifier that is not before the place in the scan (`get_sos`), so
            // that components may share an identifier and those of a scan in a wrong order are refused.
            let named = (i..self.header.components().len()).find(|&n| self.header.components[n].id == id);
            let index = named.ok_or_else(|| s.error("a component of the frame, in the frame's order", id))?;
            if scan.components[..i].iter().any(|c| c.index == index) {
                return Err(s.error("each component once", id));
            }
            scan.components[i] = ScanComponent { index, tables: (usize::from(tables >> 4), usize::from(tables & 15)) };
            if self.quant[index].is_none() {
                let number = self.header.components[index].table;
                let table = self.quant_in_force.get(usize::from(number)).copied().flatten();
                self.quant[index] = Some(table.ok_or_else(|| s.error("the quantisation table it names", number))?);
            }
        }
        let blocks =
            |c: &ScanComponent| u32::from(self.header.components[c.index].h * self.header.components[c.index].v);
        // T.81 allows ten blocks in an MCU.
        if count > 1 && scan.components().iter().map(blocks).sum::<u32>() > 10 {
            return Err(Error::Unsupported(Feature::McuBlocks));
        }
        match self.header.process {
            // Sequential scans have no band and no successive approximation; libjpeg ignores these fields too.
            Process::Sequential => (scan.band, scan.bits) = ((0, 63), (0, 0)),
            Process::Progressive => check_progression(&scan, s)?,
        }
        Ok(scan)
    }

    /// Returns the Huffman table in force, or the standard one, which Motion JPEG omits.
    pub(crate) fn huffman_spec(&self, scan: &ScanHeader, dc: bool, number: usize) -> Result<HuffmanSpec<'a>> {
        let spec = self.huffman[usize::from(!dc)]
            .get(number)
            .copied()
            .flatten()
            .or_else(|| standard::huffman_spec(dc, number).filter(|_| self.header.process == Process::Sequential));
        let fail = |expected, found| Error::Segment { marker: SOS, offset: scan.offset, expected, found };
        let spec = spec.ok_or_else(|| fail("the Huffman table it names", number as u64))?;
        // libjpeg looks at the tables that a scan uses.
        if !spec.is_prefix_code() {
            return Err(fail("a Huffman table whose counts describe a prefix code", spec.symbols.len() as u64));
        }
        match spec.symbols.iter().find(|&&s| dc && s > 15) {
            Some(&s) => Err(fail("DC symbols up to 15", s.into())),
            None => Ok(spec),
        }
    }
}

/// Checks the conditioning of arithmetic coding, which no image uses that is decoded here (T.81, B.2.4.3).
fn check_conditioning(s: &Segment<'_>) -> Result<()> {
    let (pairs, rest) = s.body.as_chunks::<2>();
    let wrong = |[index, value]: &&[u8; 2]| *index > 31 || (*index < 16 && value & 15 > value >> 4);
    match (pairs.iter().find(wrong), rest) {
        (None, []) => Ok(()),
        (wrong, _) => {
            Err(s.error("pairs of an index and its conditioning", wrong.map_or(s.body.len() as u64, |w| w[0].into())))
        }
    }
}

/// Checks band and successive approximation of a progressive scan (T.81, G.1.1.1).
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
