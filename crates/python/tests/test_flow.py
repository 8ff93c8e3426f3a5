"""Optical flow, disparities and depths: files in the codings of their datasets, and what the geometry of the image does to them."""

import json

import numpy as np
import pytest
from PIL import Image

import shardtool as st

HEIGHT, WIDTH, N = 40, 56, 6


def picture(number: int) -> np.ndarray:
    return np.random.default_rng(number).integers(0, 256, (HEIGHT, WIDTH, 3), np.uint8)


def flow(number: int) -> np.ndarray:
    """Multiples of 1/64, as all codings hold them."""
    return np.random.default_rng((1, number)).integers(-640, 640, (HEIGHT, WIDTH, 2)).astype(np.float32) / 64


def known(number: int) -> np.ndarray:
    return np.random.default_rng((2, number)).random((HEIGHT, WIDTH)) < 0.8


def write_flo(path, values):
    """Middlebury's format, as its `writeFlowFile.m` says."""
    height, width, _ = values.shape
    path.write_bytes(np.float32(202021.25).tobytes() + np.int32([width, height]).tobytes() + values.astype("<f4").tobytes())


def write_pfm(path, values, scale=-1.0):
    """The rows from the bottom to the top, little-endian if `scale` is negative."""
    kind = b"PF" if values.ndim == 3 else b"Pf"
    height, width = values.shape[:2]
    header = kind + f"\n{width} {height}\n{scale}\n".encode()
    path.write_bytes(header + values[::-1].astype("<f4" if scale < 0 else ">f4").tobytes())


def write_kitti(path, values, valid):
    """A PNG of three times 16 bits. Pillow writes none, so the file is made of its chunks."""
    import struct
    import zlib

    coded = np.concatenate([values * 64 + 2**15, valid[..., None]], -1).astype(">u2")
    coded[~valid] = 0
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))  # noqa: E731
    height, width, _ = coded.shape
    rows = b"".join(b"\0" + row.tobytes() for row in coded)
    header = struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


@pytest.fixture(scope="module")
def scenes(tmp_path_factory):
    """The same flow in four codings, disparities and depths, packed from a list."""
    folder = tmp_path_factory.mktemp("scenes")
    lines = []
    for number in range(N):
        name = f"{number}"
        Image.fromarray(picture(number)).save(folder / f"{name}.png")
        write_flo(folder / f"{name}.flo", np.where(known(number)[..., None], flow(number), 1.7e9))
        write_pfm(folder / f"{name}.pfm", np.concatenate([flow(number), np.zeros((HEIGHT, WIDTH, 1))], -1))
        write_kitti(folder / f"{name}_kitti.png", flow(number), known(number))
        np.save(folder / f"{name}.npy", flow(number).astype(np.float64))
        write_pfm(folder / f"{name}_disp.pfm", flow(number)[..., 0], scale=0.00392)
        Image.fromarray(flow(number)[..., 1]).save(folder / f"{name}_depth.tif")
        Image.fromarray((flow(number)[..., 1] * 64 + 700).astype(np.uint16)).save(folder / f"{name}_depth.png")
        line = {
            "path": f"{name}.png", "number": number, "flo": f"{name}.flo", "pfm": f"{name}.pfm", "kitti": f"{name}_kitti.png",
            "npy": f"{name}.npy", "disparity": f"{name}_disp.pfm", "depth": f"{name}_depth.tif", "depth16": f"{name}_depth.png",
        }  # fmt: skip
        lines.append(json.dumps(line))
    (folder / "list.jsonl").write_text("\n".join(lines))
    columns = dict.fromkeys(("flo", "pfm", "kitti", "npy"), "flow") | dict.fromkeys(("disparity", "depth", "depth16"), st.Array())
    st.pack(folder / "list.jsonl", folder / "set", columns=columns, progress=False)
    return st.Dataset(folder / "set").split("train")


FLOWS = ("flo", "pfm", "kitti", "npy")


def rows(split, steps, fields=None, **image):
    """Returns the rows of an epoch by the number of the record."""
    if fields is None:
        fields = [
            st.Arrays(list(FLOWS[:3]), image_axes=(0, 1), kind="flow"), st.Arrays("npy", image_axes=(0, 1), kind="flow"),
            st.Arrays("disparity", image_axes=(0, 1), kind="disparity"), st.Arrays(["depth"], image_axes=(0, 1)),
            st.Arrays("depth16", image_axes=(0, 1)),
        ]  # fmt: skip
    found = {}
    for batch in st.Loader(split, 3, [st.Image(steps, **image), *fields, "number"], bad_samples="error"):
        for row, number in enumerate(batch["number"]):
            found[int(number)] = {name: np.copy(batch[name][row]) for name in batch if hasattr(batch[name], "shape")}
    assert sorted(found) == list(range(N))
    return found


