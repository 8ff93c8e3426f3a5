"""Arrays that the host makes, on a device: each equals what the same loader delivers without one. With a stand-in driver."""

import io
import json

import numpy as np
import pytest
from PIL import Image

import shardtool as st

N = 40
DTYPES = ["u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?"]

#: Compares batches of two loaders; `ours` are on a device.
SAME = """
split = st.Dataset(sys.argv[2]).split("train")
context, streams = Context(), []
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
#: The host's values have the same bits.
OUTPUT = dict(dtype="float16", layout="NCHW", mean=MEAN, std=STD)
NUMBERS = ("label", "id", "valid", "number")

def equal(theirs, ours):
    assert theirs.shape == ours.shape and read(ours, context).dtype == theirs.dtype, (theirs.dtype, ours)
    np.testing.assert_array_equal(read(ours, context), theirs)

def same(theirs, ours, bfloat16=()):
    assert set(ours) == {*theirs, "host"}, (set(ours), set(theirs))
    for name, value in theirs.items():
        if isinstance(value, list):
            assert ours[name] == value
        elif isinstance(value, st.Ragged):
            assert isinstance(ours[name], st.Ragged), name
            equal(value.offsets, ours[name].offsets)
            equal(value.values, ours[name].values)
        else:
            assert ours[name].dtype == ("bfloat16" if name in bfloat16 else value.dtype.name), (name, ours[name])
            equal(value, ours[name])
    # Small arrays are on the host as well, large ones are not.
    small = {n for n in NUMBERS if n in theirs and (n == "id" or not isinstance(theirs[n], st.Ragged))}
    assert set(ours["host"]) == small, set(ours["host"])
    for name, value in ours["host"].items():
        for part, whole in zip(*[(v.offsets, v.values) if isinstance(v, st.Ragged) else (v,) for v in (value, theirs[name])]):
            np.testing.assert_array_equal(part, whole)
            assert part.dtype == whole.dtype

def compare(batch_size, fields, *, bfloat16=(), least=3, **options):
    options = dict(order=st.Shuffled(4), remainder="mask", workers=2) | options
    host = st.Loader(split, batch_size, fields, **options)
    loader = st.Loader(split, batch_size, fields, **options, device="cuda:0")
    shapes = set()
    for epoch in range(2):
        count = 0
        for theirs, ours in zip(host, loader, strict=True):
            same(theirs, ours, bfloat16)
            assert loader.state_dict() == host.state_dict()
            shapes |= {(name, value.shape) for name, value in ours.items() if hasattr(value, "shape")}
            count += 1
        assert count >= least, count
        del theirs, ours
    loader.close()
    return shapes
"""
END = "\ncontext.close(*streams)\n"


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """Photographs with maps, depths, boxes, points, volumes, tokens and texts."""
    path = tmp_path_factory.mktemp("scenes") / "dataset"

    def file(pixels):
        out = io.BytesIO()
        Image.fromarray(pixels).save(out, "PNG")
        return out.getvalue()

    def triangle(corner, size):
        left, top, right, bottom = corner * np.tile(size[::-1], 2)
        return [left, top, right, top, right, bottom]

    features = {"volume": st.Array(), "flags": st.Array(), "halves": st.Array(), "cloud": st.Array()}
    features |= {"after": "bytes", "map": "bytes", "map2": "bytes", "depth": "bytes", "text": "bytes", "number": "int64"}
    features |= {"pair": "float", "tokens": "int64", "weights": "float64", "length": "int64", "unsigned": "uint64"}
    features |= {"image/object/bbox": "float", "image/object/class/label": "int64", "image/object/keypoints": "float"}
    features |= {"image/object/segmentation": "bytes"}
    with st.Writer(path, "train", features=features) as writer:
        for number in range(N):
            random = np.random.default_rng(number)
            size = (30 + number % 7, 60 - number % 31)
            pixels = random.integers(0, 256, (*size, 3), np.uint8)
            count = number % 4
            corners = np.sort(random.random((count, 2, 2)), 1).reshape(count, 4)
            points = np.concatenate([random.random((count * 2, 2)), np.full((count * 2, 1), 2)], 1)
            tokens = np.arange(number * 7 % 20) + 100 * number
            writer.write({
                "key": f"{number}", "image": pixels, "label": number % 3, "after": file(255 - pixels),
                "map": file(pixels[..., 0] % 9), "map2": file(pixels[..., 1] % 5),
                "depth": file(random.integers(0, 65536, size).astype(np.uint16)), "text": "x" * (number % 5),
                "number": number * 10, "pair": [number / 4, -number],
                "tokens": tokens, "weights": tokens / 3, "length": len(tokens), "unsigned": [2**63 + number] * (number % 3),
                "image/object/bbox": corners.ravel(), "image/object/class/label": np.arange(count),
                "image/object/keypoints": points.ravel(),
                "image/object/segmentation": [json.dumps([triangle(corner, size)]) for corner in corners],
                "cloud": random.random((number % 9, 3)).astype(np.float32),
                "volume": random.integers(-9, 9, (6, 7, 8)).astype(np.int16), "flags": random.random((5, 3)) < 0.5,
                "halves": random.random((4, 4)).astype(np.float16),
            })  # fmt: skip
    return path


