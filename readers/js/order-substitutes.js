// Substitutes of a sample that cannot be read (order-spec.md, section "Substitutes").

import { MAX_SAMPLES, orderKey, parameter } from "./order.js";

/** How many substitutes a bad sample has. */
const SUBSTITUTES = 16;

/**
 * Lists the positions of substitutes.
 *
 * @param {number|bigint} length N, positions of the order
 * @param {number|bigint} seed u64; under policy `shard` the replica's own
 * @param {number|bigint} epoch u64
 * @param {number|bigint} position q of the bad sample
 * @returns {bigint[]} 16 positions in the order to try; none if N is 1
 */
export function substitutePositions(length, seed, epoch, position) {
  const n = parameter("length", length, 1n, MAX_SAMPLES);
  const q = parameter("position", position, 0n, n - 1n);
  return substituteNumbers(n, q, orderKey("spare", seed, epoch, q));
}

/**
 * Lists the numbers of substitutes.
 *
 * @param {bigint} length how many numbers there are
 * @param {bigint} number that of the bad sample
 * @param {bigint} key the key of `spare`
 * @returns {bigint[]} 16 numbers in the order to try; none if there is no other
 */
export function substituteNumbers(length, number, key) {
  if (length === 1n) return [];
  const stride = 1n + (key % (length - 1n));
  return Array.from({ length: SUBSTITUTES }, (_, i) => (number + BigInt(i + 1) * stride) % length);
}
