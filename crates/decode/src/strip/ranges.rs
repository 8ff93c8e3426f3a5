//! Byte ranges of a file.

use std::ops::Range;

/// A set of bytes of a file.
#[derive(Default)]
pub(super) struct Ranges(Vec<Range<usize>>);

impl Ranges {
    /// Adds the bytes of a range.
    pub(super) fn add(&mut self, range: Range<usize>) {
        if !range.is_empty() {
            self.0.push(range);
        }
    }

    /// Returns the ranges that were added, each once, by their start.
    pub(super) fn distinct(mut self) -> Vec<Range<usize>> {
        self.0.sort_unstable_by_key(|range| (range.start, range.end));
        self.0.dedup();
        self.0
    }

    /// Returns the same bytes as disjoint ranges in ascending order.
    pub(super) fn merged(mut self) -> Vec<Range<usize>> {
        self.0.sort_unstable_by_key(|range| range.start);
        let mut merged: Vec<Range<usize>> = vec![];
        for range in self.0 {
            match merged.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => merged.push(range),
            }
        }
        merged
    }
}

/// Returns whether two sets have a byte in common. Both are disjoint ranges in ascending order.
pub(super) fn intersect(a: &[Range<usize>], b: &[Range<usize>]) -> bool {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let (Some(first), Some(second)) = (a.peek(), b.peek()) {
        if first.start < second.end && second.start < first.end {
            return true;
        }
        if first.end <= second.end {
            a.next()
        } else {
            b.next()
        };
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merges_and_intersects_like_sets_of_bytes() {
        // Every pair of two ranges below 7, against sets of bytes.
        let all: Vec<_> = (0..7).flat_map(|start| (start..7).map(move |end| start..end)).collect();
        for first in &all {
            for second in &all {
                let mut ranges = Ranges::default();
                [first, second].into_iter().for_each(|range| ranges.add(range.clone()));
                let merged = ranges.merged();
                let bytes: Vec<usize> = merged.iter().cloned().flatten().collect();
                let expected: Vec<usize> =
                    (0..7).filter(|byte| first.contains(byte) || second.contains(byte)).collect();
                assert_eq!(bytes, expected, "{first:?} {second:?}");
                for other in &all {
                    let common = other.clone().any(|byte| expected.contains(&byte));
                    let other = Vec::from_iter((!other.is_empty()).then(|| other.clone()));
                    assert_eq!(intersect(&merged, &other), common, "{merged:?} {other:?}");
                }
            }
        }
    }
}
