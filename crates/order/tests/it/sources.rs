//! Properties of each source over one epoch and over many.

use std::collections::BTreeMap;

use shardtool_order::{Balanced, Error, List, Mixture, Order, Source, Weighted};

/// How often each id occurs in the epochs.
fn counts(source: &Source, epochs: std::ops::Range<u64>) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for epoch in epochs {
        (0..source.len()).for_each(|v| *counts.entry(source.id(Order::Sequential, 3, epoch, v)).or_default() += 1);
    }
    counts
}

fn balanced(sizes: &[u64]) -> (Source, Vec<i64>) {
    let labels: Vec<i64> =
        sizes.iter().enumerate().flat_map(|(c, &n)| std::iter::repeat_n(c as i64 * 7 - 3, n as usize)).collect();
    (Source::Balanced(Balanced::new((0..).zip(labels.iter().copied()))), labels)
}

#[test]
fn everything_and_lists_map_positions_to_their_ids() {
    assert!((0..9).all(|v| Source::All(9).id(Order::Sequential, 1, 2, v) == v));
    let ids = vec![7, 7, 0, 3];
    let list = Source::List(List::new(ids.clone(), 8).expect("ids in range"));
    assert_eq!((0..list.len()).map(|v| list.id(Order::Sequential, 1, 2, v)).collect::<Vec<_>>(), ids);
    assert_eq!(list.bytes(), 32);
    assert!(matches!(List::new(ids, 7), Err(Error::ListedId { index: 0, id: 7, len: 7 })));
}

#[test]
fn balanced_shows_classes_equally_and_members_in_turn() {
    for sizes in [&[5u64][..], &[1, 1], &[10, 1, 3], &[100, 7, 9, 31, 2]] {
        let (source, labels) = balanced(sizes);
        let (classes, n) = (sizes.len() as u64, sizes.iter().sum::<u64>());
        let turns = n.div_ceil(classes);
        assert_eq!(source.len(), classes * turns);
        assert_eq!(source.bytes(), 8 * (n + classes));
        for epochs in [0..1, 4..5, 0..13] {
            let shown = counts(&source, epochs.clone());
            let mut by_class = BTreeMap::<i64, Vec<u64>>::new();
            (0..n).for_each(|id| by_class.entry(labels[id as usize]).or_default().push(*shown.get(&id).unwrap_or(&0)));
            for members in by_class.values() {
                assert_eq!(members.iter().sum::<u64>(), turns * (epochs.end - epochs.start), "{sizes:?}, {epochs:?}");
                let (low, high) = (members.iter().min(), members.iter().max());
                assert!(high.zip(low).is_some_and(|(h, l)| h - l <= 1), "{sizes:?}, {epochs:?}: {members:?}");
            }
        }
    }
}

#[test]
fn refuses_balanced_sources_that_round_up_beyond_two_to_the_63() {
    let max = 1 << 63;
    assert_eq!(Balanced::source_positions(3, 7).ok(), Some(9));
    assert_eq!(Balanced::source_positions(2, max).ok(), Some(max));
    let refused = Balanced::source_positions(3, max);
    assert!(matches!(refused, Err(Error::TooManySamples { len }) if len == max + 1), "{refused:?}");
    assert!(matches!(Balanced::source_positions(u64::MAX - 1, u64::MAX), Err(Error::TooManySamples { .. })));
    assert_eq!(Balanced::source_positions(0, 0).ok(), Some(0));
}

#[test]
fn weighted_rounds_each_epoch_and_is_exact_on_average() {
    let weights = [1u64, 0, 3, 2, 0, 10, 7];
    for draws in [7, 3, 23, 100] {
        let source = Source::Weighted(Weighted::new(weights, Some(draws)).expect("weights"));
        let sum: u64 = weights.iter().sum();
        for epoch in 0..50 {
            let shown = counts(&source, epoch..epoch + 1);
            for (id, w) in (0..).zip(weights) {
                let times = *shown.get(&id).unwrap_or(&0);
                assert!((w * draws / sum..=(w * draws).div_ceil(sum)).contains(&times), "id {id}: {times} times");
            }
        }
        let (epochs, shown) = (4_000, counts(&source, 0..4_000));
        for (id, w) in (0..).zip(weights) {
            let (mean, times) = ((w * draws * epochs) as f64 / sum as f64, *shown.get(&id).unwrap_or(&0) as f64);
            // An epoch shows an id ⌊mean⌋ or ⌈mean⌉ times: a variance of at most a quarter.
            assert!((times - mean).abs() <= 5.0 * (epochs as f64 / 4.0).sqrt(), "id {id}: {times}, expected {mean}");
        }
    }
    assert_eq!(Weighted::new([2, 5, 1], None).map(|w| Source::Weighted(w).len()).ok(), Some(3));
    assert!(matches!(Weighted::new([0, 0], None), Err(Error::WeightSum { sum: 0 })));
    assert!(matches!(Weighted::new([1 << 63, 1], None), Err(Error::WeightSum { .. })));
    assert!(matches!(Weighted::new([u64::MAX; 5], None), Err(Error::WeightSum { .. })));
}

