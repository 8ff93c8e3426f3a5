"""Compares orientations with Pillow's `exif_transpose`: generated images of every format, with the orientation in every place where
Pillow looks for it, in every type and both byte orders.

    cargo build -p shardtool-decode --example pixels
    python crates/decode/tests/orientation.py target/debug/examples/pixels

Needs Pillow and numpy. Exits with 1 if an image is turned otherwise than by Pillow, which decodes and turns each file itself.
"""

import io
import pathlib
import struct
import sys
import tempfile
import warnings
import zlib

import numpy as np
from formats import Ours
from PIL import Image, ImageOps

PIXELS = Image.fromarray(np.random.default_rng(7).integers(0, 256, (7, 12, 3), np.uint8))
PREFIX = b"Exif\0\0"
# Types of TIFF values whose first number is the orientation: code and format.
TYPES = {"byte": (1, "B"), "short": (3, "H"), "long": (4, "L"), "sbyte": (6, "b"), "undefined": (7, "B"), "sshort": (8, "h")}
TYPES |= {"slong": (9, "l"), "float": (11, "f"), "ifd": (13, "L"), "ascii": (2, "B"), "unknown": (99, "B")}
WIDE = {"rational": (5, "LL"), "srational": (10, "ll"), "double": (12, "d"), "long8": (16, "Q")}
VALUES = range(0, 10)


def exif(value, order="<", kind="short", count=1, entries=()):
    """An EXIF block whose first directory has `entries` (tag, type, count, four bytes), then the orientation."""
    number = len(entries) + 1
    if kind in WIDE:
        code, form = WIDE[kind]
        numbers = [value, 1] if len(form) == 2 else [value]
        data, field = struct.pack(order + form, *numbers), struct.pack(order + "L", 14 + 12 * number)
    else:
        code, form = TYPES[kind]
        data, field = b"", struct.pack(order + form, value).ljust(4, b"\0")
    directory = b"".join(struct.pack(order + "HHL", *entry[:3]) + entry[3] for entry in entries)
    directory += struct.pack(order + "HHL", 0x0112, code, count) + field
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "LH", 8, number)
    return head + directory + bytes(4) + data


def xmp(value, element=False, before=""):
    text = f"<tiff:Orientation>{value}</tiff:Orientation>" if element else f'<a tiff:Orientation="{value}"/>'
    return f"<x:xmpmeta>{before}{text}</x:xmpmeta>".encode()


def saved(form, **options):
    out = io.BytesIO()
    PIXELS.save(out, form, **options)
    return out.getvalue()


def jpeg(*segments):
    """A JPEG with the bodies of APP1 segments."""
    file = saved("JPEG")
    return file[:2] + b"".join(b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body for body in segments) + file[2:]


def jpeg_xmp(text):
    return b"http://ns.adobe.com/xap/1.0/\0" + text


def png(*chunks, after=False):
    """A PNG with chunks (type, data) before or after the pixels."""
    file = saved("PNG")
    at = len(file) - 12 if after else 33
    parts = [struct.pack(">L", len(data)) + kind + data + struct.pack(">L", zlib.crc32(kind + data)) for kind, data in chunks]
    return file[:at] + b"".join(parts) + file[at:]


def profile(block):
    return f"\nexif\n{len(block):8}\n{block.hex()}\n".encode()


def webp(*chunks, flags=None, lossless=True):
    """An extended WebP with chunks (type, data) after the pixels."""
    if flags is None:
        flags = sum({b"EXIF": 0x08, b"XMP ": 0x04}[kind] for kind in {kind for kind, _ in chunks})
    image = saved("WEBP", lossless=lossless)[12:]
    size = (PIXELS.width - 1).to_bytes(3, "little") + (PIXELS.height - 1).to_bytes(3, "little")
    body = b"WEBPVP8X" + struct.pack("<L", 10) + bytes([flags, 0, 0, 0]) + size + image
    for kind, data in chunks:
        body += kind + struct.pack("<L", len(data)) + data + b"\0" * (len(data) % 2)
    return b"RIFF" + struct.pack("<L", len(body)) + body


def tiff(order, kind="short", value=None, text=None, big=False):
    """An uncompressed TIFF or BigTIFF of the image with an orientation, XMP, or both."""
    data = np.asarray(PIXELS).tobytes()
    base, word = (16, "Q") if big else (8, "L")
    inside = 8 if big else 4
    entries = [(256, 3, 1, PIXELS.width), (257, 3, 1, PIXELS.height), (258, 3, 1, 8), (259, 3, 1, 1), (262, 3, 1, 2)]
    entries += [(273, 4, 1, base), (277, 3, 1, 3), (278, 3, 1, PIXELS.height), (279, 4, 1, len(data))]
    extra = b""
    fields = {}
    if value is not None:
        code, form = (TYPES | WIDE)[kind]
        entries.append((274, code, 1, None))
        fields[274] = struct.pack(order + form, *([value, 1] if len(form) == 2 else [value]))
    if text is not None:
        entries.append((700, 1, len(text), None))
        fields[700] = text
    directory = b""
    for tag, code, count, number in sorted(entries):
        field = fields.get(tag)
        if field is None:
            field = struct.pack(order + {3: "H", 4: "L"}[code], number)
        if len(field) > inside:
            offset = base + len(data) + len(extra)
            extra, field = extra + field, struct.pack(order + word, offset)
        directory += struct.pack(order + "HH" + word, tag, code, count) + field.ljust(inside, b"\0")
    at = base + len(data) + len(extra)
    letters = b"II" if order == "<" else b"MM"
    head = letters + (struct.pack(order + "HHHQ", 43, 8, 0, at) if big else struct.pack(order + "HL", 42, at))
    count = struct.pack(order + ("Q" if big else "H"), len(entries))
    return head + data + extra + count + directory + bytes(inside)


