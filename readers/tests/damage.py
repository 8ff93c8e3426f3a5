"""Damages a small dataset in every bit, and compares the answers of readers.

    python3 damage.py flips STEP DATASET READER…     every STEP-th bit of every file: each reader must find something
    python3 damage.py mended STEP DATASET READER…    every STEP-th bit that a CRC covers, except bits of CRCs, with the CRCs
                                                     corrected

READER is a command of the conformance kit's protocol that implements `all`. After `flips` all readers must print the same
findings for `verify`; after `mended` the same lines for `verify` and `read`, which only readers can that take keys and images
from the same place (the kit accepts both). In any order.
"""

import itertools
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
from shardtool_reader import crc32c, masked  # noqa: E402

MANIFEST = "dataset.json"
SHOWN = 20


class Reader:
    """A reader that answers requests until its input ends."""

    def __init__(self, command: str):
        self.command = command
        self.process = subprocess.Popen(
            [*command.split(), "all"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def ask(self, task: str, path: Path):
        self.process.stdin.write(f"{task} {path}\n")
        self.process.stdin.flush()

    def answer(self) -> list:
        """Returns the lines of the answer to the last request, sorted."""
        lines = []
        for line in self.process.stdout:
            found = json.loads(line)
            if found == {"end": 0}:
                return sorted(lines)
            lines.append(json.dumps(found, sort_keys=True))
        sys.exit(f"{self.command}: ended with status {self.process.wait()}")


# --- CRCs ---


def mend_manifest(data: bytearray):
    end = len(data) - 12
    data[end : end + 8] = b"00000000"
    data[end : end + 8] = b"%08x" % crc32c(data)


def mend_frame(data: bytearray, at: int, length: int):
    struct.pack_into("<I", data, at + 8, masked(crc32c(data[at : at + 8])))
    struct.pack_into("<I", data, at + 12 + length, masked(crc32c(data[at + 12 : at + 12 + length])))


def mend_index(data: bytearray, parts: list):
    for at, offset, length in parts:
        struct.pack_into("<I", data, at, crc32c(data[offset : offset + length]))
    (directory,) = struct.unpack_from("<I", data, 44)
    if directory <= len(data) - 64:
        struct.pack_into("<I", data, 56, crc32c(data[64 : 64 + directory]))
    struct.pack_into("<I", data, 60, crc32c(data[:60]))


def frames(shard: bytes):
    """Yields offset and length of each frame's data."""
    at = 0
    while at < len(shard):
        (length,) = struct.unpack_from("<Q", shard, at)
        yield at, length
        at += 16 + length


def parts(index: bytes):
    """Yields where the CRC of each part is, its offset and its length."""
    for number in range(struct.unpack_from("<I", index, 20)[0]):
        entry = 64 + 72 * number
        for part in range(3):
            offset, length = struct.unpack_from("<QQ", index, entry + 8 + 16 * part)
            if offset:
                yield entry + 56 + 4 * part, offset, length


# --- damage ---


def flips(data: bytes, ranges: list, mend, step: int):
    """Yields the number of every `step`-th bit and the data with that bit flipped."""
    for first, last in ranges:
        for bit in range(8 * first, 8 * last, step):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            mend(flipped)
            yield bit, flipped


def damaged(kind: str, step: int, name: str, data: bytes):
    """Yields the number of each bit of a file to flip, and the file with that bit flipped."""
    if kind == "flips":
        yield from flips(data, [(0, len(data))], lambda flipped: None, step)
    elif name == MANIFEST:
        yield from flips(data, [(0, len(data) - 12)], mend_manifest, step)
    elif name.endswith(".index"):
        listed = list(parts(data))
        ends = [64 + struct.unpack_from("<I", data, 44)[0], *(offset + length for _, offset, length in listed)]
        ranges = [(0, 60), (64, ends[0]), *((offset, offset + length) for _, offset, length in listed)]
        ranges += [(end, end + 1) for end in ends if end % 64]  # the first byte of each padding
        yield from flips(data, ranges, lambda flipped: mend_index(flipped, listed), step)
    else:
        for at, length in frames(data):
            ranges = [(at, at + 8), (at + 12, at + 12 + length)]
            yield from flips(data, ranges, lambda flipped, at=at, length=length: mend_frame(flipped, at, length), step)


def problem(kind: str, answers: list, commands: list) -> str:
    """Returns what is wrong with the answers, or nothing."""
    if kind == "flips":  # records that a finding names may count as good or not
        answers = [[line for line in answer if '"finding"' in line] for answer in answers]
    for command, answer in zip(commands, answers):
        if answer != answers[0]:
            return f"{commands[0]} prints {answers[0]}, {command} prints {answer}"
        if kind == "flips" and not answer:
            return f"{command} finds nothing"
    return ""


def work(arguments: list, job: int, jobs: int):
    """Damages every `jobs`-th bit. Returns the numbers of bits, findings and failures, and what failed."""
    kind, step, dataset, *commands = arguments
    readers = [Reader(command) for command in commands]
    count, findings, failures = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder, "dataset")
        shutil.copytree(dataset, folder, ignore=shutil.ignore_patterns("expected.json"))
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            path.chmod(0o644)
            good = path.read_bytes()
            for bit, data in itertools.islice(damaged(kind, int(step), path.name, good), job, None, jobs):
                path.write_bytes(data)
                count += 1
                for task in ("verify", "read") if kind == "mended" else ("verify",):
                    for reader in readers:
                        reader.ask(task, folder)
                    answers = [reader.answer() for reader in readers]
                    findings += sum('"finding"' in line for line in answers[0])
                    wrong = problem(kind, answers, commands)
                    if wrong:
                        failures.append(f"{path.name}, bit {bit % 8} of byte {bit // 8}, {task}: {wrong[:1000]}")
            path.write_bytes(good)
    return count, findings, failures


def main() -> int:
    jobs = os.cpu_count() or 1
    with ProcessPoolExecutor(jobs) as pool:
        counts, findings, failures = zip(*pool.map(work, [sys.argv[1:]] * jobs, range(jobs), [jobs] * jobs))
    failures = [text for texts in failures for text in texts]
    print("\n".join(failures[:SHOWN]), end="\n" if failures else "")
    print(f"{Path(sys.argv[3]).name}: {sum(counts)} {sys.argv[1]}, {sum(findings)} findings, {len(failures)} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
