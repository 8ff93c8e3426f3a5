"""Compares this crate's pixels with libjpeg-turbo's, bit for bit.

    cargo build --release -p shardtool-jpeg --example crc
    python crates/jpeg/tests/oracle.py target/release/examples/crc FOLDER...

Needs Pillow built with libjpeg-turbo. Searches each FOLDER for JPEGs, and makes further images of all samplings, odd sizes, restart
intervals and qualities. Decodes every image whole and at 1/2, 1/4 and 1/8, with and without entry points and vector
instructions, to RGB and to grey, and random rectangles of it, which must equal those of libjpeg-turbo's whole image.
"""

import io
import itertools
import os
import random
import subprocess
import sys
import tempfile
import warnings
import zlib

from PIL import Image, ImageFile, features

def gradient(rng, width, height, mode):
    image = Image.effect_noise((width, height), rng.choice([4, 40, 90])).convert("L")
    ramp = Image.linear_gradient("L").resize((width, height)).rotate(rng.choice([0, 90, 180]))
    if mode == "L":
        return Image.blend(image, ramp.resize((width, height)), 0.5)
    radial = Image.radial_gradient("L").resize((width, height))
    return Image.merge("RGB", (image, ramp, Image.blend(image, radial, 0.7)))


def encode(rng, image, kind, options):
    """Encodes the image. A kind of 440 or 411 gives that sampling, and a size close to the image's.

    Pillow cannot write these samplings. 4:2:2 (4:2:0) has the same number of blocks in an MCU, so the sampling factors in
    the file are replaced, and the size by one with the same number of MCUs.
    """
    image.save(buffer := io.BytesIO(), "JPEG", **options)
    jpeg = bytearray(buffer.getvalue())
    if kind not in ("440", "411") or options.get("progressive") or image.mode == "L":
        return bytes(jpeg)
    width, height = image.size
    if kind == "440":
        mcus, mcu, factors = (-(-width // 16), -(-height // 8)), (8, 16), 0x12
    else:
        image.save(buffer := io.BytesIO(), "JPEG", **{**options, "subsampling": 2})
        jpeg = bytearray(buffer.getvalue())
        mcus, mcu, factors = (-(-width // 16), -(-height // 16)), (32, 8), 0x41
    width, height = (n * m - rng.randint(0, m - 1) for n, m in zip(mcus, mcu))
    at = jpeg.index(b"\xff\xc0")
    jpeg[at + 5 : at + 9] = height.to_bytes(2, "big") + width.to_bytes(2, "big")
    jpeg[at + 11] = factors
    return bytes(jpeg)


def generated(folder, rng, count):
    """Writes `count` images of every kind that Pillow can write, and returns their paths."""
    paths = []
    for i in range(count):
        width, height = rng.randint(1, 40), rng.randint(1, 40)
        if i % 10 == 0:
            width, height = rng.randint(41, 300), rng.randint(41, 300)
        mode = rng.choice(["L", "RGB", "RGB", "RGB", "RGB"])
        options = {"quality": rng.choice([1, 5, 30, 75, 90, 95, 100]), "progressive": rng.random() < 0.25}
        options["optimize"] = rng.random() < 0.3
        restart = rng.choice([None, None, "restart_marker_blocks", "restart_marker_rows"])
        if restart:
            options[restart] = rng.randint(1, 5)
        kind = rng.choice(["444", "422", "420", "420", "440", "411", "rgb"])
        if mode == "RGB":
            options["subsampling"] = {"444": 0, "422": 1, "420": 2, "440": 1, "411": 1, "rgb": 0}[kind]
            if kind == "rgb":
                options["keep_rgb"] = True
        jpeg = encode(rng, gradient(rng, width, height, mode), kind, options)
        path = os.path.join(folder, f"{i:05}-{mode}-{kind}.jpg")
        with open(path, "wb") as f:
            f.write(jpeg)
        paths.append(path)
    return paths


def reference(file, divisor, gray=False):
    """Returns libjpeg-turbo's pixels at that scale as an RGB image, or as its grey one (JCS_GRAYSCALE). Returns None if it does
    not decode at that scale."""
    image = Image.open(file)
    if image.format != "JPEG":
        raise ValueError(f"{image.format}, not JPEG")
    mode = "L" if gray and image.mode == "RGB" else image.mode
    if divisor > 1 or gray:
        image.draft(mode, (max(1, image.width // divisor), max(1, image.height // divisor)))
        assert image.mode == mode
        if divisor > 1 and image.decoderconfig[0] != divisor:
            return None
    rgb = image.convert("RGB")
    return rgb.convert("L") if gray else rgb


def references(jpeg, both):
    """Yields libjpeg-turbo's images of a file at every scale that it decodes, in colour and, if `both` says so, in grey: divisor,
    whether grey, the image or the exception that refuses it, and its size."""
    for divisor, gray in itertools.product((1, 2, 4, 8), (False, True) if both else (False,)):
        try:
            whole = reference(io.BytesIO(jpeg), divisor, gray)
            size = whole and whole.size
        except Exception as error:
            whole, size = error, (1, 1)
        if whole is not None:
            yield divisor, gray, whole, size


def main():
    warnings.simplefilter("ignore")
    assert features.check("libjpeg_turbo"), "this test needs Pillow with libjpeg-turbo"
    Image.MAX_IMAGE_PIXELS = None
    binary, folders = sys.argv[1], sys.argv[2:]
    count = int(os.environ.get("GENERATED", "2000"))
    rng = random.Random(int(os.environ.get("SEED", "1")))
    with tempfile.TemporaryDirectory() as folder:
        paths = [os.path.join(d, f) for top in folders for d, _, files in os.walk(top) for f in sorted(files)]
        paths += generated(folder, rng, count)
        requests, expected = [], []
        unreadable = 0
        for path in paths:
            for divisor, gray in itertools.product((1, 2, 4, 8), (False, True)):
                try:
                    whole = reference(path, divisor, gray)
                    if whole is None:
                        continue
                    whole.load()
                except Exception as e:
                    unreadable += divisor == 1 and not gray
                    continue
                width, height = whole.size
                for mode in ("plain", "portable", "entries"):
                    for rect in [None] + [random_rect(rng, width, height) for _ in range(1 + (mode == "entries"))]:
                        x, y, w, h = rect or (0, 0, 0, 0)
                        part = whole.crop((x, y, x + w, y + h)) if rect else whole
                        requests.append(f"{path} {divisor} {x} {y} {w} {h} {mode}{'-gray' if gray else ''}")
                        expected.append(f"{part.width} {part.height} {zlib.crc32(part.tobytes()):08x}")
        answers = subprocess.run([binary], input="\n".join(requests), capture_output=True, text=True, check=True)
        answers = answers.stdout.splitlines()
        assert len(answers) == len(requests)
        paths_taken, refused, wrong = {}, {}, []
        for request, want, got in zip(requests, expected, answers):
            if got.startswith("error"):
                refused.setdefault(request.rsplit(" ", 6)[0], got)
            elif got.rsplit(" ", 1)[0] != want:
                wrong.append(f"{request}: expected {want}, found {got}")
            else:
                path = got.rsplit(" ", 1)[1]
                paths_taken[path] = paths_taken.get(path, 0) + 1
    print(f"Pillow with libjpeg-turbo {features.version('libjpeg_turbo')}: {len(paths)} images, {unreadable} unreadable for it")
    print(f"{sum(paths_taken.values())} decodes equal: {paths_taken}")
    for path, error in refused.items():
        print(f"refused: {path.rsplit('/', 1)[-1]}: {error}")
    for line in wrong[:20]:
        print(line)
    print(f"{len(wrong)} wrong, {len(refused)} images refused")
    allowed = int(os.environ.get("REFUSED", "0"))
    sys.exit(1 if wrong or len(refused) > allowed else 0)


def random_rect(rng, width, height):
    w, h = rng.randint(1, width), rng.randint(1, height)
    return rng.randint(0, width - w), rng.randint(0, height - h), w, h


if __name__ == "__main__":
    main()
