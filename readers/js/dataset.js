// Datasets and splits (format-spec.md, sections "Reading a dataset" and "Object stores").

import { Damage } from "./damage.js";
import { SourceFiles } from "./foreign.js";
import { DECODE_LIMIT } from "./images.js";
import { MANIFEST, fingerprint, parseManifest } from "./manifest.js";
import { Shard, twice } from "./shard.js";
import { readWhole, toSource } from "./sources.js";
import { verifyDataset } from "./verify.js";

/**
 * Opens a dataset. Reads the manifest and nothing else.
 *
 * @param {string|URL|import("./sources.js").Source} where the dataset's folder: a path (Node), an `http(s):` URL, or an
 *   object with `read(path, start, end)` and `size(path)`
 * @param {object} [options] those of `FileSource` and `HttpSource`, and
 * @param {number} [options.decodeLimit] the most bytes to decompress for one image or array; 2^30 by default
 * @param {string[]} [options.sources] folders and URLs in which shards, and source files of virtual ones, may lie, besides the dataset's
 * @returns {Promise<Dataset>} the dataset
 * @throws {Damage} one of the manifest
 * @throws {NotFound} if there is no manifest
 */
export async function open(where, options = {}) {
  const source = toSource(where, options);
  const manifest = await twice(source, MANIFEST, async () => parseManifest(await readWhole(source, MANIFEST)));
  return new Dataset(source, manifest, options);
}

/** Holds an open dataset. */
export class Dataset {
  /**
   * Creates a dataset. Call {@link open} instead.
   *
   * @param {import("./sources.js").Source} source the source
   * @param {import("./manifest.js").Manifest} manifest its manifest
   * @param {object} options those of {@link open}
   */
  constructor(source, manifest, { decodeLimit = DECODE_LIMIT, ...options } = {}) {
    this.source = source;
    /** The files of shards that lie elsewhere, and the source files of virtual ones. */
    this.sourceFiles = new SourceFiles(source, options);
    /** The manifest. */
    this.manifest = manifest;
    this.decodeLimit = decodeLimit;
    /** Class names by class id; empty if classes have no names. */
    this.classes = manifest.classes;
    /** The splits: a Map of {@link Split} by name, in the manifest's order. */
    this.splits = new Map(manifest.splits.map((split) => [split.name, new Split(this, split)]));
  }

  /**
   * Returns a split.
   *
   * @param {string} name its name
   * @returns {Split} the split
   * @throws {RangeError} if there is no such split
   */
  split(name) {
    const split = this.splits.get(name);
    if (!split) throw new RangeError(`no split ${name}; the splits are ${[...this.splits.keys()].join(", ")}`);
    return split;
  }

  /**
   * Reads all files of the dataset and lists the damage.
   *
   * @param {object} [options] see {@link verify}
   * @returns {Promise<{findings: Damage[], notes: string[], good: number}>} the findings in the order of the files,
   *   what is worth a note and not damage, and the number of records that can be delivered by number and by key
   */
  verify(options = {}) {
    return verifyDataset(this, options);
  }
}

/**
 * Verifies a dataset. Like `Dataset.verify`, and a refused manifest is a finding, too.
 *
 * @param {string|URL|import("./sources.js").Source} where as for {@link open}
 * @param {object} [options] those of {@link open}, and
 * @param {function(Damage)} [options.onFinding] is called with each finding
 * @returns {Promise<{findings: Damage[], notes: string[], good: number}>} as of `Dataset.verify`
 * @throws {NotFound} if there is no manifest
 */
export async function verify(where, options = {}) {
  let dataset;
  try {
    dataset = await open(where, options);
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    options.onFinding?.(error);
    return { findings: [error], notes: [], good: 0 };
  }
  return dataset.verify(options);
}

/** Holds one split: its records are numbered from 0 across all shards. */
export class Split {
  #starts = [];

  /**
   * Creates a split. `open` calls this.
   *
   * @param {Dataset} dataset the dataset
   * @param {object} entry the split's member of the manifest
   */
  constructor(dataset, entry) {
    this.dataset = dataset;
    /** Name of the split. */
    this.name = entry.name;
    /** Number of records. */
    this.length = Number(entry.records);
    /** The shards: an array of {@link Shard}. */
    this.shards = entry.shards.map((shard) => new Shard(dataset, shard));
    /** Fingerprint, eight hex digits: changes if a record or the order of records changes. */
    this.fingerprint = fingerprint(entry.shards);
    let start = 0;
    for (const shard of this.shards) {
      this.#starts.push(start);
      start += shard.length;
    }
  }

