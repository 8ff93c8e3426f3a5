//! Orders compared with a naive oracle that builds the lists of the definition.

use std::num::NonZeroU32;

use shardtool_order::{Domain, EpochOrder, Error, Order, Permutation, key};

fn interleaved(run: u32, window: u32) -> Order {
    let number = |n| NonZeroU32::new(n).expect("not 0");
    Order::Interleaved { run: number(run), window: number(window) }
}

fn bound(order: Order, len: u64, seed: u64, epoch: u64) -> EpochOrder {
    EpochOrder::new(order, len, seed, epoch).expect("in range")
}

fn shuffled(list: &[u64], key: u64) -> Vec<u64> {
    let p = Permutation::new(list.len() as u64, key).expect("in range");
    (0..p.len()).map(|i| list[p.forward(i) as usize]).collect()
}

/// The whole epoch, list by list: cut into blocks, permute the blocks, collect windows, permute each.
fn oracle(len: u64, run: usize, window: usize, seed: u64, epoch: u64) -> Vec<u64> {
    let ids: Vec<u64> = (0..len).collect();
    let blocks: Vec<&[u64]> = ids.chunks_exact(run).collect();
    let tail = ids.chunks_exact(run).remainder();
    let numbers: Vec<u64> = (0..blocks.len() as u64).collect();
    let permuted = shuffled(&numbers, key(Domain::Blocks, seed, epoch, 0));
    let mut windows: Vec<Vec<u64>> =
        permuted.chunks(window).map(|w| w.iter().flat_map(|&b| blocks[b as usize]).copied().collect()).collect();
    if windows.is_empty() {
        windows.push(Vec::new());
    }
    windows.last_mut().expect("at least one").extend(tail);
    (0..).zip(windows).flat_map(|(w, list)| shuffled(&list, key(Domain::Window, seed, epoch, w))).collect()
}

#[test]
fn interleaved_order_equals_the_lists_of_its_definition() {
    for len in (0..130).chain([1_000, 9_999, 20_000]) {
        for (run, window) in [(1, 1), (1, 7), (2, 2), (3, 5), (8, 4), (16, 1), (50, 100), (64, 90), (5_000, 2)] {
            for (seed, epoch) in [(0, 0), (8, 3)] {
                let order = bound(interleaved(run, window), len, seed, epoch);
                let expected = oracle(len, run as usize, window as usize, seed, epoch);
                let mut visited = vec![0; len as usize];
                order.cursor().fill(0, &mut visited);
                assert_eq!(visited, expected, "N = {len}, run {run}, window {window}");
            }
        }
    }
}

#[test]
fn cursor_equals_the_function_for_any_sequence_of_calls() {
    for order in [Order::Sequential, Order::Shuffled, interleaved(7, 5), interleaved(3, 10_000), interleaved(100, 100)]
    {
        let bound = bound(order, 20_011, 5, 6);
        let (mut cursor, mut filled) = (bound.cursor(), [0; 50]);
        for q in (0..19_900).step_by(173).chain([19_961, 0, 1, 20_010 - 50, 34, 35, 36]) {
            assert_eq!(cursor.at(q), bound.at(q), "{order} at {q}");
            cursor.fill(q, &mut filled);
            assert!(filled.iter().zip(q..).all(|(&v, q)| v == bound.at(q)), "{order} from {q}");
        }
    }
}

#[test]
fn sequential_order_is_the_identity() {
    let order = bound(Order::Sequential, 1 << 63, 1, 1);
    assert_eq!([0, 5, (1 << 63) - 1].map(|q| order.at(q)), [0, 5, (1 << 63) - 1]);
}

#[test]
fn a_window_has_at_most_the_given_number_of_blocks() {
    let (len, run, window) = (100_000u64, 50, 20);
    let mut cursor = bound(interleaved(run, window), len, 2, 0).cursor();
    let mut visited = vec![0; (run * window) as usize];
    for w in 0..len / u64::from(run * window) {
        cursor.fill(w * u64::from(run * window), &mut visited);
        let mut blocks: Vec<u64> = visited.iter().map(|v| v / u64::from(run)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        assert_eq!(blocks.len(), window as usize, "window {w}");
    }
}

#[test]
fn large_numbers_do_not_overflow() {
    for order in
        [interleaved(u32::MAX, u32::MAX), interleaved(1, u32::MAX), interleaved(u32::MAX, 1), interleaved(64, 256)]
    {
        for len in [1 << 63, (1 << 63) - 1, (1 << 40) + 3] {
            let bound = bound(order, len, 1, 2);
            assert!([0, len / 3, len - 2, len - 1].into_iter().all(|q| bound.at(q) < len), "{order}, N = {len}");
        }
    }
    assert!(matches!(EpochOrder::new(Order::Sequential, (1 << 63) + 1, 0, 0), Err(Error::TooManySamples { .. })));
}

#[test]
#[should_panic(expected = "position 3 of an epoch of 3")]
fn panics_at_a_position_past_the_end() {
    bound(Order::Shuffled, 3, 0, 0).at(3);
}
