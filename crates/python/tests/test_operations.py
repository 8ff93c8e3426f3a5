"""Operations on pixels, compared with torchvision's functions on u8 tensors: 1,900 random cases."""

import math
import random
import statistics

import numpy as np
import pytest

torch = pytest.importorskip("torch")
functional = pytest.importorskip("torchvision.transforms.v2.functional")

from torchvision.transforms.functional import _get_inverse_affine_matrix  # noqa: E402

CASES = 50
"""Cases of each of the 20 operations on RGB, and of 18 on grey."""


def apply(image, operations):
    """Returns the image, `[H, W, C]` u8, after the operations."""
    from shardtool.transforms import apply_operations

    return apply_operations(image, operations)


def picture(rng):
    """Returns an image of 1 to 90 pixels a side, `[3, H, W]`: photo-like, noise, of few colours, or constant."""
    height, width = (rng.choice([rng.randint(1, 5), rng.randint(3, 90)]) for _ in range(2))
    generator = torch.Generator().manual_seed(rng.getrandbits(32))
    kind = rng.choice(["photo", "photo", "noise", "colours", "constant"])
    if kind == "noise":
        return torch.randint(0, 256, (3, height, width), generator=generator, dtype=torch.uint8)
    if kind == "colours":
        colours = torch.randint(0, 256, (3, 4), generator=generator, dtype=torch.uint8)
        return colours[:, torch.randint(0, 4, (height, width), generator=generator)]
    if kind == "constant":
        return torch.randint(0, 256, (3, 1, 1), generator=generator, dtype=torch.uint8).repeat(1, height, width)
    coarse = torch.rand((1, 3, 5, 5), generator=generator) * rng.uniform(40, 255)
    smooth = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic", align_corners=True)[0]
    return (smooth + 3 * torch.randn(smooth.shape, generator=generator)).clamp(0, 255).to(torch.uint8)


def factor(rng):
    return rng.choice([0.0, 1.0, 0.5, rng.uniform(0, 1), rng.uniform(1, 4)])


def adjustment(name, function):
    """Returns the maker of an operation with a factor."""

    def make(rng, image):
        value = factor(rng)
        return {name: {"factor": value}}, function(image, value)

    return make


def plain(name, function):
    """Returns the maker of an operation without parameters."""
    return lambda rng, image: (name, function(image))


def hue(rng, image):
    value = rng.choice([0.0, -0.5, 0.5, rng.uniform(-0.5, 0.5)])
    return {"hue": {"factor": value}}, functional.adjust_hue(image, value)


def channel_permutation(rng, image):
    order = rng.sample(range(3), 3)
    return {"channel_permutation": {"order": order}}, functional.permute_channels(image, order)


def posterize(rng, image):
    bits = rng.randint(0, 8)
    return {"posterize": {"bits": bits}}, functional.posterize(image, bits)


def solarize(rng, image):
    threshold = rng.choice([0.0, 255.0, -3.5, 128.0, rng.uniform(0, 255), float(rng.randint(0, 255))])
    return {"solarize": {"threshold": threshold}}, functional.solarize(image, threshold)


def gaussian_blur(rng, image):
    sides = [image.shape[2], image.shape[1]]
    kernel = [2 * rng.randint(0, min(side - 1, 12)) + 1 for side in sides]
    sigma = [rng.uniform(0.1, 4.0) for _ in sides]
    expected = functional.gaussian_blur(image, kernel, sigma)
    return {"gaussian_blur": {"kernel": kernel, "sigma": sigma}}, expected


def rectangle(rng, image):
    """Returns a rectangle that may extend beyond the image."""
    height, width = image.shape[1:]
    return {
        "left": rng.randint(0, width),
        "top": rng.randint(0, height),
        "width": rng.randint(0, width + 2),
        "height": rng.randint(0, height + 2),
    }


def colour(rng, image):
    """Returns a colour, which is grey for a grey image."""
    values = [rng.randint(0, 255) for _ in range(3)]
    return values if len(image) == 3 else values[:1] * 3


def erase(rng, image):
    rect, value = rectangle(rng, image), colour(rng, image)
    v = torch.tensor(value[: len(image)], dtype=torch.uint8)[:, None, None]
    expected = functional.erase(image, rect["top"], rect["left"], rect["height"], rect["width"], v)
    return {"erase": {"rect": rect, "value": value}}, expected


def noise(key, shape):
    """Returns normal noise of ImageNet's mean and deviation by inversion, from halves of the outputs of SplitMix64."""
    mask, halves = (1 << 64) - 1, []
    while len(halves) < math.prod(shape):
        key = (key + 0x9E3779B97F4A7C15) & mask
        x = ((key ^ (key >> 30)) * 0xBF58476D1CE4E5B9) & mask
        x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
        x ^= x >> 31
        halves += [x >> 32, x & 0xFFFFFFFF]
    uniform = (np.array(halves[: math.prod(shape)], dtype=float) + 0.5).reshape(shape) / 2**32
    channels = []
    for c, (mean, deviation) in enumerate([(123.675, 58.395), (116.28, 57.12), (103.53, 57.375)]):
        values = statistics.NormalDist(mean, deviation)
        channels.append([[values.inv_cdf(u) for u in row] for row in uniform[..., c]])
    return np.clip(np.floor(np.moveaxis(np.array(channels).reshape(3, *shape[:2]), 0, -1) + 0.5), 0, 255)


