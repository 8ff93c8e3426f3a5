// The index of a shard: header, directory and columns (format-spec.md, section "Index").

import { crc32c, dataView, decodeUtf8, hex, hex32, typedView } from "./bytes.js";
import { Damage } from "./damage.js";
import { RANGE_BYTES, VIRTUAL_COLUMNS } from "./foreign.js";

/** How many bytes of an index to fetch when it is opened. */
export const HEAD_BYTES = 65536;

const MAGIC = "895354490d0a1a0a";
const HEADER_BYTES = 64;
const ENTRY_BYTES = 72;

/** Element types by code: width in bytes and the typed array. */
const ELEMENTS = [
  { name: "bytes", width: 1, Type: Uint8Array },
  { name: "u32", width: 4, Type: Uint32Array },
  { name: "u64", width: 8, Type: BigUint64Array },
  { name: "i64", width: 8, Type: BigInt64Array },
  { name: "f32", width: 4, Type: Float32Array },
];

/** Columns of which the format fixes kind and element. */
const KNOWN_COLUMNS = {
  record_offset: ["u64"],
  image_offset: ["u32"],
  image_length: ["u32"],
  key: ["bytes"],
  jpeg_entries: ["bytes"],
  ...Object.fromEntries(VIRTUAL_COLUMNS.map((name) => [name, ["bytes"]])),
};

/** Columns that every index has. */
export const REQUIRED_COLUMNS = ["record_offset", "image_offset", "image_length", "key"];

/**
 * @typedef {object} Part
 * @property {number} start offset in the index, in bytes
 * @property {number} length length in bytes
 * @property {number} crc CRC32C, as u32
 */

/**
 * @typedef {object} ColumnEntry
 * @property {string} name the column's name
 * @property {"bytes"|"u32"|"u64"|"i64"|"f32"} element `"bytes"` for columns of variable width
 * @property {?Part} validity bits that tell which rows have a value; null if all have
 * @property {?Part} offsets offsets of variable rows; null for fixed width
 * @property {Part} values numbers, or the bytes of all rows
 */

/**
 * @typedef {object} Index
 * @property {string} file path of the index
 * @property {number} size its length in bytes
 * @property {number} minor minor version
 * @property {number} optionalFlags optional flags
 * @property {bigint} records records in the shard, as the header says
 * @property {bigint} shardBytes length of the shard in bytes, as the header says
 * @property {number} shardCrc CRC32C of the shard, as the header says
 * @property {Map<string, ColumnEntry>} columns the directory
 */

/**
 * Reads and checks the header and the directory of an index.
 *
 * @param {string} file path of the index, for messages
 * @param {{bytes: Uint8Array, size: number}} head the first bytes and the length of the file in bytes
 * @param {function(number, number): Promise<Uint8Array>} read returns the bytes of [start, end)
 * @returns {Promise<Index>} the index
 * @throws {Damage} `IndexTruncated`, `IndexMagic`, `IndexHeaderCrc`, `IndexVersion`, `IndexFlags`, `IndexLayout`,
 *   `IndexDirectoryCrc` or `IndexPadding`
 */
