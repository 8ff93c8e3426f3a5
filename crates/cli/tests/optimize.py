"""`pack --jpeg optimize` changes no pixel: Pillow (libjpeg-turbo) decodes originals and stored images.

Usage: python optimize.py SHARDTOOL [FOLDER...]    (run by scripts/test, in the environment `pillow`)
FOLDERs of further images; without any the test takes the JPEG crate's own.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

from PIL import Image, ImageFile

OWN = pathlib.Path(__file__).resolve().parents[2] / "jpeg" / "tests" / "data"
# Pillow decodes the available part of truncated images; both must be equal.
ImageFile.LOAD_TRUNCATED_IMAGES = True


def pixels(path):
    """Returns mode, size, orientation and pixels; None if Pillow does not read the file."""
    try:
        with Image.open(path) as image:
            orientation = image.getexif().get(0x0112, 1)
            # Other values are invalid.
            return image.mode, image.size, orientation if 2 <= orientation <= 8 else 1, image.tobytes()
    except (OSError, SyntaxError):
        return None


def check(shardtool, source, work):
    """Packs, extracts and compares a folder of images; returns the number of compared images and the saved bytes."""
    pack = [shardtool, "pack", source, work / "set", "--jpeg", "optimize", "--json"]
    run = subprocess.run(pack, capture_output=True, text=True)
    # Status 1: files of the corpora that are not images are rejected.
    assert run.returncode in (0, 1), run.stderr
    gained = json.loads(run.stdout)["jpeg"]
    subprocess.run([shardtool, "extract", work / "set", work / "out"], check=True, capture_output=True)
    compared = changed = before = after = 0
    for path in sorted(p for p in (work / "out").rglob("[!.]*") if p.is_file()):
        original = source / path.relative_to(work / "out")
        a, b = original.read_bytes(), path.read_bytes()
        if a == b:
            continue
        changed, before, after = changed + 1, before + len(a), after + len(b)
        left, right = pixels(original), pixels(path)
        assert left is not None and left == right, f"{original}: other pixels, size, mode or orientation"
        compared += 1
    assert compared == changed == gained["optimized"], (compared, changed, gained)
    assert (before, after) == (gained["bytes_before"], gained["bytes_after"]), gained
    return compared, gained


def main():
    shardtool, *folders = sys.argv[1:]
    for folder in [OWN, *map(pathlib.Path, folders)]:
        with tempfile.TemporaryDirectory() as work:
            work = pathlib.Path(work)
            source = folder.resolve()
            if folder == OWN:
                source = work / "own"
                source.mkdir()
                for path in OWN.glob("*.jpg"):
                    shutil.copy(path, source)
            compared, gained = check(shardtool, source, work)
            assert compared > 5, f"{folder}: only {compared} images transcoded"
            print(f"{source.name}: {compared} images with the same pixels in Pillow; {json.dumps(gained)}")


if __name__ == "__main__":
    main()
