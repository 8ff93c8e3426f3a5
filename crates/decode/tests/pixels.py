"""Compares pixels of the `pixels` example with Pillow's, and geometries with torchvision's published algorithm.

    cargo build --release -p shardtool-decode --example pixels
    python crates/decode/tests/pixels.py target/release/examples/pixels FOLDER_OF_PHOTOGRAPHS [COUNT]

Needs Pillow and numpy. If torchvision is installed, its functional operations are compared as well. Sources of resizes are
lossless, so that only the resize is measured. Exits with 1 if a difference exceeds its bound.
"""

import json
import math
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, ImageOps

try:
    import torch
    from torchvision.transforms import InterpolationMode
    from torchvision.transforms.v2 import functional as tv
except ImportError:
    tv = None


class Ours:
    """The example program, which answers each request."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def bytes(self, *request):
        self.process.stdin.write((" ".join(map(str, request)) + "\n").encode())
        self.process.stdin.flush()
        width, height, length = struct.unpack("<III", self.process.stdout.read(12))
        return width, height, self.process.stdout.read(length)

    def __call__(self, *request):
        width, height, data = self.bytes(*request)
        return np.frombuffer(data, np.uint8).reshape(height, width, 3)


class Table:
    """Differences by comparison, each with a bound on the mean of one image."""

    def __init__(self):
        self.rows = {}

    def add(self, name, ours, theirs, bound):
        assert ours.shape == theirs.shape, f"{name}: shape {ours.shape}, expected {theirs.shape}"
        difference = np.abs(ours.astype(int) - theirs.astype(int))
        row = self.rows.setdefault(name, {"images": 0, "sum": 0.0, "worst": 0.0, "max": 0, "bound": bound})
        row["images"] += 1
        row["sum"] += difference.mean()
        row["worst"] = max(row["worst"], difference.mean())
        row["max"] = max(row["max"], difference.max())

    def print(self):
        print(f"{'compared':<44}{'images':>7}{'mean':>9}{'worst mean':>12}{'max':>5}  bound on an image's mean")
        good = True
        for name, r in self.rows.items():
            good &= r["worst"] <= r["bound"]
            mark = "" if r["worst"] <= r["bound"] else "  FAILED"
            print(
                f"{name:<44}{r['images']:>7}{r['sum'] / r['images']:>9.4f}{r['worst']:>12.4f}{r['max']:>5}"
                f"  {r['bound']}{mark}"
            )
        return good


def random_resized_crop(width, height, scale, ratio, draws):
    """torchvision's RandomResizedCrop.get_params with given random numbers: left, top, width, height."""
    draw = iter(draws)
    for _ in range(10):
        area = height * width * (scale[0] + (scale[1] - scale[0]) * next(draw))
        low, high = math.log(ratio[0]), math.log(ratio[1])
        aspect = math.exp(low + (high - low) * next(draw))
        w = int(round(math.sqrt(area * aspect)))
        h = int(round(math.sqrt(area / aspect)))
        if 0 < w <= width and 0 < h <= height:
            top = int(next(draw) * (height - h + 1))
            left = int(next(draw) * (width - w + 1))
            return left, top, w, h
    if width / height < ratio[0]:
        w, h = width, int(round(width / ratio[0]))
    elif width / height > ratio[1]:
        w, h = int(round(height * ratio[1])), height
    else:
        w, h = width, height
    return (width - w) // 2, (height - h) // 2, w, h


def resized(image, size, filter=Image.BILINEAR):
    """Resizes horizontally, then vertically, as Pillow up to 12. Later releases choose the order by the sizes."""
    return image.resize((size[0], image.height), filter).resize(size, filter)


