// Tests of checksums, names, JSON and the manifest.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { test } from "node:test";
import { Sha256, compareNames, hex32 } from "../bytes.js";
import { JsonError, parseJson } from "../json.js";
import * as shardtool from "../shardtool.js";
import * as build from "./build.mjs";
import { MANIFEST, damage } from "./common.mjs";

const { concat, utf8 } = build;

test("computes the checksums of the specification, of FIPS 180-4 and of XXH64", () => {
  assert.equal(hex32(shardtool.crc32c(utf8("123456789"))), "e3069283");
  assert.equal(hex32(shardtool.crc32c(new Uint8Array(32).fill(255))), "62a8ab43");
  assert.equal(hex32(shardtool.maskCrc(0xe3069283)), "c78ab0e5");
  for (const length of [0, 1, 55, 56, 63, 64, 65, 1000]) {
    const bytes = Uint8Array.from({ length }, (_, i) => i * 31);
    const sum = new Sha256();
    sum.update(bytes.subarray(0, 10));
    sum.update(bytes.subarray(10));
    assert.equal(sum.digest(), createHash("sha256").update(bytes).digest("hex"));
    assert.equal(shardtool.crc32c(bytes.subarray(3), shardtool.crc32c(bytes.subarray(0, 3))), shardtool.crc32c(bytes));
  }
  assert.equal(shardtool.xxh64(utf8("")).toString(16), "ef46db3751d8e999");
  assert.equal(shardtool.xxh64(utf8("abc")).toString(16), "44bc2cf5ad770999");
});

test("compares names by their UTF-8 bytes", () => {
  const names = ["a", "ab", "\u00e9", "\uffee", "\u{1f600}", "\ud7ff", "\ue000", "Z"];
  const expected = [...names].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  assert.deepEqual([...names].sort(compareNames), expected);
});

test("parses JSON strictly and keeps digits and repeated members", () => {
  const object = parseJson(' {"a": -0, "a": [1e2, "\\u00e9\\ud83d\\ude00\\n"], "b": 18446744073709551615}\n');
  assert.equal(object.all("a")[0].text, "-0");
  assert.equal(object.all("a")[1][1], "\u00e9\u{1f600}\n");
  assert.equal(object.all("b")[0].integer(0n, 2n ** 64n), 2n ** 64n - 1n);
  const wrong = [
    "",
    "{",
    "[1,]",
    '{"a":1,}',
    "01",
    "+1",
    "1.",
    ".5",
    "1e",
    "nul",
    "'a'",
    '"\t"',
    '"\\x"',
    '"\\u12g4"',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    "\ufeff1",
    "1 2",
    '{"a" 1}',
    "[1 2]",
    "\u00a01",
    "NaN",
    "[".repeat(300) + "]".repeat(300),
  ];
  for (const text of wrong) assert.throws(() => parseJson(text), JsonError, text);
  assert.ok(parseJson("[".repeat(127) + "]".repeat(127)));
  assert.equal(parseJson(`"${"x".repeat(2 ** 25)}"`).length, 2 ** 25);
});

test("names each violation of the manifest in the order of the checks", async (t) => {
  const text = build.manifestText({
    ...MANIFEST,
    splits: [{ name: "train", shards: [build.shardLine("a.tfrecord", 1, utf8("x"), utf8("y"))] }],
  });
  const parse = (edited) => shardtool.parseManifest(build.sealText(edited));
  assert.equal(parse(text).splits[0].records, 1n);
  const put = (from, to) => text.replace(from, to);
  const line = (extra) => put('  "image":', `  ${extra},\n  "image":`);
  const file = (name) => put('"a.tfrecord"', JSON.stringify(name));
  const cases = {
    ManifestVersion: [
      put('"shardtool"', '"other"'),
      put('"1.0"', '"2.0"'),
      put('"1.0"', '"1.00"'),
      put('"1.0"', '"1"'),
      put('"1.0"', '"01.0"'),
      put('  "format": "shardtool",\n', ""),
      put('  "version": "1.0",\n', ""),
    ],
    ManifestSyntax: [
      put('"1.0"', "1"),
      line('"version": "1.0"'),
      line('"requires": "a"'),
      line('"requires": [1]'),
      line('"created_by": null'),
      line('"image": null'),
      put('  "classes"', '  "klasses"'),
      put('"label_offset": 0', '"label_offset": -0'),
      put('"label_offset": 0', '"label_offset": 9223372036854775808'),
      put('"label_offset": 0', '"label_offset": 1.0'),
      put('"records":1', '"records":-1'),
      put('"records":1', '"records":18446744073709551616'),
      put('"float"', '"double"'),
      line('"x-a": 1'),
      line('"x-a": "1",\n  "x-a": "1"'),
      put('"crc32c":"', '"crc32c":"A'),
      line('"crc32c": "00000001"'),
      line('"a": "\\ud800"'),
      put('"bytes":1', '"bytes":1,"sha256":"ABC"'),
      put("{", "{,"),
      put('"cat"', "1"),
    ],
    ManifestRequires: [line('"requires": ["clips"]'), line('"requires": ["sequence-example", "B!"]')],
    ManifestValue: [
      line('"requires": ["sequence-example", "sequence-example"]'),
      put('"image": "image/encoded"', '"image": "image/key2"'),
      put('"image": "image/encoded"', '"image": "image/width"'),
      put('"label": "image/class/label"', '"label": "image/key"'),
      put('"cat","dog"', '"cat","cat"'),
      put('"name":"score"', '"name":"image/width"'),
      put('"train"', '".train"'),
      put('"train"', '"con"'),
      put('"train"', '"Lpt1.x"'),
      put('"train"', '""'),
      put('"records":1', '"records":9223372036854775808'),
      ...[
        "",
        ".",
        "..",
        ".a",
        "a.",
        "a ",
        "a/b",
        "a\\b",
        "a:b",
        "a\u0085",
        "Dataset.JSON",
        "_INDEX",
        "rejected-.jsonl",
        "Rejected-a.JSONL",
        "nul",
        "NUL .txt",
        "com1.a",
        "COM\u00b9",
        "conin$",
      ].map(file),
    ],
  };
  for (const [name, texts] of Object.entries(cases)) {
    await t.test(name, () => texts.forEach((edited) => assert.throws(() => parse(edited), damage(name), edited)));
  }
  for (const good of [
    line('"x": 1e9,\n  "x": [{}]'),
    line('"x-a": "b"'),
    put('"1.0"', '"1.12"'),
    line('"requires": ["sequence-example"]'),
    put('"label_offset": 0', '"label_offset": -9223372036854775808'),
    file("com10"),
    file("conx"),
    file("a b.c"),
    put('"train"', '"_index"'),
    put('"records":1', '"records":9223372036854775807'),
    put('  "image": "image/encoded",\n', ""),
    put(/"format"/, '"f\\u006frmat"'),
  ])
    parse(good);
  const bytes = build.sealText(text);
  for (const cut of [bytes.subarray(0, -1), concat(bytes, "\n"), bytes.subarray(1), new Uint8Array(0)]) {
    assert.throws(() => shardtool.parseManifest(cut), damage("ManifestCrc"));
  }
});
