// Verification: every file, column and record, each failed check once (format-spec.md, "Reading a dataset").

import { Sha256, crc32c, dataView, hex32, sameBytes } from "./bytes.js";
import { Damage } from "./damage.js";
import { FRAME_HEADER, FRAME_OVERHEAD, checkFrameData, checkFrameHeader, isCompressed } from "./frame.js";
import { REQUIRED_COLUMNS } from "./index.js";
import { DataRecord } from "./record.js";
import { Shard } from "./shard.js";
import { readExactly } from "./sources.js";

/** How many bytes of a file to read at once. */
const CHUNK_BYTES = 4 * 2 ** 20;

/** Damage that explains why a shard has another number of frames. */
const EXPLAINS_COUNT = ["ShardLength", "LengthCrc", "TruncatedFrame", "CompressedRecords", "RecordCount"];

/**
 * Verifies an open dataset. Call `Dataset.verify` or `verify` instead.
 *
 * @param {import("./dataset.js").Dataset} dataset the dataset
 * @param {object} options see `verify`
 * @returns {Promise<{findings: Damage[], notes: string[], good: number}>} see `Dataset.verify`
 */
export async function verifyDataset(dataset, { onFinding } = {}) {
  const result = { findings: [], notes: [], good: 0 };
  for (const split of dataset.splits.values()) {
    for (const { entry } of split.shards) {
      const verifier = new ShardVerifier(dataset, entry, (finding) => {
        result.findings.push(finding);
        onFinding?.(finding);
      });
      await verifier.run();
      result.good += verifier.good;
      if (verifier.sequences > 0) {
        const what = "have a field 2, which holds feature lists only if the manifest requires sequence-example";
        result.notes.push(`${entry.file}: ${verifier.sequences} records ${what}`);
      }
    }
  }
  return result;
}

/** Verifies one shard and its index. */
class ShardVerifier {
  constructor(dataset, entry, report) {
    this.dataset = dataset;
    this.entry = entry;
    this.report = report;
    // A shard of its own, so that columns are freed after it.
    this.shard = new Shard(dataset, entry);
    this.index = null;
    this.columns = new Map();
    this.found = [];
    this.good = 0;
    this.sequences = 0;
  }

  add(finding) {
    this.found.push(finding);
    this.report(finding);
  }

  /** Returns what `attempt` returns; if it throws damage, adds a finding and returns null. */
  async attempt(attempt) {
    try {
      return await attempt();
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      this.add(error);
      return null;
    }
  }

  /** Tells whether a shard of another dataset must not be opened. */
  isRefused() {
    return !this.entry.isVirtual && this.found.some(({ name }) => name === "ForeignSource");
  }

  hasFinding(file) {
    return this.found.some((finding) => finding.file === file);
  }

  async run() {
    const { shard } = this;
    const size = await this.attempt(() => shard.size());
    // A shard that lies where the user does not allow it: its index lies there too.
    if (this.isRefused()) return;
    this.index = await this.attempt(() => shard.index());
    if (this.isRefused()) return;
    for (const name of this.index?.columns.keys() ?? []) {
      const column = await this.attempt(() => shard.column(name));
      if (column) this.columns.set(name, column);
    }
    if (this.entry.isVirtual) await this.#checkVirtual();
    else if (size !== null) await this.#checkShard(size);
    await this.#checkWholeIndex();
  }

