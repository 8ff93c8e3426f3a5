// Tests of virtual shards and of shards of other datasets: what the user allows, over HTTP and in folders (`readers/tests/sources.py`
// makes links and pipes).

import assert from "node:assert/strict";
import { cpSync, mkdirSync, readFileSync, readdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { test } from "node:test";
import * as shardtool from "../shardtool.js";
import * as build from "./build.mjs";
import { damage, reader, work, writeFiles } from "./common.mjs";
import { serve } from "./http.mjs";

const GOLDEN = join(reader, "../../fixtures/conformance/golden/virtual-files");
const TINY = join(reader, "../../fixtures/conformance/golden/tiny");
const NAMES = ["dataset.json", "_index/train-00000.tfrecord.index", "photos/cat.raw", "photos/dog.raw"];

/** Returns the files of the golden dataset, whose shard has another `source`. */
function files(source = null) {
  const found = new Map(NAMES.map((name) => [name, new Uint8Array(readFileSync(join(GOLDEN, name)))]));
  if (source !== null) {
    const text = new TextDecoder().decode(found.get("dataset.json"));
    const changed = text
      .replace('"virtual": true', `"virtual": true, "source": ${JSON.stringify(source)}`)
      .replace(/"crc32c": "[0-9a-f]{8}"\n\}/, '"crc32c": "00000000"\n}');
    found.set("dataset.json", build.sealText(changed));
  }
  return found;
}

/** Reads both records; returns the lengths of their images, or throws the damage. */
async function images(where, sources) {
  const dataset = await shardtool.open(where, sources === undefined ? {} : { sources });
  const found = [];
  for await (const record of dataset.split("train").records()) found.push(record.image.length);
  const { findings, good } = await dataset.verify();
  assert.deepEqual([findings, good], [[], 2]);
  return found;
}

test("opens source files of other folders only if the user names them", async () => {
  const photos = join(work, "elsewhere");
  const folder = writeFiles(files(photos));
  mkdirSync(photos);
  renameSync(join(folder, "photos"), join(photos, "photos"));
  for (const sources of [[photos], [`${photos}/`], [work], ["/nonexistent-source", join(photos, "photos")]]) {
    assert.deepEqual(await images(folder, sources), [12, 6], sources);
  }
  const refused = [[], [`${photos}-2`], [photos.slice(0, -1)], [join(photos, "photos/cat")], ["https://host/a"]];
  for (const sources of [undefined, ...refused]) {
    await assert.rejects(images(folder, sources), damage("ForeignSource"), String(sources));
    const { findings, good } = await shardtool.verify(folder, { sources });
    const names = findings.map(({ name, record }) => [name, record]);
    assert.deepEqual([names, good], [[["ForeignSource", 0], ["ForeignSource", 1]], 0]);
  }
  rmSync(join(photos, "photos/cat.raw"));
  await assert.rejects(images(folder, [photos]), damage("MissingSource"));
});

test("opens source files below the dataset's own URL, and below those that the user names", async () => {
  const own = await serve(files());
  assert.deepEqual(await images(own.url), [12, 6]);
  const other = await serve(new Map([...files()].filter(([name]) => name.startsWith("photos/"))));
  const { requests, url } = await serve(files(other.url));
  for (const sources of [[], [`${other.url}-2`], [other.url.slice(0, -1)], ["/"], [`${other.url}/photos/cat`]]) {
    await assert.rejects(images(url, sources), damage("ForeignSource"), String(sources));
  }
  assert.ok(requests.length > 0);
  assert.deepEqual(other.requests, []);
  for (const sources of [[other.url], [`${other.url}/`], [new URL(other.url).origin]]) {
    assert.deepEqual(await images(url, sources), [12, 6]);
  }
  const folder = writeFiles(files(other.url));
  assert.deepEqual(await images(folder, [other.url]), [12, 6]);
  // What `fetch` makes of these leads out of the prefix.
  for (const escape of ["%2e%2e/x", "a\\..\\..\\x", "%2E./x"]) {
    const where = writeFiles(files(`${other.url}/${escape}`));
    await assert.rejects(images(where, [other.url]), damage("ForeignSource"), escape);
  }
});

