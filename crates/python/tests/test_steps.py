"""Steps with random parameters, beside torchvision v2: the pixels and boxes of 1,000 seeded cases, and the distributions of
what is drawn."""

import math

import numpy as np
import pytest
from chains import boxes_in

import shardtool as st

torch = pytest.importorskip("torch")
pytest.importorskip("torchvision.transforms.v2")
from replay import as_image, geometry, replay  # noqa: E402
from torchvision import tv_tensors  # noqa: E402
from torchvision.transforms import v2  # noqa: E402
from torchvision.transforms.v2 import functional as F  # noqa: E402


def photograph(seed):
    """Returns a photo-like image `[H, W, 3]` of 40 to 120 pixels a side."""
    random = np.random.default_rng(seed)
    height, width = random.integers(40, 120, 2)
    coarse = torch.from_numpy(random.random((1, 3, 6, 6), np.float32))
    smooth = torch.nn.functional.interpolate(coarse, (int(height), int(width)), mode="bicubic", align_corners=True)
    pixels = smooth[0].numpy().transpose(1, 2, 0) * 255 + random.normal(0, 4, (height, width, 3))
    return pixels.clip(0, 255).astype(np.uint8)


CROP = st.RandomResizedCrop(56, scale=(0.2, 1))
#: Lists of steps, and the largest difference of a value from torchvision's on equal pixels.
RECIPES = {
    "crop and flips": ([CROP, st.RandomHorizontalFlip(), st.RandomVerticalFlip()], 1),
    "padded crop": ([st.ResizeTo((48, 40)), st.RandomCrop(40, padding=4, fill=(9, 99, 199))], 1),
    "padded crop of small images": ([st.RandomCrop(130, pad_if_needed=True, fill=7)], 1),
    "reflected": ([st.ResizeTo(40), st.Pad((3, 5, 7, 11), padding_mode="reflect"), st.RandomCrop(44)], 1),
    "symmetric": ([st.ResizeTo(40), st.Pad((3, 35), padding_mode="symmetric"), st.CenterCrop((100, 40))], 1),
    "bicubic": ([st.RandomResizedCrop(56, interpolation="bicubic"), st.Pad(3), st.ResizeTo(40, "bicubic")], 1),
    "edge": ([st.Pad((3, 5), padding_mode="edge"), st.ResizeTo(50)], 1),
    "ssd": ([st.RandomPhotometricDistort(), st.RandomZoomOut(fill=(123, 117, 104)), st.RandomIoUCrop(), st.ResizeTo(60)], 1),
    "ssd before colours": ([st.RandomZoomOut(), st.RandomIoUCrop(), st.RandomHorizontalFlip(), st.ResizeTo(60)], 1),
    "large-scale jitter": ([st.ScaleJitter(64), st.FixedSizeCrop(64, fill=128), st.RandomHorizontalFlip()], 1),
    "multiscale": ([st.RandomShortestSize((30, 40, 50), max_size=70), st.FixedSizeCrop(70)], 1),
    "letterbox": ([st.Letterbox((64, 80)), st.RandomHorizontalFlip()], 1),
    "rotation": ([CROP, st.RandomRotation(30, fill=3)], 1),
    "affine": ([CROP, st.RandomAffine(20, (0.1, 0.2), (0.7, 1.4), (-10, 10, -5, 5), "bilinear")], 1),
    "perspective": ([CROP, st.RandomPerspective(0.5, 1.0)], 1),
    "jitter": ([CROP, st.ColorJitter(0.4, 0.4, 0.4, 0.1), st.RandomGrayscale(0.3)], 1),
    "byol": ([CROP, st.GaussianBlur(9, (0.1, 2.0)), st.RandomSolarize(128, 0.5)], 1),
    "rare colours": (
        [CROP, st.RandomPosterize(3), st.RandomEqualize(), st.RandomAutocontrast(), st.RandomInvert(), st.RandomAdjustSharpness(2)],
        1,
    ),
    "erasing": ([CROP, st.RandomErasing(1.0, value=(1, 2, 3))], 1),
    "random apply": ([CROP, st.RandomApply([st.ColorJitter(0.5), st.RandomGrayscale(0.5)], 0.7)], 1),
    "rand augment": ([CROP, st.RandAugment()], 1),
    "trivial augment": ([CROP, st.TrivialAugmentWide()], 1),
    "auto augment": ([CROP, st.AutoAugment("imagenet")], 1),
    "auto augment of cifar": ([st.ResizeTo(32), st.AutoAugment("cifar10"), st.RandomCrop(32, padding=4)], 1),
    "aug mix": ([CROP, st.AugMix()], 1),
    "rotated and resized": ([st.ResizeTo(64), st.RandomRotation((90, 90)), st.ResizeTo((40, 48))], 1),
    "five": (st.five_crop(30, st.Resize(36)), 1),
}
CASES = 40


