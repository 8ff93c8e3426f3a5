"""Replays what a preview drew with torchvision's functions: on pixels, label maps, boxes and points."""

import math

import numpy as np
import torch
from torchvision import tv_tensors
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.v2.functional import _geometry as internal

# The images of the tests are small: with more threads they take several times as long.
torch.set_num_threads(1)


def replay(plan, image):
    """Returns an image `[3, H, W]`, boxes or points after the geometry and the stages of a plan."""
    for stage in plan["stages"]:
        (name, values) = (stage, {}) if isinstance(stage, str) else next(iter(stage.items()))
        image = STAGES[name](image, **values)
    return image


def geometry(plan, image):
    """Returns the image after the geometry alone: padding, crop, resize, crop and flips."""
    g = plan["geometry"]
    width, height = g["stored"]
    (left, top), (canvas_width, canvas_height) = g["canvas"]["offset"], g["canvas"]["size"]
    padding = [left, top, canvas_width - left - width, canvas_height - top - height]
    if any(padding):
        fill = [float(v) for v in g["canvas"]["fill"]]
        image = F.pad(image, padding, fill=fill if isinstance(image, tv_tensors.Image) else 0)
    crop, area = g["crop"], g["area"]
    image = F.crop(image, crop["top"], crop["left"], crop["height"], crop["width"])
    # The crop after the resize: the area is a part of the first crop.
    scale_x, scale_y = g["size"][0] / area["width"], g["size"][1] / area["height"]
    resized = [round(crop["height"] * scale_y), round(crop["width"] * scale_x)]
    image = F.resize(image, resized, g["filter"], antialias=True)
    inner_left, inner_top = (area["left"] - crop["left"]) * scale_x, (area["top"] - crop["top"]) * scale_y
    assert abs(inner_left - round(inner_left)) < 1e-6 and abs(inner_top - round(inner_top)) < 1e-6
    image = F.crop(image, round(inner_top), round(inner_left), g["size"][1], g["size"][0])
    assert not g["orientation"]["transpose"]
    if g["orientation"]["flip_x"]:
        image = _horizontal_flip(image)
    if g["orientation"]["flip_y"]:
        image = _vertical_flip(image)
    return image


def _warp(grid, image, interpolation, fill):
    mode = "nearest" if isinstance(image, tv_tensors.Mask) else interpolation
    # Without `fill`, torchvision blends the edge with black; with it, it darkens the edge twice.
    fill = [float(v) for v in fill] if any(fill) and isinstance(image, tv_tensors.Image) else None
    pixels = image.as_subclass(torch.Tensor)
    return tv_tensors.wrap(internal._apply_grid_transform(pixels, grid, mode, fill=fill), like=image)


def _parameters(matrix):
    """Returns the parameters of torchvision's affine transform with a matrix from pixels of the result to those of the image, about the
    centre."""
    (a, b, x), (c, d, y), _ = np.linalg.inv(np.append(matrix, [0, 0, 1]).reshape(3, 3))
    scale, shortened, turned = math.sqrt(a * d - b * c), math.hypot(a, c), math.atan2(c, a)
    shear_y = math.acos(min(scale / shortened, 1))
    angle = turned + shear_y
    u, v = b / scale + math.sin(angle), d / scale - math.cos(angle)
    shear_x = math.atan(-math.cos(shear_y) * (u * math.cos(turned) + v * math.sin(turned)))
    return {
        "angle": math.degrees(angle),
        "translate": [x, y],
        "scale": scale,
        "shear": [math.degrees(shear_x), math.degrees(shear_y)],
    }


def _affine(image, matrix, interpolation, fill):
    if isinstance(image, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
        return F.affine(image, **_parameters(matrix))
    height, width = image.shape[-2:]
    theta = torch.tensor(matrix, dtype=torch.float32).reshape(1, 2, 3)
    return _warp(internal._affine_grid(theta, w=width, h=height, ow=width, oh=height), image, interpolation, fill)


def _perspective(image, coefficients, interpolation, fill):
    if isinstance(image, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
        return F.perspective(image, None, None, coefficients=coefficients)
    height, width = image.shape[-2:]
    grid = internal._perspective_grid(coefficients, ow=width, oh=height, dtype=torch.float32, device=image.device)
    return _warp(grid, image, interpolation, fill)


def _erase(image, rect, value):
    value = torch.tensor(value, dtype=torch.uint8)[:, None, None]
    return F.erase(image, rect["top"], rect["left"], rect["height"], rect["width"], value)


def _pad(image, padding, fill, mode):
    if isinstance(image, (tv_tensors.BoundingBoxes, tv_tensors.KeyPoints)):
        return F.pad(image, padding)
    fill = [float(v) for v in fill] if mode == "constant" and isinstance(image, tv_tensors.Image) else 0
    return F.pad(image, padding, fill=fill, padding_mode=mode)


def _horizontal_flip(image):
    flipped = F.horizontal_flip(image)
    # torchvision takes points for the indices of pixels here, and in no other transform.
    return F.crop(flipped, 0, -1, *flipped.canvas_size) if isinstance(image, tv_tensors.KeyPoints) else flipped


def _vertical_flip(image):
    flipped = F.vertical_flip(image)
    return F.crop(flipped, -1, 0, *flipped.canvas_size) if isinstance(image, tv_tensors.KeyPoints) else flipped


def _mix(original, image, weights, chains):
    mixed = torch.tensor(image, dtype=torch.float32) * original
    for weight, chain in zip(weights, chains):
        mixed += torch.tensor(weight, dtype=torch.float32) * replay({"stages": chain}, original)
    return tv_tensors.wrap(mixed.as_subclass(torch.Tensor).to(torch.uint8), like=original)


#: For each stage, torchvision's function of the same parameters.
STAGES = {
    "crop": lambda x, left, top, width, height: F.crop(x, top, left, height, width),
    "pad": _pad,
    "resize": lambda x, width, height, filter: F.resize(x, [height, width], filter, antialias=True),
    "horizontal_flip": _horizontal_flip,
    "vertical_flip": _vertical_flip,
    "affine": _affine,
    "perspective": _perspective,
    "brightness": lambda x, factor: F.adjust_brightness(x, factor),
    "contrast": lambda x, factor: F.adjust_contrast(x, factor),
    "saturation": lambda x, factor: F.adjust_saturation(x, factor),
    "hue": lambda x, factor: F.adjust_hue(x, factor),
    "sharpness": lambda x, factor: F.adjust_sharpness(x, factor),
    "grayscale": lambda x: F.rgb_to_grayscale(x, num_output_channels=3),
    "channel_permutation": lambda x, order: F.permute_channels(x, order),
    "invert": F.invert,
    "autocontrast": F.autocontrast,
    "equalize": F.equalize,
    "posterize": lambda x, bits: F.posterize(x, bits),
    "solarize": lambda x, threshold: F.solarize(x, threshold),
    "gaussian_blur": lambda x, kernel, sigma: F.gaussian_blur(x, kernel, sigma),
    "erase": _erase,
    "aug_mix": _mix,
}


def as_image(array):
    """Returns a numpy image `[H, W, 3]` as torchvision's."""
    return tv_tensors.Image(torch.from_numpy(np.ascontiguousarray(array.transpose(2, 0, 1))))
