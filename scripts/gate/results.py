"""Reads what the steps left in target/test-logs: tests with their seconds, skips and failures."""

import collections
import dataclasses
import json
import pathlib
import re
import xml.etree.ElementTree as ElementTree

from steps import ROOT

LOGS = ROOT / "target/test-logs"
#: What a step or test prints for what it leaves out.
SKIPPED = re.compile(r"^skipped: (.*)$", re.MULTILINE)


@dataclasses.dataclass
class Results:
    """Tests of one run."""

    passed: int = 0
    failed: int = 0
    #: Seconds of each test.
    seconds: dict[str, float] = dataclasses.field(default_factory=dict)
    #: Where, and the message.
    skips: list[tuple[str, str]] = dataclasses.field(default_factory=list)


def read(steps: list[str]) -> Results:
    """Returns the results of the steps that ran."""
    results = Results()
    for step in ["rust", "portable", "aarch64"]:
        if step in steps and (LOGS / f"{step}.json").exists():
            _rust(step, json.loads((LOGS / f"{step}.json").read_text()), results)
    environments = {"python": ["python"], "torch": ["torch", "trainers"], "jax": ["jax"], "ray": ["ray-previous"]}
    files = [LOGS / f"pytest-{name}.xml" for step in steps for name in environments.get(step, [])]
    _python([file for file in files if file.exists()], results)
    for step in steps:
        log = LOGS / step
        if step not in environments and log.exists():
            results.skips += [(step, message) for message in SKIPPED.findall(log.read_text(errors="replace"))]
    return results


def _rust(step: str, tests: list[dict], results: Results) -> None:
    for test in tests:
        name = f"{step}: {test['name']}"
        results.seconds[name] = test["seconds"]
        results.skips += [(name, message) for message in test["skips"]]
        results.failed += test["failed"]
        results.passed += not test["failed"]


def _python(files: list[pathlib.Path], results: Results) -> None:
    """Adds the tests of all environments. A test counts as skipped if no environment ran it."""
    ran, skipped = set(), collections.defaultdict(list)
    for file in files:
        for case in ElementTree.parse(file).iter("testcase"):
            name = f"{case.get('classname')}::{case.get('name')}"
            skip = case.find("skipped")
            if skip is not None:
                skipped[name].append(skip.get("message", ""))
                continue
            ran.add(name)
            where = file.stem.removeprefix("pytest-")
            results.seconds[f"{where}: {name}"] = float(case.get("time", 0))
            failed = any(case.find(kind) is not None for kind in ["failure", "error"])
            results.failed += failed
            results.passed += not failed
    # A module that is skipped as a whole is one case without tests; its tests have the module's name in other environments.
    modules = {name.split("::")[0] for name in ran}
    for name, messages in skipped.items():
        module = name.strip(":").split("::")[-1]
        if name not in ran and not any(known == module or known.endswith(f".{module}") for known in modules):
            results.skips.append((f"python: {name}", messages[0]))
