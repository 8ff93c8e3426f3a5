"""Rich representations: run in a notebook by nbclient, and their pictures decoded by Pillow."""

import base64
import io
import re

import numpy as np
import pytest

import shardtool as st

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
Image = pytest.importorskip("PIL.Image")

_DATA = re.compile(r'src="data:image/(jpeg|png);base64,([A-Za-z0-9+/=]+)"')


def _pictures(html):
    return [Image.open(io.BytesIO(base64.b64decode(data))) for _, data in _DATA.findall(str(html))]


def test_every_representation_shows_in_a_notebook(dataset, tmp_path):
    steps = "[st.RandomResizedCrop(64), st.HorizontalFlip()]"
    cells = [
        f"import shardtool as st\ndataset = st.Dataset({str(dataset)!r})\ndataset",
        "split = dataset['train']\nsplit",
        "split.show(5, seed=3)",
        "split[7]",
        f"loader = st.Loader(split, 8, {steps}, workers=1)\nbatch = next(iter(loader))\nst.show(batch, 6)",
        "loader.stats()",
        "batch = None\nloader.close()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output["data"] for cell in notebook.cells for output in cell.outputs if output.output_type == "execute_result"]
    html = [data["text/html"] for data in shown]
    assert len(html) == 6
    assert [len(_pictures(text)) for text in html] == [6, 6, 5, 1, 6, 0]
    assert "<table" in html[0] and "image/class/label" in html[1] and "<svg" in html[1]
    assert "bounds the rate" in html[5] or "nothing was delivered" in html[5]
    assert all("<script" not in text for text in html)
    # The plain text of each is short.
    assert all(len(data["text/plain"]) < 400 for data in (shown[0], shown[1], shown[2], shown[4]))


def test_shown_records_are_those_of_the_loader_with_that_seed(train):
    loader = st.Loader(train, 4, [st.RandomResizedCrop(32)], order=st.Shuffled(9), workers=1)
    ids = next(iter(loader))["id"].tolist()
    loader.close()
    keys = [train[i]["key"].rsplit("/", 1)[-1] for i in ids]
    found = re.findall(r'alt="([^"]*)"', str(train.show(4, seed=9)))
    assert [name.rsplit("/", 1)[-1] for name in found] == keys
    assert _pictures(train.show(3, start=len(train) - 2))[1:] and len(_pictures(train.show(3, start=len(train) - 2))) == 2
    assert _pictures(train.show(0)) == []


def test_a_record_is_a_dict_and_shows_its_image_and_escaped_values(train):
    record = train[3]
    assert isinstance(record, dict) and isinstance(record, st.Record) and record == dict(record)
    html = record._repr_html_()
    stored, shown = Image.open(io.BytesIO(record["image"])), _pictures(html)[0]
    assert shown.size == stored.size or max(shown.size) == 480
    assert record["key"] in html
    evil = st.Record(key="<script>alert(1)</script>", image=b"no image", label=None, features={"<b>": [1] * 100})
    html = evil._repr_html_()
    assert "<script" not in html and "<b>" not in html and "100 values" in html


@pytest.mark.parametrize("options", [{}, {"dtype": "float32", "layout": "NCHW"}, {"mode": "L"}])
def test_pictures_of_a_batch_are_its_pixels(train, options):
    image = st.Image([st.Resize(40), st.CenterCrop(32)], **options)
    loader = st.Loader(train, 4, image, order=st.Sequential(), workers=1)
    batch = next(iter(loader))
    pictures = _pictures(st.show(batch))
    assert len(pictures) == 4
    for row, picture in enumerate(pictures):
        assert picture.size == (32, 32)
        found = np.asarray(picture)
        if not options.get("dtype"):
            assert np.array_equal(found, batch["image"][row].reshape(found.shape))
        else:
            expected = np.moveaxis(batch["image"][row], 0, -1)
            # Scaled, but in the same order of brightness.
            assert np.corrcoef(found.ravel(), expected.ravel())[0, 1] > 0.999
    loader.close()


def test_what_a_batch_holds_beyond_pictures_is_listed():
    ragged = st.Ragged(np.array([0, 1]), np.array([5]))
    html = str(st.show({"tokens": np.zeros((2, 7), np.int32), "boxes": ragged, "<b>": "x"}))
    assert "int32 [2, 7]" in html and "Ragged" in html and "<b>" not in html and _pictures(html) == []
    assert len(_pictures(st.show({"image": np.zeros((2, 3, 8, 8, 3), np.uint8)}))) == 2, "clips show a frame"
    nothing = np.full((1, 4, 4, 3), np.nan, np.float32)
    assert len(_pictures(st.show({"image": nothing, "label": np.array([1])}))) == 1
    with pytest.raises(st.OptionTypeError):
        st.show([1])
