"""Batches of one shape, from images of many aspect ratios and texts of many lengths."""

import io
import itertools
import json
import math

import numpy as np
import pytest
from PIL import Image

import shardtool as st

SHAPES = [(16, 32), (24, 24), (32, 16)]
SIZES = [(80, 40), (41, 40), (30, 66), (64, 40), (37, 50)]


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """Photographs of five sizes, with tokens: as many as their number, modulo 30."""
    folder = tmp_path_factory.mktemp("wide")
    with st.Writer(folder / "dataset", "train") as writer:
        random = np.random.default_rng(3)
        for number in range(100):
            image = Image.fromarray(random.integers(0, 256, (5, 5, 3), np.uint8)).resize(SIZES[number * 7 % 11 % 5])
            tokens = np.arange(number % 30, dtype=np.int64) + 100 * number
            writer.write({"key": f"{number}", "image": np.asarray(image), "label": number % 4, "tokens": tokens, "length": len(tokens)})
    return st.Dataset(folder / "dataset").split("train")


def nearest(width, height):
    return min(SHAPES, key=lambda shape: abs(math.log(shape[1] / shape[0]) - math.log(width / height)))


def buckets(**options):
    return st.AspectRatioBuckets(
        SHAPES, lambda h, w: [st.RandomResizedCrop((h, w), ratio=(0.9, 1.1)), st.RandomHorizontalFlip()], **options
    )


def test_images_of_similar_aspect_ratios_share_a_batch(wide):
    seen = []
    loader = st.Loader(wide, 8, [st.Image(), "image/width", "image/height"], buckets=buckets(), remainder="mask")
    for batch in loader:
        shape = batch["image"].shape
        assert shape[0] == 8 and shape[1:3] in SHAPES
        sizes = zip(batch["image/width"], batch["image/height"])
        assert all(nearest(*size) == shape[1:3] for size, valid in zip(sizes, batch["valid"]) if valid)
        seen += batch["id"][batch["valid"]].tolist()
    assert sorted(seen) == list(range(100)) and seen != sorted(seen)
    assert len(loader) == sum(math.ceil(n / 8) for n in np.bincount([SHAPES.index(nearest(*SIZES[i * 7 % 11 % 5])) for i in range(100)]))


def test_pixels_are_those_of_the_preview(wide):
    given = buckets()
    for batch in st.Loader(wide, 5, order=st.Shuffled(4), buckets=given):
        steps = given.steps[SHAPES.index(batch["image"].shape[1:3])]
        for id, image in zip(batch["id"], batch["image"]):
            stored = np.asarray(Image.open(io.BytesIO(wide[int(id)]["image"])).convert("RGB"))
            np.testing.assert_array_equal(image, st.preview(stored, steps, seed=4, position=int(id)).image)


def test_a_limit_of_pixels(wide):
    rows = {batch["image"].shape[:3] for batch in st.Loader(wide, 5, buckets=buckets(max_pixels=1536), remainder="pad")}
    assert rows == {(3, 16, 32), (2, 24, 24), (3, 32, 16)}


@pytest.mark.parametrize("mixed", [False, True])
def test_a_run_resumes_at_every_step_also_with_other_replicas(wide, mixed):
    mix = st.MixUp(0.8, num_classes=4) if mixed else None
    options = dict(order=st.Shuffled(8), buckets=buckets(), remainder="mask", batch_transform=mix)
    image = st.Image(dtype="float16")
    with st.Loader(wide, 6, image, workers=2, **options) as loader:
        states, whole = [], []
        for batch in loader:
            whole.append((batch["id"].copy(), batch["image"].copy(), batch["label"].copy()))
            states.append(json.dumps(loader.state_dict()))
    for done in range(1, len(whole)):
        with st.Loader(wide, 6, image, workers=1 + done % 3, **options) as loader:
            loader.load_state_dict(json.loads(states[done - 1]))
            rest = [(b["id"], b["image"], b["label"]) for b in loader]
        assert len(rest) == len(whole) - done
        for ours, theirs in zip(rest, whole[done:]):
            for one, other in zip(ours, theirs):
                np.testing.assert_array_equal(one, other)
    # Two replicas take the batches in turn.
    ranks = []
    for rank in range(2):
        loader = st.Loader(wide, 6, image, replica=st.Replica(rank, 2), **options)
        loader.load_state_dict(json.loads(states[2]))
        ranks.append([b["id"] for b in loader])
    assert len(ranks[0]) == len(ranks[1])
    in_turn = [ids for step in zip(*ranks) for ids in step if (ids >= 0).any()]
    for ids, (expected, _, _) in itertools.zip_longest(in_turn, whole[3:]):
        np.testing.assert_array_equal(ids, expected)