@pytest.fixture
def compare(on_device, scenes):
    """Runs a program that has `compare`."""

    def run(code, **options):
        return on_device(SAME + code + END, scenes, **{"STANDIN_DELAY_US": "300", **options})

    return run


def test_masks_objects_images_columns_and_arrays_go_together(compare):
    compare("""
others = [
    st.Mask("map"),
    st.PixelMask(),
    st.FurtherImage("after", kind="color"),
    st.FurtherImage("depth", kind="values"),
    st.Objects(keypoints="image/object/keypoints", flip_index=[1, 0], masks=True),
    st.Arrays("volume"),
    st.Arrays("flags"),
    st.Arrays("halves"),
    st.RaggedArrays("cloud", 5, rotate="z", jitter=0.1),
    "number", "pair", "text", "tokens", "weights", "unsigned",
]
shapes = compare(6, [st.Image(STEPS, **OUTPUT), *others])
assert {("image", (6, 3, 24, 24)), ("after", (6, 3, 24, 24)), ("depth", (6, 24, 24, 1)), ("mask", (6, 24, 24)), ("pixel_mask", (6, 24, 24))} <= shapes, shapes
assert {("volume", (6, 6, 7, 8)), ("cloud", (6, 5, 3)), ("cloud/length", (6,))} <= shapes, shapes
compare(5, [st.Image(STEPS, dtype="bfloat16", layout="NHWC"), *others], bfloat16=("image", "after"))
""")


def test_masks_have_their_names_and_types(compare):
    compare("""
shapes = compare(6, [st.Image(STEPS, **OUTPUT), st.Mask("map", dtype="uint16"), st.Mask("map2")])
assert {("map", (6, 24, 24)), ("map2", (6, 24, 24))} <= shapes
""")


def test_views(compare):
    compare("""
views = {"large": [st.RandomResizedCrop(26)], "small": [st.RandomResizedCrop((9, 11)), st.HorizontalFlip()]}
more = [st.FurtherImage("after", kind="color"), st.FurtherImage("depth", kind="values")]
shapes = compare(6, [st.Views(views, **OUTPUT), *more])
assert {("image.large", (6, 3, 26, 26)), ("after.small", (6, 3, 9, 11)), ("depth.small", (6, 9, 11, 1))} <= shapes, shapes
""")


@pytest.mark.parametrize("mixed", [False, True])
def test_grey_and_16_bit_images(compare, mixed):
    compare(f"""
mixing = dict(batch_transform=[st.MixUp(0.8, num_classes=3), st.CutMix(1.0, num_classes=3)]) if {mixed} else {{}}
steps = [st.RandomResizedCrop(24)]
grey = st.Image(steps, dtype="float16", mean=0.4, std=0.2, mode="L")
assert ("image", (6, 1, 24, 24)) in compare(6, grey, **mixing)
compare(6, st.Image(steps, bits=16, **OUTPUT), **mixing)
# The samples as they are.
shapes = compare(6, st.Image(steps, dtype="uint16", mode="L"), **mixing)
assert ("image", (6, 24, 24, 1)) in shapes
""")


