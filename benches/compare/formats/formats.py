"""Compares decoders of progressive JPEG, PNG and WebP: this project's, other crates, Pillow, OpenCV and torchvision.

    cargo build --release --manifest-path benches/compare/formats/Cargo.toml
    PYTHON=$(scripts/python-env codecs)
    $PYTHON benches/compare/formats/formats.py PHOTOS BINARY [--images 100] [--rounds 7] [--only TEXT] [--old BINARY]

Encodes photographs with Pillow (16-bit PNG with OpenCV) into a temporary folder. First the pixels of every candidate are
compared with Pillow's; a difference above the documented one fails the run. Then each round decodes all images of a kind with
every candidate in turn, and the medians over the rounds are printed: CPU time per image, and the ratio of our time to that of
the candidate in the same round. Peak memory is that of Rust code, in addition to the pixels. `--old` adds another build of
this project's decoder.
"""

import argparse
import io
import pathlib
import statistics
import struct
import subprocess
import tempfile
import time

import cv2
import numpy as np
from PIL import Image

try:
    import torch
    import torchvision
except ImportError:
    torchvision = None

cv2.setNumThreads(1)


class Worker:
    """The Rust program."""

    def __init__(self, binary):
        self.process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def ask(self, *request):
        self.process.stdin.write((" ".join(map(str, request)) + "\n").encode())
        self.process.stdin.flush()

    def line(self, *request):
        self.ask(*request)
        return self.process.stdout.readline().split()

    def pixels(self, name, file):
        self.ask("pixels", name, file)
        width, height = struct.unpack("<II", self.process.stdout.read(8))
        return np.frombuffer(self.process.stdout.read(width * height * 3), np.uint8).reshape(height, width, 3)


def pillow(data):
    return np.asarray(Image.open(io.BytesIO(data)).convert("RGB"))


def opencv(data):
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_COLOR_RGB)


def vision(data):
    tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return torchvision.io.decode_image(tensor, torchvision.io.ImageReadMode.RGB)


def encode(photograph, kind):
    """Returns the bytes of a photograph as one kind of file."""
    out = io.BytesIO()
    match kind:
        case "JPEG, progressive 4:4:4":
            photograph.save(out, "JPEG", quality=90, progressive=True, subsampling=0)
        case "JPEG, progressive 4:2:0":
            photograph.save(out, "JPEG", quality=90, progressive=True, subsampling=2)
        case "PNG, RGB":
            photograph.save(out, "PNG")
        case "PNG, palette":
            photograph.quantize(256).save(out, "PNG")
        case "PNG, RGB of 16 bits":
            samples = np.asarray(photograph).astype(np.uint16)
            noise = np.random.default_rng(samples.shape[0]).integers(0, 16, samples.shape, np.uint16)
            return cv2.imencode(".png", (samples * 256 + noise)[:, :, ::-1])[1].tobytes()
        case "WebP, lossy":
            photograph.save(out, "WEBP", quality=80)
        case "WebP, lossless":
            photograph.save(out, "WEBP", lossless=True)
    return out.getvalue()


