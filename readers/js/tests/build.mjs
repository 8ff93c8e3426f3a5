// Builds datasets for the tests of this folder, from format-spec.md: the smallest writer that can also write nonsense.

import { createHash } from "node:crypto";
import { crc32c, hex32, maskCrc } from "../bytes.js";

export const utf8 = (text) => new TextEncoder().encode(text);

export function concat(...parts) {
  const all = parts.map((part) => (typeof part === "string" ? utf8(part) : part));
  const bytes = new Uint8Array(all.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of all) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}

/** Writes numbers little-endian: `le(u64, 8)`. */
export function le(value, width) {
  return Uint8Array.from({ length: width }, (_, i) => Number((BigInt(value) >> BigInt(8 * i)) & 255n));
}

export function varint(value) {
  let rest = BigInt.asUintN(64, BigInt(value));
  const bytes = [];
  do {
    bytes.push(Number(rest & 127n) | (rest > 127n ? 128 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Uint8Array.from(bytes);
}

/** Writes a field of wire type 2. */
export function field(number, content) {
  const bytes = concat(content);
  return concat(varint(number * 8 + 2), varint(bytes.length), bytes);
}

export const bytesList = (...values) => field(1, concat(...values.map((value) => field(1, value))));
export const floatList = (...values) =>
  field(2, values.length ? field(1, new Uint8Array(Float32Array.from(values).buffer)) : "");
export const int64List = (...values) => field(3, values.length ? field(1, concat(...values.map(varint))) : "");
export const entry = (name, feature) => field(1, concat(field(1, name), field(2, feature)));

/** Writes an Example from `[name, Feature]` pairs. */
export const example = (...features) => field(1, concat(...features.map(([name, feature]) => entry(name, feature))));

export function frame(data) {
  const length = le(data.length, 8);
  return concat(length, le(maskCrc(crc32c(length)), 4), data, le(maskCrc(crc32c(data)), 4));
}

const align = (offset) => Math.ceil(offset / 64) * 64;
const CODES = { bytes: 0, u32: 1, u64: 2, i64: 3, f32: 4 };

/** Returns the parts of a column of numbers or byte strings; null rows need `nulls`. */
export function column(name, element, rows) {
  const nulls = rows.map((row) => row === null);
  const width = { u32: 4, u64: 8, i64: 8, f32: 4 }[element];
  const number = (row) => {
    if (element === "f32") return new Uint8Array(Float32Array.of(row ?? 0).buffer);
    return le(row ?? 0, width);
  };
  const values = concat(...rows.map((row) => (element === "bytes" ? concat(row ?? "") : number(row))));
  let end = 0;
  const ends = rows.map((row) => (end += concat(row ?? "").length));
  const validity = new Uint8Array(Math.ceil(rows.length / 8));
  nulls.forEach((isNull, row) => (validity[row >> 3] |= isNull ? 0 : 1 << (row & 7)));
  return {
    name,
    element,
    parts: [
      nulls.some((isNull) => isNull) ? validity : null,
      element === "bytes" ? concat(le(0, 8), ...ends.map((offset) => le(offset, 8))) : null,
      values,
    ],
  };
}

/** Writes an index; `change(bytes)` edits the directory before its CRC is computed. */
export function indexFile({ records, shard, columns, header = {}, change = () => {} }) {
  const names = columns.map(({ name }) => utf8(name));
  const directoryLength = columns.length * 72 + names.reduce((sum, name) => sum + name.length, 0);
  let end = 64 + directoryLength;
  const pieces = [];
  const entries = columns.map(({ element, parts }, i) => {
    const places = parts.map((part) => {
      if (part === null) return [0, 0, 0];
      const start = align(end);
      end = start + part.length;
      pieces.push([start, part]);
      return [start, part.length, crc32c(part)];
    });
    return concat(
      Uint8Array.of(element === "bytes" ? 1 : 0, CODES[element]),
      le(names[i].length, 2),
      le(0, 4),
      ...places.map(([start, length]) => concat(le(start, 8), le(length, 8))),
      ...places.map(([, , crc]) => le(crc, 4)),
      le(0, 4),
    );
  });
  const directory = concat(...entries, ...names);
  change(directory);
  const bytes = new Uint8Array(align(end));
  const head = concat(
    Uint8Array.of(0x89, 0x53, 0x54, 0x49, 0x0d, 0x0a, 0x1a, 0x0a),
    le(header.major ?? 1, 2),
    le(header.minor ?? 0, 2),
    le(header.required ?? 0, 4),
    le(header.optional ?? 0, 4),
    le(header.columns ?? columns.length, 4),
    le(header.records ?? records, 8),
    le(header.shardBytes ?? shard.length, 8),
    le(header.shardCrc ?? crc32c(shard), 4),
    le(directory.length, 4),
    le(header.length ?? bytes.length, 8),
    le(crc32c(directory), 4),
  );
  bytes.set(concat(head, le(crc32c(head), 4), directory));
  for (const [start, part] of pieces) bytes.set(part, start);
  return bytes;
}

/** Completes a manifest's text, whose CRC line has eight zeros. */
export function sealText(text) {
  return utf8(text.replace('"crc32c": "00000000"\n}', `"crc32c": "${hex32(crc32c(utf8(text)))}"\n}`));
}

/** Returns the members of a manifest's JSON as lines; `extra` holds further lines. */
export function manifestText({ requires, image = null, label = null, features, classes = [], splits, extra = [] }) {
  const shard = (one) => `      ${JSON.stringify(one)}`;
  const lines = [
    '  "format": "shardtool"',
    '  "version": "1.0"',
    ...(requires ? [`  "requires": ${JSON.stringify(requires)}`] : []),
    `  "image": ${JSON.stringify(image)}`,
    `  "label": ${JSON.stringify(label)}`,
    '  "label_offset": 0',
    `  "features": ${JSON.stringify(features)}`,
    `  "classes": ${JSON.stringify(classes)}`,
    `  "splits": [\n${splits.map(({ name, shards }) => `    {"name": "${name}", "shards": [\n${shards.map(shard).join(",\n")}\n    ]}`).join(",\n")}\n  ]`,
    ...extra,
    '  "crc32c": "00000000"',
  ];
  return `{\n${lines.join(",\n")}\n}\n`;
}

/** Returns a shard's line of the manifest. */
export function shardLine(file, records, shard, index, { sha256 = false } = {}) {
  const line = {
    file,
    records,
    bytes: shard.length,
    crc32c: hex32(crc32c(shard)),
    index_bytes: index.length,
    index_crc32c: hex32(crc32c(index)),
  };
  return sha256 ? { ...line, sha256: createHash("sha256").update(shard).digest("hex") } : line;
}

/**
 * Builds a dataset of one shard from records, each `{ data, key, image: [start, length] | null }`.
 *
 * Returns its files as a Map from path to bytes. `edit.shard` and `edit.columns` change what is stored.
 */
export function dataset(records, { manifest = {}, columns = [], edit = {}, sha256 = true, header, change } = {}) {
  const file = "train-00000.tfrecord";
  const frames = records.map(({ data }) => frame(data));
  let at = 0;
  const offsets = frames.map((bytes) => (at += bytes.length) - bytes.length);
  const shard = edit.shard?.(concat(...frames)) ?? concat(...frames);
  const made = [
    column("record_offset", "u64", offsets),
    column(
      "image_offset",
      "u32",
      records.map(({ image }) => image?.[0] ?? 0),
    ),
    column(
      "image_length",
      "u32",
      records.map(({ image }) => image?.[1] ?? 0),
    ),
    column(
      "key",
      "bytes",
      records.map(({ key }) => key),
    ),
    ...columns,
  ];
  const index = indexFile({ records: records.length, shard, columns: edit.columns?.(made) ?? made, header, change });
  const shards = [shardLine(file, records.length, shard, index, { sha256 })];
  const text = manifestText({ splits: [{ name: "train", shards }], ...manifest });
  return new Map([
    ["dataset.json", sealText(text)],
    [file, shard],
    [`_index/${file}.index`, index],
  ]);
}

/** Makes a source of files in memory that records its requests. */
export function memorySource(files) {
  const requests = [];
  const find = (path) => {
    if (!files.has(path)) throw Object.assign(new Error(path), { code: "ENOENT" });
    return files.get(path);
  };
  return {
    requests,
    async size(path) {
      return find(path).length;
    },
    async read(path, start, end) {
      requests.push(path);
      return find(path).slice(start, end);
    },
  };
}
