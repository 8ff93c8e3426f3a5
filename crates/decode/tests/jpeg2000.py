"""Compares JPEG 2000 with OpenJPEG (through Pillow): generated files of 1 to 7 resolutions, both wavelets, several rates, tiles,
alpha, palettes, 9 to 16 bits, chroma of fewer samples, CMYK and sYCC.

    cargo build -p shardtool-decode --example pixels
    python crates/decode/tests/jpeg2000.py target/debug/examples/pixels

Needs Pillow and numpy. Exits with 1 if the mean difference of a file is 0.1 or more, the mean of a channel is off by more than 0.2,
or a sample by more than 1 (2 where chroma is converted); with the reversible wavelet every sample must be equal.
"""

import ctypes
import io
import itertools
import pathlib
import struct
import sys
import tempfile

import numpy as np
import PIL
from formats import Ours
from PIL import Image

Y, X = np.mgrid[:256, :256]
SMOOTH = np.stack([X, Y, (X + Y) // 2], 2).astype(np.uint8)
NOISE = np.random.default_rng(0).integers(0, 256, (131, 97, 3), np.uint8)
# Detail and flat parts, as in photographs.
MIXED = (SMOOTH[:200, :230] // 2 + 64 * ((X // 37 + Y // 23) % 2)[:200, :230, None] + np.tile(NOISE, (2, 3, 1))[:200, :230] // 5).astype(np.uint8)


class Component(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in "dx dy w h x0 y0 prec bpp sgnd resno factor".split()]
    _fields_ += [("data", ctypes.POINTER(ctypes.c_int32)), ("alpha", ctypes.c_uint16)]


class OpjImage(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint32) for name in "x0 y0 x1 y1 count space".split()] + [("components", ctypes.POINTER(Component))]


def openjpeg(path, planes, bits, steps, jp2=True, space=0):
    """Writes planes, whose samples have these bits and distances, without loss by the OpenJPEG that Pillow brings."""
    (library,) = (pathlib.Path(PIL.__file__).parents[1] / "pillow.libs").glob("libopenjp2*")
    opj = ctypes.CDLL(str(library))
    opj.opj_image_create.restype = ctypes.POINTER(OpjImage)
    opj.opj_create_compress.restype = opj.opj_stream_create_default_file_stream.restype = ctypes.c_void_p
    height, width = planes[0].shape
    given = (ctypes.c_uint32 * 9 * len(planes))()
    for one, plane, depth, step in zip(given, planes, bits, steps):
        one[:] = [step, step, plane.shape[1], plane.shape[0], 0, 0, depth, depth, 0]
    image = opj.opj_image_create(len(planes), given, space)
    image.contents.x1, image.contents.y1 = width * steps[0], height * steps[0]
    for i, plane in enumerate(planes):
        values = plane.astype(np.int32).ravel()
        ctypes.memmove(image.contents.components[i].data, values.ctypes.data, values.nbytes)
    parameters = ctypes.create_string_buffer(1 << 16)
    opj.opj_set_default_encoder_parameters(parameters)
    codec = ctypes.c_void_p(opj.opj_create_compress(2 if jp2 else 0))
    stream = ctypes.c_void_p(opj.opj_stream_create_default_file_stream(str(path).encode(), 0))
    done = opj.opj_setup_encoder(codec, parameters, image) and opj.opj_start_compress(codec, image, stream)
    assert done and opj.opj_encode(codec, stream) and opj.opj_end_compress(codec, stream)
    opj.opj_stream_destroy(stream)
    opj.opj_destroy_codec(codec)
    opj.opj_image_destroy(image)


def saved(image, form="jp2", **options):
    out = io.BytesIO()
    out.name = f"a.{form}"
    image.save(out, "JPEG2000", **options)
    return out.getvalue()


def with_space(file, space):
    """The file with another enumerated colour space."""
    at = file.index(b"colr") + 7
    return file[:at] + struct.pack(">L", space) + file[at + 4 :]


def rgb_of(file):
    """What T.800 makes of YCbCr samples, which the file declares to be RGB. Pillow rounds down."""
    y, cb, cr = np.moveaxis(np.asarray(Image.open(io.BytesIO(file))).astype(np.float64) - [0, 128, 128], 2, 0)
    rgb = np.stack([y + 1.402 * cr, y - 0.344136 * cb - 0.714136 * cr, y + 1.772 * cb], 2)
    return np.clip(np.rint(rgb), 0, 255).astype(np.uint8)


def box(kind, data):
    return struct.pack(">L", 8 + len(data)) + kind + data


def with_palette(codestream, size, colours):
    head = box(b"ihdr", struct.pack(">LLHBBBB", size[1], size[0], 1, 7, 7, 0, 0)) + box(b"colr", b"\1\0\0" + struct.pack(">L", 16))
    head += box(b"pclr", struct.pack(">HB", len(colours), 3) + b"\7\7\7" + colours.tobytes())
    head += box(b"cmap", b"".join(struct.pack(">HBB", 0, 1, i) for i in range(3)))
    start = box(b"jP  ", b"\r\n\x87\n") + box(b"ftyp", b"jp2 \0\0\0\0jp2 ")
    return start + box(b"jp2h", head) + box(b"jp2c", codestream)


def generated():
    """Yields name, file, whether it must be equal, and the expected pixels where Pillow has others."""
    for name, pixels in {"smooth": SMOOTH, "noise": NOISE, "mixed": MIXED}.items():
        for levels, irreversible, rate in itertools.product(range(1, 8), [False, True], [5, 30, 100]):
            options = dict(num_resolutions=levels, irreversible=irreversible, quality_mode="rates", quality_layers=[rate])
            for mode in ["RGB"] if levels % 5 != 1 else ["RGB", "L", "LA", "RGBA"]:
                image = Image.fromarray(pixels).convert(mode)
                yield f"{name} {mode} {options}", saved(image, **options), not irreversible, None
    more = [dict(tile_size=(64, 48)), dict(quality_mode="rates", quality_layers=[60, 20, 5]), dict(progression="PCRL")]
    more += [dict(codeblock_size=(16, 64)), dict(mct=0), dict(offset=(5, 3), tile_offset=(2, 1), tile_size=(70, 90)), dict(precinct_size=(128, 128)), {}]
    for options, irreversible, form in itertools.product(more, [False, True], ["jp2", "j2k"]):
        file = saved(Image.fromarray(MIXED), form, irreversible=irreversible, **options)
        yield f"mixed {form} {options}", file, not irreversible, None
    deep = (MIXED[..., 0].astype(np.uint16) << 8) + NOISE[0, 0, 0] + MIXED[..., 1]
    grey = np.minimum((deep.astype(int) + 128) >> 8, 255)[..., None].repeat(3, 2)
    for irreversible in (False, True):
        yield "16-bit grey", saved(Image.fromarray(deep), irreversible=irreversible), not irreversible, grey
    rgba = Image.fromarray(np.dstack([MIXED, MIXED[..., 0] // 3]), "RGBA")
    for irreversible in (False, True):
        yield "CMYK", with_space(saved(rgba, irreversible=irreversible), 12), not irreversible, None
        ycc = saved(Image.fromarray(MIXED), irreversible=irreversible, mct=0)
        yield f"sYCC {irreversible}", with_space(ycc, 18), False, rgb_of(ycc)
    colours = np.random.default_rng(1).integers(0, 256, (256, 3), np.uint8)
    indices = MIXED[..., 0]
    yield "palette", with_palette(saved(Image.fromarray(indices), "j2k"), indices.shape[::-1], colours), True, colours[indices]


def written(path):
    """Writes files that Pillow does not write; yields name, whether each must be equal, and the expected pixels."""
    rgb = [MIXED[..., i] for i in range(3)]
    half, third = [plane[::2, ::2] for plane in rgb], [plane[:198:3, :228:3] for plane in rgb]
    for jp2 in (False, True):
        for bits in (9, 12, 16):
            deep = [(plane.astype(int) << bits - 8) + rgb[0].astype(int) % (1 << bits - 8) for plane in rgb]
            openjpeg(path, deep, [bits] * 3, [1] * 3, jp2, 1)
            # Pillow lets the brightest values become 0.
            yield f"RGB of {bits} bits", True, np.dstack([np.minimum((p + (1 << bits - 9)) >> bits - 8, 255) for p in deep])
        chroma = {2: [rgb[0], half[1], half[2]], 3: [rgb[0][:198, :228], third[1], third[2]]}
        for step, planes in chroma.items():
            openjpeg(path, planes, [8] * 3, [1, step, step], True, 1)
            expected = rgb_of(path.read_bytes())
            openjpeg(path, planes, [8] * 3, [1, step, step], jp2, 3)
            yield f"chroma of one of {step} samples, jp2={jp2}", True, expected
    openjpeg(path, [rgb[0], half[1], half[2]], [8] * 3, [1, 2, 2], True, 1)
    yield "RGB with channels of half the samples", True, None


def compared(ours, path, name, equal, expected):
    """Returns whether the file is as it should be."""
    if expected is None:
        expected = np.asarray(Image.open(path).convert("RGB"))
    found, reason = ours("decode", path)
    if found is None or found.shape != expected.shape:
        print(f"NOT AS OPENJPEG: {name}: {reason or found.shape}, {expected.shape}")
        return False
    difference = found.astype(int) - expected
    mean, most = np.abs(difference).mean(), np.abs(difference).max()
    # A chroma sample that differs by 1 changes blue by 2.
    limit = 2 if name.startswith("sYCC") else 1
    good = most == 0 if equal else mean < 0.1 and most <= limit and np.abs(difference.mean((0, 1))).max() <= 0.2
    if not good:
        print(f"NOT AS OPENJPEG: {name}: mean {mean:.3f}, at most {most}, channels {difference.mean((0, 1)).round(3)}")
    return good


def main():
    ours, results = Ours(sys.argv[1]), []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "image.jp2"
        for name, file, equal, expected in generated():
            path.write_bytes(file)
            results.append(compared(ours, path, name, equal, expected))
        for name, equal, expected in written(path):
            results.append(compared(ours, path, name, equal, expected))
    print(f"jpeg2000: {sum(results)} of {len(results)} files as OpenJPEG decodes them")
    return not all(results)


if __name__ == "__main__":
    sys.exit(main())
