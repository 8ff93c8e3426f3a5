// Tests of verification: damage of files, indexes and frames.

import assert from "node:assert/strict";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as shardtool from "../shardtool.js";
import * as build from "./build.mjs";
import { damage, findings, pets, work, writeFiles } from "./common.mjs";

const { concat, le, utf8 } = build;
const { NotFound, StoreError } = shardtool;

test("finds every flipped bit of every file, as one finding", async () => {
  const files = pets();
  for (const [path, bytes] of files) {
    for (let bit = 0; bit < 8 * bytes.length; bit++) {
      bytes[bit >> 3] ^= 1 << (bit & 7);
      const names = await findings(files);
      assert.equal(names.length, 1, `${path}, bit ${bit}: ${names}`);
      // Each byte has a check of its own, so no bit is found only by the CRC of a whole file.
      assert.ok(!["ShardCrc", "ShardSha256", "IndexCrc"].includes(names[0]), `${path}, bit ${bit}: ${names}`);
      bytes[bit >> 3] ^= 1 << (bit & 7);
    }
  }
  assert.deepEqual(await findings(files), []);
});

test("finds truncations and appended bytes of every file", async () => {
  for (const path of pets().keys()) {
    for (const edit of [
      (bytes) => bytes.subarray(0, -1),
      (bytes) => bytes.subarray(0, bytes.length / 2),
      (bytes) => concat(bytes, le(0, 64)),
      () => new Uint8Array(0),
    ]) {
      const files = pets();
      files.set(path, edit(files.get(path)));
      const names = await findings(files);
      assert.equal(names.length, 1, `${path}: ${names}`);
    }
  }
});

test("reports missing files", async () => {
  for (const [path, name] of [
    ["train-00000.tfrecord", "MissingShard"],
    ["_index/train-00000.tfrecord.index", "MissingIndex"],
  ]) {
    const files = pets();
    files.delete(path);
    assert.deepEqual(await findings(files), [name]);
    const dataset = await shardtool.open(writeFiles(files));
    await assert.rejects(dataset.split("train").record(0), damage(name));
  }
  await assert.rejects(shardtool.open(work), NotFound);
  const files = pets();
  const folder = writeFiles(files);
  symlinkSync(join(folder, "train-00000.tfrecord"), join(folder, "link"));
  const source = new shardtool.FileSource(folder, { followLinks: false });
  await assert.rejects(source.size("link"), StoreError);
  assert.equal(await new shardtool.FileSource(folder).size("link"), files.get("train-00000.tfrecord").length);
});

test("names damage of the index", async () => {
  const columns = (edit) => pets({ edit: { columns: (all) => (edit(all), all) } });
  const part = (name, i, edit) => columns((all) => edit(all.find((one) => one.name === name).parts, i));
  const cases = [
    ["IndexVersion", pets({ header: { major: 2 } })],
    ["IndexFlags", pets({ header: { required: 1 << 30 } })],
    ["IndexLayout", pets({ header: { length: 64 } })],
    ["IndexTruncated", pets({ header: { length: 10 ** 6 } })],
    ["IndexLayout", pets({ header: { columns: 7 } })],
    ["IndexLayout", pets({ header: { records: 4 } })],
    ["IndexMismatch", pets({ header: { shardBytes: 5 } })],
    ["IndexMismatch", pets({ header: { shardCrc: 5 } })],
    ["IndexLayout", pets({ change: (directory) => (directory[4] = 1) })],
    ["IndexLayout", pets({ change: (directory) => (directory[0] = 2) })],
    ["IndexLayout", pets({ change: (directory) => (directory[1] = 5) })],
    ["IndexLayout", pets({ change: (directory) => (directory[1] = 0) })],
    ["IndexLayout", pets({ change: (directory) => (directory[24] = 64) })],
    ["IndexLayout", pets({ change: (directory) => (directory[60] = 1) })],
    ["IndexLayout", pets({ change: (directory) => (directory[40] += 64) })],
    ["IndexLayout", pets({ change: (directory) => directory.fill(255, 48, 56) })],
    ["IndexColumn", columns((all) => all.splice(3, 1))],
    ["IndexLayout", columns((all) => all.push(all[0]))],
    ["IndexLayout", columns((all) => (all[0].name = ""))],
    ["IndexColumn", columns((all) => all.push(build.column("jpeg_entries", "u32", [1, 2, 3])))],
    ["IndexColumn", columns((all) => (all[3] = build.column("key", "bytes", ["cat/0.png", null, "dog/1.png"])))],
    ["ColumnValue", part("key", 1, (parts) => (parts[1][8] = 40))],
    ["ColumnValue", part("key", 1, (parts) => (parts[1][0] = 1))],
    ["ColumnValue", part("key", 1, (parts) => (parts[1][24] -= 1))],
    ["ColumnValue", part("feature:score", 0, (parts) => (parts[0][0] |= 8))],
    ["ColumnValue", part("feature:score", 0, (parts) => (parts[0][0] = 7))],
    ["ColumnValue", part("feature:score", 2, (parts) => (parts[2][5] = 1))],
    [
      "ColumnValue",
      columns((all) => all.push(build.column("values:image/encoded", "bytes", ["123456789012", "1", ""]))),
    ],
    ["IndexMismatch", columns((all) => (all[4] = build.column("feature:image/class/label", "i64", [0, 1, 0])))],
    ["IndexMismatch", columns((all) => (all[4] = build.column("feature:image/class/label", "i64", [0, 1, null])))],
    ["IndexMismatch", columns((all) => (all[5] = build.column("feature:score", "f32", [0.5, null, 0])))],
    [
      "IndexMismatch",
      columns((all) => all.push(build.column("feature:image/key", "bytes", ["cat/0.png", "dog/1.png", "dog/2.png"]))),
    ],
    [
      "IndexMismatch",
      columns((all) => all.push(build.column("values:image/key", "bytes", ["123456789012", "", ""]))),
      3,
    ],
  ];
  for (const [i, [name, files, count = 1]] of cases.entries()) {
    assert.deepEqual(await findings(files), new Array(count).fill(name), `case ${i}`);
  }
  const other = columns((all) =>
    all.push(
      build.column("x-other", "u32", [1, 2, 3]),
      build.column("feature:image/key", "bytes", ["cat/0.png", "dog/1.png", "dog/1.png"]),
    ),
  );
  assert.deepEqual(await findings(other), []);
  assert.deepEqual(await findings(pets({ header: { minor: 7, optional: 9 } })), []);
});

