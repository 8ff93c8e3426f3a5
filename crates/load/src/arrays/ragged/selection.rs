//! Which elements of an array a row has.

use crate::options::Select;
use shardtool_decode::Random;

/// The elements of a row, in the stored order.
pub(super) enum Selection {
    /// `count` neighbours from `first` on.
    Window { first: u64, count: u64 },
    /// A random subset of `count` of `length` elements, which is drawn once its memory is admitted.
    Subset { length: u64, count: u64 },
}

impl Selection {
    /// Draws up to `most` of `length` elements.
    pub(super) fn draw(select: Select, length: u64, most: u64, random: &mut impl Random) -> Self {
        match select {
            _ if length <= most => Selection::Window { first: 0, count: length },
            Select::First => Selection::Window { first: 0, count: most },
            Select::Window => Selection::Window { first: random.below(length - most + 1), count: most },
            Select::Subset => Selection::Subset { length, count: most },
        }
    }

    pub(super) fn count(&self) -> u64 {
        match self {
            Selection::Window { count, .. } | Selection::Subset { count, .. } => *count,
        }
    }
}

/// Draws `count` of `length` numbers, ascending, each subset with equal probability (Knuth, The Art of Computer Programming, 3.4.2,
/// algorithm S: one number is drawn for each element until the subset is full).
pub(super) fn subset(length: u64, count: u64, random: &mut impl Random, elements: &mut Vec<u64>) {
    elements.clear();
    elements.reserve_exact(count as usize);
    for element in 0..length {
        let lacking = count - elements.len() as u64;
        if lacking == 0 {
            break;
        }
        if random.below(length - element) < lacking {
            elements.push(element);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::subset;
    use crate::image::SampleDraws;
    use std::collections::BTreeMap;

    #[test]
    fn every_subset_is_as_probable() {
        let mut counts = BTreeMap::new();
        for source_position in 0..20_000 {
            let draws = SampleDraws { seed: 3, epoch: 0, source_position };
            let mut elements = vec![];
            subset(5, 2, &mut draws.ragged(0, 0), &mut elements);
            *counts.entry(elements).or_insert(0u32) += 1;
        }
        // 10 subsets of 2,000 each; the deviation of a count is below 43.
        assert_eq!(counts.len(), 10, "{counts:?}");
        assert!(counts.values().all(|count| count.abs_diff(2_000) < 5 * 43), "{counts:?}");
    }
}
