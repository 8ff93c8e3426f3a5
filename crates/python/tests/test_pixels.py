"""Grey and 16-bit batches equal what Pillow, torchvision and numpy make of the same files."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image

import shardtool as st

SIZE = (23, 37)
FILTERS = {"bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC, "lanczos": Image.LANCZOS}


def smooth(rng, height, width, channels, largest):
    """Returns an image of gradients and noise, `[height, width, channels]`, from 0 to `largest`."""
    y, x = np.mgrid[0:height, 0:width]
    waves = [np.sin(x / (3 + 5 * c) + c) * np.cos(y / (7 - c)) for c in range(channels)]
    noise = rng.normal(0, 0.1, (height, width, channels))
    values = np.stack(waves, -1) * 0.4 + 0.5 + noise
    return (values.clip(0, 1) * largest).round()


def files(rng):
    """Returns images by name: encoded bytes."""
    made = {}

    def add(name, image, **options):
        buffer = io.BytesIO()
        image.save(buffer, **options)
        made[name] = buffer.getvalue()

    rgb = Image.fromarray(smooth(rng, 83, 121, 3, 255).astype(np.uint8))
    grey = Image.fromarray(smooth(rng, 83, 121, 1, 255).astype(np.uint8)[..., 0])
    add("colour.jpg", rgb, format="JPEG", quality=90)
    add("444.jpg", rgb, format="JPEG", quality=95, subsampling=0)
    add("progressive.jpg", rgb, format="JPEG", quality=80, progressive=True)
    add("rgb.jpg", rgb, format="JPEG", quality=90, keep_rgb=True)
    add("cmyk.jpg", rgb.convert("CMYK"), format="JPEG", quality=90)
    add("grey.jpg", grey, format="JPEG", quality=90)
    add("rgb.png", rgb, format="PNG")
    add("grey.png", grey, format="PNG")
    add("palette.png", rgb.quantize(60), format="PNG")
    add("rgba.png", Image.merge("RGBA", (*rgb.split(), grey)), format="PNG")
    add("la.png", Image.merge("LA", (grey, grey)), format="PNG")
    add("bits.png", grey.point(lambda v: 255 * (v > 127)).convert("1"), format="PNG")
    add("rgb.tif", rgb, format="TIFF")
    add("grey.tif", grey, format="TIFF", compression="tiff_lzw")
    add("rgb.bmp", rgb, format="BMP")
    add("rgb.webp", rgb, format="WEBP", lossless=True)
    return made


def deep_files(rng):
    """Returns 16-bit images by name: encoded bytes, and their samples `[H, W, C]`."""
    made = {}
    grey = smooth(rng, 71, 64, 1, 65535).astype(np.uint16)
    rgb = smooth(rng, 71, 64, 3, 65535).astype(np.uint16)

    def png(samples, color):
        def chunk(kind, data):
            return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

        height, width = samples.shape[:2]
        rows = samples.astype(">u2").tobytes()
        stride = len(rows) // height
        data = b"".join(b"\0" + rows[y * stride : (y + 1) * stride] for y in range(height))
        header = struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0)
        return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")

    def tiff(samples, order="<"):
        """An uncompressed TIFF of one strip (TIFF 6.0)."""
        height, width, channels = samples.shape
        data = samples.astype(order + "u2").tobytes()
        bits = 8 + len(data)
        tags = [(256, 3, 1, width), (257, 3, 1, height), (258, 3, channels, bits), (259, 3, 1, 1)]
        tags += [(262, 3, 1, 2 if channels == 3 else 1), (273, 4, 1, 8), (277, 3, 1, channels), (278, 3, 1, height)]
        tags += [(279, 4, 1, len(data))]
        if channels == 1:
            tags[2] = (258, 3, 1, 16)
        directory = struct.pack(order + "H", len(tags))
        for tag, kind, count, value in tags:
            packed = struct.pack(order + "HH", value, 0) if kind == 3 and count == 1 else struct.pack(order + "I", value)
            directory += struct.pack(order + "HHI", tag, kind, count) + packed
        start = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "I", bits + 2 * channels)
        return start + data + struct.pack(order + f"{channels}H", *[16] * channels) + directory + bytes(4)

    made["grey.png"] = png(grey, 0), grey
    made["rgb.png"] = png(rgb, 2), rgb
    made["alpha.png"] = png(np.concatenate([rgb, grey], -1), 6), rgb
    made["la.png"] = png(np.concatenate([grey, grey], -1), 4), grey
    made["grey.tif"] = tiff(grey), grey
    made["big-endian.tif"] = tiff(grey, ">"), grey
    made["rgb.tif"] = tiff(rgb), rgb
    return made


def packed(folder, images):
    """Packs images, in the order of their names."""
    (folder / "images").mkdir()
    for name, image in images.items():
        (folder / "images" / name).write_bytes(image)
    # `pack` would ask about the same name with several extensions.
    st.pack(folder / "images", folder / "dataset", seed=None, kind="folder")
    return st.Dataset(folder / "dataset")["train"], sorted(images)


@pytest.fixture(scope="module")
def eight(tmp_path_factory):
    images = files(np.random.default_rng(5))
    return *packed(tmp_path_factory.mktemp("eight"), images), images


@pytest.fixture(scope="module")
def sixteen(tmp_path_factory):
    images = deep_files(np.random.default_rng(6))
    split, names = packed(tmp_path_factory.mktemp("sixteen"), {name: image for name, (image, _) in images.items()})
    return split, names, {name: samples for name, (_, samples) in images.items()}


def loaded(split, steps, **pixels):
    """Returns the images of one batch of the whole split."""
    with st.Loader(split, len(split), st.Image(steps, **pixels), order=st.Sequential()) as loader:
        return next(iter(loader))["image"].copy()


def luma(encoded):
    """Returns what Pillow makes of an image: a JPEG in colour is decoded to grey by libjpeg."""
    image = Image.open(io.BytesIO(encoded))
    if image.format == "JPEG" and image.mode == "RGB":
        image.draft("L", image.size)
        assert image.mode == "L"
    return image.convert("L")


def test_grey_equals_pillow(eight):
    split, names, images = eight
    found = loaded(split, [st.CenterCrop(80)], mode="L")
    assert found.shape == (len(names), 80, 80, 1) and found.dtype == np.uint8
    for name, grey in zip(names, found[..., 0], strict=True):
        expected = luma(images[name])
        left, top = round((expected.width - 80) / 2), round((expected.height - 80) / 2)
        compare(name, grey, expected.crop((left, top, left + 80, top + 80)))


@pytest.mark.parametrize("filter", FILTERS)
def test_geometry_of_grey_equals_pillow_on_mode_l(eight, filter):
    split, names, images = eight
    # At sizes at which no JPEG is decoded reduced, which gives other pixels.
    for height, width in (SIZE, (97, 150)):
        found = loaded(split, [st.ResizeTo((height, width), filter), st.HorizontalFlip(1.0)], mode="L")[..., 0]
        for name, grey in zip(names, found, strict=True):
            expected = luma(images[name]).resize((width, height), FILTERS[filter]).transpose(Image.FLIP_LEFT_RIGHT)
            compare(name, grey, expected)


def compare(name, grey, expected):
    """Compares with an image of Pillow's."""
    assert (grey == np.asarray(expected)).all(), name


