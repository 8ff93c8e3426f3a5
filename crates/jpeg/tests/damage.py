"""Compares what this crate makes of damaged JPEGs with what libjpeg-turbo makes of them, bit for bit.

    cargo build --release -p shardtool-jpeg --example crc
    python crates/jpeg/tests/damage.py target/release/examples/crc [COUNT [SEED [FOLDER]...]]

Needs numpy, and Pillow built with libjpeg-turbo. The files are those of `forms.py` and those of each FOLDER, cut or damaged
after their first scan header: bits, bytes and markers are changed, removed and inserted. The whole image, its reductions and random
rectangles, in RGB and in grey, with and without vector instructions and entry points, must equal Pillow's, or both must refuse the
file. As libjpeg does at the end of a file, Pillow reads EOI markers after it. Files are numbered: a SEED and a number
always give the same file.

One case is counted apart: where bytes ff ff 00 are among the data of a sequential scan, libjpeg-turbo decodes an MCU twice, and keeps
coefficients of the first try that the second one does not set (`decode_mcu_fast` in `jdhuff.c`). Only samples of that MCU may differ
then, and, of subsampled chroma, the pixels next to it.
"""

import collections
import io
import itertools
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings
import zlib

import numpy as np
from PIL import Image, ImageFile, features

from forms import make, random_rect
from oracle import reference, references

#: Bytes after the data.
END = b"\xff\xd9" * 33_000


def scan_data(jpeg):
    """Returns where the data of the first scan begin; the file's length if there are none."""
    header = jpeg.find(b"\xff\xda")
    return len(jpeg) if header < 0 else header + 2 + int.from_bytes(jpeg[header + 2 : header + 4], "big")


def damage(rng, jpeg, start):
    """Returns the file with damage from byte `start` on, and the kind of damage."""
    body = bytearray(jpeg[start:])
    at = rng.randrange(len(body) + 1)
    some = bytes(rng.choice([0, 255, rng.randrange(256)]) for _ in range(rng.choice([1, 2, 20])))
    restarts = [m.start() for m in re.finditer(b"\xff[\xd0-\xd7]", bytes(body))]
    kind = rng.choice(["cut", "cut", "bits", "bits", "bytes", "removed", "inserted", "marker", "restart"])
    if kind == "cut":
        del body[at:]
    elif kind == "bits":
        for _ in range(rng.choice([1, 1, 2, 5])):
            body[rng.randrange(len(body))] ^= 1 << rng.randrange(8)
    elif kind == "bytes":
        body[at : at + len(some)] = some
    elif kind == "removed":
        del body[at : at + rng.choice([1, 3, 100])]
    elif kind == "inserted":
        body[at:at] = some
    elif kind == "marker":
        body[at:at] = bytes([255, rng.choice([0xD0 + rng.randrange(8), rng.randrange(256)])])
    elif restarts:
        for at in rng.sample(restarts, rng.randint(1, min(3, len(restarts)))):
            body[at + 1] = rng.choice([0, 1, 0xD0 + rng.randrange(8), 0xD0 + rng.randrange(8)])
        if rng.random() < 0.4:
            at = rng.choice(restarts)
            del body[at : at + 2]
    else:
        kind = "none"
    return jpeg[:start] + bytes(body), kind


def kept(jpeg, divisor, gray):
    """Returns the pixels that libjpeg has made when it finds an error after the last row, which Pillow keeps on request."""
    ImageFile.LOAD_TRUNCATED_IMAGES = True
    try:
        return reference(io.BytesIO(jpeg), divisor, gray)
    finally:
        ImageFile.LOAD_TRUNCATED_IMAGES = False


def checksum(image):
    return f"{image.width} {image.height} {zlib.crc32(image.tobytes()):08x}"


def mcu_size(jpeg):
    """Returns width and height of an MCU in pixels, from the frame header."""
    at = 2
    while jpeg[at + 1] not in (0xC0, 0xC1, 0xC2):
        at += 1 if jpeg[at + 1] == 0xFF else 2 + int.from_bytes(jpeg[at + 2 : at + 4], "big")
    count = jpeg[at + 9]
    factors = [jpeg[at + 11 + 3 * i] for i in range(count)]
    # The MCU of a single component is a block.
    return (8, 8) if count == 1 else (8 * max(f >> 4 for f in factors), 8 * max(f & 15 for f in factors))


