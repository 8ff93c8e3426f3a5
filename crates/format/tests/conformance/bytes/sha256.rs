//! SHA-256 (FIPS 180-4).

/// Returns the SHA-256 of bytes in hex.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let primes = || (2u64..).filter(|n| (2..*n).take_while(|d| d * d <= *n).all(|d| n % d != 0));
    // The first 32 bits of the fractional parts of square and cube roots of primes.
    let mut hash: Vec<u32> = primes().take(8).map(|p| root(p, 2)).collect();
    let constants: Vec<u32> = primes().take(64).map(|p| root(p, 3)).collect();
    let mut padded = [bytes, &[0x80]].concat();
    padded.resize((padded.len() + 8).next_multiple_of(64) - 8, 0);
    padded.extend((bytes.len() as u64 * 8).to_be_bytes());
    for block in padded.chunks(64) {
        let mut w: Vec<u32> =
            block.chunks(4).map(|word| u32::from_be_bytes(word.try_into().expect("four bytes"))).collect();
        for t in 16..64 {
            let s0 = w[t - 15].rotate_right(7) ^ w[t - 15].rotate_right(18) ^ w[t - 15] >> 3;
            let s1 = w[t - 2].rotate_right(17) ^ w[t - 2].rotate_right(19) ^ w[t - 2] >> 10;
            w.push(w[t - 16].wrapping_add(s0).wrapping_add(w[t - 7]).wrapping_add(s1));
        }
        let mut v = hash.clone();
        for (k, w) in constants.iter().zip(&w) {
            let s1 = v[4].rotate_right(6) ^ v[4].rotate_right(11) ^ v[4].rotate_right(25);
            let choice = v[4] & v[5] ^ !v[4] & v[6];
            let t1 = [s1, choice, *k, *w].iter().fold(v[7], |sum, n| sum.wrapping_add(*n));
            let s0 = v[0].rotate_right(2) ^ v[0].rotate_right(13) ^ v[0].rotate_right(22);
            let majority = v[0] & v[1] ^ v[0] & v[2] ^ v[1] & v[2];
            v.rotate_right(1);
            v[4] = v[4].wrapping_add(t1);
            v[0] = t1.wrapping_add(s0).wrapping_add(majority);
        }
        hash.iter_mut().zip(v).for_each(|(h, v)| *h = h.wrapping_add(v));
    }
    hash.iter().map(|h| format!("{h:08x}")).collect()
}

/// Returns the first 32 bits of the fractional part of the `degree`-th root of `n`.
fn root(n: u64, degree: u32) -> u32 {
    // The largest r with r^degree <= n · 2^(32 · degree).
    let power = |r: u128| (0..degree).fold(Some(1u128), |product, _| product?.checked_mul(r));
    let target = u128::from(n) << (32 * degree);
    let mut low = 0u128;
    for bit in (0..40).rev() {
        if power(low | 1 << bit).is_some_and(|p| p <= target) {
            low |= 1 << bit;
        }
    }
    low as u32
}

#[test]
fn computes_the_example_of_the_standard() {
    assert_eq!(sha256(b"abc"), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}
