"""Prints the end of a run: the slowest steps and tests, the change against the committed table, and every skip.

The committed table is docs/test-times.json; `scripts/test --record cold|warm` renews it, and the table in docs/testing.md.
"""

import collections
import json
import re

from results import Results
from steps import ROOT, STEPS

TIMES = ROOT / "docs/test-times.json"
PAGE = ROOT / "docs/testing.md"
SKIPS = ROOT / "scripts/gate/skips.txt"
#: Seconds that a single test should stay under.
SLOW_TEST = 15


def slowest(kind: str, seconds: dict[str, float], count: int = 10) -> None:
    """Prints the slowest of `seconds`."""
    print(f"\nslowest {kind}:")
    for name, took in sorted(seconds.items(), key=lambda item: -item[1])[:count]:
        print(f"{took:8.1f} s  {name}")


def changes(seconds: dict[str, float]) -> None:
    """Prints the steps that take longer than in the committed table by 20 % and by 5 s."""
    if not TIMES.exists():
        return
    table = json.loads(TIMES.read_text())
    # Compares with the cold or the warm run, whichever has the nearer time of the build.
    build = seconds.get("build", 0)
    kind = min(table, key=lambda kind: abs(table[kind]["seconds"].get("build", 0) - build))
    print(f"\nagainst {TIMES.relative_to(ROOT)}, {kind}:")
    grown = 0
    for name, took in seconds.items():
        before = table[kind]["seconds"].get(name)
        if before is None:
            print(f"{took:8.1f} s  {name}: new")
        elif took > 1.2 * before + 5:
            print(f"{took:8.1f} s  {name}: {before:.1f} s before")
            grown += 1
    if not grown:
        print("  no step takes longer than before by 20 %")


def allowed() -> list[tuple[re.Pattern[str], re.Pattern[str], str]]:
    """Returns the lines of the list of skips: where, message, reason."""
    lines = [line for line in SKIPS.read_text().splitlines() if line and not line.startswith("#")]
    fields = [[field.strip() for field in line.split(" | ", 2)] for line in lines]
    return [(re.compile(where), re.compile(skip), reason) for where, skip, reason in fields]


def skips(results: Results) -> list[str]:
    """Prints how much was skipped for each reason, and returns the skips that the list does not have."""
    known, unknown = collections.Counter(), []
    lines = allowed()
    for where, message in results.skips:
        reasons = [reason for place, skip, reason in lines if place.match(where) and skip.match(message)]
        if reasons:
            known[reasons[0]] += 1
        else:
            unknown.append(f"{where}: {message}")
    print(f"\nskipped: {len(results.skips)}")
    for reason, count in known.most_common():
        print(f"{count:8}  {reason}")
    for skip in unknown:
        print(f"  not in {SKIPS.relative_to(ROOT)}: {skip}")
    return unknown


def record(kind: str, total: float, seconds: dict[str, float], results: Results) -> None:
    """Writes the run's seconds into the committed table, and the table into docs/testing.md."""
    table = json.loads(TIMES.read_text()) if TIMES.exists() else {}
    steps = {name: round(took, 1) for name, took in seconds.items()}
    table[kind] = {"total": round(total), "tests": results.passed, "seconds": steps}
    TIMES.write_text(json.dumps(table, indent=1) + "\n")
    kinds = [kind for kind in ["before", "cold", "warm"] if kind in table and kind != "before"]
    rows = ["| step | " + " | ".join(f"{kind}, s" for kind in kinds) + " | what it does |", "|---" * (len(kinds) + 2) + "|"]
    for step in STEPS:
        cells = [f"{table[kind]['seconds'].get(step.name, 0):.0f}" for kind in kinds]
        rows.append(f"| `{step.name}` | " + " | ".join(cells) + f" | {step.purpose} |")
    rows.append("| whole run | " + " | ".join(f"**{table[kind]['total']}**" for kind in kinds) + " | three steps at a time |")
    page = PAGE.read_text()
    start, end = "<!-- table of scripts/test --record -->\n", "<!-- end of table -->"
    before, rest = page.split(start)
    PAGE.write_text(before + start + "\n".join(rows) + "\n" + end + rest.split(end)[1])
