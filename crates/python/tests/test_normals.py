"""Surface normals: what the geometry of the image does to them, in the codings of their datasets."""

import base64
import io
import json
import re
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import shardtool as st

HEIGHT, WIDTH, N = 40, 56, 6


def picture(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def normals(number: int) -> np.ndarray:
    """Unit vectors, of which a tenth is not known."""
    rng = np.random.default_rng((1, number))
    vectors = rng.normal(size=(HEIGHT, WIDTH, 3))
    vectors /= np.linalg.norm(vectors, axis=-1, keepdims=True)
    vectors[rng.random((HEIGHT, WIDTH)) < 0.1] = 0
    return vectors.astype(np.float32)


def coded(vectors: np.ndarray, largest: int) -> np.ndarray:
    """Integers of which 0 is -1 and the largest 1; zeros where the normal is not known."""
    values = ((vectors.astype(np.float64) + 1) / 2 * largest).round().astype(np.uint8 if largest < 256 else np.uint16)
    values[(vectors == 0).all(-1)] = 0
    return values


def write_png16(path, values):
    """A PNG of three times 16 bits, which Pillow does not write."""
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))  # noqa: E731
    height, width, _ = values.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in values)
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


NAMES = ("npy", "npy64", "png8", "png16")


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """The same normals in four codings, and the column and the row of each pixel."""
    folder = tmp_path_factory.mktemp("normals")
    rows, columns = np.mgrid[:HEIGHT, :WIDTH]
    np.save(folder / "grid.npy", np.stack([columns, rows], -1).astype(np.float32))
    lines = []
    for number in range(N):
        Image.fromarray(picture(number)).save(folder / f"{number}.png")
        np.save(folder / f"{number}_npy.npy", normals(number))
        np.save(folder / f"{number}_npy64.npy", normals(number).astype(np.float64))
        Image.fromarray(coded(normals(number), 255)).save(folder / f"{number}_png8.png")
        write_png16(folder / f"{number}_png16.png", coded(normals(number), 65535))
        files = {name: f"{number}_{name}.{name[:3]}" for name in NAMES}
        lines.append(json.dumps({"path": f"{number}.png", "number": number, "grid": "grid.npy", **files}))
    (folder / "list.jsonl").write_text("\n".join(lines))
    arrays = dict.fromkeys((*NAMES, "grid"), st.Array())
    st.pack(folder / "list.jsonl", folder / "set", columns=arrays, progress=False)
    return st.Dataset(folder / "set").split("train")


def rows(split, steps, kind="normals"):
    """Returns the rows of an epoch by the number of the record."""
    fields = [st.Arrays(name, image_axes=(0, 1), kind=kind) for name in NAMES]
    fields.append(st.Arrays("grid", image_axes=(0, 1), pad_value=-1))
    found = {}
    for batch in st.Loader(split, 3, [st.Image(steps), *fields, "number"], bad_samples="error"):
        for row, number in enumerate(batch["number"]):
            found[int(number)] = {name: np.copy(batch[name][row]) for name in (*NAMES, "grid")}
    assert sorted(found) == list(range(N))
    return found


def check(row, expected, inside=None):
    """Compares all codings with the expected normals; those outside the image are zeros."""
    inside = np.ones(expected.shape[:2], bool) if inside is None else inside
    for name, largest in (("npy", 0), ("npy64", 0), ("png8", 255), ("png16", 65535)):
        assert (row[name][~inside] == 0).all()
        known = inside & (expected != 0).any(-1)
        assert (row[name][inside & ~known] == 0).all(), "what is not known stays"
        if largest:
            # Rounded before they were turned, and again.
            wanted = (expected[known].astype(np.float64) + 1) / 2 * largest
            assert np.abs(row[name][known].astype(np.float64) - wanted).max() < 1.25
        else:
            np.testing.assert_allclose(row[name][known], expected[known], atol=2e-6)
            np.testing.assert_allclose(np.linalg.norm(row[name][known], axis=-1), 1, atol=1e-5)