test("finds source files of another length, and absent ones, over HTTP", async () => {
  for (const [edit, name] of [
    [(all) => all.delete("photos/dog.raw"), "MissingSource"],
    [(all) => all.set("photos/dog.raw", new Uint8Array(7)), "SourceLength"],
    [(all) => all.set("photos/dog.raw", new Uint8Array(5)), "SourceLength"],
    [(all) => all.set("photos/dog.raw", new Uint8Array(6)), "DataCrc"],
  ]) {
    const changed = files();
    edit(changed);
    const { url } = await serve(changed);
    const { findings, good } = await shardtool.verify(url);
    assert.deepEqual([findings.map(({ name, record }) => [name, record]), good], [[[name, 1]], 1]);
  }
});

test("reads again over HTTP before it reports damage of a source file", async () => {
  let wrong = 1;
  const { url } = await serve(files(), ({ path, range }, bytes) => {
    if (path !== "photos/cat.raw" || !range || range[1] === 0 || wrong-- <= 0) return null;
    const part = bytes.slice(range[0], range[1] + 1).fill(0);
    return [206, { "content-range": `bytes ${range[0]}-${range[1]}/${bytes.length}` }, part];
  });
  const dataset = await shardtool.open(url);
  assert.equal((await dataset.split("train").record(0)).image[0], 255);
  assert.ok(wrong < 1);
});

test("reads the image of a virtual shard by its range", async () => {
  const folder = writeFiles(files());
  const dataset = await shardtool.open(folder);
  assert.equal((await dataset.split("train").image(1)).length, 6);
  writeFileSync(join(folder, "photos/dog.raw"), new Uint8Array(6));
  await assert.rejects(dataset.split("train").image(1), damage("DataCrc"));
});

/** Returns the manifest of a dataset whose shards are those of the golden `tiny` in another folder. */
function clone(source) {
  const text = readFileSync(join(TINY, "dataset.json"), "utf8")
    .replace('"version": "1.0"', '"version": "1.1",\n  "requires": ["foreign"]')
    .replaceAll(/("index_crc32c": "[0-9a-f]{8}"[^}]*)\}/g, `$1, "source": ${JSON.stringify(source)}}`)
    .replace(/"crc32c": "[0-9a-f]{8}"\n\}/, '"crc32c": "00000000"\n}');
  return new Map([["dataset.json", build.sealText(text)]]);
}

/** Reads all images of a dataset, and verifies it. */
async function contents(where, sources) {
  const dataset = await shardtool.open(where, { sources });
  const found = [];
  for (const split of dataset.splits.values()) {
    for await (const record of split.records()) found.push([...record.key, ...record.image]);
  }
  const { findings, good } = await dataset.verify();
  assert.deepEqual([findings, good], [[], found.length]);
  return found;
}

test("opens shards of another dataset only if the user names it", async () => {
  const base = join(work, "base");
  cpSync(TINY, base, { recursive: true });
  const expected = await contents(TINY, []);
  const folder = writeFiles(clone(base));
  for (const sources of [[base], [work]]) assert.deepEqual(await contents(folder, sources), expected);
  for (const sources of [[], [`${base}-2`], [join(base, "_index")]]) {
    await assert.rejects(contents(folder, sources), damage("ForeignSource"), String(sources));
    const { findings, good } = await shardtool.verify(folder, { sources });
    const found = new Set(findings.map(({ name, record }) => `${name} ${record}`));
    assert.deepEqual([[...found], good], [["ForeignSource null"], 0]);
  }
  const shard = readdirSync(base).find((name) => name.endsWith(".tfrecord"));
  rmSync(join(base, `_index/${shard}.index`));
  await assert.rejects(contents(folder, [base]), damage("MissingIndex"));
  rmSync(join(base, shard));
  await assert.rejects(contents(folder, [base]), damage("MissingShard"));
});

test("opens shards of another dataset over HTTP", async () => {
  const files = readdirSync(TINY, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const paths = files.map((entry) => join(entry.parentPath, entry.name));
  const other = await serve(new Map(paths.map((path) => [relative(TINY, path), new Uint8Array(readFileSync(path))])));
  const { url } = await serve(clone(other.url.replace(/\/$/, "")));
  await assert.rejects(contents(url, []), damage("ForeignSource"));
  assert.deepEqual(other.requests, []);
  assert.deepEqual(await contents(url, [other.url]), await contents(TINY, []));
});
