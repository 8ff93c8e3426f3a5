#!/usr/bin/env python3
"""Prints the matrix from pytest's JUnit files: a row for each framework, a column for each cell.

    python table.py RESULTS.xml...

A cell is `pass`, `FAIL` or `none` (it ran in no environment), with seconds. Exit status 1 unless every cell passed.
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


def main(paths: list[str]) -> int:
    rows: dict[str, dict[str, str]] = {}
    others: dict[str, str] = {}
    for path in paths:
        for case in ElementTree.parse(path).iter("testcase"):
            parts = re.fullmatch(r"(\w+)(?:\[(.*)\])?", case.get("name", ""))
            skipped = case.find("skipped") is not None
            failed = case.find("failure") is not None or case.find("error") is not None
            result = f"{'FAIL' if failed else 'pass'} {float(case.get('time', 0)):.0f} s"
            if parts and parts[1] in CELLS and parts[2]:
                cells = rows.setdefault(parts[2], {})
                # A framework is skipped if it is not installed.
                if not skipped:
                    cells[parts[1]] = result
            elif not skipped or case.get("name") not in others:
                others[case.get("name", "")] = "none" if skipped else result
    print(f"| {'framework':<28} | " + " | ".join(f"{title:<13}" for title in CELLS.values()) + " |")
    print("|" + "---|" * (1 + len(CELLS)))
    for name, cells in rows.items():
        print(f"| {name:<28} | " + " | ".join(f"{cells.get(cell, 'none'):<13}" for cell in CELLS) + " |")
    for name, result in others.items():
        print(f"{name}: {result}")
    results = [cells.get(cell, "none") for cells in rows.values() for cell in CELLS] + list(others.values())
    return 0 if rows and all(result.startswith("pass") for result in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