def test_torchvision_decodes_the_same_grey(eight):
    torchvision = pytest.importorskip("torchvision")
    torch = pytest.importorskip("torch")
    split, names, images = eight
    found = loaded(split, [st.CenterCrop(83)], mode="L")[..., 0]
    compared = 0
    for name, grey in zip(names, found, strict=True):
        if not name.endswith(".jpg") or name == "cmyk.jpg":
            continue
        encoded = torch.frombuffer(bytearray(images[name]), dtype=torch.uint8)
        expected = torchvision.io.decode_jpeg(encoded, mode=torchvision.io.ImageReadMode.GRAY)
        # The images are 83 x 121.
        assert (grey == expected[0, :, 19:102].numpy()).all(), name
        compared += 1
    assert compared == 5


def test_grey_is_normalised_with_one_mean(eight):
    split, _, _ = eight
    steps = [st.ResizeTo(SIZE)]
    grey = loaded(split, steps, mode="L")
    for layout, axes in (("NCHW", (0, 3, 1, 2)), ("NHWC", (0, 1, 2, 3))):
        for mean, std in ((0.45, 0.226), ([0.45], [0.226])):
            found = loaded(split, steps, mode="L", layout=layout, mean=mean, std=std)
            expected = (grey.transpose(axes).astype(np.float64) / 255 - 0.45) / 0.226
            assert found.dtype == np.float32 and found.shape == expected.shape
            assert np.abs(found - expected).max() < 1e-6
    half = loaded(split, steps, mode="L", dtype="float16")
    assert half.dtype == np.float16 and (half == loaded(split, steps, mode="L", dtype="float32").astype(np.float16)).all()
    with pytest.raises(st.OptionError, match="one for grey"):
        loaded(split, steps, mode="L", mean=[0.4, 0.4, 0.4])


