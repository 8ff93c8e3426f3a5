"""Compares the PNGs that Netpbm, QOI, ICO and TGA files are converted to with Pillow's reading of these files, and PNGs whose
palette has a wrong length with Pillow's reading of them.

    cargo build -p shardtool-decode --example pixels
    python crates/decode/tests/conversion.py target/debug/examples/pixels [SEED]

Reads Pillow's test images, generated files, and damaged copies of these. Needs Pillow and numpy. Exits with 1 if pixels or alpha
differ, if a file is refused that Pillow reads and that is not named in `REFUSED`, or if the program ends or panics.
"""

import io
import itertools
import pathlib
import random
import struct
import sys
import tempfile
import warnings
import zlib

import numpy as np
from formats import Ours, pillow_images
from PIL import Image

MUST_REFUSE = "other samples than grey or RGB"
SUFFIXES = {".pbm", ".pgm", ".ppm", ".pnm", ".pam", ".qoi", ".ico", ".tga"}
# Files of Pillow's that we refuse although Pillow reads them, and why.
REFUSED = {
    "courB08.pbm": "a PNG, which is stored as it is",
    "op_index.qoi": "without the bytes that end a QOI",
}


def converted(ours, path, kind="png"):
    """Returns the PNG of the picture, or of its numbers, or why it was refused."""
    path = str(path)
    line = f"{kind} {path}"
    ours.process.stdin.write((line + "\n").encode())
    ours.process.stdin.flush()
    head = ours.process.stdout.read(12)
    assert len(head) == 12, f"{path}: the program ended"
    width, _, length = struct.unpack("<III", head)
    data = ours.process.stdout.read(length)
    if width:
        return data, None
    while True:
        text = ours.errors.get(timeout=60)
        assert text is not None
        if text.startswith(f"{line}: "):
            return None, text.removeprefix(f"{line}: ")


def samples(image):
    """The samples of an image: of 16 bits where it has them, with alpha where it has some."""
    if image.mode.startswith("I"):
        return np.asarray(image).astype(np.int64)
    if image.mode in ("1", "L"):
        return np.asarray(image.convert("L"))
    if image.mode == "LA":
        return np.asarray(image)
    has_alpha = image.mode in ("RGBA", "PA") or "transparency" in image.info or (image.palette is not None and image.palette.mode == "RGBA")
    return np.asarray(image.convert("RGBA" if has_alpha else "RGB"))


