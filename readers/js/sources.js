// Sources of bytes: a folder in Node, an HTTP server, or what a caller provides.
//
// A source is an object with `read(path, start, end)` and `size(path)`, both async; paths are relative to the dataset's
// folder, with "/". Optional members: `head(path, length)`, which returns the first bytes and the file's size in one
// request; `readAll(path)`; `forget(path)`, which drops cached bytes and exists where reading again can give others.

import { NotFound, StoreError, isNotFound } from "./damage.js";

/**
 * @typedef {object} Source
 * @property {function(string, number, number): Promise<Uint8Array>} read returns the bytes of [start, end)
 * @property {function(string): Promise<number>} size returns the file's length in bytes; throws an error with `code`
 *   `"ENOENT"` if there is no such file
 */

/**
 * Makes a source from what `open` accepts.
 *
 * @param {string|URL|Source} where a folder, the URL of a folder, or a source
 * @param {object} [options] see {@link FileSource} and {@link HttpSource}
 * @returns {Source} the source
 */
export function toSource(where, options = {}) {
  if (typeof where?.read === "function" && typeof where?.size === "function") return where;
  const text = String(where);
  if (/^https?:\/\//i.test(text)) return new HttpSource(text, options);
  return new FileSource(where, options);
}

/**
 * Reads the first bytes of a file.
 *
 * @param {Source} source the source
 * @param {string} path path relative to the dataset's folder
 * @param {number} length how many bytes at most
 * @returns {Promise<{bytes: Uint8Array, size: number}>} the bytes, and the length of the file in bytes
 * @throws {NotFound|StoreError}
 */
export async function readHead(source, path, length) {
  if (typeof source.head === "function") return source.head(path, length);
  const size = await source.size(path);
  return { bytes: await readExactly(source, path, 0, Math.min(length, size)), size };
}

/**
 * Reads a whole file.
 *
 * @param {Source} source the source
 * @param {string} path path relative to the dataset's folder
 * @returns {Promise<Uint8Array>} its bytes
 * @throws {NotFound|StoreError}
 */
export async function readWhole(source, path) {
  if (typeof source.readAll === "function") return source.readAll(path);
  return readExactly(source, path, 0, await source.size(path));
}

/**
 * Reads a range of a file.
 *
 * @param {Source} source the source
 * @param {string} path path relative to the dataset's folder
 * @param {number} start offset of the first byte
 * @param {number} end offset after the last byte
 * @returns {Promise<Uint8Array>} exactly `end - start` bytes
 * @throws {NotFound|StoreError} `StoreError` if the source returns another number of bytes
 */
export async function readExactly(source, path, start, end) {
  if (start === end) return new Uint8Array(0);
  const bytes = await source.read(path, start, end);
  if (!(bytes instanceof Uint8Array) || bytes.length !== end - start) {
    throw new StoreError(path, `asked for ${end - start} bytes at ${start}, got ${bytes?.length}`);
  }
  return bytes;
}

/** Reads a folder of the local file system, in Node. */
export class FileSource {
  /**
   * Creates a source.
   *
   * @param {string|URL} folder path or `file:` URL of the dataset's folder
   * @param {object} [options]
   * @param {boolean} [options.followLinks] false refuses symbolic links in the folder; true by default
   */
  constructor(folder, { followLinks = true } = {}) {
    this.folder = folder;
    this.followLinks = followLinks;
  }

  /** Returns the length of a file in bytes. */
  async size(path) {
    return (await this.#stat(path)).size;
  }

  /** Reads the bytes of [start, end). */
  async read(path, start, end) {
    await this.#stat(path);
    const { open } = await import("node:fs/promises");
    const file = await open(await this.path(path), "r");
    try {
      const bytes = new Uint8Array(end - start);
      for (let done = 0; done < bytes.length;) {
        const length = Math.min(bytes.length - done, 1 << 30);
        const { bytesRead } = await file.read(bytes, done, length, start + done);
        if (bytesRead === 0) throw new StoreError(path, `the file ends at ${start + done}, before ${end}`);
        done += bytesRead;
      }
      return bytes;
    } finally {
      await file.close();
    }
  }

  /** Returns the path of a file in the file system. */
  async path(path) {
    const [{ join }, { fileURLToPath }] = await Promise.all([import("node:path"), import("node:url")]);
    const isUrl = this.folder instanceof URL || /^file:\/\//i.test(this.folder);
    return join(isUrl ? fileURLToPath(this.folder) : this.folder, ...path.split("/"));
  }

  /** Returns the status of a regular file. Other kinds are refused, since opening a pipe would block. */
  async #stat(path) {
    const { lstat, stat } = await import("node:fs/promises");
    let status;
    try {
      if (!this.followLinks) {
        const parts = path.split("/");
        for (let i = 1; i <= parts.length; i++) {
          if ((await lstat(await this.path(parts.slice(0, i).join("/")))).isSymbolicLink()) {
            throw new StoreError(path, "a symbolic link");
          }
        }
      }
      status = await stat(await this.path(path));
    } catch (error) {
      if (isNotFound(error)) throw new NotFound(path, { cause: error });
      throw error;
    }
    if (!status.isFile()) throw new StoreError(path, "not a regular file");
    return status;
  }
}

/** Reads a folder of an HTTP server by range requests. */
export class HttpSource {
  #whole = new Map();
  #stale = new Set();

  /**
   * Creates a source.
   *
   * A server of another origin must allow the header `Range` and expose `Content-Range` (CORS). If a server ignores
   * ranges, files are fetched whole, and the last ones are kept.
   *
   * @param {string} base URL of the dataset's folder
   * @param {object} [options]
   * @param {function} [options.fetch] replaces the global `fetch`
   * @param {object} [options.headers] further request headers
   * @param {number} [options.cacheBytes] how many bytes of files that were fetched whole
   *   to keep, in addition to the last one; 256 MiB by default
   * @param {number} [options.maxWholeBytes] the longest file to fetch whole, in bytes; 2 GiB by default
   */
  constructor(base, options = {}) {
    this.base = base.endsWith("/") ? base : base + "/";
    this.fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init));
    this.headers = options.headers ?? {};
    this.cacheBytes = options.cacheBytes ?? 2 ** 28;
    this.maxWholeBytes = options.maxWholeBytes ?? 2 ** 31;
  }

  /** Returns the length of a file in bytes. */
  async size(path) {
    return (await this.head(path, 1)).size;
  }

  /** Reads the bytes of [start, end). */
  async read(path, start, end) {
    return (await this.#request(path, start, end)).bytes;
  }

  /** Reads the first bytes of a file and its length, in one request. */
  async head(path, length) {
    return this.#request(path, 0, length);
  }

  /** Reads a whole file in one request, and asks caches to validate what they hold. */
  async readAll(path) {
    const response = await this.#fetch(path, {}, "no-cache");
    if (response.status !== 200) throw new StoreError(path, `HTTP status ${response.status}, expected 200`);
    return readBody(response, path, this.maxWholeBytes);
  }

  /** Drops what is kept of a file, and makes its next request bypass caches. */
  forget(path) {
    this.#whole.delete(path);
    this.#stale.add(path);
  }

  async #fetch(path, headers, cache) {
    const url = this.base + path.split("/").map(encodeURIComponent).join("/");
    const init = { headers: { ...this.headers, ...headers } };
    if (this.#stale.delete(path)) init.cache = "reload";
    else if (cache) init.cache = cache;
    let response;
    try {
      response = await this.fetch(url, init);
    } catch (error) {
      throw new StoreError(path, `the request failed: ${error.message}`, { cause: error });
    }
    if (response.status === 404 || response.status === 410) {
      await response.body?.cancel();
      throw new NotFound(path);
    }
    return response;
  }

  /** Fetches [start, end) of a file; from offset 0 also less, if the file is shorter. */
  async #request(path, start, end) {
    const kept = this.#whole.get(path);
    if (kept) return { bytes: kept.subarray(start, end), size: kept.length };
    const response = await this.#fetch(path, { Range: `bytes=${start}-${end - 1}` });
    if (response.status === 200) {
      const whole = await readBody(response, path, this.maxWholeBytes);
      this.#keep(path, whole);
      return { bytes: whole.subarray(start, end), size: whole.length };
    }
    const range = response.headers.get("content-range") ?? "";
    const empty = /^bytes \*\/0$/.test(range);
    const parts = /^bytes ([0-9]{1,15})-([0-9]{1,15})\/([0-9]{1,15})$/.exec(range)?.slice(1).map(Number);
    if (response.status === 416 && empty && start === 0) {
      await response.body?.cancel();
      return { bytes: new Uint8Array(0), size: 0 };
    }
    const last = Math.min(end, parts?.[2] ?? 0) - 1;
    if (response.status !== 206 || !parts || parts[0] !== start || parts[1] !== last) {
      await response.body?.cancel();
      throw new StoreError(
        path,
        `HTTP status ${response.status} with Content-Range "${range}", expected 206 with ` +
          `bytes ${start}-${end - 1} (a server of another origin must expose the header Content-Range)`,
      );
    }
    const bytes = await readBody(response, path, last + 1 - start);
    if (bytes.length !== last + 1 - start) {
      throw new StoreError(path, `the response has ${bytes.length} bytes, expected ${last + 1 - start}`);
    }
    return { bytes, size: parts[2] };
  }

  #keep(path, whole) {
    this.#whole.set(path, whole);
    let sum = 0;
    for (const [kept, bytes] of [...this.#whole].reverse()) {
      sum += bytes.length;
      if (sum > this.cacheBytes && kept !== path) this.#whole.delete(kept);
    }
  }
}

/** Reads a response's body of at most `limit` bytes. */
async function readBody(response, path, limit) {
  const parts = [];
  let length = 0;
  try {
    const reader = response.body?.getReader();
    for (let part; reader && !(part = await reader.read()).done;) {
      length += part.value.length;
      if (length > limit) {
        await reader.cancel();
        throw new StoreError(path, `the response is longer than ${limit} bytes`);
      }
      parts.push(part.value);
    }
  } catch (error) {
    if (error instanceof StoreError) throw error;
    throw new StoreError(path, `the response ended early: ${error.message}`, { cause: error });
  }
  if (parts.length === 1) return parts[0];
  const bytes = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