@pytest.mark.parametrize("name", RECIPES)
def test_pixels_and_boxes_equal_torchvisions(name):
    steps, tolerance = RECIPES[name]
    for seed in range(CASES):
        image = photograph(seed)
        boxes = boxes_in(image, seed)
        view = seed % 5 if isinstance(steps, st.Views) else 0
        found = st.preview(image, steps, seed=seed, epoch=seed // 7, position=seed * 3, view=view, boxes=boxes)
        resized = geometry(found.plan, as_image(image))
        stages = found.plan["stages"]
        expected = as_array(replay({"stages": stages}, resized))
        assert found.image.shape == expected.shape
        if not any(name in str(stages) for name in ("crop", "pad", "resize")):
            # Operations on equal pixels: the resize before them may differ by 1, which equalisation and others enlarge.
            ours = st.transforms.apply_operations(as_array(resized), stages)
            assert (np.abs(ours.astype(int) - expected) > tolerance).mean() <= sampled(stages), (seed, stages)
        # The median is robust against pixels that operations enlarge.
        assert np.median(np.abs(found.image.astype(int) - expected)) <= 1, (seed, found.plan)
        compare_boxes(found, boxes, image.shape[:2], "ssd" in name)


def sampled(stages):
    """Returns the share of pixels that may differ: where the rounding of f32 decides which pixel is the nearest."""
    return 0.002 if "affine" in str(stages) or "perspective" in str(stages) else 0


def as_array(image):
    """Returns torchvision's image as a numpy array `[H, W, 3]`."""
    return np.ascontiguousarray(np.asarray(image).transpose(1, 2, 0))


def compare_boxes(found, boxes, size, centred):
    """Compares boxes with torchvision's, in f64, to 1e-4 pixels."""
    if any(name in str(found.plan["stages"]) for name in ("affine", "perspective")):
        return
    expected = tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=size, dtype=torch.float64)
    expected = geometry(found.plan, expected)
    for stage in found.plan["stages"]:
        name = stage if isinstance(stage, str) else next(iter(stage))
        if name in ("crop", "pad", "resize", "horizontal_flip", "vertical_flip"):
            expected = replay({"stages": [stage]}, expected)
    expected = expected.as_subclass(torch.Tensor).numpy()
    np.testing.assert_allclose(found.boxes, expected[found.kept], atol=1e-4, rtol=2e-7)
    # Those that are gone have no area left, unless an IoU crop has dropped them for their centre.
    gone = np.setdiff1d(np.arange(len(boxes)), found.kept)
    sizes = expected[gone, 2:] - expected[gone, :2]
    assert centred or (sizes.min(1, initial=0) < 1e-9).all()


def test_warped_boxes_equal_torchvisions():
    for seed in range(200):
        image = photograph(seed)
        height, width = image.shape[:2]
        boxes = boxes_in(image, seed)
        affine = st.RandomAffine(40, (0.2, 0.2), (0.6, 1.5), (-15, 15))
        found = st.preview(image, [st.ResizeTo((height, width)), affine], seed=seed, boxes=boxes)
        (stage,) = found.plan["stages"]
        a, b, c, d, e, f = stage["affine"]["matrix"]
        # torchvision's matrix of the same transform, relative to the centre, from input to output.
        forward = np.linalg.inv([[a, b, c], [d, e, f], [0, 0, 1]])
        x, y = boxes[:, [0, 2, 2, 0]] - width / 2, boxes[:, [1, 1, 3, 3]] - height / 2
        points = np.stack([x, y, np.ones_like(x)], 1)
        moved = np.einsum("ij,njk->nik", forward, points)
        left, right = moved[:, 0].min(1) + width / 2, moved[:, 0].max(1) + width / 2
        top, bottom = moved[:, 1].min(1) + height / 2, moved[:, 1].max(1) + height / 2
        expected = np.stack([left, top, right, bottom], 1).clip(0, [width, height, width, height])
        np.testing.assert_allclose(found.boxes, expected[found.kept], atol=1e-4, rtol=2e-7)


