"""Lines that listings of the golden datasets must contain, from the specification and the sources of the fixtures.

    python3 expected.py ROOT    prints `FOLDER: TEXT` lines; each TEXT must be found in that dataset's listing
"""

import re
import sys
from pathlib import Path

root = Path(sys.argv[1])


def crc32c(data: bytes) -> str:
    """Bit by bit, so that it shares no table with the readers."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return f"{crc ^ 0xFFFFFFFF:08x}"


def image(data: bytes) -> str:
    return f"{len(data)} {crc32c(data)}"


def split(name: str, shards: list) -> str:
    """The line that begins a split, from the document's section on fingerprints."""
    packed = b"".join(r.to_bytes(8, "little") + b.to_bytes(8, "little") + c.to_bytes(4, "little") for r, b, c in shards)
    return f"{name}: {sum(s[0] for s in shards)} records, fingerprint {crc32c(packed)}"


text = (root / "format-spec.md").read_text(encoding="utf-8")
pixels = [bytes.fromhex(p) for p in re.findall(r"^[0-9a-f]{4}  ((?:[0-9a-f]{2} )+) *the pixels", text, re.M)]
keys = re.findall(r'value: "(.*\.png)"', text)
labels = re.findall(r"feature:image/class/label: (\d+)$", text, re.M)
sizes = list(zip(*(re.findall(rf"feature:image/{side}: (\d+)$", text, re.M) for side in ("height", "width"))))
(fingerprint,) = re.findall(r"Its fingerprint is `([0-9a-f]{8})`", text)
assert len(pixels) == len(keys) == len(labels) == len(sizes) == 2
for folder in ("tiny", "later-minor"):
    print(f"{folder}: train: 2 records, fingerprint {fingerprint}")
    for i in range(2):
        height, width = sizes[i]
        print(f"{folder}: train {i} {keys[i]} {labels[i]} {image(pixels[i])} ")
        print(f"{folder}: {height}x{width}")  # of the pixels, from the record
        if folder == "tiny":
            print(f"{folder}: image/height={height} image/width={width} ")  # from the index

print("mixed:", split("none", []))
for source in sorted((root / "fixtures/sources").iterdir()):
    if source.suffix in (".jpg", ".png"):
        print(f"mixed: {image(source.read_bytes())} ")
key = "latin1/\\xe9.raw"  # a key that is not UTF-8, twice
print(f"mixed: foreign 0 {key} ")
print(f"mixed: foreign 1 {key} ")

print("adopted: photos: 3 records")
print("adopted: photos 0 a.jpg ")  # a key from image/filename, and two from the record's number
print("adopted: photos 1 photos-00000-of-00001#1 ")
print("adopted: photos 2 photos-00000-of-00001#2 ")
print("adopted:  - - cls=")  # a record without an image
print("opaque: train 0 records.tfrecord#0 - - - no-pixels")
