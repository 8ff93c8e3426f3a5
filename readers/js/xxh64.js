// XXH64, the checksum of zstd frames (xxHash fast digest algorithm, version 0.1.1).

import { dataView } from "./bytes.js";

const P1 = 0x9e3779b185ebca87n;
const P2 = 0xc2b2ae3d27d4eb4fn;
const P3 = 0x165667b19e3779f9n;
const P4 = 0x85ebca77c2b2ae63n;
const P5 = 0x27d4eb2f165667c5n;

const mask64 = (value) => BigInt.asUintN(64, value);
const rotate64 = (value, bits) => mask64(value << bits) | (value >> (64n - bits));

/**
 * Computes the XXH64 of bytes with seed 0.
 *
 * @param {Uint8Array} bytes the bytes
 * @returns {bigint} the hash, as u64
 */
export function xxh64(bytes) {
  const round = (lane, input) => mask64(rotate64(mask64(lane + input * P2), 31n) * P1);
  const lanes = new Lanes([mask64(P1 + P2), P2, 0n, mask64(-P1)]);
  const striped = bytes.length - (bytes.length % 32);
  lanes.update(bytes, striped);
  let hash = P5;
  if (striped > 0) {
    const [a, b, c, d] = lanes.values();
    hash = mask64(rotate64(a, 1n) + rotate64(b, 7n) + rotate64(c, 12n) + rotate64(d, 18n));
    for (const lane of [a, b, c, d]) hash = mask64((hash ^ round(0n, lane)) * P1 + P4);
  }
  hash = mask64(hash + BigInt(bytes.length));
  const view = dataView(bytes);
  let at = striped;
  for (; at + 8 <= bytes.length; at += 8) {
    hash = mask64(rotate64(hash ^ round(0n, view.getBigUint64(at, true)), 27n) * P1 + P4);
  }
  if (at + 4 <= bytes.length) {
    hash = mask64(rotate64(hash ^ mask64(BigInt(view.getUint32(at, true)) * P1), 23n) * P2 + P3);
    at += 4;
  }
  for (; at < bytes.length; at++) hash = mask64(rotate64(hash ^ mask64(BigInt(bytes[at]) * P5), 11n) * P1);
  hash = mask64((hash ^ (hash >> 33n)) * P2);
  hash = mask64((hash ^ (hash >> 29n)) * P3);
  return hash ^ (hash >> 32n);
}

/** The four lanes of XXH64 as halves of 32 bits, since products of BigInt are slow. */
class Lanes {
  constructor(values) {
    this.halves = new Int32Array(8);
    values.forEach((value, i) => {
      this.halves[2 * i] = Number(BigInt.asIntN(32, value));
      this.halves[2 * i + 1] = Number(BigInt.asIntN(32, value >> 32n));
    });
  }

  values() {
    return [0, 2, 4, 6].map((i) => (BigInt(this.halves[i + 1] >>> 0) << 32n) | BigInt(this.halves[i] >>> 0));
  }

  /** Adds the first `length` bytes, a multiple of 32: lane = rotate(lane + input × P2, 31) × P1. */
  update(bytes, length) {
    const halves = this.halves;
    for (let at = 0; at < length; at += 8) {
      const i = (at >> 2) & 6;
      const low = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
      const high = bytes[at + 4] | (bytes[at + 5] << 8) | (bytes[at + 6] << 16) | (bytes[at + 7] << 24);
      let l = Math.imul(low, 0x27d4eb4f);
      let h = (highProduct(low, 0x27d4eb4f) + Math.imul(low, 0xc2b2ae3d) + Math.imul(high, 0x27d4eb4f)) | 0;
      const sum = (l >>> 0) + (halves[i] >>> 0);
      h = (h + halves[i + 1] + (sum > 0xffffffff ? 1 : 0)) | 0;
      l = sum | 0;
      const rotated = (l << 31) | (h >>> 1);
      h = (h << 31) | (l >>> 1);
      l = rotated;
      halves[i] = Math.imul(l, 0x85ebca87);
      halves[i + 1] = (highProduct(l, 0x85ebca87) + Math.imul(l, 0x9e3779b1) + Math.imul(h, 0x85ebca87)) | 0;
    }
  }
}

/** Returns the upper 32 bits of the product of two u32. */
function highProduct(a, b) {
  const [al, ah, bl, bh] = [a & 0xffff, a >>> 16, b & 0xffff, b >>> 16];
  const middle = ah * bl + ((al * bl) >>> 16);
  return (ah * bh + Math.floor(middle / 65536) + ((((middle & 0xffff) + al * bh) / 65536) >>> 0)) | 0;
}
