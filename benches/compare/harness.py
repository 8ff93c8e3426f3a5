"""What comparisons of loaders share: running one, and a table of the results."""

import json
import os
import pathlib
import platform
import statistics
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Limit of one run of a loader, including its installation.
LIMIT_S = 1800


def call(*command, **options):
    command = [str(part) for part in command]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT_S, **options).stdout


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def build():
    """Builds the command; returns its path."""
    call("cargo", "build", "--release", cwd=ROOT)
    return ROOT / "target/release/shardtool"


def ours(shardtool, dataset, work, name="shardtool", more=()):
    """Runs one epoch of our loader, with `more` options."""
    options = ["--work", work, "--epochs", "1", "--workers", "2", "--batch", "256", "--json", *more]
    found = json.loads(call(shardtool, "bench", dataset, *options))
    version = call(shardtool, "--version").split()[-1]
    return {"name": name, "version": version, "images": found["samples"]} | {
        key: found[key] for key in ("images_per_s", "cpu_s_per_1000", "peak_anon_bytes")
    }


def run_peer(name, environment, script, arguments, path=""):
    """Runs another loader; returns its result, or the cause of its failure. `path` are further folders of packages."""
    try:
        python = call(ROOT / "scripts/python-env", environment).strip()
        found = last_json(call(python, script, *arguments, env={**os.environ, "PYTHONPATH": path}))
        print(json.dumps(found), flush=True)
        return found, None
    except (subprocess.SubprocessError, ValueError, IndexError) as error:
        said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
        # pip writes the cause first and advice last; the cause names a missing package.
        causes = [line for line in said if "could not" in line.lower()]
        causes = causes or [line for line in said if "error" in line.lower()] or said
        cause = causes[0].strip() if causes else type(error).__name__
        print(f"{name}: {cause}", flush=True)
        return None, cause


def machine():
    cpu = next(line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name"))
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    return f"{len(os.sched_getaffinity(0))} cores of {cpu}, {memory >> 20} GiB, {platform.system()} {platform.release().split('-')[0]}"


def table(runs, errors, first):
    """Returns the lines of a table: medians, and the rate of `first` divided by that of each, round by round, the median."""
    lines = [
        "| loader | version | images/s | ratio | CPU s per 1,000 | peak anonymous MB |",
        "|---|---|---|---|---|---|",
    ]
    own = [run["images_per_s"] for run in runs[first]]
    for name, found in runs.items():
        middle = {key: statistics.median(run[key] for run in found) for key in ("images_per_s", "cpu_s_per_1000", "peak_anon_bytes")}
        ratio = statistics.median(mine / run["images_per_s"] for mine, run in zip(own, found))
        lines.append(
            f"| {name} | {found[0]['version']} | {middle['images_per_s']:,.0f} | {ratio:.2f} |"
            f" {middle['cpu_s_per_1000']:.2f} | {middle['peak_anon_bytes'] / 1e6:,.0f} |"
        )
    lines += [f"| {name} | did not run: {error.replace('|', ' ')} | | | | |" for name, error in errors.items()]
    return lines
