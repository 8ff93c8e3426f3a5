// A strict JSON parser (RFC 8259) that keeps what JSON.parse loses: repeated members, and the digits of numbers.

/** How deep arrays and objects may be nested. A reader must accept 127. */
const MAX_DEPTH = 256;

/** Reports text that is not JSON. */
export class JsonError extends Error {
  /**
   * Creates an error.
   *
   * @param {string} what what is wrong
   * @param {number} at index in the text, in UTF-16 units
   */
  constructor(what, at) {
    super(what);
    this.name = "JsonError";
    this.at = at;
  }
}

/** Holds a number as it is written. */
export class JsonNumber {
  /**
   * Creates a number.
   *
   * @param {string} text its digits, sign, fraction and exponent
   */
  constructor(text) {
    this.text = text;
  }

  /**
   * Converts an integer without fraction, exponent and negative zero.
   *
   * @param {bigint} min least value
   * @param {bigint} max greatest value
   * @returns {?bigint} the integer, or null if the number is not an integer in [min, max]
   */
  integer(min, max) {
    if (!/^-?[0-9]{1,20}$/.test(this.text) || this.text === "-0") return null;
    const value = BigInt(this.text);
    return value < min || value > max ? null : value;
  }
}

/** Holds an object with all its members in the order of the text, also repeated ones. */
export class JsonObject {
  /** The members: an array of `[name, value]`. */
  members = [];

  /**
   * Returns all values of a name.
   *
   * @param {string} name the name after escapes
   * @returns {Array} the values, in the order of the text
   */
  all(name) {
    return this.members.filter((member) => member[0] === name).map((member) => member[1]);
  }
}

/**
 * Parses JSON.
 *
 * @param {string} text the text
 * @returns {*} null, a boolean, a string, an array, a {@link JsonNumber} or a {@link JsonObject}
 * @throws {JsonError} if the text is not JSON, has a lone surrogate, or is nested more than 256 deep
 */
export function parseJson(text) {
  const parser = new Parser(text);
  const value = parser.value(0);
  parser.space();
  if (parser.at < text.length) parser.fail("text after the value");
  return value;
}

const SPACE = /[ \t\n\r]*/y;
const PLAIN = /[^"\\\u0000-\u001f]*/y;
const NUMBER = /-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?/y;
const HEX4 = /[0-9a-fA-F]{4}/y;
const ESCAPES = { '"': '"', "\\": "\\", "/": "/", b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };

class Parser {
  constructor(text) {
    this.text = text;
    this.at = 0;
  }

  fail(what) {
    throw new JsonError(what, this.at);
  }

  /** Consumes what a sticky expression matches; returns null if it does not match. */
  match(expression) {
    expression.lastIndex = this.at;
    const found = expression.exec(this.text);
    if (found === null) return null;
    this.at += found[0].length;
    return found[0];
  }

  space() {
    this.match(SPACE);
  }

  /** Consumes one character if it is next after white space. */
  take(character) {
    this.space();
    if (this.text[this.at] !== character) return false;
    this.at++;
    return true;
  }

  expect(character) {
    if (!this.take(character)) this.fail(`expected ${character}`);
  }

  value(depth) {
    this.space();
    const first = this.text[this.at];
    if (first === '"') return this.string();
    if (first === "{" || first === "[") {
      if (depth === MAX_DEPTH) this.fail("nested too deep");
      return first === "{" ? this.object(depth + 1) : this.array(depth + 1);
    }
    for (const [word, value] of [
      ["null", null],
      ["true", true],
      ["false", false],
    ]) {
      if (this.text.startsWith(word, this.at)) {
        this.at += word.length;
        return value;
      }
    }
    const number = this.match(NUMBER);
    if (number === null) this.fail("expected a value");
    return new JsonNumber(number);
  }

  object(depth) {
    const object = new JsonObject();
    this.expect("{");
    if (this.take("}")) return object;
    do {
      this.space();
      const name = this.string();
      this.expect(":");
      object.members.push([name, this.value(depth)]);
    } while (this.take(","));
    this.expect("}");
    return object;
  }

  array(depth) {
    const array = [];
    this.expect("[");
    if (this.take("]")) return array;
    do array.push(this.value(depth));
    while (this.take(","));
    this.expect("]");
    return array;
  }

  string() {
    if (this.text[this.at] !== '"') this.fail("expected a string");
    const start = this.at++;
    let result = this.match(PLAIN);
    while (this.text[this.at] === "\\") {
      const escape = this.text[this.at + 1];
      this.at += 2;
      if (escape === "u") {
        const digits = this.match(HEX4);
        if (digits === null) this.fail("expected four hex digits");
        result += String.fromCharCode(parseInt(digits, 16));
      } else {
        if (!Object.hasOwn(ESCAPES, escape ?? "")) this.fail("unknown escape");
        result += ESCAPES[escape];
      }
      result += this.match(PLAIN);
    }
    if (this.text[this.at] !== '"') this.fail("a string that does not end, or has a control character");
    this.at++;
    if (/\p{Cs}/u.test(result)) {
      this.at = start;
      this.fail("a lone surrogate");
    }
    return result;
  }
}
