"""`truncated="fill"`: a cut or damaged JPEG is what libjpeg-turbo makes of it, whole, in part, reduced and cached."""

import io
import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import shardtool as st

SIZE = (136, 104)


def photograph(number: int, **options) -> bytes:
    """Returns a JPEG of a noisy gradient."""
    noise = Image.effect_noise(SIZE, 60 + number)
    image = Image.merge("RGB", (noise, Image.linear_gradient("L").resize(SIZE), noise.rotate(180)))
    image.save(file := io.BytesIO(), "JPEG", quality=85, **options)
    return file.getvalue()


def of_libjpeg(jpeg: bytes) -> Image.Image:
    """Returns what libjpeg makes of the data, with the EOI marker that its own reader adds at the end."""
    return Image.open(io.BytesIO(jpeg + b"\xff\xd9")).convert("RGB")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder of JPEGs: good, cut, and with damaged data."""
    folder = tmp_path_factory.mktemp("photographs")
    forms = {"plain": {}, "progressive": {"progressive": True}, "restarts": {"restart_marker_rows": 1}}
    for number, (name, options) in enumerate(forms.items()):
        good = photograph(number, **options)
        (folder / f"{name}-good.jpg").write_bytes(good)
        (folder / f"{name}-cut.jpg").write_bytes(good[: len(good) * 3 // 5])
        damaged = bytearray(good)
        # In the data of the first scan: ones, which are no code.
        start = good.index(b"\xff\xda") + 60
        damaged[start : start + 8] = b"\xff\0" * 4
        (folder / f"{name}-damaged.jpg").write_bytes(damaged)
    return folder


@pytest.fixture(scope="module")
def split(files, tmp_path_factory):
    destination = tmp_path_factory.mktemp("packed") / "dataset"
    packed = st.pack(files, destination, seed=None, truncated="fill")
    assert (packed.images, packed.rejected, packed.truncated) == (9, 0, 3)
    return st.Dataset(destination)["train"]


def expected(files, split):
    keys = [sample["key"] for sample in split]
    return [of_libjpeg((files / key).read_bytes()) for key in keys]


def load(split, steps, **pixels) -> tuple[np.ndarray, dict]:
    loader = st.Loader(split, len(split), st.Image(steps, truncated="fill", **pixels), order=st.Sequential())
    batch = next(iter(loader))
    return batch["image"].copy(), loader.stats()


def test_whole_images_are_those_of_libjpeg(files, split):
    images, stats = load(split, [st.ResizeTo(SIZE[::-1])])
    for image, want in zip(images, expected(files, split), strict=True):
        assert (image == np.asarray(want)).all()
    # Workers are ahead, in the next epoch.
    assert stats["filled"] >= 6 and stats["bad_samples"] == 0


def test_parts_have_the_pixels_of_the_whole(files, split):
    steps = [st.CenterCrop((24, 40))]
    images, _ = load(split, steps)
    left, top = (SIZE[0] - 40) // 2, (SIZE[1] - 24) // 2
    for image, want in zip(images, expected(files, split), strict=True):
        assert (image == np.asarray(want.crop((left, top, left + 40, top + 24)))).all()


def test_cached_images_are_the_same(files, split, tmp_path):
    steps, want = [st.ResizeTo(SIZE[::-1])], expected(files, split)
    for path in (None, tmp_path):
        cache = st.DecodedCache("4MiB", resize=1000, path=path)
        loader = st.Loader(split, 9, st.Image(steps, truncated="fill", decoded_cache=cache), order=st.Sequential())
        for _ in range(3):
            for batch in loader:
                for image, one in zip(batch["image"], want, strict=True):
                    assert (image == np.asarray(one)).all()
        # Not every epoch decodes them: later ones take them from the cache.
        cached = loader.stats()["decoded_cache"]
        assert 6 <= loader.stats()["filled"] <= cached["misses"] < 18


def test_grey_is_the_luma_that_libjpeg_decodes(files, split):
    images, _ = load(split, [st.ResizeTo(SIZE[::-1])], mode="L")
    for sample, image in zip(split, images, strict=True):
        grey = Image.open(io.BytesIO((files / sample["key"]).read_bytes() + b"\xff\xd9"))
        grey.draft("L", SIZE)
        assert (image.reshape(SIZE[::-1]) == np.asarray(grey)).all(), sample["key"]


def test_the_default_is_an_error(files, split, tmp_path):
    packed = st.pack(files, tmp_path / "strict", seed=None)
    assert (packed.images, packed.rejected, packed.truncated) == (6, 3, 0)
    loader = st.Loader(split, 9, [st.ResizeTo(8)], order=st.Sequential(), bad_samples="mask")
    next(iter(loader))
    assert loader.stats()["bad_samples"] == 6 and loader.stats()["filled"] == 0
    with pytest.raises(st.OptionError, match="`truncated`: images as stored are not decoded"):
        st.Loader(split, 9, st.Image(truncated="fill"))
    with pytest.raises(st.OptionError, match="`truncated` is 'grey': expected \"error\", \"fill\""):
        st.Image([st.ResizeTo(8)], truncated="grey")


def test_pixels_are_packed_from_what_libjpeg_makes(files, tmp_path):
    packed = st.pack(files, tmp_path / "raw", seed=None, pixels="raw", truncated="fill")
    assert (packed.images, packed.rejected, packed.truncated) == (9, 0, 6)
    split = st.Dataset(tmp_path / "raw")["train"]
    loader = st.Loader(split, 9, [st.ResizeTo(SIZE[::-1])], order=st.Sequential())
    for image, want in zip(next(iter(loader))["image"], expected(files, split), strict=True):
        assert (image == np.asarray(want)).all()


def test_the_writer_takes_cut_images_on_request(files, tmp_path):
    cut = (files / "plain-cut.jpg").read_bytes()
    with st.Writer(tmp_path / "strict", "train") as writer, pytest.raises(st.PackError, match="end-of-image|truncated|cut"):
        writer.write({"key": "a", "image": cut})
    with st.Writer(tmp_path / "filled", "train", truncated="fill") as writer:
        writer.write({"key": "a", "image": cut})
    assert st.Dataset(tmp_path / "filled")["train"][0]["image"] == cut


def test_verify_counts_them_apart(split):
    report = st.verify(split.path, decode=True)
    assert len(report.damages) == 6 and report.filled == 0
    filled = st.verify(split.path, decode=True, truncated="fill")
    assert filled.good and filled.filled == 6


def test_the_commands_have_the_option(files, tmp_path):
    def run(*arguments) -> dict:
        command = [sys.executable, "-m", "shardtool", *map(str, arguments), "--json"]
        return json.loads(subprocess.run(command, capture_output=True, check=True).stdout)

    packed = run("pack", files, tmp_path / "dataset", "--truncated", "fill")
    assert (packed["truncated"], packed["rejected"]) == (3, 0)
    report = run("verify", tmp_path / "dataset", "--decode", "--truncated", "fill")
    assert report["good"] and report["filled"] == 6
    bench = run("bench", tmp_path / "dataset", "--truncated", "fill", "--batch", 3)
    assert bench["stats"]["bad_samples"] == 0 and bench["stats"]["filled"] >= 6
