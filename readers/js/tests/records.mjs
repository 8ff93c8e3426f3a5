// Tests of datasets, Examples, SequenceExamples and value ranges.

import assert from "node:assert/strict";
import { test } from "node:test";
import { hex } from "../bytes.js";
import * as shardtool from "../shardtool.js";
import * as build from "./build.mjs";
import { damage, findings, pets, writeFiles } from "./common.mjs";

const { bytesList, concat, example, field, floatList, int64List, le, utf8, varint } = build;
const { AbsentColumn } = shardtool;

test("reads records, columns, keys, images and classes", async () => {
  const dataset = await shardtool.open(writeFiles(pets()));
  const train = dataset.split("train");
  assert.equal(train.length, 3);
  const record = await train.record(1);
  assert.equal(new TextDecoder().decode(record.key), "dog/1.png");
  assert.deepEqual([record.classId, record.className, record.format], [1n, "dog", "raw"]);
  assert.deepEqual(record.pixels(), { height: 1, width: 2, data: record.image });
  assert.deepEqual(await train.image(1), record.image);
  assert.equal(await train.find("dog/1.png"), 1);
  assert.equal(await train.find("dog/2.png"), null);
  const scores = await train.column("feature:score");
  assert.deepEqual([...scores], [0.5, null, null]);
  const labels = await train.column("feature:image/class/label");
  assert.deepEqual([...labels], [0n, 1n, 1n]);
  assert.ok(labels.chunks[0].values instanceof BigInt64Array);
  await assert.rejects(train.column("feature:image/width"), AbsentColumn);
  await assert.rejects(train.record(3), RangeError);
  assert.throws(() => dataset.split("test"), RangeError);
  const all = [];
  for await (const one of train.records()) all.push(one.number);
  assert.deepEqual(all, [0, 1, 2]);
  const { findings: found, good } = await dataset.verify();
  assert.deepEqual([found, good], [[], 3]);
});

test("views columns without a copy", async () => {
  const files = pets();
  const kept = files.get("_index/train-00000.tfrecord.index");
  const source = {
    size: async (path) => files.get(path).length,
    read: async (path, start, end) => files.get(path).subarray(start, end),
  };
  const column = await (await shardtool.open(source)).split("train").shards[0].column("record_offset");
  assert.equal(column.values.buffer, kept.buffer);
});

test("accepts every valid Example and names every other", () => {
  const parse = (data, options) => shardtool.parseExample(data, options).features;
  const list = (...parts) => field(1, concat(...parts));
  const features = (...entries) => field(1, concat(...entries));
  const entry = (...parts) => field(1, concat(...parts));
  const name = (text) => field(1, text);
  const value = (...lists) => field(2, concat(...lists));
  const ints = (...parts) => field(3, concat(...parts));
  const first = (data) => Array.from([...parse(data).values()][0].values);
  assert.deepEqual(
    first(
      features(
        entry(value(ints(Uint8Array.of(8, 5), list(varint(-1), varint(300)), Uint8Array.of(8, 0x80, 0))), name("a")),
      ),
    ),
    [5n, -1n, 300n, 0n],
  );
  assert.deepEqual(first(features(entry(name("a"), value(int64List(1), int64List(-(2n ** 63n), 2n ** 63n - 1n))))), [
    1n,
    -(2n ** 63n),
    2n ** 63n - 1n,
  ]);
  assert.deepEqual(first(features(entry(name("a"), value(int64List(1), floatList(2))))), [2]);
  assert.deepEqual(
    first(features(entry(name("a"), value(field(2, concat(Uint8Array.of(13), le(0x3f800000, 4))))))),
    [1],
  );
  assert.deepEqual(first(features(entry(name("b"), name("a"), value(int64List(1)), value(int64List(2))))), [2n]);
  assert.equal(parse(features(entry(name("a"), value(int64List(1))), entry(name("a"), value(""))).slice()).size, 0);
  assert.equal(parse(concat(features(entry(value(int64List()))), features(entry(name("b"))))).get("").length, 0);
  assert.deepEqual(
    [
      ...parse(
        concat(
          Uint8Array.of(8, 1, 17, ...le(0, 8), 29, ...le(0, 4)),
          features(Uint8Array.of(8, 1), entry(name("a"), Uint8Array.of(16, 1, 24, 1), value(int64List(1)))),
        ),
      ).keys(),
    ],
    ["a"],
  );
  const bits = new Uint32Array(parse(example(["a", field(2, field(1, le(0x7fa00001, 4)))])).get("a").values.buffer);
  assert.equal(bits[0], 0x7fa00001);
  const wrong = [
    Uint8Array.of(10, 5, 0),
    Uint8Array.of(8),
    Uint8Array.of(8, ...new Array(10).fill(0xff), 1),
    Uint8Array.of(8, ...new Array(9).fill(0xff), 2),
    Uint8Array.of(0, 0),
    concat(varint(2n ** 29n * 8n), "\0"),
    Uint8Array.of(11),
    Uint8Array.of(12),
    Uint8Array.of(14),
    Uint8Array.of(15),
    Uint8Array.of(9, 1, 2),
    Uint8Array.of(13, 1),
    features(entry(name(Uint8Array.of(255)), value(""))),
    features(entry(name(Uint8Array.of(255)), name("a"))),
    features(entry(value(field(4, "")))),
    features(entry(value(Uint8Array.of(8, 1)))),
    features(entry(value(field(1, Uint8Array.of(8, 1))))),
    features(entry(value(field(2, field(1, "abc"))))),
    features(entry(value(field(2, Uint8Array.of(8, 1))))),
    features(entry(value(ints(Uint8Array.of(13, 0, 0, 0, 0))))),
    features(entry(value(ints(list(Uint8Array.of(0x80)))))),
    features(entry(value(ints(list(Uint8Array.of(0x80)))), value(int64List(1)))),
  ];
  for (const data of wrong) assert.throws(() => parse(data), shardtool.MalformedError, hex(data));
});

