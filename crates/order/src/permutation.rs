//! A seekable bijection on `[0, N)`: a shuffled table for small N, a Feistel network for large N.

use crate::Error;
use crate::prf::{Domain, key, mix, scale};
use crate::rng::Rng;

/// The largest N whose permutation is a table, of at most 8 KiB. A network of few values would prefer some permutations.
pub(crate) const TABLE: u64 = 4096;

/// Rounds of the network. With five or more random round functions it cannot be distinguished from a random permutation
/// from fewer values than a half can take (Patarin, "Security of random Feistel schemes with 5 or more rounds", 2004).
const ROUNDS: usize = 6;

/// Values that [`Network::pass`] computes in parallel.
const LANES: usize = 4;

/// The largest N.
pub(crate) const MAX: u64 = 1 << 63;

/// A permutation of `[0, N)`, N ≤ 2⁶³, chosen by a key. Memory is bounded by 8 KiB whatever N is.
#[derive(Clone, Debug)]
pub struct Permutation {
    len: u64,
    map: Map,
}

#[derive(Clone, Debug)]
enum Map {
    Table(Box<[u16]>),
    Network(Network),
}

impl Permutation {
    /// Makes the permutation of `[0, len)` for a key.
    ///
    /// # Errors
    /// [`Error::TooManySamples`] if `len` exceeds 2⁶³.
    pub fn new(len: u64, key: u64) -> Result<Self, Error> {
        if len > MAX {
            return Err(Error::TooManySamples { len });
        }
        Ok(Permutation::bounded(len, key))
    }

    /// As [`Permutation::new`], for a length already known to be at most 2⁶³.
    pub(crate) fn bounded(len: u64, key: u64) -> Self {
        let map =
            if len <= TABLE { Map::Table(table(len as usize, key)) } else { Map::Network(Network::new(len, key)) };
        Permutation { len, map }
    }

    /// Returns N.
    #[expect(clippy::len_without_is_empty, reason = "the size of a domain, not of a collection")]
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns the image of `x`.
    ///
    /// # Panics
    /// If `x` is N or more.
    #[inline]
    pub fn forward(&self, x: u64) -> u64 {
        assert!(x < self.len, "position {x} of a permutation of {}", self.len);
        match &self.map {
            Map::Table(t) => u64::from(t[x as usize]),
            Map::Network(n) => n.forward(x),
        }
    }

    /// Returns the preimage of `y`: `inverse(forward(x)) == x`. Takes time linear in N if the permutation is a table.
    ///
    /// # Panics
    /// If `y` is N or more.
    pub fn inverse(&self, y: u64) -> u64 {
        assert!(y < self.len, "position {y} of a permutation of {}", self.len);
        match &self.map {
            Map::Table(t) => t.iter().position(|&v| u64::from(v) == y).unwrap_or(t.len()) as u64,
            Map::Network(n) => n.inverse(y),
        }
    }

    /// Replaces each of `values` by its image.
    pub(crate) fn forward_all(&self, values: &mut [u64]) {
        match &self.map {
            Map::Table(t) => values.iter_mut().for_each(|x| *x = u64::from(t[*x as usize])),
            Map::Network(n) => n.forward_all(values),
        }
    }
}

/// Returns the order in which `pack` takes a listing: entry `forward(i)` of the sorted listing is packed as the i-th.
///
/// # Errors
/// [`Error::TooManySamples`] if `len` exceeds 2⁶³.
pub fn pack_permutation(seed: u64, len: u64) -> Result<Permutation, Error> {
    Permutation::new(len, key(Domain::Pack, seed, 0, 0))
}

/// Fisher-Yates shuffle, from the end.
fn table(len: usize, key: u64) -> Box<[u16]> {
    let mut rng = Rng::new(key);
    let mut t: Box<[u16]> = (0..len as u16).collect();
    for i in (1..len).rev() {
        let j = rng.below(i as u32 + 1) as usize;
        t.swap(i, j);
    }
    t
}

/// A Feistel network on pairs (left, right) of `[0, a) × [0, b)`, as in Black and Rogaway, "Ciphers with arbitrary
/// finite domains" (2002). With a = ⌈√N⌉ and b = ⌈N/a⌉ fewer than a of the a·b pairs lie outside `[0, N)`, so another
/// pass (cycle walking) is needed with probability below 1/√N.
#[derive(Clone, Debug)]
struct Network {
    len: u64,
    a: u64,
    b: u64,
    keys: [u64; ROUNDS],
}

impl Network {
    fn new(len: u64, key: u64) -> Self {
        let root = len.isqrt();
        let a = if root * root == len { root } else { root + 1 };
        let mut rng = Rng::new(key);
        Network { len, a, b: len.div_ceil(a), keys: std::array::from_fn(|_| rng.next_u64()) }
    }

    #[inline(always)]
    fn forward(&self, mut x: u64) -> u64 {
        loop {
            [x] = self.pass([x]);
            if x < self.len {
                return x;
            }
        }
    }

    fn forward_all(&self, values: &mut [u64]) {
        let (lanes, rest) = values.as_chunks_mut::<LANES>();
        for lane in lanes {
            *lane = self.pass(*lane);
            for x in lane.iter_mut().filter(|x| **x >= self.len) {
                *x = self.forward(*x);
            }
        }
        rest.iter_mut().for_each(|x| *x = self.forward(*x));
    }

    /// Computes all rounds once. A round depends on the preceding one; the N independent values hide its latency.
    #[inline(always)]
    fn pass<const N: usize>(&self, xs: [u64; N]) -> [u64; N] {
        let mut halves = xs.map(|x| split(x, self.b));
        for pair in self.keys.chunks_exact(2) {
            for (l, r) in &mut halves {
                *l = add(*l, scale(mix(*r ^ pair[0]), self.a), self.a);
            }
            for (l, r) in &mut halves {
                *r = add(*r, scale(mix(*l ^ pair[1]), self.b), self.b);
            }
        }
        halves.map(|(l, r)| l * self.b + r)
    }

    fn inverse(&self, mut y: u64) -> u64 {
        loop {
            let (mut l, mut r) = split(y, self.b);
            for pair in self.keys.chunks_exact(2).rev() {
                r = add(r, self.b - scale(mix(l ^ pair[1]), self.b), self.b);
                l = add(l, self.a - scale(mix(r ^ pair[0]), self.a), self.a);
            }
            y = l * self.b + r;
            if y < self.len {
                return y;
            }
        }
    }
}

/// Computes (x ÷ b, x mod b), with a 32-bit division if both fit: it takes a third of the time on many processors.
#[inline(always)]
pub(crate) fn split(x: u64, b: u64) -> (u64, u64) {
    match (u32::try_from(x), u32::try_from(b)) {
        (Ok(x), Ok(b)) => (u64::from(x / b), u64::from(x % b)),
        _ => (x / b, x % b),
    }
}

/// Computes (x + y) mod m for x < m, y ≤ m.
#[inline(always)]
fn add(x: u64, y: u64, m: u64) -> u64 {
    let s = x + y;
    if s >= m { s - m } else { s }
}
