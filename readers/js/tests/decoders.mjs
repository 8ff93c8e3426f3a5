// Tests of zstd, pixels, formats and arrays.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import * as shardtool from "../shardtool.js";
import * as build from "./build.mjs";
import { MANIFEST, compress, findings, noise, picture, reader } from "./common.mjs";

const { bytesList, concat, example, int64List, le, utf8 } = build;

test("decompresses what zstd compresses", { skip: compress ? false : "no zstd command" }, () => {
  const words = readFileSync(join(reader, "zstd.js"));
  const inputs = [0, 1, 5, 256, 1000, 70000, 131072, 131073, 400000].flatMap((length) => [
    noise(length, 6),
    noise(length, 200),
    new Uint8Array(length),
    Uint8Array.from({ length }, (_, i) => words[i % words.length]),
    Uint8Array.from({ length }, (_, i) => (i * i) >> 5),
  ]);
  for (const bytes of inputs) {
    for (const options of [["-1"], ["-9"], ["--ultra", "-22"], ["--fast=9", "--no-check"]]) {
      assert.deepEqual(shardtool.decompressZstd(compress(bytes, ...options)), bytes, `${bytes.length} ${options}`);
    }
  }
});

test(
  "rejects damaged zstd frames and never delivers more than their content size",
  { skip: compress ? false : "no zstd command" },
  () => {
    const bytes = concat(noise(3000, 6), readFileSync(join(reader, "zstd.js")).subarray(0, 5000));
    const frame = compress(bytes, "-19");
    let unused = 0;
    for (let bit = 0; bit < frame.length * 8; bit++) {
      const flipped = frame.slice();
      flipped[bit >> 3] ^= 1 << (bit & 7);
      // Some bits have no meaning, such as bit 4 of the descriptor (RFC 8878, 3.1.1.1.1.3).
      try {
        assert.deepEqual(shardtool.decompressZstd(flipped), bytes);
        unused++;
      } catch (error) {
        assert.ok(error instanceof shardtool.ZstdError, error.stack);
      }
    }
    assert.ok(unused < frame.length / 100, `${unused} flipped bits without effect`);
    for (let length = 0; length < frame.length; length++)
      assert.throws(() => shardtool.decompressZstd(frame.subarray(0, length)), shardtool.ZstdError);
    assert.throws(() => shardtool.decompressZstd(concat(frame, "x")), shardtool.ZstdError);
    assert.throws(() => shardtool.decompressZstd(frame, { limit: bytes.length - 1 }), shardtool.ZstdError);
    assert.deepEqual(shardtool.decompressZstd(frame, { limit: bytes.length }), bytes);
  },
);

test("decodes a Huffman stream only if its literals use all bits", () => {
  // Twenty times the byte 7, then a block of two symbols with codes of one bit, and a stream of bits before its final 1.
  const frame = (bits, literals) => {
    const body = concat(Uint8Array.of(128, 0x10), Uint8Array.of(parseInt(`1${bits}`, 2)));
    const block = concat(le(2 | (literals << 4) | (body.length << 14), 3), body, "\0");
    const repeated = concat(le((1 << 1) | (20 << 3), 3), Uint8Array.of(7));
    const last = concat(le(1 | (2 << 1) | (block.length << 3), 3), block);
    return concat(le(0xfd2fb528, 4), Uint8Array.of(0x20, 20 + literals), repeated, last);
  };
  const content = Uint8Array.of(...new Array(20).fill(7), 0, 1, 1, 0);
  assert.deepEqual(shardtool.decompressZstd(frame("0110", 4)), content);
  assert.throws(() => shardtool.decompressZstd(frame("01101", 4)), /bits after the last literal/);
  assert.throws(() => shardtool.decompressZstd(frame("011", 4)), /ends early/);
});

test("refuses a zstd frame that claims more than its blocks can hold, before it allocates", () => {
  const claim = concat(le(0xfd2fb528, 4), Uint8Array.of(0xe0), le(2n ** 33n, 8), Uint8Array.of(1, 0, 0));
  assert.throws(() => shardtool.decompressZstd(claim, { limit: 2 ** 40 }), /cannot produce/);
});

test("decodes pixels and names their errors", { skip: compress ? false : "no zstd command" }, async () => {
  const pixels = noise(4 * 5 * 3, 50);
  const zstd = compress(pixels);
  const skippable = concat(le(0x184d2a50, 4), le(0, 4));
  const streamed = execFileSync("zstd", ["-q", "-c"], { input: pixels });
  const stored = (image, format, height = 4, width = 5) =>
    build.dataset([picture("k", 0, height, width, { format, image })], { manifest: MANIFEST });
  const cases = [
    [zstd, "raw-zstd", []],
    [pixels, "raw", []],
    [pixels.subarray(1), "raw", ["PixelsLength"]],
    [zstd, "raw-zstd", ["PixelsLength"], 4, 4],
    [zstd, "raw-zstd", ["PixelsLength"], 0, 5],
    [zstd, "raw-zstd", ["PixelsLength"], -4, -5],
    [zstd, "raw-zstd", ["PixelsLength"], 2n ** 62n, 2n ** 62n],
    [concat(zstd, skippable), "raw-zstd", ["ImageDecode"]],
    [concat(skippable, zstd), "raw-zstd", ["ImageDecode"]],
    [zstd.subarray(0, -1), "raw-zstd", ["ImageDecode"]],
    [new Uint8Array(streamed), "raw-zstd", ["PixelsLength"]],
    [utf8(""), "raw-zstd", ["ImageDecode"]],
    [pixels, "farbfeld", ["ImageDecode"]],
    [Uint8Array.of(0xff, 0xd8, 0xff), "jpeg", []],
  ];
  for (const [image, format, names, ...size] of cases)
    assert.deepEqual(await findings(stored(image, format, ...size)), names, format);
});

