// Shards: which bytes of a shard and its index to read, and when (format-spec.md, "Object stores").

import { crc32c, dataView, hex32 } from "./bytes.js";
import { AbsentColumn, Damage, isNotFound } from "./damage.js";
import { FRAME_HEADER, FRAME_OVERHEAD, checkFrameData, checkFrameHeader, isCompressed } from "./frame.js";
import { OtherDataset, VirtualShard } from "./foreign.js";
import { Column, HEAD_BYTES, checkIndex, columnRange, readIndex } from "./index.js";
import { DataRecord } from "./record.js";
import { readExactly, readHead } from "./sources.js";

/** How many bytes adjacent records have in one request. */
const RUN_BYTES = 2 ** 20;
/** How large a gap between records is read along. */
const GAP_BYTES = 4096;
/** How many bytes of a frame to read if the index does not say where it ends. */
const GUESS_BYTES = 65536;

/**
 * Attempts once more where a second reading can give other bytes, before damage is reported.
 *
 * @param {import("./sources.js").Source} source the source
 * @param {string} path the file that is read
 * @param {function(): Promise} attempt reads and checks
 * @returns {Promise} what `attempt` returns
 */
export async function twice(source, path, attempt) {
  try {
    return await attempt();
  } catch (error) {
    if (!(error instanceof Damage) || typeof source.forget !== "function") throw error;
    source.forget(path);
    return attempt();
  }
}

/** Holds one shard and its index. Both are read when they are first needed. */
export class Shard {
  #kept = new Map();
  #head = null;
  #keyColumn = null;

  /**
   * Creates a shard. `open` calls this.
   *
   * @param {Dataset} dataset the dataset
   * @param {import("./manifest.js").ManifestShard} entry the shard's line of the manifest
   */
  constructor(dataset, entry) {
    this.dataset = dataset;
    /** The shard's line of the manifest. */
    this.entry = entry;
    /** File name of the shard. */
    this.file = entry.file;
    /** Path of its index. */
    this.indexFile = `_index/${entry.file}.index`;
    /** Number of records. */
    this.length = Number(entry.records);
    /** What makes the frames of a virtual shard; null for a stored one. */
    this.virtual = entry.isVirtual ? new VirtualShard(this) : null;
    const isElsewhere = entry.source !== null && !entry.isVirtual;
    /** What reads the shard and its index. */
    this.source = isElsewhere ? new OtherDataset(dataset.sourceFiles, entry) : dataset.source;
  }

