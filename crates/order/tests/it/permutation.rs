//! The permutation is a bijection, and `inverse` inverts it.

use shardtool_order::{Error, Permutation, Rng, pack_permutation};

fn permutation(len: u64, key: u64) -> Permutation {
    Permutation::new(len, key).expect("a length in range")
}

fn assert_bijection(len: u64, key: u64, seen: &mut Vec<bool>) {
    seen.clear();
    seen.resize(len as usize, false);
    let p = permutation(len, key);
    for x in 0..len {
        let y = p.forward(x);
        assert!(!std::mem::replace(&mut seen[y as usize], true), "N = {len}, key {key}: {y} occurs twice");
    }
}

#[test]
fn is_a_bijection_at_every_length_to_ten_thousand() {
    let (mut seen, mut rng) = (Vec::new(), Rng::new(1));
    for len in 0..=10_000 {
        for _ in 0..if len % 16 == 0 || len < 200 { 4 } else { 1 } {
            assert_bijection(len, rng.next_u64(), &mut seen);
        }
    }
}

#[test]
fn inverse_inverts_forward_at_any_length() {
    let mut rng = Rng::new(2);
    let edges =
        [1, 2, 3, 4_095, 4_096, 4_097, 4_098, 65_536, 1_000_000_000, (1 << 32) + 1, 1 << 62, (1 << 63) - 1, 1 << 63];
    let random: Vec<u64> = (0..200).map(|_| (rng.next_u64() >> 1 >> rng.below(60)).max(1)).collect();
    for len in edges.into_iter().chain(random) {
        let p = permutation(len, rng.next_u64());
        for x in (0..100).map(|_| rng.next_u64() % len).chain([0, len - 1]) {
            let y = p.forward(x);
            assert!(y < len, "N = {len}");
            assert_eq!(p.inverse(y), x, "N = {len}");
        }
    }
}

#[test]
fn many_of_a_billion_values_are_distinct() {
    let mut rng = Rng::new(3);
    for _ in 0..4 {
        let len = 500_000_000 + u64::from(rng.below(500_000_000));
        let p = permutation(len, rng.next_u64());
        let first = u64::from(rng.below(400_000_000));
        let mut ys: Vec<u64> = (first..first + 200_000).map(|x| p.forward(x)).collect();
        ys.sort_unstable();
        ys.dedup();
        assert_eq!(ys.len(), 200_000);
    }
}

#[test]
fn refuses_more_than_two_to_the_63() {
    let len = (1 << 63) + 1;
    assert!(matches!(Permutation::new(len, 0), Err(Error::TooManySamples { len: l }) if l == len));
    assert!(matches!(pack_permutation(0, len), Err(Error::TooManySamples { .. })));
}
