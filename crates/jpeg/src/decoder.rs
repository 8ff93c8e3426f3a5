//! The decoder: from a request to pixels, by the shortest way that the file allows.

use crate::bitstream::unstuffed::{self, UnstuffedData};
use crate::entries;
use crate::error::Result;
use crate::huffman::TableCaches;
use crate::markers::header::{Header, Limits};
use crate::markers::parser::{Parser, ScanHeader};
use crate::multiscan::coefficients::Coefficients;
use crate::pixels::writer::{self, PixelWriter};
use crate::plan::{DecodePlan, Request};
use crate::sequential::rows::DecodeTarget;
use crate::sequential::speculation::Speculation;
use crate::sequential::state::{ScanLayout, ScanState};

/// Decodes JPEGs, one after the other, in caches that it keeps: once it has seen images as large as any to come, it
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
    pub(crate) cpu: CpuFeatures,
    pub(crate) speculation: Speculation,
    /// MCUs that came from guesses.
    pub(crate) speculative_mcus: u64,
    pub(crate) caches: TableCaches,
    pub(crate) unstuffed: UnstuffedData,
    pub(crate) coefs: Vec<i16>,
    pub(crate) last: Vec<u8>,
    pub(crate) marks: Vec<u32>,
    pub(crate) starts: Vec<ScanState>,
    pub(crate) writer: PixelWriter,
    pub(crate) whole: Coefficients,
}

/// What the processor can do, and may.
#[derive(Clone, Copy)]
pub(crate) struct CpuFeatures {
    /// AVX2, for transforms and pixels.
    pub avx2: bool,
    /// AVX-512 (F and BW), for the transform of whole blocks.
    pub avx512: bool,
    /// BMI1, BMI2, LZCNT and MOVBE, for the entropy decoder.
    pub bmi2: bool,
}

impl CpuFeatures {
    pub(crate) const PORTABLE: CpuFeatures = CpuFeatures { avx2: false, avx512: false, bmi2: false };

    pub(crate) fn detect() -> CpuFeatures {
        #[cfg(target_arch = "x86_64")]
        if std::env::var_os("SHARDTOOL_JPEG_PORTABLE").is_none_or(|v| v != "1") {
            let bmi2 = is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("bmi2");
            return CpuFeatures {
                avx2: is_x86_feature_detected!("avx2"),
                avx512: is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw"),
                bmi2: bmi2 && is_x86_feature_detected!("lzcnt") && is_x86_feature_detected!("movbe"),
            };
        }
        CpuFeatures::PORTABLE
    }
}

/// By which way an image was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodePath {
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
    pub path: DecodePath,
    /// Whether entry points were given that do not fit the image, so that it was decoded without them.
    pub entries_rejected: bool,
}