def erase_noise(rng, image):
    rect, key = rectangle(rng, image), rng.getrandbits(64)
    expected = image.permute(1, 2, 0).numpy().copy()
    region = expected[rect["top"] :, rect["left"] :][: rect["height"], : rect["width"]]
    region[:] = noise(key, region.shape)
    return {"erase_noise": {"rect": rect, "key": key}}, torch.from_numpy(expected).permute(2, 0, 1)


def warped(rng, image, warp):
    """Returns interpolation, fill and the expected image. `warp` calls torchvision."""
    if rng.random() < 0.5:
        interpolation = "nearest"
        fill = rng.choice([[0, 0, 0], colour(rng, image)])
        mode = functional.InterpolationMode.NEAREST
        return interpolation, fill, warp(image, interpolation=mode, fill=fill[: len(image)])
    interpolation = "bilinear"
    mode = functional.InterpolationMode.BILINEAR
    if rng.random() < 0.5:
        return interpolation, [0, 0, 0], warp(image, interpolation=mode, fill=None)
    # Pixels outside count as the fill colour. torchvision weights pixels at the edges twice.
    fill = colour(rng, image)
    inside = warp(torch.ones_like(image, dtype=torch.float32), interpolation=mode, fill=None)
    expected = warp(image.float(), interpolation=mode, fill=None)
    expected += (1 - inside) * torch.tensor(fill[: len(image)], dtype=torch.float32)[:, None, None]
    return interpolation, fill, expected.clamp(0, 255).round().to(torch.uint8)


def affine(rng, image):
    angle = rng.choice([0.0, 90.0, 45.0, rng.uniform(-180, 180)])
    shift = rng.randint(-9, 9)
    translate = [rng.choice([0.0, shift + 0.0, shift + 0.5, rng.uniform(-9, 9)]) for _ in range(2)]
    scale, shear = rng.choice([1.0, rng.uniform(0.4, 2)]), [rng.choice([0.0, rng.uniform(-30, 30)]) for _ in range(2)]
    if rng.random() < 0.25:
        angle, scale, shear = 0.0, 1.0, [0.0, 0.0]
    matrix = _get_inverse_affine_matrix([0.0, 0.0], angle, translate, scale, shear)

    def warp(image, **options):
        return functional.affine(image, angle, translate, scale, shear, **options)

    interpolation, fill, expected = warped(rng, image, warp)
    return {"affine": {"matrix": matrix, "interpolation": interpolation, "fill": fill}}, expected


def perspective(rng, image):
    height, width = image.shape[1:]
    coefficients = [rng.uniform(0.7, 1.4), rng.uniform(-0.3, 0.3), rng.uniform(-9, 9)]
    coefficients += [rng.uniform(-0.3, 0.3), rng.uniform(0.7, 1.4), rng.uniform(-9, 9)]
    coefficients += [rng.uniform(-0.4, 0.4) / width, rng.uniform(-0.4, 0.4) / height]

    def warp(image, **options):
        return functional.perspective(image, None, None, coefficients=coefficients, **options)

    interpolation, fill, expected = warped(rng, image, warp)
    return {"perspective": {"coefficients": coefficients, "interpolation": interpolation, "fill": fill}}, expected


def aug_mix(rng, image):
    """Chains of operations that are exact, mixed as torchvision's `AugMix` does."""
    names = sorted(EXACT - {"aug_mix", "erase_noise"} - (COLOURED if len(image) == 1 else set()))
    makers = [MAKERS[name] for name in names]
    weights = torch.tensor([rng.random() + 0.1 for _ in range(rng.randint(1, 4))])
    weights /= weights.sum()
    mix = weights[0] * image
    chains = []
    for weight in weights[1:]:
        chains.append([])
        result = image
        for _ in range(rng.randint(0, 3)):
            operation, result = rng.choice(makers)(rng, result)
            chains[-1].append(operation)
        mix.add_(weight * result)
    values = [float(weight) for weight in weights]
    return {"aug_mix": {"image": values[0], "weights": values[1:], "chains": chains}}, mix.to(torch.uint8)


MAKERS = {
    "horizontal_flip": plain("horizontal_flip", functional.horizontal_flip),
    "vertical_flip": plain("vertical_flip", functional.vertical_flip),
    "brightness": adjustment("brightness", functional.adjust_brightness),
    "contrast": adjustment("contrast", functional.adjust_contrast),
    "saturation": adjustment("saturation", functional.adjust_saturation),
    "hue": hue,
    "sharpness": adjustment("sharpness", functional.adjust_sharpness),
    "grayscale": plain("grayscale", lambda image: functional.rgb_to_grayscale(image, len(image))),
    "channel_permutation": channel_permutation,
    "invert": plain("invert", functional.invert),
    "autocontrast": plain("autocontrast", functional.autocontrast),
    "equalize": plain("equalize", functional.equalize),
    "posterize": posterize,
    "solarize": solarize,
    "gaussian_blur": gaussian_blur,
    "affine": affine,
    "perspective": perspective,
    "erase": erase,
    "erase_noise": erase_noise,
    "aug_mix": aug_mix,
}

