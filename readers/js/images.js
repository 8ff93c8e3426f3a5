// Images and arrays of a record: formats, raw pixels, arrays of chunks (format-spec.md, "Pixels" and "Arrays").

import { typedView } from "./bytes.js";
import { ZstdError, decompressZstd, readZstdHeader } from "./zstd.js";

/** Default limit of what is decompressed for one image or array, in bytes. */
export const DECODE_LIMIT = 2 ** 30;

/** File formats that `image/format` may name, in any case. */
export const FILE_FORMATS = ["jpeg", "png", "webp", "gif", "bmp", "tiff", "avif", "jxl", "jp2", "heif"];

/** Bytes per element and the typed array of each dtype; f16 and bf16 are delivered as their 16 bits. */
const DTYPES = new Map([
  ["u8", Uint8Array],
  ["i8", Int8Array],
  ["u16", Uint16Array],
  ["i16", Int16Array],
  ["u32", Uint32Array],
  ["i32", Int32Array],
  ["u64", BigUint64Array],
  ["i64", BigInt64Array],
  ["f16", Uint16Array],
  ["bf16", Uint16Array],
  ["f32", Float32Array],
  ["f64", Float64Array],
  ["bool", Uint8Array],
]);

const MAX_PRODUCT = (1n << 63n) - 1n;

/** Reports an image or array that cannot be decoded; readers of records convert it to a Damage. */
export class DecodeError extends Error {
  /**
   * Creates an error.
   *
   * @param {"PixelsLength"|"ImageDecode"} name name of the damage
   * @param {string} what what is wrong
   * @param {*} [expected] the value that the format demands
   * @param {*} [found] the value in the record
   */
  constructor(name, what, expected = null, found = null) {
    super(what);
    this.name = name;
    this.expected = expected;
    this.found = found;
  }
}

/** The first bytes of each format, as regular expressions over Latin-1, in the order of the specification. */
const SIGNATURES = [
  ["jpeg", /^\xff\xd8\xff/],
  ["png", /^\x89PNG\r\n\x1a\n/],
  ["webp", /^RIFF[^]{4}WEBP/],
  ["gif", /^GIF8[79]a/],
  ["tiff", /^(II[\x2a\x2b]\0|MM\0[\x2a\x2b])/],
  ["bmp", /^BM[^]{12}[\x0c\x10\x28\x34\x38\x40\x6c\x7c]\0\0\0/],
  ["jxl", /^(\xff\x0a|\0\0\0\x0cJXL \r\n\x87\n)/],
  ["jp2", /^(\xff\x4f\xff\x51|\0\0\0\x0cjP {2}\r\n\x87\n)/],
];
const BRANDS = [
  ["avif", /^avi[fs]$/],
  ["heif", /^(hei[cxms]|hev[cx]|m[is]f1)$/],
];

/**
 * Detects the format of an image from its content.
 *
 * @param {Uint8Array} bytes the image
 * @returns {?string} a name of `image/format`, or null if the content is unknown
 */
export function detectFormat(bytes) {
  const text = String.fromCharCode(...bytes.subarray(0, 256));
  for (const [format, signature] of SIGNATURES) if (signature.test(text)) return format;
  if (text.slice(4, 8) !== "ftyp") return null;
  const box = ((bytes[0] << 24) | (bytes[1] << 16) | (bytes[2] << 8) | bytes[3]) >>> 0;
  const end = Math.min(box, text.length);
  for (const [format, brand] of BRANDS) {
    for (const at of [8, ...Array.from({ length: 60 }, (_, i) => 16 + 4 * i)]) {
      if (at + 4 <= end && brand.test(text.slice(at, at + 4))) return format;
    }
  }
  return null;
}

/**
 * Decodes pixels of the formats `raw` and `raw-zstd`.
 *
 * @param {Uint8Array} bytes the stored image
 * @param {"raw"|"raw-zstd"} format its format
 * @param {?bigint} height height in pixels, or null if the record has none
 * @param {?bigint} width width in pixels, or null if the record has none
 * @param {number} [limit] refuses to decompress more, in bytes
 * @returns {{height: number, width: number, data: Uint8Array}} rows of pixels, each red, green, blue as u8, of
 *   height × width × 3 bytes; of `raw` a view of `bytes`
 * @throws {DecodeError} `PixelsLength` or `ImageDecode`
 */
export function decodePixels(bytes, format, height, width, limit = DECODE_LIMIT) {
  if (height === null || width === null || height < 1n || width < 1n) {
    throw new DecodeError("PixelsLength", "no height or width", "at least 1 × 1", `${height} × ${width}`);
  }
  const length = height * width * 3n;
  const data = format === "raw" ? bytes : inflate(bytes, length, limit);
  if (BigInt(data.length) !== length) {
    throw new DecodeError("PixelsLength", "the pixels have another length", length, data.length);
  }
  return { height: Number(height), width: Number(width), data };
}

/** Decompresses a zstd frame of exactly `length` bytes. */
function inflate(bytes, length, limit) {
  try {
    const { contentSize } = readZstdHeader(bytes);
    if (contentSize !== length) {
      throw new DecodeError("PixelsLength", "the zstd frame has another content size", length, contentSize ?? "none");
    }
    return decompressZstd(bytes, { limit });
  } catch (error) {
    if (!(error instanceof ZstdError)) throw error;
    throw new DecodeError("ImageDecode", error.message);
  }
}

/**
 * Lists the arrays of a record.
 *
 * @param {Map<string, import("./example.js").Feature>} features the record's features
 * @returns {string[]} each NAME that has the features NAME/shape, NAME/chunk, NAME/dtype and NAME/codec
 */
