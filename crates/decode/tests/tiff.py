"""Compares TIFF with libtiff (through Pillow): generated files of fax data, CMYK, YCbCr, JPEG of one to four samples, and damaged
fax data.

    cargo build -p shardtool-decode --example pixels
    python crates/decode/tests/tiff.py target/debug/examples/pixels [SEED]

The files are written by the libtiff that Pillow brings. Needs Pillow and numpy. Exits with 1 if a pixel differs, if a file is refused
that Pillow reads, or if damage is neither refused by name nor read as Pillow reads it.
"""

import ctypes
import itertools
import pathlib
import random
import sys
import tempfile
import warnings

import numpy as np
import PIL
from formats import Ours
from PIL import Image

NONE, RLE, FAX3, FAX4, LZW, JPEG, DEFLATE, PACKBITS, ZSTD = 1, 2, 3, 4, 5, 7, 8, 32773, 50000
WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, CMYK, YCBCR = 0, 1, 2, 5, 6
# What messages about damaged data begin with.
REFUSALS = ("invalid tiff data", "truncated tiff", "bad tiff", "tiff with", "tiff of")


def libtiff():
    (library,) = (pathlib.Path(PIL.__file__).parents[1] / "pillow.libs").glob("libtiff*")
    tiff = ctypes.CDLL(str(library))
    tiff.TIFFOpen.restype = ctypes.c_void_p
    # Its messages; Pillow shares the library.
    tiff.TIFFSetErrorHandler(None), tiff.TIFFSetWarningHandler(None)
    tiff.TIFFWriteEncodedStrip.restype = tiff.TIFFWriteEncodedTile.restype = ctypes.c_ssize_t
    return tiff


TIFF = libtiff()


def write(path, size, chunks, samples=1, bits=8, rows=0, tile=None, **tags):
    """Writes a file whose strips or tiles hold these bytes. Tags are named by number: `t259=3`."""
    handle = ctypes.c_void_p(TIFF.TIFFOpen(str(path).encode(), b"w"))
    fields = {256: size[0], 257: size[1], 258: bits, 277: samples, 262: BLACK_IS_ZERO, 284: 1}
    if tile:
        fields |= {322: tile[0], 323: tile[1]}
    else:
        fields[278] = rows or size[1]
    fields |= {int(name[1:]): value for name, value in tags.items()}
    # The compression decides which tags there are.
    for tag, value in sorted(fields.items(), key=lambda field: (field[0] != 259, field[0])):
        values = value if isinstance(value, tuple) else (value,)
        if tag == 338:
            values = len(values), (ctypes.c_uint16 * len(values))(*values)
        elif tag in (529, 532):
            values = ((ctypes.c_float * len(values))(*values),)
        assert TIFF.TIFFSetField(handle, ctypes.c_uint32(tag), *values), tag
    one = TIFF.TIFFWriteEncodedTile if tile else TIFF.TIFFWriteEncodedStrip
    for number, chunk in enumerate(chunks):
        assert one(handle, ctypes.c_uint32(number), bytes(chunk), ctypes.c_ssize_t(len(chunk))) >= 0, (tags, number)
    TIFF.TIFFClose(handle)


def strips(rows, per_strip):
    """Rows of bytes as strips."""
    return [b"".join(rows[at : at + per_strip]) for at in range(0, len(rows), per_strip)]


def bitmaps(rng):
    """Yields sizes and bitmaps: noise of several densities, lines, nothing, everything."""
    for width, height in [(1, 1), (7, 5), (8, 3), (33, 40), (64, 16), (129, 31), (1728, 12), (2561, 4), (5300, 3)]:
        yield np.zeros((height, width), bool)
        yield np.ones((height, width), bool)
        for density in (0.02, 0.5, 0.97):
            yield rng.random((height, width)) < density
        # Shapes whose edges move by a few pixels from row to row, as in text.
        edges = np.cumsum(rng.integers(-3, 4, (height, 8)), 0) + rng.integers(0, width + 1, 8)
        yield (np.arange(width)[None, :, None] > edges[:, None, :]).sum(2) % 2 == 1


