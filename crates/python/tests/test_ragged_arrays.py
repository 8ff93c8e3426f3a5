"""Point clouds and sequences of embeddings: written by `Writer`, delivered in rows of one length; compared with numpy."""

import numpy as np
import pytest

import shardtool as st

N = 30
LENGTH = 50


def cloud(number):
    """Points of all radii, in no order, and a number for each that says which it is."""
    points = np.random.default_rng(number).normal(size=(7 * number, 4)).astype(np.float64 if number < 0 else np.float32)
    return points, np.arange(len(points), dtype=np.int16)


@pytest.fixture(scope="module")
def clouds(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clouds")
    features = {"points": st.Array(chunk=(16, None)), "normals": st.Array(), "which": st.Array(codec="raw")}
    with st.Writer(folder, "train", features=features) as writer:
        for number in range(N):
            points, which = cloud(number)
            normals = points[:, :3].astype(np.float64)
            writer.write({"key": f"{number:02}", "label": number, "points": points, "normals": normals, "which": which})
    assert st.verify(folder, decode=True).good
    return st.Dataset(folder).split("train")


def rows(loader, epochs=1):
    """Returns the rows of samples: id, and the elements that are the record's by name."""
    for _ in range(epochs):
        for batch in loader:
            names = [name for name in batch if name in ("points", "normals", "which")]
            for row, number in enumerate(batch["id"]):
                length = batch[f"{names[0]}/length"][row]
                for name in names:
                    assert batch[name].shape[:2] == (len(batch["id"]), LENGTH) and batch[name].flags.c_contiguous
                yield int(number), {name: batch[name][row, :length] for name in names}, {name: batch[name][row, length:] for name in names}


def test_a_subset_is_random_in_the_stored_order_and_the_same_for_all_features(clouds):
    group = st.RaggedArrays(["points", "normals", "which"], LENGTH, pad_value={"points": 7, "normals": -7, "which": -1})
    seen = {}
    for number, found, padding in rows(st.Loader(clouds, 8, group, remainder="mask"), epochs=40):
        if number < 0:
            assert not any(value.size for value in found.values())
            assert not any(value.any() for value in padding.values())
            continue
        points, _ = cloud(number)
        assert len(found["which"]) == min(LENGTH, len(points))
        assert (np.diff(found["which"]) > 0).all()
        np.testing.assert_array_equal(found["points"], points[found["which"]])
        np.testing.assert_array_equal(found["normals"], points[found["which"], :3])
        for name, value in {"points": 7, "normals": -7, "which": -1}.items():
            assert (padding[name] == value).all()
        seen.setdefault(number, []).append(found["which"])
    assert len(seen) == N and len(seen[0][0]) == 0
    # Each element of the longest cloud is in a row as often as any other: 50 of 203 elements, 40 times.
    counts = np.bincount(np.concatenate(seen[N - 1]), minlength=203)
    probability = LENGTH / 203
    deviation = np.sqrt(40 * probability * (1 - probability))
    assert (np.abs(counts - 40 * probability) < 5 * deviation).all()
    # And so are pairs of neighbours: no windows.
    pairs = np.mean([np.mean(np.diff(which) == 1) for which in seen[N - 1]])
    assert abs(pairs - (LENGTH - 1) / 202) < 0.05


def test_a_window_is_neighbours_and_first_are_the_first(clouds):
    starts = set()
    for number, found, _ in rows(st.Loader(clouds, 8, st.RaggedArrays("which", LENGTH, select="window"), remainder="pad"), 20):
        assert len(found["which"]) == min(LENGTH, 7 * number)
        if number == N - 1:
            starts.add(int(found["which"][0]))
        np.testing.assert_array_equal(found["which"], np.arange(len(found["which"])) + (found["which"][0] if number else 0))
    assert len(starts) > 10 and max(starts) <= 203 - LENGTH
    for number, found, _ in rows(st.Loader(clouds, 8, st.RaggedArrays("which", LENGTH, select="first"), remainder="pad")):
        np.testing.assert_array_equal(found["which"], np.arange(min(LENGTH, 7 * number)))


@pytest.mark.parametrize("axis", "xyz")
def test_a_rotation_turns_all_points_of_a_sample_by_one_angle_about_its_axis(clouds, axis):
    fixed = "xyz".index(axis)
    a, b = (fixed + 1) % 3, (fixed + 2) % 3
    group = st.RaggedArrays(["which", "points", "normals"], LENGTH, coordinates="points", rotate=axis, degrees=40, directions="normals")
    angles = []
    for number, found, _ in rows(st.Loader(clouds, 6, group, order=st.Shuffled(3), remainder="pad"), epochs=4):
        if number < 2:
            continue
        stored = cloud(number)[0][found["which"]]
        np.testing.assert_allclose(found["points"][:, :3], found["normals"], atol=2e-6)
        np.testing.assert_array_equal(found["points"][:, [fixed, 3]], stored[:, [fixed, 3]])
        turned = (found["normals"][:, a] + 1j * found["normals"][:, b]) / (stored[:, a] + 1j * stored[:, b])
        np.testing.assert_allclose(turned, turned[0], atol=1e-4)
        assert abs(abs(turned[0]) - 1) < 1e-5
        angles.append(np.degrees(np.angle(turned[0])))
    angles = np.array(angles)
    assert (np.abs(angles) <= 40.001).all() and np.abs(np.mean(angles)) < 5 * 40 / np.sqrt(3 * len(angles))
    assert angles.max() > 25 and angles.min() < -25


def test_noise_is_normal_in_the_coordinates_alone(clouds):
    plain = st.RaggedArrays(["points", "normals"], LENGTH, select="first")
    noisy = st.RaggedArrays(["points", "normals"], LENGTH, select="first", jitter=0.02)
    limited = st.RaggedArrays(["points", "normals"], LENGTH, select="first", jitter=0.02, jitter_limit=0.03)
    parts = [list(rows(st.Loader(clouds, 6, group, remainder="pad"))) for group in (plain, noisy, limited)]
    noise = np.concatenate([b["points"] - a["points"] for (_, a, _), (_, b, _) in zip(parts[0], parts[1], strict=True)])
    assert not noise[:, 3].any()
    assert abs(noise[:, :3].std() / 0.02 - 1) < 0.1 and abs(noise[:, :3].mean()) < 5 * 0.02 / np.sqrt(noise[:, :3].size)
    assert abs(np.corrcoef(noise[:, 0], noise[:, 1])[0, 1]) < 0.15
    for (_, a, _), (_, b, _), (_, c, padding) in zip(*parts, strict=True):
        np.testing.assert_array_equal(b["normals"], a["normals"])
        expected = np.clip(b["points"].astype(float) - a["points"], -0.03, 0.03)
        np.testing.assert_allclose(c["points"].astype(float) - a["points"], expected, atol=1e-6)
        assert not padding["points"].any(), "padding gets no noise"


def test_resuming_and_replicas_deliver_the_same(clouds):
    group = st.RaggedArrays(["points", "which"], LENGTH, rotate="z", jitter=0.1)

    def loader(batch_size=4, **options):
        return st.Loader(clouds, batch_size, group, order=st.Shuffled(5), remainder="pad", **options)

    whole = loader()
    states, batches = [], []
    for _ in range(2):
        for batch in whole:
            batches.append({name: np.copy(batch[name]) for name in ("id", "points", "which", "points/length", "label")})
            states.append(whole.state_dict())
    for step in range(0, len(states) - 2, 3):
        resumed = loader(workers=1 + step % 3)
        resumed.load_state_dict(states[step])
        following = next(iter(resumed), None) or next(iter(resumed))
        for name, expected in batches[step + 1].items():
            np.testing.assert_array_equal(following[name], expected)
    parts = [loader(2, replica=st.Replica(rank, 2)) for rank in range(2)]
    for number, pair in enumerate(zip(*parts, strict=True)):
        for name, expected in batches[number].items():
            np.testing.assert_array_equal(np.concatenate([part[name] for part in pair]), expected)


def test_images_and_clouds_go_together_and_batch_by_batch_memory_is_bounded(tmp_path):
    with st.Writer(tmp_path, "train", features={"points": st.Array(codec="raw")}) as writer:
        for number in range(6):
            pixels = np.full((40, 50, 3), 40 * number, np.uint8)
            writer.write({"key": f"{number}", "image": pixels, "points": np.full((200_000 + number, 3), number, np.float32)})
    split = st.Dataset(tmp_path).split("train")
    fields = [st.Image([st.CenterCrop(32)]), st.RaggedArrays("points", 8)]
    for batch in st.Loader(split, 2, fields, remainder="pad", memory="64MiB"):
        np.testing.assert_array_equal(batch["points"][:, 0, 0], batch["id"])
        np.testing.assert_array_equal(batch["image"][:, 0, 0, 0] // 40, batch["id"])
    # A subset is selected from a whole cloud of 2.4 MB, which the plan knows.
    with pytest.raises(st.ShardtoolError, match=r"minimum: 3\.0 MB = .* 3\.0 MB decode scratch"):
        list(st.Loader(split, 2, st.RaggedArrays("points", 8), remainder="pad", memory="2MiB", workers=1))


@pytest.mark.parametrize(
    ("group", "message"),
    [
        (lambda: st.RaggedArrays("points", 0), "`length` is 0"),
        (lambda: st.RaggedArrays("points", 8, rotate="w"), "`rotate`"),
        (lambda: st.RaggedArrays("points", 8, rotate="z", degrees=181), "`degrees`"),
        (lambda: st.RaggedArrays("points", 8, jitter=float("nan")), "`jitter`"),
        (lambda: st.RaggedArrays("points", 8, directions="normals", rotate="z"), "`directions` names it, but it is not one of"),
        (lambda: st.RaggedArrays(["points", "which"], 8, directions="which", rotate="z"), "int16|i16"),
        (lambda: st.RaggedArrays("which", 8, jitter=1.0), "float32 or float64"),
        (lambda: st.RaggedArrays("points", 8, pad_value={"other": 1}), "`pad_value` is for"),
        (lambda: st.RaggedArrays("label", 8), "label"),
        (lambda: st.RaggedArrays("missing", 8), "missing"),
        (lambda: [st.RaggedArrays("points", 8), st.Arrays("points", (4, None))], "twice"),
        (lambda: [st.RaggedArrays("points", 8), "points/length"], "points/length"),
    ],
)
def test_contradictions_are_refused_by_name(clouds, group, message):
    with pytest.raises((st.ShardtoolError, TypeError, ValueError), match=message):
        st.Loader(clouds, 4, group())


def test_records_of_different_lengths_are_bad_samples_by_name(tmp_path):
    with st.Writer(tmp_path, "train", features={"a": st.Array(), "b": st.Array()}) as writer:
        for number in range(4):
            a, b = np.ones((3, 2), np.float32), np.ones((3 + number // 3, 2), np.float32)
            writer.write({"key": f"{number}", "a": a, "b": b})
    loader = st.Loader(st.Dataset(tmp_path).split("train"), 4, st.RaggedArrays(["a", "b"], 2), bad_samples=st.BadSamples("mask", max_bad=10))
    [batch] = list(loader)
    assert sorted(batch["id"]) == [-1, 0, 1, 2]
    [bad] = loader.bad_samples()
    assert "array `b` has 4 elements, but `a` of the same group has 3" in str(bad), bad
