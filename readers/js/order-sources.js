// Sources of an order: which sample is at which source position (order-spec.md, section "Sources").

import { crc32c, hex32 } from "./bytes.js";
import { MAX_SAMPLES, Refusal, orderKey, parameter } from "./order.js";

/**
 * @typedef {object} OrderSource
 * @property {"all"|"list"|"balanced"|"weighted"|"mixture"|"scheduled"} kind kind of the source
 * @property {bigint} samples M, the samples of the split or splits; ids are [0, M)
 * @property {bigint} length N, the number of source positions
 * @property {function(): void} check throws a {@link Refusal} if the source fails a check; call it before `at`
 * @property {function(bigint, bigint, bigint): bigint} at returns the id at a source position, given seed and epoch
 * @property {string} json the canonical JSON
 * @property {string} checksum the source checksum, eight hex digits
 */

/**
 * Computes the CRC32C of numbers, each as eight little-endian bytes.
 *
 * @param {Iterable<bigint>} numbers u64 each
 * @returns {string} eight hex digits
 */
export function numbersCrc(numbers) {
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  let crc = 0;
  for (const number of numbers) {
    view.setBigUint64(0, number, true);
    crc = crc32c(bytes, crc);
  }
  return hex32(crc);
}

/**
 * Completes a source: lengths that are too large, the canonical JSON and its checksum.
 *
 * @param {object} source its members, `check` with the checks of this kind only, `json` as a function
 * @returns {OrderSource} the source
 */
export function makeSource({ kind, samples, length, json, at, check = () => {} }) {
  return {
    kind,
    samples,
    length,
    at,
    check() {
      check();
      if (length > MAX_SAMPLES || samples > MAX_SAMPLES) {
        throw new Refusal("TooManySamples", `${length} source positions of ${samples} samples, at most ${MAX_SAMPLES}`);
      }
    },
    get json() {
      return json();
    },
    get checksum() {
      return hex32(crc32c(new TextEncoder().encode(json())));
    },
  };
}

/**
 * Makes the source of all samples.
 *
 * @param {number|bigint} samples M
 * @returns {OrderSource} the source
 */
export function allSource(samples) {
  const length = parameter("samples", samples);
  return makeSource({ kind: "all", samples: length, length, at: (v) => v, json: () => '{"source":"all"}' });
}

/**
 * Makes the source of listed samples.
 *
 * @param {Iterable<number|bigint>} ids the ids, in any sequence, each as often as it is listed
 * @param {number|bigint} samples M
 * @returns {OrderSource} the source, with the member `ids`; `check` refuses an id that is not below M (`ListedId`)
 */
export function listSource(ids, samples) {
  const list = BigUint64Array.from(ids, (id) => parameter("id", id));
  const total = parameter("samples", samples);
  const source = makeSource({
    kind: "list",
    samples: total,
    length: BigInt(list.length),
    at: (v) => list[Number(v)],
    json: () => `{"source":"list","count":${list.length},"crc32c":"${numbersCrc(list)}"}`,
    check() {
      const wrong = list.find((id) => id >= total);
      if (wrong !== undefined) throw new Refusal("ListedId", `id ${wrong}, expected less than ${total}`);
    },
  });
  return Object.assign(source, { ids: list });
}

/**
 * Makes the source that shows all classes equally often.
 *
 * @param {Iterable<[number|bigint, number|bigint]>} samples id and label (i64) of each sample, in ascending order of
 *   ids
 * @returns {OrderSource} the source
 */
export function balancedSource(samples) {
  const byLabel = new Map();
  let count = 0n;
  for (const [id, label] of samples) {
    const key = parameter("label", label, -(1n << 63n), (1n << 63n) - 1n);
    if (!byLabel.has(key)) byLabel.set(key, []);
    byLabel.get(key).push(parameter("id", id));
    count++;
  }
  const classes = [...byLabel].sort(([a], [b]) => (a < b ? -1 : 1)).map(([, ids]) => ids);
  const numbers = () => classes.flatMap((ids) => [BigInt(ids.length), ...ids]);
  const number = BigInt(classes.length);
  const rounds = number === 0n ? 0n : (count + number - 1n) / number;
  return makeSource({
    ...balancedCounts(number, count),
    at(v, seed, epoch) {
      const ids = classes[Number(v % number)];
      return ids[Number((v / number + epoch * rounds) % BigInt(ids.length))];
    },
    json: () => `{"source":"balanced","classes":${number},"count":${count},"crc32c":"${numbersCrc(numbers())}"}`,
  });
}

/** Returns the lengths of a balanced source of `classes` non-empty classes with `count` samples together. */
function balancedCounts(classes, count) {
  const length = classes === 0n ? 0n : classes * ((count + classes - 1n) / classes);
  return { kind: "balanced", samples: count, length };
}

/**
 * Makes a balanced source of which only the counts are known, to check a configuration.
 *
 * @param {number|bigint} classes J
 * @param {number|bigint} count M
 * @returns {OrderSource} a source that has no ids and no checksum
 */