def photographs(table, ours, files, folder):
    source = folder / "photo.png"
    rng = random.Random(7)
    for file in files:
        image = Image.open(file)
        rgb = image.convert("RGB")
        rgb.save(source, compress_level=1)
        width, height = rgb.size
        table.add("JPEG decoded, Pillow (libjpeg-turbo)", ours("decode", file), np.asarray(rgb), 0.0)

        to = (rng.randint(16, 2 * width), rng.randint(16, 2 * height))
        table.add("resize, Pillow", ours("resize", source, *to), np.asarray(resized(rgb, to)), 0.0)

        scale, ratio = rng.choice([([0.08, 1.0], [3 / 4, 4 / 3]), ([0.5, 1.0], [0.2, 0.4]), ([0.9, 1.0], [2.0, 3.0])])
        draws = [rng.random() for _ in range(24)]
        left, top, w, h = random_resized_crop(width, height, scale, ratio, draws)
        box = (left, top, left + w, top + h)
        steps = [{"random_resized_crop": {"size": [224, 200], "scale": scale, "ratio": ratio}}]
        request = json.dumps(steps, separators=(",", ":")), 1, ",".join(map(repr, draws)), source
        cropped = rgb.crop(box)
        want = np.asarray(resized(cropped, (200, 224)))
        got = ours("apply", "image", *request)
        table.add("RandomResizedCrop, Pillow", got, want, 0.0)
        for name, filter in [("bicubic", Image.BICUBIC), ("lanczos", Image.LANCZOS)]:
            steps[0]["random_resized_crop"]["interpolation"] = name
            with_filter = json.dumps(steps, separators=(",", ":")), *request[1:]
            want_filtered = np.asarray(resized(cropped, (200, 224), filter))
            table.add(f"RandomResizedCrop, {name}, Pillow", ours("apply", "image", *with_filter), want_filtered, 0.0)
        want = np.asarray(cropped.resize((200, 224), Image.NEAREST))
        table.add("RandomResizedCrop, nearest, Pillow", ours("apply", "nearest", *request), want, 0.0)
        for name, mask, options in [("palette", rgb.quantize(200), {}), ("4 bits", rgb.quantize(16), {"bits": 4})]:
            mask.save(folder / "mask.png", **options)
            want = np.asarray(mask.crop(box).resize((200, 224), Image.NEAREST))
            got_map = ours("apply", "labels", *request[:-1], folder / "mask.png")
            table.add(f"RandomResizedCrop, labels, {name}, Pillow", got_map, np.repeat(want[..., None], 3, -1), 0.0)
        if tv:
            tensor = torch.from_numpy(np.asarray(rgb).copy()).permute(2, 0, 1)
            want = tv.resized_crop(tensor, top, left, h, w, [224, 200], InterpolationMode.BILINEAR, antialias=True)
            table.add("RandomResizedCrop, torchvision", got, want.permute(1, 2, 0).numpy(), 1.0)

        scaled = (256, int(256 * height / width)) if width <= height else (int(256 * width / height), 256)
        x, y = int(round((scaled[0] - 224) / 2.0)), int(round((scaled[1] - 224) / 2.0))
        want = np.asarray(rgb.resize(scaled, Image.BILINEAR).crop((x, y, x + 224, y + 224)))
        steps = '[{"resize":{"shorter":256}},{"center_crop":{"size":[224,224]}}]'
        got = ours("apply", "image", steps, 1, 0, source)
        table.add("Resize + CenterCrop, Pillow", got, want, 0.0)
        if tv:
            want = tv.center_crop(tv.resize(tensor, [256], InterpolationMode.BILINEAR, antialias=True), [224, 224])
            table.add("Resize + CenterCrop, torchvision", got, want.permute(1, 2, 0).numpy(), 1.0)

        size = [rng.randint(1, height), rng.randint(1, width)]
        x, y = int(round((width - size[1]) / 2.0)), int(round((height - size[0]) / 2.0))
        want = rgb.crop((x, y, x + size[1], y + size[0])).transpose(Image.FLIP_LEFT_RIGHT)
        steps = json.dumps([{"center_crop": {"size": size}}, {"horizontal_flip": {"p": 1.0}}], separators=(",", ":"))
        table.add("crop and flip", ours("apply", "image", steps, 1, 0, source), np.asarray(want), 0.0)

        for exif in range(2, 9):
            tag = Image.Exif()
            tag[0x0112] = exif
            rgb.save(source, compress_level=0, exif=tag)
            want = np.asarray(ImageOps.exif_transpose(Image.open(source)))
            table.add("orientation", ours("upright", source), want, 0.0)