def test_flips_are_exact(scenes):
    for kind in ("normals", "normals_y_up"):
        for number, row in rows(scenes, [st.ResizeTo((HEIGHT, WIDTH)), st.RandomHorizontalFlip(1.0)], kind).items():
            np.testing.assert_array_equal(row["npy"], normals(number)[:, ::-1] * [-1, 1, 1])
            values = coded(normals(number), 255)[:, ::-1]
            mirrored = np.where((values == 0).all(-1, keepdims=True), 0, np.abs(values - [255, 0, 0]))
            np.testing.assert_array_equal(row["png8"], mirrored)
            check(row, normals(number)[:, ::-1] * np.float32([-1, 1, 1]))
        for number, row in rows(scenes, [st.ResizeTo((HEIGHT, WIDTH)), st.RandomVerticalFlip(1.0)], kind).items():
            np.testing.assert_array_equal(row["npy64"], normals(number)[::-1] * [1, -1, 1])
            check(row, normals(number)[::-1] * np.float32([1, -1, 1]))


def test_sizes_change_no_normal(scenes):
    for number, row in rows(scenes, [st.ResizeTo((25, 91))]).items():
        planes = [Image.fromarray(normals(number)[..., plane].copy()).resize((91, 25), Image.Resampling.NEAREST) for plane in range(3)]
        check(row, np.stack([np.asarray(plane) for plane in planes], -1))
        np.testing.assert_array_equal(row["npy"][..., 0], planes[0])


@pytest.mark.parametrize(("kind", "sign"), [("normals", 1), ("normals_y_up", -1)])
@pytest.mark.parametrize("degrees", [30, 90])
def test_rotations_turn_them(scenes, kind, sign, degrees):
    """torchvision turns against the clock: what points to the right then points up, which is -y, or y where y points up."""
    angle = sign * np.deg2rad(degrees)
    matrix = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    for number, row in rows(scenes, [st.ResizeTo((HEIGHT, WIDTH)), st.RandomRotation((degrees, degrees))], kind).items():
        columns, lines = np.moveaxis(row["grid"].astype(int), -1, 0)
        inside = columns >= 0
        assert 0.5 < inside.mean() < 0.95
        stored = normals(number)[lines, columns].astype(np.float64)
        check(row, np.concatenate([stored[..., :2] @ matrix.T, stored[..., 2:]], -1), inside)


def test_a_perspective_turns_as_its_nearest_rotation(scenes):
    """The homography is found from the stored pixels that the batch shows; singular values give the rotation at each pixel."""
    steps = [st.ResizeTo((2 * HEIGHT, 2 * WIDTH)), st.RandomPerspective(0.4, 1.0), st.RandomHorizontalFlip(0.5)]
    compared, reflected = 0, 0
    for number, row in rows(scenes, steps).items():
        inside = row["grid"][..., 0] >= 0
        lines, columns = np.nonzero(inside)
        to_x, to_y = columns + 0.5, lines + 0.5
        x, y = row["grid"][inside].T.astype(np.float64) + 0.5
        zeros, ones = np.zeros_like(x), np.ones_like(x)
        equations = np.concatenate([
            np.stack([x, y, ones, zeros, zeros, zeros, -to_x * x, -to_x * y], -1),
            np.stack([zeros, zeros, zeros, x, y, ones, -to_y * x, -to_y * y], -1),
        ])  # fmt: skip
        h = np.append(np.linalg.lstsq(equations, np.concatenate([to_x, to_y]), rcond=None)[0], 1).reshape(3, 3)
        u, v, w = h @ np.stack([x, y, ones])
        # The derivatives of (u / w, v / w) by x and y.
        jacobian = np.stack([
            np.stack([(h[0, 0] - u / w * h[2, 0]) / w, (h[0, 1] - u / w * h[2, 1]) / w], -1),
            np.stack([(h[1, 0] - v / w * h[2, 0]) / w, (h[1, 1] - v / w * h[2, 1]) / w], -1),
        ], -2)  # fmt: skip
        left, _, right = np.linalg.svd(jacobian)
        turn = left @ right
        reflected += (np.linalg.det(turn) < 0).any()
        stored = normals(number)[y.astype(int), x.astype(int)].astype(np.float64)
        expected = np.concatenate([(turn @ stored[:, :2, None])[..., 0], stored[:, 2:]], -1)
        # The homography is found from rounded places.
        np.testing.assert_allclose(row["npy"][inside], expected, atol=0.06)
        assert np.abs(row["npy"][inside] - expected).mean() < 0.01
        compared += inside.sum()
    assert compared > 10_000 and 0 < reflected < N


