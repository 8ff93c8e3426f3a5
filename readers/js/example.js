// tf.train.Example and SequenceExample: which bytes are valid, and their features (format-spec.md, section "Records").

import { dataView, decodeUtf8 } from "./bytes.js";

const VARINT = 0;
const FIXED64 = 1;
const BYTES = 2;
const FIXED32 = 5;

/** Types by the field number of their list in a Feature. */
const LIST_TYPES = [null, "bytes", "float", "int64"];

/** Reports bytes that are not an Example. {@link parseExample} throws it; readers of records convert it to a Damage. */
export class MalformedError extends Error {
  /**
   * Creates an error.
   *
   * @param {string} what what is wrong
   * @param {number} at offset in the record, in bytes
   */
  constructor(what, at) {
    super(`${what} at byte ${at} of the record`);
    this.name = "MalformedError";
    this.at = at;
  }
}

/** Holds the values of one feature of a record. Values are decoded when they are first used. */
export class Feature {
  #data;
  #ranges;
  #values = null;

  /**
   * Creates a feature. Only {@link parseExample} calls this.
   *
   * @param {Uint8Array} data the record
   * @param {"bytes"|"float"|"int64"} type the type of the list
   * @param {number} length number of values
   * @param {number[]} ranges start and end of each byte string, or of each run of packed numbers
   */
  constructor(data, type, length, ranges) {
    this.#data = data;
    this.#ranges = ranges;
    /** Type: `"bytes"`, `"float"` or `"int64"`. */
    this.type = type;
    /** Number of values. */
    this.length = length;
  }

  /**
   * Makes an int64 feature from numbers, for the lengths of feature lists.
   *
   * @param {number[]} numbers the values
   * @returns {Feature} the feature
   */
  static fromLengths(numbers) {
    const feature = new Feature(new Uint8Array(0), "int64", numbers.length, []);
    feature.#values = BigInt64Array.from(numbers, BigInt);
    return feature;
  }