def test_the_matrix_is_torchvisions():
    image = np.zeros((50, 70, 3), np.uint8)
    image[10:30, 20:50] = 200
    for angle, translate, scale, shear in [(30, (5, -3), 1.2, (10, 0)), (-15, (0, 0), 0.8, (0, -20)), (170, (1, 2), 1, (3, 4))]:
        steps = [
            st.ResizeTo((50, 70)),
            st.RandomAffine(
                (angle, angle), None, (scale, scale), (shear[0], shear[0], shear[1], shear[1]), interpolation="nearest"
            ),
        ]
        found = st.preview(image, steps).image
        expected = F.affine(as_image(image), angle, [0, 0], scale, list(shear))
        assert (found != expected.numpy().transpose(1, 2, 0)).mean() < 0.002
        del translate
    found = st.preview(image, [st.ResizeTo((50, 70)), st.RandomRotation((33, 33))]).image
    assert (found != F.rotate(as_image(image), 33).numpy().transpose(1, 2, 0)).mean() < 0.002


# Distributions: two samples of a parameter, one drawn by torchvision. Kolmogorov and Smirnov's test at a level of 0.1 %.
DRAWS = 1500


def assert_same_distribution(ours, theirs, what):
    # Equal values of the two samples may differ by the rounding of f32.
    ours, theirs = (np.sort(np.round(np.asarray(values, float), 3)) for values in (ours, theirs))
    assert len(ours) > 50 and len(theirs) > 50, what
    both = np.concatenate([ours, theirs])
    distance = np.abs(
        np.searchsorted(ours, both, "right") / len(ours) - np.searchsorted(theirs, both, "right") / len(theirs)
    ).max()
    limit = 1.95 * math.sqrt((len(ours) + len(theirs)) / (len(ours) * len(theirs)))
    assert distance < limit, f"{what}: distance {distance:.4f}, limit {limit:.4f}; means {ours.mean():.4f}, {theirs.mean():.4f}"


def stages(step, image, name):
    """Returns the parameters of the stages of one name over many draws."""
    height, width = image.shape[:2]
    found = []
    for seed in range(DRAWS):
        for stage in st.preview(image, [st.ResizeTo((height, width)), step], seed=seed).plan["stages"]:
            if isinstance(stage, dict) and name in stage:
                found.append(stage[name])
            elif stage == name:
                found.append({})
    return found


IMAGE = np.zeros((48, 64, 3), np.uint8)


def test_colour_factors_have_torchvisions_distributions():
    torch.manual_seed(1)
    jitter = v2.ColorJitter((0.6, 1.4), (0.5, 2.0), (0.1, 1.9), (-0.2, 0.3))
    drawn = [jitter.make_params([as_image(IMAGE)]) for _ in range(DRAWS)]
    ours = st.ColorJitter((0.6, 1.4), (0.5, 2.0), (0.1, 1.9), (-0.2, 0.3))
    for name in ("brightness", "contrast", "saturation", "hue"):
        factors = [stage["factor"] for stage in stages(ours, IMAGE, name)]
        assert_same_distribution(factors, [params[f"{name}_factor"] for params in drawn], name)
    distort = v2.RandomPhotometricDistort(p=0.4)
    drawn = [distort.make_params([as_image(IMAGE)]) for _ in range(DRAWS)]
    ours = st.RandomPhotometricDistort(p=0.4)
    for name in ("brightness", "contrast", "saturation", "hue"):
        factors = [stage["factor"] for stage in stages(ours, IMAGE, name)]
        theirs = [f for params in drawn if (f := params[f"{name}_factor"]) is not None]
        assert_same_distribution(factors, theirs, name)
        assert abs(len(factors) - len(theirs)) < 5 * math.sqrt(DRAWS * 0.4 * 0.6 * 2)
    sigma = [stage["sigma"][0] for stage in stages(st.GaussianBlur(5, (0.2, 1.5)), IMAGE, "gaussian_blur")]
    blur = v2.GaussianBlur(5, (0.2, 1.5))
    assert_same_distribution(sigma, [blur.make_params([])["sigma"][0] for _ in range(DRAWS)], "sigma")


def test_jitter_applies_its_operations_in_every_order():
    orders = set()
    for seed in range(400):
        plan = st.preview(IMAGE, [st.ResizeTo(48), st.ColorJitter(0.5, 0.5, 0.5, 0.2)], seed=seed).plan
        orders.add(tuple(next(iter(stage)) for stage in plan["stages"]))
    assert len(orders) == 24