test("finds exchanged offsets twice, and does not deliver the records", async () => {
  const swapped = pets({
    edit: {
      columns: (all) => {
        const bytes = all[0].parts[2];
        const first = bytes.slice(0, 8);
        bytes.copyWithin(0, 8, 16);
        bytes.set(first, 8);
        return all;
      },
    },
  });
  assert.deepEqual(await findings(swapped), ["IndexMismatch", "IndexMismatch"]);
  const train = (await shardtool.open(build.memorySource(swapped))).split("train");
  await assert.rejects(train.record(0), damage("IndexMismatch"));
  await assert.rejects(train.record(1), damage("IndexMismatch"));
  const damages = [];
  for await (const record of train.records({ onDamage: (one) => damages.push(one.name) }))
    assert.equal(record.number, 2);
  assert.deepEqual(damages, ["IndexMismatch", "IndexMismatch"]);
});

test("continues after a damaged length, and counts frames", async () => {
  const flip = (at) => ({ edit: { shard: (bytes) => ((bytes[at] ^= 1), bytes) } });
  const files = pets(flip(0));
  const { findings: found, good } = await shardtool.verify(build.memorySource(files));
  assert.deepEqual(
    found.map(({ name, record, offset }) => [name, record, offset]),
    [["LengthCrc", 0, 0]],
  );
  assert.equal(good, 2);
  const damages = [];
  const numbers = [];
  const train = (await shardtool.open(build.memorySource(files))).split("train");
  for await (const record of train.records({ onDamage: (one, number) => damages.push([one.name, number]) }))
    numbers.push(record.number);
  assert.deepEqual([numbers, damages], [[1, 2], [["LengthCrc", 0]]]);
  assert.deepEqual(await findings(pets(flip(20))), ["DataCrc"]);
  const gzip = pets({ edit: { shard: (bytes) => (bytes.set([0x1f, 0x8b]), bytes) } });
  assert.deepEqual(await findings(gzip), ["CompressedRecords"]);
  await assert.rejects(
    (await shardtool.open(build.memorySource(gzip))).split("train").record(0),
    damage("CompressedRecords"),
  );
  assert.deepEqual(await findings(pets({ edit: { shard: (bytes) => concat(bytes, build.frame(utf8(""))) } })), [
    "RecordCount",
  ]);
  assert.deepEqual(await findings(pets({ edit: { shard: (bytes) => concat(bytes, "garbage") } })), ["TruncatedFrame"]);
});

test("compares the whole shard with the manifest only if nothing else is wrong", async () => {
  const files = pets();
  const text = new TextDecoder().decode(files.get("dataset.json"));
  const reseal = (edited) => build.sealText(edited.replace(/"crc32c": "[0-9a-f]{8}"\n}/, '"crc32c": "00000000"\n}'));
  files.set(
    "dataset.json",
    reseal(text.replace(/"sha256":"./, (found) => found.slice(0, -1) + (found.endsWith("0") ? "1" : "0"))),
  );
  assert.deepEqual(await findings(files), ["ShardSha256"]);
  files.set("dataset.json", reseal(text.replace(/"index_crc32c":"[0-9a-f]{8}"/, '"index_crc32c":"00000000"')));
  assert.deepEqual(await findings(files), ["IndexCrc"]);
  const other = pets();
  const shard = other.get("train-00000.tfrecord");
  const length = Number(le(shard[0], 1)[0]) + 256 * shard[1];
  const data = shard.slice(12, 12 + length);
  data[data.length - 20] ^= 0; // unchanged record, the frame is written again
  other.set("train-00000.tfrecord", concat(build.frame(data), shard.subarray(16 + length)));
  assert.deepEqual(await findings(other), []);
});
