// Resume states: where a run continues (order-spec.md, section "Resume state").

import { JsonError, JsonNumber, JsonObject, parseJson } from "./json.js";
import { parseStageDigits } from "./order-scheduled.js";
import { mixtureFingerprint } from "./order-sources.js";
import { ORDERS, Refusal, parameter } from "./order.js";

const MAX_U32 = (1n << 32n) - 1n;
const MAX_U64 = (1n << 64n) - 1n;

/** The longest state to read, in UTF-16 units. */
const MAX_STATE = 4096;

/**
 * @typedef {object} ResumeState
 * @property {string} fingerprint fingerprint of the split or splits, eight hex digits
 * @property {string} source the source checksum, eight hex digits; of a scheduled source, that of what has begun
 * @property {?string} stages four hex digits for the number of stages that have begun and for each of the last 19; null for other sources
 * @property {string} order name of the order
 * @property {?bigint} run L, for interleaved, otherwise null
 * @property {?bigint} window C, for interleaved, otherwise null
 * @property {?bigint} world R under policy `shard`, otherwise null
 * @property {?string} batching the batching checksum, eight hex digits, otherwise null; this reader makes no such run
 * @property {?string} batch_transform digits of what whole batches become, otherwise null; this reader makes none
 * @property {?string} flip_index digits of the numbers that keypoints have in a mirrored object, otherwise null
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
export function formatState(state) {
  const { fingerprint, source, stages, order, run, window, world, batching, batch_transform, flip_index, seed, epoch, p } = state;
  const optional = (name, value) => (value === null || value === undefined ? "" : `"${name}":${value},`);
  const text = (name, value) => optional(name, typeof value === "string" ? `"${value}"` : value);
  return (
    `{"version":1,"fingerprint":"${fingerprint}","source":"${source}",${text("stages", stages)}"order":"${order}",` +
    `${optional("run", run)}${optional("window", window)}${optional("world", world)}${text("batching", batching)}` +
    `${text("batch_transform", batch_transform)}${text("flip_index", flip_index)}` +
    `"seed":${seed},"epoch":${epoch},"p":${p}}`
  );
}

/**
 * Describes where a run is.
 *
 * @param {import("./order-steps.js").Schedule} schedule the configuration of the run
 * @param {number|bigint} epoch u64
 * @param {number|bigint} p positions delivered in the epoch
 * @param {string|Array<[string, number|bigint]>} splits fingerprint of the run's split, or fingerprint and samples of
 *   each of its splits
 * @returns {ResumeState} the state, for `formatState`
 * @throws {RangeError} if the splits do not have the samples of the source
 */
export function runState(schedule, epoch, p, splits) {
  const { source, order, run = null, window = null, seed } = schedule;
  const place = { epoch: parameter("epoch", epoch), p: parameter("p", p) };
  const begun = source.kind === "scheduled" ? source.begun(place.epoch, place.p) : null;
  return {
    fingerprint: typeof splits === "string" ? splits : splitsFingerprint(splits, source, begun),
    source: begun ? begun.source : source.checksum,
    stages: begun && begun.stages,
    order,
    run,
    window,
    world: schedule.shares ? schedule.world : null,
    batching: null,
    batch_transform: null,
    flip_index: null,
    seed,
    ...place,
  };
}

/** Computes the fingerprint of splits; of a scheduled source, of those up to the last one with an id that matters. */
function splitsFingerprint(splits, source, begun) {
  let total = 0n;
  const ends = splits.map(([, samples]) => (total += parameter("samples", samples)));
  if (total !== source.samples)
    throw new RangeError(`the splits have ${total} samples, expected the ${source.samples} of the source`);
  const count = begun ? ends.findIndex((end) => end >= begun.end) + 1 : splits.length;
  const fingerprints = splits.slice(0, count).map(([fingerprint]) => fingerprint);
  return count === 1 ? fingerprints[0] : mixtureFingerprint(fingerprints);
}

