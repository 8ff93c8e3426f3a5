// Steps, replicas, substitutes and augmentation (order-spec.md).

import { substitutePositions } from "./order-substitutes.js";
import { MAX_SAMPLES, ORDERS, Order, Refusal, orderKey, parameter } from "./order.js";

const POLICIES = ["sample", "shard", "off"];
const REMAINDERS = ["drop", "pad", "mask"];
const MAX_U32 = (1n << 32n) - 1n;
const MAX_U64 = (1n << 64n) - 1n;

/**
 * @typedef {object} Row
 * @property {bigint} position q, in the order of the replica; of a repeated row q mod N
 * @property {"sample"|"repeated"|"masked"} kind whether it is a sample, a sample repeated, or masked
 * @property {bigint} sourcePosition v, in the whole source; -1 if masked
 * @property {bigint} id id of the sample; -1 if masked
 */

/** Divides the positions of epochs into steps of replicas. */
export class Schedule {
  #kept = null;

  /**
   * Checks a configuration.
   *
   * @param {object} options
   * @param {import("./order-sources.js").OrderSource} options.source the source
   * @param {"sequential"|"shuffled"|"interleaved"} options.order the order
   * @param {number|bigint} options.batch B, rows of a replica's batch
   * @param {number|bigint} [options.world] R, number of replicas; 1 by default
   * @param {"sample"|"shard"|"off"} [options.policy] `sample` by default
   * @param {"drop"|"pad"|"mask"} [options.remainder] `mask` for sequential, otherwise `drop`, by default
   * @param {number|bigint} [options.seed] u64; 0 by default
   * @param {number|bigint} [options.run] L, for interleaved
   * @param {number|bigint} [options.window] C, for interleaved
   * @param {Array<number|bigint>} [options.records] records of each shard, for policy `shard`
   * @throws {RangeError} if a parameter is out of range
   * @throws {Refusal} the first failed check
   */
  constructor({
    source,
    order,
    batch,
    world = 1n,
    policy = "sample",
    remainder,
    seed = 0n,
    run,
    window,
    records = [],
  }) {
    this.source = source;
    this.batch = parameter("batch", batch, 1n, MAX_U32);
    this.world = parameter("world", world, 1n, MAX_U32);
    this.policy = oneOf("policy", policy, POLICIES);
    this.order = oneOf("order", order, ORDERS);
    this.remainder = oneOf("remainder", remainder ?? (order === "sequential" ? "mask" : "drop"), REMAINDERS);
    this.seed = parameter("seed", seed);
    if (order === "interleaved") {
      this.run = parameter("run", run, 1n, MAX_U32);
      this.window = parameter("window", window, 1n, MAX_U32);
    }
    const shards = records.map((count) => parameter("records", count));
    source.check();
    /** Source positions of each shard as [start, end); null unless the policy is `shard`. */
    this.ranges = policy === "shard" ? shardRanges(source, shards) : null;
    this.#check();
  }

