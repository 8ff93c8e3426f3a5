// The command of the conformance kit: `node conformance.mjs TASK PATH` prints JSON lines.
//
// Tasks: `read DATASET`, `verify DATASET`, `order FILE`, and `all`, which reads tasks from standard input. Others end with
// status 3, since this reader decodes no JPEG.

import { readFile } from "node:fs/promises";
import { createInterface } from "node:readline";
import { dataView, hex, hex32 } from "./bytes.js";
import { REQUIRED_COLUMNS } from "./index.js";
import { JsonNumber, JsonObject, parseJson } from "./json.js";
import { numbersCrc } from "./order-sources.js";
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

/** Describes the numbers of a logical type: the bits of floats, as 16 hex digits; integers in decimal. */
function describeNumbers(type, numbers) {
  if (numbers === null) return { type, values: null };
  const words = Array.from(new BigUint64Array(numbers.buffer));
  return { type, values: words.map((word) => (type === "uint64" ? `${word}` : word.toString(16).padStart(16, "0"))) };
}

/** Describes a record, with key and image as the index gives them; throws the first damage that prevents it. */
async function describeRecord(split, number, manifest) {
  const { shard, row } = split.locate(number);
  await shard.size();
  for (const name of REQUIRED_COLUMNS) await shard.column(name);
  const image = await split.image(number);
  const key = (await shard.column("key")).get(row);
  const record = await split.record(number);
  const line = { key: digest(key), data: digest(record.data), image: digest(image) };
  line.class = record.classId?.toString() ?? null;
  if (record.features === null) return line;
  line.features = new Map(
    [...record.features].map(([name, feature]) => {
      return [name, { type: feature.type, values: featureValues(feature) }];
    }),
  );
  const logical = manifest.features.filter(({ name, logical }) => logical && record.features.has(name));
  if (logical.length > 0) {
    line.numbers = new Map(logical.map(({ name, logical }) => [name, describeNumbers(logical, record.numbers(name))]));
  }
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

/** Returns whether a shard exists and its index opens. */
async function opens(shard) {
  try {
    await shard.size();
    await shard.index();
    return true;
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    return false;
  }
}

/** Returns a column, or the damage that prevents it. */
async function columnOrDamage(shard, name) {
  try {
    return await shard.column(name);
  } catch (error) {
    if (!(error instanceof Damage)) throw error;
    return error;
  }
}

async function readColumns(split, shard, part) {
  for (const name of (await shard.index()).columns.keys()) {
    if (!/^(feature|values):/.test(name)) continue;
    const column = await columnOrDamage(shard, name);
    const result = column instanceof Damage ? { error: column.name } : { values: columnValues(column) };
    print({ split: split.name, shard: part, column: name, ...result });
  }
}

/** Looks up each key in the good columns of these shards, each with the number of its first record. */
async function readLookups(split, shards) {
  const good = [];
  const keys = new Map();
  for (const [first, shard] of shards) {
    const column = await columnOrDamage(shard, "key");
    if (column instanceof Damage) continue;
    good.push([first, shard]);
    for (const key of column) keys.set(hex(key), key);
  }
  for (const [text, key] of keys) {
    for (const [first, shard] of good) {
      const row = await shard.find(key);
      if (row === null) continue;
      print({ split: split.name, lookup: text, record: first + row });
      break;
    }
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
    for (let number = 0; number < split.length; number++) {
      const about = { split: split.name, record: number };
      const line = await describeRecord(split, number, dataset.manifest).catch((error) => {
        if (!(error instanceof Damage)) throw error;
        return { error: error.name };
      });
      print({ ...about, ...line });
    }
    const open = [];
    let first = 0;
    for (const [part, shard] of split.shards.entries()) {
      if (await opens(shard)) {
        open.push([first, shard]);
        await readColumns(split, shard, part);
      }
      first += shard.length;
    }
    await readLookups(split, open);
  }
}

async function verify(path) {
  const onFinding = ({ name, file, record, offset }) => {
    // Offsets in indexes and in the manifest are for messages.
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
    case "scheduled":
      return shardtool.scheduledSource(source.members, source.stages, source.draws, source.split);
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
  turns({ weights }) {
    const turns = Array.from(shardtool.stageTurns(weights));
    const firsts = Array.from(shardtool.periodFirsts(weights));
    const [turns_crc32c, firsts_crc32c] = [turns, firsts].map((numbers) => numbersCrc(numbers.map(BigInt)));
    return { turns, firsts, turns_crc32c, firsts_crc32c };
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
    const { source } = schedule;
    return {
      remainder: schedule.remainder,
      steps_left: schedule.stepsLeft(p),
      dropped: schedule.dropped(p),
      after: schedule.after(epoch, p),
      rows: rows.map((batch) => batch.map((row) => (isMasked(row) ? "-" : marks[row.kind] + row.position))),
      ids: rows.map((batch) => batch.map((row) => row.id)),
      json: source.json,
      crc32c: source.checksum,
      counts: source.counts?.(epoch, p, schedule.seed).map(String) ?? null,
      augment: rows.map((batch) =>
        batch.map((row) => {
          return isMasked(row) ? null : hex64(shardtool.draw(schedule.augmentKey(epoch, row.sourcePosition), 0));
        }),
      ),
    };
  },
  substitutes({ epoch, len, seed, position, p, rank, row, ...given }) {
    if (given.source?.kind === "scheduled") {
      const candidates = makeSchedule({ ...given, seed }).substitutes(epoch, position);
      return { candidates: candidates.map(({ id }) => id) };
    }
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
  states({ source, fingerprints, split_lens, ...state }) {
    if (split_lens) {
      const { epoch, p } = state;
      const splits = fingerprints.map((fingerprint, i) => [fingerprint, split_lens[i]]);
      return { json: shardtool.formatState(shardtool.runState(makeSchedule({ ...state, source }), epoch, p, splits)) };
    }
    if (fingerprints) return { mixture: shardtool.mixtureFingerprint(fingerprints) };
    return { json: shardtool.formatState({ ...state, source: hex32(crc32c(new TextEncoder().encode(source))) }) };
  },
  resumes({ state, fingerprint, fingerprints, split_lens, ...given }) {
    const splits = fingerprint ?? fingerprints.map((one, i) => [one, split_lens[i]]);
    return {
      resume: shardtool.checkResume(shardtool.parseState(state), makeSchedule(given), splits),
      refused: null,
    };
  },
};

function hex64(value) {
  return value.toString(16).padStart(16, "0");
}

async function order(path) {
  for (const line of (await readFile(path, "utf8")).split("\n")) {
    if (line.trim() === "") continue;
    const { vector: kind, ...given } = fromJson(parseJson(line));
    try {
      print(VECTORS[kind](given));
    } catch (error) {
      if (!(error instanceof Refusal) && !(error instanceof RangeError)) throw error;
      // A parameter out of range is refused without a name.
      const refused = error.reason ?? "";
      const { stage } = error;
      print(kind === "resumes" ? { resume: null, refused, ...(stage === undefined ? {} : { stage }) } : { refused });
    }
  }
}

const TASKS = { read, verify, order };

/** Runs a task; returns its exit status. */
async function run(task, path) {
  if (!Object.hasOwn(TASKS, task ?? "") || path === undefined) return 3;
  await TASKS[task](path);
  return 0;
}

/** Runs the tasks of standard input, one per line. */
async function all() {
  for await (const line of createInterface({ input: process.stdin })) {
    const space = line.indexOf(" ");
    print({ end: await run(line.slice(0, space), line.slice(space + 1)) });
    flush();
  }
}

const [task, path] = process.argv.slice(2);
if (task === "all") await all();
else process.exitCode = await run(task, path);
flush();
