// Tests of virtual shards: what the user allows, over HTTP and in folders (`readers/tests/sources.py` makes links and pipes).

import assert from "node:assert/strict";
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as shardtool from "../shardtool.js";
import * as build from "./build.mjs";
import { damage, reader, work, writeFiles } from "./common.mjs";
import { serve } from "./http.mjs";

const GOLDEN = join(reader, "../../fixtures/conformance/golden/virtual-files");
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
