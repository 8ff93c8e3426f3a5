"""Checks what recipes.py measures: values of the last batch, and without random steps that both sides deliver the same."""

import sys
from typing import Any

import numpy as np
from recipes_data import CLASSES, CONTENTS, IGNORED, SMALLEST, TAGS, TOKENS, batch_of

#: Of images, the mean difference in units of 255: JPEG decoders and resampling differ by rounding, and resized ones more.
IMAGE = {"crop": 1.0, "resize": 1.5, "detr": 1.5}
#: Of label maps and depths, the share of equal pixels: where they are resized, rounding chooses another pixel of two that are
#: equally near.
SHARE = {"crop": 1.0, "resize": 0.995}
#: Of boxes, pixels of a longest side of 1,333.
BOXES = 0.1


def check_last(recipe: str, batch: dict[str, Any]) -> None:
    """Raises if a batch of numpy arrays has values that the recipe cannot have."""
    if isinstance(batch.get("image"), np.ndarray):
        assert batch["image"].dtype == np.uint8 and batch["image"].std() > 10
    if recipe.startswith("segmentation"):
        mask = batch["mask"]
        found = np.unique(mask)
        assert mask.dtype == np.uint8 and found[-1] == IGNORED and len(found) > 5 and (found[:-1] < CLASSES).all(), found
    elif recipe.startswith("depth"):
        depth = batch["depth"]
        known = depth > 0
        assert depth.dtype == np.float32 and known.mean() > 0.8 and depth[known].min() > 0.3 and depth.max() < 11
    elif recipe == "detr":
        shown, rows = batch["shown"], batch["boxes"]
        assert shown.dtype == bool and len(rows) == batch_of(recipe) and sum(map(len, rows)) > 0
        for mask, boxes in zip(shown, rows):
            ends = np.asarray(boxes[:, :2] + boxes[:, 2:] / 2) * mask.shape[::-1]
            assert len(boxes) == 0 or (ends <= np.array([mask.any(0).sum(), mask.any(1).sum()]) + BOXES).all()
    elif recipe == "multilabel":
        tags = batch["tags"]
        assert tags.dtype == np.float32 and tags.shape == (batch_of(recipe), TAGS) and set(np.unique(tags)) == {0, 1}
        assert tags.any(1).all()
    elif recipe == "captions":
        assert batch["tokens"].dtype == np.int64 and batch["tokens"].shape == (batch_of(recipe), TOKENS)
        assert batch["tokens"].any(1).all()


def differences(recipe: str, records: list[dict], dataset: str) -> dict[str, Any]:
    """Compares a batch of both sides without random steps, of the first photographs that are not too small.

    Raises if they differ by more than is allowed here, and returns by how much they differ.
    """
    import recipes_ours
    import recipes_torchvision

    size = batch_of(recipe)
    numbers = [number for number, record in enumerate(records) if min(record["size"]) >= SMALLEST][:size]
    if len(numbers) < size:
        sys.exit(f"a batch needs {size} photographs of at least {SMALLEST} pixels a side, found {len(numbers)}")
    found: dict[str, Any] = {"side": "check", "recipe": recipe}
    for still in ["detr"] if recipe == "detr" else ["crop", "resize"]:
        ours = recipes_ours.rows(recipe, dataset, numbers, still)
        theirs = recipes_torchvision.rows(recipe, records, numbers, still)
        height, width = theirs["image"].shape[2:]
        pixels = ours["image"][:, :height, :width]
        image = np.abs(pixels.astype(int) - theirs["image"].numpy().transpose(0, 2, 3, 1)).mean()
        assert image <= IMAGE[still], (recipe, still, image)
        found[f"{still}, image"] = round(float(image), 3)
        content = CONTENTS[recipe]
        if content in ("mask", "depth"):
            one, other = ours[content], theirs[content].numpy()
            share = float((one == other).mean())
            assert one.dtype == other.dtype and share >= SHARE[still], (recipe, still, share)
            found[f"{still}, {content}"] = round(share, 5)
        elif content == "tags":
            for side in (ours["tags"], theirs["tags"].numpy()):
                assert [list(row.nonzero()[0]) for row in side] == [records[number]["tags"] for number in numbers]
        elif content == "captions":
            for side in (ours, theirs):
                for caption, tokens, number in zip(side["caption"], side["tokens"], numbers, strict=True):
                    assert caption.decode() in records[number]["captions"]
                    assert bytes(tokens[tokens > 0].tolist()) == caption[:TOKENS]
        elif recipe == "detr":
            assert (ours["shown"][:, :height, :width] == theirs["shown"].numpy()).all() and not ours["shown"][:, height:].any()
            sizes = [ours["image"].shape[2:0:-1] * 2, (width, height) * 2]
            boxes = [np.concatenate(side["boxes"]) * size for side, size in zip((ours, theirs), sizes)]
            found["boxes, pixels"] = round(float(np.abs(boxes[0] - boxes[1]).max()), 4)
            assert found["boxes, pixels"] <= BOXES, found
    return found
