// Scheduled sources: members whose shares change within a run (order-spec.md, section "Schedules").

import { crc32c, hex32 } from "./bytes.js";
import { makeSource, numbersCrc } from "./order-sources.js";
import { substituteNumbers } from "./order-substitutes.js";
import { Turns, divideWeights } from "./order-turns.js";
import { Order, Refusal, orderKey, parameter } from "./order.js";

const MAX_U64 = (1n << 64n) - 1n;

/** The largest number of members. */
const MAX_MEMBERS = 1 << 16;

/** How many stages a resume state has digits for. */
const STATE_STAGES = 19;

/** How many orders of members are kept: those of up to 4096 samples are tables of 8 KiB. */
const KEPT_ORDERS = 256;

/**
 * @typedef {object} ScheduledExtra
 * @property {function(bigint, bigint, bigint, object): bigint} at returns the id at a position of an epoch, given also
 *   the seed and the run's `{ order, run, window }`, since that is the order of the passes of members
 * @property {function(bigint, bigint, bigint, object): bigint[]} substitutes returns the ids of the substitutes of the
 *   sample at a position, with the same arguments
 * @property {function(bigint, bigint): bigint[]} counts returns how many samples of each member come before a position
 * @property {function(bigint, bigint): Begun} begun returns what a run has begun at a position
 */

/**
 * @typedef {object} Begun
 * @property {string} source the checksum for a resume state, eight hex digits
 * @property {string} stages four hex digits for the number of stages, and four for each of the last 19
 * @property {number} count how many stages have begun
 * @property {bigint} end one more than the greatest id of the members that matter
 */

/**
 * Makes the source whose members have shares that change at positions of the run.
 *
 * @param {Iterable<[number|bigint, number|bigint]|{ids: Iterable<number|bigint>}>} members first id and number of the
 *   samples of each member, or its ids in any sequence; at most 2^16 members
 * @param {Iterable<{start: number|bigint, weights: Iterable<number|bigint>}>} stages position of the run (u64) at which
 *   each stage begins, and the weight (u64) of each member from there on
 * @param {number|bigint} draws N, the positions of an epoch
 * @param {number|bigint} samples M
 * @returns {import("./order-sources.js").OrderSource & ScheduledExtra} the source; `check` refuses an id that is not
 *   below M (`ListedId`), stages that do not begin at 0 and ascend (`StageStart`), weights that are not one for each
 *   member (`StageMembers`), weights that are all 0 or that have a sum above 2^20 when divided by their greatest common
 *   divisor (`StageWeights`), and a weight of a member without samples (`EmptyMember`)
 * @throws {RangeError} if a number is out of range, or there are more than 2^16 members
 */
