// The manifest, dataset.json: its checks in the order of format-spec.md, section "Manifest", and fingerprints.

import { compareNames, crc32c, decodeUtf8, hex32 } from "./bytes.js";
import { Damage } from "./damage.js";
import { wrongSource } from "./foreign.js";
import { JsonError, JsonNumber, JsonObject, parseJson } from "./json.js";

/** Name of the manifest in a dataset's folder. */
export const MANIFEST = "dataset.json";

/** What this reader knows of the values of `requires`. */
const KNOWN_REQUIREMENTS = ["foreign", "sequence-example"];

const U64 = [0n, (1n << 64n) - 1n];
const I64 = [-(1n << 63n), (1n << 63n) - 1n];

/**
 * @typedef {object} ManifestShard
 * @property {string} file plain file name
 * @property {bigint} records records in the shard
 * @property {bigint} bytes length of the shard in bytes
 * @property {number} crc32c CRC32C of the shard, as u32
 * @property {bigint} indexBytes length of the index in bytes
 * @property {number} indexCrc32c CRC32C of the index, as u32
 * @property {?string} sha256 64 hex digits, or null
 * @property {boolean} isVirtual whether its bytes lie in source files
 * @property {?string} source the folder of the source files; null for the dataset's
 */

/**
 * @typedef {object} Manifest
 * @property {string} version such as `"1.0"`
 * @property {string[]} requires what a reader must know
 * @property {?string} createdBy program and version
 * @property {?string} image feature that holds the image
 * @property {?string} label feature that holds the class
 * @property {bigint} labelOffset class id = stored label − labelOffset
 * @property {Array<{name: string, type: "bytes"|"float"|"int64", logical: ?("float64"|"uint64")}>} features in byte order; empty if records are opaque
 * @property {string[]} classes class names by class id
 * @property {Array<{name: string, records: bigint, shards: ManifestShard[]}>} splits in byte order
 * @property {Map<string, string>} private members that begin with `x-`
 */

/**
 * Parses and checks a manifest.
 *
 * @param {Uint8Array} bytes the whole file
 * @returns {Manifest} the manifest
 * @throws {Damage} `ManifestCrc`, `ManifestSyntax`, `ManifestVersion`, `ManifestRequires` or `ManifestValue`
 */
export function parseManifest(bytes) {
  checkCrc(bytes);
  const top = parseTop(bytes);
  checkVersion(top);
  const manifest = checkTypes(top);
  checkValues(manifest);
  return manifest;
}

/**
 * Computes the fingerprint of a split.
 *
 * @param {Array<{records: bigint, bytes: bigint, crc32c: number}>} shards the split's shards, in order
 * @returns {string} eight lower-case hex digits
 */
export function fingerprint(shards) {
  const entry = new DataView(new ArrayBuffer(20));
  let crc = 0;
  for (const shard of shards) {
    entry.setBigUint64(0, shard.records, true);
    entry.setBigUint64(8, shard.bytes, true);
    entry.setUint32(16, shard.crc32c, true);
    crc = crc32c(new Uint8Array(entry.buffer), crc);
  }
  return hex32(crc);
}

function damage(name, what, { expected = null, found = null, offset = null } = {}) {
  return new Damage(name, { file: MANIFEST, expected, found, offset }, what);
}

/** Step 1: the last two lines, and the CRC with zeros in its place. */
function checkCrc(bytes) {
  const tail = String.fromCharCode(...bytes.subarray(-25));
  const line = /^ {2}"crc32c": "([0-9a-f]{8})"\n\}\n$/.exec(tail);
  const start = bytes.length - tail.length;
  if (line === null || (start > 0 && bytes[start - 1] !== 10)) {
    throw damage("ManifestCrc", "the file does not end with its CRC", {
      expected: '  "crc32c": "hhhhhhhh", a line } and LF',
      found: JSON.stringify(tail),
    });
  }
  const digits = bytes.length - 12;
  const zeroed = crc32c(new TextEncoder().encode('00000000"\n}\n'), crc32c(bytes.subarray(0, digits)));
  if (hex32(zeroed) !== line[1]) {
    throw damage("ManifestCrc", "the CRC of the file does not match", {
      expected: line[1],
      found: hex32(zeroed),
      offset: digits,
    });
  }
}

