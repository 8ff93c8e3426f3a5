#!/usr/bin/env python3
"""`shardtool pack` in parts, by 1, 2 and 4 workers at a time: images per second, and the share of planning and commit.

    python benches/python/parts.py SHARDTOOL PHOTOS [--copies N] [--parts N] [--rounds N]

SHARDTOOL is the binary. The photographs of the folder PHOTOS are linked N times into class folders, and packed by one process, then
in parts by 1, 2 and 4 processes at a time, each with one thread, all variants in each round. Every result is compared with that of one
process, byte by byte.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import pathlib
import statistics
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

WORKERS = (1, 2, 4)


def files(folder: pathlib.Path) -> dict[str, str]:
    """Returns the checksum of each file of a folder, by its path there."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shardtool", type=pathlib.Path)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("--copies", type=int, default=10)
    parser.add_argument("--parts", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    binary = str(options.shardtool.resolve())

    def run(*arguments: object) -> float:
        since = time.perf_counter()
        subprocess.run([binary, *map(str, arguments)], check=True, capture_output=True)
        return time.perf_counter() - since

    photos = sorted(path for path in options.photos.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for copy in range(options.copies):
            (folder / "source" / f"class{copy:03}").mkdir(parents=True)
            for number, photo in enumerate(photos):
                data = photo.resolve()
                os.symlink(data, folder / "source" / f"class{copy:03}" / f"{number:05}.jpg")
        images = options.copies * len(photos)
        shared = ["--shards", 2 * options.parts]
        whole: list[float] = []
        times: dict[int, list[tuple[float, float, float]]] = {workers: [] for workers in WORKERS}
        for turn in range(options.rounds):
            one = folder / f"one{turn}"
            whole.append(run("pack", folder / "source", one, *shared, "--jobs", 2))
            expected = files(one)
            for workers in WORKERS:
                many = folder / f"many{turn}-{workers}"
                planned = run("pack", folder / "source", many, *shared, "--plan-only")
                since = time.perf_counter()
                with ThreadPoolExecutor(workers) as pool:
                    part = lambda i: run("pack", folder / "source", many, *shared, "--jobs", 1, "--part", f"{i}/{options.parts}")  # noqa: E731
                    list(pool.map(part, range(options.parts)))
                packed = time.perf_counter() - since
                times[workers].append((planned, packed, run("commit", many)))
                assert files(many) == expected, "parts differ from one pack"
        print(f"{images} images, {os.cpu_count()} CPUs; medians of {options.rounds} rounds")
        alone = statistics.median(whole)
        print(f"one process, 2 threads: {images / alone:,.0f} images/s")
        for workers, found in times.items():
            planned, packed, committed = (statistics.median(column) for column in zip(*found, strict=True))
            total = planned + packed + committed
            print(
                f"{workers} workers: {images / total:,.0f} images/s, {alone / total:.2f} of one process; "
                f"plan {planned:.2f} s, parts {packed:.2f} s, commit {committed:.2f} s; "
                f"plan and commit are {100 * (planned + committed) / total:.1f} %"
            )


if __name__ == "__main__":
    main()
