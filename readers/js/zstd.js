// A decoder of zstd frames (RFC 8878): one frame without a dictionary, into a buffer of known size.
//
// The input is not trusted: every length and every table is checked, and no buffer is larger than what the headers of
// the frame's blocks can produce. Section numbers in comments are those of RFC 8878.

import { dataView } from "./bytes.js";
import { xxh64 } from "./xxh64.js";

const MAGIC = 0xfd2fb528;
const MAX_BLOCK = 128 * 1024;
/** The largest Huffman code (4.2.1) and the largest accuracy of weights, in bits. */
const MAX_HUFFMAN_BITS = 11;
const MAX_WEIGHT_ACCURACY = 6;

/** Reports bytes that are not a zstd frame. */
export class ZstdError extends Error {
  /**
   * Creates an error.
   *
   * @param {string} what what is wrong
   */
  constructor(what) {
    super(what);
    this.name = "ZstdError";
  }
}

function fail(what) {
  throw new ZstdError(what);
}

/**
 * Reads the header of a frame.
 *
 * @param {Uint8Array} bytes the frame
 * @returns {{contentSize: ?bigint, windowSize: bigint, dictionary: number, hasChecksum: boolean, length: number}}
 *   bytes of the content (null if the header does not say), bytes of the window, dictionary id (0 for none), whether a
 *   checksum follows the blocks, and the length of the header in bytes
 * @throws {ZstdError} if the bytes do not begin with the header of a zstd frame
 */
export function readZstdHeader(bytes) {
  const view = dataView(bytes);
  if (bytes.length < 5 || view.getUint32(0, true) !== MAGIC) fail("not a zstd frame");
  const descriptor = bytes[4];
  if (descriptor & 8) fail("the reserved bit of the frame header is set");
  const isSingle = (descriptor & 32) !== 0;
  const dictionaryBytes = [0, 1, 2, 4][descriptor & 3];
  const sizeBytes = [isSingle ? 1 : 0, 2, 4, 8][descriptor >> 6];
  const length = 5 + (isSingle ? 0 : 1) + dictionaryBytes + sizeBytes;
  if (bytes.length < length) fail("the frame header is cut off");
  const number = (at, count) => {
    let value = 0n;
    for (let i = 0; i < count; i++) value |= BigInt(bytes[at + i]) << BigInt(8 * i);
    return value;
  };
  const contentSize = sizeBytes === 0 ? null : number(length - sizeBytes, sizeBytes) + (sizeBytes === 2 ? 256n : 0n);
  let windowSize = contentSize;
  if (!isSingle) {
    const base = 1n << BigInt(10 + (bytes[5] >> 3));
    windowSize = base + (base / 8n) * BigInt(bytes[5] & 7);
  }
  const dictionary = Number(number(length - sizeBytes - dictionaryBytes, dictionaryBytes));
  return { contentSize, windowSize, dictionary, hasChecksum: (descriptor & 4) !== 0, length };
}

/**
 * Decompresses one frame.
 *
 * @param {Uint8Array} bytes the frame, with its content size in the header and nothing after it
 * @param {object} [options]
 * @param {number} [options.limit] refuses a longer content, in bytes; 2^30 by default
 * @returns {Uint8Array} the content
 * @throws {ZstdError} if the frame has no content size, needs a dictionary, does not decode, is followed by bytes, has
 *   another checksum, or is longer than the limit
 */
export function decompressZstd(bytes, { limit = 2 ** 30 } = {}) {
  const header = readZstdHeader(bytes);
  if (header.contentSize === null) fail("the frame header has no content size");
  if (header.dictionary !== 0) fail("the frame needs a dictionary");
  if (header.contentSize > BigInt(limit)) fail(`the content has ${header.contentSize} bytes, the limit is ${limit}`);
  const maxBlock = Number(header.windowSize < BigInt(MAX_BLOCK) ? header.windowSize : BigInt(MAX_BLOCK));
  checkBlocks(bytes, header, maxBlock);
  const out = new Uint8Array(Number(header.contentSize));
  const frame = new FrameState(out, maxBlock);
  for (const { type, start, size } of blocksOf(bytes, header)) {
    if (type === 2) {
      frame.block(bytes.subarray(start, start + size));
    } else {
      if (size > out.length - frame.at) fail("the blocks are longer than the content size");
      if (type === 0) out.set(bytes.subarray(start, start + size), frame.at);
      else out.fill(bytes[start], frame.at, frame.at + size);
      frame.at += size;
    }
  }
  if (frame.at !== out.length) fail("the blocks are shorter than the content size");
  if (header.hasChecksum && dataView(bytes).getUint32(bytes.length - 4, true) !== Number(xxh64(out) & 0xffffffffn)) {
    fail("the checksum does not match");
  }
  return out;
}

