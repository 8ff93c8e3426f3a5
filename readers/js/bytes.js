// Checksums and views of bytes.

/** True if typed arrays of this machine have the byte order of the format. */
const LITTLE_ENDIAN = new Uint8Array(new Uint32Array([1]).buffer)[0] === 1;

const CRC_TABLES = crcTables(0x82f63b78);

/** Makes the eight tables of "slicing by eight" for a reflected polynomial. */
function crcTables(polynomial) {
  const tables = new Int32Array(8 * 256);
  for (let i = 0; i < 256; i++) {
    let crc = i;
    for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ polynomial : crc >>> 1;
    tables[i] = crc;
  }
  for (let i = 256; i < tables.length; i++) {
    tables[i] = (tables[i - 256] >>> 8) ^ tables[tables[i - 256] & 0xff];
  }
  return tables;
}

/**
 * Computes the CRC32C (Castagnoli), unmasked.
 *
 * @param {Uint8Array} bytes the bytes
 * @param {number} [crc] CRC32C of the bytes that precede them, as u32
 * @returns {number} CRC32C of both, as u32
 */
export function crc32c(bytes, crc = 0) {
  const t = CRC_TABLES;
  let c = ~crc;
  let i = 0;
  for (const end = bytes.length - 7; i < end; i += 8) {
    const low = c ^ (bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24));
    c =
      t[0x700 | (low & 0xff)] ^
      t[0x600 | ((low >>> 8) & 0xff)] ^
      t[0x500 | ((low >>> 16) & 0xff)] ^
      t[0x400 | (low >>> 24)] ^
      t[0x300 | bytes[i + 4]] ^
      t[0x200 | bytes[i + 5]] ^
      t[0x100 | bytes[i + 6]] ^
      t[bytes[i + 7]];
  }
  for (; i < bytes.length; i++) c = (c >>> 8) ^ t[(c ^ bytes[i]) & 0xff];
  return ~c >>> 0;
}

/**
 * Masks a CRC as TFRecord frames store it.
 *
 * @param {number} crc CRC32C, as u32
 * @returns {number} masked CRC, as u32
 */
export function maskCrc(crc) {
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

/**
 * Formats a u32 as eight lower-case hex digits.
 *
 * @param {number} value the number
 * @returns {string} eight digits
 */
export function hex32(value) {
  return value.toString(16).padStart(8, "0");
}

/**
 * Formats bytes as lower-case hex digits.
 *
 * @param {Uint8Array} bytes the bytes
 * @returns {string} two digits per byte
 */
export function hex(bytes) {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/**
 * Compares two byte strings.
 *
 * @param {Uint8Array} a one
 * @param {Uint8Array} b the other
 * @returns {boolean} true if they are equal
 */
export function sameBytes(a, b) {
  if (a.length !== b.length) return false;
  for (let i = 0; i < a.length; i++) if (a[i] !== b[i]) return false;
  return true;
}

/**
 * Compares two strings in byte order of their UTF-8.
 *
 * @param {string} a one
 * @param {string} b the other
 * @returns {number} negative, 0 or positive
 */
export function compareNames(a, b) {
  // UTF-8 orders as code points do. UTF-16 differs only where a surrogate meets a unit from U+E000.
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x === y) continue;
    const [p, q] = [x >>> 11 === 27 ? x + 0x10000 : x, y >>> 11 === 27 ? y + 0x10000 : y];
    return p - q;
  }
  return a.length - b.length;
}

/**
 * Decodes UTF-8 strictly.
 *
 * @param {Uint8Array} bytes the bytes
 * @returns {?string} the text, with a byte order mark if there is one; null if the bytes are not UTF-8
 */
export function decodeUtf8(bytes) {
  try {
    return STRICT_UTF8.decode(bytes);
  } catch (error) {
    if (error instanceof TypeError) return null;
    throw error;
  }
}

const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/**
 * Views little-endian bytes as a typed array.
 *
 * @param {Uint8Array} bytes the bytes; their number is a multiple of the element's size
 * @param {Function} Type constructor, such as `Float32Array`
 * @returns {ArrayBufferView} a view without a copy if the bytes are aligned, otherwise a copy
 */