# For each kind, the crates that decode it.
KINDS = {
    "JPEG, progressive 4:4:4": ["zune-jpeg"],
    "JPEG, progressive 4:2:0": ["zune-jpeg"],
    "PNG, RGB": ["png", "zune-png"],
    "PNG, palette": ["png", "zune-png"],
    "PNG, RGB of 16 bits": ["png", "zune-png"],
    "WebP, lossy": ["image-webp", "rusty_webp", "libwebp"],
    "WebP, lossless": ["image-webp", "rusty_webp", "libwebp"],
}
# The largest difference from Pillow that a candidate may have; 0 for ours. zune-jpeg has other upsampling, and zune-png rounds
# 16 bits; OpenCV and torchvision have other versions of the libraries.
ALLOWED = {"zune-jpeg": 255, "zune-png": 1, "OpenCV": 255, "torchvision": 255}
PARTS = {"ours,crop": "crop of 0.3", "ours,grey": "grey", "ours,reduced": "to 32 x 32, reduced"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", type=pathlib.Path)
    parser.add_argument("binary")
    parser.add_argument("--images", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    parser.add_argument("--old")
    args = parser.parse_args()
    workers = {"ours": Worker(args.binary)}
    if args.old:
        workers["old"] = Worker(args.old)
    python = {"Pillow": pillow, "OpenCV": opencv}
    if torchvision:
        torch.set_num_threads(1)
        python["torchvision"] = vision
    paths = sorted(p for p in args.photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    paths = paths[:: max(1, len(paths) // args.images)][: args.images]
    with tempfile.TemporaryDirectory() as folder:
        for kind in (k for k in KINDS if args.only in k):
            compare(kind, paths, pathlib.Path(folder), workers, python, args.rounds)


def compare(kind, paths, folder, workers, python, rounds):
    folder = folder / kind.replace(" ", "_").replace(",", "").replace(":", "")
    folder.mkdir()
    files = []
    for i, path in enumerate(paths):
        photograph = Image.open(path).convert("RGB")
        # Colour profiles and the like are not compared.
        photograph.info.clear()
        data = encode(photograph, kind)
        (folder / f"{i:04}").write_bytes(data)
        files.append(data)
    # Name, worker (none for Python), name in the worker.
    crates = [("ours", workers["ours"], "ours")] + [(n, workers["ours"], n) for n in KINDS[kind]]
    crates += [(f"ours, {PARTS[n]}", workers["ours"], n) for n in PARTS]
    if "old" in workers:
        crates += [("old", workers["old"], "ours")] + [(f"old, {PARTS[n]}", workers["old"], n) for n in PARTS]
    worst = check(files, folder, crates, python)
    times = {}
    for _ in range(rounds + 1):
        for name, worker, inner in crates:
            times.setdefault(name, []).append(float(worker.line("time", inner, folder)[0]))
        for name, decode in python.items():
            start = time.process_time()
            for data in files:
                decode(data)
            times.setdefault(name, []).append(time.process_time() - start)
    print(f"\n{kind}: {len(files)} images of {sum(map(len, files)) // len(files)} bytes, medians of {rounds} rounds")
    print("| decoder | CPU ms an image | ours / it | peak kB | largest difference |\n|---|---|---|---|---|")
    ours = times["ours"][1:]
    for name, all_rounds in times.items():
        all_rounds = all_rounds[1:]
        ratio = statistics.median(a / b for a, b in zip(ours, all_rounds))
        worker = next(((w, i) for n, w, i in crates if n == name), None)
        peak = ""
        # The memory of libwebp, which decodes WebP for us, is not counted.
        in_c = name == "libwebp" or (kind.startswith("WebP") and name == "ours")
        if worker and "," not in name and not in_c:
            peak = f"{int(worker[0].line('peak', worker[1], folder)[0]) / 1000:.0f}"
        median = statistics.median(all_rounds) / len(files) * 1000
        print(f"| {name} | {median:.3f} | {ratio:.2f} | {peak} | {worst.get(name, '')} |", flush=True)


def check(files, folder, crates, python):
    """Returns the largest difference of each candidate from Pillow."""
    worst = {}
    for i, data in enumerate(files):
        right = pillow(data).astype(int)
        for name, worker, inner in crates:
            if "," not in name:
                found = worker.pixels(inner, folder / f"{i:04}")
                worst[name] = max(worst.get(name, 0), int(np.abs(right - found).max()))
        for name in list(python):
            found = np.asarray(python[name](data))
            if name == "torchvision":
                found = found.transpose(1, 2, 0) if found.ndim == 3 else found
            if found.dtype == np.uint16:
                found = found >> 8
            worst[name] = max(worst.get(name, 0), int(np.abs(right - found).max()))
    for name, difference in worst.items():
        assert difference <= ALLOWED.get(name, 0), f"{name} differs from Pillow by {difference}"
    return worst


if __name__ == "__main__":
    main()