/** Iterates over the blocks (3.1.1.2): type, offset of the content, Block_Size, and the offset after the block. */
function* blocksOf(bytes, header) {
  for (let at = header.length, isLast = false; !isLast;) {
    if (at + 3 > bytes.length) fail("a block header is cut off");
    const word = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16);
    isLast = (word & 1) === 1;
    const [type, size, start] = [(word >> 1) & 3, word >> 3, at + 3];
    if (type === 3) fail("reserved block type");
    at = start + (type === 1 ? 1 : size);
    if (at > bytes.length) fail("a block is cut off");
    yield { type, start, size, end: at };
  }
}

/** Checks that the blocks end the frame and can produce the content, before memory is allocated for it. */
function checkBlocks(bytes, header, maxBlock) {
  let end = header.length;
  let most = 0;
  for (const block of blocksOf(bytes, header)) {
    // RFC 8878 limits compressed blocks to the window, too, but libzstd decodes up to 128 KiB whatever the window is.
    if (block.size > (block.type === 2 ? MAX_BLOCK : maxBlock)) fail("a block is longer than allowed");
    most += block.type === 2 ? maxBlock : block.size;
    end = block.end;
  }
  if (end + (header.hasChecksum ? 4 : 0) !== bytes.length) fail("the frame does not end where its bytes end");
  if (BigInt(most) < header.contentSize) fail("the blocks cannot produce the content size");
}

/** Decodes compressed blocks. Tables and offsets persist from block to block (3.1.1.3, 3.1.1.5). */
class FrameState {
  constructor(out, maxBlock) {
    this.out = out;
    this.at = 0;
    this.maxBlock = maxBlock;
    this.literals = new Uint8Array(0);
    this.huffman = null;
    this.tables = [null, null, null];
    this.repeats = [1, 4, 8];
  }

  block(bytes) {
    const end = Math.min(this.at + this.maxBlock, this.out.length);
    const next = this.#readLiterals(bytes);
    this.#readSequences(bytes.subarray(next), end);
  }