export async function readIndex(file, head, read) {
  const refuse = (name, what, expected = null, found = null, offset = null) => {
    throw new Damage(name, { file, expected, found, offset }, what);
  };
  const { bytes, size } = head;
  if (size < HEADER_BYTES) refuse("IndexTruncated", "the file is shorter than a header", HEADER_BYTES, size);
  const header = dataView(bytes);
  const magic = hex(bytes.subarray(0, 8));
  if (magic !== MAGIC) refuse("IndexMagic", "the file begins with other bytes", MAGIC, magic, 0);
  const headerCrc = crc32c(bytes.subarray(0, 60));
  const storedCrc = header.getUint32(60, true);
  if (headerCrc !== storedCrc) {
    refuse("IndexHeaderCrc", "the CRC of the header does not match", hex32(storedCrc), hex32(headerCrc), 60);
  }
  const major = header.getUint16(8, true);
  if (major !== 1) refuse("IndexVersion", "another major version", 1, major, 8);
  const flags = header.getUint32(12, true);
  if (flags !== 0) refuse("IndexFlags", "required flags that this reader does not know", 0, flags, 12);
  const length = header.getBigUint64(48, true);
  if (BigInt(size) < length) refuse("IndexTruncated", "the file is shorter than its header says", length, size);
  if (BigInt(size) > length) refuse("IndexLayout", "the file is longer than its header says", length, size);

  const directoryEnd = HEADER_BYTES + header.getUint32(44, true);
  if (directoryEnd > size) refuse("IndexLayout", "the directory runs past the index", size, directoryEnd, 44);
  const paddedEnd = Math.min(align(directoryEnd), size);
  const rest = paddedEnd > bytes.length ? await read(bytes.length, paddedEnd) : null;
  const directory = slicePieces(bytes, rest, HEADER_BYTES, directoryEnd);
  const directoryCrc = crc32c(directory);
  const storedDirectoryCrc = header.getUint32(56, true);
  if (directoryCrc !== storedDirectoryCrc) {
    refuse(
      "IndexDirectoryCrc",
      "the CRC of the directory does not match",
      hex32(storedDirectoryCrc),
      hex32(directoryCrc),
      56,
    );
  }
  const bad = nonZero(slicePieces(bytes, rest, directoryEnd, paddedEnd));
  if (bad >= 0) refuse("IndexPadding", "padding after the directory is not zero", 0, null, directoryEnd + bad);

  const index = {
    file,
    size,
    minor: header.getUint16(10, true),
    optionalFlags: header.getUint32(16, true),
    records: header.getBigUint64(24, true),
    shardBytes: header.getBigUint64(32, true),
    shardCrc: header.getUint32(40, true),
    columns: new Map(),
  };
  readDirectory(index, directory, header.getUint32(20, true));
  return index;
}

/** Returns bytes [start, end) of the concatenation of `first` and `second`. */
function slicePieces(first, second, start, end) {
  if (end <= first.length) return first.subarray(start, end);
  const whole = new Uint8Array(end - start);
  if (start < first.length) whole.set(first.subarray(start));
  const from = Math.max(start, first.length);
  whole.set(second.subarray(from - first.length, end - first.length), from - start);
  return whole;
}

/** Returns the first multiple of 64 at or after an offset. */
function align(offset) {
  return Math.ceil(offset / 64) * 64;
}

/** Returns the position of the first byte that is not zero; -1 if there is none. */
function nonZero(bytes) {
  return bytes.findIndex((byte) => byte !== 0);
}

/** Checks the directory entry by entry, and fills `index.columns`. */
function readDirectory(index, directory, count) {
  const view = dataView(directory);
  let at = 0;
  const refuse = (what, expected = null, found = null) => {
    const offset = HEADER_BYTES + at;
    throw new Damage("IndexLayout", { file: index.file, offset, expected, found }, what);
  };
  let nameEnd = count * ENTRY_BYTES;
  if (nameEnd > directory.length) refuse("the entries run past the directory", nameEnd, directory.length);
  for (let i = 0; i < count; i++) nameEnd += view.getUint16(i * ENTRY_BYTES + 2, true);
  if (nameEnd !== directory.length) refuse("entries and names do not fill the directory", directory.length, nameEnd);

  let partEnd = HEADER_BYTES + directory.length;
  let nameAt = count * ENTRY_BYTES;
  for (let i = 0; i < count; i++) {
    at = i * ENTRY_BYTES;
    if (view.getUint32(at + 4, true) !== 0 || view.getUint32(at + 68, true) !== 0) refuse("a reserved field is not 0");
    const [kind, code] = [directory[at], directory[at + 1]];
    if (kind > 1) refuse("unknown kind", "0 or 1", kind);
    const element = ELEMENTS[code];
    if (element === undefined) refuse("unknown element", "0 to 4", code);
    if ((kind === 1) !== (element.name === "bytes")) refuse(`element ${element.name} in a column of kind ${kind}`);

    /** Checks part number k; returns null if it is absent. */
    const part = (k, exists, expectedLength) => {
      const start = view.getBigUint64(at + 8 + 16 * k, true);
      const length = view.getBigUint64(at + 16 + 16 * k, true);
      const crc = view.getUint32(at + 56 + 4 * k, true);
      if (!(exists ?? (start !== 0n || length !== 0n))) {
        if (start !== 0n || length !== 0n || crc !== 0) refuse("an absent part has an offset, a length or a CRC");
        return null;
      }
      if (expectedLength !== null && length !== expectedLength)
        refuse("a part has another length", expectedLength, length);
      const expectedStart = align(partEnd);
      if (start !== BigInt(expectedStart)) refuse("a part is not where it must begin", expectedStart, start);
      if (start + length > BigInt(index.size)) refuse("a part runs past the index", index.size, start + length);
      partEnd = Number(start + length);
      return { start: Number(start), length: Number(length), crc };
    };
    const n = index.records;
    const validity = part(0, null, (n + 7n) / 8n);
    const offsets = part(1, kind === 1, (n + 1n) * 8n);
    const values = part(2, true, kind === 0 ? n * BigInt(element.width) : null);

    const nameLength = view.getUint16(at + 2, true);
    if (nameLength === 0) refuse("a column without a name");
    const name = decodeUtf8(directory.subarray(nameAt, nameAt + nameLength));
    if (name === null) refuse("the name of a column is not UTF-8");
    if (index.columns.has(name)) refuse("two columns of the same name", null, name);
    nameAt += nameLength;
    index.columns.set(name, { name, element: element.name, validity, offsets, values });
  }
  if (align(partEnd) !== index.size) refuse("the file does not end after the last part", align(partEnd), index.size);
}