def test_all_codings_are_one(scenes):
    for number, row in rows(scenes, [st.ResizeTo((HEIGHT, WIDTH))]).items():
        np.testing.assert_array_equal(row["image"], picture(number))
        unknown = np.where(known(number)[..., None], flow(number), np.nan)
        np.testing.assert_array_equal(row["flo"], unknown)
        np.testing.assert_array_equal(row["kitti"], unknown)
        np.testing.assert_array_equal(row["pfm"], flow(number))
        np.testing.assert_array_equal(row["npy"], flow(number))
        assert (row["pfm"].dtype, row["npy"].dtype, row["disparity"].dtype) == (np.float32, np.float64, np.float32)
        np.testing.assert_array_equal(row["disparity"], flow(number)[..., 0])
        np.testing.assert_array_equal(row["depth"], flow(number)[..., 1])
        np.testing.assert_array_equal(row["depth16"], flow(number)[..., 1] * 64 + 700)
        assert row["depth16"].dtype == np.uint16


def test_flips_change_the_sign(scenes):
    mirrored = rows(scenes, [st.ResizeTo((HEIGHT, WIDTH)), st.RandomHorizontalFlip(1.0)])
    for number, row in mirrored.items():
        np.testing.assert_array_equal(row["pfm"], flow(number)[:, ::-1] * [-1, 1])
        np.testing.assert_array_equal(row["disparity"], -flow(number)[:, ::-1, 0])
        np.testing.assert_array_equal(row["depth"], flow(number)[:, ::-1, 1])
    turned = rows(scenes, [st.ResizeTo((HEIGHT, WIDTH)), st.RandomHorizontalFlip(1.0), st.RandomVerticalFlip(1.0)])
    for number, row in turned.items():
        np.testing.assert_array_equal(row["npy"], -flow(number)[::-1, ::-1])
        np.testing.assert_array_equal(row["disparity"], -flow(number)[::-1, ::-1, 0])


@pytest.mark.parametrize("cached", [False, True])
def test_sizes_scale_the_vectors(scenes, tmp_path, cached):
    height, width = 25, 91
    cache = st.DecodedCache("16MiB", resize=20) if cached else None
    for _ in range(2 if cached else 1):
        for number, row in rows(scenes, [st.ResizeTo((height, width))], decoded_cache=cache).items():
            def nearest(array, size=(width, height)):
                return np.asarray(Image.fromarray(array).resize(size, Image.Resampling.NEAREST))

            if cached:
                # The shorter side is 20 before the result is made.
                nearest = lambda array, before=nearest: before(before(array, (28, 20)))  # noqa: E731
            right, down = nearest(flow(number)[..., 0].copy()), nearest(flow(number)[..., 1].copy())
            np.testing.assert_allclose(row["pfm"][..., 0], right * (width / WIDTH), rtol=1e-6)
            np.testing.assert_allclose(row["pfm"][..., 1], down * (height / HEIGHT), rtol=1e-6)
            np.testing.assert_allclose(row["disparity"], right * (width / WIDTH), rtol=1e-6)
            np.testing.assert_array_equal(row["depth"], down)


def test_rotations_turn_the_vectors(scenes):
    """torchvision turns against the clock: what points to the right then points up."""
    fields = [st.Arrays("pfm", image_axes=(0, 1), kind="flow"), st.Arrays("depth", image_axes=(0, 1))]
    angle = np.deg2rad(30)
    matrix = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    for number, row in rows(scenes, [st.ResizeTo((HEIGHT, WIDTH)), st.RandomRotation((30, 30))], fields).items():
        inside = ~np.isnan(row["pfm"][..., 0])
        assert 0.5 < inside.mean() < 0.95, "what lies outside the image is not known"
        assert (row["depth"][~inside] == 0).all()
        # Each vector of the result is a stored one, turned; its second value is that of the depth.
        back = row["pfm"][inside] @ matrix
        np.testing.assert_allclose(back[:, 1], row["depth"][inside], atol=1e-4)
        stored = {tuple(vector) for vector in (flow(number).reshape(-1, 2) * 64).round().astype(int).tolist()}
        assert all(tuple(vector) in stored for vector in (back * 64).round().astype(int).tolist())