  /** Compares the whole index with the manifest, unless another finding explains the difference. */
  async #checkWholeIndex() {
    const { entry } = this;
    const file = this.shard.indexFile;
    if (this.hasFinding(file)) return;
    const reader = new ForwardReader(this.shard.source, file, this.index.size);
    await reader.finish();
    if (BigInt(reader.size) !== entry.indexBytes) {
      const values = { expected: entry.indexBytes, found: reader.size };
      this.add(new Damage("IndexCrc", { file, ...values }, "the index has another length than the manifest says"));
    } else if (reader.crc !== entry.indexCrc32c) {
      const values = { expected: hex32(entry.indexCrc32c), found: hex32(reader.crc) };
      this.add(new Damage("IndexCrc", { file, ...values }, "the index has another CRC than the manifest says"));
    }
  }

  /** Checks the frames and records of the shard, their number, and the CRC of the whole file. */
  async #checkShard(size) {
    const { entry, shard } = this;
    const { file } = shard;
    const add = (name, what, expected, found) => this.add(new Damage(name, { file, expected, found }, what));
    if (BigInt(size) !== entry.bytes)
      add("ShardLength", "the shard has another length than the manifest says", entry.bytes, size);
    const sha256 = entry.sha256 === null ? null : new Sha256();
    const reader = new ForwardReader(this.shard.source, file, size, sha256);
    const frames = await this.#checkFrames(reader, BigInt(size) < entry.bytes ? size : Number(entry.bytes));
    const isExplained = this.found.some((finding) => EXPLAINS_COUNT.includes(finding.name));
    if (!isExplained && BigInt(frames) !== entry.records) {
      add("RecordCount", "the shard has another number of frames than the manifest says", entry.records, frames);
    }
    if (this.hasFinding(file)) return;
    await reader.finish();
    this.#compareSums(reader.crc, sha256);
  }

  /** Compares the sums of the whole shard with the manifest. */
  #compareSums(crc, sha256) {
    const { entry } = this;
    const add = (name, what, expected, found) =>
      this.add(new Damage(name, { file: this.shard.file, expected, found }, what));
    if (crc !== entry.crc32c) {
      add("ShardCrc", "the shard has another CRC than the manifest says", hex32(entry.crc32c), hex32(crc));
    } else if (sha256 !== null) {
      const sum = sha256.digest();
      if (sum !== entry.sha256)
        add("ShardSha256", "the shard has another SHA-256 than the manifest says", entry.sha256, sum);
    }
  }

  /** Makes and checks the frame of each row of a virtual shard, and the CRC of all. */
  async #checkVirtual() {
    const { entry, shard } = this;
    const sha256 = entry.sha256 === null ? null : new Sha256();
    let [crc, isWhole] = [0, true];
    if (this.index === null) return;
    for (let row = 0; row < shard.length; row++) {
      try {
        const frame = await shard.frame(row);
        crc = crc32c(frame, crc);
        sha256?.update(frame);
        this.#checkFrame(frame, row, Number(this.columns.get("record_offset").values[row]));
      } catch (error) {
        if (!(error instanceof Damage)) throw error;
        isWhole = false;
        if (error.record !== null) this.add(error); // That of a column was found before.
      }
    }
    if (isWhole && !this.hasFinding(shard.file)) this.#compareSums(crc, sha256);
  }

  /** Checks frame by frame up to offset `end`; returns the number of frames. */
  async #checkFrames(reader, end) {
    const { file } = this.shard;
    const resume = new NextOffsets(this.columns.get("record_offset")?.values ?? null);
    let row = 0;
    for (let at = 0; at < end;) {
      const head = await reader.window(at, Math.min(FRAME_HEADER, end - at));
      const header = checkFrameHeader(head, end - at);
      if ("name" in header) {
        if (at === 0 && isCompressed(head)) {
          this.add(new Damage("CompressedRecords", { file }, "the shard is a gzip or zlib file"));
          break;
        }
        const next = resume.after(at);
        // A wrong length of the file explains that its last frame is truncated.
        const isLast = next === null || next.offset >= end;
        const isExplained =
          header.name === "TruncatedFrame" && isLast && this.found.some(({ name }) => name === "ShardLength");
        if (!isExplained) this.add(new Damage(header.name, { file, record: row, offset: at, ...header }, header.what));
        if (isLast) break;
        row = Math.max(row + 1, next.row);
        at = next.offset;
        continue;
      }
      const length = header.length + FRAME_OVERHEAD;
      this.#checkFrame(await reader.window(at, length), row, at);
      at += length;
      row++;
    }
    return row;
  }

  /** Checks the data of a frame, the record, its row of the index, and its pixels and arrays. */
  #checkFrame(frame, row, offset) {
    const { file } = this.shard;
    const wrong = checkFrameData(frame);
    if (wrong) {
      this.add(new Damage(wrong.name, { file, record: row, offset, ...wrong }, wrong.what));
      return;
    }
    const { manifest, decodeLimit: limit } = this.dataset;
    const attempt = (check) => {
      try {
        return check();
      } catch (error) {
        if (!(error instanceof Damage)) throw error;
        this.add(error);
        return null;
      }
    };
    const data = frame.subarray(FRAME_HEADER, frame.length - 4);
    const record = attempt(() => new DataRecord(data, { manifest, file, row, offset, limit }));
    if (record === null) return;
    if (record.hasField2 && !manifest.requires.includes("sequence-example")) this.sequences++;
    if (this.index !== null && BigInt(row) < this.index.records) {
      this.#compare(record, row, offset);
      if (this.#isDelivered(record, row, offset)) this.good++;
    }
    attempt(() => record.pixels());
    for (const name of record.arrayNames) attempt(() => record.array(name));
  }

  /** Tells whether a reader delivers the record through its row, with key and image, also if the row is wrong. */
  #isDelivered({ data }, row, offset) {
    const [offsets, starts, lengths] = REQUIRED_COLUMNS.map((name) => this.columns.get(name)?.values);
    if (!REQUIRED_COLUMNS.every((name) => this.columns.has(name))) return false;
    const { bytes } = this.entry;
    const next = row + 1 < offsets.length ? offsets[row + 1] : bytes;
    if (offsets[row] !== BigInt(offset) || (next <= bytes && next !== BigInt(offset + data.length + FRAME_OVERHEAD))) {
      return false;
    }
    return starts[row] + lengths[row] <= data.length;
  }

  /** Compares a record with its row in each good column. */
  #compare(record, row, offset) {
    const { columns } = this;
    const mismatch = (what, expected, found) => {
      const where = { file: this.shard.indexFile, record: row, key: record.key, expected, found };
      this.add(new Damage("IndexMismatch", where, what));
    };
    const stored = columns.get("record_offset")?.values[row];
    if (stored !== undefined && stored !== BigInt(offset))
      mismatch("the frame begins at another offset", offset, stored);
    const [starts, lengths] = [columns.get("image_offset"), columns.get("image_length")];
    if (starts && lengths) {
      const [start, end] = record.imageRange ?? [0, 0];
      const [expected, found] = [`${start} + ${end - start}`, `${starts.values[row]} + ${lengths.values[row]}`];
      if (expected !== found) mismatch("the image has another range", expected, found);
    }
    const key = columns.get("key")?.get(row);
    if (key && !sameBytes(key, record.key)) {
      const [expected, found] = [record.key, key].map((bytes) => new TextDecoder().decode(bytes));
      mismatch("the record has another key", expected, found);
    }
    for (const [name, column] of columns) {
      if (name.startsWith("feature:")) {
        const feature = record.features?.get(name.slice(8));
        if (!isFeatureRow(column, row, feature)) {
          const found = column.get(row);
          const expected = feature?.length ? `${feature.length} values of type ${feature.type}` : "null";
          mismatch(
            `column ${name} has another value`,
            feature?.length === 1 ? feature.values[0] : expected,
            found ?? "null",
          );
        }
      } else if (name.startsWith("values:")) {
        if (!sameBytes(column.get(row), rangesOf(record.features?.get(name.slice(7))))) {
          mismatch(`column ${name} has other ranges`);
        }
      }
    }
  }
}

