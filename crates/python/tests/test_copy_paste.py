"""Copy-paste: pixels, masks, boxes and labels equal torchvision's reference (`_copy_paste` of `references/detection`, written here
without its blending), with the draws of the text of `order-spec.md`."""

import numpy as np
import pytest
from PIL import Image
from test_draws import Stream, key

import shardtool as st

N, SIDE, BATCH, SEED = 14, (40, 52), 4, 5
STEPS = [st.HorizontalFlip(), st.ScaleJitter(SIDE, (0.6, 1.8)), st.FixedSizeCrop(SIDE, fill=90)]
NUMBER, POINTS = "image/object/number", "image/object/keypoints"
OBJECTS = st.Objects(masks=True, properties=["image/object/class/label", NUMBER], keypoints=POINTS, flip_index=range(2))


@pytest.fixture(scope="module")
def split(tmp_path_factory):
    """Images with up to eight objects, each a rectangle or a triangle, with two keypoints; some images have none."""
    destination = tmp_path_factory.mktemp("pasted") / "dataset"
    random = np.random.default_rng(8)
    with st.Writer(destination, "train", classes=["a", "b", "c"]) as writer:
        for number in range(N):
            height, width = 44 + number, 70 - number
            objects = {name: [] for name in ("bbox", "category", "number", "segmentation", "keypoints")}
            for n in range(number * 5 % 9):
                left, top = (int(v) for v in random.integers(0, 30, 2))
                w, h = int(random.integers(4, 24)), int(random.integers(4, 14))
                right, bottom = left + w, top + h
                outline = [left, top, right, top, right, bottom, left, bottom][: 6 if n % 2 else 8]
                objects["bbox"].append([left, top, w, h])
                objects["category"].append(int(random.integers(0, 9)))
                objects["number"].append(100 * number + n)
                objects["segmentation"].append([outline])
                objects["keypoints"].append([left + 1.0, top + 1.0, 2.0, right - 1.0, top + 2.0, float(random.integers(0, 3))])
            pixels = random.integers(0, 256, (height, width, 3), np.uint8)
            sample = {"key": str(number), "image": Image.fromarray(pixels), "label": number % 3}
            if not objects["bbox"]:
                objects.update(bbox=np.zeros((0, 4)), keypoints=np.zeros((0, 6)))
            writer.write({**sample, "objects": objects})
    return st.Dataset(destination)["train"]