  /** Decodes the literals section (3.1.1.3.1) into `this.literals`; returns the offset after it. */
  #readLiterals(bytes) {
    if (bytes.length === 0) fail("a block without a literals section");
    const type = bytes[0] & 3;
    const format = (bytes[0] >> 2) & 3;
    const word = (at) => bytes[at] ?? fail("the literals section is cut off");
    if (type < 2) {
      const headerBytes = [1, 2, 1, 3][format];
      let size = word(0);
      for (let i = 1; i < headerBytes; i++) size |= word(i) << (8 * i);
      size >>= headerBytes === 1 ? 3 : 4;
      if (size > this.maxBlock) fail("too many literals");
      const length = type === 0 ? size : 1;
      if (headerBytes + length > bytes.length) fail("the literals section is cut off");
      this.literals =
        type === 0 ? bytes.subarray(headerBytes, headerBytes + size) : new Uint8Array(size).fill(bytes[headerBytes]);
      return headerBytes + length;
    }
    const sizeBits = [10, 10, 14, 18][format];
    const start = [3, 3, 4, 5][format];
    let sizes = 0;
    for (let i = start - 1; i >= 0; i--) sizes = sizes * 256 + word(i);
    sizes = Math.floor(sizes / 16);
    const regenerated = sizes % 2 ** sizeBits;
    const compressed = Math.floor(sizes / 2 ** sizeBits);
    if (regenerated > this.maxBlock) fail("too many literals");
    if (start + compressed > bytes.length) fail("the literals section is cut off");
    let body = bytes.subarray(start, start + compressed);
    if (type === 2) {
      const used = this.#readHuffmanTable(body);
      body = body.subarray(used);
    }
    if (this.huffman === null) fail("literals that repeat an absent Huffman table");
    this.literals = new Uint8Array(regenerated);
    this.#decodeStreams(body, format === 0 ? 1 : 4);
    return start + compressed;
  }

  /** Decodes one or four Huffman streams (4.2.2) into `this.literals`. */
  #decodeStreams(body, count) {
    const { literals, huffman } = this;
    if (count === 1) return decodeHuffman(body, huffman, literals);
    if (body.length < 6 || literals.length < 6) fail("four streams that are too short");
    const each = Math.ceil(literals.length / 4);
    if (3 * each > literals.length) fail("four streams that are too short");
    let at = 6;
    for (let i = 0; i < 4; i++) {
      const size = i < 3 ? body[2 * i] | (body[2 * i + 1] << 8) : body.length - at;
      if (size < 0 || at + size > body.length) fail("a stream of literals is cut off");
      decodeHuffman(
        body.subarray(at, at + size),
        huffman,
        literals.subarray(i * each, i < 3 ? (i + 1) * each : undefined),
      );
      at += size;
    }
  }

  /** Reads the description of a Huffman table (4.2.1) into `this.huffman`; returns its length. */
  #readHuffmanTable(bytes) {
    const first = bytes[0] ?? fail("the Huffman table is cut off");
    let weights;
    let used;
    if (first < 128) {
      used = 1 + first;
      if (used > bytes.length) fail("the Huffman table is cut off");
      weights = readFseWeights(bytes.subarray(1, used));
    } else {
      const count = first - 127;
      used = 1 + Math.ceil(count / 2);
      if (used > bytes.length) fail("the Huffman table is cut off");
      weights = Array.from({ length: count }, (_, i) => (i & 1 ? bytes[1 + (i >> 1)] & 15 : bytes[1 + (i >> 1)] >> 4));
    }
    this.huffman = makeHuffman(weights);
    return used;
  }

  /** Decodes the sequences section (3.1.1.3.2) and executes it up to offset `end` of the content. */
  #readSequences(bytes, end) {
    let at = 0;
    const next = () => bytes[at++] ?? fail("the sequences section is cut off");
    let count = next();
    if (count === 255) count = next() + (next() << 8) + 0x7f00;
    else if (count > 127) count = ((count - 128) << 8) + next();
    let literal = 0;
    if (count === 0) {
      if (at !== bytes.length) fail("bytes after the literals of a block without sequences");
    } else {
      const modes = next();
      if (modes & 3) fail("reserved bits of the sequences section are set");
      for (let i = 0; i < 3; i++) {
        const used = this.#readTable(i, (modes >> (6 - 2 * i)) & 3, bytes.subarray(at));
        at += used;
      }
      literal = this.#execute(new BackwardBits(bytes.subarray(at)), count, end);
    }
    const rest = this.literals.length - literal;
    if (rest > end - this.at) fail("a block is longer than allowed");
    this.out.set(this.literals.subarray(literal), this.at);
    this.at += rest;
  }

  /** Sets table `i` (literal lengths, offsets, match lengths) by its mode (3.1.1.3.2.1); returns bytes used. */
  #readTable(i, mode, bytes) {
    const kind = TABLES[i];
    if (mode === 0) {
      this.tables[i] = kind.predefined;
    } else if (mode === 1) {
      const symbol = bytes[0] ?? fail("an RLE table is cut off");
      if (symbol > kind.maxSymbol) fail("a symbol that does not exist");
      this.tables[i] = { bits: 0, symbols: Uint8Array.of(symbol), lengths: Uint8Array.of(0), bases: Uint16Array.of(0) };
      return 1;
    } else if (mode === 2) {
      const { counts, accuracy, used } = readCounts(bytes, kind.maxAccuracy, kind.maxSymbol);
      this.tables[i] = makeFse(counts, accuracy);
      return used;
    } else if (this.tables[i] === null) {
      fail("sequences that repeat an absent table");
    }
    return 0;
  }

  /** Executes `count` sequences (3.1.1.4); returns how many literals they used. */
  #execute(bits, count, end) {
    const { out, literals, repeats } = this;
    const [lengthTable, offsetTable, matchTable] = this.tables;
    let lengthState = bits.read(lengthTable.bits);
    let offsetState = bits.read(offsetTable.bits);
    let matchState = bits.read(matchTable.bits);
    let literal = 0;
    let at = this.at;
    for (let i = 0; i < count; i++) {
      const offsetCode = offsetTable.symbols[offsetState];
      const matchCode = matchTable.symbols[matchState];
      const lengthCode = lengthTable.symbols[lengthState];
      const offsetValue = ((1 << offsetCode) >>> 0) + bits.read(offsetCode);
      const match = MATCH_BASES[matchCode] + bits.read(MATCH_BITS[matchCode]);
      const length = LENGTH_BASES[lengthCode] + bits.read(LENGTH_BITS[lengthCode]);
      let offset;
      if (offsetValue > 3) {
        offset = offsetValue - 3;
        repeats[2] = repeats[1];
        repeats[1] = repeats[0];
      } else {
        const which = offsetValue - (length === 0 ? 0 : 1);
        offset = which === 3 ? repeats[0] - 1 : repeats[which];
        if (which > 1) repeats[2] = repeats[1];
        if (which > 0) repeats[1] = repeats[0];
      }
      repeats[0] = offset;
      if (i + 1 < count) {
        lengthState = lengthTable.bases[lengthState] + bits.read(lengthTable.lengths[lengthState]);
        matchState = matchTable.bases[matchState] + bits.read(matchTable.lengths[matchState]);
        offsetState = offsetTable.bases[offsetState] + bits.read(offsetTable.lengths[offsetState]);
      }
      if (bits.left < 0) fail("the sequences end early");
      if (length > literals.length - literal) fail("a sequence needs more literals than there are");
      if (length + match > end - at) fail("a block is longer than allowed");
      for (const stop = literal + length; literal < stop;) out[at++] = literals[literal++];
      if (offset < 1 || offset > at) fail("a match before the beginning of the content");
      const from = at - offset;
      if (match > 64 && offset >= match) out.copyWithin(at, from, from + match);
      else for (let k = 0; k < match; k++) out[at + k] = out[from + k];
      at += match;
    }
    if (bits.left !== 0) fail("bits after the last sequence");
    this.at = at;
    return literal;
  }
}

