//! The decoder: from a request to pixels, by the path that decodes least.

mod damaged;
mod known_starts;
mod mcu_row;
mod scan_start;

use crate::bitstream::unstuffed;
use crate::cpu::CpuFeatures;
use crate::entropy::block::Block;
use crate::entry_points::enter;
use crate::entry_points::payload::MAX_STEP;
use crate::error::{Error, Result};
use crate::huffman::table_cache::TableCaches;
use crate::image::ParsedImage;
use crate::markers::header::{Limits, MAX_COMPONENTS};
use crate::multiscan::decoder::{self as multiscan, MultiScanDecoder};
use crate::multiscan::progress::QuantTables;
use crate::pixels::writer::{self, PixelWriter};
use crate::plan::DecodePlan;
use crate::request::Request;
use crate::sequential::layout::ScanLayout;
use crate::sequential::parameters::Speculation;
use crate::sequential::run::McuRun;
use crate::sequential::state::ScanState;
use crate::sequential::workspace::ScanWorkspace;

use known_starts::Starts;
use mcu_row::Output;

/// Decodes JPEGs one after the other in memory that it keeps. Once it has decoded images as large as any to come, it
/// allocates nothing.
///
/// ```
/// # let jpeg = include_bytes!("../../tests/data/420.jpg");
/// use shardtool_jpeg::{Decoder, Header, Limits, Request, Scale};
///
/// let header = Header::parse(jpeg, &Limits::default())?;
/// let (width, height) = header.size(Scale::Full);
/// let stride = width as usize * 3;
/// let mut pixels = vec![0; stride * height as usize];
/// let outcome = Decoder::new().decode(jpeg, None, &Request::default(), &mut pixels, stride)?;
/// assert_eq!((outcome.width, outcome.height), (width, height));
/// # Ok::<(), shardtool_jpeg::Error>(())
/// ```
pub struct Decoder {
    limits: Limits,
    scan: ScanWorkspace,
    writer: PixelWriter,
    multiscan: MultiScanDecoder,
}

/// The path by which an image was decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecodePath {
    /// From entry points.
    Entries,
    /// From restart markers at every few rows of MCUs.
    Restarts,
    /// From the start of the scan up to the last row needed.
    Start,
    /// Several scans together (progressive images, components in separate scans, or four components), up to the last row needed.
    Scans,
}

/// The result of a decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Outcome {
    /// Width in pixels of what was written.
    pub width: u32,
    /// Height in pixels of what was written.
    pub height: u32,
    /// The path taken.
    pub path: DecodePath,
    /// Whether entry points were given but do not fit the image, so that it was decoded without them.
    pub entries_rejected: bool,
    /// Whether the image is cut or damaged, and was decoded nevertheless, as [`Request::fill`] asks.
    pub filled: bool,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::new()
    }
}

impl Decoder {
    /// Returns a decoder with default limits that uses the processor's vector and bit instructions, or those that the environment
    /// variable `SHARDTOOL_SIMD` allows (`portable`, `avx2`, …), like libjpeg-turbo's `JSIMD_FORCENONE`: for tests and bug reports.
    /// The pixels are the same.
    #[must_use]
    pub fn new() -> Decoder {
        Decoder {
            limits: Limits::default(),
            scan: ScanWorkspace::new(CpuFeatures::detect()),
            writer: PixelWriter::default(),
            multiscan: MultiScanDecoder::default(),
        }
    }

