// Virtual shards, whose bytes lie in other files (format-spec.md, section "Data that stays where it is").

import { dataView, decodeUtf8 } from "./bytes.js";
import { Damage, NotFound, escapeText, isNotFound } from "./damage.js";
import { FileSource, HttpSource, readExactly } from "./sources.js";

/** The columns of a virtual shard. */
export const VIRTUAL_COLUMNS = ["virtual_files", "virtual_ranges", "virtual_bytes"];

/** How many bytes a range of a source file has in the column `virtual_ranges`. */
export const RANGE_BYTES = 32;

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/;
const URL_START = /^[A-Za-z][A-Za-z0-9+.-]*:\/\//;

/**
 * Tells what is wrong with the folder of the source files of a shard, or of the dataset that has it.
 *
 * @param {string} source the member `source` of the manifest
 * @returns {?string} what is wrong; null if nothing is
 */
export function wrongSource(source) {
  const isUrl = URL_START.test(source);
  const path = source.replace(URL_START, "");
  if (source === "" || new TextEncoder().encode(source).length > 4096) return "a source is empty or too long";
  if (CONTROL.test(source)) return "a source has a control character";
  if (!isUrl && !source.startsWith("/")) return "a source is neither an absolute path nor a URL";
  if (path.split("/").some((component) => component === "." || component === "..")) return "a source has . or ..";
  if (isUrl && (/^[^/]*@/.test(path) || /[?#]/.test(path))) return "a source has a user, a query or a fragment";
  return null;
}

/** Tells whether the name of a source file cannot leave the source's folder, unless a link does. */
function isPlainName(name) {
  return !CONTROL.test(name) && name.split("/").every((component) => !["", ".", ".."].includes(component));
}

/** Finds the source files of a dataset, and decides which of them are opened. */
export class SourceFiles {
  #found = new Map();
  #folders = null;

  /**
   * Creates the source files of a dataset. `Dataset` calls this.
   *
   * @param {import("./sources.js").Source} own the dataset's source
   * @param {object} options those of `open`
   */
  constructor(own, { sources = [], ...options } = {}) {
    this.own = own;
    this.allowed = sources.map(String);
    this.options = options;
  }

  /**
   * Finds a source file that may be opened.
   *
   * @param {?string} folder the member `source` of the shard; null for the dataset's folder
   * @param {string} name the file's name
   * @returns {Promise<{store: import("./sources.js").Source, path: string, size: number}>} where it lies, and its length
   * @throws {Damage} `ForeignSource` or `MissingSource`, without a file
   */
  find(folder, name) {
    const key = `${folder ?? ""}\n${name}`;
    if (!this.#found.has(key)) {
      const found = this.#find(folder, name);
      this.#found.set(key, found);
      found.catch(() => this.#found.delete(key));
    }
    return this.#found.get(key);
  }

  /**
   * Checks that a file may be opened. Whether it exists is not told.
   *
   * @param {string} folder the folder of the dataset that has it
   * @param {string} name path of the file in it
   * @throws {Damage} `ForeignSource`
   */
  async check(folder, name) {
    try {
      await this.#locate(folder, name);
    } catch (error) {
      if (error.name !== "MissingSource") throw error;
    }
  }

  async #find(folder, name) {
    const { store, path } = await this.#locate(folder, name);
    // Where reading again can give other bytes, `twice` asks for that.
    if (typeof store.forget === "function") this.forget = () => this.#forget();
    try {
      return { store, path, size: await store.size(path) };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new Damage("MissingSource", { file: name }, "there is no such file");
    }
  }

  async #forget() {
    const found = await Promise.allSettled(this.#found.values());
    this.#found.clear();
    for (const { value } of found) value?.store.forget?.(value.path);
  }

  async #locate(folder, name) {
    if (folder !== null && URL_START.test(folder)) return this.#locateUrl(folder, name);
    if (folder === null && !(this.own instanceof FileSource)) return { store: this.own, path: name };
    const { basename, dirname, join, sep } = await import("node:path");
    const path = folder === null ? await this.own.path(name) : join(folder, name);
    this.#folders ??= await this.#resolveFolders();
    const resolved = await resolveLinks(path);
    if (!this.#folders.some((one) => resolved.startsWith(one.endsWith(sep) ? one : one + sep))) refuse(path, folder);
    const { stat } = await import("node:fs/promises");
    const status = await stat(resolved).catch(() => null);
    if (!status?.isFile()) {
      throw new Damage("MissingSource", { file: path }, "it does not exist, or is not a regular file");
    }
    if (folder === null) return { store: this.own, path: name };
    return { store: new FileSource(dirname(resolved)), path: basename(resolved) };
  }

  /** Returns the folders in which source files may lie, without links. */
  async #resolveFolders() {
    const own = this.own instanceof FileSource ? [await this.own.path("")] : [];
    return Promise.all([...own, ...this.allowed.filter((one) => !URL_START.test(one))].map(resolveLinks));
  }

  #locateUrl(folder, name) {
    const store = /^https?:/i.test(folder) ? new HttpSource(folder, this.options) : null;
    const own = this.own instanceof HttpSource ? [this.own.base] : [];
    const prefixes = [...own, ...this.allowed.filter((one) => URL_START.test(one))];
    // As `fetch` understands them: "%2e%2e" and "\" can lead out of a prefix.
    const begins = (prefix) => new URL(store.base).href.startsWith(new URL(prefix.replace(/\/*$/, "/")).href);
    if (store === null || !prefixes.some(begins)) refuse(`${folder}/${name}`, folder);
    return { store, path: name };
  }
}

function refuse(file, folder) {
  const what = `it is not in the dataset's folder: allow it with the option sources: ["${folder ?? "its folder"}"]`;
  throw new Damage("ForeignSource", { file }, what);
}

/** Returns an absolute path without links, also of a file that does not exist. */
async function resolveLinks(path, links = 40) {
  const { readlink, realpath } = await import("node:fs/promises");
  const { basename, dirname, join, resolve } = await import("node:path");
  const whole = resolve(path);
  const found = await realpath(whole).catch(() => null);
  if (found !== null || dirname(whole) === whole) return found ?? whole;
  const parent = await resolveLinks(dirname(whole), links);
  const target = links > 0 ? await readlink(join(parent, basename(whole))).catch(() => null) : null;
  return target === null ? join(parent, basename(whole)) : resolveLinks(resolve(parent, target), links - 1);
}

/** Reads the files of a shard that lies in another dataset, if they may be opened. */
export class OtherDataset {
  /**
   * Creates a source of bytes.
   *
   * @param {SourceFiles} files decides which files are opened
   * @param {import("./manifest.js").ManifestShard} entry the line of the shard
   */
  constructor(files, entry) {
    this.files = files;
    this.entry = entry;
  }

  /** Returns the length of a file in bytes. */
  async size(path) {
    return (await this.#find(path)).size;
  }

  /** Reads the bytes of [start, end). */
  async read(path, start, end) {
    const found = await this.#find(path);
    return readExactly(found.store, found.path, start, end);
  }

  /** Makes the next request of each file bypass caches. */
  forget() {
    return this.files.forget?.();
  }

  async #find(path) {
    const { file, source } = this.entry;
    try {
      // Neither is opened if one of the two is refused.
      for (const one of [file, `_index/${file}.index`]) await this.files.check(source, one);
      return await this.files.find(source, path);
    } catch (error) {
      if (error.name === "MissingSource") throw new NotFound(path);
      if (error.name === "ForeignSource") throw new Damage(error.name, { file }, error.what);
      throw error;
    }
  }
}

/** Makes the frames of a virtual shard. */
export class VirtualShard {
  /**
   * Creates a virtual shard.
   *
   * @param {import("./shard.js").Shard} shard the shard whose index describes it
   */
  constructor(shard) {
    this.shard = shard;
  }

  /**
   * Reads the frame of a record, without checking it.
   *
   * @param {number} row number of the record in the shard
   * @returns {Promise<Uint8Array>} as many bytes as the offsets in the index say
   * @throws {Damage} of a column; `IndexMismatch`, `ForeignSource`, `MissingSource` or `SourceLength`
   */
  async frame(row) {
    const parts = await this.#parts(row);
    for (const { name } of parts) {
      if (name === undefined || isPlainName(name)) continue;
      throw this.#damage("ForeignSource", row, `${escapeText(name)} is no plain path`);
    }
    const pieces = [];
    for (const part of parts) pieces.push(part.bytes ?? (await this.#read(row, part)));
    const frame = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
    let at = 0;
    for (const piece of pieces) {
      frame.set(piece, at);
      at += piece.length;
    }
    return frame;
  }

  /** Makes a damage of a record. */
  #damage(name, record, what, { expected = null, found = null } = {}) {
    const file = name === "IndexMismatch" ? this.shard.indexFile : this.shard.file;
    return new Damage(name, { file, record, expected, found }, what);
  }

  /** Returns the parts of a frame in order: bytes, and ranges of source files. */
  async #parts(row) {
    const { shard } = this;
    const names = ["record_offset", ...VIRTUAL_COLUMNS.slice(1)];
    const [offsets, ranges, others] = await Promise.all(names.map((name) => shard.column(name)));
    const end = row + 1 < offsets.length ? offsets.get(row + 1) : shard.entry.bytes;
    const expected = end - offsets.get(row);
    const other = others.get(row);
    const entries = dataView(ranges.get(row));
    const parts = [];
    let at = 0;
    let sum = BigInt(other.length);
    for (let i = 0; i < entries.byteLength; i += RANGE_BYTES) {
      const [length, before, reserved] = [16, 24, 28].map((field) => entries.getUint32(i + field, true));
      if (reserved !== 0) throw this.#damage("IndexMismatch", row, "a reserved field of a range is not 0");
      if (length === 0) throw this.#damage("IndexMismatch", row, "a range is empty");
      if (before > other.length - at) {
        throw this.#damage("IndexMismatch", row, "a range lies after more bytes than there are");
      }
      const file = await this.#file(row, entries.getBigUint64(i, true));
      const offset = entries.getBigUint64(i + 8, true);
      if (offset + BigInt(length) > file.bytes) {
        throw this.#damage("IndexMismatch", row, "a range leaves its file", { expected: file.bytes, found: offset });
      }
      parts.push({ bytes: other.subarray(at, at + before) }, { name: file.name, size: file.bytes, offset, length });
      at += before;
      sum += BigInt(length);
    }
    if (sum !== expected) {
      throw this.#damage("IndexMismatch", row, "the parts are not as long as the frame", { expected, found: sum });
    }
    return [...parts, { bytes: other.subarray(at) }];
  }

  /** Returns name and length of the file whose entry begins at an offset in the column `virtual_files`. */
  async #file(row, offset) {
    const { values } = await this.shard.column("virtual_files");
    const leaves = () => this.#damage("IndexMismatch", row, "the entry of a file leaves the column", { found: offset });
    if (offset + 12n > BigInt(values.length)) throw leaves();
    const at = Number(offset);
    const view = dataView(values.subarray(at, at + 12));
    const end = at + 12 + view.getUint32(8, true);
    if (end > values.length) throw leaves();
    const name = decodeUtf8(values.subarray(at + 12, end));
    if (name === null) throw this.#damage("IndexMismatch", row, "the name of a file is not UTF-8");
    return { name, bytes: view.getBigUint64(0, true) };
  }

  /** Reads a range of a source file. */
  async #read(row, { name, size, offset, length }) {
    const { dataset, entry } = this.shard;
    let file;
    try {
      file = await dataset.sourceFiles.find(entry.source, name);
    } catch (error) {
      if (!(error instanceof Damage)) throw error;
      throw this.#damage(error.name, row, error.message);
    }
    if (BigInt(file.size) !== size) {
      const values = { expected: size, found: file.size };
      throw this.#damage("SourceLength", row, `${escapeText(name)} has another length`, values);
    }
    return readExactly(file.store, file.path, Number(offset), Number(offset) + length);
  }
}