def test_a_perspective_moves_both_ends(tmp_path):
    """A flow that is the same for all pixels of a picture: its ends are those of keypoints, which are moved on their own."""
    vector = np.array([9.0, -6.0], np.float32)
    rng = np.random.default_rng(7)
    kinds = {
        "flow": st.Array(), "number": "int64", "image/object/bbox": "float", "image/object/class/label": "int64", "image/object/keypoints": "float",
    }  # fmt: skip
    with st.Writer(tmp_path / "set", "train", features=kinds) as writer:
        for number in range(8):
            start = rng.integers(12, 26, (20, 2)) + 0.5
            points = np.concatenate([start, start + vector])
            points = np.concatenate([points / [WIDTH, HEIGHT], np.full((len(points), 1), 2)], -1)
            writer.write({
                "key": f"{number}", "image": picture(number), "number": number, "flow": np.broadcast_to(vector, (HEIGHT, WIDTH, 2)).copy(),
                "image/object/bbox": np.array([0, 0, 1, 1], np.float32), "image/object/class/label": [1],
                "image/object/keypoints": points.astype(np.float32).ravel(),
            })  # fmt: skip
    split = st.Dataset(tmp_path / "set").split("train")
    steps = [st.RandomResizedCrop((60, 70), scale=(0.5, 1)), st.RandomPerspective(0.5, 1.0), st.RandomHorizontalFlip(0.5)]
    objects = st.Objects(keypoints="image/object/keypoints", flip_index=list(range(40)), min_area=0, min_size=0)
    compared = 0
    for batch in st.Loader(split, 4, [st.Image(steps), objects, st.Arrays("flow", image_axes=(0, 1), kind="flow")]):
        for row in range(4):
            points = batch["keypoints"].row(row).reshape(-1, 3)
            for (x, y, seen), (to_x, to_y, also) in zip(points[:20], points[20:], strict=True):
                if not (seen and also and 0 <= x < 70 and 0 <= y < 60):
                    continue
                found = batch["flow"][row, int(y), int(x)]
                if np.isfinite(found).all():
                    # The pixel's vector begins at the middle of the stored pixel that it shows.
                    np.testing.assert_allclose(found, [to_x - x, to_y - y], atol=1.2)
                    compared += 1
    assert compared > 40


def test_a_flow_in_planes_is_the_same(tmp_path):
    with st.Writer(tmp_path / "set", "train", features={"last": st.Array(), "first": st.Array()}) as writer:
        for number in range(4):
            writer.write({"key": f"{number}", "image": picture(number), "last": flow(number), "first": flow(number).transpose(2, 0, 1).copy()})
    fields = [st.Arrays("last", image_axes=(0, 1), kind="flow"), st.Arrays("first", image_axes=(1, 2), kind="flow")]
    steps = [st.RandomResizedCrop((30, 36)), st.RandomHorizontalFlip(), st.RandomRotation(20)]
    for batch in st.Loader(st.Dataset(tmp_path / "set").split("train"), 2, [st.Image(steps), *fields]):
        assert batch["first"].shape == (2, 2, 30, 36) and batch["last"].shape == (2, 30, 36, 2)
        np.testing.assert_array_equal(batch["first"].transpose(0, 2, 3, 1), batch["last"])


