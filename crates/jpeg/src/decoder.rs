//! The decoder: from a request to pixels, by the shortest way that the file allows.

use crate::ahead::Pace;
use crate::coefficients::Coefficients;
use crate::entries;
use crate::error::Result;
use crate::header::{Header, Limits};
use crate::huffman::Memory;
use crate::layout::{Layout, Request};
use crate::plain::{self, Plain};
use crate::raster::{self, Raster};
use crate::reader::{Reader, Scan};
use crate::sequential::{Shape, Walk};
use crate::strips::Target;

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
    pub(crate) pace: Pace,
    /// MCUs that came from guesses.
    pub(crate) guessed: u64,
    pub(crate) memory: Memory,
    pub(crate) plain: Plain,
    pub(crate) coefs: Vec<i16>,
    pub(crate) last: Vec<u8>,
    pub(crate) marks: Vec<u32>,
    pub(crate) starts: Vec<Walk>,
    pub(crate) raster: Raster,
    pub(crate) whole: Coefficients,
}

/// What the processor can do, and may.
#[derive(Clone, Copy)]
pub(crate) struct Features {
    /// AVX2, for transforms and pixels.
    pub avx2: bool,
    /// AVX-512 (F and BW), for the transform of whole blocks.
    pub avx512: bool,
    /// BMI1, BMI2, LZCNT and MOVBE, for the entropy decoder.
    pub bmi2: bool,
}

impl Features {
    pub(crate) const PORTABLE: Features = Features { avx2: false, avx512: false, bmi2: false };

    pub(crate) fn detect() -> Features {
        #[cfg(target_arch = "x86_64")]
        if std::env::var_os("SHARDTOOL_JPEG_PORTABLE").is_none_or(|v| v != "1") {
            let bmi2 = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
            return Features {
                avx2: is_x86_feature_detected!("avx2"),
                avx512: is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"),
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
            pace: Pace::BEST,
            guessed: 0,
            memory: Memory::new(),
            plain: Plain::default(),
            coefs: Vec::new(),
            last: Vec::new(),
            marks: Vec::new(),
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

    /// The same decoder, for tests: it guesses wherever it can, not only where that is faster.
    #[doc(hidden)]
    #[must_use]
    pub fn with_eager_guesses(mut self) -> Decoder {
        self.pace = Pace::EAGER;
        self
    }

    /// MCUs that came from guesses that were met, for tests: of all images so far.
    #[doc(hidden)]
    #[must_use]
    pub fn guessed_mcus(&self) -> u64 {
        self.guessed
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

        let Some(mut shape) = Shape::new(&reader, &scan)? else {
            self.scans(reader, &scan, request, out, stride)?;
            return Ok(outcome(Path::Scans, entries.is_some()));
        };
        shape.prepare(&reader, &scan, &mut self.memory)?;
        let target = Target { header: &reader.header, layout: &layout, shape: &shape };
        let entries = entries.filter(|e| !e.is_empty());
        if let Some(entries) = entries {
            let step = entries::locate(&target, jpeg, &scan, entries, &mut self.plain, &mut self.starts);
            if let Some(step) = step
                && self.groups(&target, step, true, out, stride).is_ok()
            {
                return Ok(outcome(Path::Entries, false));
            }
        }
        self.plain.fill(jpeg, scan.data, shape.pieces());
        if let Some(step) = self.restarts(&target) {
            self.groups(&target, step, false, out, stride).map_err(|f| f.error(&reader.header, &self.plain))?;
            return Ok(outcome(Path::Restarts, entries.is_some()));
        }
        if layout.mcu_rows.start > 0 {
            shape.prepare_skips(&reader, &scan, &mut self.memory)?;
        }
        let target = Target { header: &reader.header, layout: &layout, shape: &shape };
        self.rows(&target, out, stride).map_err(|f| f.error(&reader.header, &self.plain))?;
        Ok(outcome(Path::Start, entries.is_some()))
    }

    /// Bytes of memory that decoding `request` of that image takes beside the image and the pixels, at most.
    ///
    /// # Errors
    /// As [`Decoder::decode`], for the rectangle.
    pub fn scratch_bytes(header: &Header, request: &Request, jpeg_bytes: usize) -> Result<usize> {
        let layout = Layout::new(header, &[None; 3], request)?;
        let (across, down) = (u64::from(layout.mcus.0), u64::from(layout.mcus.1));
        let blocks = layout.row_blocks();
        let (blocks, marks, starts, pieces) = match header.one_scan {
            true => {
                let interval = if header.restart_interval == 0 { u64::MAX } else { header.restart_interval.into() };
                let pieces = (across * down).div_ceil(interval);
                let rows = |step| u64::from(Pace::BEST.rows(blocks, step, layout.mcus.1).min(layout.mcus.1));
                // Two halves by starts; or a first part, and a guess with part of a row before it.
                let halves = (1..=MAX_STEP).map(rows).max().unwrap_or(0);
                let guessed = 2 * rows(1);
                let marks = (2 * rows(1) * across + 3) as usize;
                let notes = match layout.mcu_rows.start {
                    0 => 0,
                    _ => Pace::BEST.notes(down * blocks as u64),
                };
                (halves.max(guessed + 1) as usize * blocks, marks.max(notes), down, pieces)
            }
            // Scans may have restart intervals of their own, down to a block.
            false => (down as usize * blocks, 0, 0, down * blocks as u64),
        };
        let coefs = blocks * (64 * 2 + 1) + 2 * 64 * 2 + marks * 4;
        let starts = starts as usize * size_of::<Walk>();
        Ok(raster::bytes(&layout) + coefs + starts + plain::bytes(jpeg_bytes, pieces) + Memory::BYTES)
    }

    /// Bytes of memory that this decoder holds now.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let starts = self.starts.capacity() * size_of::<Walk>();
        let coefs =
            self.coefs.capacity() * 2 + self.last.capacity() + self.marks.capacity() * 4 + self.whole.capacity();
        coefs + starts + self.plain.capacity() + self.raster.capacity()
    }

    /// Gives back memory beyond `bytes`, for instance after an exceptionally large image.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.held_bytes() > bytes {
            (self.coefs, self.last, self.starts) = (Vec::new(), Vec::new(), Vec::new());
            self.marks = Vec::new();
            (self.plain, self.raster, self.whole) = (Plain::default(), Raster::default(), Coefficients::default());
        }
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
                self.raster.push(self.features, plane, i, |v| self.whole.row(i, row * plane.v + v));
            }
            self.raster.drain(self.features.avx2, &layout, header.color, out, stride);
        }
        Ok(())
    }
}

/// Makes `buffer` that long; what is in it is unspecified. Where it has to grow, the old one goes first.
pub(crate) fn room<T: Copy + Default>(buffer: &mut Vec<T>, len: usize) {
    if buffer.capacity() < len {
        *buffer = Vec::new();
        *buffer = vec![T::default(); len];
    }
    buffer.resize(len, T::default());
}
