#!/usr/bin/env python3
"""What changes cost with very many shards or versions, in a folder and in an S3 server.

    python benches/python/many_shards.py [--shards N] [--versions N] [--tool SHARDTOOL] [--server STORE_SERVER]

Writes N shards (default 100,000) of two records, adds a column, deletes 1 %, and opens the first and the newest version; then makes N
versions (default 1,000) of a dataset of 1,000 shards, and opens the first and the last one. Everything is done in a folder in memory,
then with the same files in the server (`cargo build --example store-server`), whose requests and bytes sent are counted. What is
written is read back.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time

import numpy as np

import shardtool as st

ROOT = pathlib.Path(__file__).resolve().parents[2]
PIXELS = np.zeros((8, 8, 3), np.uint8)
URL = "s3://bucket/"


class Server:
    """Serves `folder/s3`, and counts what it sends."""

    def __init__(self, program: pathlib.Path, folder: pathlib.Path) -> None:
        self.process = subprocess.Popen([program, folder / "s3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(5):
            name, value = self.line().removeprefix("export ").split("=", 1)
            os.environ[name] = value

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def counts(self) -> tuple[int, int]:
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        _, requests, _, size = self.line().split()
        return int(requests), int(size)


class Measured:
    """Runs commands on the dataset in a folder, or the same files in a server."""

    def __init__(self, tool: pathlib.Path, server: Server | None) -> None:
        self.tool, self.server = tool, server

    def run(self, what: str, *arguments: str) -> str:
        before, begin = self.server.counts() if self.server else (0, 0), time.perf_counter()
        done = subprocess.run([self.tool, *arguments], capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - begin
        assert done.returncode == 0, done.stderr
        sent = ""
        if self.server:
            requests, size = (after - was for after, was in zip(self.server.counts(), before, strict=True))
            sent = f" {requests:9,} requests {size / 1e6:10.2f} MB sent"
        print(f"  {what:<44} {seconds:8.2f} s{sent}", flush=True)
        return done.stdout


def write(folder: pathlib.Path, shards: int) -> None:
    with st.Writer(folder, "train", shard_size=600) as writer:
        for number in range(2 * shards):
            writer.write({"key": f"{number:08}", "image": PIXELS})
    assert len(list(folder.glob("*.tfrecord"))) == shards, len(list(folder.glob("*.tfrecord")))


def size(folder: pathlib.Path) -> float:
    return sum(path.stat().st_size for path in folder.iterdir()) / 1e6


def many_shards(measured: Measured, dataset: str, files: pathlib.Path, shards: int, folder: pathlib.Path) -> None:
    scores = folder / "scores.npy"
    np.save(scores, np.arange(2 * shards, dtype=np.float32))
    gone = folder / "gone.txt"
    gone.write_text("".join(f"{number}\n" for number in range(0, 2 * shards, 100)))
    measured.run("open, and list a record", "ls", dataset, "--count", "1")
    measured.run("add a number to every record", "column", "add", dataset, str(scores), "--rows-of", "1", "--name", "score")
    measured.run("delete 1 %, by ids", "delete", dataset, "--ids", str(gone))
    listed = measured.run("list a record with its column", "ls", dataset, "--count", "1", "--column", "score", "--json")
    assert json.loads(listed)["listed"][0]["columns"]["score"] == 1.0
    measured.run("open version 1, and list a record", "ls", f"{dataset}@1", "--count", "1")
    print(f"  manifest {(files / 'dataset.json').stat().st_size / 1e6:.1f} MB, _versions {size(files / '_versions'):.1f} MB")


def many_versions(measured: Measured, dataset: str, files: pathlib.Path, versions: int) -> None:
    measured.run("open version 1, and list a record", "ls", f"{dataset}@1", "--count", "1")
    measured.run(f"open version {versions}, and list a record", "ls", dataset, "--count", "1")
    measured.run(f"open version {versions // 2}", "ls", f"{dataset}@{versions // 2}", "--count", "1")
    log = json.loads(measured.run("log", "log", dataset, "--json"))
    assert len(log["versions"]) == versions
    measured.run("one more version", "tag", dataset, "last")
    print(f"  _versions {size(files / '_versions'):.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shards", type=int, default=100_000)
    parser.add_argument("--versions", type=int, default=1_000)
    parser.add_argument("--tool", type=pathlib.Path, default=ROOT / "target/debug/shardtool")
    parser.add_argument("--server", type=pathlib.Path, default=ROOT / "target/debug/examples/store-server")
    arguments = parser.parse_args()
    memory = pathlib.Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as temporary:
        folder = pathlib.Path(temporary)
        bucket = folder / "s3" / "bucket"
        bucket.mkdir(parents=True)
        begin = time.perf_counter()
        write(folder / "wide", arguments.shards)
        print(f"{arguments.shards:,} shards of two records, written in {time.perf_counter() - begin:.0f} s; in a folder:", flush=True)
        shutil.copytree(folder / "wide", bucket / "wide")
        local = Measured(arguments.tool, None)
        many_shards(local, str(folder / "wide"), folder / "wide", arguments.shards, folder)
        shutil.rmtree(folder / "wide")
        server = Server(arguments.server, folder)
        stored = Measured(arguments.tool, server)
        print("in a store:", flush=True)
        many_shards(stored, f"{URL}wide", bucket / "wide", arguments.shards, folder)
        shutil.rmtree(bucket / "wide")
        write(folder / "long", 1000)
        dataset = st.Dataset(folder / "long")
        begin = time.perf_counter()
        for number in range(arguments.versions - 1):
            dataset = dataset.tag(f"v{number}")
        seconds = time.perf_counter() - begin
        print(f"1,000 shards, {arguments.versions:,} versions, made in {seconds:.1f} s; in a folder:", flush=True)
        shutil.copytree(folder / "long", bucket / "long")
        many_versions(local, str(folder / "long"), folder / "long", arguments.versions)
        print("in a store:", flush=True)
        many_versions(stored, f"{URL}long", bucket / "long", arguments.versions)
        server.process.communicate("")


if __name__ == "__main__":
    main()