ROUNDED = {"hue": 1e-3, "gaussian_blur": 1e-3, "erase_noise": 1e-4}
"""The share of values that may differ, by one, because intermediate results are rounded in another order."""

MOVED = {"affine": 1e-3, "perspective": 1e-3}
"""The share of pixels that may come from the next pixel, because a position is halfway between two."""

COLOURED = {"channel_permutation", "erase_noise"}
"""Operations that are not defined for grey."""

EXACT = MAKERS.keys() - ROUNDED.keys() - MOVED.keys()


@pytest.mark.parametrize(
    ("name", "channels"), [(name, 3) for name in MAKERS] + [(name, 1) for name in MAKERS if name not in COLOURED]
)
def test_pixels_match_torchvision(name, channels):
    values = differing = 0
    for case in range(CASES):
        rng = random.Random(f"{name} {case}")
        image = picture(rng)[:channels]
        operation, expected = MAKERS[name](rng, image)
        found = apply(np.ascontiguousarray(image.permute(1, 2, 0)), [operation])
        expected = np.ascontiguousarray(expected.permute(1, 2, 0))
        assert found.dtype == np.uint8 and found.shape == expected.shape
        difference = np.abs(found.astype(int) - expected)
        if name in EXACT:
            assert difference.max() == 0, (case, operation, image.shape)
        if name in ROUNDED:
            assert difference.max() <= 1, (case, operation, image.shape)
        values += difference.size
        differing += np.count_nonzero(difference)
    print(f"{name}: {differing} of {values} values differ")
    assert differing <= {**ROUNDED, **MOVED}.get(name, 0) * values


def test_a_list_is_applied_in_order():
    image = picture(random.Random(5))
    operations = ["invert", {"brightness": {"factor": 0.7}}, "equalize", {"solarize": {"threshold": 90.0}}]
    expected = functional.solarize(
        functional.equalize(functional.adjust_brightness(functional.invert(image), 0.7)), 90.0
    )
    found = apply(np.ascontiguousarray(image.permute(1, 2, 0)), operations)
    assert np.array_equal(found, expected.permute(1, 2, 0).numpy())


@pytest.mark.parametrize(
    "operation",
    [
        {"gaussian_blur": {"kernel": [23, 23], "sigma": [1.0, 1.0]}},
        {"gaussian_blur": {"kernel": [2, 3], "sigma": [1.0, 1.0]}},
        {"gaussian_blur": {"kernel": [3, 3], "sigma": [0.0, 1.0]}},
        {"brightness": {"factor": -0.1}},
        {"hue": {"factor": 0.6}},
        {"posterize": {"bits": 9}},
        {"solarize": {"threshold": 256.0}},
        {"channel_permutation": {"order": [0, 0, 1]}},
    ],
)
def test_parameters_that_torchvision_rejects_are_rejected_by_name(operation):
    (name,) = operation
    with pytest.raises(ValueError, match=name):
        apply(np.zeros((11, 12, 3), np.uint8), [operation])


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_operations_that_need_three_channels_or_8_bits_are_refused_by_name(dtype):
    image = np.zeros((11, 12, 1), dtype)
    names = ["invert", "equalize", {"brightness": {"factor": 0.5}}] if dtype == np.uint16 else []
    names += [{"channel_permutation": {"order": [2, 1, 0]}}]
    for operation in names:
        name = operation if isinstance(operation, str) else next(iter(operation))
        with pytest.raises(ValueError, match=f"{name}: not defined for pixels of grey"):
            apply(image, [operation])


@pytest.mark.parametrize("channels", [1, 3])
def test_operations_move_16_bits(channels):
    rng = random.Random(8)
    image = torch.randint(0, 65536, (channels, 31, 45), generator=torch.Generator().manual_seed(2), dtype=torch.int32)
    pixels = np.ascontiguousarray(image.permute(1, 2, 0).numpy().astype(np.uint16))
    assert (apply(pixels, ["horizontal_flip", "vertical_flip"]) == pixels[::-1, ::-1]).all()
    for _ in range(20):
        angle = rng.uniform(-180, 180)
        matrix = _get_inverse_affine_matrix([0.0, 0.0], angle, [0.0, 0.0], 1.0, [0.0, 0.0])
        # torchvision moves floats, which hold these numbers exactly.
        expected = functional.affine(image.to(torch.float64), angle, [0, 0], 1.0, [0.0, 0.0], fill=[30 * 257.0] * channels)
        found = apply(pixels, [{"affine": {"matrix": matrix, "interpolation": "nearest", "fill": [30, 30, 30]}}])
        different = (found != expected.permute(1, 2, 0).numpy()).mean()
        assert found.dtype == np.uint16 and different < 2e-3