def pillow(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = Image.open(path)
        image.load()
        return samples(image)


def equal(ours, theirs):
    if ours.shape != theirs.shape and ours.ndim == 3 and ours.shape[2] == 4 and theirs.ndim == 3 and theirs.shape[2] == 3:
        # Pillow has no alpha where all of it is opaque.
        ours = ours[..., :3] if (ours[..., 3] == 255).all() else ours
    if ours.shape != theirs.shape and theirs.ndim == 3 and theirs.shape[2] == 4 and (theirs[..., 3] == 255).all():
        theirs = theirs[..., :3]
    return ours.shape == theirs.shape and np.array_equal(ours, theirs)


def generated(folder, rng):
    """Writes files; yields them with the expected samples, where they are not Pillow's."""

    def written(name, content, expected=None):
        path = folder / name
        path.write_bytes(content)
        return path, expected

    grey = rng.integers(0, 256, (19, 23), np.uint8)
    rgb = rng.integers(0, 256, (19, 23, 3), np.uint8)
    deep, deep_rgb = rng.integers(0, 65536, (19, 23), np.uint16), rng.integers(0, 65536, (19, 23, 3), np.uint16)
    bits = rng.integers(0, 2, (19, 23), np.uint8)
    size = b"23 19\n"
    yield written("a.pgm", b"P5\n# a comment\n" + size + b"255\n" + grey.tobytes())
    yield written("b.ppm", b"P6 " + size + b"255\n" + rgb.tobytes())
    yield written("c.pgm", b"P5\n" + size + b"65535\n" + deep.astype(">u2").tobytes())
    # Pillow reads 16-bit RGB with 8 bits.
    yield written("d.ppm", b"P6\n" + size + b"65535\n" + deep_rgb.astype(">u2").tobytes(), deep_rgb >> 8)
    yield written("e.pbm", b"P4\n" + size + np.packbits(bits, 1).tobytes())
    text = lambda values: b" ".join(b"%d" % v for v in values.ravel()) + b"\n"  # noqa: E731
    yield written("f.pbm", b"P1\n" + size + b"".join(b"%d" % v for v in bits.ravel()))
    yield written("g.pgm", b"P2\n" + size + b"255\n# comment\n" + text(grey))
    yield written("h.ppm", b"P3\n" + size + b"255\n" + text(rgb))
    yield written("i.pgm", b"P2\n" + size + b"65535\n" + text(deep))
    for maximum in (1, 3, 20, 100, 254, 256, 1023, 4095, 65534):
        values = rng.integers(0, maximum + 1, (19, 23))
        stored = values.astype(np.uint8 if maximum < 256 else ">u2").tobytes()
        yield written(f"max{maximum}.pgm", b"P5\n" + size + b"%d\n" % maximum + stored)
        yield written(f"text{maximum}.pgm", b"P2\n" + size + b"%d\n" % maximum + text(values))
        if maximum < 256:
            values = rng.integers(0, maximum + 1, (19, 23, 3), np.uint8)
            yield written(f"max{maximum}.ppm", b"P6\n" + size + b"%d\n" % maximum + values.tobytes())
    for channels, kind in ((1, "GRAYSCALE"), (2, "GRAYSCALE_ALPHA"), (3, "RGB"), (4, "RGB_ALPHA")):
        for maximum in (255, 65535):
            values = rng.integers(0, maximum + 1, (19, 23, channels))
            stored = values.astype(np.uint8 if maximum < 256 else ">u2")
            head = b"P7\n# PAM\nWIDTH 23\nHEIGHT 19\nDEPTH %d\nMAXVAL %d\nTUPLTYPE %s\nENDHDR\n" % (channels, maximum, kind.encode())
            # Pillow reads no PAM, and 16-bit PNG of several channels with 8 bits.
            expected = values >> 8 if maximum > 255 and channels > 1 else values
            if maximum > 255 and channels == 2:
                expected = expected[..., [0, 0, 0, 1]]
            yield written(f"{channels}-{maximum}.pam", head + stored.tobytes(), expected.squeeze())
    # Ghostscript's inks, and colours with a wrong number of samples.
    for channels, kind in ((4, b"CMYK"), (5, b"CMYK_ALPHA"), (3, b"RGB_ALPHA"), (4, b"RGB"), (2, b"GRAYSCALE")):
        head = b"P7\nWIDTH 23\nHEIGHT 19\nDEPTH %d\nMAXVAL 255\nTUPLTYPE %s\nENDHDR\n" % (channels, kind)
        name = f"{kind.decode()}-{channels}.pam"
        REFUSED[name] = MUST_REFUSE
        yield written(name, head + bytes(23 * 19 * channels), np.zeros((19, 23)))
    rgba = Image.fromarray(rng.integers(0, 256, (19, 23, 4), np.uint8))
    smooth = Image.linear_gradient("L").resize((64, 41)).convert("RGBA")
    for number, image in enumerate([rgba, smooth, smooth.convert("RGB"), Image.fromarray(rgb)]):
        image.save(folder / f"{number}.qoi")
        yield folder / f"{number}.qoi", None
    modes = [rgba, smooth, Image.fromarray(rgb), Image.fromarray(grey), smooth.convert("LA"), smooth.convert("RGB").quantize(37)]
    for (number, image), rle, orientation in itertools.product(enumerate(modes), (None, "tga_rle"), (1, -1)):
        path = folder / f"{number}-{rle}-{orientation}.tga"
        image.save(path, compression=rle, orientation=orientation)
        yield path, None
    content = bytearray((folder / "2-None-1.tga").read_bytes())
    for flags in (0x00, 0x10, 0x20, 0x30):
        content[17] = flags
        yield written(f"flags{flags}.tga", content)
    values = rng.integers(0, 65536, 23 * 19, np.uint16)
    head = struct.pack("<BBBHHBHHHHBB", 0, 0, 2, 0, 0, 0, 0, 0, 23, 19, 16, 0x20)
    yield written("rgb15.tga", head + values.astype("<u2").tobytes())
    for bits_of, start in itertools.product((16, 24, 32), (0, 5)):
        head = struct.pack("<BBBHHBHHHHBB", 3, 1, 1, start, 40, bits_of, 0, 0, 23, 19, 8, 0)
        palette = rng.integers(0, 256, 40 * bits_of // 8, np.uint8).tobytes()
        yield written(f"palette{bits_of}-{start}.tga", head + b"id." + palette + rng.integers(0, 45, 23 * 19, np.uint8).tobytes())
    icon = Image.linear_gradient("L").resize((64, 64)).convert("RGBA")
    icon.putalpha(Image.radial_gradient("L").resize((64, 64)))
    icon.save(folder / "png.ico", sizes=[(16, 16), (64, 64), (32, 32)])
    icon.save(folder / "bmp.ico", sizes=[(16, 16), (64, 64), (32, 32)], bitmap_format="bmp")
    yield folder / "png.ico", None
    yield folder / "bmp.ico", None
    for mode, depth in (("1", 1), ("P", 4), ("P", 8), ("RGB", 24)):
        image = {"1": icon.convert("1"), "RGB": icon.convert("RGB")}.get(mode) or icon.convert("RGB").quantize(1 << depth)
        for colors in ([0, 1 << depth] if depth <= 8 else [0]):
            yield written(f"{depth}-{colors}.ico", icon_of(image.resize((33, 27)), depth, colors))


def numbers(folder, rng):
    """Writes files of labels and depths; yields them with their numbers."""
    for maximum in (1, 3, 20, 100, 254, 255, 256, 1023, 4095, 65534, 65535):
        values = rng.integers(0, maximum + 1, (19, 23))
        path = folder / f"numbers{maximum}.pgm"
        path.write_bytes(b"P5\n23 19\n%d\n" % maximum + values.astype(np.uint8 if maximum < 256 else ">u2").tobytes())
        yield path, values
    bits = rng.integers(0, 2, (19, 23), np.uint8)
    path = folder / "numbers.pbm"
    # Pillow writes True as white, which is 0.
    Image.fromarray(bits == 0).save(path)
    yield path, bits
    grey = rng.integers(0, 7, (19, 23), np.uint8)
    path = folder / "numbers.tga"
    Image.fromarray(grey).save(path)
    yield path, grey


def icon_of(image, depth, colors):
    """An ICO of a bitmap with a mask of stripes."""
    out = io.BytesIO()
    image.save(out, "DIB")
    dib = bytearray(out.getvalue())
    if depth == 4:
        indices = np.asarray(image)[::-1]
        packed = np.pad(indices, ((0, 0), (0, -indices.shape[1] % 8)))
        rows = (packed[:, ::2] << 4 | packed[:, 1::2]).astype(np.uint8).tobytes()
        dib = dib[:40] + dib[40 : 40 + 64] + rows
        dib[14:16] = struct.pack("<H", 4)
    struct.pack_into("<I", dib, 32, 0)
    struct.pack_into("<i", dib, 8, image.height * 2)
    mask = b"".join(bytes([0x0F, 0xF0, 0xAA, 0, 0xFF, 0, 0, 0]) for _ in range(image.height))
    head = b"\0\0\1\0\1\0" + struct.pack("<BBBBHHII", image.width, image.height, colors & 255, 0, 1, depth, len(dib) + len(mask), 22)
    return head + dib + mask


def palettes():
    """Yields PNGs with palettes of every length."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    for bits, length in [*((8, n) for n in (3, 4, 5, 94, 95, 96, 97, 767, 768, 769, 770)), *((2, n) for n in (4, 10, 12, 14, 50, 770)), *((4, n) for n in (5, 46))]:
        index = (np.arange(32).reshape(2, 16) % (1 << bits)).astype(np.uint8)
        rows = [b"\0" + (row.tobytes() if bits == 8 else np.packbits(np.unpackbits(row[:, None], axis=1)[:, -bits:]).tobytes()) for row in index]
        palette = bytes((7 * i + 1) % 256 for i in range(length))
        for color in (3, 2) if bits == 8 else (3,):
            if color == 2:
                rows = [b"\0" + bytes((5 * i) % 256 for i in range(48))] * 2
            head = chunk(b"IHDR", struct.pack(">IIBBBBB", 16, 2, bits, color, 0, 0, 0))
            file = b"\x89PNG\r\n\x1a\n" + head + chunk(b"PLTE", palette) + chunk(b"IDAT", zlib.compress(b"".join(rows))) + chunk(b"IEND", b"")
            yield f"PNG of colour type {color}, {bits} bits, palette of {length} bytes", file


def damage(ours, path, files, draw):
    """Damaged copies: a PNG or a reason."""
    good = refused = 0
    for file in files:
        content = file.read_bytes()[:4000]
        for _ in range(6):
            altered = bytearray(content[: draw.choice([len(content), draw.randrange(1, len(content) + 1)])])
            for _ in range(draw.choice([0, 1, 3, 8])):
                altered[draw.randrange(min(len(altered), draw.choice([24, len(altered)])))] = draw.choice([0, 1, 255, draw.randrange(256)])
            path = path.with_suffix(file.suffix)
            path.write_bytes(altered)
            png, reason = converted(ours, path)
            assert png is not None or not any(word in reason for word in ("panicked", "overflow")), (file, reason)
            good, refused = good + (png is not None), refused + (png is None)
    return good, refused


def main():
    ours, seed = Ours(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    rng, wrong, counts = np.random.default_rng(seed), [], {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        theirs = [path for path in sorted(pillow_images().rglob("*")) if path.suffix in SUFFIXES and " " not in str(path)]
        every = list(generated(folder, rng)) + [(path, None) for path in theirs]
        for path, expected in every:
            png, reason = converted(ours, path)
            try:
                expected = pillow(path) if expected is None else expected
            except Exception:  # noqa: BLE001 Pillow raises anything
                expected = None
            outcome = "equal"
            if png is None:
                outcome = "both refuse" if expected is None else "refused"
                if expected is not None and path.name not in REFUSED:
                    wrong.append(f"{path.name}: {reason}")
            elif REFUSED.get(path.name) == MUST_REFUSE:
                wrong.append(f"{path.name}: converted, but has {MUST_REFUSE}")
            elif expected is None:
                outcome = "Pillow refuses"
            elif not equal(samples(Image.open(io.BytesIO(png))), expected):
                wrong.append(f"{path.name}: other pixels, {Image.open(io.BytesIO(png)).mode}")
            counts[outcome] = counts.get(outcome, 0) + 1
        for path, expected in numbers(folder, rng):
            png, reason = converted(ours, path, "numbers")
            image = None if png is None else np.asarray(Image.open(io.BytesIO(png))).astype(np.int64)
            if image is None or not np.array_equal(image, expected):
                wrong.append(f"{path.name}: {reason or 'other numbers'}")
            counts["numbers"] = counts.get("numbers", 0) + 1
        for name, file in palettes():
            path = folder / "palette.png"
            path.write_bytes(file)
            mine, reason = ours("decode", path)
            if mine is None or not np.array_equal(mine, np.asarray(Image.open(path).convert("RGB"))):
                wrong.append(f"{name}: {reason or 'other pixels'}")
        damaged = damage(ours, folder / "damaged.x", [path for path, _ in every], random.Random(seed))
    print("\n".join(wrong[:40]))
    print(f"conversion: {counts}; of damaged files {damaged[0]} converted, {damaged[1]} refused; {len(wrong)} wrong")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
