// Frames of TFRecord files: their checks in the order of format-spec.md, section "Frame".

import { crc32c, dataView, hex32, maskCrc } from "./bytes.js";

/** Bytes before the data of a frame: its length, and the CRC of the length. */
export const FRAME_HEADER = 12;
/** Bytes of a frame in addition to its data. */
export const FRAME_OVERHEAD = 16;

/**
 * Checks the header of a frame.
 *
 * @param {Uint8Array} bytes the bytes from the frame's offset: at least 12, or all that remain
 * @param {number} remaining bytes from the frame's offset to the end of the shard
 * @returns {{length: number}|{name: string, expected: *, found: *, what: string}} the length of the data in bytes, or
 *   the damage: `TruncatedFrame` or `LengthCrc`
 */
export function checkFrameHeader(bytes, remaining) {
  if (remaining < FRAME_HEADER) {
    const what = "the file ends inside the header of the frame";
    return { name: "TruncatedFrame", what, expected: FRAME_HEADER, found: remaining };
  }
  const view = dataView(bytes);
  const stored = view.getUint32(8, true);
  const crc = maskCrc(crc32c(bytes.subarray(0, 8)));
  if (crc !== stored) {
    const what = "the CRC of the frame's length does not match";
    return { name: "LengthCrc", what, expected: hex32(stored), found: hex32(crc) };
  }
  const length = view.getBigUint64(0, true);
  if (length + BigInt(FRAME_OVERHEAD) > BigInt(remaining)) {
    const what = "the frame extends past the end of the file";
    return { name: "TruncatedFrame", what, expected: length + BigInt(FRAME_OVERHEAD), found: remaining };
  }
  return { length: Number(length) };
}

/**
 * Checks the data of a frame.
 *
 * @param {Uint8Array} bytes the whole frame
 * @returns {null|{name: string, expected: string, found: string, what: string}} null, or the damage: `DataCrc`
 */
export function checkFrameData(bytes) {
  const end = bytes.length - 4;
  const stored = dataView(bytes).getUint32(end, true);
  const crc = maskCrc(crc32c(bytes.subarray(FRAME_HEADER, end)));
  if (crc === stored) return null;
  return { name: "DataCrc", what: "the CRC of the data does not match", expected: hex32(stored), found: hex32(crc) };
}

/**
 * Tells whether a shard whose first length CRC does not match is a compressed TFRecord file.
 *
 * @param {Uint8Array} bytes the first 12 bytes of the shard
 * @returns {boolean} true if they are those of gzip or zlib, and not of a frame
 */
export function isCompressed(bytes) {
  if (bytes.length < FRAME_HEADER || !("name" in checkFrameHeader(bytes.subarray(0, FRAME_HEADER), FRAME_HEADER)))
    return false;
  if (checkFrameHeader(bytes, FRAME_HEADER).name !== "LengthCrc") return false;
  if (bytes[0] === 0x1f) return bytes[1] === 0x8b;
  return bytes[0] === 0x78 && [0x01, 0x5e, 0x9c, 0xda].includes(bytes[1]);
}
