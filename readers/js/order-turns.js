// Turns of a stage: whose sample is at each position (order-spec.md, section "Schedules").

import { Refusal, draw, drawBelow, orderKey, parameter } from "./order.js";

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

/** Holds the turns of one stage, in ten bytes each. */
export class Turns {
  #firsts = null;

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
    /** The turns of each member, ascending. */
    this.places = shares.map((weight) => new Uint32Array(weight));
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
      this.members[k] = d;
      this.places[d][counts[d]] = k;
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
   * The turns with which a period can begin, ascending.
   *
   * @returns {Uint32Array} the turns; the first of them is 0
   */
  get firsts() {
    if (this.#firsts !== null) return this.#firsts;
    const length = this.length;
    const possible = new Uint8Array(length).fill(1);
    const excess = new Float64Array(length);
    for (const places of this.places) {
      if (places.length === 0) continue;
      let [least, most, had] = [0, 0, 0];
      for (let k = 0; k < length; k++) {
        while (had < places.length && places[had] < k) had++;
        excess[k] = length * had - k * places.length;
        least = Math.min(least, excess[k]);
        most = Math.max(most, excess[k]);
      }
      for (let k = 0; k < length; k++) {
        if (excess[k] <= most - length || excess[k] >= least + length) possible[k] = 0;
      }
    }
    this.#firsts = Uint32Array.from(possible.keys()).filter((k) => possible[k] === 1);
    return this.#firsts;
  }

  /**
   * Finds the turn with which a period begins.
   *
   * @param {bigint} seed the seed of the run
   * @param {bigint} start position of the run at which the stage begins
   * @param {bigint} period number of the period
   * @returns {number} the turn
   */
  first(seed, start, period) {
    const word = draw(orderKey("phase", seed, start, BigInt.asUintN(64, period)), 0);
    return this.firsts[Number(drawBelow(word, this.firsts.length))];
  }

  /**
   * Counts the turns of a member at the beginning of a period.
   *
   * @param {number} member number of the member
   * @param {number} first turn with which the period begins
   * @param {number} end number of turns to look at, less than all
   * @returns {number} turns of the member
   */
  count(member, first, end) {
    const places = this.places[member];
    const last = first + end;
    const wrapped = last >= this.length ? places.length : 0;
    return wrapped + below(places, last % this.length) - below(places, first);
  }
}

/** Counts the turns before one. */
function below(places, turn) {
  let [low, high] = [0, places.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] < turn) low = middle + 1;
    else high = middle;
  }
  return low;
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
 * @returns {Uint16Array} the member that has each turn
 * @throws {Refusal} `StageWeights`
 */
export function stageTurns(weights) {
  return turnsOf(weights).members;
}

/**
 * Computes the turns of a stage with which a period can begin.
 *
 * @param {Iterable<number|bigint>} weights weight of each member, u64
 * @returns {Uint32Array} the turns, ascending
 * @throws {Refusal} `StageWeights`
 */
export function periodFirsts(weights) {
  return turnsOf(weights).firsts;
}

function turnsOf(weights) {
  return new Turns(divideWeights(Array.from(weights, (weight) => parameter("weight", weight))));
}
