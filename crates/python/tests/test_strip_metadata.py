"""Removal of metadata from images that Pillow writes: what the files of a dataset hold, and what Pillow reads of them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import shardtool as st
from PIL import Image, ImageCms, ImageOps, PngImagePlugin
from PIL.TiffImagePlugin import IFDRational, ImageFileDirectory_v2

SERIAL = "SERIAL-4711-0815"
COMMENT = "taken at 48.1516 N 23.4200 E"
XMP = b"<x:xmpmeta xmlns:x='adobe:ns:meta/'><exif:GPSLatitude>48,15.16N</exif:GPSLatitude></x:xmpmeta>"
PARTS = [SERIAL.encode(), COMMENT.encode(), b"GPSLatitude"]
LATITUDE = [(481517, 1000), (23, 7), (420815, 1013)]
PROFILE = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def rationals() -> list[bytes]:
    """The latitude as in EXIF, in both byte orders."""
    numbers = [number for pair in LATITUDE for number in pair]
    return [b"".join(number.to_bytes(4, order) for number in numbers) for order in ("little", "big")]


def exif(orientation: int = 6) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    exif[0x010E] = COMMENT
    exif.get_ifd(0x8769)[0xA431] = SERIAL
    exif.get_ifd(0x8825).update({1: "N", 2: tuple(IFDRational(*pair) for pair in LATITUDE)})
    return exif


def picture(mode: str = "RGB") -> Image.Image:
    pixels = np.arange(48 * 32 * 3, dtype=np.uint32).reshape(32, 48, 3) * 2654435761 >> 24
    smooth = Image.fromarray(pixels.astype(np.uint8)).resize((24, 16)).resize((96, 64), Image.Resampling.BICUBIC)
    return smooth.convert(mode)


def saved(format: str, mode: str = "RGB", **options: object) -> bytes:
    file = io.BytesIO()
    picture(mode).save(file, format, **options)
    return file.getvalue()


def files() -> dict[str, bytes]:
    """Images with metadata, by their file names."""
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", COMMENT)
    text.add_text("Serial", SERIAL, zip=True)
    text.add_itxt("XML:com.adobe.xmp", XMP.decode())
    common: dict[str, object] = {"exif": exif(), "icc_profile": PROFILE}
    made = {
        "baseline.jpg": saved("JPEG", xmp=XMP, comment=COMMENT, dpi=(72, 72), **common),
        "progressive.jpg": saved("JPEG", progressive=True, comment=COMMENT, **common),
        "grey.jpg": saved("JPEG", "L", comment=COMMENT, exif=exif(3)),
        "cmyk.jpg": saved("JPEG", "CMYK", comment=COMMENT, exif=exif(1)),
        "true.png": saved("PNG", pnginfo=text, **common),
        "palette.png": saved("PNG", "P", pnginfo=text, **common),
        "alpha.png": saved("PNG", "RGBA", pnginfo=text, exif=exif(1), dpi=(300, 300)),
        "lossy.webp": saved("WEBP", xmp=XMP, **common),
        "lossless.webp": saved("WEBP", lossless=True, xmp=XMP, **common),
        "alpha.webp": saved("WEBP", "RGBA", exif=exif(1)),
        "plain.gif": saved("GIF", "P", comment=COMMENT.encode()),
        "plain.bmp": saved("BMP") + COMMENT.encode(),
    }
    # Pillow writes directories below that of the image only where it does not use libtiff.
    position = {1: "N", 2: tuple(IFDRational(*pair) for pair in LATITUDE)}
    directories = ImageFileDirectory_v2()
    directories[0x8825], directories[0x8769], directories[0x0112] = position, {0xA431: SERIAL}, 6
    directories[700], directories[270] = XMP, COMMENT
    for name, options in (("plain", {}), ("big", {"big_tiff": True})):
        made[f"{name}.tif"] = saved("TIFF", tiffinfo=directories, icc_profile=PROFILE, **options)
    for compression in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg"):
        options = {**common, "compression": compression, "description": COMMENT, "software": SERIAL}
        made[f"{compression}.tif"] = saved("TIFF", **options)
    pages = io.BytesIO()
    picture().save(pages, "TIFF", save_all=True, append_images=[picture("L")], tiffinfo=directories)
    made["pages.tif"] = pages.getvalue()
    # An animation, and a picture behind a JPEG.
    frames = io.BytesIO()
    picture().save(frames, "WEBP", save_all=True, append_images=[picture().rotate(90)], exif=exif(1), xmp=XMP)
    made["animated.webp"] = frames.getvalue()
    mpo = io.BytesIO()
    picture().save(mpo, "MPO", save_all=True, append_images=[picture()], exif=exif())
    made["pair.jpg"] = mpo.getvalue() + COMMENT.encode()
    return made


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    folder = tmp_path / "photos"
    folder.mkdir()
    for name, data in files().items():
        (folder / name).write_bytes(data)
    return folder


def found(folder: Path) -> set[bytes]:
    """The parts of the metadata that are in any file of a folder."""
    parts = set()
    for root, _, names in os.walk(folder):
        for name in names:
            data = Path(root, name).read_bytes()
            parts |= {part for part in [*PARTS, *rationals()] if part in data}
    return parts


def shown(data: bytes) -> tuple[bytes, tuple[int, int], bytes | None, int]:
    """What Pillow reads: the upright pixels, their size, the colour profile, the orientation."""
    with Image.open(io.BytesIO(data)) as image:
        orientation, profile = image.getexif().get(0x0112, 1), image.info.get("icc_profile")
        upright = ImageOps.exif_transpose(image.convert("RGB") if image.mode == "P" else image)
        return upright.tobytes(), upright.size, profile, orientation


def records(dataset: Path) -> dict[str, dict]:
    split = st.Dataset(dataset)["train"]
    return {record["key"]: record for record in split[:]}


def same(kept: dict[str, dict], clean: dict[str, dict]) -> None:
    assert kept.keys() == clean.keys() and len(kept) == len(files())
    for key, record in clean.items():
        assert shown(record["image"]) == shown(kept[key]["image"]), key
        assert {**record["features"]} == {**kept[key]["features"]}, key


def test_no_file_of_the_dataset_has_the_metadata(pictures: Path, tmp_path: Path) -> None:
    kept = st.pack(pictures, tmp_path / "kept")
    assert (kept.rejected, kept.metadata_removed) == (0, 0)
    # Without the option all of it is there, so this test can fail.
    assert found(tmp_path / "kept") >= {*PARTS, rationals()[0]}
    clean = st.pack(pictures, tmp_path / "clean", strip_metadata=True)
    assert (clean.rejected, clean.metadata_removed) == (0, len(files()))
    assert found(tmp_path / "clean") == set()
    same(records(tmp_path / "kept"), records(tmp_path / "clean"))
    assert st.verify(tmp_path / "clean", decode=True).good


def test_pixels_of_loaders_are_the_same(pictures: Path, tmp_path: Path) -> None:
    batches = []
    for strip in (False, True):
        st.pack(pictures, tmp_path / str(strip), strip_metadata=strip)
        image = st.Image([st.Resize(32), st.CenterCrop(32)], apply_orientation=True)
        split = st.Dataset(tmp_path / str(strip))["train"]
        with st.Loader(split, len(files()), [image], order=st.Sequential()) as loader:
            batches += [np.array(batch["image"]) for batch in loader]
    assert (batches[0] == batches[1]).all()


def test_compact_removes_it_from_existing_shards(pictures: Path, tmp_path: Path) -> None:
    st.pack(pictures, tmp_path / "set", shards=3)
    before = records(tmp_path / "set")
    changed = st.Dataset(tmp_path / "set").compact(strip_metadata=True)
    assert changed.version == 2
    changed.gc(keep=1, remove=True)
    assert found(tmp_path / "set") == set()
    same(before, records(tmp_path / "set"))
    assert changed.compact(strip_metadata=True).version == 2
    assert st.verify(tmp_path / "set", decode=True).good


def test_a_writer_removes_it(tmp_path: Path) -> None:
    for strip in (False, True):
        with st.Writer(tmp_path / str(strip), "train", strip_metadata=strip) as writer:
            for name, data in files().items():
                writer.write({"key": name, "image": data, "extra": [data, b"no image"]})
    assert found(tmp_path / "False") and found(tmp_path / "True") == set()
    same_images = records(tmp_path / "True")
    for key, record in records(tmp_path / "False").items():
        extra, text = same_images[key]["features"]["extra"]
        assert shown(extra) == shown(record["image"]) == shown(same_images[key]["image"]), key
        assert text == b"no image"


def test_the_report_counts_positions(pictures: Path, tmp_path: Path) -> None:
    counts = []
    for strip in (False, True):
        st.pack(pictures, tmp_path / str(strip), strip_metadata=strip)
        command = [sys.executable, "-m", "shardtool", "report", str(tmp_path / str(strip)), "--json"]
        split = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)["splits"][0]
        counts.append((split["images"], split["images_with_position"]))
    # The GIF, the bitmap and the TIFFs by libtiff have none.
    assert counts == [(len(files()), len(files()) - 6), (len(files()), 0)]