/** Reads a bit stream from its last bit to its first (4.1). Bits before the first are 0, and `left` turns negative. */
class BackwardBits {
  constructor(bytes) {
    const last = bytes[bytes.length - 1];
    if (!last) fail("a bit stream without its final bit");
    /** The stream with four zeros on either side, so that `peek` reads inside the array. */
    this.padded = new Uint8Array(bytes.length + 8);
    this.padded.set(bytes, 4);
    /** Bits that are not read. */
    this.left = 8 * (bytes.length - 1) + 31 - Math.clz32(last);
  }

  /** Reads up to 31 bits; the first bit is the most significant. */
  read(count) {
    if (count > 16) return this.read(count - 16) * 65536 + this.read(16);
    this.left -= count;
    return peek(this.padded, this.left) & ((1 << count) - 1);
  }
}

/** Returns at least 17 bits of a padded stream that begin at bit `at`, lowest first. */
function peek(padded, at) {
  const i = (at >> 3) + 4;
  return (padded[i] | (padded[i + 1] << 8) | (padded[i + 2] << 16)) >>> (at & 7);
}

/** Decodes one Huffman stream; it holds exactly the symbols of `into`. */
function decodeHuffman(bytes, { bits, symbols, lengths }, into) {
  let { padded, left } = new BackwardBits(bytes);
  const mask = (1 << bits) - 1;
  for (let i = 0; i < into.length; i++) {
    const index = peek(padded, left - bits) & mask;
    into[i] = symbols[index];
    left -= lengths[index];
    if (left < 0) fail("a stream of literals ends early");
  }
  if (left !== 0) fail("bits after the last literal");
}

/** Makes a Huffman table from the weights of all symbols but the last (4.2.1). */
function makeHuffman(weights) {
  let sum = 0;
  for (const weight of weights) {
    if (weight > MAX_HUFFMAN_BITS) fail("a weight of the Huffman table is too large");
    if (weight > 0) sum += 1 << (weight - 1);
  }
  if (sum === 0) fail("a Huffman table without symbols");
  const bits = 32 - Math.clz32(sum);
  if (bits > MAX_HUFFMAN_BITS) fail("a Huffman code is too long");
  const rest = (1 << bits) - sum;
  if (rest & (rest - 1)) fail("the weights of the Huffman table do not add up");
  const all = [...weights, 32 - Math.clz32(rest)];
  if (all.length > 256) fail("a Huffman table with too many symbols");
  const symbols = new Uint8Array(1 << bits);
  const lengths = new Uint8Array(1 << bits);
  let at = 0;
  for (let weight = 1; weight <= bits; weight++) {
    for (let symbol = 0; symbol < all.length; symbol++) {
      if (all[symbol] !== weight) continue;
      const end = at + (1 << (weight - 1));
      symbols.fill(symbol, at, end);
      lengths.fill(bits + 1 - weight, at, end);
      at = end;
    }
  }
  return { bits, symbols, lengths };
}

/** Reads the weights of a Huffman table that are compressed with FSE (4.2.1.2). */
function readFseWeights(bytes) {
  const { counts, accuracy, used } = readCounts(bytes, MAX_WEIGHT_ACCURACY, 255);
  const { symbols, lengths, bases } = makeFse(counts, accuracy);
  const bits = new BackwardBits(bytes.subarray(used));
  const weights = [];
  let state = bits.read(accuracy);
  let other = bits.read(accuracy);
  if (bits.left < 0) fail("the weights of the Huffman table end early");
  for (;;) {
    weights.push(symbols[state]);
    if (weights.length > 254) fail("a Huffman table with too many symbols");
    const next = bases[state] + bits.read(lengths[state]);
    if (bits.left < 0) {
      weights.push(symbols[other]);
      return weights;
    }
    state = other;
    other = next;
  }
}