def test_images_on_a_device_are_normalised_by_default(compare):
    compare("""
for options in (dict(mode="L"), dict(bits=16), dict(mode="L", bits=16)):
    host = st.Loader(split, 6, st.Image(STEPS[:1], dtype="float32", **options))
    loader = st.Loader(split, 6, st.Image(STEPS[:1], **options), device="cuda:0")
    for theirs, ours in zip(host, loader, strict=True):
        same(theirs, ours)
del theirs, ours
loader.close()
""")


def test_buckets_of_aspect_ratios(compare):
    compare(
        """
buckets = st.AspectRatioBuckets([(16, 32), (24, 24), (32, 16), (16, 48)], lambda h, w: [st.RandomResizedCrop((h, w))])
shapes = compare(5, [st.Image(**OUTPUT), st.Mask("map"), "number"], buckets=buckets)
assert len([shape for name, shape in shapes if name == "image"]) > 1, shapes
shapes = compare(5, st.Image(**OUTPUT), buckets=buckets, batch_transform=st.CutMix(1.0, num_classes=3))
assert len([shape for name, shape in shapes if name == "image"]) > 1, shapes
""",
        mixed=True,
    )


def test_buckets_of_lengths(compare):
    compare("""
buckets = st.LengthBuckets("length", [4, 8, 20], max_tokens=40, padded={"tokens": -1})
columns = ["weights", "number"]
shapes = compare(10, [st.Image(STEPS, **OUTPUT), *columns], buckets=buckets)
assert len([shape for name, shape in shapes if name == "tokens"]) == 3, shapes
compare(10, columns, buckets=buckets)
""")


def test_packed_rows(compare):
    compare("""
shapes = compare(3, [st.Tokens("length", 32, {"tokens": -1}, window=64), "weights"])
assert {("tokens", (3, 32)), ("segment_ids", (3, 32)), ("position_ids", (3, 32))} <= shapes, shapes
""")


def test_arrays_without_images(compare):
    compare("""
shapes = compare(6, [st.Arrays("volume", crop=(3, 7, 4)), st.Arrays("flags"), st.Arrays("halves")])
assert ("volume", (6, 3, 7, 4)) in shapes and not any(name == "image" for name, _ in shapes)
""")


def test_arrays_of_every_type(on_device, tmp_path):
    features = {f"a{number}": st.Array() for number in range(len(DTYPES))}
    with st.Writer(tmp_path / "typed", "train", labels=False, features=features) as writer:
        for row in range(12):
            values = np.random.default_rng(row).integers(0, 100, (3, 5))
            writer.write({"key": f"{row}", **{f"a{n}": values.astype(dtype) for n, dtype in enumerate(DTYPES)}})
    code = """
every = [st.Arrays(f"a{n}") for n in range(12)]
shapes = compare(4, every)
assert len([name for name, _ in shapes if name.startswith("a")]) == 12
# All but bfloat16 go through the CUDA array interface, too.
batch = next(iter(st.Loader(split, 4, every, device="cuda:0")))
for n in range(12):
    interface = batch[f"a{n}"].__cuda_array_interface__
    values = context.fetch(interface["data"][0], interface["shape"], interface["typestr"], 1)
    np.testing.assert_array_equal(values, read(batch[f"a{n}"], context))
del batch
"""
    on_device(SAME + code + END, tmp_path / "typed")


def test_clips(on_device, tmp_path):
    for video, length in enumerate((1, 3, 12, 20, 9, 7)):
        folder = tmp_path / "videos" / "class" / f"{video}"
        folder.mkdir(parents=True)
        for number in range(length):
            Image.fromarray(np.random.default_rng((video, number)).integers(0, 256, (30, 40, 3), np.uint8)).save(
                folder / f"{number:02}.png"
            )
    st.pack(tmp_path / "videos", tmp_path / "clips", kind="clips", fps=12.5, seed=None)
    code = """
shapes = compare(2, st.Clip("frames", STEPS, 4, stride=2, **OUTPUT))
assert ("frames", (2, 4, 3, 24, 24)) in shapes, shapes
shapes = compare(2, st.Clip("frames", STEPS, 3, sampling="even", clips=2, dtype="float32", layout="NHWC"))
assert ("frames", (2, 2, 3, 24, 24, 3)) in shapes, shapes
shapes = compare(2, st.Clip("frames", STEPS, 3, mode="L", dtype="float16"))
assert ("frames", (2, 3, 1, 24, 24)) in shapes, shapes
"""
    on_device(SAME + code + END, tmp_path / "clips")