/** Step 2: JSON, and the types of the members that decide whether the rest can be read. */
function parseTop(bytes) {
  const text = decodeUtf8(bytes);
  if (text === null) throw damage("ManifestSyntax", "the file is not UTF-8");
  let top;
  try {
    top = parseJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    const offset = new TextEncoder().encode(text.slice(0, error.at)).length;
    throw damage("ManifestSyntax", `not JSON: ${error.message}`, { offset });
  }
  if (!(top instanceof JsonObject)) throw damage("ManifestSyntax", "not an object");
  for (const name of ["format", "version"]) member(top, name, isString, "a string", "the manifest", true);
  member(top, "requires", isStrings, "an array of strings", "the manifest", true);
  return top;
}

/** Steps 3 and 4: format, major version, requirements. */
function checkVersion(top) {
  const [format, version] = [top.all("format")[0], top.all("version")[0]];
  if (format !== "shardtool") {
    throw damage("ManifestVersion", "another format", { expected: "shardtool", found: format ?? "no format" });
  }
  if (version === undefined || !/^1\.(0|[1-9][0-9]*)$/.test(version)) {
    throw damage("ManifestVersion", "another version", { expected: "1.x", found: version ?? "no version" });
  }
  for (const name of top.all("requires")[0] ?? []) {
    if (!KNOWN_REQUIREMENTS.includes(name)) {
      throw damage("ManifestRequires", "the dataset requires what this reader does not know", {
        expected: KNOWN_REQUIREMENTS.join(", "),
        found: name,
      });
    }
  }
}

/** Step 5: presence, repetition and types of all members. */
function checkTypes(top) {
  const here = "the manifest";
  const optional = (name, test, type) => member(top, name, test, type, here, true);
  const manifest = {
    version: top.all("version")[0],
    requires: top.all("requires")[0] ?? [],
    createdBy: optional("created_by", isString, "a string") ?? null,
    image: optional("image", isStringOrNull, "a string or null") ?? null,
    label: optional("label", isStringOrNull, "a string or null") ?? null,
    labelOffset: integer(top, "label_offset", I64, here),
    features: objects(top, "features", here).map((feature, i) => {
      const isType = (value) => ["bytes", "float", "int64"].includes(value);
      const name = member(feature, "name", isString, "a string", `feature ${i}`);
      const type = member(feature, "type", isType, "bytes, float or int64", `feature ${i}`);
      const named = member(feature, "logical", isString, "a string", `feature ${i}`, true);
      // Logical types of later versions are ignored.
      const logical = ["float64", "uint64"].includes(named) ? named : null;
      if (logical !== null && type !== "bytes") {
        throw damage("ManifestSyntax", "a logical type of a feature that is not of type bytes", { found: type });
      }
      return { name, type, logical };
    }),
    classes: member(top, "classes", isStrings, "an array of strings", here),
    splits: objects(top, "splits", here).map((split, i) => ({
      name: member(split, "name", isString, "a string", `split ${i}`),
      shards: objects(split, "shards", `split ${i}`).map((shard, k) => {
        const isForeign = top.all("requires")[0]?.includes("foreign");
        return checkShard(shard, `shard ${k} of split ${i}`, isForeign);
      }),
    })),
    private: new Map(),
  };
  member(top, "crc32c", isCrc, "eight hex digits", here);
  for (const [name, value] of top.members) {
    if (!name.startsWith("x-")) continue;
    if (manifest.private.has(name)) throw damage("ManifestSyntax", `member ${name} occurs twice`);
    if (!isString(value)) throw damage("ManifestSyntax", `member ${name} is not a string`);
    manifest.private.set(name, value);
  }
  return manifest;
}

function checkShard(shard, here, isForeign) {
  const isBoolean = (value) => typeof value === "boolean";
  const virtual = isForeign ? member(shard, "virtual", isBoolean, "a boolean", here, true) : undefined;
  const source = isForeign ? member(shard, "source", isString, "a string", here, true) : undefined;
  const isSum = (value) => isString(value) && /^[0-9a-f]{64}$/.test(value);
  return {
    file: member(shard, "file", isString, "a string", here),
    records: integer(shard, "records", U64, here),
    bytes: integer(shard, "bytes", U64, here),
    crc32c: parseInt(member(shard, "crc32c", isCrc, "eight hex digits", here), 16),
    indexBytes: integer(shard, "index_bytes", U64, here),
    indexCrc32c: parseInt(member(shard, "index_crc32c", isCrc, "eight hex digits", here), 16),
    sha256: member(shard, "sha256", isSum, "64 hex digits", here, true) ?? null,
    isVirtual: virtual ?? false,
    isFalse: virtual === false,
    source: source ?? null,
  };
}