test("reads feature lists if the manifest requires them", async () => {
  const steps = (...lists) => field(2, concat(...lists.map((one) => field(1, one))));
  const entry = (name, ...lists) => field(1, concat(field(1, name), steps(...lists)));
  const sequence = (context, ...entries) => concat(context, field(2, concat(...entries)));
  const parse = (data) => shardtool.parseExample(data, { sequence: true }).features;
  const context = example(["c", int64List(1)]);
  const features = parse(
    sequence(context, entry("f", bytesList("x", "y"), "", bytesList(), bytesList("z")), entry("none", "", int64List())),
  );
  assert.deepEqual(
    features.get("f").values.map((one) => new TextDecoder().decode(one)),
    ["x", "y", "z"],
  );
  assert.deepEqual([...features.get("f/lengths").values], [2n, 0n, 0n, 1n]);
  assert.deepEqual([...features.get("none/lengths").values], [0n, 0n]);
  assert.deepEqual([...features.keys()].sort(), ["c", "f", "f/lengths", "none/lengths"]);
  for (const data of [
    sequence(context, entry("c", "")),
    sequence(example(["f/lengths", int64List(1)]), entry("f", "")),
    sequence(context, entry("a", ""), entry("a/lengths", "")),
    sequence(context, entry("a", int64List(1), floatList(1))),
  ]) {
    assert.throws(() => parse(data), shardtool.MalformedError);
  }
  const data = sequence(context, entry("f", bytesList("x")));
  assert.equal(shardtool.parseExample(data).features.size, 1);
  const files = (requires) =>
    build.dataset([{ data, key: "train-00000.tfrecord#0", image: null }], {
      manifest: { requires, features: [{ name: "c", type: "int64" }] },
    });
  const { notes, good } = await shardtool.verify(build.memorySource(files()));
  assert.deepEqual([notes.length, good], [1, 1]);
  const dataset = await shardtool.open(build.memorySource(files(["sequence-example"])));
  assert.ok((await dataset.split("train").record(0)).features.has("f"));
});

test("reads single values by their ranges", async () => {
  const values = [utf8("first"), utf8("second"), new Uint8Array(300).fill(7)];
  const data = example(["v", bytesList(...values)]);
  const ranges = concat(
    ...values.map((value) => {
      return concat(
        le(Buffer.from(data).indexOf(Buffer.from(value)), 4),
        le(value.length, 4),
        le(shardtool.crc32c(value), 4),
      );
    }),
  );
  const make = (row, shard = (bytes) => bytes) =>
    build.dataset([{ data, key: "train-00000.tfrecord#0", image: null }], {
      manifest: { features: [{ name: "v", type: "bytes" }] },
      columns: [build.column("values:v", "bytes", [row])],
      edit: { shard },
    });
  const open = async (files) => (await shardtool.open(build.memorySource(files))).split("train");
  assert.deepEqual(await findings(make(ranges)), []);
  assert.deepEqual(await (await open(make(ranges))).value(0, "v", 1), values[1]);
  await assert.rejects((await open(make(ranges))).value(0, "v", 3), RangeError);
  await assert.rejects(
    (await open(make(concat(le(400, 4), ranges.subarray(4))))).value(0, "v", 0),
    damage("IndexMismatch"),
  );
  const flipped = make(ranges, (bytes) => ((bytes[Buffer.from(bytes).indexOf("second")] ^= 1), bytes));
  await assert.rejects((await open(flipped)).value(0, "v", 1), damage("DataCrc"));
  assert.deepEqual(await (await open(flipped)).value(0, "v", 0), values[0]);
});