def modes(table, ours, photo, folder):
    """Every mode and format that Pillow writes and we read."""
    rgb = Image.open(photo).convert("RGB")
    alpha = Image.linear_gradient("L").resize(rgb.size)
    rgba = rgb.copy()
    rgba.putalpha(alpha)
    grey_alpha = rgb.convert("L")
    grey_alpha.putalpha(alpha)
    deep = (np.asarray(rgb.convert("L")).astype(np.uint16) << 8) + np.asarray(alpha)
    sources = {"L": rgb.convert("L"), "1": rgb.convert("1"), "P": rgb.quantize(64)}
    sources |= {"RGB": rgb, "RGBA": rgba, "LA": grey_alpha}
    formats = {
        "png": (["L", "1", "P", "RGB", "RGBA", "LA"], {}, 0.0),
        "bmp": (["L", "1", "P", "RGB"], {}, 0.0),
        "tiff": (["L", "1", "RGB", "RGBA"], {}, 0.0),
        "gif": (["L", "P"], {}, 0.0),
        "webp": (["RGB", "RGBA"], {"lossless": True, "exact": True}, 0.0),
    }
    for suffix, (names, options, bound) in formats.items():
        for name in names:
            path = folder / f"mode.{suffix}"
            sources[name].save(path, **options)
            want = np.asarray(Image.open(path).convert("RGB"))
            table.add(f"{suffix} {name}", ours("decode", path), want, bound)
    path = folder / "lossy.webp"
    rgb.save(path, quality=80)
    table.add("webp lossy", ours("decode", path), np.asarray(Image.open(path).convert("RGB")), 1.0)
    path = folder / "deep.png"
    Image.fromarray(deep).save(path)
    want = np.repeat((deep >> 8).astype(np.uint8)[..., None], 3, axis=2)
    table.add("png 16-bit grey, high byte", ours("decode", path), want, 0.0)
    for mode in ("L", "CMYK"):
        path = folder / "mode.jpg"
        rgb.convert(mode).save(path, quality=90)
        table.add(f"jpeg {mode}", ours("decode", path), np.asarray(Image.open(path).convert("RGB")), 0.0)


def encoding(table, ours, files, folder):
    """Compares our JPEGs with Pillow's of the same quality: pixels and sizes."""
    sizes = {}
    for file in files:
        source, path = folder / "encode.png", folder / "encode.jpg"
        rgb = Image.open(file).convert("RGB")
        rgb.save(source, compress_level=1)
        for quality, subsampling in ((75, 2), (90, 0), (95, 0)):
            jpeg = ours.bytes("encode", source, quality)[2]
            path.write_bytes(jpeg)
            theirs = folder / "theirs.jpg"
            rgb.save(theirs, quality=quality, subsampling=subsampling)
            name = f"encoded at {quality}, against Pillow's own"
            table.add(name, np.asarray(Image.open(path)), np.asarray(Image.open(theirs)), 1.0)
            ours_bytes, their_bytes = sizes.get(quality, (0, 0))
            sizes[quality] = ours_bytes + len(jpeg), their_bytes + theirs.stat().st_size
    for quality, (a, b) in sizes.items():
        print(f"encoded at {quality}: {a / b:.3f} of the bytes of Pillow's, same subsampling")


def main():
    program, photos, count = sys.argv[1], pathlib.Path(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 100
    files = sorted(p for p in photos.rglob("*") if p.suffix.lower() in (".jpg", ".jpeg"))
    files = files[:: max(1, len(files) // count)][:count]
    ours, table = Ours(program), Table()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        photographs(table, ours, files, folder)
        modes(table, ours, files[0], folder)
        encoding(table, ours, files[:20], folder)
    if tv is None:
        print("skipped: torchvision is not installed")
    return 0 if table.print() else 1


if __name__ == "__main__":
    sys.exit(main())