    /// Replaces the limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Decoder {
        self.limits = limits;
        self
    }

    /// Enables (if the processor has them) or disables vector and bit instructions. The pixels are the same.
    #[must_use]
    pub fn with_simd(mut self, simd: bool) -> Decoder {
        self.scan.cpu = if simd { CpuFeatures::detect() } else { CpuFeatures::PORTABLE };
        self
    }

    /// Makes the decoder speculate wherever it can, not only where that is faster. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn with_eager_speculation(mut self) -> Decoder {
        self.scan.speculation = Speculation::EAGER;
        self
    }

    /// Returns how many MCUs of all images so far came from speculation. For tests.
    #[doc(hidden)]
    #[must_use]
    pub fn speculative_mcus(&self) -> u64 {
        self.scan.speculative_mcus
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Decodes what `request` asks for to RGB, `[height, width, 3]`, or to grey, `[height, width]`, with `stride` bytes from row
    /// to row, into `out`. `entries` are the image's entry points ([`entries::find`](crate::entries::find)), if there are
    /// any; they are checked, and ignored if they do not fit.
    ///
    /// The pixels equal those of libjpeg-turbo with its default settings, and those of a rectangle equal the same part of the
    /// whole image.
    ///
    /// # Errors
    /// As [`Header::parse`](crate::Header::parse); [`Damaged`](crate::Error::Damaged) for damage in the rows that were decoded,
    /// and of several scans in those that the request needs, [`Rectangle`](crate::Error::Rectangle) and [`Buffer`](crate::Error::Buffer) for a
    /// wrong request. With [`Request::fill`], damage is an error only where libjpeg-turbo has an error too. After an error the
    /// content of `out` is unspecified.
    pub fn decode(
        &mut self,
        jpeg: &[u8],
        entries: Option<&[u8]>,
        request: &Request,
        out: &mut [u8],
        stride: usize,
    ) -> Result<Outcome> {
        self.decode_parsed(&ParsedImage::parse(jpeg, &self.limits)?, entries, request, out, stride)
    }

    /// As [`Decoder::decode`], for an image whose header is parsed already; its limits are those that it was parsed with.
    ///
    /// # Errors
    /// As [`Decoder::decode`].
    pub fn decode_parsed(
        &mut self,
        image: &ParsedImage<'_>,
        entries: Option<&[u8]>,
        request: &Request,
        out: &mut [u8],
        stride: usize,
    ) -> Result<Outcome> {
        match self.decode_good(image, entries, request, out, stride) {
            Err(Error::Damaged { .. } | Error::Ends { .. } | Error::Segment { .. }) if request.fill => {
                self.decode_damaged(image, request, (out, stride), true)
            }
            result => result,
        }
    }

    /// Decodes an image whose damage is an error.
    fn decode_good(
        &mut self,
        image: &ParsedImage<'_>,
        entries: Option<&[u8]>,
        request: &Request,
        out: &mut [u8],
        stride: usize,
    ) -> Result<Outcome> {
        let ParsedImage { parser, scan } = image;
        let plan = DecodePlan::new(&parser.header, &parser.quant, request)?;
        plan.check_buffer(out.len(), stride)?;
        let (width, height) = (plan.rect.width, plan.rect.height);
        let outcome = |path, entries_rejected| Outcome { width, height, path, entries_rejected, filled: false };

        let Some(mut layout) = ScanLayout::new(parser, scan)? else {
            let quant = self.multiscan.begin(image, request.fill)?;
            if request.fill && self.multiscan.estimates() {
                return self.decode_damaged(image, request, (out, stride), false);
            }
            self.decode_all_scans((image, &quant), request, out, stride)?;
            return Ok(outcome(DecodePath::Scans, entries.is_some()));
        };
        let Decoder { scan: workspace, writer, .. } = self;
        layout.prepare_tables(parser, scan, plan.needs_ac(), &mut workspace.caches)?;
        let mut output = Output { plan: &plan, color: parser.header.color, writer, out, stride };
        let entries = entries.filter(|e| !e.is_empty());
        if let Some(entries) = entries {
            let ScanWorkspace { unstuffed, starts, .. } = workspace;
            let step = enter::enter(parser, scan, &layout, &plan.mcu_rows, entries, unstuffed, starts);
            if let Some(step) = step
                && workspace.decode_from_starts(&layout, Starts { step, hints: true }, &mut output).is_ok()
            {
                return Ok(outcome(DecodePath::Entries, false));
            }
        }
        workspace.unstuffed.fill(parser.jpeg, scan.data, layout.segments());
        // Damage above the rectangle may shift what libjpeg makes of the rest.
        if let Some(starts) = workspace.find_restart_starts(&layout).filter(|_| !request.fill) {
            let result = workspace.decode_from_starts(&layout, starts, &mut output);
            result.map_err(|e| e.into_error(&parser.header, &workspace.unstuffed))?;
            return Ok(outcome(DecodePath::Restarts, entries.is_some()));
        }
        if plan.mcu_rows.start > 0 {
            layout.prepare_scan_tables(parser, scan, &mut workspace.caches)?;
        }
        let result = workspace.decode_from_scan_start(&layout, &mut output);
        result.map_err(|e| e.into_error(&parser.header, &workspace.unstuffed))?;
        Ok(outcome(DecodePath::Start, entries.is_some()))
    }

    /// Returns an upper bound of the bytes of memory that decoding `request` takes in addition to the image and the pixels.
    ///
    /// # Errors
    /// [`Rectangle`](crate::Error::Rectangle) for a rectangle outside the image.
    pub fn scratch_bytes(image: &ParsedImage<'_>, request: &Request) -> Result<usize> {
        let header = image.header();
        let plan = DecodePlan::new(header, &[None; MAX_COMPONENTS], request)?;
        let damaged =
            if request.fill { multiscan::max_bytes(image) + image.bytes().len() + damaged::PADDING } else { 0 };
        if !header.one_scan {
            return Ok(writer::max_bytes(&plan) + multiscan::max_bytes(image) + damaged + TableCaches::MAX_BYTES);
        }
        let (across, down) = (u64::from(plan.mcus.0), u64::from(plan.mcus.1));
        let interval = if header.restart_interval == 0 { u64::MAX } else { header.restart_interval.into() };
        let segments = (across * down).div_ceil(interval);
        let (columns, mcu_blocks) = (across as usize, plan.mcu_blocks as usize);
        let groups = |step| Speculation::FAST.groups_held(plan.row_blocks(), step, plan.mcus.1) as usize;
        let held = |step| groups(step) * Speculation::group_blocks((columns, mcu_blocks), step);
        let rows = Speculation::FAST.round_rows(plan.row_blocks(), plan.mcus.1) as usize;
        let (_, round) = Speculation::regions(rows * columns, columns, mcu_blocks);
        let blocks = (1..=MAX_STEP).map(held).max().unwrap_or(0).max(round);
        let offsets = match plan.mcu_rows.start {
            0 => 0,
            _ => Speculation::FAST.scan_offsets(down * plan.row_blocks() as u64),
        };
        let starts = down as usize * size_of::<ScanState>();
        let runs = groups(1) * size_of::<McuRun>();
        let unstuffed = unstuffed::max_bytes(image.bytes().len(), segments);
        let blocks = blocks * size_of::<Block>();
        Ok(writer::max_bytes(&plan)
            + damaged
            + blocks
            + offsets * 4
            + starts
            + runs
            + unstuffed
            + TableCaches::MAX_BYTES)
    }

    /// The most bytes of memory that the tables of a decoder take. They are kept from image to image.
    pub const TABLE_BYTES: usize = TableCaches::MAX_BYTES;

    /// Returns the bytes of memory that this decoder holds now, without its tables.
    #[must_use]
    pub fn held_bytes(&self) -> usize {
        self.scan.capacity() + self.multiscan.capacity() + self.writer.capacity()
    }

    /// Frees memory if more than `bytes` are held, for instance after an exceptionally large image.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.held_bytes() > bytes {
            self.scan.free();
            (self.writer, self.multiscan) = (PixelWriter::default(), MultiScanDecoder::default());
        }
    }

    /// The buffers for sequential scans, for finding entry points.
    pub(crate) fn scan_workspace(&mut self) -> &mut ScanWorkspace {
        &mut self.scan
    }

    /// The buffers for sequential scans and for images of several scans, for transcoding.
    pub(crate) fn workspaces(&mut self) -> (&mut ScanWorkspace, &mut MultiScanDecoder) {
        (&mut self.scan, &mut self.multiscan)
    }

    /// Decodes an image whose scans [`MultiScanDecoder`] has begun, all together.
    fn decode_all_scans(
        &mut self,
        (image, quant): (&ParsedImage<'_>, &QuantTables),
        request: &Request,
        out: &mut [u8],
        stride: usize,
    ) -> Result<()> {
        let Decoder { scan: ScanWorkspace { cpu, .. }, writer, multiscan, .. } = self;
        let plan = DecodePlan::new(image.header(), quant, request)?;
        multiscan.keep_needed(&plan);
        writer.begin(&plan);
        for row in 0..plan.mcu_rows.end {
            let coefs = multiscan.decode_row(image, row)?;
            if row < plan.mcu_rows.start {
                continue;
            }
            for (i, plane) in plan.planes().iter().enumerate() {
                writer.push(cpu, plane, i, |v| coefs.row(i, v));
            }
            writer.write_ready_rows(cpu, &plan, image.header().color, out, stride);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Decoder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Decoder").field("limits", &self.limits).finish_non_exhaustive()
    }
}
