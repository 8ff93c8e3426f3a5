// Keys, draws, permutations and orders (order-spec.md). All integers are BigInt; arguments may also be numbers.

const MASK = (1n << 64n) - 1n;
const GOLDEN = 0x9e3779b97f4a7c15n;

/** The largest number of samples, source positions, and positions of a step. */
export const MAX_SAMPLES = 1n << 63n;

/** Up to this size a permutation is a table. */
const TABLE_SIZE = 4096n;

const DOMAINS = ["shuffled", "blocks", "window", "pack", "shard", "spare", "weighted", "augment", "member", "phase"];

/** Names of orders. */
export const ORDERS = ["sequential", "shuffled", "interleaved"];

/** Reports a configuration or a resume state that order-spec.md, section "Checks", refuses. */
export class Refusal extends Error {
  /**
   * Creates a refusal.
   *
   * @param {string} reason a name of order-spec.md, such as `"EmptySource"`
   * @param {string} what the values found and expected
   */
  constructor(reason, what) {
    super(`${reason}: ${what}`);
    this.name = "Refusal";
    this.reason = reason;
  }
}

/**
 * Converts a parameter to BigInt and checks its range.
 *
 * @param {string} name its name, for the message
 * @param {number|bigint} value its value
 * @param {bigint} [min] least value
 * @param {bigint} [max] greatest value
 * @returns {bigint} the value
 * @throws {RangeError} if it is no integer in [min, max]
 */
export function parameter(name, value, min = 0n, max = MASK) {
  const isInteger = typeof value === "bigint" || Number.isSafeInteger(value);
  const integer = isInteger ? BigInt(value) : null;
  if (integer === null || integer < min || integer > max) {
    throw new RangeError(`${name} is ${value}, expected an integer from ${min} to ${max}`);
  }
  return integer;
}

function mix(value) {
  let x = value;
  x = ((x ^ (x >> 30n)) * 0xbf58476d1ce4e5b9n) & MASK;
  x = ((x ^ (x >> 27n)) * 0x94d049bb133111ebn) & MASK;
  return x ^ (x >> 31n);
}

function scale(word, bound) {
  return ((word >> 32n) * bound) >> 32n;
}

/**
 * Computes a key.
 *
 * @param {string} domain one of `shuffled`, `blocks`, `window`, `pack`, `shard`, `spare`, `weighted`, `augment`,
 *   `member`
 * @param {number|bigint} seed u64
 * @param {number|bigint} epoch u64
 * @param {number|bigint} tweak u64
 * @returns {bigint} u64
 * @throws {RangeError} if the domain is unknown or a number is no u64
 */
export function orderKey(domain, seed, epoch, tweak) {
  if (!DOMAINS.includes(domain))
    throw new RangeError(`unknown domain ${domain}, expected one of ${DOMAINS.join(", ")}`);
  let hash = 0n;
  for (const character of domain.padEnd(8)) hash = (hash << 8n) | BigInt(character.charCodeAt(0));
  for (const [name, value] of Object.entries({ seed, epoch, tweak })) {
    hash = mix(((hash ^ parameter(name, value)) + GOLDEN) & MASK);
  }
  return hash;
}

/**
 * Computes draw number `i` of a key.
 *
 * @param {bigint} key u64
 * @param {number|bigint} i number of the draw, from 0
 * @returns {bigint} u64
 */
export function draw(key, i) {
  return mix((key + (BigInt(i) + 1n) * GOLDEN) & MASK);
}

/**
 * Converts a draw to a number in [0, 1).
 *
 * @param {bigint} word a draw
 * @returns {number} a multiple of 2^-53, exact
 */
export function drawFloat(word) {
  return Number(word >> 11n) * 2 ** -53;
}

/**
 * Converts a draw to an integer in [0, bound).
 *
 * @param {bigint} word a draw
 * @param {number|bigint} bound from 1 to 2^32 - 1
 * @returns {bigint} the integer
 * @throws {RangeError} if the bound is out of range
 */
export function drawBelow(word, bound) {
  return scale(word, parameter("bound", bound, 1n, (1n << 32n) - 1n));
}

/** Permutes [0, N) as a function of a key. Needs no memory in proportion to N. */
export class Permutation {
  #table = null;

  /**
   * Creates a permutation.
   *
   * @param {number|bigint} length N, from 0 to 2^63
   * @param {bigint} key u64
   * @throws {Refusal} `TooManySamples`
   */
  constructor(length, key) {
    /** N. */
    this.length = parameter("length", length);
    if (this.length > MAX_SAMPLES) throw new Refusal("TooManySamples", `${this.length}, at most ${MAX_SAMPLES}`);
    if (this.length <= TABLE_SIZE) {
      const table = Uint16Array.from({ length: Number(this.length) }, (_, i) => i);
      for (let i = table.length - 1; i > 0; i--) {
        const j = Number(scale(draw(key, table.length - 1 - i), BigInt(i + 1)));
        [table[i], table[j]] = [table[j], table[i]];
      }
      this.#table = table;
      return;
    }
    this.rows = ceilingRoot(this.length);
    this.columns = (this.length + this.rows - 1n) / this.rows;
    this.keys = Array.from({ length: 6 }, (_, i) => draw(key, i));
  }