  /**
   * Finds the shard of a record.
   *
   * @param {number|bigint} number number of the record
   * @returns {{shard: Shard, row: number, part: number}} the shard, the record's number in it, the number of the shard
   * @throws {RangeError} if there is no such record
   */
  locate(number) {
    const i = Number(number);
    if (!Number.isSafeInteger(i) || i < 0 || i >= this.length) {
      throw new RangeError(`record ${number} of split ${this.name}, which has ${this.length}`);
    }
    let [low, high] = [0, this.#starts.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.#starts[middle] <= i) low = middle;
      else high = middle;
    }
    return { shard: this.shards[low], row: i - this.#starts[low], part: low };
  }

  /**
   * Reads a record and checks its frame.
   *
   * @param {number|bigint} number number of the record, from 0
   * @returns {Promise<DataRecord>} the record
   * @throws {Damage} the first damage that prevents it: of the shard, the column of offsets, the frame or the Example
   * @throws {RangeError} if there is no such record
   */
  async record(number) {
    const { shard, row } = this.locate(number);
    return shard.record(row, Number(number));
  }

  /**
   * Reads records in order, adjacent ones in one request.
   *
   * @param {object} [options]
   * @param {number} [options.start] number of the first record; 0 by default
   * @param {number} [options.end] number after the last record; all by default
   * @param {function(Damage, number)} [options.onDamage] is called with the damage and the number of each record that
   *   cannot be delivered; without it the first damage is thrown
   * @yields {DataRecord} the records without damage
   * @throws {Damage}
   */
  async *records({ start = 0, end = this.length, onDamage } = {}) {
    for (let number = start; number < end;) {
      const { shard, row } = this.locate(number);
      const stop = Math.min(shard.length, row + (end - number));
      for await (const { record, damage, row: at } of shard.run(row, stop, number - row)) {
        if (record) yield record;
        else if (!onDamage) throw damage;
        else onDamage(damage, number - row + at);
      }
      number += stop - row;
    }
  }

  /**
   * Reads the image of a record by its range in the index, without parsing the record.
   *
   * @param {number|bigint} number number of the record
   * @returns {Promise<?Uint8Array>} the image as stored; null if the record has none
   * @throws {Damage} as of {@link Split#record}, or `IndexMismatch` if the range leaves the record
   */
  async image(number) {
    const { shard, row } = this.locate(number);
    return shard.image(row);
  }

  /**
   * Reads one value of a bytes feature by the column `values:NAME`, without the rest of the record.
   *
   * @param {number|bigint} number number of the record
   * @param {string} name name of the feature
   * @param {number} i number of the value in the record
   * @returns {Promise<Uint8Array>} the value; its CRC is checked
   * @throws {Damage} of the shard or a column; `IndexMismatch` if the range leaves the record; `DataCrc`
   * @throws {AbsentColumn} if the shard has no such column
   * @throws {RangeError} if the record has no such value
   */
  async value(number, name, i) {
    const { shard, row } = this.locate(number);
    return shard.value(row, name, i);
  }

  /**
   * Reads a column of all shards. Reads no shard.
   *
   * @param {string} name name of the column, such as `"key"` or `"feature:image/class/label"`
   * @returns {Promise<SplitColumn>} the column
   * @throws {Damage} of an index or of the column
   * @throws {AbsentColumn} if a shard has no such column, so that its values are unknown
   */
  async column(name) {
    return new SplitColumn(await Promise.all(this.shards.map((shard) => shard.column(name))));
  }

  /**
   * Looks up a key in the indexes. Reads no shard.
   *
   * @param {string|Uint8Array} key the key; a string is encoded as UTF-8
   * @returns {Promise<?number>} number of the first record that has it, or null
   * @throws {Damage} if an index, or its column of keys, is damaged before the key is found
   */
  async find(key) {
    for (const [i, shard] of this.shards.entries()) {
      const row = await shard.find(key);
      if (row !== null) return this.#starts[i] + row;
    }
    return null;
  }
}

/** Holds a column of all shards of a split, without joining them. */
export class SplitColumn {
  /**
   * Creates a column. `Split.column` calls this.
   *
   * @param {Column[]} chunks the columns of the shards, in order
   */
  constructor(chunks) {
    /** The column of each shard. */
    this.chunks = chunks;
    /** Number of rows: the records of the split. */
    this.length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
  }

  /**
   * Returns the value of a record.
   *
   * @param {number} number number of the record in the split
   * @returns {number|bigint|Uint8Array|null} as of `Column.get`
   * @throws {RangeError} if there is no such record
   */
  get(number) {
    let row = number;
    for (const chunk of this.chunks) {
      if (row < chunk.length) return chunk.get(row);
      row -= chunk.length;
    }
    throw new RangeError(`record ${number} of ${this.length}`);
  }

  /** Iterates over the values of all records. */
  *[Symbol.iterator]() {
    for (const chunk of this.chunks) yield* chunk;
  }
}
