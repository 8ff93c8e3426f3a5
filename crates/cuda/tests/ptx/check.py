#!/usr/bin/env python3
"""Runs every kernel of src/kernel.ptx in an interpreter, because tests run without a GPU, and compares each value with the definition
of mixing and normalisation in plain Python. Exit status 1 if a value differs, or if an access is misaligned or out of bounds.

The tests of this crate run the source of the kernels, compiled for the CPU; this is about what NVRTC made of it.
"""

from __future__ import annotations

import pathlib
import random
import struct
import sys

from interpreter import Memory, bits_of, fma, half_bits, parse, run_thread

PTX = pathlib.Path(__file__).resolve().parents[2] / "src" / "kernel.ptx"
A, B = (0.017124753, 0.017507004, 0.017429193), (-2.117904, -2.0357144, -1.8044444)
WHOLE, THREADS = 65_536, 256


def bfloat_bits(value: float) -> int:
    bits = bits_of(value)
    return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16


TYPES = {"f32": (4, bits_of), "f16": (2, half_bits), "bf16": (2, bfloat_bits)}
#: Number of images, lines and columns. The last one has more pixels than a block has threads.
SHAPES = [(3, 4, 5), (2, 6, 6), (3, 5, 7), (1, 2, 2), (2, 1, 3), (2, 8, 1), (3, 20, 28)]


def row_mix(rng: random.Random, row: int, shape: tuple[int, int, int], how: str) -> list[int]:
    """Returns the words of a `RowMix` (crates/load/src/mixing/row_mix.rs)."""
    n, height, width = shape
    left, across, top, down = 0, 0, 0, 0
    sources, offsets, partner, weight = [row] * 4, [0] * 4, row, WHOLE
    if how == "mixup":
        partner, weight = rng.randrange(n), rng.choice([0, 1, WHOLE // 2, WHOLE - 1, rng.randrange(WHOLE)])
    elif how == "cutmix":
        left, top = rng.randrange(width), rng.randrange(height)
        across, down = rng.randint(0, width - left), rng.randint(0, height - top)
        sources[3] = rng.randrange(n)
    elif how == "mosaic":
        left, top = rng.randint(0, width), rng.randint(0, height)
        across, down = width - left, height - top
        sources = [rng.randrange(n) for _ in range(4)]
        shifts = [(y, x) for y in (top - height, top) for x in (left - width, left)]
        offsets = [-(y * width + x) % 2**32 for y, x in shifts]
    return [left, across, top, down, *sources, *offsets, partner, weight]


def mixed(pixels: bytes, shape: tuple[int, int, int], mixes: list[list[int]]) -> list[int]:
    """Returns the mixed values, by the definition of `RowMix`."""
    _, height, width = shape
    values = []
    for left, across, top, down, *rest in mixes:
        sources, offsets, (partner, weight) = rest[:4], rest[4:8], rest[8:]
        for q in range(height * width):
            region = (left <= q % width < left + across) | (top <= q // width < top + down) << 1
            shown = sources[region] * height * width + (q + offsets[region]) % 2**32
            other = partner * height * width + q
            for a, b in zip(pixels[3 * shown : 3 * shown + 3], pixels[3 * other : 3 * other + 3], strict=True):
                values.append((a * weight + b * (WHOLE - weight) + WHOLE // 2) // WHOLE)
    return values


def check(name: str, kernel, rng: random.Random, shape: tuple[int, int, int], how: str) -> None:
    _, dtype, layout, per_thread = name.split("_")
    (n, height, width), (size, encode) = shape, TYPES[dtype]
    hw = height * width
    pixels = rng.randbytes(n * hw * 3)
    mixes = [row_mix(rng, row, shape, how) for row in range(n)]
    memory = Memory()
    (source, _), (target, written) = memory.allocate(pixels), memory.allocate(b"\xa5" * (n * hw * 3 * size))
    arguments = [source, target, n, hw, *A, *B]
    if name.startswith("mix"):
        table, _ = memory.allocate(struct.pack(f"<{14 * n}I", *(word for mix in mixes for word in mix)))
        arguments += [table, width]
    # Fewer rows of blocks than images, as for more than 65,535 images; threads beyond the last pixel.
    rows, threads = min(n, 2), hw // 4 if per_thread == "x4" else hw
    for y in range(rows):
        for thread in range(threads + 2):
            block, lane = divmod(thread, THREADS)
            special = {"%tid.x": lane, "%ntid.x": THREADS, "%ctaid.x": block, "%ctaid.y": y, "%nctaid.y": rows}
            run_thread(kernel, memory, arguments, special)
    for i, value in enumerate(mixed(pixels, shape, mixes)):
        image, q, channel = i // 3 // hw, i // 3 % hw, i % 3
        at = (i if layout == "nhwc" else (image * 3 + channel) * hw + q) * size
        found, expected = int.from_bytes(written[at : at + size], "little"), encode(fma(value, A[channel], B[channel]))
        if found != expected:
            sys.exit(f"{name}, {how}, {shape}: value {i} is {found:#x}, expected {expected:#x}; mixed as {mixes[image]}")


def main() -> None:
    rng = random.Random(1)
    kernels = parse(PTX.read_text())
    cases = 0
    for name, kernel in kernels.items():
        for shape in SHAPES:
            if name.endswith("x4") and shape[1] * shape[2] % 4 != 0:
                continue
            for how in ["no mixing", "mixup", "cutmix", "mosaic"] if name.startswith("mix") else ["no mixing"]:
                check(name, kernel, rng, shape, how)
                cases += 1
    if len(kernels) != 24:
        sys.exit(f"{len(kernels)} kernels, expected 24")
    print(f"{len(kernels)} kernels of {PTX.name} gave the defined values in {cases} cases")


if __name__ == "__main__":
    main()
