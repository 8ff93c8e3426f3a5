#!/usr/bin/env python3
"""Compares the pixels that the device normalised (`device values DIR`) with PyTorch on the same GPU, for every type and layout.

Reads the JSON lines of `device values` on stdin; exit status 1 if the distance of a value from the formula in
double precision exceeds the rounding of its type plus one f32 cancellation.
"""

import json
import pathlib
import sys

import numpy as np
import torch

folder = pathlib.Path(sys.argv[1])
# Without a GPU (under a stand-in driver) the comparison itself still works.
gpu = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
bad = 0
for line in sys.stdin:
    case = json.loads(line)
    if case.get("check") != "values":
        continue
    dtype = getattr(torch, case["dtype"])
    n, h, w, _ = case["shape"]
    pixels = torch.from_numpy(np.fromfile(folder / f"{case['case']}.in", np.uint8)).to(gpu).view(n, h, w, 3)
    raw = torch.from_numpy(np.fromfile(folder / f"{case['case']}.out", np.uint8)).to(gpu).view(dtype)
    ours = raw.view(n, h, w, 3) if case["layout"] == "NHWC" else raw.view(n, 3, h, w).permute(0, 2, 3, 1)
    mean, std = (torch.tensor(case[k], device=gpu, dtype=torch.float64) for k in ("mean", "std"))
    exact = (pixels.double() / 255 - mean) / std
    # The usual PyTorch code: single precision, then a conversion to the type.
    usual = ((pixels.float() / 255 - mean.float()) / std.float()).to(dtype)
    half_step = {torch.float32: 1.2e-7, torch.float16: 4.9e-4, torch.bfloat16: 3.95e-3}[dtype]
    worst = ((ours.double() - exact).abs() - exact.abs() * half_step).max().item()
    good = worst <= 4e-7 and case["ids_right"]
    bad += not good
    print(json.dumps({
        "check": "torch", "case": case["case"], "shape": case["shape"], "dtype": case["dtype"], "layout": case["layout"],
        "good": good, "beyond_rounding": worst, "equal_to_torch": (ours == usual).double().mean().item(),
        "largest_difference_to_torch": (ours.double() - usual.double()).abs().max().item(),
    }))
print(json.dumps({"check": "torch", "bad": bad, "torch": torch.__version__, "on": torch.cuda.get_device_name(0) if gpu.type == "cuda" else "CPU"}))
sys.exit(bad > 0)
