#!/usr/bin/env python3
"""Compares the rates of training recipes with those of torchvision v2 in a DataLoader, and of DALI, alternately, in one run.

    python benches/python/recipes.py PHOTOS [--rounds N] [--workers N] [--copies N] [--recipe NAME]
        [--dali INTERPRETER] [--simd LEVEL]

PHOTOS is a folder of class folders of JPEGs. Run it with an interpreter that has torch, torchvision and the wheel. Recipes:

    crop               RandomResizedCrop(224), flip; also with scaled_decode (large.py)
    randaugment        RandomResizedCrop(224), flip, RandAugment, RandomErasing
    dino               two crops of 224 and six of 96 pixels, each with flip, jitter, greyscale and blur
    detection          photometric distortion behind ScaleJitter(512) and FixedSizeCrop(512), flip, boxes
    instances          ScaleJitter(512) and FixedSizeCrop(512), flip, boxes and masks drawn from polygons of 24 points; the peer
                       draws them with pycocotools, as torchvision's references do, which the interpreter needs
    detr               flip, short side of 480 to 800 and longest of 1,333 pixels, padding with its mask, boxes as centre, width and
                       height in fractions: detr_train.py; batches of 8, which the peers pad to their largest image
    segmentation       ScaleJitter(512, 0.5 to 2), FixedSizeCrop(512), flip, rotation, jitter, label map: segmentation_train.py
    segmentation_crop  the same without rotation and jitter
    depth              RandomResizedCrop(416 × 544), flip, rotation, jitter, depths in metres from PNG of 16 bits: depth_train.py
    depth_crop         the same without rotation and jitter
    multilabel         RandomResizedCrop(448), flip, rows of 0 and 1 for 80 classes: multilabel_train.py without MixUp
    captions           RandomResizedCrop(224), bicubic, one caption of five, whose bytes are the tokens: clip_train.py

Label maps, depths, boxes, tags and captions depend on the file's name only (recipes_data.py); the files lie in a temporary folder.
Both sides (recipes_ours.py, recipes_torchvision.py) decode the same files with the same number of workers, each in another process;
the first batch is not measured. torchvision decodes with `torchvision.io.decode_image`, once for all views, and transforms u8
tensors. Every batch's arrays are checked for their shapes, the last batch's for their values, and each epoch for its number of
samples. Batches that workers have ready when the first one arrives count, which favours the DataLoader where they are few: take at
least some hundred photographs. From `detr` on, a batch of both sides is compared without random steps before the first round
(recipes_check.py has the tolerances). Prints one JSON object per check, side and round, then the median of the ratios. `--dali`
names an interpreter that has DALI (scripts/python-env dali): its pipelines (recipes_dali.py) run on the CPU as well, with as many
threads, and without boxes in `detection`. Where DALI has no operator, its object has the `reason` in place of a rate. `--simd`
runs our side also with fewer vector instructions, as SHARDTOOL_SIMD allows (avx2, portable): ratios to the peer are printed for them too.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from recipes_data import CONTENTS, batch_of, pack, records_of

#: Those that are compared by default.
RECIPES = [recipe for recipe in CONTENTS if recipe != "crop"]
#: Vector instructions of our side.
SIMD = ["avx2", "sse4.1", "portable", "neon"]
#: Those whose values are compared.
COMPARED = RECIPES[RECIPES.index("detr") :]


def side(arguments: argparse.Namespace) -> None:
    """Prints what one side does."""
    records, recipe = json.loads(pathlib.Path(arguments.list).read_text()), arguments.recipe[0]
    if arguments.side == "check":
        from recipes_check import differences

        print(json.dumps(differences(recipe, records, arguments.dataset)))
        return
    if arguments.side in SIMD:
        os.environ["SHARDTOOL_SIMD"] = arguments.side
    if arguments.side == "theirs":
        import recipes_torchvision

        samples, seconds = recipes_torchvision.rate(recipe, records, arguments.workers)
    else:
        import recipes_ours

        samples, seconds = recipes_ours.rate(recipe, arguments.dataset, arguments.workers, arguments.side == "scaled")
    assert samples == (len(records) // batch_of(recipe) - 1) * batch_of(recipe), samples
    print(json.dumps({"side": arguments.side, "recipe": recipe, "images_per_s": samples / seconds}))


def run(command: list[str]) -> dict:
    """Runs a side, prints its JSON object and returns it."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    print(done.stdout.strip(), flush=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(recipe: str, commands: dict[str, list[str]], rounds: int) -> None:
    """Runs the sides alternately and prints the ratios of their rates."""
    ratios: dict[str, list[float]] = {which: [] for which in commands if which != "ours"}
    for _ in range(rounds):
        rates = {which: run(command).get("images_per_s") for which, command in commands.items() if which in {"ours", *ratios}}
        for which in [which for which in ratios if rates[which] is None]:
            del ratios[which]
        for which, of in ratios.items():
            of.append(rates["ours"] / rates[which])
    if "scaled" in ratios:
        for which in [which for which in ("theirs", "dali") if which in ratios]:
            ratios[f"{which}, by scaled"] = [b / a for a, b in zip(ratios["scaled"], ratios[which])]
    for level in [which for which in ratios if which in SIMD]:
        for which in [which for which in ("theirs", "dali") if which in ratios]:
            ratios[f"{which}, by {level}"] = [b / a for a, b in zip(ratios[level], ratios[which])]
    for which, of in ratios.items():
        ratio = {"recipe": recipe, "peer": which, "ratio": round(statistics.median(of), 2)}
        print(json.dumps({**ratio, "of": [round(r, 2) for r in of]}), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("photos", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--copies", type=int, default=1, help="how often each photograph occurs")
    parser.add_argument("--dali", help="an interpreter with DALI")
    parser.add_argument("--simd", action="append", default=[], choices=SIMD, help="our side also with at most these vector instructions")
    parser.add_argument("--recipe", action="append", choices=["crop", *RECIPES])
    for hidden in ("--side", "--list", "--dataset"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.side:
        side(arguments)
        return 0
    if not arguments.photos:
        parser.error("a folder of photographs is needed")
    photos = sorted(str(path) for path in pathlib.Path(arguments.photos).rglob("*") if path.suffix.lower() in (".jpg", ".jpeg"))
    photos *= arguments.copies
    with tempfile.TemporaryDirectory() as temporary:
        for recipe in arguments.recipe or RECIPES:
            content, workers = CONTENTS[recipe], str(arguments.workers)
            folder = pathlib.Path(temporary, content)
            names, dataset = folder / "records.json", folder / "dataset"
            if not folder.exists():
                folder.mkdir()
                records = records_of(photos, content, folder)
                names.write_text(json.dumps(records))
                pack(records, content, dataset)
            own = [sys.executable, __file__, "--list", str(names), "--dataset", str(dataset), "--recipe", recipe]
            commands = {which: [*own, "--workers", workers, "--side", which] for which in ("ours", "theirs")}
            for level in arguments.simd:
                commands[level] = [*own, "--workers", workers, "--side", level]
            if recipe == "crop":
                commands["scaled"] = [*own, "--workers", workers, "--side", "scaled"]
            if arguments.dali:
                program = pathlib.Path(__file__).with_name("recipes_dali.py")
                commands["dali"] = [arguments.dali, str(program), str(names), recipe, workers]
            if recipe in COMPARED:
                run([*own, "--side", "check"])
            compare(recipe, commands, arguments.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
