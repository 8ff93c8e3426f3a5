// Errors of this reader. The names of damage are those of format-spec.md, section "Errors".

/**
 * Reports damage: bytes of a dataset that are not what the format says.
 *
 * A damage never hides other records: the message names the file, the offset, the expected and the found value.
 */
export class Damage extends Error {
  /**
   * Creates a damage.
   *
   * @param {string} name a name of format-spec.md, such as `"DataCrc"`
   * @param {object} where what is damaged
   * @param {string} where.file path relative to the dataset's folder, with `/`
   * @param {?number} [where.record] number of the record in its shard, from 0; null if no single record is meant
   * @param {?number} [where.offset] offset in the file, in bytes; null if no single place is meant
   * @param {?Uint8Array} [where.key] the record's key, if known
   * @param {*} [where.expected] the value that the format demands
   * @param {*} [where.found] the value in the file
   * @param {string} what one clause that says which check failed
   */
  constructor(name, where, what) {
    const { file, record = null, offset = null, key = null, expected = null, found = null } = where;
    let text = escapeText(file);
    if (record !== null) text += `, record ${record}`;
    if (key !== null) text += ` (key "${escapeText(new TextDecoder().decode(key))}")`;
    if (offset !== null) text += `, offset ${offset}`;
    text += `: ${what}`;
    if (expected !== null) text += `; expected ${escapeText(String(expected))}`;
    if (found !== null) text += `${expected === null ? ";" : ","} found ${escapeText(String(found))}`;
    super(text);
    this.name = name;
    this.what = what;
    this.file = file;
    this.record = record;
    this.offset = offset;
    this.expected = expected;
    this.found = found;
  }
}

/** Reports a failure of the store (file system, HTTP server): not damage, and worth another attempt. */
export class StoreError extends Error {
  /**
   * Creates an error of the store.
   *
   * @param {string} path path relative to the dataset's folder
   * @param {string} what the failure
   * @param {object} [options] `cause`: the error of the platform
   */
  constructor(path, what, options) {
    super(`cannot read ${escapeText(path)}: ${what}`, options);
    this.name = "StoreError";
    this.path = path;
  }
}

/** Reports that a file does not exist. A source of a caller throws this, or any error with `code` `"ENOENT"`. */
export class NotFound extends StoreError {
  /**
   * Creates the error of an absent file.
   *
   * @param {string} path path relative to the dataset's folder
   * @param {object} [options] `cause`: the error of the platform
   */
  constructor(path, options) {
    super(path, "no such file", options);
    this.name = "NotFound";
    this.code = "ENOENT";
  }
}

/** Reports that a shard's index has no such column, so that its values are unknown (not null). */
export class AbsentColumn extends Error {
  /**
   * Creates the error of an absent column.
   *
   * @param {string} file path of the index
   * @param {string} column name of the column
   */
  constructor(file, column) {
    super(`${escapeText(file)} has no column ${escapeText(column)}; take its values from the records`);
    this.name = "AbsentColumn";
    this.file = file;
    this.column = column;
  }
}

/**
 * Tells whether an error means that a file does not exist.
 *
 * @param {*} error anything that was thrown
 * @returns {boolean} true for {@link NotFound} and errors with `code` `"ENOENT"`
 */
export function isNotFound(error) {
  return error instanceof NotFound || error?.code === "ENOENT";
}

/**
 * Escapes control characters, so that text from a dataset cannot control a terminal.
 *
 * @param {string} text any text
 * @returns {string} the text with controls as `\u00hh`
 */
export function escapeText(text) {
  return text.replace(
    /[\u0000-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g,
    (c) => "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0"),
  );
}