  /**
   * Maps a number.
   *
   * @param {number|bigint} number in [0, N)
   * @returns {bigint} in [0, N)
   * @throws {RangeError} if the number is out of range
   */
  at(number) {
    let x = parameter("number", number, 0n, this.length - 1n);
    if (this.#table) return BigInt(this.#table[Number(x)]);
    const { rows, columns, keys } = this;
    do {
      let [left, right] = [x / columns, x % columns];
      for (let i = 0; i < 6; i += 2) {
        left = (left + scale(mix(right ^ keys[i]), rows)) % rows;
        right = (right + scale(mix(left ^ keys[i + 1]), columns)) % columns;
      }
      x = left * columns + right;
    } while (x >= this.length);
    return x;
  }

  /**
   * Maps a number back.
   *
   * @param {number|bigint} number in [0, N)
   * @returns {bigint} the number that `at` maps to it
   * @throws {RangeError} if the number is out of range
   */
  inverse(number) {
    let x = parameter("number", number, 0n, this.length - 1n);
    if (this.#table) return BigInt(this.#table.indexOf(Number(x)));
    const { rows, columns, keys } = this;
    do {
      let [left, right] = [x / columns, x % columns];
      for (let i = 4; i >= 0; i -= 2) {
        right = (right + columns - scale(mix(left ^ keys[i + 1]), columns)) % columns;
        left = (left + rows - scale(mix(right ^ keys[i]), rows)) % rows;
      }
      x = left * columns + right;
    } while (x >= this.length);
    return x;
  }
}

/** Returns the smallest integer whose square is at least `n`. */
function ceilingRoot(n) {
  let root = BigInt(Math.ceil(Math.sqrt(Number(n))));
  while (root * root >= n) root--;
  while (root * root < n) root++;
  return root;
}

/**
 * Makes the permutation in which a listing of N entries is packed.
 *
 * @param {number|bigint} length N
 * @param {number|bigint} seed u64
 * @returns {Permutation} entry number i that is packed is entry `at(i)` of the sorted listing
 */
export function packOrder(length, seed) {
  return new Permutation(length, orderKey("pack", seed, 0, 0));
}

/** Maps positions of an epoch to source positions. */
export class Order {
  #permutation = null;
  #window = null;

  /**
   * Creates the order of one epoch.
   *
   * @param {object} options
   * @param {"sequential"|"shuffled"|"interleaved"} options.order its name
   * @param {number|bigint} options.length N, the number of source positions
   * @param {number|bigint} [options.seed] u64; 0 by default
   * @param {number|bigint} [options.epoch] u64; 0 by default
   * @param {number|bigint} [options.run] source positions per block, for interleaved
   * @param {number|bigint} [options.window] blocks per window, for interleaved
   * @throws {Refusal} `TooManySamples`
   * @throws {RangeError} if another parameter is out of range
   */
  constructor({ order, length, seed = 0n, epoch = 0n, run, window }) {
    if (!ORDERS.includes(order)) throw new RangeError(`unknown order ${order}, expected one of ${ORDERS.join(", ")}`);
    this.order = order;
    /** N, the number of positions. */
    this.length = parameter("length", length);
    this.seed = parameter("seed", seed);
    this.epoch = parameter("epoch", epoch);
    if (order === "interleaved") {
      this.run = parameter("run", run, 1n, (1n << 32n) - 1n);
      this.window = parameter("window", window, 1n, (1n << 32n) - 1n);
    }
    if (this.length > MAX_SAMPLES) throw new Refusal("TooManySamples", `${this.length}, at most ${MAX_SAMPLES}`);
    if (order === "shuffled") {
      this.#permutation = new Permutation(this.length, orderKey("shuffled", this.seed, this.epoch, 0n));
    } else if (order === "interleaved") {
      this.blocks = this.length / this.run;
      this.#permutation = new Permutation(this.blocks, orderKey("blocks", this.seed, this.epoch, 0n));
    }
  }

  /**
   * Returns the source position at a position.
   *
   * @param {number|bigint} position q in [0, N)
   * @returns {bigint} v in [0, N)
   * @throws {RangeError} if the position is out of range
   */
  at(position) {
    const q = parameter("position", position, 0n, this.length - 1n);
    if (this.order === "sequential") return q;
    if (this.order === "shuffled") return this.#permutation.at(q);
    const { run, window, blocks } = this;
    const windows = blocks === 0n ? 1n : (blocks + window - 1n) / window;
    const number = q / (window * run) < windows ? q / (window * run) : windows - 1n;
    const first = number * window;
    const inWindow = blocks - first < window ? blocks - first : window;
    const size = number === windows - 1n ? this.length - first * run : window * run;
    if (this.#window?.number !== number) {
      const key = orderKey("window", this.seed, this.epoch, number);
      this.#window = { number, permutation: new Permutation(size, key) };
    }
    const i = this.#window.permutation.at(q - first * run);
    if (i >= inWindow * run) return blocks * run + i - inWindow * run;
    return this.#permutation.at(first + i / run) * run + (i % run);
  }
}
