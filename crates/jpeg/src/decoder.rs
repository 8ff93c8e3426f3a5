//! The decoder: from a request to pixels, by the shortest way that the file allows.

use crate::coefficients::Coefficients;
use crate::entries;
use crate::error::Result;
use crate::header::{Header, Limits, Process, Reader, Scan};
use crate::huffman::Memory;
use crate::idct::Blocks;
use crate::layout::{Layout, Request};
use crate::plain::Plain;
use crate::raster::{self, Raster};
use crate::sequential::{Course, Fall, Shape, Walk, predict};

/// Decodes JPEGs, one after the other, in memory that it keeps: once it has seen images as large as any to come, it
/// allocates nothing.
///
/// ```no_run
/// use shardtool_jpeg::{Decoder, Header, Limits, Request, Scale};
///
/// let jpeg = std::fs::read("photograph.jpg").unwrap();
/// let header = Header::parse(&jpeg, &Limits::default())?;
/// let (width, height) = header.size(Scale::Full);
/// let stride = width as usize * 3;
/// let mut pixels = vec![0; stride * height as usize];
/// Decoder::new().decode(&jpeg, None, &Request::default(), &mut pixels, stride)?;
/// # Ok::<(), shardtool_jpeg::Error>(())
/// ```
pub struct Decoder {
    limits: Limits,
    pub(crate) features: Features,
    pub(crate) memory: Memory,
    pub(crate) plain: Plain,
    pub(crate) coefs: Vec<i16>,
    pub(crate) last: Vec<u8>,
    starts: Vec<Walk>,
    raster: Raster,
    whole: Coefficients,
}

/// What the processor can do, and may.
#[derive(Clone, Copy)]
pub(crate) struct Features {
    /// AVX2, for transforms and pixels.
    pub avx2: bool,
    /// BMI1, BMI2, LZCNT and MOVBE, for the entropy decoder.
    pub bmi2: bool,
}

impl Features {
    const PORTABLE: Features = Features { avx2: false, bmi2: false };

    fn detect() -> Features {
        #[cfg(target_arch = "x86_64")]
        if std::env::var_os("SHARDTOOL_JPEG_PORTABLE").is_none_or(|v| v != "1") {
            let bmi2 = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
            return Features {
                avx2: is_x86_feature_detected!("avx2"),
                bmi2: bmi2 && is_x86_feature_detected!("lzcnt") && is_x86_feature_detected!("movbe"),
            };
        }
        Features::PORTABLE
    }
}

/// By which way an image was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Entered by entry points.
    Entries,
    /// Entered by restart markers, one every few rows of MCUs.
    Restarts,
    /// From the scan's start, up to the last row needed.
    Start,
    /// All scans, into coefficients of the whole image (progressive, or components in scans of their own).
    Scans,
}

/// What a decode did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// Width of the pixels written.
    pub width: u32,
    /// Height of the pixels written.
    pub height: u32,
    /// The way taken.
    pub path: Path,
    /// Whether entry points were given that do not fit the image, so that it was decoded without them.
    pub entries_rejected: bool,
}

/// Rows of MCUs from one start to the next, at most, for several segments to be decoded at once: more would take too much
/// memory.
pub(crate) const MAX_STEP: u32 = 8;

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

impl Decoder {
    /// A decoder with default limits. It uses the vector and bit instructions of the processor it runs on, unless the
    /// environment variable `SHARDTOOL_JPEG_PORTABLE` is 1; the results are the same.
    #[must_use]
    pub fn new() -> Decoder {
        Decoder {
            limits: Limits::default(),
            features: Features::detect(),
            memory: Memory::new(),
            plain: Plain::default(),
            coefs: Vec::new(),
            last: Vec::new(),
            starts: Vec::new(),
            raster: Raster::default(),
            whole: Coefficients::default(),
        }
    }

