// Tests of scheduled sources beyond the vectors: shares of every prefix, whole passes, states, wrong arguments.

import assert from "node:assert/strict";
import { test } from "node:test";
import * as shardtool from "../shardtool.js";

/** Returns a function that returns pseudorandom integers below its argument. */
function random(seed) {
  const key = shardtool.orderKey("augment", seed, 0, 0);
  let i = 0;
  return (bound) => Number(shardtool.drawBelow(shardtool.draw(key, i++), bound));
}

/** Takes the turns as the sentences of the specification say, in time that grows with turns times members. */
function slowTurns(weights) {
  const sum = weights.reduce((total, weight) => total + weight, 0);
  const counts = weights.map(() => 0);
  return Array.from({ length: sum }, (_, k) => {
    let best = -1;
    weights.forEach((weight, d) => {
      if (counts[d] * sum >= (k + 1) * weight) return;
      if (best < 0 || (counts[d] + 1) * weights[best] < (counts[best] + 1) * weight) best = d;
    });
    counts[best]++;
    return best;
  });
}

test("takes turns so that every prefix has its shares", () => {
  const below = random(1);
  for (let i = 0; i < 300; i++) {
    const weights = Array.from({ length: 1 + below(12) }, () => below(3) * below(40));
    weights[below(weights.length)] = 1; // so that nothing divides them
    const turns = Array.from(shardtool.stageTurns(weights));
    assert.deepEqual(turns, slowTurns(weights), `${weights}`);
    const counts = weights.map(() => 0);
    turns.forEach((member, k) => {
      counts[member]++;
      weights.forEach((weight, d) => {
        const share = ((k + 1) * weight) / turns.length;
        assert.ok(counts[d] >= Math.floor(share) && counts[d] <= Math.ceil(share), `${weights}: ${d} after ${k + 1}`);
      });
    });
  }
});

test("takes as many turns as a stage may have, of as many members as there may be", () => {
  const weights = Array.from({ length: 2 ** 16 }, (_, d) => 1 + (d % 31));
  const turns = shardtool.stageTurns(weights);
  assert.equal(
    turns.length,
    weights.reduce((sum, weight) => sum + weight),
  );
  const counts = new Uint32Array(weights.length);
  for (const member of turns) counts[member]++;
  assert.deepEqual(Array.from(counts), weights);
});

const MEMBERS = [[0, 30], { ids: [5100, 31, 31, 5130, 33, 32, 34] }, [30, 1], [35, 5000]];
const STAGES = [
  { start: 0, weights: [3, 0, 0, 0] },
  { start: 40, weights: [4, 2, 0, 0] },
  { start: 97, weights: [0, 1, 1, 6] },
  { start: 143, weights: [5, 0, 0, 1] },
];
const SPLITS = [
  ["00c0ffee", 31],
  ["01234567", 0],
  ["ffffffff", 5100],
];

function replaced(list, number, value) {
  return list.map((old, i) => (i === number ? value : old));
}

function schedule(stages, { order = "shuffled", draws = 50, members = MEMBERS, ...options } = {}) {
  const source = shardtool.scheduledSource(members, stages, draws, 5131);
  return new shardtool.Schedule({
    source,
    order,
    batch: 7,
    remainder: "mask",
    seed: 11,
    run: 4,
    window: 3,
    ...options,
  });
}

test("shows every sample of a member once in each of its passes, through all stages and epochs", () => {
  for (const order of ["sequential", "shuffled", "interleaved"]) {
    const run = schedule(STAGES, { order });
    const ids = [];
    for (let epoch = 0; epoch < 12; epoch++) for (let q = 0; q < 50; q++) ids.push(Number(run.sample(epoch, q).id));
    // No id is of two members.
    const ofMember = [[], [], [], []];
    for (const id of ids) ofMember[id < 30 ? 0 : id === 30 ? 2 : id >= 35 && id < 5035 ? 3 : 1].push(id);
    const counts = run.source.counts(12n, 0n, 11n);
    assert.deepEqual(
      ofMember.map(({ length }) => BigInt(length)),
      counts,
    );
    const passes = (member, size) =>
      Array.from({ length: Math.floor(ofMember[member].length / size) }, (_, i) =>
        ofMember[member].slice(i * size, (i + 1) * size),
      );
    assert.ok(passes(0, 30).length > 5 && passes(1, 7).length > 2);
    for (const pass of passes(0, 30)) assert.equal(new Set(pass).size, 30, order);
    for (const pass of passes(1, 7)) assert.deepEqual(pass.sort(), [31, 31, 32, 33, 34, 5100, 5130], order);
    const shuffled = new Set(passes(0, 30).map(String)).size;
    assert.equal(shuffled, order === "sequential" ? 1 : passes(0, 30).length);
  }
});

