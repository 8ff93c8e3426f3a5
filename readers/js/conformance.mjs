// The command of the conformance kit: `node conformance.mjs TASK PATH` prints JSON lines.
//
// Tasks: `read DATASET`, `verify DATASET`, `order FILE`. Others end with status 3, since this reader decodes no JPEG.

import { readFile } from "node:fs/promises";
import { dataView, hex, hex32 } from "./bytes.js";
import { JsonNumber, JsonObject, parseJson } from "./json.js";
import * as shardtool from "./shardtool.js";

const { Damage, Refusal, crc32c } = shardtool;

/** Prints one line. */
function print(value) {
  lines.push(toJson(value));
  if (lines.length >= 1000) flush();
}

const lines = [];

function flush() {
  if (lines.length > 0) process.stdout.write(lines.splice(0).join("\n") + "\n");
}

/** Formats JSON with integers of any size. */
function toJson(value) {
  if (typeof value === "bigint") return value.toString();
  if (Array.isArray(value)) return `[${value.map(toJson).join(",")}]`;
  if (value === null || typeof value !== "object") return JSON.stringify(value);
  const members = value instanceof Map ? [...value] : Object.entries(value);
  return `{${members.map(([name, member]) => `${JSON.stringify(name)}:${toJson(member)}`).join(",")}}`;
}

/** Converts parsed JSON: objects to plain ones, integers to BigInt. */
function fromJson(value) {
  if (value instanceof JsonNumber) return BigInt(value.text);
  if (value instanceof JsonObject)
    return Object.fromEntries(value.members.map(([name, member]) => [name, fromJson(member)]));
  return Array.isArray(value) ? value.map(fromJson) : value;
}

/** Describes bytes by their CRC and length. */
function digest(bytes) {
  return bytes && `${hex32(crc32c(bytes))}:${bytes.length}`;
}

/** Returns the bits of the floats of an array. */
function floatBits(values) {
  return Array.from(new Uint32Array(values.buffer, values.byteOffset, values.length), hex32);
}

/** Returns what `describe` returns, or the name of the damage it throws. */
function orError(describe) {
  try {
    return describe();
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    return { error: error.name };
  }
}

function featureValues({ type, values }) {
  if (type === "bytes") return values.map(digest);
  return type === "float" ? floatBits(values) : Array.from(values, String);
}

function describeRecord(record) {
  const line = { key: digest(record.key), data: digest(record.data), image: digest(record.image) };
  line.class = record.classId?.toString() ?? null;
  if (record.features === null) return line;
  line.features = new Map(
    [...record.features].map(([name, feature]) => {
      return [name, { type: feature.type, values: featureValues(feature) }];
    }),
  );
  if (record.format === "raw" || record.format === "raw-zstd") {
    const pixels = orError(() => record.pixels() && digest(record.pixels().data));
    if (pixels !== null) line.pixels = pixels;
  }
  const arrays = record.arrayNames.map((name) => [
    name,
    orError(() => {
      const { shape, dtype, bytes } = record.array(name);
      return { shape: shape.map(String), dtype, data: digest(bytes) };
    }),
  ]);
  if (arrays.length > 0) line.arrays = new Map(arrays);
  return line;
}

/** Describes the rows of a column of features or value ranges. */
function columnValues(column) {
  if (!column.name.startsWith("values:")) {
    const bits = column.element === "f32" ? floatBits(column.values) : null;
    const values = column.element === "bytes" ? digest : String;
    return Array.from({ length: column.length }, (_, row) => {
      if (column.isNull(row)) return null;
      return bits ? bits[row] : values(column.get(row));
    });
  }
  return Array.from(column, (row) =>
    Array.from({ length: row.length / 12 }, (_, i) => {
      const view = dataView(row.subarray(12 * i, 12 * i + 12));
      return [String(view.getUint32(0, true)), String(view.getUint32(4, true)), hex32(view.getUint32(8, true))];
    }),
  );
}