/** Members of a state after `version` that are strings: their form, and whether they may be absent. */
const STATE_TEXTS = {
  fingerprint: [/^[0-9a-f]{8}$/, "eight hex digits", false],
  source: [/^[0-9a-f]{8}$/, "eight hex digits", false],
  stages: [{ test: (text) => parseStageDigits(text) !== null }, "four hex digits for the number of stages and for the last 19", true],
  order: [/^(sequential|shuffled|interleaved)$/, ORDERS.join(", "), false],
  batching: [/^[0-9a-f]{8}$/, "eight hex digits", true],
  batch_transform: [/^[0-9a-f]{8}$/, "eight hex digits", true],
  flip_index: [/^[0-9a-f]{8}$/, "eight hex digits", true],
};

/** Members of a state after `version` that are numbers: least and greatest value, and whether they may be absent. */
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
  for (const [name, [, , isOptional]] of Object.entries(STATE_TEXTS)) {
    const values = object.all(name);
    const isAbsent = isOptional && values.length === 0;
    if (!isAbsent && (values.length !== 1 || typeof values[0] !== "string"))
      refuse("StateJson", `member ${name} is not one string`);
    state[name] = isAbsent ? null : values[0];
  }
  for (const [name, [min, max, isOptional]] of Object.entries(STATE_NUMBERS)) {
    state[name] = isOptional && object.all(name).length === 0 ? null : number(name, min, max);
  }
  for (const [name] of object.members) {
    if (name !== "version" && !Object.hasOwn(state, name)) refuse("StateJson", `unknown member ${name}`);
  }
  const isInterleaved = state.order === "interleaved";
  if ((state.run !== null) !== isInterleaved || (state.window !== null) !== isInterleaved) {
    refuse("StateMember", `run and window with order ${state.order}`);
  }
  for (const [name, [form, expected]] of Object.entries(STATE_TEXTS)) {
    if (state[name] !== null && !form.test(state[name]))
      refuse("StateMember", `${name} is ${state[name]}, expected ${expected}`);
  }
  return state;
}

/**
 * Checks that a run can continue from a state. `batch_transform` and `flip_index` are of those who make batches.
 *
 * @param {ResumeState} state the state
 * @param {import("./order-steps.js").Schedule} schedule the configuration of the run
 * @param {string|Array<[string, number|bigint]>} splits fingerprint of the run's split or splits, or fingerprint and
 *   samples of each split; a scheduled source of several splits needs the latter
 * @returns {[bigint, bigint]} epoch and p of the next step
 * @throws {Refusal} `StateStages` (with the member `stage`, the number of the first stage that differs),
 *   `StateFingerprint`, `StateSource`, `StateOrder`, `StateSeed`, `StateWorld`, `StateBatching` or `StatePosition`
 */
export function checkResume(state, schedule, splits) {
  const expected = runState(schedule, state.epoch, state.p, splits);
  const compare = (reason, found, expected) => {
    if (found !== expected) throw new Refusal(reason, `the state has ${found}, the run ${expected}`);
  };
  if (state.stages !== null && expected.stages !== null) {
    compareStages(state.stages, expected.stages);
    compare("StateSource", state.source, expected.source);
  }
  compare("StateFingerprint", state.fingerprint, expected.fingerprint);
  compare("StateSource", state.source, expected.source);
  const orderOf = ({ order, run, window }) => (order === "interleaved" ? `${order} ${run} ${window}` : order);
  compare("StateOrder", orderOf(state), orderOf(expected));
  compare("StateSeed", state.seed, expected.seed);
  if (state.p > 0n) {
    compare("StateWorld", state.world, expected.world);
    compare("StateBatching", state.batching, expected.batching);
  }
  const most = schedule.shares ? schedule.world * schedule.most : schedule.source.length;
  if (state.p > most || (schedule.shares && state.p % schedule.world !== 0n)) {
    throw new Refusal("StatePosition", `the state has p ${state.p}, the epoch has ${most} positions`);
  }
  return schedule.next(state.epoch, state.p);
}

/** Refuses a state with other stages; the error names the first that differs. */
function compareStages(state, run) {
  if (state === run) return;
  const [found, wanted] = [parseStageDigits(state), parseStageDigits(run)];
  const differing = [...wanted.keys()].filter((t) => found.has(t) && found.get(t) !== wanted.get(t));
  const stage = differing[0] ?? Math.min(found.begun, wanted.begun);
  const digits = (of) => of.get(stage) ?? "no such stage";
  const what = `stage ${stage}: the state has ${digits(found)}, the run ${digits(wanted)}`;
  throw Object.assign(new Refusal("StateStages", what), { stage });
}
