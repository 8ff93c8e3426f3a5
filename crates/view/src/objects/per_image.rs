//! How many objects an image has.

use std::collections::BTreeMap;

/// Images by the number of their objects. A hostile dataset needs many bytes for each further number.
#[derive(Debug, Default)]
pub(super) struct PerImage(BTreeMap<u64, u64>);

impl PerImage {
    pub(super) fn add(&mut self, objects: u64) {
        *self.0.entry(objects).or_default() += 1;
    }

    /// Returns each number of objects with the number of images that have as many, in ascending order.
    pub(super) fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(objects, images)| (*objects, *images))
    }

    /// Returns the number of images.
    pub(super) fn images(&self) -> u64 {
        self.0.values().sum()
    }

    /// Returns the number of objects.
    pub(super) fn objects(&self) -> u64 {
        self.counts().map(|(objects, images)| objects * images).sum()
    }

    /// Returns the number of images without objects.
    pub(super) fn empty(&self) -> u64 {
        self.0.get(&0).copied().unwrap_or(0)
    }

    /// Returns the largest number of objects.
    pub(super) fn most(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(objects, _)| *objects)
    }

    /// Returns the mean number of objects; `None` without images.
    pub(super) fn mean(&self) -> Option<f64> {
        let images = self.images();
        (images > 0).then(|| self.objects() as f64 / images as f64)
    }

    /// Returns the median number of objects, of an even number of images the mean of the middle two; `None` without images.
    pub(super) fn median(&self) -> Option<f64> {
        let images = self.images();
        let at = |rank: u64| {
            let mut before = 0;
            self.counts().find_map(|(objects, images)| {
                before += images;
                (rank < before).then_some(objects as f64)
            })
        };
        Some((at(images.checked_sub(1)? / 2)? + at(images / 2)?) / 2.0)
    }

    /// Returns the number of images for ranges of objects: 0, 1, 2 and 3, 4 to 7, and so on. Each has its first and its last number.
    pub(super) fn ranges(&self) -> Vec<(u64, u64, u64)> {
        let mut ranges: Vec<(u64, u64, u64)> = vec![];
        for (objects, images) in self.counts() {
            let first = objects.checked_ilog2().map_or(0, |bits| 1 << bits);
            match ranges.last_mut() {
                Some((from, _, sum)) if *from == first => *sum += images,
                _ => ranges.push((first, first.saturating_mul(2).saturating_sub(1).max(first), images)),
            }
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_hold_every_image_once() {
        let mut found = PerImage::default();
        [0, 1, 1, 2, 3, 4, 7, 8, 15, 16].into_iter().for_each(|objects| found.add(objects));
        assert_eq!(found.ranges(), [(0, 0, 1), (1, 1, 2), (2, 3, 2), (4, 7, 2), (8, 15, 2), (16, 31, 1)]);
        assert_eq!((found.median(), found.mean(), found.most()), (Some(3.5), Some(5.7), 16));
    }
}