def test_memory_of_large_arrays_is_not_reused_while_a_consumer_holds_it(compare):
    """A consumer takes masks, volumes and boxes, drops the batch, and reads late, on a stream behind a slow copy."""
    code = """
fields = [st.Image(STEPS), st.Mask("map"), st.Arrays("volume"), st.Objects()]
order = st.Shuffled(1)
names = ("mask", "volume")
expected = []
for batch in st.Loader(split, 4, fields, order=order):
    expected.append([batch[name].copy() for name in names] + [batch["boxes"].values.copy()])
loader = st.Loader(split, 4, fields, order=order, device=st.Device("cuda:0", slots=3))
stream = context.stream()
streams.append(stream)
held = []

def check():
    taken, number = held.pop(0)
    for array, values in zip(taken, expected[number], strict=True):
        np.testing.assert_array_equal(context.fetch(array.data, array.shape, array.type, stream), values)
        array.release()

for number, batch in enumerate(loader):
    arrays = [batch[name] for name in names] + [batch["boxes"].values]
    held.append(([Taken(array, stream=stream) for array in arrays], number))
    del batch, arrays
    if len(held) == 2:
        check()
while held:
    check()
loader.close()
"""
    compare(code, STANDIN_DELAY_US="3000")


def test_device_memory_limit_counts_every_array(compare):
    compare("""
fields = [st.Image(STEPS), st.Arrays("volume"), st.Mask("map"), "tokens"]
def held(limit):
    device = st.Device("cuda:0", slots=2, memory_limit=limit)
    loader = st.Loader(split, 8, fields, order=st.Shuffled(1), device=device, prefetch=st.Prefetch(starve_after=0.1))
    batches = iter(loader)
    # Both slots, whose batches may be of one size.
    two = [next(batches), next(batches)]
    most = loader.stats()["devices"][0]["device_bytes"]
    del two
    for batch in batches:
        most = max(most, loader.stats()["devices"][0]["device_bytes"])
        del batch
    loader.close()
    return most

free = held(None)
pixels = 8 * 24 * 24 * 3
# Two staging buffers, and two slots of images, masks and volumes.
least = 2 * pixels + 2 * (4 * pixels + 8 * 24 * 24 + 8 * 2 * 6 * 7 * 8)
assert least < free < least + 40_000, (least, free)
assert held(free) <= free
try:
    held(2 * pixels + 4 * pixels)
except st.BudgetError as error:
    assert "of a limit of" in str(error)
else:
    raise AssertionError
""")


def test_several_devices_and_a_resume(compare):
    compare(
        """
fields = [st.Image(STEPS, **OUTPUT), st.Mask("map"), st.Objects(), "tokens", st.Arrays("volume")]
options = dict(order=st.Shuffled(2), remainder="mask")
host = st.Loader(split, 3, fields, replica=st.Replica(local_replicas=2), **options)
loader = st.Loader(split, 3, fields, device=["cuda:0", "cuda:1"], **options)
for resumed in (False, True):
    for theirs, ours in zip(host, loader, strict=True):
        for one, other in zip(theirs, ours, strict=True):
            same(one, other)
    del theirs, ours, one, other
    if not resumed:
        for number, batch in enumerate(loader):
            if number == 2:
                break
        del batch
        state = loader.state_dict()
        loader.load_state_dict(state)
        host.load_state_dict(state)
loader.close()
""",
        STANDIN_DEVICES="2",
    )


def test_images_as_stored_stay_on_the_host(train):
    with pytest.raises(st.OptionError, match="images as stored stay on the host"):
        st.Loader(train, 8, [st.Image(), "image/width"], device="cuda:0")