def test_rectangles_have_torchvisions_distributions():
    torch.manual_seed(2)
    erase = v2.RandomErasing(p=1.0, value=0)
    theirs = [erase.make_params([as_image(IMAGE)]) for _ in range(DRAWS)]
    theirs = [params for params in theirs if params["v"] is not None]
    ours = [stage["rect"] for stage in stages(st.RandomErasing(1.0), IMAGE, "erase")]
    for mine, name in (("left", "j"), ("top", "i"), ("width", "w"), ("height", "h")):
        assert_same_distribution([rect[mine] for rect in ours], [params[name] for params in theirs], f"erased {mine}")
    geometries = [st.preview(IMAGE, [st.RandomZoomOut(p=1.0), st.ResizeTo(8)], seed=n).plan["geometry"] for n in range(DRAWS)]
    zoom = v2.RandomZoomOut(p=1.0)
    padding = [zoom.make_params([as_image(IMAGE)])["padding"] for _ in range(DRAWS)]
    assert_same_distribution([g["canvas"]["offset"][0] for g in geometries], [p[0] for p in padding], "padding left")
    assert_same_distribution([g["canvas"]["size"][1] for g in geometries], [48 + p[1] + p[3] for p in padding], "canvas height")
    jitter = v2.ScaleJitter((64, 64))
    sizes = [jitter.make_params([as_image(IMAGE)])["size"] for _ in range(DRAWS)]
    ours = [st.preview(IMAGE, [st.ScaleJitter(64), st.FixedSizeCrop(64)], seed=n).plan for n in range(DRAWS)]
    scale = [plan["geometry"]["size"][0] / plan["geometry"]["area"]["width"] for plan in ours]
    assert_same_distribution([64 * s for s in scale], [min(w, 10**6) for _, w in sizes], "jittered width")


def test_iou_crops_have_torchvisions_distributions():
    torch.manual_seed(3)
    boxes = np.array([[5, 5, 25, 30], [40, 10, 60, 40.0]])
    target = tv_tensors.BoundingBoxes(torch.from_numpy(boxes), format="XYXY", canvas_size=IMAGE.shape[:2])
    crop = v2.RandomIoUCrop(sampler_options=[0.1, 0.3, 0.5])
    theirs = [crop.make_params([as_image(IMAGE), target]) for _ in range(600)]
    ours = [
        st.preview(IMAGE, [st.RandomIoUCrop(sampler_options=(0.1, 0.3, 0.5)), st.ResizeTo(8)], seed=n, boxes=boxes)
        for n in range(600)
    ]
    for name in ("left", "top", "width", "height"):
        mine = [found.plan["geometry"]["crop"][name] for found in ours]
        assert_same_distribution(mine, [params[name] for params in theirs], f"crop {name}")
    kept = [len(found.kept) for found in ours]
    assert_same_distribution(kept, [int(params["is_within_crop_area"].sum()) for params in theirs], "boxes kept")


def test_warps_have_torchvisions_distributions():
    torch.manual_seed(4)
    affine = v2.RandomAffine(30, (0.1, 0.2), (0.5, 2.0), None)
    theirs = [affine.make_params([as_image(IMAGE)]) for _ in range(DRAWS)]
    matrices = [stage["matrix"] for stage in stages(st.RandomAffine(30, (0.1, 0.2), (0.5, 2.0)), IMAGE, "affine")]
    # Output to input: rotation by −angle divided by the scale.
    angles = [math.degrees(math.atan2(m[1], m[0])) for m in matrices]
    assert_same_distribution(angles, [params["angle"] for params in theirs], "angle")
    scales = [1 / math.hypot(m[0], m[1]) for m in matrices]
    assert_same_distribution(scales, [params["scale"] for params in theirs], "scale")
    moved = [np.linalg.solve([m[:2], m[3:5]], [-m[2], -m[5]]) for m in matrices]
    assert_same_distribution(np.round([m[0] for m in moved]), [params["translate"][0] for params in theirs], "move right")
    assert_same_distribution(np.round([m[1] for m in moved]), [params["translate"][1] for params in theirs], "move down")
    perspective = v2.RandomPerspective(0.6, p=1.0)
    theirs = [perspective.make_params([as_image(IMAGE)])["coefficients"] for _ in range(DRAWS)]
    ours = [s["coefficients"] for s in stages(st.RandomPerspective(0.6, 1.0), IMAGE, "perspective")]
    for number in range(8):
        assert_same_distribution([c[number] for c in ours], [c[number] for c in theirs], f"coefficient {number}")


