// Reads shardtool datasets in browsers and in Node, without dependencies: the one module to import.

export { crc32c, maskCrc } from "./bytes.js";
export { AbsentColumn, Damage, NotFound, StoreError } from "./damage.js";
export { Dataset, Split, SplitColumn, open, verify } from "./dataset.js";
export { Feature, MalformedError, parseExample } from "./example.js";
export { DecodeError, arrayNames, decodeArray, decodePixels, detectFormat } from "./images.js";
export { Column } from "./index.js";
export { fingerprint, parseManifest } from "./manifest.js";
export { Order, Permutation, Refusal, draw, drawBelow, drawFloat, orderKey, packOrder } from "./order.js";
export { scheduledSource } from "./order-scheduled.js";
export {
  allSource,
  balancedShape,
  balancedSource,
  listSource,
  mixtureFingerprint,
  mixtureSource,
  weightedSource,
} from "./order-sources.js";
export { checkResume, formatState, parseState, runState } from "./order-states.js";
export { Schedule } from "./order-steps.js";
export { substitutePositions } from "./order-substitutes.js";
export { periodFirsts, stageTurns } from "./order-turns.js";
export { DataRecord } from "./record.js";
export { Shard } from "./shard.js";
export { FileSource, HttpSource } from "./sources.js";
export { xxh64 } from "./xxh64.js";
export { ZstdError, decompressZstd, readZstdHeader } from "./zstd.js";
