// Tests of HTTP: range requests, servers without them, wrong answers.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, test } from "node:test";
import * as shardtool from "../shardtool.js";
import * as build from "./build.mjs";
import { pets } from "./common.mjs";

const { concat } = build;
const { Damage, NotFound, StoreError } = shardtool;

/** Serves files by HTTP; `behave(request, path, bytes)` may return another `[status, headers, body]`. */
export async function serve(files, behave = () => null) {
  const requests = [];
  const server = createServer((request, response) => {
    const path = decodeURIComponent(new URL(request.url, "http://x").pathname.slice("/data/".length));
    requests.push({ path, range: request.headers.range });
    const bytes = files.get(path);
    const range = /^bytes=(\d+)-(\d+)$/
      .exec(request.headers.range ?? "")
      ?.slice(1)
      .map(Number);
    let answer = [404, {}, ""];
    if (bytes) {
      const part = range && bytes.subarray(range[0], range[1] + 1);
      answer =
        behave({ path, range, number: requests.length }, bytes) ??
        (range
          ? [206, { "content-range": `bytes ${range[0]}-${range[0] + part.length - 1}/${bytes.length}` }, part]
          : [200, {}, bytes]);
    }
    response.writeHead(answer[0], answer[1]).end(answer[2]);
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  after(() => server.close());
  return { requests, url: `http://127.0.0.1:${server.address().port}/data` };
}

test("reads over HTTP by ranges, and requests no shard to open, list or filter", async () => {
  const { requests, url } = await serve(pets());
  const dataset = await shardtool.open(url);
  const train = dataset.split("train");
  const labels = await train.column("feature:image/class/label");
  const dogs = [...labels].flatMap((label, number) => (label === 1n ? [number] : []));
  assert.equal(await train.find("dog/1.png"), 1);
  assert.deepEqual(
    requests.map(({ path }) => path),
    ["dataset.json", "_index/train-00000.tfrecord.index"],
  );
  assert.deepEqual([dogs, (await train.record(2)).className], [[1, 2], "dog"]);
  const shard = requests.filter(({ path }) => path === "train-00000.tfrecord");
  assert.ok(shard.every(({ range }) => range !== undefined) && shard.length === 2);
  requests.length = 0;
  const all = [];
  for await (const record of train.records()) all.push(record.number);
  assert.deepEqual([all, requests.length], [[0, 1, 2], 1]);
  assert.deepEqual((await shardtool.verify(url)).findings, []);
  await assert.rejects(shardtool.open(`${url}/none`), NotFound);
});

test("reads an index with a large directory and columns beyond its first bytes", async () => {
  const columns = Array.from({ length: 1500 }, (_, i) => build.column(`x-${i}`, "u32", [i, i, i]));
  const { requests, url } = await serve(pets({ columns }));
  const train = (await shardtool.open(url)).split("train");
  assert.deepEqual([...(await train.column("x-1499"))], [1499, 1499, 1499]);
  assert.equal(requests.length, 4);
  assert.deepEqual((await shardtool.verify(url)).findings, []);
});

test("fetches whole files from a server that ignores ranges", async () => {
  const { requests, url } = await serve(pets(), (_, bytes) => [200, {}, bytes]);
  const dataset = await shardtool.open(url);
  assert.equal((await dataset.split("train").record(1)).className, "dog");
  assert.equal((await dataset.split("train").record(2)).className, "dog");
  assert.equal(requests.length, 3);
});

test("reports wrong answers of a server as errors of the store, not as damage", async () => {
  const part = ([start, end], bytes) => bytes.subarray(start, end + 1);
  const header = ([start], length, total) => ({ "content-range": `bytes ${start}-${start + length - 1}/${total}` });
  const answers = [
    ({ range }, bytes) => [206, {}, part(range, bytes)],
    ({ range }, bytes) => [
      206,
      { "content-range": `bytes ${range[0] + 1}-${Math.min(range[1], bytes.length - 1)}/${bytes.length}` },
      part(range, bytes),
    ],
    ({ range }, bytes) => [206, header([range[0] + 1], part(range, bytes).length, bytes.length), part(range, bytes)],
    ({ range }, bytes) => [206, header(range, part(range, bytes).length, bytes.length), part(range, bytes).subarray(1)],
    ({ range }, bytes) => [
      206,
      header(range, part(range, bytes).length, bytes.length),
      concat(part(range, bytes), "more"),
    ],
    ({ range }, bytes) => [206, header(range, part(range, bytes).length, "*"), part(range, bytes)],
    () => [500, {}, "no"],
    () => [416, {}, ""],
  ];
  for (const answer of answers) {
    const { url } = await serve(pets(), (request, bytes) => (request.range ? answer(request, bytes) : null));
    await assert.rejects((await shardtool.open(url)).split("train").record(0), (error) => error instanceof StoreError);
  }
});

test("fetches bytes that fail a check once more before it reports damage", async () => {
  for (const broken of ["dataset.json", "_index/train-00000.tfrecord.index", "train-00000.tfrecord"]) {
    for (const always of [false, true]) {
      let seen = 0;
      const { url } = await serve(pets(), ({ path, range }, bytes) => {
        if (path !== broken || (range && range[1] === 0) || (!always && ++seen > 1)) return null;
        const part = (range ? bytes.subarray(range[0], range[1] + 1) : bytes).slice();
        part[part.length >> 1] ^= 1;
        return range
          ? [206, { "content-range": `bytes ${range[0]}-${range[0] + part.length - 1}/${bytes.length}` }, part]
          : [200, {}, part];
      });
      const read = async () => (await (await shardtool.open(url)).split("train").record(0)).className;
      if (always) await assert.rejects(read(), Damage);
      else assert.equal(await read(), "cat");
    }
  }
});
