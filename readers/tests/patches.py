"""Prints damage for `driver patched`: lines `FILE OFFSET:BYTE …`, each of which changes golden/tiny in one way.

    python3 patches.py DIR flips     every bit of every file
    python3 patches.py DIR mended    every bit that a CRC covers, except bits of CRCs, with the CRCs corrected
"""

import struct
import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
from shardtool_reader import crc32c, masked  # noqa: E402

folder, what = Path(sys.argv[1]), sys.argv[2]
MANIFEST, SHARD, INDEX = "dataset.json", "train-00000.tfrecord", "_index/train-00000.tfrecord.index"


def show(name: str, before: bytes, after: bytes):
    print(name, *(f"{i}:{b}" for i, b in enumerate(after) if b != before[i]))


def mend_manifest(data: bytearray):
    end = len(data) - 12
    data[end : end + 8] = b"00000000"
    data[end : end + 8] = b"%08x" % crc32c(data)
    return data


def mend_frame(data: bytearray, at: int, length: int):
    struct.pack_into("<I", data, at + 8, masked(crc32c(data[at : at + 8])))
    struct.pack_into("<I", data, at + 12 + length, masked(crc32c(data[at + 12 : at + 12 + length])))
    return data


def mend_index(data: bytearray, parts: list):
    for at, offset, length in parts:
        struct.pack_into("<I", data, at, crc32c(data[offset : offset + length]))
    (directory,) = struct.unpack_from("<I", data, 44)
    if directory <= len(data) - 64:
        struct.pack_into("<I", data, 56, crc32c(data[64 : 64 + directory]))
    struct.pack_into("<I", data, 60, crc32c(data[:60]))
    return data


def flips(name: str, ranges, mend):
    sound = (folder / name).read_bytes()
    for first, last in ranges:
        for bit in range(8 * first, 8 * last):
            data = bytearray(sound)
            data[bit // 8] ^= 1 << bit % 8
            show(name, sound, mend(data))


manifest, shard, index = ((folder / name).read_bytes() for name in (MANIFEST, SHARD, INDEX))
if what == "flips":
    for name, data in ((MANIFEST, manifest), (SHARD, shard), (INDEX, index)):
        flips(name, [(0, len(data))], lambda data: data)
else:
    flips(MANIFEST, [(0, len(manifest) - 12)], mend_manifest)
    at = 0
    while at < len(shard):
        (length,) = struct.unpack_from("<Q", shard, at)
        flips(SHARD, [(at, at + 8), (at + 12, at + 12 + length)], lambda data: mend_frame(data, at, length))
        at += 16 + length
    parts = []
    for entry in range(64, 64 + 48 * struct.unpack_from("<I", index, 20)[0], 48):
        offset1, length1, offset2, length2 = struct.unpack_from("<QQQQ", index, entry + 8)
        parts += [(entry + 40, offset1, length1)] + ([(entry + 44, offset2, length2)] if length2 else [])
    flips(INDEX, [(0, 60), (64, len(index))], lambda data: mend_index(data, parts))