def test_crowds_and_objects_without_pixels_stay_where_they_are(tmp_path):
    """An object that loses no pixel is kept, also without any; a crowd is not pasted."""
    with st.Writer(tmp_path / "set", "train", labels=False) as writer:
        for number in range(8):
            whole = [[0, 0, 52, 0, 52, 40, 0, 40]]
            thin = [[20.1, 20.1, 20.2, 20.1, 20.2, 20.2]]
            small = [[4, 4, 10, 4, 10, 10, 4, 10]]
            objects = {
                "bbox": [[0, 0, 52, 40], [20, 20, 1, 1], [4, 4, 6, 6]], "category": [1, 2, 3], "iscrowd": [1, 0, 0],
                "segmentation": [whole, thin, small], "number": [3 * number, 3 * number + 1, 3 * number + 2],
            }  # fmt: skip
            pixels = np.full((40, 52, 3), 20 * number, np.uint8)
            writer.write({"key": f"{number}", "image": pixels, "objects": objects})
    split = st.Dataset(tmp_path / "set").split("train")
    names = ["image/object/class/label", NUMBER, "image/object/iscrowd"]
    objects = st.Objects(masks=True, properties=names, min_size=0, min_area=0)
    pasted = 0
    for batch in st.Loader(split, 4, [st.Image([st.ResizeTo((40, 52))]), objects], batch_transform=st.CopyPaste(p=1)):
        for row in range(4):
            numbers, crowds = batch[NUMBER].row(row).tolist(), batch["image/object/iscrowd"].row(row).tolist()
            own = int(batch["image"][row, 39, 51, 0]) // 20
            assert {3 * own, 3 * own + 1} <= set(numbers), "the crowd, and the thin object, lose nothing that they need"
            assert crowds.count(1) == 1, "no crowd is pasted, so that the image stays"
            pasted += any(number // 3 != own for number in numbers)
    assert pasted > 3


def batches(split, transform, objects=OBJECTS, remainder="mask", **pixels):
    """Returns the batches of an epoch."""
    fields = [st.Image(STEPS, **pixels), objects]
    options = {"order": st.Shuffled(SEED), "batch_transform": transform, "remainder": remainder, "workers": 2}
    with st.Loader(split, BATCH, fields, **options) as loader:
        return [{name: value for name, value in batch.items()} for batch in loader]


def draws(first, valid, counts, p=1.0, transforms=1, which=0):
    """Returns for each row the source and the numbers of the objects that are drawn, or None, by the text of `order-spec.md`."""
    stream = Stream(key("mix", SEED, 0, first))
    if stream.below(transforms) != which:
        return None
    drawn = []
    for row in range(len(valid)):
        chosen, own = stream.unit() < p, Stream(stream.word())
        others = [(row + step) % len(valid) for step in range(1, len(valid))]
        others = [other for other in others if valid[other]]
        if not (chosen and valid[row] and others):
            drawn.append(None)
            continue
        count = counts[others[0]]
        drawn.append((others[0], sorted({own.below(count) for _ in range(count)})))
    return drawn


def copy_paste(image, target, paste_image, paste_target, selection):
    """torchvision's `_copy_paste`: `random_selection` is given, images and masks have one size, without blending."""
    paste_masks = paste_target["masks"][selection]
    # An object that the crop leaves without a pixel is not pasted.
    seen = paste_masks.any((1, 2))
    selection, paste_masks = np.asarray(selection, int)[seen], paste_masks[seen]
    if not len(selection):
        return image, target
    paste_alpha_mask = paste_masks.sum(0) > 0
    image = np.where(paste_alpha_mask[..., None], paste_image, image)
    masks = target["masks"] * ~paste_alpha_mask
    non_all_zero_masks = masks.sum((-1, -2)) > 0
    # Boxes are recomputed for objects that lost pixels: around all pixels, the last ones included.
    lost = (masks != target["masks"]).any((1, 2))
    boxes = target["boxes"].copy()
    for number in np.flatnonzero(lost & non_all_zero_masks):
        ys, xs = np.nonzero(masks[number])
        boxes[number] = xs.min(), ys.min(), xs.max() + 1, ys.max() + 1
    large = ~lost | ((boxes[:, 2:] - boxes[:, :2]).min(1, initial=99) >= target["min_size"])
    large &= ~lost | ((boxes[:, 2:] - boxes[:, :2]).prod(1) >= target["min_area"])
    kept = non_all_zero_masks & large
    points = target["keypoints"].copy()
    for x_y_v in points.reshape(-1, 3):
        if x_y_v[2] > 1 and paste_alpha_mask[min(int(x_y_v[1]), SIDE[0] - 1), min(int(x_y_v[0]), SIDE[1] - 1)]:
            x_y_v[2] = 1
    out = {**target, "masks": np.concatenate([masks[kept], paste_masks]), "boxes": np.concatenate([boxes[kept], paste_target["boxes"][selection]])}
    out["keypoints"] = np.concatenate([points[kept], paste_target["keypoints"][selection]])
    for name in ("labels", NUMBER):
        out[name] = np.concatenate([target[name][kept], paste_target[name][selection]])
    return image, out


def targets(batch, min_size=1.0, min_area=1.0):
    """Returns the objects of each row."""
    found = []
    for row in range(BATCH):
        target = {name: np.asarray(batch[name].row(row)) for name in ("masks", "boxes", "labels", NUMBER)}
        points = np.asarray(batch["keypoints"].row(row)).reshape(len(target["boxes"]), 2, 3)
        found.append({**target, "keypoints": points, "min_size": min_size, "min_area": min_area})
    return found


@pytest.mark.parametrize("options", [{}, {"mode": "L"}, {"dtype": "uint16"}, {"dtype": "float32"}, {"layout": "NHWC"}])
@pytest.mark.parametrize("p", [1.0, 0.5])
def test_everything_equals_the_reference(split, options, p):
    plain, pasted = batches(split, None, **options), batches(split, st.CopyPaste(p), **options)
    planes = options.get("dtype") == "float32"
    changed = vanished = hidden = cut = 0
    for step, (before, after) in enumerate(zip(plain, pasted, strict=True)):
        images, found = before["image"], after["image"]
        if planes:
            images, found = images.transpose(0, 2, 3, 1), found.transpose(0, 2, 3, 1)
        old, new = targets(before), targets(after)
        drawn = draws(step * BATCH, before["valid"], [len(target["boxes"]) for target in old], p)
        np.testing.assert_array_equal(after["label"], before["label"])
        for row in range(BATCH):
            image, target = images[row], old[row]
            if drawn[row] is not None:
                source, selection = drawn[row]
                image, target = copy_paste(image, target, images[source], old[source], selection)
                changed += not np.array_equal(image, images[row])
                pasted_here = len(target["boxes"]) - np.isin(target[NUMBER], old[row][NUMBER]).sum()
                vanished += len(old[row]["boxes"]) - (len(target["boxes"]) - pasted_here)
                hidden += (old[row]["keypoints"][..., 2] == 2).sum() > (target["keypoints"][: -pasted_here or None][..., 2] == 2).sum()
                cut += len(target["boxes"]) > pasted_here and pasted_here > 0
            np.testing.assert_array_equal(found[row], image)
            for name in ("masks", "labels", NUMBER, "boxes", "keypoints"):
                np.testing.assert_array_equal(new[row][name], target[name], err_msg=f"{name} of row {row} in step {step}")
    assert changed > (8 if p == 1 else 2) and cut > 2
    assert p < 1 or (vanished > 0 and hidden > 0)


def test_objects_that_become_too_small_are_dropped(split):
    objects = st.Objects(masks=True, properties=OBJECTS.properties, keypoints=POINTS, flip_index=range(2), min_size=4, min_area=40)
    plain, pasted = batches(split, None, objects), batches(split, st.CopyPaste(), objects)
    dropped = 0
    for step, (before, after) in enumerate(zip(plain, pasted, strict=True)):
        old, new = targets(before, 4, 40), targets(after)
        drawn = draws(step * BATCH, before["valid"], [len(target["boxes"]) for target in old])
        for row in np.flatnonzero(before["valid"]):
            if drawn[row] is None:
                continue
            source, selection = drawn[row]
            _, target = copy_paste(before["image"][row], old[row], before["image"][source], old[source], selection)
            loose = copy_paste(before["image"][row], {**old[row], "min_size": 0, "min_area": 0}, before["image"][source], old[source], selection)
            dropped += len(loose[1]["boxes"]) - len(target["boxes"])
            np.testing.assert_array_equal(new[row][NUMBER], target[NUMBER])
            np.testing.assert_array_equal(new[row]["masks"], target["masks"])
    assert dropped > 0


def test_one_of_several_transforms_is_drawn(split):
    """A batch is pasted or becomes mosaics, and a resumed run gets the same."""
    plain = batches(split, None)
    both = [st.Mosaic(), st.CopyPaste()]
    fields, options = [st.Image(STEPS), OBJECTS], {"order": st.Shuffled(SEED), "batch_transform": both, "remainder": "mask"}
    with st.Loader(split, BATCH, fields, **options) as loader:
        mixed, states = [], []
        for batch in loader:
            mixed.append({name: value for name, value in batch.items()})
            states.append(loader.state_dict())
    pasted = 0
    for step, (before, after) in enumerate(zip(plain, mixed, strict=True)):
        old = targets(before)
        drawn = draws(step * BATCH, before["valid"], [len(target["boxes"]) for target in old], transforms=2, which=1)
        if drawn is not None:
            pasted += 1
            source, selection = next(draw for draw in drawn if draw)
            row = drawn.index((source, selection))
            image, _ = copy_paste(before["image"][row], old[row], before["image"][source], old[source], selection)
            np.testing.assert_array_equal(after["image"][row], image)
    assert 0 < pasted < len(mixed)
    for step in range(1, len(mixed)):
        with st.Loader(split, BATCH, fields, **options) as loader:
            loader.load_state_dict(states[step - 1])
            batch = next(iter(loader))
            np.testing.assert_array_equal(batch["image"], mixed[step]["image"])
            np.testing.assert_array_equal(batch["masks"].values, mixed[step]["masks"].values)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "`CopyPaste` pastes objects by their masks: add `Objects` with `masks`"),
        ([st.Objects()], "`CopyPaste` pastes objects by their masks: give `masks` to `Objects`"),
    ],
)
def test_what_cannot_be_pasted_is_refused(split, fields, message):
    with pytest.raises(st.ShardtoolError) as error:
        st.Loader(split, BATCH, [st.Image(STEPS), *fields], batch_transform=st.CopyPaste())
    assert message in str(error.value)
    with pytest.raises(st.ShardtoolError, match="`p`"):
        st.CopyPaste(1.5)