export function balancedShape(classes, count) {
  const unknown = () => {
    throw new RangeError("the samples of this source are not known");
  };
  return makeSource({
    ...balancedCounts(parameter("classes", classes), parameter("count", count)),
    at: unknown,
    json: unknown,
  });
}

/**
 * Makes the source that shows samples in proportion to weights.
 *
 * @param {Iterable<number|bigint>} weights the weight of each id, u64
 * @param {?(number|bigint)} [draws] N; the number of weights by default
 * @returns {OrderSource} the source; `check` refuses a sum of weights of 0 or above 2^63 (`WeightSum`)
 */
export function weightedSource(weights, draws = null) {
  const list = BigUint64Array.from(weights, (weight) => parameter("weight", weight));
  const length = draws === null ? BigInt(list.length) : parameter("draws", draws);
  let total = 0n;
  for (const weight of list) total += weight;
  let sums = null;
  return makeSource({
    kind: "weighted",
    samples: BigInt(list.length),
    length,
    at(v, seed, epoch) {
      if (sums === null) {
        let sum = 0n;
        sums = list.map((weight) => (sum += weight));
      }
      const target = (v * total + (orderKey("weighted", seed, epoch, 0n) % total)) / length;
      let [low, high] = [0, sums.length];
      while (low < high) {
        const middle = (low + high) >> 1;
        if (sums[middle] > target) high = middle;
        else low = middle + 1;
      }
      return BigInt(low);
    },
    json: () => `{"source":"weighted","count":${list.length},"draws":${length},"crc32c":"${numbersCrc(list)}"}`,
    check() {
      if (total < 1n || total > MAX_SAMPLES) {
        throw new Refusal("WeightSum", `the weights add up to ${total}, expected 1 to ${MAX_SAMPLES}`);
      }
    },
  });
}

/**
 * Makes the source that mixes datasets in shares.
 *
 * @param {Iterable<[number|bigint, number|bigint]>} datasets samples and share (u64) of each dataset
 * @param {?(number|bigint)} [draws] N; the samples of all datasets by default
 * @returns {OrderSource} the source; `check` refuses a share of an empty dataset (`EmptyDataset`) and shares that are
 *   all 0 (`NoShare`)
 */
export function mixtureSource(datasets, draws = null) {
  const list = Array.from(datasets, ([size, share]) => ({
    size: parameter("size", size),
    share: parameter("share", share),
  }));
  const sum = (member) => list.reduce((total, dataset) => total + dataset[member], 0n);
  const [samples, shares] = [sum("size"), sum("share")];
  const length = draws === null ? samples : parameter("draws", draws);
  let parts = null;
  return makeSource({
    kind: "mixture",
    samples,
    length,
    at(v, seed, epoch) {
      parts ??= divide(list, length, shares);
      let [low, high] = [0, parts.length];
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (parts[middle].start <= v) low = middle;
        else high = middle;
      }
      const { start, count, size, firstId } = parts[low];
      return firstId + ((v - start + epoch * count) % size);
    },
    json() {
      const members = list.map(({ size, share }) => `{"size":${size},"share":${share}}`);
      return `{"source":"mixture","draws":${length},"datasets":[${members.join(",")}]}`;
    },
    check() {
      const empty = list.findIndex(({ size, share }) => share > 0n && size === 0n);
      if (empty >= 0)
        throw new Refusal("EmptyDataset", `dataset ${empty} has share ${list[empty].share} and no samples`);
      if (shares === 0n) throw new Refusal("NoShare", "all shares are 0");
    },
  });
}

/** Divides N source positions among datasets; returns those that get some, in order. */
function divide(list, length, shares) {
  const counts = list.map(({ share }) => (length * share) / shares);
  const left = Number(length - counts.reduce((total, count) => total + count, 0n));
  const rest = ({ share }) => (length * share) % shares;
  const byRest = list
    .map((dataset, i) => [rest(dataset), i])
    .sort(([a, i], [b, j]) => (a === b ? i - j : a > b ? -1 : 1));
  for (const [, i] of byRest.slice(0, left)) counts[i]++;
  let [start, firstId] = [0n, 0n];
  const parts = list.map(({ size }, i) => {
    const part = { start, count: counts[i], size, firstId };
    start += counts[i];
    firstId += size;
    return part;
  });
  return parts.filter(({ count }) => count > 0n);
}

/**
 * Computes the fingerprint of several splits, for resume states of a run over them.
 *
 * @param {string[]} fingerprints their fingerprints, eight hex digits each
 * @returns {string} eight hex digits
 */
export function mixtureFingerprint(fingerprints) {
  const bytes = new Uint8Array(4 * fingerprints.length);
  const view = new DataView(bytes.buffer);
  fingerprints.forEach((text, i) => view.setUint32(4 * i, parseInt(text, 16), true));
  return hex32(crc32c(bytes));
}