  /** Returns the values: an array of views of bytes, a `Float32Array` or a `BigInt64Array`, of `length` elements. */
  get values() {
    return (this.#values ??= this.#decode());
  }

  /**
   * Returns the range of byte string number `i` in the record.
   *
   * @param {number} i number of the value, in [0, length); the feature is of type bytes
   * @returns {[number, number]} offset of its first byte and offset after its last byte
   */
  range(i) {
    return [this.#ranges[2 * i], this.#ranges[2 * i + 1]];
  }

  /** Returns the only value of a feature of this type with exactly one value; otherwise null. */
  single(type) {
    return this.type === type && this.length === 1 ? this.values[0] : null;
  }

  #decode() {
    const [data, ranges] = [this.#data, this.#ranges];
    if (this.type === "bytes") {
      return Array.from({ length: this.length }, (_, i) => data.subarray(...this.range(i)));
    }
    let n = 0;
    if (this.type === "float") {
      const values = new Float32Array(this.length);
      const bits = new Uint32Array(values.buffer); // A signalling NaN would change as a number.
      const view = dataView(data);
      for (let i = 0; i < ranges.length; i += 2) {
        for (let at = ranges[i]; at < ranges[i + 1]; at += 4) bits[n++] = view.getUint32(at, true);
      }
      return values;
    }
    const values = new BigInt64Array(this.length);
    const view = dataView(new Uint8Array(values.buffer));
    const little = new Uint8Array(BigInt64Array.of(1n).buffer)[0] === 1;
    for (let i = 0; i < ranges.length; i += 2) {
      for (let at = ranges[i]; at < ranges[i + 1]; n++) {
        let low = 0;
        let high = 0;
        for (let shift = 0, byte = 0x80; byte >= 0x80; shift += 7) {
          byte = data[at++];
          if (shift <= 28) low |= (byte & 0x7f) << shift;
          if (shift === 28) high = (byte & 0x7f) >>> 4;
          if (shift > 28) high |= (byte & 0x7f) << (shift - 32);
        }
        view.setInt32(8 * n + (little ? 0 : 4), low, little);
        view.setInt32(8 * n + (little ? 4 : 0), high, little);
      }
    }
    return values;
  }
}

/**
 * Parses a record.
 *
 * @param {Uint8Array} data the record
 * @param {object} [options]
 * @param {boolean} [options.sequence] true if the manifest requires `sequence-example`: field 2 holds feature lists
 * @returns {{features: Map<string, Feature>, hasField2: boolean}} the features that the record has, and whether it has
 *   a field 2
 * @throws {MalformedError} if the bytes are not an Example
 */
export function parseExample(data, { sequence = false } = {}) {
  const context = new Map();
  const lists = new Map();
  let hasField2 = false;
  eachField(data, 0, data.length, (number, wire, start, end) => {
    if (number === 1 && wire === BYTES) {
      eachEntry(data, start, end, (from, to) => parseFeature(data, from, to), context);
    } else if (number === 2 && wire === BYTES) {
      hasField2 = true;
      if (sequence) eachEntry(data, start, end, (from, to) => parseSteps(data, from, to), lists);
    }
  });
  const features = new Map();
  const names = new Set(context.keys());
  for (const [name, feature] of context) if (feature) features.set(name, feature);
  for (const [name, steps] of lists) {
    if (!steps) continue;
    for (const made of [name, `${name}/lengths`]) {
      if (names.size === names.add(made).size) throw new MalformedError(`the name ${made} occurs twice`, 0);
    }
    if (steps.type) features.set(name, makeFeature(data, steps));
    features.set(`${name}/lengths`, Feature.fromLengths(steps.lengths));
  }
  return { features, hasField2 };
}

/**
 * Reads a varint.
 *
 * @param {Uint8Array} data the bytes
 * @param {number} at offset of its first byte
 * @param {number} end offset after the last byte of the message
 * @returns {[number, number]} the value, rounded above 2^53, and the offset after it
 * @throws {MalformedError} if it does not end or has more than 64 bits
 */
export function readVarint(data, at, end) {
  let value = 0;
  let scale = 1;
  for (let i = 0; i < 10; i++) {
    if (at + i >= end) break;
    const byte = data[at + i];
    if (i === 9 && byte > 1) throw new MalformedError("a varint over 64 bits", at);
    value += (byte & 0x7f) * scale;
    scale *= 128;
    if (byte < 0x80) return [value, at + i + 1];
  }
  throw new MalformedError("an unfinished varint", at);
}

/** Calls `visit(number, wire, start, end)` for each field of a message, with the range of its value. */
function eachField(data, at, end, visit) {
  while (at < end) {
    const [tag, start] = readVarint(data, at, end);
    const number = Math.floor(tag / 8);
    const wire = data[at] & 7;
    if (number === 0 || number > 2 ** 29 - 1) throw new MalformedError("an invalid field number", at);
    let from = start;
    let to;
    if (wire === VARINT) to = readVarint(data, start, end)[1];
    else if (wire === FIXED64) to = start + 8;
    else if (wire === FIXED32) to = start + 4;
    else if (wire === BYTES) {
      const [length, first] = readVarint(data, start, end);
      from = first;
      to = first + length;
    } else throw new MalformedError(`wire type ${wire}`, at);
    if (to > end) throw new MalformedError("a field that is longer than its message", at);
    visit(number, wire, from, to);
    at = to;
  }
}

/** Parses Features or FeatureLists into a map; entries without a value map to null. */
function eachEntry(data, at, end, parseValue, into) {
  eachField(data, at, end, (number, wire, start, stop) => {
    if (number !== 1 || wire !== BYTES) return;
    let name = "";
    let value = null;
    eachField(data, start, stop, (field, type, from, to) => {
      if (type !== BYTES) return;
      if (field === 1) {
        name = decodeUtf8(data.subarray(from, to));
        if (name === null) throw new MalformedError("a feature name that is not UTF-8", from);
      } else if (field === 2) {
        value = parseValue(from, to);
      }
    });
    into.set(name, value);
  });
}

/** Parses a Feature; returns null if it has no list. */
function parseFeature(data, at, end) {
  const list = parseList(data, at, end);
  return list && makeFeature(data, list);
}

function makeFeature(data, { type, length, ranges }) {
  return new Feature(data, type, length, ranges);
}

/** Parses the lists of a Feature: type, number of values and their ranges; null if there is none. */
function parseList(data, at, end) {
  let list = null;
  eachField(data, at, end, (number, wire, start, stop) => {
    if (number > 3 || wire !== BYTES) throw new MalformedError("a field in a Feature that is not a list", start);
    const type = LIST_TYPES[number];
    if (list?.type !== type) list = { type, length: 0, ranges: [] };
    eachField(data, start, stop, (field, kind, from, to) => {
      if (field !== 1) return;
      list.length += countValues(data, type, kind, from, to);
      list.ranges.push(from, to);
    });
  });
  return list;
}

/** Returns the number of values in a field of a list, and checks them. */
function countValues(data, type, wire, start, end) {
  if (type === "bytes" ? wire === BYTES : wire === (type === "float" ? FIXED32 : VARINT)) return 1;
  if (type === "bytes" || wire !== BYTES) throw new MalformedError("a value of another type than its list", start);
  if (type === "float") {
    if ((end - start) % 4) throw new MalformedError("packed floats that are not a multiple of four bytes", start);
    return (end - start) / 4;
  }
  let count = 0;
  for (let at = start; at < end; count++) at = readVarint(data, at, end)[1];
  return count;
}

/** Parses a FeatureList: the values of all steps in order, and the number of values of each step. */
function parseSteps(data, at, end) {
  const steps = { type: null, length: 0, ranges: [], lengths: [] };
  eachField(data, at, end, (number, wire, start, stop) => {
    if (number !== 1 || wire !== BYTES) return;
    const list = parseList(data, start, stop);
    steps.lengths.push(list?.length ?? 0);
    if (!list?.length) return;
    if (steps.type && steps.type !== list.type) throw new MalformedError("steps of different types", start);
    steps.type = list.type;
    steps.length += list.length;
    for (const offset of list.ranges) steps.ranges.push(offset);
  });
  return steps;
}