/** Returns the only value of a member; undefined if it is absent and optional. */
function member(object, name, test, type, here, optional = false) {
  const values = object.all(name);
  if (values.length === 0 && optional) return undefined;
  if (values.length !== 1) {
    const what = values.length === 0 ? "is absent" : "occurs twice";
    throw damage("ManifestSyntax", `member ${name} of ${here} ${what}`);
  }
  if (!test(values[0]))
    throw damage("ManifestSyntax", `member ${name} of ${here} has another type`, { expected: type });
  return values[0];
}

function integer(object, name, [min, max], here) {
  const test = (value) => value instanceof JsonNumber && value.integer(min, max) !== null;
  return member(object, name, test, `an integer from ${min} to ${max}`, here).integer(min, max);
}

function objects(object, name, here) {
  const test = (value) => Array.isArray(value) && value.every((item) => item instanceof JsonObject);
  return member(object, name, test, "an array of objects", here);
}

function isString(value) {
  return typeof value === "string";
}

function isStringOrNull(value) {
  return value === null || isString(value);
}

function isStrings(value) {
  return Array.isArray(value) && value.every(isString);
}

function isCrc(value) {
  return isString(value) && /^[0-9a-f]{8}$/.test(value);
}

/** Step 6: values. All violations have the same name. */
function checkValues(manifest) {
  const refuse = (what, found) => {
    throw damage("ManifestValue", what, { found });
  };
  for (const name of manifest.requires) if (!/^[a-z0-9-]{1,100}$/.test(name)) refuse("requires has another form", name);
  checkAscending(manifest.requires, "requires", refuse);
  const types = new Map(manifest.features.map((feature) => [feature.name, feature.type]));
  for (const [name, type] of [
    ["image", "bytes"],
    ["label", "int64"],
  ]) {
    const feature = manifest[name];
    if (feature !== null && types.get(feature) !== type) refuse(`${name} is not a feature of type ${type}`, feature);
  }
  checkAscending(
    manifest.features.map((feature) => feature.name),
    "features",
    refuse,
  );
  const classes = new Set();
  for (const name of manifest.classes)
    if (classes.size === classes.add(name).size) refuse("a class occurs twice", name);
  checkAscending(
    manifest.splits.map((split) => split.name),
    "splits",
    refuse,
  );
  const files = new Set();
  for (const split of manifest.splits) {
    if (!/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/.test(split.name) || isDevice(split.name)) {
      refuse("the name of a split is not allowed", split.name);
    }
    split.records = split.shards.reduce((sum, shard) => sum + shard.records, 0n);
    if (split.records >= 1n << 63n) refuse(`split ${split.name} has 2^63 records or more`, split.records);
    for (const { file, isFalse, source } of split.shards) {
      if (isFalse) refuse("virtual is false", file);
      const wrong = source === null ? null : wrongSource(source);
      if (wrong !== null) refuse(wrong, source);
      if (!isFileName(file)) refuse("the name of a shard is not allowed", file);
      if (files.has(file)) refuse("a shard occurs twice", file);
      files.add(file);
    }
  }
}

function checkAscending(names, what, refuse) {
  for (let i = 1; i < names.length; i++) {
    if (compareNames(names[i - 1], names[i]) >= 0)
      refuse(`${what} are not in byte order, or one occurs twice`, names[i]);
  }
}

/** Tells whether a name is a plain file name inside the dataset's folder on every system. */
function isFileName(name) {
  if (name === "" || /[/\\:\u0000-\u001f\u007f-\u009f]/.test(name)) return false;
  if (name.startsWith(".") || /[. ]$/.test(name) || isDevice(name)) return false;
  const lower = name.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
  if (lower === MANIFEST || lower === "_index") return false;
  return !(lower.startsWith("rejected-") && lower.endsWith(".jsonl"));
}

/** Tells whether Windows takes a file of this name for a device. */
function isDevice(name) {
  const stem = name
    .split(".", 1)[0]
    .replace(/ +$/, "")
    .replace(/[a-z]/g, (letter) => letter.toUpperCase());
  return /^(CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(COM|LPT)[0-9¹²³])$/.test(stem);
}