/**
 * Compares an index with its line of the manifest, and checks that the required columns exist.
 *
 * @param {Index} index the index
 * @param {import("./manifest.js").ManifestShard} shard the line
 * @throws {Damage} `RecordCount`, `IndexMismatch` or `IndexColumn`
 */
export function checkIndex(index, shard) {
  const refuse = (name, what, expected = null, found = null) => {
    throw new Damage(name, { file: index.file, expected, found }, what);
  };
  if (index.records !== shard.records) {
    refuse("RecordCount", "another number of records than the manifest says", shard.records, index.records);
  }
  if (index.shardBytes !== shard.bytes) {
    refuse("IndexMismatch", "the index belongs to a shard of another length", shard.bytes, index.shardBytes);
  }
  if (index.shardCrc !== shard.crc32c) {
    const [expected, found] = [hex32(shard.crc32c), hex32(index.shardCrc)];
    refuse("IndexMismatch", "the index belongs to a shard with another CRC", expected, found);
  }
  for (const name of [...REQUIRED_COLUMNS, ...(shard.isVirtual ? VIRTUAL_COLUMNS : [])]) {
    if (!index.columns.has(name)) refuse("IndexColumn", `column ${name} is absent`);
  }
  for (const column of index.columns.values()) {
    const isFeature = column.name.startsWith("feature:");
    const elements = Object.hasOwn(KNOWN_COLUMNS, column.name)
      ? KNOWN_COLUMNS[column.name]
      : isFeature
        ? ["i64", "f32", "bytes"]
        : column.name.startsWith("values:")
          ? ["bytes"]
          : null;
    if (elements === null) continue;
    if (!elements.includes(column.element)) {
      refuse("IndexColumn", `column ${column.name} has another element`, elements.join(" or "), column.element);
    }
    if (!isFeature && column.validity) refuse("IndexColumn", `column ${column.name} has a validity`);
  }
}

/**
 * Returns the range of an index that holds a column: its parts, and the padding after each.
 *
 * @param {Index} index the index
 * @param {ColumnEntry} entry the column
 * @returns {[number, number]} offset of the first byte and offset after the last byte
 */
export function columnRange(index, entry) {
  const { start, length } = entry.values;
  return [(entry.validity ?? entry.offsets ?? entry.values).start, Math.min(align(start + length), index.size)];
}