def test_texts_of_similar_lengths_share_a_batch(wide):
    bounds = [4, 8, 16, 32]
    by_length = st.LengthBuckets("length", bounds, max_tokens=64, padded={"tokens": -1})
    seen = {}
    for batch in st.Loader(wide, 10, [st.Image(), "tokens", "length"], buckets=by_length, remainder="mask"):
        rows, bound = batch["tokens"].shape
        assert bound in bounds and rows == min(64 // bound, 10) and batch["tokens"].dtype == np.int64
        for id, length, tokens in zip(batch["id"], batch["length"], batch["tokens"]):
            if id >= 0:
                assert bound == next(b for b in bounds if b >= length)
                seen[int(id)] = tokens
            else:
                assert (tokens == -1).all()
    assert sorted(seen) == list(range(100))
    for number, tokens in seen.items():
        count = number % 30
        assert tokens[:count].tolist() == list(range(100 * number, 100 * number + count)) and (tokens[count:] == -1).all()
    with pytest.raises(st.ShardtoolError, match="longer than|exceed|tokens"):
        st.Loader(wide, 10, [st.Image(), "tokens"], buckets=st.LengthBuckets("length", [4, 8]))
    cut = st.LengthBuckets("length", [4, 8], longer="cut", padded={"tokens": 0})
    shapes = {batch["tokens"].shape[1] for batch in st.Loader(wide, 4, [st.Image(), "tokens"], buckets=cut)}
    assert shapes == {4, 8}


def test_shapes_of_one_area():
    shapes = st.shapes_within(256 * 256, 16, max_ratio=3)
    assert (256, 256) in shapes and len(shapes) == len(set(shapes))
    for height, width in shapes:
        assert height % 16 == width % 16 == 0 and max(height, width) <= 3 * min(height, width)
        assert height * width <= 256 * 256 < min((height + 16) * width, height * (width + 16))


def test_arguments_are_checked(wide):
    steps = lambda h, w: [st.Resize(h + w), st.CenterCrop((h, w))]  # noqa: E731
    with pytest.raises(st.OptionError, match="`buckets` has the steps of each shape: leave out those of `Image`"):
        st.Loader(wide, 4, [st.Resize(8)], buckets=st.AspectRatioBuckets(SHAPES, steps))
    with pytest.raises(st.OptionError, match="no feature `words`"):
        st.Loader(wide, 4, buckets=st.LengthBuckets("length", [40], padded={"words": 0}))
    [batch] = st.Loader(wide, 100, buckets=st.LengthBuckets("length", [40], padded={"tokens": 0}))
    assert batch["tokens"].shape == (100, 40), "a padded feature need not be listed"
    with pytest.raises(st.OptionError, match="shapes"):
        st.AspectRatioBuckets([], steps)
    with pytest.raises(st.ShardtoolError, match="bucket 0 give 32 x 16.*16 x 32|16 x 32"):
        st.Loader(wide, 4, buckets=st.AspectRatioBuckets([(32, 16)], lambda h, w: [st.CenterCrop((w, h))]))
    with pytest.raises(st.ShardtoolError, match="interleaved"):
        st.Loader(wide, 4, buckets=buckets(), order=st.Interleaved(2, 2))