def test_16_bits_are_kept(sixteen):
    split, names, samples = sixteen
    steps = [st.CenterCrop((51, 60)), st.RandomVerticalFlip(1.0)]
    deep, grey = loaded(split, steps, dtype="uint16"), loaded(split, steps, dtype="uint16", mode="L")
    assert deep.dtype == grey.dtype == np.uint16 and deep.shape[-1] == 3 and grey.shape[-1] == 1
    for name, rgb, one in zip(names, deep, grey, strict=True):
        # The images are 71 x 64.
        crop = samples[name][10:61, 2:62][::-1]
        assert (rgb == np.broadcast_to(crop, rgb.shape)).all(), name
        weights = np.array([19595, 38470, 7471])
        expected = crop if crop.shape[-1] == 1 else ((crop.astype(np.int64) @ weights + 0x8000) >> 16)[..., None]
        assert (one == expected).all(), name


def test_8_bits_are_widened_by_257(eight):
    split, _, _ = eight
    steps = [st.CenterCrop((80, 70)), st.HorizontalFlip(1.0)]
    for mode in ("RGB", "L"):
        narrow, wide = loaded(split, steps, mode=mode), loaded(split, steps, mode=mode, bits=16)
        assert wide.dtype == np.uint16 and (wide == narrow.astype(np.uint16) * 257).all()


@pytest.mark.parametrize("filter", FILTERS)
@pytest.mark.parametrize("size", [(23, 37), (97, 150), (71, 31)])
def test_resize_of_16_bits_equals_pillow_on_mode_i16(sixteen, filter, size):
    split, names, samples = sixteen
    height, width = size
    found = loaded(split, [st.ResizeTo(size, filter)], dtype="uint16")
    for name, image in zip(names, found, strict=True):
        for channel in range(samples[name].shape[-1]):
            plane = Image.fromarray(np.ascontiguousarray(samples[name][..., channel]))
            assert plane.mode == "I;16"
            expected = np.asarray(plane.resize((width, height), FILTERS[filter]))
            actual = image[..., channel]
            # Pillow clamps only the upper byte of what overshoots white.
            white = (actual == 65535) & (expected >= 0xFF00)
            assert ((actual == expected) | white).all(), name
            assert filter != "bilinear" or (actual == expected).all()


def test_floats_come_from_16_bits(sixteen):
    split, _, _ = sixteen
    steps = [st.ResizeTo(SIZE)]
    for mode, mean, std in (("RGB", [0.4, 0.5, 0.6], [0.2, 0.3, 0.25]), ("L", 0.4, 0.2)):
        deep = loaded(split, steps, mode=mode, bits=16)
        expected = (deep.astype(np.float64) / 65535 - mean) / std
        for layout, axes in (("NCHW", (0, 3, 1, 2)), ("NHWC", (0, 1, 2, 3))):
            found = loaded(split, steps, mode=mode, bits=16, layout=layout, mean=mean, std=std)
            assert found.dtype == np.float32
            assert np.abs(found - expected.transpose(axes)).max() < 1e-6
            half = loaded(split, steps, mode=mode, bits=16, layout=layout, mean=mean, std=std, dtype="float16")
            assert (half == found.astype(np.float16)).all()


def test_frameworks_get_the_types(sixteen, eight):
    tested = 0
    for framework in ("torch", "jax"):
        try:
            module = __import__(f"shardtool.{framework}", fromlist=["Loader"])
        except ImportError:
            continue
        steps = [st.ResizeTo(SIZE)]
        for options, split in (({"dtype": "uint16"}, sixteen[0]), ({"mode": "L"}, eight[0]),
                               ({"mode": "L", "bits": 16, "dtype": "bfloat16"}, sixteen[0])):
            expected = loaded(split, steps, **options)
            batch = next(iter(module.Loader(split, len(split), st.Image(steps, **options), order=st.Sequential())))
            name = str(batch["image"].dtype).removeprefix("torch.")
            assert name == options.get("dtype", "uint8") and tuple(batch["image"].shape) == expected.shape
            if name != "bfloat16":
                assert (np.asarray(batch["image"]) == expected).all()
        tested += 1
    if not tested:
        pytest.skip("neither torch nor JAX is installed")