def cases():
    """Yields name and bytes of every file."""
    for order in "<>":
        letters = "little" if order == "<" else "big"
        for value in VALUES:
            plain = exif(value, order)
            for kind in [*TYPES, *WIDE]:
                name = f"{kind} {letters} {value}"
                yield f"jpeg {name}", jpeg(PREFIX + exif(value, order, kind))
                yield f"png {name}", png((b"eXIf", exif(value, order, kind)))
                yield f"webp {name}", webp((b"EXIF", exif(value, order, kind)))
                yield f"tiff {name}", tiff(order, kind, value)
                yield f"bigtiff {name}", tiff(order, kind, value, big=True)
            name = f"{letters} {value}"
            yield f"jpeg two prefixes {name}", jpeg(PREFIX + PREFIX + plain)
            yield f"jpeg other entries {name}", jpeg(PREFIX + exif(value, order, entries=[(0x010E, 2, 3, b"abc\0")]))
            yield f"jpeg two entries {name}", jpeg(
                PREFIX + exif(value, order, entries=[(0x0112, 3, 1, struct.pack(order + "HH", 6, 0))])
            )
            yield f"jpeg two values {name}", jpeg(PREFIX + exif(value, order, count=2))
            yield f"jpeg continued {name}", jpeg(PREFIX + plain[:15], PREFIX + plain[15:])
            yield f"jpeg without orientation, then XMP {name}", jpeg(
                PREFIX + exif(value, order).replace(struct.pack(order + "H", 0x0112), struct.pack(order + "H", 0x0113)),
                jpeg_xmp(xmp(5)),
            )
            yield f"png after pixels {name}", png((b"eXIf", plain), after=True)
            yield f"png with prefix {name}", png((b"eXIf", PREFIX + plain))
            yield f"png raw profile {name}", png((b"tEXt", b"Raw profile type exif\0" + profile(PREFIX + plain)))
            compressed = b"Raw profile type exif\0\0" + zlib.compress(profile(PREFIX + plain))
            yield f"png compressed raw profile {name}", png((b"zTXt", compressed))
            yield f"png compressed raw profile after pixels {name}", png((b"zTXt", compressed), after=True)
            yield f"png text {name}", png((b"tEXt", b"exif\0" + plain))
            yield f"png two {name}", png((b"eXIf", exif(6)), (b"eXIf", plain))
            yield f"png eXIf and raw profile {name}", png((b"eXIf", plain), (b"zTXt", compressed.replace(b"exif", b"exif")))
            yield f"webp with prefix {name}", webp((b"EXIF", PREFIX + plain))
            yield f"webp lossy {name}", webp((b"EXIF", PREFIX + plain), lossless=False)
            yield f"webp two {name}", webp((b"EXIF", plain), (b"EXIF", exif(6)))
            yield f"webp without its flag {name}", webp((b"EXIF", plain), flags=0)
            yield f"tiff and XMP {name}", tiff(order, "short", value, xmp(6))
            yield f"tiff XMP {name}", tiff(order, text=xmp(value))
            yield f"bigtiff XMP {name}", tiff(order, text=xmp(value), big=True)
    for value in VALUES:
        for element in (False, True):
            text, name = xmp(value, element, "tiff:Orientation=6"), f"{'element' if element else 'attribute'} {value}"
            yield f"jpeg XMP {name}", jpeg(jpeg_xmp(text))
            yield f"jpeg two XMP {name}", jpeg(jpeg_xmp(xmp(6)), jpeg_xmp(text))
            yield f"jpeg EXIF and XMP {name}", jpeg(jpeg_xmp(text), PREFIX + exif(3))
            yield f"png XMP {name}", png((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + text))
            yield f"png XMP after pixels {name}", png((b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + text), after=True)
            yield f"png compressed XMP {name}", png((b"iTXt", b"XML:com.adobe.xmp\0\1\0\0\0" + zlib.compress(text)))
            yield f"png XMP as text {name}", png((b"tEXt", b"XML:com.adobe.xmp\0" + text))
            yield f"webp XMP {name}", webp((b"XMP ", text))
            yield f"webp EXIF and XMP {name}", webp((b"EXIF", exif(value)), (b"XMP ", xmp(6)))
            yield f"gif with XMP {name}", saved("GIF")[:-1] + b"!\xff\x0bXMP DataXMP" + text + b"\0;"
    for value in range(1, 9):
        block = Image.Exif()
        block[0x0112] = value
        for form in ("JPEG", "PNG", "WEBP", "TIFF", "MPO"):
            options = {"save_all": True, "append_images": [PIXELS]} if form == "MPO" else {}
            yield f"{form} by Pillow {value}", saved(form, exif=block, **options)


def main():
    ours, failed, count = Ours(sys.argv[1]), 0, 0
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "image"
        for name, data in cases():
            path.write_bytes(data)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    expected = np.asarray(ImageOps.exif_transpose(Image.open(path)).convert("RGB"))
            except Exception:  # noqa: BLE001 Pillow raises anything
                continue
            count += 1
            found, reason = ours("upright", path)
            if found is None or found.shape != expected.shape or not np.array_equal(found, expected):
                print(f"NOT AS PILLOW: {name}: {reason or found.shape}")
                failed += 1
        block = Image.Exif()
        for value in range(1, 9):
            block[0x0112] = value
            path.write_bytes(saved("AVIF", exif=block))
            (((found, _, _),),), reason = ours("info", path)
            if found != Image.open(path).getexif().get(0x0112, 1):
                print(f"NOT AS PILLOW: AVIF {value}: {reason or found}")
                failed += 1
    print(f"orientation: {count} files as turned by Pillow" if not failed else f"orientation: {failed} of {count} files differ")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
