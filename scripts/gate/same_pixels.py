"""Asks two builds of the example `pixels` of crates/decode the same, and compares their answers byte by byte.

Usage: same_pixels.py PROGRAM "OTHER PROGRAM" IMAGE… The other one may be a command of several words, such as an emulator and its
program. A request that one refuses the other must refuse too.
"""

import json
import random
import shlex
import struct
import subprocess
import sys

#: Steps that draw, mix, warp and count: each loop that a processor may vectorise is in one of them.
CHAINS = [
    [{"random_resized_crop": {"size": [96, 112]}}, {"horizontal_flip": {"p": 1.0}}],
    [{"resize": {"shorter": 80, "interpolation": "bicubic"}}, {"center_crop": {"size": [64, 64]}}],
    [{"resize_to": {"size": [61, 83], "interpolation": "lanczos"}}, {"random_equalize": {"p": 1.0}}],
    [{"color_jitter": {"brightness": [0.4, 1.6], "contrast": [0.4, 1.6], "saturation": [0.4, 1.6], "hue": [-0.3, 0.3]}}],
    [{"gaussian_blur": {"kernel_size": [7, 5], "sigma": [0.5, 2.0]}}, {"random_adjust_sharpness": {"sharpness_factor": 1.7, "p": 1.0}}],
    [{"random_affine": {"degrees": [-40, 40], "shear": [-9, 9, -9, 9], "interpolation": "bilinear"}}, {"random_autocontrast": {"p": 1.0}}],
    [{"random_perspective": {"distortion_scale": 0.5, "p": 1.0}}, {"random_posterize": {"bits": 3, "p": 1.0}}],
    [{"random_grayscale": {"p": 1.0}}, {"random_rotation": {"degrees": [-90, 90], "interpolation": "nearest"}}],
]
VALUES = [(dtype, layout) for dtype in ["f32", "f16", "bf16"] for layout in ["nchw", "nhwc"]]


class Program:
    def __init__(self, command: str):
        self.command = command
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(shlex.split(command), stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)

    def ask(self, request: str) -> tuple[int, int, bytes]:
        self.process.stdin.write(f"{request}\n".encode())
        self.process.stdin.flush()
        head = self.process.stdout.read(12)
        if len(head) < 12:
            sys.exit(f"same_pixels: {self.command} ended at the request {request}")
        width, height, count = struct.unpack("<3I", head)
        return width, height, self.process.stdout.read(count)


def requests(path: str, draw: random.Random) -> list[str]:
    asked = [f"decode {path}", f"upright {path}", f"resize {path} 224 224", f"resize {path} 37 301"]
    # 4:2:0 and 4:4:4: what `pack --resize-shorter` writes.
    asked += [f"encode {path} 85", f"encode {path} 95"]
    asked += [f"values {dtype} {layout} {path}" for dtype, layout in draw.sample(VALUES, 2)]
    for chain in draw.sample(CHAINS, 4):
        # All images of a pipeline have one size.
        sized = any("resize" in name for step in chain for name in step)
        steps = chain if sized else [{"resize_to": {"size": [90, 117]}}, *chain]
        draws = ",".join(repr(draw.random()) for _ in range(24))
        asked.append(f"apply image {json.dumps(steps, separators=(',', ':'))} {draw.randrange(1, 9)} {draws} {path}")
    return asked


def main() -> int:
    ours, other = (Program(command) for command in sys.argv[1:3])
    draw = random.Random(7)
    answers = refused = different = 0
    for path in sys.argv[3:]:
        for request in requests(path, draw):
            one, two = ours.ask(request), other.ask(request)
            answers += 1
            refused += one == (0, 0, b"")
            if one != two:
                different += 1
                print(f"different: {request}: {one[:2]} and {two[:2]}")
    print(f"{answers} answers of {len(sys.argv) - 3} images, {refused} of them refusals: {different} differ")
    return 1 if different or not answers or refused > answers / 2 else 0


if __name__ == "__main__":
    sys.exit(main())