def test_planes_and_exif_orientations(tmp_path):
    exif = Image.Exif()
    exif[0x0112] = 6
    with st.Writer(tmp_path / "set", "train", features={"last": st.Array(), "first": st.Array()}) as writer:
        for number in range(4):
            Image.fromarray(picture(number)).save(tmp_path / "turned.jpg", exif=exif)
            first = normals(number).transpose(2, 0, 1).copy()
            writer.write({"key": f"{number}", "image": (tmp_path / "turned.jpg").read_bytes(), "last": normals(number), "first": first})
    fields = [st.Arrays("last", image_axes=(0, 1), kind="normals"), st.Arrays("first", image_axes=(1, 2), kind="normals")]
    image = st.Image([st.ResizeTo((WIDTH, HEIGHT))], apply_orientation=True)
    for batch in st.Loader(st.Dataset(tmp_path / "set").split("train"), 2, [image, *fields]):
        np.testing.assert_array_equal(batch["first"].transpose(0, 2, 3, 1), batch["last"])
        for row, number in enumerate(batch["id"]):
            # A quarter turn with the clock: what points to the right then points down.
            turned = np.rot90(normals(int(number)), -1)
            expected = np.stack([-turned[..., 1], turned[..., 0], turned[..., 2]], -1)
            np.testing.assert_allclose(batch["last"][row], expected, atol=1e-6)


def test_what_is_no_normal_is_refused(tmp_path):
    kinds = {"flow": st.Array(), "half": st.Array(), "long": st.Array(), "shifted": st.Array()}
    with st.Writer(tmp_path / "set", "train", features=kinds) as writer:
        values = normals(0)
        writer.write({
            "key": "0", "image": picture(0), "flow": values[..., :2].copy(), "half": values.astype(np.float16), "long": values * 3,
            "shifted": (values + 1) / 2,
        })  # fmt: skip
    split = st.Dataset(tmp_path / "set").split("train")
    image = st.Image([st.ResizeTo((HEIGHT, WIDTH)), st.RandomHorizontalFlip()])
    for fields, message in [
        (st.Arrays("flow", image_axes=(0, 1), kind="normals"), r"flow.*normals of \[H, W, 3\].*\[40, 56, 2\]"),
        (st.Arrays("half", image_axes=(0, 1), kind="normals"), "half.*float32 or float64.*uint8 or uint16.*f16"),
        (st.Arrays("long", kind="normals"), "image_axes"),
    ]:
        with pytest.raises(st.OptionError, match=message):
            st.Loader(split, 1, [image, fields])
    for name, found in (("long", "3.00"), ("shifted", r"1\.\d\d")):
        field = st.Arrays(name, image_axes=(0, 1), kind="normals")
        with pytest.raises(st.BadSampleError, match=rf"{name}.*length {found}, expected 1"):
            list(st.Loader(split, 1, [image, field], bad_samples="error"))


def test_a_batch_shows_normals(scenes):
    """Next to the image, in the colours by which datasets code them; what is not known is white."""
    fields = [st.Image([st.ResizeTo((HEIGHT, WIDTH))]), st.Arrays("npy", image_axes=(0, 1), kind="normals"), "number"]
    batch = next(iter(st.Loader(scenes, 2, fields)))
    shown = re.findall(r'base64,([^"]*)" alt="([^"]*)"', str(st.show(batch)))
    assert [name for _, name in shown] == ["image", "npy"] * 2
    found = np.asarray(Image.open(io.BytesIO(base64.b64decode(shown[1][0]))))
    values = normals(int(batch["number"][0]))
    expected = coded(values, 255)
    expected[(values == 0).all(-1)] = 255
    np.testing.assert_array_equal(found, expected)
