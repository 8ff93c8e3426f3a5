//! The cache of decoded images.

use super::size;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Keeps decoded images, frames of clips and masks from one epoch to the next, until the cache is full.
///
/// Every image whose shorter side is longer than `resize` is resized to it before the steps, whether it is in the cache or not:
/// the pixels of a batch do not depend on the cache. Masks (by nearest neighbour), boxes and keypoints follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DecodedCache {
    /// Bytes of decoded images, or text such as `"8GiB"`; for several processes of a machine, of each.
    #[serde(deserialize_with = "size::bytes")]
    #[schemars(schema_with = "size::schema", extend("x-positional" = true))]
    pub size: u64,
    /// Pixels of the shorter side of an image in the cache, at most.
    #[serde(default = "default_resize")]
    #[schemars(range(min = 1, max = 65_536))]
    pub resize: u32,
    /// A folder for a file, which has no name and ends with the process. Default: in memory, as part of the memory budget.
    #[serde(default)]
    #[schemars(with = "Option<String>", extend("x-python" = "str | os.PathLike[str] | None"))]
    pub path: Option<PathBuf>,
}

fn default_resize() -> u32 {
    512
}

impl DecodedCache {
    /// Returns a cache in memory, of images whose shorter side is at most 512 pixels.
    pub fn new(size: u64) -> Self {
        DecodedCache { size, resize: default_resize(), path: None }
    }

    /// Returns the bytes of memory that the images take.
    pub(crate) fn memory(&self) -> u64 {
        if self.path.is_none() { self.size } else { 0 }
    }

    /// Returns width and height of an image of this width and height in the cache: torchvision's `Resize(resize)`, except that
    /// smaller images keep their size.
    pub(crate) fn bounded(&self, (width, height): (u32, u32)) -> (u32, u32) {
        let scaled = |longer: u32, shorter: u32| {
            let length = u64::from(self.resize) * u64::from(longer) / u64::from(shorter.max(1));
            u32::try_from(length).unwrap_or(u32::MAX)
        };
        match (width.min(height) > self.resize, width <= height) {
            (false, _) => (width, height),
            (true, true) => (self.resize, scaled(height, width)),
            (true, false) => (scaled(width, height), self.resize),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_the_shorter_side_as_torchvision_does() {
        let cache = DecodedCache { resize: 100, ..DecodedCache::new(0) };
        for (size, expected) in [
            ((400, 300), (133, 100)),
            ((300, 400), (100, 133)),
            ((100, 900), (100, 900)),
            ((99, 50), (99, 50)),
            ((101, 101), (100, 100)),
            ((u32::MAX, 101), (u32::MAX / 101 * 100 + (u32::MAX % 101) * 100 / 101, 100)),
        ] {
            assert_eq!(cache.bounded(size), expected, "{size:?}");
        }
    }
}