def fax(path, rng):
    options = [(RLE, 0), (FAX3, 0), (FAX3, 1), (FAX3, 4), (FAX3, 5), (FAX4, 0)]
    for bitmap in bitmaps(rng):
        height, width = bitmap.shape
        for (compression, t4), order in itertools.product(options, [1, 2]):
            photometric = int(rng.choice([WHITE_IS_ZERO, BLACK_IS_ZERO]))
            tags = {"t259": compression, "t266": order, "t262": photometric}
            if compression == FAX3:
                tags["t292"] = t4
            rows = [np.packbits(row).tobytes() for row in bitmap]
            per_strip = int(rng.integers(1, height + 1))
            write(path, (width, height), strips(rows, per_strip), bits=1, rows=per_strip, **tags)
            yield f"{width}x{height} compression {compression} options {t4} order {order} photometric {photometric}"
    tile = (32, 16)
    bitmap = rng.random((40, 70)) < 0.3
    padded = np.pad(bitmap, ((0, 8), (0, 26)))
    tiles = [np.packbits(padded[y : y + 16, x : x + 32], 1).tobytes() for y in range(0, 48, 16) for x in range(0, 96, 32)]
    for compression in (FAX3, FAX4):
        write(path, (70, 40), tiles, bits=1, tile=tile, t259=compression)
        yield f"tiles, compression {compression}"


def written_by_pillow(path, rng):
    for mode, compression in itertools.product(["1", "L", "LA", "RGB", "RGBA", "CMYK", "YCbCr", "P", "I;16"], [
        None, "group3", "group4", "tiff_ccitt", "tiff_lzw", "tiff_deflate", "tiff_adobe_deflate", "packbits", "zstd", "jpeg",
    ]):
        shape = (37, 53, 3)
        image = Image.fromarray(rng.integers(0, 256, shape, np.uint8))
        image = Image.fromarray(np.asarray(image.convert("L")).astype(np.uint16) * 257) if mode == "I;16" else image.convert(mode)
        try:
            image.save(path, "TIFF", compression=compression)
            Image.open(path).load()
        except (OSError, KeyError, ValueError):
            continue
        yield f"Pillow {mode} {compression}"


def inks(path, rng):
    pixels = rng.integers(0, 256, (29, 41, 5), np.uint8)
    # All values of ink and black.
    ramp = np.stack([*np.meshgrid(np.arange(256), np.arange(256))] * 2, 2).astype(np.uint8)
    write(path, (256, 256), [ramp.tobytes()], samples=4, t262=CMYK)
    yield "CMYK, all values"
    for compression, predictor in [(NONE, 1), (LZW, 1), (LZW, 2), (DEFLATE, 2), (ZSTD, 1), (ZSTD, 2), (PACKBITS, 1)]:
        extra = {"t317": predictor} if predictor == 2 else {}
        for samples in (4, 5):
            more = {"t338": (0,)} if samples == 5 else {}
            data = [np.ascontiguousarray(pixels[y : y + 10, :, :samples]).tobytes() for y in range(0, 29, 10)]
            write(path, (41, 29), data, samples=samples, rows=10, t262=CMYK, t259=compression, **extra, **more)
            yield f"CMYK compression {compression} predictor {predictor} samples {samples}"
        data = [np.ascontiguousarray(pixels[..., plane]).tobytes() for plane in range(4)]
        write(path, (41, 29), data, samples=4, t262=CMYK, t259=compression, t284=2, **extra)
        yield f"CMYK planes compression {compression} predictor {predictor}"
        deep = rng.integers(0, 65536, (29, 41, 4), np.uint16)
        write(path, (41, 29), [deep.tobytes()], samples=4, bits=16, t262=CMYK, t259=compression, **extra)
        yield f"CMYK of 16 bits compression {compression} predictor {predictor}"
    data = [np.ascontiguousarray(np.pad(pixels, ((0, 3), (0, 7), (0, 0)))[y : y + 16, x : x + 16, :4]).tobytes() for y in (0, 16) for x in (0, 16, 32)]
    write(path, (41, 29), data, samples=4, tile=(16, 16), t262=CMYK, t259=ZSTD)
    yield "CMYK tiles"


