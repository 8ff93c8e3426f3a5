"""Runs the Rust test programs and writes the time and the skips of each test.

Usage: rust_tests.py [--results NAME] [--target] [--lib] [--skip TESTS]… [--deadline SECONDS] [PACKAGE…]

`cargo test` does not report how long a test took, nor what a passed test printed. The programs are those that it would run, one
after the other, in the folder of their package. Results go to target/test-logs/NAME.json. With `--target`, as scripts/aarch64
runs it, the packages are built alone, without those that test another one, and their programs run by cargo's runner; with
`--lib` only the tests inside of the crates. `--skip` leaves out the tests whose names contain a text. A program is ended after
`--deadline`, and the tests that had not ended are failures.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time

from results import LOGS, SKIPPED
from steps import ROOT


def programs(packages: list[str], alone: bool, lib: bool) -> list[tuple[pathlib.Path, str, pathlib.Path]]:
    """Returns folder of the package, name and path of every test program; builds what is not built."""
    which = [word for name in packages for word in ("-p", name)] if alone else ["--workspace", "--exclude", "shardtool-benches"]
    command = ["cargo", "test", *which, *(["--lib"] if lib else []), "--locked", "--no-run", "--message-format", "json"]
    built = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=ROOT)
    found = []
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or not message["executable"] or not message["profile"]["test"]:
            continue
        folder = pathlib.Path(message["manifest_path"]).parent
        package = re.search(r"^name = \"(.*)\"", (folder / "Cargo.toml").read_text(), re.MULTILINE)[1]
        if not packages or package in packages:
            found.append((folder, f"{folder.name}/{message['target']['name']}", pathlib.Path(message["executable"])))
    return sorted(found, key=lambda program: program[1])


def runner() -> list[str]:
    """Returns the command that runs programs of `CARGO_BUILD_TARGET`: none if it is this processor's."""
    target = os.environ.get("CARGO_BUILD_TARGET", "").upper().replace("-", "_")
    return os.environ.get(f"CARGO_TARGET_{target}_RUNNER", "").split()


def run(folder: pathlib.Path, name: str, program: pathlib.Path, left_out: list[str], deadline: int) -> list[dict]:
    """Runs one program; returns its tests, and prints one line, and the output of what failed."""
    # The times of tests are an unstable option of libtest.
    command = [*runner(), program, "-Z", "unstable-options", "--report-time", "--show-output", "--format", "json"]
    command += [word for name in left_out for word in ("--skip", name)]
    environment = {**os.environ, "RUSTC_BOOTSTRAP": "1", "CARGO_MANIFEST_DIR": str(folder)}
    since = time.monotonic()
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=deadline
        )
        output, status = done.stdout, f"status {done.returncode}" if done.returncode else ""
    except subprocess.TimeoutExpired as expired:
        output, status = expired.stdout or b"", f"ended after {deadline} s"
    return tests_of(name, output.decode(errors="replace"), status, time.monotonic() - since)


def tests_of(name: str, printed: str, status: str, seconds: float) -> list[dict]:
    """Returns the tests in what a program printed; `status` says how it failed, if it did."""
    tests = []
    started: set[str] = set()
    for line in printed.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if not isinstance(event, dict) or event.get("type") != "test":
            continue
        if event["event"] == "started":
            started.add(event["name"])
            continue
        if event["event"] == "timeout":
            continue
        started.discard(event["name"])
        output = event.get("stdout", "")
        failed = event["event"] not in ("ok", "ignored")
        skips = SKIPPED.findall(output) + (["#[ignore]"] if event["event"] == "ignored" else [])
        tests.append(
            {"name": f"{name}::{event['name']}", "seconds": event.get("exec_time", 0), "failed": failed, "skips": skips}
        )
        if failed:
            print(f"---- {name}::{event['name']}\n{output}")
    if status and not any(test["failed"] for test in tests):
        print(f"---- {name}: {status}; not ended: {', '.join(sorted(started)) or 'none'}\n{printed[-4000:]}")
        tests.append({"name": name, "seconds": 0, "failed": True, "skips": []})
    failed = sum(test["failed"] for test in tests)
    if tests:
        print(f"{name}: {len(tests) - failed} passed, {failed} failed, {seconds:.1f} s", flush=True)
    return tests


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", default="rust")
    parser.add_argument("--target", action="store_true")
    parser.add_argument("--lib", action="store_true")
    parser.add_argument("--skip", action="append", default=[])
    parser.add_argument("--deadline", type=int, default=900)
    parser.add_argument("packages", nargs="*")
    arguments = parser.parse_args()
    found = programs(arguments.packages, arguments.target, arguments.lib)
    tests = [test for program in found for test in run(*program, arguments.skip, arguments.deadline)]
    LOGS.mkdir(parents=True, exist_ok=True)
    (LOGS / f"{arguments.results}.json").write_text(json.dumps(tests))
    failed = [test["name"] for test in tests if test["failed"]]
    print(f"{len(tests) - len(failed)} passed, {len(failed)} failed")
    for name in failed:
        print(f"failed: {name}")
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
