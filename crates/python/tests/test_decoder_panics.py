"""A panic in a decoder turns its sample into a bad sample, prints nothing, and training continues."""

import struct

import numpy as np
import pytest

import shardtool as st


def panicking_tiff() -> bytes:
    """Planar tiles of 16-bit CMYK, 40x20: the file of crates/decode/tests/made/panicking_tiff.rs."""
    tiles, tile_bytes = 24, 512
    fields = [(256, 4, 1, 40), (257, 4, 1, 20), (258, 3, 1, 16), (259, 3, 1, 1), (262, 3, 1, 5), (277, 3, 1, 4)]
    fields += [(284, 3, 1, 2), (322, 4, 1, 16), (323, 4, 1, 16)]
    values = 8 + 2 + 11 * 12 + 4
    lengths, data = values + 4 * tiles, values + 8 * tiles
    fields += [(324, 4, tiles, values), (325, 4, tiles, lengths)]
    directory = struct.pack("<H", len(fields)) + b"".join(struct.pack("<HHII", *field) for field in fields)
    places = b"".join(struct.pack("<I", data + tile_bytes * tile) for tile in range(tiles))
    pixels = bytes(i % 256 for i in range(tile_bytes * tiles))
    return b"II*\0\x08\0\0\0" + directory + bytes(4) + places + struct.pack("<I", tile_bytes) * tiles + pixels


@pytest.fixture
def damaged(photos, tmp_path):
    """A dataset of the TIFF and photographs of one class."""
    folder = tmp_path / "photos" / "owl"
    folder.mkdir(parents=True)
    for photo in sorted((photos / "owl").iterdir())[:9]:
        (folder / photo.name).write_bytes(photo.read_bytes())
    (folder / "0.tif").write_bytes(panicking_tiff())
    st.pack(tmp_path / "photos", tmp_path / "dataset")
    return tmp_path / "dataset"


def test_decoder_panic_is_a_bad_sample_and_prints_nothing(damaged, capfd):
    split = st.Dataset(damaged).split("train")
    [bad_id] = [i for i in range(len(split)) if split[i]["key"] == "owl/0.tif"]
    loader = st.Loader(split, 5, [st.ResizeTo(8)], order=st.Sequential(), bad_samples="mask")
    ids = np.concatenate([batch["id"][batch["valid"]] for batch in loader])
    assert sorted(ids.tolist()) == [i for i in range(10) if i != bad_id]
    [bad] = loader.bad_samples()
    assert bad["id"] == bad_id
    strict = st.Loader(split, 5, [st.ResizeTo(8)], order=st.Sequential(), bad_samples="error")
    with pytest.raises(st.BadSampleError, match="the tiff decoder panicked"):
        list(strict)

    report = st.verify(damaged, decode=True)
    [damage] = report.damages
    assert (damage.name, damage.key) == ("ImageDecode", "owl/0.tif")
    assert "panicked at" not in capfd.readouterr().err