def units(luma, chroma, h, v):
    """Blocks of h x v samples of luma and one of each chroma."""
    height, width = luma.shape
    blocks = luma.reshape(height // v, v, width // h, h).swapaxes(1, 2).reshape(height // v, width // h, h * v)
    return np.concatenate([blocks, chroma], 2)


def ycbcr(path, rng):
    width, height = 45, 27
    ramp = np.stack(np.meshgrid(np.arange(256), np.arange(256)), 2).astype(np.uint8)
    for luma in (0, 100, 255):
        image = np.concatenate([np.full((256, 256, 1), luma, np.uint8), ramp], 2)
        write(path, (256, 256), [image.tobytes()], samples=3, t262=YCBCR, t530=(1, 1))
        yield f"YCbCr, all chroma of luma {luma}"
    references = [(), (16.0, 235.0, 128.0, 240.0, 128.0, 240.0), (0.0, 255.0, 128.0, 255.0, 128.0, 255.0)]
    coefficients = [(), (0.2126, 0.7152, 0.0722)]
    for (h, v), compression in itertools.product([(1, 1), (2, 1), (2, 2), (4, 1), (4, 2), (1, 2)], [NONE, LZW, DEFLATE, ZSTD]):
        for reference, luma_of in itertools.product(references, coefficients):
            per_strip = 4 * int(rng.integers(1, 4))
            across, rows = -(-width // h), -(-height // v)
            data = units(rng.integers(0, 256, (rows * v, across * h), np.uint8), rng.integers(0, 256, (rows, across, 2), np.uint8), h, v)
            blocks = per_strip // v
            chunks = [data[at : at + blocks].tobytes() for at in range(0, rows, blocks)]
            more = ({"t532": reference} if reference else {}) | ({"t529": luma_of} if luma_of else {})
            write(path, (width, height), chunks, samples=3, rows=per_strip, t262=YCBCR, t259=compression, t530=(h, v), **more)
            yield f"YCbCr {h}x{v} compression {compression} reference {reference} coefficients {luma_of}"
    planes = [rng.integers(0, 256, (height, width), np.uint8).tobytes() for _ in range(3)]
    write(path, (width, height), planes, samples=3, t262=YCBCR, t530=(1, 1), t284=2)
    yield "YCbCr planes"


def jpeg(path, rng):
    y, x = np.mgrid[:48, :64]
    planes = [x * 4, y * 5, (x + y) * 2, 255 - x * 3]
    pixels = (np.stack(planes, 2) + rng.integers(0, 9, (48, 64, 4))).clip(0, 255).astype(np.uint8)
    for samples, photometric in [(1, BLACK_IS_ZERO), (1, WHITE_IS_ZERO), (2, BLACK_IS_ZERO), (3, RGB), (4, RGB), (4, CMYK)]:
        extra = {"t338": (2,)} if samples == 2 or (samples == 4 and photometric == RGB) else {}
        data = [np.ascontiguousarray(pixels[at : at + 16, :, :samples]).tobytes() for at in range(0, 48, 16)]
        write(path, (64, 48), data, samples=samples, rows=16, t262=photometric, t259=JPEG, **extra)
        yield f"JPEG samples {samples} photometric {photometric}"
        if samples > 1:
            data = [np.ascontiguousarray(pixels[..., plane]).tobytes() for plane in range(samples)]
            write(path, (64, 48), data, samples=samples, t262=photometric, t259=JPEG, t284=2, **extra)
            yield f"JPEG planes {samples} photometric {photometric}"


def predictors(path, rng):
    pixels = rng.integers(0, 256, (9, 11, 3), np.uint8)
    for compression in (NONE, PACKBITS):
        Image.fromarray(pixels).save(path, "TIFF", tiffinfo={317: 2}, compression="packbits" if compression == PACKBITS else None)
        yield f"a predictor that compression {compression} ignores"


def pillow(path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = Image.open(path)
        if image.mode.startswith("I;16"):
            return (np.asarray(image) >> 8).astype(np.uint8)[..., None].repeat(3, 2)
        return np.asarray(image.convert("RGB"))


def rgba(path, size):
    """The pixels by libtiff's own conversion: Pillow takes uncompressed YCbCr for a raw image, and its chroma for as many samples."""
    handle = ctypes.c_void_p(TIFF.TIFFOpen(str(path).encode(), b"r"))
    raster = np.empty((size[1], size[0], 4), np.uint8)
    top_left = 1
    done = TIFF.TIFFReadRGBAImageOriented(handle, size[0], size[1], raster.ctypes.data_as(ctypes.c_void_p), top_left, 1)
    TIFF.TIFFClose(handle)
    return raster[..., :3] if done else None


def damaged(ours, path, rng):
    """Alters bits of fax data; returns what was found, and differences."""
    found, wrong = {"equal": 0, "refused": 0, "both refuse": 0}, []
    draw = random.Random(int(rng.integers(1 << 30)))
    bitmap = np.repeat(rng.random((24, 30)) < 0.4, 4, 1)
    rows = [np.packbits(row).tobytes() for row in bitmap]
    for compression, t4 in [(RLE, 0), (FAX3, 0), (FAX3, 1), (FAX3, 5), (FAX4, 0)]:
        tags = {"t259": compression} | ({"t292": t4} if compression == FAX3 else {})
        write(path, (120, 24), [b"".join(rows)], bits=1, **tags)
        file = path.read_bytes()
        at, length = Image.open(path).tag_v2[273][0], Image.open(path).tag_v2[279][0]
        for _ in range(120):
            altered = bytearray(file)
            for _ in range(draw.choice([1, 1, 2, 5])):
                altered[at + draw.randrange(length)] ^= 1 << draw.randrange(8)
            path.write_bytes(altered)
            mine, reason = ours("decode", path)
            try:
                theirs = pillow(path)
            except Exception:  # noqa: BLE001 Pillow raises anything
                theirs = None
            if mine is None:
                if not reason.startswith(REFUSALS):
                    wrong.append(f"damaged, compression {compression} options {t4}: {reason}")
                found["both refuse" if theirs is None else "refused"] += 1
            elif theirs is not None and np.array_equal(mine, theirs):
                found["equal"] += 1
            else:
                wrong.append(f"damaged, compression {compression} options {t4}: read as other pixels than libtiff's")
    return found, wrong


def main():
    ours, rng = Ours(sys.argv[1]), np.random.default_rng(int(sys.argv[2]) if len(sys.argv) > 2 else 0)
    counts, wrong = {}, []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "a.tif"
        for kind in (fax, written_by_pillow, inks, ycbcr, jpeg, predictors):
            for name in kind(path, rng):
                counts[kind.__name__] = counts.get(kind.__name__, 0) + 1
                mine, reason = ours("decode", path)
                tags = Image.open(path).tag_v2
                by_libtiff = (tags[259], tags[262]) == (NONE, YCBCR)
                theirs = rgba(path, (tags[256], tags[257])) if by_libtiff else pillow(path)
                if mine is None or mine.shape != theirs.shape:
                    wrong.append(f"{name}: {reason or mine.shape}")
                elif not np.array_equal(mine, theirs):
                    difference = np.abs(mine.astype(int) - theirs.astype(int))
                    wrong.append(f"{name}: at most {difference.max()}, {100 * (difference.max(2) > 0).mean():.1f} % of pixels")
        found, more = damaged(ours, path, rng)
    wrong += more
    print(f"tiff: {counts}, all equal to libtiff; damaged fax data: {found}" if not wrong else "\n".join(wrong[:40]))
    if wrong:
        print(f"tiff: {len(wrong)} wrong of {counts}; damaged fax data: {found}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
