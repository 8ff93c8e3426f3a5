"""Clips of videos: frames, geometry and resume, as a loader delivers them. The colour of a frame is its number."""

import itertools
import json

import numpy as np
import pytest
from PIL import Image

import shardtool as st

LENGTHS = (1, 2, 3, 7, 12, 20, 31, 40)
SIZE = (40, 30)
STEPS = [st.CenterCrop((16, 24))]


def frame(video: int, number: int) -> Image.Image:
    """Red is the frame's number, green the video's, blue depends on the position only."""
    x, y = np.meshgrid(np.arange(SIZE[0]), np.arange(SIZE[1]))
    pixels = np.stack([np.full_like(x, number), np.full_like(x, 10 * video), (5 * x) ^ (7 * y)], -1)
    return Image.fromarray(pixels.astype(np.uint8))


@pytest.fixture(scope="module")
def videos(tmp_path_factory) -> st.Split:
    folder = tmp_path_factory.mktemp("videos")
    for video, length in enumerate(LENGTHS):
        path = folder / f"class {video % 2}" / f"{video}"
        path.mkdir(parents=True)
        for number in range(length):
            frame(video, number).save(path / f"frame{number + 1}.png")
    packed = st.pack(folder, folder.parent / "clips", kind="clips", fps=12.5, seed=None)
    assert (packed.images, packed.classes, packed.rejected) == (len(LENGTHS), 2, 0)
    return st.Dataset(folder.parent / "clips").split("train")


def video_of(split: st.Split, id: int) -> int:
    return int(split[id]["key"].split("/")[1])


def epoch(split, clip):
    """Returns id and frames of each row of an epoch in order."""
    rows = []
    with st.Loader(split, 3, clip, order=st.Sequential(), remainder="mask") as loader:
        for batch in loader:
            assert set(batch) == {"frames", "label", "id", "valid"}
            rows += [(int(id), np.copy(row)) for id, row in zip(batch["id"], batch["frames"])]
    return rows


def numbers(row: np.ndarray) -> list:
    """Returns the numbers of frames by their colour; checks that each frame has one."""
    red = row[..., 0].reshape(*row.shape[:-3], -1)
    assert (red == red[..., :1]).all()
    return red[..., 0].tolist()