async function readShardColumns(split, shard, part) {
  let index;
  try {
    index = await shard.index();
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    return;
  }
  for (const name of index.columns.keys()) {
    if (!/^(feature|values):/.test(name)) continue;
    const line = { split: split.name, shard: part, column: name };
    try {
      print({ ...line, values: columnValues(await shard.column(name)) });
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      print({ ...line, error: error.name });
    }
  }
}

async function readLookups(split) {
  const keys = new Map();
  for (const shard of split.shards) {
    const column = await shard.column("key").catch((error) => error);
    if (column instanceof Damage) continue;
    if (column instanceof Error) throw column;
    for (const key of column) keys.set(hex(key), key);
  }
  for (const [text, key] of keys) {
    const record = await split.find(key).catch((error) => error);
    if (record instanceof Damage) continue;
    if (record instanceof Error) throw record;
    print({ split: split.name, lookup: text, record });
  }
}

async function read(path) {
  let dataset;
  try {
    dataset = await shardtool.open(path);
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    print({ refused: error.name });
    return;
  }
  for (const split of dataset.splits.values()) {
    print({ split: split.name, records: split.length, fingerprint: split.fingerprint });
    const onDamage = (damage, record) => print({ split: split.name, record, error: damage.name });
    for await (const record of split.records({ onDamage })) {
      print({ split: split.name, record: record.number, ...describeRecord(record) });
    }
    for (const [part, shard] of split.shards.entries()) await readShardColumns(split, shard, part);
    await readLookups(split);
  }
}

async function verify(path) {
  const onFinding = ({ name, file, record, offset }) => {
    // The offset of a finding in an index is not that of a frame.
    print({ finding: name, file, record, offset: record === null ? null : offset });
  };
  const { good } = await shardtool.verify(path, { onFinding });
  print({ good });
}

function makeSource(source, records) {
  switch (source?.kind) {
    case undefined:
      return shardtool.allSource(records.reduce((sum, count) => sum + count, 0n));
    case "all":
      return shardtool.allSource(source.split);
    case "list":
      return shardtool.listSource(source.ids, source.split);
    case "balanced":
      return source.samples
        ? shardtool.balancedSource(source.samples)
        : shardtool.balancedShape(source.classes, source.count);
    case "weighted":
      return shardtool.weightedSource(source.weights, source.draws);
    case "mixture":
      return shardtool.mixtureSource(source.datasets, source.draws);
    default:
      throw new RangeError(`unknown source ${source.kind}`);
  }
}

function makeSchedule(given) {
  const remainder = given.default_remainder ? undefined : given.remainder;
  return new shardtool.Schedule({ ...given, remainder, source: makeSource(given.source, given.records ?? []) });
}