#[test]
fn mixture_keeps_its_shares_and_shows_members_in_turn() {
    let datasets = [(5u64, 1u64), (7, 3), (0, 0), (30, 2)];
    for draws in [None, Some(1), Some(10), Some(600)] {
        let source = Source::Mixture(Mixture::new(&datasets, draws).expect("datasets"));
        assert_eq!(source.len(), draws.unwrap_or(42));
        let (epochs, shown) = (11, counts(&source, 0..11));
        let mut first = 0;
        for (size, share) in datasets {
            let times: Vec<u64> = (first..first + size).map(|id| *shown.get(&id).unwrap_or(&0)).collect();
            let exact = source.len() as f64 * share as f64 / 6.0;
            let own = times.iter().sum::<u64>() as f64 / epochs as f64;
            assert!((own - exact).abs() < 1.0, "{draws:?}: {own} source positions per epoch, share {exact}");
            let spread = times.iter().max().zip(times.iter().min()).map_or(0, |(high, low)| high - low);
            assert!(spread <= 1, "{draws:?}: {times:?}");
            first += size;
        }
        assert_eq!(shown.values().sum::<u64>(), epochs * source.len());
    }
    assert!(matches!(Mixture::new(&[(5, 0), (4, 0)], None), Err(Error::NoShare)));
    assert!(matches!(Mixture::new(&[(5, 1), (0, 2)], None), Err(Error::EmptyDataset { index: 1, share: 2 })));
    assert!(matches!(Mixture::new(&[(1 << 63, 1), (1, 1)], None), Err(Error::TooManySamples { .. })));
}

#[test]
fn large_numbers_do_not_overflow() {
    let mixture =
        Source::Mixture(Mixture::new(&[(1 << 62, u64::MAX), (3, u64::MAX)], Some(1 << 63)).expect("datasets"));
    let weighted = Source::Weighted(Weighted::new([1 << 62, 1 << 62], Some(1 << 63)).expect("weights"));
    let (classes, _) = balanced(&[3, 50]);
    for epoch in [0, 1, u64::MAX] {
        for v in [0, 1, (1 << 62) - 1, 1 << 62, (1 << 63) - 1] {
            assert!(mixture.id(Order::Sequential, u64::MAX, epoch, v) < (1 << 62) + 3);
            assert_eq!(weighted.id(Order::Sequential, u64::MAX, epoch, v), v >> 62);
        }
        assert!((0..classes.len()).all(|v| classes.id(Order::Sequential, u64::MAX, epoch, v) < 53));
    }
}

#[test]
fn canonical_json_distinguishes_sources() {
    let list = |ids: &[u64]| Source::List(List::new(ids.to_vec(), 10).expect("ids in range"));
    let weighted = |w: &[u64], n| Source::Weighted(Weighted::new(w.to_vec(), n).expect("weights"));
    let mixture = |d: &[(u64, u64)], n| Source::Mixture(Mixture::new(d, n).expect("datasets"));
    let sources = [
        Source::All(4),
        list(&[0, 1, 2, 3]),
        list(&[0, 1, 3, 2]),
        list(&[0, 1, 2]),
        balanced(&[2, 2]).0,
        balanced(&[1, 3]).0,
        balanced(&[4]).0,
        weighted(&[1, 1, 1, 1], None),
        weighted(&[1, 1, 1, 1], Some(5)),
        weighted(&[1, 1, 2, 1], None),
        mixture(&[(4, 1)], None),
        mixture(&[(4, 2)], None),
        mixture(&[(2, 1), (2, 1)], None),
        mixture(&[(2, 1), (2, 1)], Some(3)),
    ];
    let mut jsons: Vec<String> = sources.iter().map(Source::canonical_json).collect();
    assert!(jsons.iter().all(|j| serde_json::from_str::<serde_json::Value>(j).is_ok() && !j.contains(' ')));
    let mut crcs: Vec<u32> = sources.iter().map(Source::crc).collect();
    jsons.sort();
    jsons.dedup();
    crcs.sort();
    crcs.dedup();
    assert_eq!((jsons.len(), crcs.len()), (sources.len(), sources.len()));
}
