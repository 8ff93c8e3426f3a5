// Tests against the vectors of the orders and the README.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseJson } from "../json.js";
import { reader, work } from "./common.mjs";

/** Members of the vectors that are computed, by file; the others are given. */
const COMPUTED = {
  keys: ["key", "words", "floats_times_2_53", "below_1000", "below"],
  permutations: ["y", "refused"],
  orders: ["place", "refused"],
  turns: ["turns", "turns_crc32c", "refused"],
  sources: ["len", "id", "json", "crc32c"],
  steps: ["steps_left", "dropped", "after", "rows", "ids", "augment", "json", "crc32c", "counts"],
  substitutes: ["candidates", "ids"],
  refusals: ["refused"],
  states: ["json", "mixture"],
  resumes: ["resume", "refused", "stage"],
};

for (const folder of ["order", "scheduled"]) {
  test(`computes the vectors of ${folder}`, (t) => {
    const vectors = join(reader, "../../fixtures/conformance", folder);
    if (!existsSync(vectors)) return t.skip("no vectors");
    const names = readdirSync(vectors).filter((file) => file.endsWith(".jsonl"));
    assert.ok(names.length > 0);
    for (const file of names) compareVectors(vectors, file.slice(0, -6));
    return undefined;
  });
}

/** Compares what the command prints for the vectors of a file with what they say. */
function compareVectors(folder, name) {
  const vectors = readFileSync(join(folder, `${name}.jsonl`), "utf8")
    .trim()
    .split("\n")
    .map((line) => {
      const members = parseJson(line).members.map(([member]) => member);
      const computed = [...COMPUTED[name], ...(name === "substitutes" && members.includes("row") ? ["position"] : [])];
      // The text of a member, so that integers keep their digits.
      const texts = members.map((member, i) => {
        const start = line.indexOf(`"${member}":`) + member.length + 3;
        return [member, line.slice(start, i + 1 < members.length ? line.indexOf(`,"${members[i + 1]}":`, start) : -1)];
      });
      return {
        given: texts.filter(([member]) => !computed.includes(member)),
        expected: texts.filter(([member]) => computed.includes(member)),
      };
    });
  const file = join(work, "vectors.jsonl");
  writeFileSync(
    file,
    vectors
      .map(({ given }) => [["vector", `"${name}"`], ...given].map(([member, text]) => `"${member}":${text}`).join(","))
      .map((members) => `{${members}}\n`)
      .join(""),
  );
  const output = execFileSync("node", [join(reader, "conformance.mjs"), "order", file], {
    encoding: "utf8",
    maxBuffer: 2 ** 28,
  })
    .trim()
    .split("\n");
  assert.equal(output.length, vectors.length, name);
  vectors.forEach(({ expected }, i) => {
    for (const [member, text] of expected)
      assert.ok(output[i].includes(`"${member}":${text}`), `${name}:${i + 1} ${member} ${text} ${output[i]}`);
  });
}

test("prints what its README says", async (t) => {
  const tiny = join(reader, "../../fixtures/conformance/golden/tiny");
  const readme = readFileSync(join(reader, "README.md"), "utf8");
  const block = (kind) => readme.split("```" + kind + "\n")[1].split("```")[0];
  const folder = mkdtempSync(join(work, "readme-"));
  if (!existsSync(tiny)) return t.skip("no fixtures");
  execFileSync("cp", ["-r", tiny, join(folder, "pets")]);
  for (const name of readdirSync(reader))
    if (/\.js(on)?$/.test(name)) writeFileSync(join(folder, name), readFileSync(join(reader, name)));
  writeFileSync(join(folder, "snippet.js"), block("js"));
  assert.equal(execFileSync("node", ["snippet.js"], { cwd: folder, encoding: "utf8" }), block("text"));
  return undefined;
});

test("imports no module of Node statically, so that browsers can load it", () => {
  for (const name of readdirSync(reader).filter((file) => file.endsWith(".js"))) {
    const source = readFileSync(join(reader, name), "utf8");
    const imported = [...source.matchAll(/^(?:import|export) [^;]*? from "([^"]+)";/gms)].map((match) => match[1]);
    for (const path of imported) assert.match(path, /^\.\/[a-z0-9-]+\.js$/, name);
  }
});
