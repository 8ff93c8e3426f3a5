"""Makes the images in this folder, and `expected.txt`: for each image and scale the size and the CRC-32 of the RGB pixels
that libjpeg-turbo, through Pillow, decodes. `expected-gray.txt` has those of its grey pixels; `make.py gray` makes only that.

    python crates/jpeg/tests/data/make.py

The images are gradients and noise from a fixed seed. Made once, with Pillow 13.0 and libjpeg-turbo 3.2.
"""

import os
import random
import sys

from PIL import features

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import zlib

import oracle

KINDS = {
    "grey": ("L", 37, 29, {"quality": 90}),
    "grey-1x1": ("L", 1, 1, {"quality": 75}),
    "444": ("RGB", 61, 43, {"quality": 92, "subsampling": 0}),
    "422": ("RGB", 61, 43, {"quality": 80, "subsampling": 1}),
    "420": ("RGB", 75, 83, {"quality": 85, "subsampling": 2}),
    "420-narrow": ("RGB", 3, 35, {"quality": 85, "subsampling": 2}),
    "420-optimised": ("RGB", 75, 83, {"quality": 60, "subsampling": 2, "optimize": True}),
    "440": ("RGB", 40, 30, {"quality": 85, "subsampling": 1}),
    "411": ("RGB", 60, 30, {"quality": 85, "subsampling": 2}),
    "rgb": ("RGB", 33, 31, {"quality": 95, "subsampling": 0, "keep_rgb": True}),
    "restart-rows-444": ("RGB", 50, 70, {"quality": 90, "subsampling": 0, "restart_marker_rows": 1}),
    "restart-rows-420": ("RGB", 50, 130, {"quality": 90, "subsampling": 2, "restart_marker_rows": 2}),
    "restart-blocks-420": ("RGB", 90, 70, {"quality": 50, "subsampling": 2, "restart_marker_blocks": 5}),
    "progressive-420": ("RGB", 70, 50, {"quality": 85, "subsampling": 2, "progressive": True}),
    "progressive-444-restart": ("RGB", 45, 53, {"quality": 95, "progressive": True, "subsampling": 0, "restart_marker_blocks": 3}),
    "progressive-grey": ("L", 45, 53, {"quality": 60, "progressive": True}),
    "worst-quality": ("RGB", 64, 64, {"quality": 1, "subsampling": 2}),
    "best-quality": ("RGB", 64, 48, {"quality": 100, "subsampling": 0}),
}


def main():
    rng = random.Random(7)
    for name, (mode, width, height, options) in KINDS.items():
        jpeg = oracle.encode(rng, oracle.gradient(rng, width, height, mode), name, options)
        with open(os.path.join(HERE, f"{name}.jpg"), "wb") as f:
            f.write(jpeg)
    expect("expected.txt", gray=False)


def expect(file, gray):
    """Writes the sizes and checksums of all images at all scales."""
    pixels_of = "grey" if gray else "RGB"
    title = f"# libjpeg-turbo {features.version('libjpeg_turbo')}: name, divisor, width, height, CRC-32 of the {pixels_of} pixels"
    lines = [title]
    for name in KINDS:
        for divisor in (1, 2, 4, 8):
            pixels = oracle.reference(os.path.join(HERE, f"{name}.jpg"), divisor, gray)
            if pixels is not None:
                crc = zlib.crc32(pixels.tobytes())
                lines.append(f"{name} {divisor} {pixels.width} {pixels.height} {crc:08x}")
    with open(os.path.join(HERE, file), "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:] != ["gray"]:
        main()
    expect("expected-gray.txt", gray=True)
