"""Damages a small dataset of one shard in every bit, and compares the answers of readers.

    python3 damage.py flips DATASET READER…     every bit of every file: each reader must find something
    python3 damage.py mended DATASET READER…    every bit that a CRC covers, except bits of CRCs, with the CRCs corrected

READER is a command of the conformance kit's protocol that implements `all`. All readers must print the same lines for
`verify` and `read`, in any order.
"""

import json
import shutil
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
from shardtool_reader import crc32c, masked  # noqa: E402

MANIFEST, SHARD, INDEX = "dataset.json", "train-00000.tfrecord", "_index/train-00000.tfrecord.index"
SHOWN = 20


class Reader:
    """A reader that answers requests until its input ends."""

    def __init__(self, command: str):
        self.command = command
        self.process = subprocess.Popen(
            [*command.split(), "all"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8"
        )

    def ask(self, task: str, path: Path) -> list:
        """Returns the lines of an answer, sorted."""
        self.process.stdin.write(f"{task} {path}\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            found = json.loads(line)
            if found == {"end": 0}:
                return sorted(lines)
            lines.append(json.dumps(found, sort_keys=True))
        sys.exit(f"{self.command}: ended with status {self.process.wait()} at {task}")


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


def flips(data: bytes, ranges: list, mend):
    """Yields the number of each bit and the data with that bit flipped."""
    for first, last in ranges:
        for bit in range(8 * first, 8 * last):
            flipped = bytearray(data)
            flipped[bit // 8] ^= 1 << bit % 8
            mend(flipped)
            yield bit, flipped


def damaged(kind: str, files: dict):
    """Yields the name of a file, the number of a bit, and the file with that bit flipped."""
    if kind == "flips":
        for name, data in files.items():
            for bit, flipped in flips(data, [(0, len(data))], lambda flipped: None):
                yield name, bit, flipped
        return
    for bit, flipped in flips(files[MANIFEST], [(0, len(files[MANIFEST]) - 12)], mend_manifest):
        yield MANIFEST, bit, flipped
    for at, length in frames(files[SHARD]):
        ranges = [(at, at + 8), (at + 12, at + 12 + length)]
        for bit, flipped in flips(files[SHARD], ranges, lambda flipped, at=at, length=length: mend_frame(flipped, at, length)):
            yield SHARD, bit, flipped
    listed = list(parts(files[INDEX]))
    ends = [64 + struct.unpack_from("<I", files[INDEX], 44)[0], *(offset + length for _, offset, length in listed)]
    ranges = [(0, 60), (64, ends[0]), *((offset, offset + length) for _, offset, length in listed)]
    ranges += [(end, min(end + 1, len(files[INDEX]))) for end in ends if end % 64]  # the first byte of each padding
    for bit, flipped in flips(files[INDEX], ranges, lambda flipped: mend_index(flipped, listed)):
        yield INDEX, bit, flipped


def main() -> int:
    kind, dataset, *commands = sys.argv[1:]
    readers = [Reader(command) for command in commands]
    folder = Path(tempfile.mkdtemp())
    failures = count = findings = 0
    try:
        shutil.copytree(dataset, folder, dirs_exist_ok=True)
        files = {name: (folder / name).read_bytes() for name in (MANIFEST, SHARD, INDEX)}
        for name, bit, data in damaged(kind, files):
            (folder / name).write_bytes(data)
            count += 1
            for task in ("verify", "read") if kind == "mended" else ("verify",):
                answers = [reader.ask(task, folder) for reader in readers]
                findings += sum('"finding"' in line for line in answers[0])
                for command, answer in zip(commands, answers):
                    problem = ""
                    if answer != answers[0]:
                        problem = f"{commands[0]} prints {answers[0]}, {command} prints {answer}"
                    elif kind == "flips" and not any('"finding"' in line for line in answer):
                        problem = f"{command} finds nothing"
                    if problem:
                        failures += 1
                        if failures <= SHOWN:
                            print(f"{name}, bit {bit % 8} of byte {bit // 8}, {task}: {problem[:1000]}")
            (folder / name).write_bytes(files[name])
    finally:
        shutil.rmtree(folder)
    print(f"{Path(dataset).name}: {count} {kind}, {findings} findings, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