/** Reads the counts of an FSE table (4.1.1): accuracy in bits, the count of each symbol (−1 for "less than one"). */
function readCounts(bytes, maxAccuracy, maxSymbol) {
  let at = 0;
  const read = (count) => {
    const i = at >> 3;
    const value = (bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16)) >>> (at & 7);
    at += count;
    return value & ((1 << count) - 1);
  };
  const accuracy = read(4) + 5;
  if (bytes.length === 0 || accuracy > maxAccuracy) fail("an FSE table with a wrong accuracy");
  let remaining = (1 << accuracy) + 1;
  const counts = [];
  while (remaining > 1) {
    if (counts.length > maxSymbol) fail("an FSE table with too many symbols");
    if (at > 8 * bytes.length) fail("an FSE table is cut off");
    const width = 32 - Math.clz32(remaining);
    const short = (1 << width) - 1 - remaining;
    let value = read(width - 1);
    if (value >= short) {
      const top = read(1);
      value += top << (width - 1);
      if (value >= 1 << (width - 1)) value -= short;
    }
    const count = value - 1;
    remaining -= Math.abs(count);
    counts.push(count);
    if (count === 0) {
      for (let repeat = 3; repeat === 3;) {
        repeat = read(2);
        for (let i = 0; i < repeat; i++) counts.push(0);
        if (counts.length > maxSymbol + 1) fail("an FSE table with too many symbols");
      }
    }
  }
  if (at > 8 * bytes.length) fail("an FSE table is cut off");
  if (remaining !== 1 || counts.length > maxSymbol + 1) fail("the counts of an FSE table do not add up");
  return { counts, accuracy, used: Math.ceil(at / 8) };
}

/** Makes an FSE decoding table (4.1.1): symbol, bits to read, and base of the next state, by state. */
function makeFse(counts, accuracy) {
  const size = 1 << accuracy;
  const symbols = new Uint8Array(size);
  const lengths = new Uint8Array(size);
  const bases = new Uint16Array(size);
  let high = size;
  const next = counts.map((count, symbol) => {
    if (count === -1) symbols[--high] = symbol;
    return Math.abs(count);
  });
  const step = (size >> 1) + (size >> 3) + 3;
  let position = 0;
  counts.forEach((count, symbol) => {
    for (let i = 0; i < count; i++) {
      symbols[position] = symbol;
      do position = (position + step) & (size - 1);
      while (position >= high);
    }
  });
  for (let state = 0; state < size; state++) {
    const number = next[symbols[state]]++;
    lengths[state] = accuracy - (31 - Math.clz32(number));
    bases[state] = (number << lengths[state]) - size;
  }
  return { bits: accuracy, symbols, lengths, bases };
}

/** Returns the first value of each code whose codes cover adjacent ranges. */
function basesOf(bits, first) {
  let base = first;
  return Uint32Array.from(bits, (count) => {
    base += 1 << count;
    return base - (1 << count);
  });
}

/** Returns `zeros` zeros, then the numbers of a text. */
function afterZeros(zeros, numbers) {
  return Uint8Array.of(...new Array(zeros).fill(0), ...numbers.split(" ").map(Number));
}

/** Additional bits and bases of literal and match length codes (3.1.1.3.2.1.1). */
const LENGTH_BITS = afterZeros(16, "1 1 1 1 2 2 3 3 4 6 7 8 9 10 11 12 13 14 15 16");
const MATCH_BITS = afterZeros(32, "1 1 1 1 2 2 3 3 4 4 5 7 8 9 10 11 12 13 14 15 16");
const LENGTH_BASES = basesOf(LENGTH_BITS, 0);
const MATCH_BASES = basesOf(MATCH_BITS, 3);

/** The tables of sequences, in the order of their modes, with the predefined distributions (3.1.1.3.2.2). */
const TABLES = [
  {
    maxSymbol: 35,
    maxAccuracy: 9,
    predefined: makeFse(
      [4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1, 1, 1, -1, -1, -1, -1],
      6,
    ),
  },
  {
    maxSymbol: 31,
    maxAccuracy: 8,
    predefined: makeFse(
      [1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1],
      5,
    ),
  },
  {
    maxSymbol: 52,
    maxAccuracy: 9,
    predefined: makeFse(
      [
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
      ],
      6,
    ),
  },
];
