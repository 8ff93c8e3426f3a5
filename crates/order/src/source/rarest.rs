//! One label for samples that have several.

use std::collections::HashMap;

/// Returns one label for each sample: of those that it has the one that the fewest samples have, of equally rare ones the smallest, and −1 for a
/// sample without labels. A label that a sample has twice counts once. Iterates twice. Balancing by these labels shows rare classes
/// as often as others, with the classes that occur with them.
///
/// ```
/// # use shardtool_order::{Balanced, Source, rarest_labels};
/// let samples: [&[i64]; 4] = [&[3], &[3, 7], &[], &[7, 3, 9]];
/// let labels = rarest_labels(samples.into_iter());
/// assert_eq!(labels, [3, 7, -1, 9]);
/// let source = Source::Balanced(Balanced::new((0..).zip(labels)));
/// # assert_eq!(source.len(), 4);
/// ```
pub fn rarest_labels<'l>(samples: impl Iterator<Item = &'l [i64]> + Clone) -> Vec<i64> {
    // The number of samples that have a label, and the one that was counted last.
    let mut counts = HashMap::<i64, (u64, usize)>::new();
    for (number, labels) in samples.clone().enumerate() {
        for label in labels {
            let (count, last) = counts.entry(*label).or_insert((0, usize::MAX));
            if *last != number {
                (*count, *last) = (*count + 1, number);
            }
        }
    }
    let count = |label: &i64| counts.get(label).map_or(0, |(count, _)| *count);
    samples.map(|labels| labels.iter().copied().min_by_key(|label| (count(label), *label)).unwrap_or(-1)).collect()
}
