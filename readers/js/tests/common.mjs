// What the tests of the JavaScript reader share: a dataset, its damage, and folders that are removed at the end.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import * as shardtool from "../shardtool.js";
import * as build from "./build.mjs";

const { bytesList, example, floatList, int64List } = build;
const { Damage } = shardtool;

/** The folder of the reader. */
export const reader = dirname(dirname(fileURLToPath(import.meta.url)));

/** A folder for the tests' files. */
export const work = mkdtempSync(join(tmpdir(), "reader-js-"));
after(() => rmSync(work, { recursive: true, force: true }));

const FEATURES = [
  { name: "image/class/label", type: "int64" },
  { name: "image/encoded", type: "bytes" },
  { name: "image/format", type: "bytes" },
  { name: "image/height", type: "int64" },
  { name: "image/key", type: "bytes" },
  { name: "image/width", type: "int64" },
  { name: "score", type: "float" },
];

/** What the manifest of `pets` says apart from its files. */
export const MANIFEST = {
  image: "image/encoded",
  label: "image/class/label",
  features: FEATURES,
  classes: ["cat", "dog"],
};

/** Returns a record of raw pixels; the image's range is found by searching the bytes. */
export function picture(key, label, height, width, { score = null, format = "raw", image = null, more = [] } = {}) {
  const pixels = image ?? Uint8Array.from({ length: height * width * 3 }, (_, i) => 7 * i + 100);
  const data = example(
    ["image/class/label", int64List(label)],
    ["image/encoded", bytesList(pixels)],
    ["image/format", bytesList(format)],
    ["image/height", int64List(height)],
    ["image/key", bytesList(key)],
    ["image/width", int64List(width)],
    ...(score === null ? [] : [["score", floatList(score)]]),
    ...more,
  );
  const start =
    pixels.length > 0
      ? Buffer.from(data).indexOf(Buffer.from(pixels))
      : Buffer.from(data).indexOf("image/encoded") + "image/encoded".length + 6;
  return { data, key, label, score, image: [start, pixels.length] };
}

/** Builds a dataset of pictures with columns of label and score, for reading and for damaging. */
export function pets(options = {}) {
  const records = [
    picture("cat/0.png", 0, 2, 2, { score: 0.5 }),
    picture("dog/1.png", 1, 1, 2),
    picture("dog/1.png", 1, 1, 1),
  ];
  const columns = [
    build.column(
      "feature:image/class/label",
      "i64",
      records.map(({ label }) => label),
    ),
    build.column(
      "feature:score",
      "f32",
      records.map(({ score }) => score),
    ),
  ];
  return build.dataset(records, { manifest: MANIFEST, columns, ...options });
}

/** Writes files to a new folder; returns its path. */
export function writeFiles(files) {
  const folder = mkdtempSync(join(work, "d-"));
  for (const [path, bytes] of files) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  }
  return folder;
}

/** Verifies files in memory; returns the names of the findings. */
export async function findings(files) {
  const { findings: found } = await shardtool.verify(build.memorySource(files));
  return found.map(({ name }) => name);
}

/** Matches a Damage of a name. */
export function damage(name) {
  return (error) => {
    assert.ok(error instanceof Damage, error.stack);
    assert.equal(error.name, name, error.message);
    return true;
  };
}

/** Returns a function that runs the command `zstd` with options; null if there is none. */
function compressor() {
  try {
    execFileSync("zstd", ["--version"]);
    return (bytes, ...options) => {
      const file = join(work, "input");
      writeFileSync(file, bytes);
      return new Uint8Array(execFileSync("zstd", ["-q", "-c", ...options, file], { maxBuffer: 2 ** 28 }));
    };
  } catch {
    return null;
  }
}

/** Returns reproducible noise in which small values are frequent. */
export function noise(length, spread) {
  let state = 12345;
  return Uint8Array.from({ length }, () => {
    state = (Math.imul(state, 1103515245) + 12345) >>> 0;
    return Math.floor(-Math.log((state + 1) / 2 ** 32) * spread);
  });
}

/** Compresses with `zstd`; null if there is no such command. */
export const compress = compressor();