test("gives substitutes of the same pass of the member, with the augmentation of the bad sample", () => {
  const run = schedule(STAGES, { order: "sequential" });
  const substitutes = run.substitutes(0, 3);
  assert.equal(substitutes.length, 16);
  for (const { id, sourcePosition } of substitutes) {
    assert.ok(id < 30n);
    assert.equal(sourcePosition, 3n);
  }
  const only = schedule([{ start: 0, weights: [0, 0, 1, 0] }]);
  assert.equal(only.sample(0, 3).id, 30n);
  assert.deepEqual(only.substitutes(0, 3), []);
});

test("continues where the stages that have begun are the same, and names the first that differs", () => {
  const run = schedule(STAGES);
  const state = (epoch, p, splits = SPLITS) =>
    shardtool.parseState(shardtool.formatState(shardtool.runState(run, epoch, p, splits)));
  const begun = state(1, 47); // position 97: stage 2 has not begun
  assert.equal(begun.stages.length, 12);
  const changed = replaced(STAGES, 2, { start: 97, weights: [1, 1, 1, 1] });
  assert.deepEqual(shardtool.checkResume(begun, schedule(changed), SPLITS), [1n, 47n]);
  const later = state(1, 48);
  assert.equal(later.stages.length, 16);
  assert.throws(() => shardtool.checkResume(later, schedule(changed), SPLITS), { reason: "StateStages", stage: 2 });
  const fewer = schedule(STAGES.slice(0, 2));
  assert.throws(() => shardtool.checkResume(later, fewer, SPLITS), { reason: "StateStages", stage: 2 });
  // Splits after the last id that matters do not count: those of the first members lie in the first split and the last.
  const one = schedule([{ start: 0, weights: [1, 0, 0, 0] }]);
  assert.equal(shardtool.runState(one, 0, 9, SPLITS).fingerprint, "00c0ffee");
  assert.equal(begun.fingerprint, shardtool.mixtureFingerprint(SPLITS.map(([fingerprint]) => fingerprint)));
  assert.throws(() => shardtool.runState(run, 0, 0, SPLITS.slice(1)), RangeError);
});

test("reads the batching of a state, which a run without one continues at the start of an epoch", () => {
  const all = new shardtool.Schedule({ source: shardtool.allSource(9), order: "sequential", batch: 2 });
  const text = (p) => shardtool.formatState({ ...shardtool.runState(all, 3, p, "00c0ffee"), batching: "89abcdef" });
  assert.deepEqual(shardtool.checkResume(shardtool.parseState(text(0)), all, "00c0ffee"), [3n, 0n]);
  assert.throws(() => shardtool.checkResume(shardtool.parseState(text(2)), all, "00c0ffee"), {
    reason: "StateBatching",
  });
});

test("reads what a state names of transforms, which decide no order", () => {
  const all = new shardtool.Schedule({ source: shardtool.allSource(9), order: "sequential", batch: 2 });
  const text = shardtool.formatState({
    ...shardtool.runState(all, 3, 2, "00c0ffee"),
    batch_transform: "0000beef",
    flip_index: "0000f11b",
  });
  assert.match(text, /"order":"sequential","batch_transform":"0000beef","flip_index":"0000f11b","seed":0,/);
  const state = shardtool.parseState(text);
  assert.equal(shardtool.formatState(state), text);
  assert.deepEqual(shardtool.checkResume(state, all, "00c0ffee"), [3n, 2n]);
  for (const [digits, reason] of [["\"0000BEEF\"", "StateMember"], ["null", "StateJson"], ["48879", "StateJson"]]) {
    assert.throws(() => shardtool.parseState(text.replace('"0000beef"', digits)), { reason });
  }
});

test("refuses numbers out of range, and members and stages by the names of the specification", () => {
  const many = Array.from({ length: 2 ** 16 + 1 }, () => [0, 1]);
  assert.throws(() => shardtool.scheduledSource(many, STAGES, 5, 9), RangeError);
  assert.throws(() => shardtool.scheduledSource([[0, 1]], [{ start: -1, weights: [1] }], 5, 9), RangeError);
  assert.throws(() => shardtool.scheduledSource([[0, 1]], [{ start: 0, weights: [0.5] }], 5, 9), RangeError);
  assert.throws(() => schedule(STAGES).sample(0, 50), RangeError);
  const wrong = { reason: "StageMembers", message: /stage 1 has 3 weights for 4 members/ };
  assert.throws(() => schedule(replaced(STAGES, 1, { start: 40, weights: [1, 2, 3] })), wrong);
  const outside = { reason: "ListedId", message: /member 1 has id 5131, expected less than 5131/ };
  assert.throws(() => schedule(STAGES, { members: replaced(MEMBERS, 1, { ids: [5131] }) }), outside);
});