export function arrayNames(features) {
  return [...features.keys()]
    .filter((name) => name.endsWith("/shape"))
    .map((name) => name.slice(0, -"/shape".length))
    .filter((name) => ["chunk", "dtype", "codec"].every((member) => features.has(`${name}/${member}`)));
}

/**
 * Decodes an array.
 *
 * @param {Map<string, import("./example.js").Feature>} features the record's features
 * @param {string} name a name that {@link arrayNames} lists
 * @param {number} [limit] refuses to decompress more, in bytes
 * @returns {{shape: bigint[], dtype: string, bytes: Uint8Array, values: ArrayBufferView}} the whole array in C order:
 *   its little-endian bytes, and the same as a typed array (f16 and bf16 as u16, bool as u8)
 * @throws {DecodeError} `PixelsLength` or `ImageDecode`
 */
export function decodeArray(features, name, limit = DECODE_LIMIT) {
  const { shape, chunk, dtype, codec } = arrayHeader(features, name);
  const grid = shape.map((length, i) => (length + chunk[i] - 1n) / chunk[i]);
  for (const factors of [shape, chunk, grid]) {
    if (product(factors) > MAX_PRODUCT) throw new DecodeError("ImageDecode", `array ${name} is too large`);
  }
  const stored = features.get(name);
  const chunks = stored?.type === "bytes" ? stored : { length: 0 };
  if (product(grid) !== BigInt(chunks.length)) {
    throw new DecodeError("PixelsLength", `array ${name} has another number of chunks`, product(grid), chunks.length);
  }
  // Dimensions of length 1 change nothing in C order. Without them at most 62 are left, however many a record has.
  const kept = shape.map((_, i) => i).filter((i) => shape[i] !== 1n);
  const [lengths, steps] = [shape, chunk].map((all) => kept.map((i) => all[i]));
  const places = new ChunkPlaces(lengths, steps, DTYPES.get(dtype).BYTES_PER_ELEMENT);
  const contents = [];
  let total = 0;
  for (let i = 0; i < chunks.length; i++) {
    const length = places.bytes();
    const content = codec === "zstd" ? inflate(chunks.values[i], length, limit - total) : chunks.values[i];
    if (BigInt(content.length) !== length) {
      throw new DecodeError("PixelsLength", `chunk ${i} of array ${name} has another length`, length, content.length);
    }
    contents.push(content);
    total += content.length;
    places.next();
  }
  // All chunks have their lengths, so the array is as long as they are together.
  let bytes = contents[0];
  if (contents.length !== 1) {
    bytes = new Uint8Array(total);
    for (const content of contents) {
      places.copy(content, bytes);
      places.next();
    }
  }
  return { shape, dtype, bytes, values: typedView(bytes, DTYPES.get(dtype)) };
}

/** Reads the four features that describe an array. */
function arrayHeader(features, name) {
  const numbers = (member, min) => {
    const feature = features.get(`${name}/${member}`);
    if (feature.type !== "int64" || feature.length === 0 || feature.values.some((value) => value < min)) {
      throw new DecodeError("ImageDecode", `${name}/${member} is not a list of numbers from ${min}`);
    }
    return Array.from(feature.values);
  };
  const word = (member, known) => {
    const bytes = features.get(`${name}/${member}`).single("bytes");
    const text = bytes && bytes.length < 16 ? String.fromCharCode(...bytes) : null;
    if (!known(text)) throw new DecodeError("ImageDecode", `${name}/${member} is unknown`, null, text);
    return text;
  };
  const header = {
    shape: numbers("shape", 0n),
    chunk: numbers("chunk", 1n),
    dtype: word("dtype", (text) => DTYPES.has(text)),
    codec: word("codec", (text) => text === "raw" || text === "zstd"),
  };
  if (header.shape.length !== header.chunk.length) {
    throw new DecodeError(
      "ImageDecode",
      `${name}/shape and ${name}/chunk differ in length`,
      header.shape.length,
      header.chunk.length,
    );
  }
  return header;
}

/** Multiplies without growing far beyond 2^63. */
function product(factors) {
  if (factors.includes(0n)) return 0n;
  let result = 1n;
  for (const factor of factors) {
    result *= factor;
    if (result > MAX_PRODUCT) return result;
  }
  return result;
}

/** Visits the chunks of an array in C order of the grid, again from the first after the last. */
class ChunkPlaces {
  constructor(shape, chunk, width) {
    this.shape = shape;
    this.chunk = chunk;
    this.width = width;
    /** First element of the chunk, by dimension. */
    this.start = shape.map(() => 0n);
  }

  /** Returns the lengths of the chunk; the edge of the array clips them. */
  #lengths() {
    return this.chunk.map((length, i) => {
      const left = this.shape[i] - this.start[i];
      return length < left ? length : left;
    });
  }

  /** Returns the length of the chunk in bytes. */
  bytes() {
    return this.#lengths().reduce((sum, length) => sum * length, BigInt(this.width));
  }

  /** Copies the chunk row by row into the array, which both fit into memory. */
  copy(content, into) {
    const [lengths, shape, start] = [this.#lengths(), this.shape, this.start].map((all) => all.map(Number));
    const last = lengths.length - 1;
    const row = lengths[last] * this.width;
    const position = lengths.map(() => 0);
    for (let from = 0; from < content.length; from += row) {
      let element = 0;
      for (let i = 0; i <= last; i++) element = element * shape[i] + start[i] + position[i];
      into.set(content.subarray(from, from + row), element * this.width);
      for (let i = last - 1; i >= 0 && ++position[i] === lengths[i]; i--) position[i] = 0;
    }
  }

  /** Moves to the next chunk. */
  next() {
    for (let i = this.start.length - 1; i >= 0; i--) {
      this.start[i] += this.chunk[i];
      if (this.start[i] < this.shape[i]) return;
      this.start[i] = 0n;
    }
  }
}
