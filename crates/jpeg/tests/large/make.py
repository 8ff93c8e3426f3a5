"""Makes the images in this folder, and `expected.txt`: for each image and scale the size and the CRC-32 of the RGB pixels
that libjpeg-turbo decodes through Pillow.

    python crates/jpeg/tests/large/make.py

The images are of the size of dataset photographs, so that tests with them reach the code paths that small images do not:
rounds of several rows, speculative decoding and scan-only decoding with the production parameters. They are synthetic:
gradients with noise of several frequencies, from a fixed seed. Made once, with Pillow 13.0 and libjpeg-turbo 3.2.
"""

import os
import random
import sys
import zlib

from PIL import Image, features

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

import oracle

WIDTH, HEIGHT = 500, 375

KINDS = {
    "420": {"quality": 90, "subsampling": 2},
    "444": {"quality": 85, "subsampling": 0},
    "420-restart-rows": {"quality": 85, "subsampling": 2, "restart_marker_rows": 1},
    "444-restart-rows": {"quality": 75, "subsampling": 0, "restart_marker_rows": 2},
    "420-restart-blocks": {"quality": 85, "subsampling": 2, "restart_marker_blocks": 100},
    "420-progressive": {"quality": 85, "subsampling": 2, "progressive": True},
}


def channel(rng):
    """A linear gradient, blurred noise and a little fine noise."""
    size = (WIDTH, HEIGHT)
    ramp = Image.linear_gradient("L").rotate(rng.choice([0, 90, 180, 270])).resize(size)
    coarse = bytes(rng.randrange(256) for _ in range(25 * 19))
    middle = bytes(rng.randrange(256) for _ in range(125 * 94))
    fine = bytes(rng.randrange(256) for _ in range(WIDTH * HEIGHT))
    image = Image.blend(ramp, Image.frombytes("L", (25, 19), coarse).resize(size, Image.Resampling.BICUBIC), 0.6)
    image = Image.blend(image, Image.frombytes("L", (125, 94), middle).resize(size, Image.Resampling.BICUBIC), 0.15)
    return Image.blend(image, Image.frombytes("L", size, fine), 0.06)


def main():
    rng = random.Random(11)
    image = Image.merge("RGB", [channel(rng) for _ in range(3)])
    lines = [f"# libjpeg-turbo {features.version('libjpeg_turbo')}: name, divisor, width, height, CRC-32 of the RGB pixels"]
    for name, options in KINDS.items():
        path = os.path.join(HERE, f"{name}.jpg")
        image.save(path, "JPEG", **options)
        for divisor in (1, 2, 4, 8):
            pixels = oracle.reference(path, divisor)
            if pixels is not None:
                lines.append(f"{name} {divisor} {pixels.width} {pixels.height} {zlib.crc32(pixels.tobytes()):08x}")
    with open(os.path.join(HERE, "expected.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
