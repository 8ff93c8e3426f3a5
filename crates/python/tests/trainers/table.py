#!/usr/bin/env python3
"""Prints the matrix from pytest's JUnit files: a row for each framework, a column for each cell.

    python table.py RESULTS.xml...

A cell is `pass`, `FAIL` or `none` (it ran in no environment), with seconds. Other tests follow, with what they found. Exit
status 1 unless every test passed; tests of photographs may be skipped where there are none.
"""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as ElementTree

CELLS = {
    "test_two_epochs": "two epochs",
    "test_resume_in_mid_epoch": "resume",
    "test_accumulation": "accumulate 4",
    "test_early_stop": "early stop",
    "test_evaluation": "evaluate once",
}

#: How the reason of a skipped test begins if it needs photographs.
NO_PHOTOGRAPHS = "no photographs"


def severity(result: str) -> int:
    return ["none", "skip", "pass", "FAIL"].index(result.split()[0])


def main(paths: list[str]) -> int:
    rows: dict[str, dict[str, str]] = {}
    others: dict[str, str] = {}
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            parts = re.fullmatch(r"(\w+)(?:\[(.*)\])?", case.get("name", ""))
            skip = case.find("skipped")
            failed = case.find("failure") is not None or case.find("error") is not None
            result = f"{'FAIL' if failed else 'pass'} {float(case.get('time', 0)):.0f} s"
            if skip is not None:
                # A framework is skipped if it is not installed.
                reason = skip.get("message", "")
                result = f"skip ({reason})" if reason.startswith(NO_PHOTOGRAPHS) else "none"
            if parts and parts[1] in CELLS and parts[2]:
                cells = rows.setdefault(parts[2], {})
                if skip is None:
                    cells[parts[1]] = result
            else:
                found = [str(each.get("value")) for each in case.iter("property") if each.get("name") == "found"]
                name = case.get("name", "")
                # A test may run in several environments.
                others[name] = max(others.get(name, "none"), "; ".join([result, *found]), key=severity)
    print(f"| {'framework':<28} | " + " | ".join(f"{title:<13}" for title in CELLS.values()) + " |")
    print("|" + "---|" * (1 + len(CELLS)))
    for name, cells in rows.items():
        print(f"| {name:<28} | " + " | ".join(f"{cells.get(cell, 'none'):<13}" for cell in CELLS) + " |")
    for name, result in others.items():
        print(f"{name}: {result}")
    results = [cells.get(cell, "none") for cells in rows.values() for cell in CELLS] + list(others.values())
    return 0 if rows and all(result.startswith(("pass", "skip")) for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