def test_what_cannot_be_turned_is_refused(scenes, tmp_path):
    image = st.Image([st.ResizeTo((HEIGHT, WIDTH))])
    for fields, message in [
        ([st.Arrays("depth", image_axes=(0, 1), kind="flow")], r"depth.*\[H, W, 2\].*\[40, 56\]"),
        ([st.Arrays("pfm", image_axes=(0, 1), kind="disparity")], r"pfm.*\[H, W\]"),
        ([st.Arrays("pfm", kind="flow")], "image_axes"),
        ([st.Arrays("depth16", image_axes=(0, 1), kind="disparity")], "float32 or float64.*u16"),
    ]:
        with pytest.raises(st.OptionError, match=message):
            st.Loader(scenes, 2, [image, *fields])
    disparity = st.Arrays("disparity", image_axes=(0, 1), kind="disparity")
    for step in (st.RandomRotation(5), st.RandomPerspective(), st.RandAugment(), st.RandomApply([st.RandomAffine(3)], 0.5)):
        with pytest.raises(st.OptionError, match="disparity.*turns or shears"):
            st.Loader(scenes, 2, [st.Image([st.ResizeTo((HEIGHT, WIDTH)), step]), disparity])
    # An EXIF orientation makes columns of rows.
    kinds = {"disparity": st.Array()}
    with st.Writer(tmp_path / "set", "train", features=kinds) as writer:
        exif = Image.Exif()
        exif[0x0112] = 6
        Image.fromarray(picture(0)).save(tmp_path / "turned.jpg", exif=exif)
        writer.write({"key": "turned", "image": (tmp_path / "turned.jpg").read_bytes(), "disparity": flow(0)[..., 0].copy()})
    split = st.Dataset(tmp_path / "set").split("train")
    image = st.Image([st.ResizeTo((WIDTH, HEIGHT))], apply_orientation=True)
    with pytest.raises(st.BadSampleError, match="EXIF orientation"):
        list(st.Loader(split, 1, [image, disparity], bad_samples="error"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.npz", b"PK\x03\x04rest", "numpy.save"),
        ("a.exr", b"\x76\x2f\x31\x01rest", "OpenEXR"),
        ("a.jpg", None, "does not keep values"),
        ("a.pfm", b"Pf\n3 3\n-1\nshort", "36"),
        ("a.flo", b"PIEH" + bytes(8), "width and height"),
        ("a.txt", b"none of these", "expected .npy"),
    ],
)
def test_other_files_are_named(tmp_path, name, content, message):
    Image.fromarray(picture(0)).save(tmp_path / "0.png")
    if content is None:
        Image.fromarray(picture(1)).save(tmp_path / name)
    else:
        (tmp_path / name).write_bytes(content)
    (tmp_path / "list.csv").write_text(f"path,depth\n0.png,{name}\n")
    with pytest.raises(st.PackError, match=message):
        st.pack(tmp_path / "list.csv", tmp_path / "set", columns={"depth": st.Array()}, progress=False)


def test_what_is_no_flow_is_refused(tmp_path):
    Image.fromarray(picture(0)).save(tmp_path / "0.png")
    np.save(tmp_path / "normals.npy", np.ones((HEIGHT, WIDTH, 3), np.float32))
    (tmp_path / "list.csv").write_text("path,flow\n0.png,normals.npy\n")
    with pytest.raises(st.PackError, match=r"not optical flow, but f32 of shape \[40, 56, 3\]"):
        st.pack(tmp_path / "list.csv", tmp_path / "set", columns={"flow": "flow"}, progress=False)


def test_tiffs_of_all_types_keep_their_values(tmp_path):
    """Of 32-bit integers and floats by Pillow, with each of its compressions."""
    values = np.random.default_rng(3).normal(size=(HEIGHT, WIDTH)).astype(np.float32)
    arrays = {
        "float": values, "int32": (values * 1e6).astype(np.int32), "uint16": (values * 9000).astype(np.int32).clip(0, 65535).astype(np.uint16),
        "uint8": (values * 90).clip(0, 255).astype(np.uint8),
    }  # fmt: skip
    Image.fromarray(picture(0)).save(tmp_path / "0.png")
    for name, array in arrays.items():
        compressions = ("raw", "tiff_lzw", "tiff_adobe_deflate", "packbits")
        for compression in compressions:
            Image.fromarray(array).save(tmp_path / f"{name}-{compression}.tif", compression=compression)
        rows = [json.dumps({"path": "0.png", "key": kind, "depth": f"{name}-{kind}.tif"}) for kind in compressions]
        (tmp_path / "list.jsonl").write_text("\n".join(rows))
        st.pack(tmp_path / "list.jsonl", tmp_path / name, columns={"depth": st.Array()}, progress=False)
        batch = next(iter(st.Loader(st.Dataset(tmp_path / name).split("train"), len(compressions), st.Arrays("depth"))))
        assert batch["depth"].dtype == array.dtype
        np.testing.assert_array_equal(batch["depth"], np.stack([array] * len(compressions)))