POLICIES = {
    "RandAugment": (st.RandAugment(2, 9), v2.RandAugment(2, 9)),
    "TrivialAugmentWide": (st.TrivialAugmentWide(), v2.TrivialAugmentWide()),
    "AutoAugment imagenet": (st.AutoAugment("imagenet"), v2.AutoAugment(v2.AutoAugmentPolicy.IMAGENET)),
    "AutoAugment cifar10": (st.AutoAugment("cifar10"), v2.AutoAugment(v2.AutoAugmentPolicy.CIFAR10)),
    "AutoAugment svhn": (st.AutoAugment("svhn"), v2.AutoAugment(v2.AutoAugmentPolicy.SVHN)),
    "AugMix": (st.AugMix(), v2.AugMix()),
}
#: For each of torchvision's names, our operation.
NAMES = {
    "ShearX": "affine", "ShearY": "affine", "TranslateX": "affine", "TranslateY": "affine", "Rotate": "affine",
    "Brightness": "brightness", "Color": "saturation", "Contrast": "contrast", "Sharpness": "sharpness",
    "Posterize": "posterize", "Solarize": "solarize", "AutoContrast": "autocontrast", "Equalize": "equalize",
    "Invert": "invert",
}  # fmt: skip


@pytest.mark.parametrize("name", POLICIES)
def test_policies_draw_torchvisions_operations(name, monkeypatch):
    ours, policy = POLICIES[name]
    torch.manual_seed(5)
    drawn = []

    def record(self, image, transform_id, magnitude, **_):
        drawn.append((transform_id, magnitude))
        return image

    monkeypatch.setattr(type(policy), "_apply_image_or_video_transform", record)
    for _ in range(DRAWS):
        policy(as_image(IMAGE))
    found = []
    for seed in range(DRAWS):
        for stage in st.preview(IMAGE, [st.ResizeTo((48, 64)), ours], seed=seed).plan["stages"]:
            chains = stage["aug_mix"]["chains"] if isinstance(stage, dict) and "aug_mix" in stage else [[stage]]
            found += [operation for chain in chains for operation in chain]
    counts = {mine: sum(NAMES.get(theirs) == mine for theirs, _ in drawn) for mine in set(NAMES.values())}
    for mine, expected in counts.items():
        count = sum((s if isinstance(s, str) else next(iter(s))) == mine for s in found)
        assert abs(count - expected) < 5 * math.sqrt(2 * expected + 2), f"{mine}: {count}, torchvision {expected}"
    for transform, mine, key, value in (
        ("Brightness", "brightness", "factor", lambda m: 1 + m),
        ("Posterize", "posterize", "bits", int),
        ("Solarize", "solarize", "threshold", lambda m: 255 * m),
    ):
        space = type(policy)._AUGMENTATION_SPACE[transform][0](31 if "Wide" in name or "Rand" in name else 10, 48, 64)
        possible = [value(sign * float(m)) for m in space for sign in (1, -1)]
        parameters = [s[mine][key] for s in found if isinstance(s, dict) and mine in s]
        assert all(min(abs(p - m) for m in possible) < 1e-4 for p in parameters), transform
        magnitudes = [value(m) for drawn_name, m in drawn if drawn_name == transform]
        if len(magnitudes) > 60:
            assert_same_distribution(parameters, magnitudes, transform)


def test_steps_check_their_arguments():
    for wrong, message in [
        (lambda: st.RandomRotation((5, -5)), "smaller number first"),
        (lambda: st.ColorJitter(-1), "at least 0"),
        (lambda: st.RandomErasing(value="noise"), "'random'"),
        (lambda: st.RandAugment(magnitude=31), "expected 0 to 30"),
        (lambda: st.Pad((1, 2, 3)), "one, two or four"),
        (lambda: st.Pad(1, fill=256), "expected 0 to 255"),
        (lambda: st.Views({}), "at least one view"),
        (lambda: st.preview(IMAGE, [st.ScaleJitter(8)]), "depends on the image"),
        (lambda: st.preview(IMAGE, [st.RandomCrop(80)]), "larger than the image"),
        (lambda: st.preview(IMAGE, [st.ResizeTo(8), st.Pad(9, padding_mode="reflect")]), "reflects more"),
        (lambda: st.preview(IMAGE, [st.ResizeTo(8), st.GaussianBlur(4)]), "odd"),
        (lambda: st.preview(IMAGE, [st.ResizeTo(8), st.GaussianBlur(31)]), "too large"),
    ]:
        with pytest.raises(st.OptionError, match=message):
            wrong()


