"""Turns `fixtures/vectors/order` into questions for the drivers and the answers that they must give.

    python3 vectors.py VECTORS QUESTIONS ANSWERS    writes the two files, one question or answer per line
"""

import json
import sys
from pathlib import Path


def vectors(name: str):
    with open(Path(sys.argv[1], name), encoding="utf-8") as file:
        yield from map(json.loads, file)


def pairs():
    for v in vectors("keys.jsonl"):
        draws = zip(v["words"], v["floats_times_2_53"], v["below_1000"])
        yield f"key {v['domain']} {v['seed']} {v['epoch']} {v['tweak']}", [v["key"], *(x for d in draws for x in d)]
        if "bounds" in v:
            yield " ".join(map(str, ["below", v["key"], *v["bounds"]])), v["below"]
        if v["domain"] == "augment":
            yield f"augment {v['seed']} {v['epoch']} {v['tweak']}", v["words"]
    for v in vectors("permutations.jsonl"):
        yield " ".join(map(str, ["permutation", v["len"], v["key"], *v.get("x", [])])), v.get("y", ["refused"])
        if "seed" in v:
            yield " ".join(map(str, ["pack", v["len"], v["seed"], *v["x"]])), v["y"]
    for v in vectors("orders.jsonl"):
        parameters = [v["order"], v["len"], v["seed"], v["epoch"], v.get("run", 0), v.get("window", 0)]
        yield " ".join(map(str, parameters + v.get("position", []))), v.get("place", ["refused"])
    for v in vectors("steps.jsonl"):
        if v["policy"] == "shard" or "source" in v:
            continue
        parameters = [v["order"], sum(v["records"]), v["seed"], v["epoch"], v.get("run") or 0, v.get("window") or 0]
        shown = [(row, i) for rows, ids in zip(v["rows"], v["ids"]) for row, i in zip(rows, ids) if row != "-"]
        yield " ".join(map(str, parameters + [row.lstrip("+") for row, _ in shown])), [i for _, i in shown]


with open(sys.argv[2], "w") as questions, open(sys.argv[3], "w") as answers:
    count = 0
    for question, answer in pairs():
        print(question, file=questions)
        print(*answer, file=answers)
        count += 1
print(count)