export function scheduledSource(members, stages, draws, samples) {
  const list = Array.from(members, readMember);
  if (list.length > MAX_MEMBERS) throw new RangeError(`${list.length} members, expected at most ${MAX_MEMBERS}`);
  const given = Array.from(stages, ({ start, weights }) => ({
    start: parameter("start", start),
    weights: Array.from(weights, (weight) => parameter("weight", weight)),
  }));
  const length = parameter("draws", draws);
  const total = parameter("samples", samples);
  let checked = null;
  /** Returns the positions of the members' samples, once the checks have passed. */
  const places = () => (checked ??= new Places(checkStages(given, list, total)));
  const json = (stageCount, memberCount) => {
    const stages = places().stages.slice(0, stageCount).map(stageJson);
    const parts = list.slice(0, memberCount).map(memberJson);
    return `{"source":"scheduled","draws":${length},"members":[${parts.join(",")}],"stages":[${stages.join(",")}]}`;
  };
  const orders = new MemberOrders(list);
  const locate = (q, seed, epoch) => {
    const { member, before } = places().locate(epoch * length + q, seed);
    const { count } = list[member];
    return { member, count, number: before % count, pass: (before / count) & MAX_U64 };
  };
  const source = makeSource({
    kind: "scheduled",
    samples: total,
    length,
    at(q, seed, epoch, run) {
      const { member, number, pass } = locate(q, seed, epoch);
      return orders.id(member, number, seed, pass, run);
    },
    json: () => json(given.length, list.length),
    check: () => void places(),
  });
  return Object.assign(source, {
    substitutes(q, seed, epoch, run) {
      const { member, count, number, pass } = locate(q, seed, epoch);
      if (count === 1n) return [];
      const key = orderKey("spare", seed, epoch, q);
      return substituteNumbers(count, number, key).map((other) => orders.id(member, other, seed, pass, run));
    },
    counts(epoch, p, seed) {
      const counts = places().counts(epoch * length + (p < length ? p : length), seed);
      return list.map((_, d) => counts[d] ?? 0n);
    },
    begun(epoch, p) {
      const end = epoch * length + (p < length ? p : length);
      const { stages } = places();
      const count = stages.filter(({ start }, t) => t === 0 || start < end).length;
      const most = stages.slice(0, count).reduce((most, { weights }) => Math.max(most, weights.length), 0);
      return {
        source: textCrc(json(count, most)),
        stages:
          count.toString(16).padStart(4, "0") +
          stages
            .slice(Math.max(0, count - STATE_STAGES), count)
            .map((stage) => textCrc(stageJson(stage)).slice(-4))
            .join(""),
        count,
        end: list.slice(0, most).reduce((end, member) => (member.end > end ? member.end : end), 0n),
      };
    },
  });
}

/** Reads a member: `id` maps the number of a sample to its id; `end` is one more than its greatest id. */
function readMember(member) {
  if (Array.isArray(member)) {
    const [first, count] = [parameter("first", member[0]), parameter("count", member[1])];
    return { first, count, end: count === 0n ? 0n : first + count, id: (number) => first + number };
  }
  const ids = BigUint64Array.from(member.ids, (id) => parameter("id", id));
  const end = ids.reduce((most, id) => (id >= most ? id + 1n : most), 0n);
  return { ids, count: BigInt(ids.length), end, id: (number) => ids[Number(number)] };
}

function memberJson({ first, ids, count }) {
  if (ids) return `{"count":${count},"crc32c":"${numbersCrc(ids)}"}`;
  return `{"first":${first},"count":${count}}`;
}

function stageJson({ start, weights }) {
  return `{"start":${start},"weights":[${weights.join(",")}]}`;
}

function textCrc(text) {
  return hex32(crc32c(new TextEncoder().encode(text)));
}

/** Checks members and stages; returns the stages with divided weights, without the zeros after the last other one. */
function checkStages(stages, members, samples) {
  const outside = members.findIndex(({ end }) => end > samples);
  if (outside >= 0) {
    const id = members[outside].end - 1n;
    throw new Refusal("ListedId", `member ${outside} has id ${id}, expected less than ${samples}`);
  }
  const checked = stages.map(({ start, weights }, t) => {
    if (t === 0 && start > 0n) throw new Refusal("StageStart", `stage 0 begins at ${start}, expected 0`);
    if (t > 0 && start <= stages[t - 1].start) {
      throw new Refusal("StageStart", `stage ${t} begins at ${start}, stage ${t - 1} at ${stages[t - 1].start}`);
    }
    if (weights.length !== members.length) {
      throw new Refusal("StageMembers", `stage ${t} has ${weights.length} weights for ${members.length} members`);
    }
    const divided = divideWeights(weights);
    const empty = divided.findIndex((weight, d) => weight > 0n && members[d].count === 0n);
    if (empty >= 0) {
      const weight = weights[empty];
      throw new Refusal("EmptyMember", `stage ${t} has weight ${weight} for member ${empty}, which has no samples`);
    }
    while (divided.at(-1) === 0n) divided.pop();
    return { start, weights: divided };
  });
  if (checked.length === 0) throw new Refusal("StageStart", "0 stages, expected one or more, of which the first begins at 0");
  return checked;
}

