// A record: its features, key, class, image and arrays.

import { dataView } from "./bytes.js";
import { Damage } from "./damage.js";
import { MalformedError, parseExample } from "./example.js";
import { DecodeError, FILE_FORMATS, arrayNames, decodeArray, decodePixels, detectFormat } from "./images.js";

/**
 * @typedef {object} RecordContext
 * @property {import("./manifest.js").Manifest} manifest the dataset's manifest
 * @property {string} file file name of the shard
 * @property {number} row number of the record in its shard
 * @property {number} offset offset of its frame in the shard, in bytes
 * @property {number} limit the most bytes to decompress for an image or array
 */

/** Holds one record of a dataset. */
export class DataRecord {
  #context;

  /**
   * Parses a record. `Split.record` and `verify` call this.
   *
   * @param {Uint8Array} data the bytes of the record
   * @param {RecordContext} context where it comes from
   * @param {?number} [number] number of the record in its split
   * @throws {Damage} `MalformedExample`, in a dataset whose manifest lists features
   */
  constructor(data, context, number = null) {
    this.#context = context;
    /** The bytes of the record. */
    this.data = data;
    /** Number of the record in its split. */
    this.number = number;
    /** File name of its shard. */
    this.file = context.file;
    /** Number of the record in its shard. */
    this.row = context.row;
    /** Features by name: a Map of `Feature`; null if the dataset's records are opaque. */
    this.features = null;
    /** Whether the bytes have a field 2, where a SequenceExample has its feature lists. */
    this.hasField2 = false;
    const { manifest } = context;
    if (manifest.features.length === 0) return;
    try {
      const sequence = manifest.requires.includes("sequence-example");
      Object.assign(this, parseExample(data, { sequence }));
    } catch (error) {
      if (!(error instanceof MalformedError)) throw error;
      throw this.damage("MalformedExample", error.message);
    }
  }

  /**
   * Makes a damage of this record.
   *
   * @param {string} name name of the damage
   * @param {string} what which check failed
   * @param {object} [values] `expected` and `found`
   * @returns {Damage} the damage, with file, record and offset
   */
  damage(name, what, values = {}) {
    const { file, row: record, offset } = this.#context;
    const key = this.features ? this.key : null;
    return new Damage(name, { file, record, offset, key, ...values }, what);
  }

  /** Returns the key: `image/key`, otherwise `image/filename`, otherwise `FILE#N`, as bytes. */
  get key() {
    return (
      this.#single("image/key", "bytes") ??
      this.#single("image/filename", "bytes") ??
      new TextEncoder().encode(`${this.file}#${this.row}`)
    );
  }

  /** Returns the image as stored, a view of the record's bytes; null if the record has no image. */
  get image() {
    const range = this.imageRange;
    return range && this.data.subarray(...range);
  }

  /** Returns where the image lies in the record's bytes, as `[start, end]`; null if the record has no image. */
  get imageRange() {
    const feature = this.features?.get(this.#context.manifest.image);
    return feature?.type === "bytes" && feature.length === 1 ? feature.range(0) : null;
  }

  /** Returns the format of the image: `image/format`, or what its first bytes say; null if both are unknown. */
  get format() {
    const named = this.#single("image/format", "bytes");
    if (named) return new TextDecoder().decode(named);
    return this.image && detectFormat(this.image);
  }

  /** Returns the class id, a BigInt; null if the record has no class. */
  get classId() {
    const { label, labelOffset, classes } = this.#context.manifest;
    const stored = this.#single(label, "int64");
    if (stored === null) return null;
    const id = stored - labelOffset;
    if (id < 0n || id >= 1n << 63n || (classes.length > 0 && id >= BigInt(classes.length))) return null;
    return id;
  }

  /** Returns the name of the class; null if the record has no class, or classes have no names. */
  get className() {
    const id = this.classId;
    return id === null ? null : (this.#context.manifest.classes[id] ?? null);
  }

  /**
   * Decodes the image, if it is stored as `raw` or `raw-zstd`. Pass images of other formats to a decoder of the
   * platform, such as `createImageBitmap(new Blob([record.image]))`.
   *
   * @returns {?{height: number, width: number, data: Uint8Array}} rows of pixels, each red, green, blue as u8, of
   *   height × width × 3 bytes; null if there is no image or its format is another known one
   * @throws {Damage} `PixelsLength`, or `ImageDecode` (also for an unknown format)
   */
  pixels() {
    const { image, format } = this;
    if (image === null) return null;
    if (format !== "raw" && format !== "raw-zstd") {
      if (FILE_FORMATS.includes(format?.toLowerCase())) return null;
      throw this.damage("ImageDecode", "the format of the image is unknown", { found: format });
    }
    const [height, width] = ["image/height", "image/width"].map((name) => this.#single(name, "int64"));
    return this.#decode(() => decodePixels(image, format, height, width, this.#context.limit));
  }

  /** Returns the names of the record's arrays: each NAME with NAME/shape, NAME/chunk, NAME/dtype and NAME/codec. */
  get arrayNames() {
    return this.features ? arrayNames(this.features) : [];
  }

  /**
   * Decodes an array.
   *
   * @param {string} name one of `arrayNames`
   * @returns {{shape: bigint[], dtype: string, bytes: Uint8Array, values: ArrayBufferView}} the whole array in C order:
   *   its little-endian bytes, and the same as a typed array (f16 and bf16 as u16, bool as u8)
   * @throws {Damage} `PixelsLength` or `ImageDecode`
   * @throws {RangeError} if the record has no such array
   */
  array(name) {
    if (!this.arrayNames.includes(name))
      throw new RangeError(`record ${this.row} of ${this.file} has no array ${name}`);
    return this.#decode(() => decodeArray(this.features, name, this.#context.limit));
  }

  /**
   * Returns the numbers of a feature of a logical type.
   *
   * @param {string} name a feature to which the manifest gives a logical type
   * @returns {?(Float64Array|BigUint64Array)} the numbers; null if the record does not have them
   * @throws {RangeError} if the feature has no logical type
   */
  numbers(name) {
    const { logical } = this.#context.manifest.features.find((feature) => feature.name === name) ?? {};
    if (!logical) throw new RangeError(`the feature ${name} has no logical type`);
    const feature = this.features?.get(name);
    if (feature?.type !== "bytes" || feature.values.some((value) => value.length !== 8)) return null;
    const numbers = new (logical === "float64" ? Float64Array : BigUint64Array)(feature.length);
    const bits = new BigUint64Array(numbers.buffer); // A signalling NaN would change as a number.
    feature.values.forEach((value, i) => (bits[i] = dataView(value).getBigUint64(0, true)));
    return numbers;
  }

  #decode(decode) {
    try {
      return decode();
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      const { expected, found } = error;
      throw this.damage(error.name, error.message, { expected, found });
    }
  }

  /** Returns the only value of a feature of this type; null if there is another number of values, or another type. */
  #single(name, type) {
    return this.features?.get(name)?.single(type) ?? null;
  }
}