/** Holds a column of one shard: typed arrays without a copy of the index's bytes. */
export class Column {
  /**
   * Checks the bytes of a column and views them.
   *
   * @param {Index} index the index
   * @param {ColumnEntry} entry the column
   * @param {Uint8Array} bytes the bytes of {@link columnRange}
   * @throws {Damage} `ColumnCrc`, `IndexPadding` or `ColumnValue`
   */
  constructor(index, entry, bytes) {
    const start = columnRange(index, entry)[0];
    const parts = [entry.validity, entry.offsets, entry.values].map((part) => {
      if (part === null) return null;
      const from = part.start - start;
      const end = from + part.length;
      const where = { file: index.file, offset: part.start };
      const content = bytes.subarray(from, end);
      const crc = crc32c(content);
      if (crc !== part.crc) {
        const found = { ...where, expected: hex32(part.crc), found: hex32(crc) };
        throw new Damage("ColumnCrc", found, `the CRC of column ${entry.name} does not match`);
      }
      const bad = nonZero(bytes.subarray(end, align(part.start + part.length) - start));
      if (bad >= 0) {
        where.offset = part.start + part.length + bad;
        throw new Damage("IndexPadding", { ...where, expected: 0 }, `padding after column ${entry.name} is not zero`);
      }
      return content;
    });
    /** Name of the column. */
    this.name = entry.name;
    /** Element: `"bytes"` for byte strings, otherwise `"u32"`, `"u64"`, `"i64"` or `"f32"`. */
    this.element = entry.element;
    /** Number of rows. */
    this.length = Number(index.records);
    /** Bits of rows that have a value, the least significant bit first; null if all rows have. */
    this.validity = parts[0];
    /** Offsets of the rows in `values`, of `length` + 1 elements; null for numbers. */
    this.offsets = parts[1] && typedView(parts[1], BigInt64Array);
    /** Numbers of all rows, or the bytes of all rows without gaps. */
    this.values = typedView(parts[2], ELEMENTS.find(({ name }) => name === entry.element).Type);
    this.#check(index.file, parts[2]);
  }

  /** Checks offsets, then validity. */
  #check(file, valueBytes) {
    const refuse = (what, row) => {
      const place = row === null ? "" : `, row ${row}`;
      throw new Damage("ColumnValue", { file }, `column ${this.name}${place}: ${what}`);
    };
    const { offsets, validity } = this;
    if (offsets) {
      if (offsets[0] !== 0n) refuse("the first offset is not 0", null);
      for (let row = 0; row < this.length; row++) if (offsets[row + 1] < offsets[row]) refuse("an offset falls", row);
      if (offsets[this.length] !== BigInt(valueBytes.length))
        refuse("the last offset is not the length of the values", null);
      const unit = this.name.startsWith("values:") ? 12 : this.name === "virtual_ranges" ? RANGE_BYTES : 1;
      for (let row = 1; row <= this.length && unit > 1; row++)
        if (offsets[row] % BigInt(unit)) refuse(`a row is not a multiple of ${unit} bytes`, row - 1);
    }
    if (!validity) return;
    let nulls = 0;
    const width = this.values.BYTES_PER_ELEMENT;
    for (let row = 0; row < validity.length * 8; row++) {
      const isSet = (validity[row >>> 3] >>> (row & 7)) & 1;
      if (row >= this.length) {
        if (isSet) refuse("an unused bit of the validity is not 0", null);
      } else if (!isSet) {
        nulls++;
        const empty = offsets
          ? offsets[row] === offsets[row + 1]
          : nonZero(valueBytes.subarray(row * width, (row + 1) * width)) < 0;
        if (!empty) refuse("a null has a value", row);
      }
    }
    if (nulls === 0) refuse("a validity without a null", null);
  }

  /**
   * Tells whether a row is null.
   *
   * @param {number} row row in [0, length)
   * @returns {boolean} true if the record has no value
   */
  isNull(row) {
    return this.validity !== null && ((this.validity[row >>> 3] >>> (row & 7)) & 1) === 0;
  }

  /**
   * Returns the value of a row.
   *
   * @param {number} row row in [0, length)
   * @returns {number|bigint|Uint8Array|null} a number (u32, f32), a BigInt (u64, i64), a view of bytes, or null
   * @throws {RangeError} if there is no such row
   */
  get(row) {
    if (!Number.isInteger(row) || row < 0 || row >= this.length) throw new RangeError(`row ${row} of ${this.length}`);
    if (this.isNull(row)) return null;
    if (!this.offsets) return this.values[row];
    return this.values.subarray(Number(this.offsets[row]), Number(this.offsets[row + 1]));
  }

  /** Iterates over the values of all rows, as {@link Column#get} returns them. */
  *[Symbol.iterator]() {
    for (let row = 0; row < this.length; row++) yield this.get(row);
  }
}