/** Tells whether a row of a feature's column is what the record says; floats are compared by their bits. */
function isFeatureRow(column, row, feature) {
  if (!feature?.length) return column.isNull(row);
  const type = { i64: "int64", f32: "float", bytes: "bytes" }[column.element];
  if (feature.length !== 1 || feature.type !== type || column.isNull(row)) return false;
  const value = feature.values[0];
  if (type === "bytes") return sameBytes(column.get(row), value);
  if (type === "int64") return column.values[row] === value;
  const bits = (values, i) => dataView(new Uint8Array(values.buffer, values.byteOffset + 4 * i, 4)).getUint32(0);
  return bits(column.values, row) === bits(feature.values, 0);
}

/** Returns the row that a column of value ranges has for a feature. */
function rangesOf(feature) {
  if (feature?.type !== "bytes") return new Uint8Array(0);
  const row = new Uint8Array(12 * feature.length);
  const view = dataView(row);
  feature.values.forEach((value, i) => {
    const [start, end] = feature.range(i);
    view.setUint32(12 * i, start, true);
    view.setUint32(12 * i + 4, end - start, true);
    view.setUint32(12 * i + 8, crc32c(value), true);
  });
  return row;
}

/** Finds where to continue after a frame of unknown length. */
class NextOffsets {
  constructor(offsets) {
    this.offsets = offsets;
    this.sorted = null;
    this.rows = null;
  }

  /** Returns the least offset in the index above `at`, and its row; null if there is none. */
  after(at) {
    if (this.offsets === null) return null;
    if (this.sorted === null) {
      this.sorted = this.offsets.slice().sort();
      this.rows = new Map();
      for (let row = this.offsets.length - 1; row >= 0; row--) this.rows.set(this.offsets[row], row);
    }
    let [low, high] = [0, this.sorted.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.sorted[middle] > at) high = middle;
      else low = middle + 1;
    }
    const offset = this.sorted[low];
    return offset === undefined ? null : { offset: Number(offset), row: this.rows.get(offset) };
  }
}

/** Reads a file from the first byte to the last, once, and computes its checksums on the way. */
class ForwardReader {
  #bytes = new Uint8Array(0);
  #start = 0;

  constructor(source, path, size, sha256 = null) {
    this.source = source;
    this.path = path;
    this.size = size;
    this.sha256 = sha256;
    /** CRC32C of the bytes that have been read. */
    this.crc = 0;
  }

  /** Returns bytes [start, start + length), which lie in the file; `start` never falls. */
  async window(start, length) {
    while (this.#start + this.#bytes.length < start + length) {
      const kept = this.#bytes.subarray(Math.min(start - this.#start, this.#bytes.length));
      await this.#advance(kept, Math.max(CHUNK_BYTES, start + length - this.#start - this.#bytes.length));
    }
    return this.#bytes.subarray(start - this.#start, start - this.#start + length);
  }

  /** Reads the rest of the file. */
  async finish() {
    while (this.#start + this.#bytes.length < this.size) await this.#advance(new Uint8Array(0), CHUNK_BYTES);
  }

  /** Reads up to `length` further bytes, and keeps `kept` before them. */
  async #advance(kept, length) {
    const from = this.#start + this.#bytes.length;
    const next = await readExactly(this.source, this.path, from, Math.min(from + length, this.size));
    this.crc = crc32c(next, this.crc);
    this.sha256?.update(next);
    const bytes = new Uint8Array(kept.length + next.length);
    bytes.set(kept);
    bytes.set(next, kept.length);
    this.#bytes = bytes;
    this.#start = from - kept.length;
  }
}