  /** Computes a result once. Damage is kept, too; failures of the store are not. */
  #once(name, compute) {
    let promise = this.#kept.get(name);
    if (!promise) {
      promise = compute();
      this.#kept.set(name, promise);
      promise.catch((error) => {
        if (!(error instanceof Damage)) this.#kept.delete(name);
      });
    }
    return promise;
  }

  /** Returns the length of the shard's file in bytes, of a virtual one that in the manifest; throws `MissingShard`. */
  size() {
    if (this.virtual) return Promise.resolve(Number(this.entry.bytes));
    return this.#once("size", async () => {
      try {
        return await this.source.size(this.file);
      } catch (error) {
        if (!isNotFound(error)) throw error;
        throw new Damage("MissingShard", { file: this.file }, "there is no such file");
      }
    });
  }

  /**
   * Opens the index and checks it, without its columns. Does not read the shard.
   *
   * @returns {Promise<import("./index.js").Index>} the index
   * @throws {Damage} `MissingIndex`, or one of the index
   */
  index() {
    const { source } = this;
    return this.#once("index", () =>
      twice(source, this.indexFile, async () => {
        try {
          this.#head = await readHead(source, this.indexFile, HEAD_BYTES);
        } catch (error) {
          if (!isNotFound(error)) throw error;
          throw new Damage("MissingIndex", { file: this.indexFile }, "there is no such file");
        }
        const read = (start, end) => readExactly(source, this.indexFile, start, end);
        const index = await readIndex(this.indexFile, this.#head, read);
        checkIndex(index, this.entry);
        return index;
      }),
    );
  }

  /**
   * Reads a column of the index and checks it.
   *
   * @param {string} name name of the column
   * @returns {Promise<Column>} the column
   * @throws {Damage} of the index or of the column
   * @throws {AbsentColumn} if the index has no such column
   */
  async column(name) {
    const index = await this.index();
    const entry = index.columns.get(name);
    if (!entry) throw new AbsentColumn(this.indexFile, name);
    return this.#once(`column:${name}`, () => {
      const [start, end] = columnRange(index, entry);
      const { source } = this;
      let head = this.#head.bytes;
      return twice(source, this.indexFile, async () => {
        const isKept = end <= head.length;
        const bytes = isKept ? head.subarray(start, end) : await readExactly(source, this.indexFile, start, end);
        head = new Uint8Array(0);
        const column = new Column(index, entry, bytes);
        if (name === "key") this.#keyColumn = column;
        return column;
      });
    });
  }

  /**
   * Looks up a key in the index. Does not read the shard.
   *
   * @param {string|Uint8Array} key the key; a string is encoded as UTF-8
   * @returns {Promise<?number>} the first row that has it, or null
   * @throws {Damage} of the index, or of its column of keys
   */
  async find(key) {
    const bytes = typeof key === "string" ? new TextEncoder().encode(key) : key;
    return (await this.#keys()).get(byteText(bytes)) ?? null;
  }

  /** Returns the first row of each key, by the key's bytes as text. */
  #keys() {
    return this.#once("keys", async () => {
      const column = await this.column("key");
      const rows = new Map();
      for (let row = 0; row < column.length; row++) {
        const key = byteText(column.get(row));
        if (!rows.has(key)) rows.set(key, row);
      }
      return rows;
    });
  }

  /**
   * Reads a record and checks its frame.
   *
   * @param {number} row number of the record in the shard
   * @param {?number} [number] number of the record in its split
   * @returns {Promise<DataRecord>} the record
   * @throws {Damage} as of `Split.record`
   */
  async record(row, number = null) {
    const place = await this.#place(row);
    return this.#parse(await this.#frame(place), place, number);
  }

  /** Reads the image of a record by its range in the index; see `Split.image`. */
  async image(row) {
    const place = await this.#place(row);
    const [offset, length] = await Promise.all(["image_offset", "image_length"].map((name) => this.column(name)));
    const data = await this.#frame(place);
    const [start, end] = [offset.values[row], offset.values[row] + length.values[row]];
    if (end > data.length) {
      throw this.#damage("IndexMismatch", place, "the image leaves the record", { expected: data.length, found: end });
    }
    return start === 0 ? null : data.subarray(start, end);
  }

  /** Reads one value of a bytes feature; see `Split.value`. */
  async value(row, name, i) {
    const place = await this.#place(row);
    const ranges = (await this.column(`values:${name}`)).get(row);
    if (!(i >= 0 && i < ranges.length / 12)) {
      throw new RangeError(`value ${i} of ${name} in record ${row} of ${this.file}, which has ${ranges.length / 12}`);
    }
    const view = dataView(ranges.subarray(12 * i, 12 * i + 12));
    const [offset, length, crc] = [0, 4, 8].map((at) => view.getUint32(at, true));
    const start = place.offset + FRAME_HEADER + offset;
    const end = start + length;
    if (end + 4 > place.bound) {
      const values = { expected: `at most ${place.bound - 4}`, found: end };
      throw this.#damage("IndexMismatch", place, `value ${i} of ${name} leaves the record`, values);
    }
    if (end > place.fileEnd) {
      const values = { expected: this.entry.bytes, found: place.fileEnd };
      throw this.#damage("ShardLength", place, `value ${i} of ${name} lies past the end of the file`, values);
    }
    const source = this.virtual ? this.dataset.sourceFiles : this.source;
    return twice(source, this.file, async () => {
      const bytes = this.virtual
        ? (await this.virtual.frame(row)).subarray(start - place.offset, end - place.offset)
        : await readExactly(source, this.file, start, end);
      if (crc32c(bytes) !== crc) {
        const values = { expected: hex32(crc), found: hex32(crc32c(bytes)) };
        throw this.#damage("DataCrc", place, `the CRC of value ${i} of ${name} does not match`, values);
      }
      return bytes;
    });
  }

  /**
   * Reads the records of adjacent rows, in requests of about 1 MiB.
   *
   * @param {number} start first row
   * @param {number} end row after the last
   * @param {number} base number of row 0 in the split
   * @yields {{row: number, record: DataRecord}|{row: number, damage: Damage}} each record, or what prevents it
   */
  async *run(start, end, base) {
    for (let row = start; row < end;) {
      let [places, damage] = [[], null];
      try {
        places = [await this.#place(row)];
        while (row + places.length < end) {
          const next = await this.#place(row + places.length);
          const gap = next.offset - places.at(-1).limit;
          if (this.virtual || gap < 0 || gap > GAP_BYTES || next.limit - places[0].offset > RUN_BYTES) break;
          places.push(next);
        }
      } catch (error) {
        if (!(error instanceof Damage)) throw error;
        if (places.length === 0) damage = error;
      }
      if (damage) {
        yield { row: row++, damage };
        continue;
      }
      const from = places[0].offset;
      const to = Math.min(places.at(-1).limit, places[0].fileEnd);
      const bytes = this.virtual ? null : to > from ? await readExactly(this.source, this.file, from, to) : new Uint8Array(0);
      for (const place of places) {
        let record = null;
        try {
          const at = place.offset - from;
          const data = await this.#frame(place, bytes?.subarray(at, at + place.limit - place.offset));
          record = this.#parse(data, place, base + row);
        } catch (error) {
          if (!(error instanceof Damage)) throw error;
          damage = error;
        }
        yield record ? { row, record } : { row, damage };
        row++;
      }
    }
  }

  /** Makes a damage of a record. Its key is known if the column of keys has been read. */
  #damage(name, { row, offset }, what, values = {}) {
    const key = this.#keyColumn?.get(row) ?? null;
    const place = name === "IndexMismatch" ? { file: this.indexFile } : { file: this.file, offset };
    return new Damage(name, { ...place, record: row, key, ...values }, what);
  }

  /** Returns where a record's frame begins, and where the next one does or the shard ends. */
  async #place(row) {
    const size = await this.size();
    const { values, length } = await this.column("record_offset");
    const shardBytes = this.entry.bytes;
    const offset = values[row];
    if (offset >= shardBytes) {
      const values = { expected: `less than ${shardBytes}`, found: offset };
      throw this.#damage("IndexMismatch", { row, offset }, "the offset of the record lies past the shard", values);
    }
    const next = row + 1 < length ? values[row + 1] : shardBytes;
    const isOrdered = next > offset && next <= shardBytes;
    const bound = Number(isOrdered ? next : shardBytes);
    return {
      row,
      offset: Number(offset),
      // The record ends before this offset; how far to read at first.
      bound,
      limit: isOrdered ? bound : Math.min(bound, Number(offset) + GUESS_BYTES),
      // The frame must end where the next one begins, unless that offset cannot be one.
      isExact: next <= shardBytes,
      next: Number(next),
      fileEnd: Math.min(size, Number(shardBytes)),
    };
  }

  /** Reads and checks a frame, from `bytes` if they hold all of it; returns its data. */
  async #frame(place, bytes = null) {
    if (this.virtual) return (await this.frame(place.row)).subarray(FRAME_HEADER, -4);
    const { source } = this;
    let given = bytes;
    return twice(source, this.file, async () => {
      const frame = given ?? (await this.#readRange(place, place.limit));
      given = null;
      return this.#checkFrame(place, frame);
    });
  }

  /** Makes and checks a frame of a virtual shard. */
  async #virtualFrame(place) {
    const frame = await this.virtual.frame(place.row);
    const header = checkFrameHeader(frame, frame.length);
    if ("name" in header) throw this.#damage(header.name, place, header.what, header);
    const length = header.length + FRAME_OVERHEAD;
    if (length !== frame.length) {
      const found = { expected: frame.length, found: length };
      throw this.#damage("IndexMismatch", place, "the frame does not end where the index says", found);
    }
    const wrong = checkFrameData(frame);
    if (wrong) throw this.#damage(wrong.name, place, wrong.what, wrong);
    return frame;
  }

  /** Makes and checks the whole frame of a row of a virtual shard. */
  async frame(row) {
    const place = await this.#place(row);
    return twice(this.dataset.sourceFiles, this.file, () => this.#virtualFrame(place));
  }

  #readRange({ offset, fileEnd }, end) {
    const stop = Math.min(end, fileEnd);
    return offset < stop ? readExactly(this.source, this.file, offset, stop) : new Uint8Array(0);
  }

  async #checkFrame(place, bytes) {
    const { source } = this;
    const remaining = Math.max(0, place.fileEnd - place.offset);
    let frame = bytes;
    if (frame.length < Math.min(FRAME_HEADER, remaining))
      frame = await this.#readRange(place, place.offset + FRAME_HEADER);
    let damage = checkFrameHeader(frame, remaining);
    if ("name" in damage) {
      const first = await readExactly(source, this.file, 0, Math.min(FRAME_HEADER, place.fileEnd));
      if (isCompressed(first)) {
        throw new Damage("CompressedRecords", { file: this.file }, "the shard is a gzip or zlib file");
      }
      if (damage.name === "TruncatedFrame" && BigInt(place.fileEnd) < this.entry.bytes) {
        damage = { ...damage, name: "ShardLength" };
      }
      throw this.#damage(damage.name, place, damage.what, damage);
    }
    const length = damage.length + FRAME_OVERHEAD;
    if (place.isExact && place.offset + length !== place.next) {
      const found = { expected: place.next, found: place.offset + length };
      throw this.#damage("IndexMismatch", place, "the frame does not end where the index says", found);
    }
    if (frame.length < length) frame = await this.#readRange(place, place.offset + length);
    frame = frame.subarray(0, length);
    const wrong = checkFrameData(frame);
    if (wrong) throw this.#damage(wrong.name, place, wrong.what, wrong);
    return frame.subarray(FRAME_HEADER, length - 4);
  }

  #parse(data, { row, offset }, number) {
    const { manifest, decodeLimit: limit } = this.dataset;
    return new DataRecord(data, { manifest, file: this.file, row, offset, limit }, number);
  }
}

/** Maps bytes to a string with one character per byte, as a key of a Map. */
function byteText(bytes) {
  return BYTE_TEXT.decode(bytes);
}

/** Decodes each of the 256 bytes to another character. */
const BYTE_TEXT = new TextDecoder("windows-1252");
