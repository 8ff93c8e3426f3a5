// Turns of a stage: whose sample is at each position (order-spec.md, section "Schedules").

import { Refusal, parameter } from "./order.js";

/** The largest sum of the weights of a stage. */
const MAX_TURNS = 1n << 20n;

/**
 * Divides the weights of a stage by their greatest common divisor.
 *
 * @param {bigint[]} weights u64 each
 * @returns {bigint[]} the weights
 * @throws {Refusal} `StageWeights` if their sum is not in [1, 2^20] afterwards
 */
export function divideWeights(weights) {
  let divisor = 0n;
  for (const weight of weights) divisor = commonDivisor(divisor, weight);
  const divided = divisor === 0n ? weights : weights.map((weight) => weight / divisor);
  const sum = divided.reduce((total, weight) => total + weight, 0n);
  if (sum < 1n || sum > MAX_TURNS) {
    throw new Refusal(
      "StageWeights",
      `the weights, divided by their greatest common divisor ${divisor}, add up to ${sum}, expected 1 to ${MAX_TURNS}`,
    );
  }
  return divided;
}

function commonDivisor(a, b) {
  let [large, small] = [a, b];
  while (small > 0n) [large, small] = [small, large % small];
  return large;
}

/** Holds the turns of one stage, in six bytes each. */
export class Turns {
  /**
   * Computes the turns of a stage. Time grows with their number and the logarithm of that of the members.
   *
   * @param {bigint[]} weights the weights, divided; their sum S is at most 2^20
   */
  constructor(weights) {
    const shares = weights.map(Number);
    const length = shares.reduce((sum, weight) => sum + weight, 0);
    /** Member of each turn. */
    this.members = new Uint16Array(length);
    /** How many turns before it that member has. */
    this.earlier = new Uint32Array(length);
    // Products stay below 2^41, so numbers are exact.
    const counts = new Uint32Array(shares.length);
    const waiting = new Waiting(shares, counts);
    // Members that may take their next turn from turn k on: the first in `heads[k]`, the one after d in `next[d]`.
    const heads = new Int32Array(length).fill(-1);
    const next = new Int32Array(shares.length).fill(-1);
    shares.forEach((weight, d) => {
      if (weight > 0) [next[d], heads[0]] = [heads[0], d];
    });
    for (let k = 0; k < length; k++) {
      for (let d = heads[k]; d >= 0; d = next[d]) waiting.add(d);
      const d = waiting.take();
      [this.members[k], this.earlier[k]] = [d, counts[d]];
      counts[d]++;
      if (counts[d] === shares[d]) continue;
      // c · S < (k + 1) · w holds from k = ⌊c · S ÷ w⌋ on, which is after this turn: none is taken when it is overdue.
      const from = Math.floor((counts[d] * length) / shares[d]);
      [next[d], heads[from]] = [heads[from], d];
    }
  }

  /** How many turns there are. */
  get length() {
    return this.members.length;
  }

  /**
   * Counts the turns of each member.
   *
   * @param {number} end number of turns to look at, from the first
   * @param {number} members number of members
   * @returns {Uint32Array} turns of each member
   */
  count(end, members) {
    const counts = new Uint32Array(members);
    for (let k = 0; k < end; k++) counts[this.members[k]]++;
    return counts;
  }
}

/** The members that may take the next turn, as a heap: the one that is due first is its root. */
class Waiting {
  #heap = [];

  constructor(shares, counts) {
    this.shares = shares;
    this.counts = counts;
  }

  /** Returns whether a member goes before another: the smaller (c + 1) ÷ w, or the smaller number. */
  #before(a, b) {
    const [left, right] = [(this.counts[a] + 1) * this.shares[b], (this.counts[b] + 1) * this.shares[a]];
    return left === right ? a < b : left < right;
  }

  add(member) {
    const heap = this.#heap;
    let at = heap.push(member) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!this.#before(member, heap[parent])) break;
      heap[at] = heap[parent];
      at = parent;
    }
    heap[at] = member;
  }

  take() {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (heap.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && this.#before(heap[child + 1], heap[child])) child++;
      if (!this.#before(heap[child], last)) break;
      heap[at] = heap[child];
      at = child;
    }
    heap[at] = last;
    return first;
  }
}

/**
 * Computes the turns of a stage.
 *
 * @param {Iterable<number|bigint>} weights weight of each member, u64
 * @returns {Uint16Array} the member that has each turn; positions of the stage after the last turn begin again with the
 *   first
 * @throws {Refusal} `StageWeights`
 */
export function stageTurns(weights) {
  return new Turns(divideWeights(Array.from(weights, (weight) => parameter("weight", weight)))).members;
}