def test_a_batch_shows_depths_and_flow(scenes):
    """Each next to the image; a direction has a colour, and what is not known is white."""
    import base64
    import io
    import re

    fields = [st.Image([st.ResizeTo((HEIGHT, WIDTH))]), st.Arrays("kitti", image_axes=(0, 1), kind="flow"), st.Arrays("depth", image_axes=(0, 1))]
    batch = next(iter(st.Loader(scenes, 2, fields)))
    page = str(st.show(batch))
    shown = re.findall(r'base64,([^"]*)" alt="([^"]*)"', page)
    assert [name for _, name in shown] == ["image", "kitti", "depth"] * 2
    pictures = {name: np.asarray(Image.open(io.BytesIO(base64.b64decode(data)))) for data, name in shown[:3]}
    unknown = np.isnan(batch["kitti"][0, ..., 0])
    assert (pictures["kitti"][unknown] == 255).all() and pictures["kitti"].shape == (HEIGHT, WIDTH, 3)
    right, down = np.moveaxis(batch["kitti"][0], -1, 0)
    red, _, blue = np.moveaxis(pictures["kitti"].astype(int), -1, 0)
    far = np.hypot(right, down) > 5
    assert (red > blue)[far & (np.abs(down) < 1) & (right > 0)].all() and (red < blue)[far & (np.abs(down) < 1) & (right < 0)].all()
    grey = pictures["depth"][..., 0].astype(int)
    order = np.argsort(batch["depth"][0], axis=None)
    assert (np.diff(grey.ravel()[order]) >= 0).all() and grey.min() == 0 and grey.max() == 255


def test_torchvision_reads_the_same_files(tmp_path):
    """What the tests write is what the datasets' readers read."""
    pytest.importorskip("torch")
    from torchvision.datasets import _optical_flow
    from torchvision.datasets.utils import _read_pfm

    write_flo(tmp_path / "a.flo", flow(1))
    write_pfm(tmp_path / "a.pfm", np.concatenate([flow(1), np.zeros((HEIGHT, WIDTH, 1))], -1))
    write_pfm(tmp_path / "b.pfm", flow(1)[..., 0], scale=0.00392)
    write_kitti(tmp_path / "a.png", flow(1), known(1))
    np.testing.assert_array_equal(_optical_flow._read_flo(tmp_path / "a.flo"), flow(1).transpose(2, 0, 1))
    np.testing.assert_array_equal(_read_pfm(tmp_path / "a.pfm", slice_channels=2), flow(1).transpose(2, 0, 1))
    np.testing.assert_array_equal(_read_pfm(tmp_path / "b.pfm", slice_channels=1)[0], flow(1)[..., 0])
    values, valid = _optical_flow._read_16bits_png_with_flow_and_valid_mask(tmp_path / "a.png")
    np.testing.assert_array_equal(np.asarray(valid), known(1))
    np.testing.assert_array_equal(np.asarray(values).transpose(1, 2, 0)[known(1)], flow(1)[known(1)])


def test_rows_without_a_sample_have_no_flow(scenes):
    fields = [st.Image([st.ResizeTo((8, 8))]), st.Arrays("pfm", image_axes=(0, 1), kind="flow"), st.Arrays("depth", image_axes=(0, 1))]
    last = list(st.Loader(scenes, 4, fields, remainder="mask"))[-1]
    assert last["valid"].tolist() == [True, True, False, False]
    assert np.isnan(last["pfm"][2:]).all() and np.isfinite(last["pfm"][:2]).all() and (last["depth"][2:] == 0).all()


def test_files_of_several_images_are_refused(tmp_path):
    Image.fromarray(picture(0)).save(tmp_path / "0.png")
    slices = [Image.fromarray(flow(number)[..., 0]) for number in range(3)]
    slices[0].save(tmp_path / "volume.tif", save_all=True, append_images=slices[1:])
    slices[0].save(tmp_path / "turned.tif", tiffinfo={274: 6})
    (tmp_path / "cut.flo").write_bytes(b"PIEH" + np.int32([WIDTH, HEIGHT]).tobytes() + bytes(4 * WIDTH * HEIGHT))
    for name, message in (("volume.tif", "several images"), ("turned.tif", "to be turned"), ("cut.flo", f"{8 * WIDTH * HEIGHT}")):
        (tmp_path / "list.csv").write_text(f"path,depth\n0.png,{name}\n")
        with pytest.raises(st.PackError, match=message):
            st.pack(tmp_path / "list.csv", tmp_path / "set", columns={"depth": st.Array()}, progress=False)


def test_an_array_may_be_called_mask(tmp_path):
    Image.fromarray(picture(0)).save(tmp_path / "0.png")
    np.save(tmp_path / "0.npy", flow(0))
    (tmp_path / "list.csv").write_text("path,mask\n0.png,0.npy\n")
    st.pack(tmp_path / "list.csv", tmp_path / "set", columns={"mask": st.Array()}, progress=False)
    assert st.verify(tmp_path / "set", decode=True).good