def differing_mcus(answer, theirs, rect, divisor, mcu):
    """Returns the positions of MCUs that, with one pixel around them, hold all pixels that differ."""
    width, height, pixels, _ = answer.split(" ", 3)
    ours = np.frombuffer(bytes.fromhex(pixels), np.uint8).reshape(int(height), int(width), -1)
    rows, columns = np.nonzero((ours != np.asarray(theirs).reshape(ours.shape)).any(axis=2))

    def possible(found, start, side):
        side, low, high = side // divisor, start + int(found.min()), start + int(found.max())
        return [n for n in range(max(low // side - 1, 0), low // side + 2) if n * side - 1 <= low and high <= n * side + side]

    return set(itertools.product(possible(columns, rect[0], mcu[0]), possible(rows, rect[1], mcu[1])))


def main():
    warnings.simplefilter("ignore")
    # libjpeg writes its warnings there.
    sys.stderr = os.fdopen(os.dup(2), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    assert features.check("libjpeg_turbo"), "this test needs Pillow with libjpeg-turbo"
    Image.MAX_IMAGE_PIXELS = None
    binary, arguments = sys.argv[1], sys.argv[2:]
    count, seed = int((arguments + ["300"])[0]), int((arguments[1:] + ["1"])[0])
    files = sorted(os.path.join(d, f) for top in arguments[2:] for d, _, files in os.walk(top) for f in files)
    rng = random.Random(seed)
    requests, expected, seen = [], [], collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = os.environ.get("KEEP") or scratch
        for number in range(count):
            if files and number % 2:
                with open(files[number // 2 % len(files)], "rb") as f:
                    good, notes = f.read(), {"file"}
                if not good.startswith(b"\xff\xd8"):
                    continue
            else:
                good, notes = make(seed, number)
            start = scan_data(good)
            if start >= len(good):
                continue
            jpeg, kind = damage(rng, good, start)
            notes = notes | ({"twice"} if b"\xff\xff\0" in jpeg else set())
            path = os.path.join(folder, f"{number:05}.jpg")
            with open(path, "wb") as f:
                f.write(jpeg)
            seen[kind] += 1
            ended = jpeg + END
            # In grey, libjpeg does not look at the sampling of chroma.
            for divisor, gray, whole, size in references(ended, "fractional sampling" not in notes):
                refused = isinstance(whole, Exception)
                rects = [None] + ([] if refused else [random_rect(rng, *size), random_rect(rng, *size), None])
                for mode, rect in zip(("plain", "entries", "portable", "portable"), rects):
                    x, y, w, h = rect or (0, 0, 0, 0)
                    line = f"{path} {divisor} {x} {y} {w} {h} {mode}-fill{'-gray' if gray else ''}"
                    requests.append((path, kind, line, notes))
                    if refused:
                        expected.append(f"error {type(whole).__name__}: {whole}")
                        continue
                    part = whole.crop((x, y, x + w, y + h)) if rect else whole
                    expected.append(checksum(part))
        lines = "\n".join(line for _, _, line, _ in requests)
        answers = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
        assert len(answers) == len(requests)
        equal, refusals, wrong, late, twice = collections.Counter(), collections.Counter(), [], 0, {}
        for (path, kind, request, notes), want, got in zip(requests, expected, answers):
            pixels = got.rsplit(" ", 1)[0]
            if want.startswith("error") and got.startswith("error"):
                refusals[re.sub(r"\d+", "N", f"{got}  |  {want}")] += 1
                continue
            if pixels == want:
                equal[f"{kind}, {got.rsplit(' ', 1)[1]}"] += 1
                continue
            divisor, *rect = map(int, request.rsplit(" ", 6)[1:6])
            with open(path, "rb") as f:
                jpeg = f.read()
            gray, ended = request.endswith("-gray"), jpeg + END
            theirs = kept(ended, divisor, gray) if want.startswith("error") else reference(io.BytesIO(ended), divisor, gray)
            if want.startswith("error") and checksum(theirs) == pixels:
                late += 1
                continue
            if "twice" in notes and not got.startswith("error"):
                x, y, w, h = rect
                part = theirs.crop((x, y, x + w, y + h)) if w else theirs
                answer = subprocess.run([binary], input=request + "-hex", capture_output=True, text=True, check=True).stdout
                found = differing_mcus(answer, part, rect, divisor, mcu_size(jpeg))
                twice[path] = twice.get(path, found) & found
                # The same MCU in all requests.
                if twice[path]:
                    continue
            wrong.append(f"{request}: expected {want}, found {got} ({kind}, {', '.join(sorted(notes))})")
    print(f"Pillow with libjpeg-turbo {features.version('libjpeg_turbo')}: {sum(seen.values())} files: {dict(sorted(seen.items()))}")
    print(f"{sum(equal.values())} decodes equal: {dict(sorted(equal.items()))}")
    print(f"{late} decodes equal to those of an error after the last row; {sum(refusals.values())} decodes refused by both")
    print(f"{len(twice)} files with an MCU that libjpeg-turbo decodes twice")
    for text, n in sorted(refusals.items()):
        print(f"  {n} x {text}")
    for line in wrong[: int(os.environ.get("SHOWN", "20"))]:
        print(line)
    print(f"{len(wrong)} wrong")
    sys.exit(1 if wrong or sum(equal.values()) < 2 * count else 0)


if __name__ == "__main__":
    main()