/** Finds member and number of the sample at a position of the run. */
class Places {
  #before = new Map();
  #kept = null;

  constructor(stages) {
    this.stages = stages;
  }

  /** Returns the stage of a position: the last one that begins there or before. */
  #stageAt(g) {
    let [low, high] = [0, this.stages.length];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.stages[middle].start <= g) low = middle;
      else high = middle;
    }
    return low;
  }

  /** Returns the turns of a stage; keeps those of the last one. */
  #turns(t) {
    if (this.#kept?.t !== t) this.#kept = { t, turns: new Turns(this.stages[t].weights) };
    return this.#kept.turns;
  }

  /** Returns how many samples of each member come before a position of a stage. */
  #countsIn(t, g, seed) {
    const { start, weights } = this.stages[t];
    const counts = [...this.#atStart(t, seed)];
    const turns = this.#turns(t);
    const [period, end] = divide(g - start, turns.length);
    const first = turns.first(seed, start, period);
    weights.forEach((weight, d) => {
      counts[d] = (counts[d] ?? 0n) + period * weight + BigInt(turns.count(d, first, end));
    });
    return counts;
  }

  /** Returns how many samples of each member come before a stage; those of members after the last are absent. */
  #atStart(stage, seed) {
    if (!this.#before.has(seed)) this.#before.set(seed, []);
    const known = this.#before.get(seed);
    for (let t = known.length; t <= stage; t++) {
      known.push(t === 0 ? [] : this.#countsIn(t - 1, this.stages[t].start, seed));
    }
    return known[stage];
  }

  /** Returns the member of position `g` of the run, and how many of its samples come before. */
  locate(g, seed) {
    const t = this.#stageAt(g);
    const atStart = this.#atStart(t, seed);
    const { start, weights } = this.stages[t];
    const turns = this.#turns(t);
    const [period, k] = divide(g - start, turns.length);
    const first = turns.first(seed, start, period);
    const member = turns.members[(first + k) % turns.length];
    const number = BigInt(turns.count(member, first, k));
    return { member, before: (atStart[member] ?? 0n) + period * weights[member] + number };
  }

  counts(g, seed) {
    return this.#countsIn(this.#stageAt(g), g, seed);
  }
}

function divide(length, turns) {
  return [length / BigInt(turns), Number(length % BigInt(turns))];
}

/** Maps numbers of passes to ids; keeps the last orders used. */
class MemberOrders {
  #kept = new Map();

  constructor(members) {
    this.members = members;
  }

  id(member, number, seed, pass, { order, run, window }) {
    const { count, id } = this.members[member];
    const name = `${member} ${seed} ${pass} ${order} ${run} ${window}`;
    let made = this.#kept.get(name);
    this.#kept.delete(name);
    made ??= new Order({ order, length: count, seed: orderKey("member", seed, 0n, member), epoch: pass, run, window });
    this.#kept.set(name, made);
    if (this.#kept.size > KEPT_ORDERS) this.#kept.delete(this.#kept.keys().next().value);
    return id(made.at(number));
  }
}

/**
 * Reads the member `stages` of a resume state.
 *
 * @param {string} text its digits
 * @returns {?Map<number, string>} four digits for each stage that has some, by its number, with the number of stages that have
 *   begun as the member `begun`; null if the text has another form
 */
export function parseStageDigits(text) {
  if (!/^([0-9a-f]{4})+$/.test(text)) return null;
  const begun = parseInt(text.slice(0, 4), 16);
  const first = Math.max(0, begun - STATE_STAGES);
  if (begun === 0 || text.length !== 4 * (1 + begun - first)) return null;
  const digits = new Map();
  for (let t = first; t < begun; t++) digits.set(t, text.slice(4 * (1 + t - first), 4 * (2 + t - first)));
  return Object.assign(digits, { begun });
}
