"""Writes `reftest.txt`: for each file of a folder the CRC-32 of the RGB pixels that libjpeg-turbo decodes through Pillow, or,
for the files named below, the error of this crate.

    python crates/jpeg/tests/reftest.py FOLDER
"""

import os
import sys
import zlib

import oracle
from PIL import features

REFUSED = {
    "mozilla_jpg-size-6x6.jpg": "not a JPEG: expected it to start with ff d8, found [89, 50]",
    "partial_progressive.jpg": "the JPEG's image data are damaged in MCU row 0 of 1, near byte 1028: the data end before "
    "the image does (the file was cut short, or bytes were lost)",
}


def main():
    lines = [f"# libjpeg-turbo {features.version('libjpeg_turbo')}: CRC-32 of the RGB pixels, or why there are none"]
    for name in sorted(os.listdir(sys.argv[1])):
        if name in REFUSED:
            lines.append(f"{name}: {REFUSED[name]}")
        else:
            pixels = oracle.reference(os.path.join(sys.argv[1], name), 1)
            lines.append(f"{name}: ok {zlib.crc32(pixels.tobytes()):08x}")
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "reftest.txt"), "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