export function typedView(bytes, Type) {
  const size = Type.BYTES_PER_ELEMENT;
  if (LITTLE_ENDIAN || size === 1) {
    const aligned = bytes.byteOffset % size === 0 ? bytes : bytes.slice();
    return new Type(aligned.buffer, aligned.byteOffset, aligned.length / size);
  }
  const swapped = bytes.slice();
  for (let i = 0; i < swapped.length; i += size) swapped.subarray(i, i + size).reverse();
  return new Type(swapped.buffer, 0, swapped.length / size);
}

/**
 * Views bytes through a DataView.
 *
 * @param {Uint8Array} bytes the bytes
 * @returns {DataView} a view of the same bytes
 */
export function dataView(bytes) {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}

/** The first 32 bits of the fractional parts of the cube roots of the first 64 primes (FIPS 180-4, 4.2.2). */
const SHA256_K = new Int32Array(64);
/** The same of the square roots of the first eight primes (FIPS 180-4, 5.3.3). */
const SHA256_START = new Int32Array(8);
for (let prime = 2, n = 0; n < 64; prime++) {
  let divisor = 2;
  while (divisor * divisor <= prime && prime % divisor) divisor++;
  if (divisor * divisor <= prime) continue;
  SHA256_K[n] = rootFraction(BigInt(prime), 3n);
  if (n < 8) SHA256_START[n] = rootFraction(BigInt(prime), 2n);
  n++;
}

/** Returns the first 32 bits of the fraction of a root, computed exactly. */
function rootFraction(value, degree) {
  const target = value << (32n * degree);
  let low = 0n;
  for (let bit = 1n << 40n; bit > 0n; bit >>= 1n) if ((low + bit) ** degree <= target) low += bit;
  return Number(BigInt.asIntN(32, low));
}

/** Computes a SHA-256 (FIPS 180-4) of bytes that arrive in parts. */
export class Sha256 {
  #state = SHA256_START.slice();
  #block = new Uint8Array(64);
  #words = new Int32Array(64);
  #filled = 0;
  #total = 0;

  /**
   * Adds bytes.
   *
   * @param {Uint8Array} bytes the next bytes
   */
  update(bytes) {
    this.#total += bytes.length;
    let at = 0;
    if (this.#filled > 0) {
      at = Math.min(64 - this.#filled, bytes.length);
      this.#block.set(bytes.subarray(0, at), this.#filled);
      this.#filled += at;
      if (this.#filled < 64) return;
      this.#compress(this.#block, 0);
    }
    for (; at + 64 <= bytes.length; at += 64) this.#compress(bytes, at);
    this.#block.set(bytes.subarray(at));
    this.#filled = bytes.length - at;
  }

  /**
   * Ends the computation.
   *
   * @returns {string} 64 lower-case hex digits
   */
  digest() {
    const bits = BigInt(this.#total) * 8n;
    const pad = new Uint8Array((this.#filled < 56 ? 64 : 128) - this.#filled);
    pad[0] = 0x80;
    dataView(pad).setBigUint64(pad.length - 8, bits);
    this.update(pad);
    return Array.from(this.#state, (word) => hex32(word >>> 0)).join("");
  }

  /** Adds the block of 64 bytes at an offset to the state. */
  #compress(bytes, offset) {
    const w = this.#words;
    for (let i = 0, at = offset; i < 16; i++, at += 4) {
      w[i] = (bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3];
    }
    for (let i = 16; i < 64; i++) {
      const x = w[i - 15];
      const y = w[i - 2];
      const s0 = rotate(x, 7) ^ rotate(x, 18) ^ (x >>> 3);
      const s1 = rotate(y, 17) ^ rotate(y, 19) ^ (y >>> 10);
      w[i] = (w[i - 16] + s0 + w[i - 7] + s1) | 0;
    }
    const state = this.#state;
    let a = state[0];
    let b = state[1];
    let c = state[2];
    let d = state[3];
    let e = state[4];
    let f = state[5];
    let g = state[6];
    let h = state[7];
    for (let i = 0; i < 64; i++) {
      const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + SHA256_K[i] + w[i]) | 0;
      const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      h = g;
      g = f;
      f = e;
      e = (d + t1) | 0;
      d = c;
      c = b;
      b = a;
      a = (t1 + t2) | 0;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
    state[5] += f;
    state[6] += g;
    state[7] += h;
  }
}

function rotate(word, bits) {
  return (word >>> bits) | (word << (32 - bits));
}
