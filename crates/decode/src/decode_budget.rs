//! Memory for decoding whole images in tools: a share of the container's, admitted in bytes before an image is decoded.

use std::path::Path;
use std::sync::OnceLock;

use crate::decode_options::DecodeOptions;
use crate::error::{Error, LimitKind};
use crate::format::{ConvertedFormat, Format};
use crate::limits::Limits;
use crate::memory::whole_bytes;
use crate::pixels::rgb_len;
use crate::zstd_frame::content_length;
use shardtool_format::array::{ArrayLayout, Codec};
use shardtool_host::scratch_pool::{Admitted, ScratchPool};
use shardtool_host::system_memory::{SystemLimits, anonymous};

/// Memory that all threads of this process may use together to decode whole images.
#[derive(Debug)]
pub struct DecodeBudget {
    pool: ScratchPool,
    bytes: u64,
}

impl DecodeBudget {
    /// Returns a budget of this many bytes.
    pub fn new(bytes: u64) -> Self {
        DecodeBudget { pool: ScratchPool::new(bytes), bytes }
    }

    /// Returns the budget of this process: half of what the smallest limit on its memory (the host's, or that of a cgroup)
    /// left when this function was called first. The other half is for what tools hold besides: records, indexes, buffers.
    pub fn of_process() -> &'static DecodeBudget {
        static BUDGET: OnceLock<DecodeBudget> = OnceLock::new();
        BUDGET.get_or_init(|| {
            let root = Path::new("/");
            let limit = SystemLimits::find(root).smallest().map_or(u64::MAX, |limit| limit.bytes);
            DecodeBudget::new(limit.saturating_sub(anonymous(root)) / 2)
        })
    }

    /// Returns limits that no image exceeds the budget with.
    pub fn limits(&self) -> Limits {
        let limits = Limits::default();
        limits.with_max_bytes(limits.max_bytes.min(self.bytes))
    }

    /// Waits until the memory is free that [`decode`](crate::decode()) takes for an image. Images of which the header cannot
    /// be read take none: decoding them fails.
    ///
    /// # Errors
    /// [`Error::Limit`] if the image takes more than the whole budget.
    pub fn admit(&self, image: &[u8], options: &DecodeOptions) -> Result<Admitted<'_>, Error> {
        match whole_bytes(image, &options.limits, options.truncated) {
            Ok((format, size, bytes)) => self.admit_bytes(format, size, bytes),
            Err(_) => self.admit_bytes(Format::Raw, (0, 0), 0),
        }
    }

    /// Waits until the memory is free that [`ConvertedFormat::to_png`] takes for an image. Images of which the header cannot be
    /// read take none: converting them fails.
    ///
    /// # Errors
    /// [`Error::Limit`] if the image takes more than the whole budget.
    pub fn admit_conversion(&self, format: ConvertedFormat, image: &[u8]) -> Result<Admitted<'_>, Error> {
        let (width, height, bytes) = format.scratch_bytes(image).unwrap_or_default();
        self.admit_bytes(Format::Png, (width, height), bytes)
    }

    /// Waits until the memory is free that [`decode_raw`](crate::decode_raw) takes for a payload. A payload of another length
    /// than its size needs takes none: decoding it fails.
    ///
    /// # Errors
    /// [`Error::Limit`] if it takes more than the whole budget.
    pub fn admit_raw(&self, format: Format, payload: &[u8], size: (u32, u32)) -> Result<Admitted<'_>, Error> {
        let bytes = rgb_len(size.0, size.1);
        let decompressed = format == Format::RawZstd && content_length(payload).ok() == Some(bytes);
        self.admit_bytes(format, size, if decompressed { bytes } else { 0 })
    }

    /// Waits until the memory is free that [`decode_chunk`](crate::decode_chunk) takes for any chunk of an array. Chunks that
    /// exceed `limits` take none: decoding them fails.
    ///
    /// # Errors
    /// [`Error::ArrayLimit`] if a chunk takes more than the whole budget.
    pub fn admit_chunk(&self, layout: &ArrayLayout<'_>, limits: &Limits) -> Result<Admitted<'_>, Error> {
        // The others are as large, or clipped at the edge.
        let first = if layout.chunks() == 0 || layout.codec() == Codec::Raw { 0 } else { layout.chunk_bytes(0) };
        let bytes = if first > limits.max_bytes { 0 } else { first };
        self.pool.admit(bytes).map_err(|allowed| Error::ArrayLimit { needed: bytes, allowed })
    }

    /// Returns the bytes that a thread may keep from one image to the next, in addition to what is admitted: an equal share
    /// of a quarter of the budget.
    pub fn kept_bytes(&self) -> usize {
        let threads = std::thread::available_parallelism().map_or(1, |threads| threads.get() as u64);
        usize::try_from(self.bytes / 4 / threads).unwrap_or(usize::MAX)
    }

    /// Waits until `bytes` are free for an image of that format and size (width, height).
    ///
    /// # Errors
    /// [`Error::Limit`] if they are more than the whole budget.
    fn admit_bytes(&self, format: Format, (width, height): (u32, u32), bytes: u64) -> Result<Admitted<'_>, Error> {
        let refuse = |allowed| Error::Limit { format, width, height, kind: LimitKind::Memory, needed: bytes, allowed };
        self.pool.admit(bytes).map_err(refuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bitmap's header of that size; no pixels.
    fn header(width: u32, height: u32) -> Vec<u8> {
        let mut bmp = b"BM\x3e\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
        bmp.extend(width.to_le_bytes());
        bmp.extend(height.to_le_bytes());
        bmp.extend(b"\x01\0\x18\0");
        bmp.extend([0; 24]);
        bmp
    }

    #[test]
    fn refuses_an_image_that_takes_more_than_the_budget() {
        let budget = DecodeBudget::new(64 << 20);
        let options = DecodeOptions::default().with_limits(budget.limits());
        drop(budget.admit(&header(1000, 1000), &options).unwrap());
        match budget.admit(&header(4000, 4000), &options).map(drop) {
            Err(Error::Limit { width: 4000, kind: LimitKind::Memory, needed, allowed, .. }) => {
                assert!(needed >= 3 * 4000 * 4000 && allowed == 64 << 20);
            }
            other => panic!("{other:?}"),
        }
        budget.admit(b"no image", &options).unwrap();
    }

    #[test]
    fn refuses_a_chunk_that_takes_more_than_the_budget() {
        let budget = DecodeBudget::new(100);
        let layout = |chunk: &'static [i64]| ArrayLayout::new(&[40, 7], chunk, b"u16", b"zstd").unwrap();
        drop(budget.admit_chunk(&layout(&[4, 10]), &budget.limits()).unwrap());
        match budget.admit_chunk(&layout(&[8, 7]), &Limits::default()).map(drop) {
            Err(Error::ArrayLimit { needed: 112, allowed: 100 }) => {}
            other => panic!("{other:?}"),
        }
        drop(budget.admit_chunk(&layout(&[8, 7]), &budget.limits()).unwrap());
    }

    #[test]
    fn the_budget_of_the_process_is_limited() {
        let budget = DecodeBudget::of_process();
        assert!(budget.bytes > 0 && budget.bytes < 1 << 60, "{}", budget.bytes);
        assert!(std::ptr::eq(budget, DecodeBudget::of_process()));
    }
}