def expected(clip: st.Clip, stored: int) -> list:
    """Returns the frames of a clip that is not random, as the documentation describes them."""
    span = (clip.frames - 1) * clip.stride + 1
    last = max(stored - span, 0)
    starts = {"center": [last // 2], "even": [c * last // max(clip.clips - 1, 1) for c in range(clip.clips)]}
    clips = [[min(s + i * clip.stride, stored - 1) for i in range(clip.frames)] for s in starts[clip.sampling]]
    return clips[0] if clip.clips == 1 else clips


@pytest.mark.parametrize(
    "clip",
    [
        st.Clip("frames", STEPS, 4, stride=3, sampling="center"),
        st.Clip("frames", STEPS, 4, stride=3, sampling="even"),
        st.Clip("frames", STEPS, 3, stride=2, sampling="even", clips=4),
        st.Clip("frames", STEPS, frames=1, sampling="center"),
    ],
)
def test_frames_are_those_of_the_rule(videos, clip):
    found = epoch(videos, clip)
    assert [id for id, _ in found] == [*range(len(LENGTHS)), -1]
    for id, row in found[:-1]:
        video = video_of(videos, id)
        assert row.shape == ((clip.clips,) if clip.clips > 1 else ()) + (clip.frames, 16, 24, 3)
        assert numbers(row) == expected(clip, LENGTHS[video])
        crops = {n: np.asarray(frame(video, n))[7:23, 8:32] for n in range(LENGTHS[video])}
        for pixels, number in zip(row.reshape(-1, 16, 24, 3), np.ravel(numbers(row))):
            np.testing.assert_array_equal(pixels, crops[number])
    assert not found[-1][1].any(), "rows without a sample are zeros"


def test_uniform_frames_are_those_of_torch(videos):
    torch = pytest.importorskip("torch")
    for frames in (1, 2, 5, 8, 15, 29):
        for id, row in epoch(videos, st.Clip("frames", STEPS, frames, sampling="uniform"))[:-1]:
            stored = LENGTHS[video_of(videos, id)]
            # PyTorchVideo's `uniform_temporal_subsample`.
            indices = torch.clamp(torch.linspace(0, stored - 1, frames), 0, stored - 1).long()
            assert numbers(row) == indices.tolist()


MASK = 2**64 - 1


def mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


def key(name: bytes, *values: int) -> int:
    """The keys of `order-spec.md`."""
    h = int.from_bytes(name.ljust(8), "big")
    for value in values:
        h = mix(((h ^ value) + 0x9E3779B97F4A7C15) & MASK)
    return h


def random_start(seed: int, epoch: int, id: int, clip: int, starts: int) -> int:
    """The rule of `order-spec.md`: the first draw of step `clip` of view 2⁶⁴ − 1."""
    stream = key(b"step", key(b"step", seed, epoch, id), MASK, clip)
    return ((mix((stream + 0x9E3779B97F4A7C15) & MASK) >> 32) * starts) >> 32


def test_random_starts_are_those_of_the_specification(videos):
    clip = st.Clip("frames", STEPS, frames=3, stride=2, clips=2)
    with st.Loader(videos, 4, clip, order=st.Shuffled(9)) as loader:
        for number in range(3):
            for batch in loader:
                for id, row in zip(batch["id"], batch["frames"]):
                    stored = LENGTHS[video_of(videos, id)]
                    starts = [random_start(9, number, int(id), c, max(stored - 4, 1)) for c in range(2)]
                    assert numbers(row) == [[min(s + i * 2, stored - 1) for i in range(3)] for s in starts]


RANDOM = [st.RandomResizedCrop((16, 24), scale=(0.2, 0.8)), st.RandomHorizontalFlip(), st.ColorJitter(0.4)]


def test_all_frames_of_a_clip_get_the_same_crop_and_colours(videos):
    one = [st.RandomResizedCrop((16, 24), scale=(0.2, 0.8)), st.RandomHorizontalFlip()]
    rows = epoch(videos, st.Clip("frames", one, frames=4, clips=3))[:-1]
    crops = [clip[0, ..., 2].tobytes() for _, row in rows for clip in row]
    assert len(set(crops)) == len(crops), "each clip has another crop"
    assert all((clip[..., 2] == clip[:1, ..., 2]).all() for _, row in rows for clip in row)
    # Green is constant in a video: a colour that is drawn once keeps it so.
    rows = epoch(videos, st.Clip("frames", [*STEPS, st.ColorJitter(0.9)], frames=4, sampling="center"))[:-1]
    green = {id: row[..., 1] for id, row in rows}
    assert all((values == values.flat[0]).all() for values in green.values())
    assert any(values.flat[0] != 10 * video_of(videos, id) for id, values in green.items())


def test_a_run_resumes_with_the_same_batches_for_any_number_of_workers(videos):
    clip = st.Clip("frames", RANDOM, frames=4, stride=2, clips=2)
    options = dict(order=st.Shuffled(3), remainder="pad")
    copies = lambda loader: [(batch["id"].tolist(), np.copy(batch["frames"])) for batch in loader]  # noqa: E731
    with st.Loader(videos, 3, clip, workers=1, **options) as loader:
        whole = copies(loader) + copies(loader)
    assert len(whole) == 6
    for done in range(3):
        with st.Loader(videos, 3, clip, workers=2, **options) as loader:
            for _ in itertools.islice(loader, done):
                pass
            state = json.loads(json.dumps(loader.state_dict()))
        with st.Loader(videos, 3, clip, workers=4, **options) as loader:
            loader.load_state_dict(state)
            rest = copies(loader) + copies(loader)
        assert [ids for ids, _ in rest] == [ids for ids, _ in whole[done:]]
        for (_, ours), (_, theirs) in zip(rest, whole[done:]):
            np.testing.assert_array_equal(ours, theirs)


def test_views_and_normalised_frames(videos):
    views = {"large": [st.CenterCrop(24)], "small": [st.CenterCrop(8)]}
    mean, std = (0.1, 0.2, 0.3), (0.5, 0.25, 0.2)
    options = dict(order=st.Sequential(), remainder="mask")
    bytes = list(st.Loader(videos, 3, st.Clip("frames", views, frames=2, sampling="center"), **options))
    normalised = st.Clip("frames", views, frames=2, sampling="center", mean=mean, std=std)
    for plain, batch in zip(bytes, st.Loader(videos, 3, normalised, **options), strict=True):
        for name, side in (("frames.large", 24), ("frames.small", 8)):
            assert batch[name].shape == (3, 2, 3, side, side) and batch[name].dtype == np.float32
            normal = (plain[name] / 255 - mean) / std
            np.testing.assert_allclose(batch[name], np.moveaxis(normal, -1, 2), atol=1e-5)


def test_tensors_share_the_batch(videos):
    torch = pytest.importorskip("torch")
    from shardtool.torch import Loader

    clip = st.Clip("frames", STEPS, frames=2, clips=2, sampling="even", dtype=torch.bfloat16)
    batch = next(iter(Loader(videos, 3, clip)))
    assert batch["frames"].shape == (3, 2, 2, 3, 16, 24) and batch["frames"].dtype == torch.bfloat16


def test_lists_name_frames(tmp_path):
    for number in range(3):
        frame(1, number).save(tmp_path / f"{number}.png")
    lines = [{"key": "a", "view": ["2.png", "0.png"], "label": "x"}, {"key": "b", "view": ["1.png", "9.png"], "label": "x"}]
    (tmp_path / "list.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.warns(UserWarning, match="rejected 1"):
        packed = st.pack(tmp_path / "list.jsonl", tmp_path / "dataset", columns={"view": "frames"})
    assert packed.images == 1
    batch = next(iter(st.Loader(st.Dataset(tmp_path / "dataset").split("train"), 1, st.Clip("view", STEPS, 2))))
    assert numbers(batch["view"]) == [[2, 0]]


CLIP = st.Clip("frames", STEPS, 2)


@pytest.mark.parametrize(
    ("fields", "options", "message"),
    [
        ([st.Clip("nothing", STEPS, 2)], {}, "no feature `nothing`"),
        ([st.Clip("frames", STEPS, 2, sampling="center", clips=2)], {}, "take one clip"),
        ([st.Clip("frames", STEPS, 2, stride=3, sampling="uniform")], {}, "without a stride"),
        ([CLIP, CLIP], {}, "`Clip` twice"),
        ([CLIP, st.Image(STEPS)], {}, "`Clip` does not go with `Image`: the frames of a clip take the place of the image"),
        ([CLIP, st.Image()], {}, "`Clip` does not go with a stored record"),
        ([CLIP, st.Mask("frames")], {}, "`Clip` does not go with `Mask`"),
        ([CLIP, st.Objects()], {}, "`Clip` does not go with `Objects`"),
        ([CLIP, st.FurtherImage("frames")], {}, "`Clip` does not go with `FurtherImage`"),
        ([CLIP], {"batch_transform": st.MixUp(1.0)}, "`Clip` does not go with a batch transform: a row has several frames"),
    ],
)
def test_wrong_options_are_refused(videos, fields, options, message):
    with pytest.raises(st.OptionError, match=message):
        st.Loader(videos, 2, fields, **options)


@pytest.mark.parametrize(
    ("steps", "values", "message"),
    [
        (None, {"frames": 2}, "`steps` is None: expected a list of steps"),
        (STEPS, {"frames": 0}, "`frames` is 0: expected 1 to 4294967295"),
        (STEPS, {"frames": 1.5}, "`frames` is 1.5: expected a whole number"),
        (STEPS, {"frames": 2, "stride": 0}, "`stride` is 0"),
        (STEPS, {"frames": 2, "clips": 0}, "`clips` is 0"),
        (STEPS, {"frames": 2, "sampling": "some"}, "`sampling` is 'some': expected \"random\", \"center\", \"even\""),
    ],
)
def test_wrong_values_are_refused(steps, values, message):
    with pytest.raises(st.OptionError, match=message):
        st.Clip("frames", steps, **values)