  /** Returns how many replicas share the positions: 1 under `off`. */
  get #sharing() {
    return this.policy === "off" ? 1n : this.world;
  }

  /** Returns the positions of a step of all replicas. */
  get #stride() {
    return this.#sharing * this.batch;
  }

  /** Returns N_r of each replica; those after the number of shards have none, and count as one. */
  #shares() {
    const count = this.world < BigInt(this.ranges.length) ? Number(this.world) : this.ranges.length;
    const shares = new Array(count).fill(0n);
    this.ranges.forEach(([start, end], i) => (shares[i % count] += end - start));
    if (this.world > BigInt(count)) shares.push(0n);
    return shares;
  }

  #check() {
    const { source, batch, remainder } = this;
    if (this.#stride > MAX_SAMPLES)
      throw new Refusal("GlobalBatch", `${this.#stride} positions in a step, at most ${MAX_SAMPLES}`);
    const shares = this.ranges && this.#shares();
    this.shares = shares;
    this.most = shares ? greatest(shares) : source.length;
    if (shares && this.world * this.most > MAX_SAMPLES) {
      throw new Refusal(
        "TooManyPositions",
        `${this.world} replicas of ${this.most} positions, at most ${MAX_SAMPLES} together`,
      );
    }
    if (this.most === 0n) throw new Refusal("EmptySource", "the source has no samples");
    const least = shares ? -greatest(shares.map((share) => -share)) : source.length;
    if (remainder === "drop" && !shares && source.length < this.#stride) {
      throw new Refusal("DropWithoutStep", `${source.length} positions, a step needs ${this.#stride}`);
    }
    if (remainder === "drop" && shares && least < batch) {
      throw new Refusal("DropShareWithoutStep", `a replica has ${least} positions, a step needs ${batch}`);
    }
    if (remainder === "pad" && shares && least === 0n) {
      throw new Refusal("PadWithoutSamples", "a replica has no samples to repeat");
    }
  }

  /** Returns the positions of a replica's order: N, or N_r under `shard`. */
  #length(rank) {
    if (!this.shares) return this.source.length;
    return rank < BigInt(this.shares.length) && rank < this.world ? this.shares[Number(rank)] : 0n;
  }

  /**
   * Counts the steps from a position to the end of the epoch.
   *
   * @param {number|bigint} position p
   * @returns {bigint} steps
   */
  stepsLeft(position) {
    const p = parameter("p", position);
    const steps = (length, done, size) => {
      const left = length > done ? length - done : 0n;
      return this.remainder === "drop" ? left / size : (left + size - 1n) / size;
    };
    if (!this.shares) return steps(this.source.length, p, this.#stride);
    const counts = this.shares.map((share) => steps(share, p / this.world, this.batch));
    return this.remainder === "drop" ? -greatest(counts.map((count) => -count)) : greatest(counts);
  }

  /**
   * Counts the samples that `drop` omits from a position on.
   *
   * @param {number|bigint} position p
   * @returns {bigint} samples of all replicas; 0 for other remainders
   */
  dropped(position) {
    if (this.remainder !== "drop") return 0n;
    const p = parameter("p", position);
    const lengths = this.shares ?? [this.source.length];
    const done = this.shares ? p / this.world : p;
    const left = lengths.reduce((sum, length) => sum + (length > done ? length - done : 0n), 0n);
    return left - this.stepsLeft(p) * this.#stride;
  }

  /**
   * Returns where a run continues after the step that begins at a position.
   *
   * @param {number|bigint} epoch u64
   * @param {number|bigint} position p
   * @returns {[bigint, bigint]} epoch and p
   */
  after(epoch, position) {
    if (this.stepsLeft(position) <= 1n) return [(parameter("epoch", epoch) + 1n) & MAX_U64, 0n];
    return [BigInt(epoch), BigInt(position) + this.#stride];
  }

  /**
   * Returns where the next step begins: the given position, or the next epoch if no step is left.
   *
   * @param {number|bigint} epoch u64
   * @param {number|bigint} position p
   * @returns {[bigint, bigint]} epoch and p
   */
  next(epoch, position) {
    return this.stepsLeft(position) === 0n ? this.after(epoch, position) : [BigInt(epoch), BigInt(position)];
  }

  /**
   * Returns the rows of a replica in the step that begins at a position.
   *
   * @param {number|bigint} epoch u64
   * @param {number|bigint} position p
   * @param {number|bigint} rank r, in [0, R)
   * @returns {Row[]} B rows
   */
  rows(epoch, position, rank) {
    return Array.from({ length: Number(this.batch) }, (_, i) => this.row(epoch, position, rank, i));
  }

  /**
   * Returns one row of a replica in the step that begins at a position.
   *
   * @param {number|bigint} epoch u64
   * @param {number|bigint} position p
   * @param {number|bigint} rank r, in [0, R)
   * @param {number|bigint} i number of the row, in [0, B)
   * @returns {Row} the row
   */
  row(epoch, position, rank, i) {
    const p = parameter("p", position);
    const r = parameter("rank", rank, 0n, this.world - 1n);
    const number = parameter("row", i, 0n, this.batch - 1n);
    const first = this.shares ? p / this.world : this.policy === "off" ? p : p + r * this.batch;
    const q = first + number;
    const length = this.#length(r);
    if (q < length) return { kind: "sample", position: q, ...this.sample(epoch, q, r) };
    if (this.remainder !== "pad") return { kind: "masked", position: q, sourcePosition: -1n, id: -1n };
    return { kind: "repeated", position: q % length, ...this.sample(epoch, q % length, r) };
  }

  /**
   * Returns the sample at a position of a replica's order.
   *
   * @param {number|bigint} epoch u64
   * @param {number|bigint} position q
   * @param {number|bigint} [rank] r; matters under policy `shard` only
   * @returns {{sourcePosition: bigint, id: bigint}} source position and id
   */
  sample(epoch, position, rank = 0n) {
    const number = BigInt(epoch);
    if (this.#isScheduled) {
      const q = parameter("position", position, 0n, this.source.length - 1n);
      return { sourcePosition: q, id: this.source.at(q, this.seed, number, this) };
    }
    const replica = this.shares ? BigInt(rank) : 0n;
    const place = this.#order(number, replica).at(position);
    const sourcePosition = this.shares ? this.#sourcePosition(replica, place) : place;
    return { sourcePosition, id: this.source.at(sourcePosition, this.seed, number) };
  }

  /**
   * Lists the substitutes of a bad sample.
   *
   * @param {number|bigint} epoch u64
   * @param {number|bigint} position q of the bad sample
   * @param {number|bigint} [rank] r; matters under policy `shard` only
   * @returns {Array<{position: bigint, sourcePosition: bigint, id: bigint}>} up to 16 candidates, in the order to try;
   *   those of a scheduled source are of the same pass of its member, and have the bad sample's positions
   */
  substitutes(epoch, position, rank = 0n) {
    if (this.#isScheduled) {
      const q = parameter("position", position, 0n, this.source.length - 1n);
      const ids = this.source.substitutes(q, this.seed, BigInt(epoch), this);
      return ids.map((id) => ({ position: q, sourcePosition: q, id }));
    }
    const r = BigInt(rank);
    return substitutePositions(this.#length(r), this.#seed(r), epoch, position).map((candidate) => ({
      position: candidate,
      ...this.sample(epoch, candidate, r),
    }));
  }

  /**
   * Returns the key of the random numbers that augment a sample.
   *
   * @param {number|bigint} epoch u64
   * @param {bigint} sourcePosition v
   * @returns {bigint} the key, for `draw`
   */
  augmentKey(epoch, sourcePosition) {
    return orderKey("augment", this.seed, epoch, sourcePosition);
  }

  /** Returns whether the order is that of the passes of members, and positions are source positions. */
  get #isScheduled() {
    return this.source.kind === "scheduled";
  }

  #seed(rank) {
    return this.shares ? orderKey("shard", this.seed, 0n, rank) : this.seed;
  }

  /** Returns the order of an epoch and a replica; keeps the last one. */
  #order(epoch, rank) {
    if (this.#kept?.epoch !== epoch || this.#kept.rank !== rank) {
      const { order, run, window } = this;
      const length = this.#length(rank);
      const made = new Order({ order, length, seed: this.#seed(rank), epoch, run, window });
      this.#kept = { epoch, rank, order: made };
    }
    return this.#kept.order;
  }

  /** Returns the source position with number `place` among those of a replica's shards. */
  #sourcePosition(rank, place) {
    let left = place;
    for (let i = Number(rank); i < this.ranges.length; i += Number(this.world)) {
      const [start, end] = this.ranges[i];
      if (left < end - start) return start + left;
      left -= end - start;
    }
    throw new RangeError(`replica ${rank} has no source position ${place}`);
  }
}

