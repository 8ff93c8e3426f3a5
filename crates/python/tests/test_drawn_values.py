"""One of several values of each record, such as captions: drawn as order-spec.md says, again in each epoch, resumable."""

import pathlib
import sys

import numpy as np
import pytest
from PIL import Image

import shardtool as st

sys.path.append(str(pathlib.Path(__file__).parents[3] / "readers" / "python"))
from shardtool_order import derive_key, draw, scale  # noqa: E402

N = 40
SEED = 11


def captions(number):
    return [f"caption {n} of {number}" for n in range(number % 6)]


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    path = tmp_path_factory.mktemp("captions") / "set"
    features = {"caption": "bytes", "caption/id": "int64", "score": "float64", "tags": "int64", "few": "bytes"}
    image = Image.new("RGB", (12, 9), (9, 80, 200))
    with st.Writer(path, "train", features=features) as writer:
        for number in range(N):
            texts = captions(number)
            ids = [100 * number + n for n in range(max(len(texts), 1))]
            few = [f"text {n}" for n in range(2)] if number == 0 else "one"
            sample = {"caption": texts, "caption/id": ids, "score": [i / 7 for i in ids], "tags": ids, "few": few}
            writer.write({"key": f"{number:02}", "image": image, **sample})
    return st.Dataset(path)["train"]


def chosen(epoch, number, values):
    """Which of the values order-spec.md takes."""
    sample = derive_key("step", SEED, epoch, number)
    return scale(draw(derive_key("step", sample, 2**64 - 2, 0), 0), values)


FIELDS = [st.Image([st.CenterCrop(8)]), *(st.Column(name, draw=True) for name in ("caption", "caption/id", "score"))]


@pytest.mark.parametrize("workers", [1, 3])
def test_the_value_is_the_one_that_the_specification_draws(split, workers):
    seen = {}
    with st.Loader(split, 7, FIELDS, order=st.Shuffled(SEED), workers=workers, remainder="mask") as loader:
        for epoch in range(12):
            for batch in loader:
                assert batch["caption/id"].dtype == np.int64 and batch["caption/id"].shape == (7,)
                assert batch["score"].dtype == np.float64
                for row in np.flatnonzero(batch["valid"]):
                    number = int(batch["id"][row])
                    texts = captions(number)
                    at = chosen(epoch, number, max(len(texts), 1))
                    assert batch["caption"][row].decode() == (texts[at] if texts else "")
                    # Columns of as many values have the same one.
                    assert batch["caption/id"][row] == 100 * number + at
                    assert batch["score"][row] == (100 * number + at) / 7
                    seen.setdefault(number, set()).add(at)
    assert all(len(places) > 1 for number, places in seen.items() if number % 6 > 1), "other epochs have others"


def test_a_run_resumes_with_the_same_values(split):
    options = {"order": st.Shuffled(SEED), "workers": 2}
    with st.Loader(split, 7, FIELDS, **options) as loader:
        batches = iter(loader)
        next(batches), next(batches)
        state = loader.state_dict()
        expected = [batch["caption"] for batch in batches] + [batch["caption"] for batch in loader]
    with st.Loader(split, 7, FIELDS, **options) as loader:
        loader.load_state_dict(state)
        assert [batch["caption"] for batch in loader] + [batch["caption"] for batch in loader] == expected


def test_several_texts_without_draw_are_refused_with_the_option(split):
    with pytest.raises(st.ShardtoolError, match="deliver one of its values with `draw`"):
        st.Loader(split, 4, [st.Image([st.CenterCrop(8)]), "few"])


def test_a_number_of_none_is_a_bad_sample(tmp_path):
    with st.Writer(tmp_path, "train", features={"numbers": "int64"}) as writer:
        for number in range(3):
            writer.write({"key": f"{number}", "image": Image.new("RGB", (9, 9)), "numbers": list(range(2 - number))})
    split = st.Dataset(tmp_path)["train"]
    fields = [st.Image([st.CenterCrop(8)]), st.Column("numbers", draw=True)]
    with (
        st.Loader(split, 3, fields, order=st.Sequential(), bad_samples=st.BadSamples("error")) as loader,
        pytest.raises(st.ShardtoolError, match="`numbers`"),
    ):
        next(iter(loader))