    /// The same decoder with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Decoder {
        self.limits = limits;
        self
    }

    /// The same decoder, with (if the processor has them) or without vector and bit instructions.
    #[must_use]
    pub fn with_simd(mut self, simd: bool) -> Decoder {
        self.features = if simd { Features::detect() } else { Features::PORTABLE };
        self
    }

    /// Limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Decodes what `request` asks for to RGB, `[height, width, 3]` with `stride` bytes from row to row, into `out`;
    /// grey is repeated three times. `entries` are the image's entry points ([`entries::find`]), if there are any; they
    /// are checked on the way, and left aside where they do not fit.
    ///
    /// The pixels are those of libjpeg-turbo with its default settings, and those of a rectangle are those of the whole
    /// image.
    ///
    /// # Errors
    /// What is wrong with the image, the rectangle or the buffer. After an error `out` holds anything.
    pub fn decode(
        &mut self,
        jpeg: &[u8],
        entries: Option<&[u8]>,
        request: &Request,
        out: &mut [u8],
        stride: usize,
    ) -> Result<Outcome> {
        let (reader, scan) = Reader::start(jpeg, &self.limits)?;
        let layout = Layout::new(&reader.header, &reader.quant, request)?;
        layout.check_buffer(out.len(), stride)?;
        let (width, height) = (layout.rect.width, layout.rect.height);
        let outcome = |path, entries_rejected| Outcome { width, height, path, entries_rejected };

        let shape = match reader.header.process {
            Process::Sequential => Shape::new(&reader, &scan, &mut self.memory)?,
            Process::Progressive => None,
        };
        let Some(shape) = shape else {
            self.scans(reader, &scan, request, out, stride)?;
            return Ok(outcome(Path::Scans, entries.is_some()));
        };
        let target = Target { header: &reader.header, layout: &layout, shape: &shape };
        let entries = entries.filter(|e| !e.is_empty());
        if let Some(entries) = entries {
            let step = entries::locate(&target, jpeg, &scan, entries, &mut self.plain, &mut self.starts);
            if let Some(step) = step
                && self.groups(&target, step, out, stride).is_ok()
            {
                return Ok(outcome(Path::Entries, false));
            }
        }
        self.plain.fill(jpeg, scan.data);
        if let Some(step) = self.restarts(&target) {
            self.groups(&target, step, out, stride).map_err(|f| f.error(&reader.header, &self.plain))?;
            return Ok(outcome(Path::Restarts, entries.is_some()));
        }
        self.rows(&target, out, stride).map_err(|f| f.error(&reader.header, &self.plain))?;
        Ok(outcome(Path::Start, entries.is_some()))
    }

    /// Bytes of memory that decoding `request` of that image takes beside the image and the pixels, at most.
    ///
    /// # Errors
    /// As [`Decoder::decode`], for the rectangle.
    pub fn scratch_bytes(header: &Header, request: &Request, jpeg_bytes: usize) -> Result<usize> {
        let layout = Layout::new(header, &[None; 3], request)?;
        let rows = match header.process {
            Process::Sequential => 2 * MAX_STEP.min(layout.mcus.1) as usize,
            Process::Progressive => layout.mcus.1 as usize + 1,
        };
        Ok(raster::bytes(&layout) + rows * layout.row_blocks() * (64 * 2 + 1) + jpeg_bytes + FIXED_SCRATCH)
    }

    /// Bytes of memory that this decoder holds now.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let starts = self.starts.capacity() * size_of::<Walk>();
        let coefs = self.coefs.capacity() * 2 + self.last.capacity() + self.whole.capacity();
        coefs + starts + self.plain.capacity() + self.raster.capacity()
    }

    /// Gives back memory beyond `bytes`, for instance after an exceptionally large image.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.held_bytes() > bytes {
            (self.coefs, self.last, self.starts) = (Vec::new(), Vec::new(), Vec::new());
            (self.plain, self.raster, self.whole) = (Plain::default(), Raster::default(), Coefficients::default());
        }
    }

    /// Starts at restart markers, if they come every few whole rows of MCUs and are all there. Returns the number of rows.
    fn restarts(&mut self, target: &Target<'_>) -> Option<u32> {
        let shape = target.shape;
        let across = u64::from(shape.mcus.0);
        let step = shape.interval / across;
        if !shape.interval.is_multiple_of(across) || !(1..=u64::from(MAX_STEP)).contains(&step) {
            return None;
        }
        let step = step as u32;
        let groups = shape.mcus.1.div_ceil(step) as usize;
        let numbered = |(i, p): (usize, &crate::plain::Piece)| i == 0 || p.restart == Some(((i - 1) & 7) as u8);
        if self.plain.pieces().len() != groups || !self.plain.pieces().iter().enumerate().all(numbered) {
            return None;
        }
        self.starts.clear();
        self.starts.extend(
            (0..)
                .zip(self.plain.pieces())
                .map(|(i, piece)| Walk::at(shape, &self.plain, i as u64 * shape.interval, piece.start * 8, i, [0; 3])),
        );
        Some(step)
    }

    /// Decodes from known starts, one every `step` rows of MCUs, two segments at a time. Each segment must end where the
    /// next one begins.
    fn groups(
        &mut self,
        target: &Target<'_>,
        step: u32,
        out: &mut [u8],
        stride: usize,
    ) -> std::result::Result<(), Fall> {
        let Target { header, layout, shape } = *target;
        let across = u64::from(shape.mcus.0);
        let (half, half_blocks) = (shape.coefs(step as usize), step as usize * shape.row_blocks());
        self.coefs.resize(2 * half, 0);
        self.last.resize(2 * half_blocks, 0);
        self.raster.begin(layout);
        let Decoder { features, memory, plain, coefs, last, starts, raster, .. } = self;
        shape.with_tables(memory, |tables| {
            let course = Course { shape, plain, tables, fast: features.bmi2 };
            let rows = |group: u32| group * step..((group + 1) * step).min(shape.mcus.1);
            let needed = layout.mcu_rows.start / step..layout.mcu_rows.end.div_ceil(step);
            // `starts` begins with group 0 or with the first one needed.
            let first = starts.first().map_or(0, |w| (w.mcu / across) as u32 / step);
            let start = |group: u32| starts.get((group - first) as usize).copied();
            for group in needed.clone().step_by(2) {
                coefs.fill(0);
                let (coefs_a, coefs_b) = coefs.split_at_mut(half);
                let (last_a, last_b) = last.split_at_mut(half_blocks);
                let pair = [group, group + 1].map(|g| needed.contains(&g).then(|| (g, start(g))));
                let mut walks = pair.map(|p| p.and_then(|(_, w)| w));
                let mcus = [group, group + 1].map(|g| rows(g).len() as u64 * across);
                match &mut walks {
                    [Some(a), Some(b)] if a.is_unbroken(mcus[0]) && b.is_unbroken(mcus[1]) => {
                        let (coefs, last) = ((&mut *coefs_a, &mut *coefs_b), (&mut *last_a, &mut *last_b));
                        Walk::step_two(&course, (a, b), (mcus[0], mcus[1]), coefs, last)?;
                    }
                    [a, b] => {
                        if let Some(a) = a {
                            a.step(&course, mcus[0], coefs_a, last_a)?;
                        }
                        if let Some(b) = b {
                            b.step(&course, mcus[1], coefs_b, last_b)?;
                        }
                    }
                }
                for (walk, group, coefs, last) in
                    [(walks[0], group, coefs_a, last_a), (walks[1], group + 1, coefs_b, last_b)]
                {
                    let Some(mut walk) = walk else { continue };
                    let blocks = rows(group).len() * shape.row_blocks();
                    let before = u64::from(group * step) * across;
                    predict(shape, before, &mut walk.predictors, &mut coefs[..blocks * 64]);
                    let next = start(group + 1);
                    if next.is_some_and(|next| !walk.meets(&course, &next)) {
                        return Err(walk.fall(crate::error::Damage::LeftOver));
                    }
                    for (i, row) in rows(group).enumerate() {
                        if layout.mcu_rows.contains(&row) {
                            let strip = Strip { coefs, last, first: i * shape.row_blocks() };
                            strip.push(*features, layout, shape, raster);
                            raster.drain(features.avx2, layout, header.color, out, stride);
                        }
                    }
                }
            }
            Ok(())
        })
    }

    /// Decodes from the scan's start up to the last row of MCUs needed.
    fn rows(&mut self, target: &Target<'_>, out: &mut [u8], stride: usize) -> std::result::Result<(), Fall> {
        let Target { header, layout, shape } = *target;
        self.coefs.resize(shape.coefs(1).max(self.coefs.len()), 0);
        self.last.resize(shape.row_blocks().max(self.last.len()), 0);
        self.raster.begin(layout);
        let Decoder { features, memory, plain, coefs, last, raster, .. } = self;
        let coefs = &mut coefs[..shape.coefs(1)];
        shape.with_tables(memory, |tables| {
            let course = Course { shape, plain, tables, fast: features.bmi2 };
            let mut walk = Walk::at(shape, plain, 0, 0, 0, [0; 3]);
            for row in 0..layout.mcu_rows.end {
                // Rows above the rectangle leave nothing but their DC behind, so they may overwrite each other.
                if row == 0 || row >= layout.mcu_rows.start {
                    coefs.fill(0);
                }
                let mcu = walk.mcu;
                walk.step(&course, shape.mcus.0.into(), coefs, last)?;
                predict(shape, mcu, &mut walk.predictors, &mut coefs[..shape.row_blocks() * 64]);
                if row >= layout.mcu_rows.start {
                    Strip { coefs, last, first: 0 }.push(*features, layout, shape, raster);
                    raster.drain(features.avx2, layout, header.color, out, stride);
                }
            }
            Ok(())
        })
    }

    /// Decodes all scans of an image whose coefficients do not come in the order of the pixels.
    fn scans(
        &mut self,
        reader: Reader<'_>,
        scan: &Scan,
        request: &Request,
        out: &mut [u8],
        stride: usize,
    ) -> Result<()> {
        let header = reader.header;
        let quant = self.whole.read(reader, scan, &mut self.plain)?;
        self.whole.find_last();
        let layout = Layout::new(&header, &quant, request)?;
        self.raster.begin(&layout);
        for row in layout.mcu_rows.clone() {
            for (i, plane) in layout.planes().iter().enumerate() {
                self.raster.push(self.features.avx2, plane, i, |v| self.whole.row(i, row * plane.v + v));
            }
            self.raster.drain(self.features.avx2, &layout, header.color, out, stride);
        }
        Ok(())
    }
}

/// Memory that does not depend on the image: tables, slack.
const FIXED_SCRATCH: usize = 16 * (4 * 4096 + 1024) + 4096;

/// What is decoded, and how.
#[derive(Clone, Copy)]
pub(crate) struct Target<'a> {
    pub header: &'a Header,
    pub layout: &'a Layout,
    pub shape: &'a Shape,
}

/// The coefficients of a row of MCUs, in the order of the scan.
struct Strip<'a> {
    coefs: &'a [i16],
    last: &'a [u8],
    /// Index of the first block.
    first: usize,
}

impl Strip<'_> {
    fn push(&self, features: Features, layout: &Layout, shape: &Shape, raster: &mut Raster) {
        for (i, plane) in layout.planes().iter().enumerate() {
            raster.push(features.avx2, plane, i, |v| Blocks {
                coefs: self.coefs,
                last: self.last,
                first: self.first + (plane.first + v * plane.h) as usize,
                run: plane.h as usize,
                step: shape.count,
            });
        }
    }
}