const VECTORS = {
  keys({ domain, seed, epoch, tweak, bounds }) {
    const key = shardtool.orderKey(domain, seed, epoch, tweak);
    const words = [0, 1, 2, 3].map((i) => shardtool.draw(key, i));
    const result = {
      key: hex64(key),
      words: words.map(hex64),
      floats_times_2_53: words.map((word) => BigInt(shardtool.drawFloat(word) * 2 ** 53)),
      below_1000: words.map((word) => shardtool.drawBelow(word, 1000)),
    };
    if (bounds) result.below = bounds.map((bound, i) => shardtool.drawBelow(shardtool.draw(key, i), bound));
    return result;
  },
  permutations({ len, key, seed, x = [] }) {
    const bits = seed === undefined ? BigInt(`0x${key}`) : shardtool.orderKey("pack", seed, 0, 0);
    const permutation = seed === undefined ? new shardtool.Permutation(len, bits) : shardtool.packOrder(len, seed);
    const y = x.map((number) => permutation.at(number));
    y.forEach((number, i) => {
      if (permutation.inverse(number) !== x[i]) throw new Error(`the inverse of ${number} is not ${x[i]}`);
    });
    return { key: hex64(bits), y };
  },
  orders({ len, position = [], ...options }) {
    const order = new shardtool.Order({ ...options, length: len });
    return { place: position.map((q) => order.at(q)) };
  },
  sources({ source, seed, epoch, place }) {
    const made = makeSource(source, []);
    made.check();
    const id = place.map((v) => made.at(v, seed, epoch));
    return { len: made.length, id, json: made.json, crc32c: made.checksum };
  },
  steps({ epoch, p, ...given }) {
    const schedule = makeSchedule(given);
    const rows = Array.from({ length: Number(given.world) }, (_, rank) => schedule.rows(epoch, p, rank));
    const marks = { sample: "", repeated: "+" };
    const isMasked = ({ kind }) => kind === "masked";
    return {
      steps_left: schedule.stepsLeft(p),
      dropped: schedule.dropped(p),
      after: schedule.after(epoch, p),
      rows: rows.map((batch) => batch.map((row) => (isMasked(row) ? "-" : marks[row.kind] + row.position))),
      ids: rows.map((batch) => batch.map((row) => row.id)),
      augment: rows.map((batch) =>
        batch.map((row) => {
          return isMasked(row) ? null : hex64(shardtool.draw(schedule.augmentKey(epoch, row.sourcePosition), 0));
        }),
      ),
    };
  },
  substitutes({ epoch, len, seed, position, p, rank, row, ...given }) {
    if (row === undefined) return { candidates: shardtool.substitutePositions(len, seed, epoch, position) };
    const schedule = makeSchedule({ ...given, seed });
    const bad = schedule.row(epoch, p, rank, row);
    if (bad.kind === "masked") return { position: null, candidates: [], ids: [] };
    const candidates = schedule.substitutes(epoch, bad.position, rank);
    return {
      position: bad.position,
      candidates: candidates.map((one) => one.position),
      ids: candidates.map(({ id }) => id),
    };
  },
  refusals(given) {
    makeSchedule(given);
    return { refused: null };
  },
  states({ source, fingerprints, ...state }) {
    if (fingerprints) return { mixture: shardtool.mixtureFingerprint(fingerprints) };
    return { json: shardtool.formatState({ ...state, source: hex32(crc32c(new TextEncoder().encode(source))) }) };
  },
  resumes({ state, fingerprint, ...given }) {
    return {
      resume: shardtool.checkResume(shardtool.parseState(state), makeSchedule(given), fingerprint),
      refused: null,
    };
  },
};

function hex64(value) {
  return value.toString(16).padStart(16, "0");
}

/** Returns the kind of a vector by its inputs. */
function vectorKind(given) {
  const has = (name) => Object.hasOwn(given, name);
  if (has("domain")) return "keys";
  if (has("state")) return "resumes";
  if (has("fingerprint") || has("fingerprints")) return "states";
  if (has("place")) return "sources";
  if (has("row") || (has("position") && !Array.isArray(given.position))) return "substitutes";
  if (has("batch")) return has("p") ? "steps" : "refusals";
  return has("order") ? "orders" : "permutations";
}

async function order(path) {
  for (const line of (await readFile(path, "utf8")).split("\n")) {
    if (line.trim() === "") continue;
    const given = fromJson(parseJson(line));
    const kind = vectorKind(given);
    try {
      print(VECTORS[kind](given));
    } catch (error) {
      if (!(error instanceof Refusal) && !(error instanceof RangeError)) throw error;
      // A parameter out of range is refused without a name.
      const refused = error.reason ?? "";
      print(kind === "resumes" ? { resume: null, refused } : { refused });
    }
  }
}

const TASKS = { read, verify, order };
const [task, path] = process.argv.slice(2);
if (!Object.hasOwn(TASKS, task ?? "") || path === undefined) {
  process.exitCode = 3;
} else {
  await TASKS[task](path);
  flush();
}
