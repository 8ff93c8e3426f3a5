//! Samples for tests.

use crate::dataset::{Sample, jpeg};

/// `n` samples with photographs of varying sizes.
pub(crate) fn photographs(n: u64) -> Vec<Sample> {
    (0..n)
        .map(|i| {
            let size = (24 + (i * 5 % 17) as u32, 20 + (i * 3 % 23) as u32);
            let label = (i % 5) as i64;
            let boxes = (0..=label).map(|k| (i as f32) + (k as f32) / 10.0).collect();
            let image = Some((jpeg(i, size.0, size.1), size));
            Sample { key: format!("c{label}/{i:06}.jpg"), image, label, boxes, mask: vec![] }
        })
        .collect()
}

/// `n` samples of numbers only.
pub(crate) fn numbers(n: u64) -> Vec<Sample> {
    (0..n)
        .map(|i| Sample { key: format!("{i}"), image: None, label: i as i64 % 5, boxes: vec![], mask: vec![] })
        .collect()
}