def test_function_gets_the_pixels_of_the_format(sixteen, eight):
    def check(shape, dtype):
        def function(image, seed):
            assert image.shape == shape and image.dtype == dtype
            return image // 2

        return function

    steps = [st.ResizeTo(SIZE)]
    for split, shape, options in ((sixteen[0], (*SIZE, 3), {"bits": 16}), (eight[0], (*SIZE, 1), {"mode": "L"})):
        plain = loaded(split, steps, **options)
        found = loaded(split, [*steps, check(shape, plain.dtype)], **options)
        assert (found == plain // 2).all()


def test_views_further_images_and_cached_images(eight):
    split, _, _ = eight
    views = st.Views({"a": [st.ResizeTo(SIZE)], "b": [st.ResizeTo((9, 8))]}, mode="L")
    with st.Loader(split, len(split), views, order=st.Sequential()) as loader:
        batch = next(iter(loader))
    assert (batch["image.a"] == loaded(split, [st.ResizeTo(SIZE)], mode="L")).all()
    assert batch["image.b"].shape[1:] == (9, 8, 1)
    for options in ({"mode": "L"}, {"bits": 16}):
        image = st.Image([st.ResizeTo(SIZE)], decoded_cache=st.DecodedCache("1MiB", resize=40), **options)
        with st.Loader(split, 4, image, order=st.Sequential()) as loader:
            first, second = (np.concatenate([batch["image"] for batch in loader]) for _ in range(2))
            assert loader.stats()["decoded_cache"]["hits"] > 0
        assert (first == second).all() and first.shape[-1] == (1 if "mode" in options else 3)


def test_resumes_in_the_middle(sixteen):
    split, _, _ = sixteen
    image = st.Image([st.RandomResizedCrop(16), st.HorizontalFlip()], dtype="uint16", mode="L")
    with st.Loader(split, 2, image, remainder="drop") as loader:
        batches = [batch["image"].copy() for batch in loader]
    with st.Loader(split, 2, image, remainder="drop") as loader:
        iteration = iter(loader)
        next(iteration)
        state = loader.state_dict()
    with st.Loader(split, 2, image, remainder="drop") as loader:
        loader.load_state_dict(state)
        rest = [batch["image"].copy() for batch in loader]
    assert len(rest) == len(batches) - 1 == 2
    assert all((a == b).all() for a, b in zip(rest, batches[1:], strict=True))


def test_steps_that_are_not_defined_are_refused_by_name(eight):
    split, _, _ = eight
    size = st.ResizeTo(SIZE)
    for step, options, name in [
        (st.RandomPhotometricDistort(), {"mode": "L"}, "random_photometric_distort"),
        (st.RandomErasing(value="random"), {"mode": "L"}, "random_erasing"),
        (st.ColorJitter(brightness=0.1), {"bits": 16}, "color_jitter"),
        (st.RandomApply([st.GaussianBlur(3)]), {"dtype": "uint16"}, "gaussian_blur"),
        (st.RandAugment(), {"bits": 16, "mode": "L"}, "rand_augment"),
    ]:
        with pytest.raises(st.OptionError, match=f"`{name}.*not defined for pixels of"):
            st.Loader(split, 2, st.Image([size, step], **options))
    for options, message in [
        ({"mode": "gray"}, "`mode` is 'gray': expected \"RGB\", \"L\""),
        ({"bits": 12}, "`bits` is 12: expected 8, 16"),
        ({"dtype": "uint16", "bits": 8}, "`dtype` \"uint16\" has the samples of 16 `bits`"),
        ({"dtype": "uint16", "layout": "NCHW"}, "NHWC: leave out `layout`, `mean` and `std`"),
    ]:
        with pytest.raises(st.OptionError, match=message):
            st.Loader(split, 2, st.Image([size], **options))
    with pytest.raises(st.OptionError, match="`mode`: images as stored are not decoded"):
        st.Loader(split, 2, st.Image(mode="L"))