test("detects formats from content", () => {
  const cases = {
    jpeg: [0xff, 0xd8, 0xff],
    png: "\x89PNG\r\n\x1a\n",
    webp: "RIFF\0\0\0\0WEBP",
    gif: "GIF89a",
    tiff: "MM\0+",
    bmp: "BM            \x28\0\0\0",
    jxl: [0xff, 0x0a],
    jp2: "\0\0\0\x0cjP  \r\n\x87\n",
    avif: "\0\0\0\x1cftypmif1\0\0\0\0heicavif",
    heif: "\0\0\0\x14ftypabcd\0\0\0\0msf1",
  };
  for (const [format, content] of Object.entries(cases))
    assert.equal(shardtool.detectFormat(Uint8Array.from(Buffer.from(content, "latin1"))), format);
  for (const content of ["", "BM", "\0\0\0\x10ftypabcd\0\0\0\0avif", "GIF88a"])
    assert.equal(shardtool.detectFormat(Buffer.from(content, "latin1")), null);
});

test("assembles arrays from chunks and names their errors", async () => {
  const array = (shape, chunk, dtype, codec, chunks) =>
    example(
      ["a", bytesList(...chunks)],
      ["a/chunk", int64List(...chunk)],
      ["a/codec", bytesList(codec)],
      ["a/dtype", bytesList(dtype)],
      ["a/shape", int64List(...shape)],
    );
  const decode = (...args) => shardtool.decodeArray(shardtool.parseExample(array(...args)).features, "a");
  // 3 × 5 of u16 in chunks of 2 × 2, clipped at the edges.
  const at = (row, column) => le(10 * row + column, 2);
  const chunks = [];
  for (const [rows, columns] of [
    [
      [0, 1],
      [0, 1],
    ],
    [
      [0, 1],
      [2, 3],
    ],
    [[0, 1], [4]],
    [[2], [0, 1]],
    [[2], [2, 3]],
    [[2], [4]],
  ]) {
    chunks.push(concat(...rows.flatMap((row) => columns.map((column) => at(row, column)))));
  }
  const expected = [0, 1, 2, 3, 4, 10, 11, 12, 13, 14, 20, 21, 22, 23, 24];
  assert.deepEqual([...decode([3, 5], [2, 2], "u16", "raw", chunks).values], expected);
  assert.deepEqual([...decode([3, 1, 5, 1], [2, 7, 2, 1], "u16", "raw", chunks).values], expected);
  if (compress)
    assert.deepEqual(
      [
        ...decode(
          [3, 5],
          [2, 2],
          "u16",
          "zstd",
          chunks.map((one) => compress(one)),
        ).values,
      ],
      expected,
    );
  assert.deepEqual(decode([0, 5], [1, 1], "f64", "raw", []).values, new Float64Array(0));
});

test("names the errors of arrays", () => {
  const decode = (shape, chunk, dtype, codec, chunks) => {
    const data = example(
      ["a", bytesList(...chunks)],
      ["a/chunk", int64List(...chunk)],
      ["a/codec", bytesList(codec)],
      ["a/dtype", bytesList(dtype)],
      ["a/shape", int64List(...shape)],
    );
    try {
      shardtool.decodeArray(shardtool.parseExample(data).features, "a");
      return null;
    } catch (error) {
      return error.name;
    }
  };
  assert.equal(decode([2], [2], "u8", "raw", ["ab"]), null);
  assert.equal(decode([2], [1], "u8", "raw", ["ab"]), "PixelsLength");
  assert.equal(decode([2], [2], "u8", "raw", ["abc"]), "PixelsLength");
  assert.equal(decode([2], [2], "u8", "zstd", ["ab"]), "ImageDecode");
  assert.equal(decode([2], [2], "u9", "raw", ["ab"]), "ImageDecode");
  assert.equal(decode([2], [2], "u8", "gzip", ["ab"]), "ImageDecode");
  assert.equal(decode([2, 1], [2], "u8", "raw", ["ab"]), "ImageDecode");
  assert.equal(decode([], [], "u8", "raw", []), "ImageDecode");
  assert.equal(decode([-1], [2], "u8", "raw", []), "ImageDecode");
  assert.equal(decode([2], [0], "u8", "raw", ["ab"]), "ImageDecode");
  assert.equal(decode([2n ** 32n, 2n ** 31n], [1, 1], "u8", "raw", []), "ImageDecode");
  assert.equal(decode([2n ** 32n, 2n ** 30n], [1, 1], "u8", "raw", []), "PixelsLength");
  assert.equal(decode([2n ** 40n], [2n ** 40n], "u8", "raw", ["ab"]), "PixelsLength");
  assert.equal(decode([2n ** 62n], [2n ** 62n], "u64", "raw", ["ab"]), "PixelsLength");
  assert.equal(decode([0, 2n ** 40n], [1, 2n ** 62n], "u64", "raw", []), null);
  assert.equal(decode([0, 2n ** 40n], [2n ** 32n, 2n ** 31n], "u8", "raw", []), "ImageDecode");
});
