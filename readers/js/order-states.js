// Resume states: where a run continues (order-spec.md, section "Resume state").

import { JsonError, JsonNumber, JsonObject, parseJson } from "./json.js";
import { ORDERS, Refusal } from "./order.js";

const MAX_U32 = (1n << 32n) - 1n;
const MAX_U64 = (1n << 64n) - 1n;

/** The longest state to read, in UTF-16 units. */
const MAX_STATE = 4096;

/**
 * @typedef {object} ResumeState
 * @property {string} fingerprint fingerprint of the split or splits, eight hex digits
 * @property {string} source the source checksum, eight hex digits
 * @property {string} order name of the order
 * @property {?bigint} run L, for interleaved, otherwise null
 * @property {?bigint} window C, for interleaved, otherwise null
 * @property {?bigint} world R under policy `shard`, otherwise null
 * @property {bigint} seed u64
 * @property {bigint} epoch u64
 * @property {bigint} p positions delivered in the epoch
 */

/**
 * Writes a resume state.
 *
 * @param {ResumeState} state the state; absent members are as null
 * @returns {string} one line of canonical JSON
 */
export function formatState({ fingerprint, source, order, run, window, world, seed, epoch, p }) {
  const optional = (name, value) => (value === null || value === undefined ? "" : `"${name}":${value},`);
  return (
    `{"version":1,"fingerprint":"${fingerprint}","source":"${source}","order":"${order}",` +
    `${optional("run", run)}${optional("window", window)}${optional("world", world)}` +
    `"seed":${seed},"epoch":${epoch},"p":${p}}`
  );
}

/** Members of a state after `version`: least and greatest value of numbers, and whether they may be absent. */
const STATE_NUMBERS = {
  run: [1n, MAX_U32, true],
  window: [1n, MAX_U32, true],
  world: [1n, MAX_U32, true],
  seed: [0n, MAX_U64, false],
  epoch: [0n, MAX_U64, false],
  p: [0n, MAX_U64, false],
};

/**
 * Reads a resume state.
 *
 * @param {string} text the JSON
 * @returns {ResumeState} the state
 * @throws {Refusal} `StateJson`, `StateVersion` or `StateMember`
 */
export function parseState(text) {
  const refuse = (reason, what) => {
    throw new Refusal(reason, what);
  };
  if (text.length > MAX_STATE) refuse("StateJson", `a state of ${text.length} characters, at most ${MAX_STATE}`);
  let object;
  try {
    object = parseJson(text);
  } catch (error) {
    if (!(error instanceof JsonError)) throw error;
    refuse("StateJson", `not JSON: ${error.message} at ${error.at}`);
  }
  if (!(object instanceof JsonObject)) refuse("StateJson", "not an object");
  const number = (name, min, max) => {
    const values = object.all(name);
    const value = values.length === 1 && values[0] instanceof JsonNumber ? values[0].integer(min, max) : null;
    if (value === null) refuse("StateJson", `member ${name} is not one number from ${min} to ${max}`);
    return value;
  };
  const version = number("version", 0n, MAX_U64);
  if (version !== 1n) refuse("StateVersion", `version ${version}, expected 1`);
  const state = {};
  for (const name of ["fingerprint", "source", "order"]) {
    const values = object.all(name);
    if (values.length !== 1 || typeof values[0] !== "string") refuse("StateJson", `member ${name} is not one string`);
    state[name] = values[0];
  }
  for (const [name, [min, max, isOptional]] of Object.entries(STATE_NUMBERS)) {
    state[name] = isOptional && object.all(name).length === 0 ? null : number(name, min, max);
  }
  for (const [name] of object.members) {
    if (name !== "version" && !Object.hasOwn(state, name)) refuse("StateJson", `unknown member ${name}`);
  }
  if (!ORDERS.includes(state.order)) refuse("StateMember", `unknown order ${state.order}`);
  const isInterleaved = state.order === "interleaved";
  if ((state.run !== null) !== isInterleaved || (state.window !== null) !== isInterleaved) {
    refuse("StateMember", `run and window with order ${state.order}`);
  }
  for (const name of ["fingerprint", "source"]) {
    if (!/^[0-9a-f]{8}$/.test(state[name]))
      refuse("StateMember", `${name} is ${state[name]}, expected eight hex digits`);
  }
  return state;
}

/**
 * Checks that a run can continue from a state.
 *
 * @param {ResumeState} state the state
 * @param {import("./order-steps.js").Schedule} schedule the configuration of the run
 * @param {string} fingerprint fingerprint of the run's split or splits
 * @returns {[bigint, bigint]} epoch and p of the next step
 * @throws {Refusal} `StateFingerprint`, `StateSource`, `StateOrder`, `StateSeed`, `StateWorld` or `StatePosition`
 */
export function checkResume(state, schedule, fingerprint) {
  const compare = (reason, found, expected) => {
    if (found !== expected) throw new Refusal(reason, `the state has ${found}, the run ${expected}`);
  };
  compare("StateFingerprint", state.fingerprint, fingerprint);
  compare("StateSource", state.source, schedule.source.checksum);
  const orderOf = ({ order, run, window }) => (order === "interleaved" ? `${order} ${run} ${window}` : order);
  compare("StateOrder", orderOf(state), orderOf(schedule));
  compare("StateSeed", state.seed, schedule.seed);
  if (state.p > 0n) compare("StateWorld", state.world, schedule.shares ? schedule.world : null);
  const most = schedule.shares ? schedule.world * schedule.most : schedule.source.length;
  if (state.p > most || (schedule.shares && state.p % schedule.world !== 0n)) {
    throw new Refusal("StatePosition", `the state has p ${state.p}, the epoch has ${most} positions`);
  }
  return schedule.next(state.epoch, state.p);
}