function oneOf(name, value, known) {
  if (!known.includes(value)) throw new RangeError(`${name} is ${value}, expected one of ${known.join(", ")}`);
  return value;
}

function greatest(values) {
  return values.reduce((most, value) => (value > most ? value : most));
}

/** Returns the source positions whose ids lie in each shard; they are adjacent, since the source is ascending. */
function shardRanges(source, records) {
  const ids = source.ids ?? null;
  if (source.kind !== "all" && ids === null)
    throw new Refusal("ShardSource", `the source is ${source.kind}, expected all or a list`);
  const fall = ids?.findIndex((id, i) => i > 0 && id <= ids[i - 1]) ?? -1;
  if (fall >= 0) throw new Refusal("ShardListOrder", `id ${ids[fall]} follows ${ids[fall - 1]}`);
  const total = records.reduce((sum, count) => sum + count, 0n);
  if (total !== source.samples)
    throw new Refusal("ShardTotal", `the shards have ${total} records, the split ${source.samples}`);
  const positionOf = (id) => {
    if (ids === null) return id;
    let [low, high] = [0, ids.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (ids[middle] >= id) high = middle;
      else low = middle + 1;
    }
    return BigInt(low);
  };
  let id = 0n;
  return records.map((count) => {
    const start = positionOf(id);
    id += count;
    return [start, positionOf(id)];
  });
}