/// Rows of MCUs from one start to the next, at most, for several segments to be decoded at once: more would take too much
/// caches.
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
            cpu: CpuFeatures::detect(),
            speculation: Speculation::BEST,
            speculative_mcus: 0,
            caches: TableCaches::new(),
            unstuffed: UnstuffedData::default(),
            coefs: Vec::new(),
            last: Vec::new(),
            marks: Vec::new(),
            starts: Vec::new(),
            writer: PixelWriter::default(),
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
        self.cpu = if simd { CpuFeatures::detect() } else { CpuFeatures::PORTABLE };
        self
    }

    /// The same decoder, for tests: it guesses wherever it can, not only where that is faster.
    #[doc(hidden)]
    #[must_use]
    pub fn with_eager_speculation(mut self) -> Decoder {
        self.speculation = Speculation::EAGER;
        self
    }

    /// MCUs that came from guesses that were met, for tests: of all images so far.
    #[doc(hidden)]
    #[must_use]
    pub fn speculative_mcus(&self) -> u64 {
        self.speculative_mcus
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
        let (reader, scan) = Parser::start(jpeg, &self.limits)?;
        let plan = DecodePlan::new(&reader.header, &reader.quant, request)?;
        plan.check_buffer(out.len(), stride)?;
        let (width, height) = (plan.rect.width, plan.rect.height);
        let outcome = |path, entries_rejected| Outcome { width, height, path, entries_rejected };

        let Some(mut layout) = ScanLayout::new(&reader, &scan)? else {
            self.scans(reader, &scan, request, out, stride)?;
            return Ok(outcome(DecodePath::Scans, entries.is_some()));
        };
        layout.prepare(&reader, &scan, &mut self.caches)?;
        let target = DecodeTarget { header: &reader.header, plan: &plan, layout: &layout };
        let entries = entries.filter(|e| !e.is_empty());
        if let Some(entries) = entries {
            let step = entries::locate(&target, jpeg, &scan, entries, &mut self.unstuffed, &mut self.starts);
            if let Some(step) = step
                && self.groups(&target, step, true, out, stride).is_ok()
            {
                return Ok(outcome(DecodePath::Entries, false));
            }
        }
        self.unstuffed.fill(jpeg, scan.data, layout.segments());
        if let Some(step) = self.restarts(&target) {
            self.groups(&target, step, false, out, stride).map_err(|f| f.error(&reader.header, &self.unstuffed))?;
            return Ok(outcome(DecodePath::Restarts, entries.is_some()));
        }
        if plan.mcu_rows.start > 0 {
            layout.prepare_skips(&reader, &scan, &mut self.caches)?;
        }
        let target = DecodeTarget { header: &reader.header, plan: &plan, layout: &layout };
        self.rows(&target, out, stride).map_err(|f| f.error(&reader.header, &self.unstuffed))?;
        Ok(outcome(DecodePath::Start, entries.is_some()))
    }

    /// Bytes of caches that decoding `request` of that image takes beside the image and the pixels, at most.
    ///
    /// # Errors
    /// As [`Decoder::decode`], for the rectangle.
    pub fn scratch_bytes(header: &Header, request: &Request, jpeg_bytes: usize) -> Result<usize> {
        let plan = DecodePlan::new(header, &[None; 3], request)?;
        let (across, down) = (u64::from(plan.mcus.0), u64::from(plan.mcus.1));
        let blocks = plan.row_blocks();
        let (blocks, marks, starts, segments) = match header.one_scan {
            true => {
                let interval = if header.restart_interval == 0 { u64::MAX } else { header.restart_interval.into() };
                let segments = (across * down).div_ceil(interval);
                let rows = |step| u64::from(Speculation::BEST.rows(blocks, step, plan.mcus.1).min(plan.mcus.1));
                // Two halves by starts; or a first part, and a guess with part of a row before it.
                let halves = (1..=MAX_STEP).map(rows).max().unwrap_or(0);
                let speculative_mcus = 2 * rows(1);
                let marks = (2 * rows(1) * across + 3) as usize;
                let notes = match plan.mcu_rows.start {
                    0 => 0,
                    _ => Speculation::BEST.notes(down * blocks as u64),
                };
                (halves.max(speculative_mcus + 1) as usize * blocks, marks.max(notes), down, segments)
            }
            // Scans may have restart intervals of their own, down to a block.
            false => (down as usize * blocks, 0, 0, down * blocks as u64),
        };
        let coefs = blocks * (64 * 2 + 1) + 2 * 64 * 2 + marks * 4;
        let starts = starts as usize * size_of::<ScanState>();
        Ok(writer::bytes(&plan) + coefs + starts + unstuffed::bytes(jpeg_bytes, segments) + TableCaches::BYTES)
    }

    /// Bytes of caches that this decoder holds now.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        let starts = self.starts.capacity() * size_of::<ScanState>();
        let coefs =
            self.coefs.capacity() * 2 + self.last.capacity() + self.marks.capacity() * 4 + self.whole.capacity();
        coefs + starts + self.unstuffed.capacity() + self.writer.capacity()
    }

    /// Gives back caches beyond `bytes`, for instance after an exceptionally large image.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.held_bytes() > bytes {
            (self.coefs, self.last, self.starts) = (Vec::new(), Vec::new(), Vec::new());
            self.marks = Vec::new();
            (self.unstuffed, self.writer, self.whole) =
                (UnstuffedData::default(), PixelWriter::default(), Coefficients::default());
        }
    }

    /// Decodes all scans of an image whose coefficients do not come in the order of the pixels.
    fn scans(
        &mut self,
        reader: Parser<'_>,
        scan: &ScanHeader,
        request: &Request,
        out: &mut [u8],
        stride: usize,
    ) -> Result<()> {
        let header = reader.header;
        let quant = self.whole.read(reader, scan, &mut self.unstuffed)?;
        self.whole.find_last();
        let plan = DecodePlan::new(&header, &quant, request)?;
        self.writer.begin(&plan);
        for row in plan.mcu_rows.clone() {
            for (i, plane) in plan.planes().iter().enumerate() {
                self.writer.push(self.cpu, plane, i, |v| self.whole.row(i, row * plane.v + v));
            }
            self.writer.drain(self.cpu.avx2, &plan, header.color, out, stride);
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
