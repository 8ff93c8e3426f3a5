"""Packs images, verifies the dataset, trains an epoch in two halves, and prints a digest of all that it made.

Usage: same_bytes.py FOLDER, with JPEGs in the folder itself. Every processor prints the same: tests compare a run on this one with
one under the emulation of another.
"""

import hashlib
import json
import pathlib
import platform
import shutil
import sys
import tempfile

import shardtool as st


def digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:32]


def main(folder: pathlib.Path) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        source, dataset = pathlib.Path(scratch, "photos"), pathlib.Path(scratch, "dataset")
        images = sorted(folder.glob("*.jpg"))
        for i, image in enumerate(images):
            for copy in range(4):
                to = source / f"class{i % 3}" / f"{image.stem}-{copy}.jpg"
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(image, to)
        st.pack(source, dataset, shard_size=200_000)
        # JPEGs that are resized and encoded again, with subsampled colours and without.
        for quality in [85, 95]:
            st.pack(source, pathlib.Path(scratch, f"quality-{quality}"), resize_shorter=24, quality=quality)
        for packed in [dataset, *sorted(pathlib.Path(scratch).glob("quality-*"))]:
            st.verify(packed)
            for path in sorted(packed.rglob("*")):
                # The manifest has the time of the pack.
                if path.is_file() and path.suffix != ".json":
                    print(f"{path.relative_to(scratch)}: {digest(path.read_bytes())}")
        train = st.Dataset(dataset).split("train")
        print(f"samples: {len(train)}")
        steps = [st.RandomResizedCrop(64), st.HorizontalFlip(), st.ColorJitter(0.3, 0.3, 0.3, 0.1), st.GaussianBlur(5)]
        numbers = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
        for options in [{}, numbers, {**numbers, "dtype": "float16", "layout": "NCHW"}]:
            make = lambda: st.Loader(train, 8, [st.Image(steps, **options)], order=st.Shuffled(seed=5))  # noqa: E731
            loader, parts, state = make(), [], None
            for i, batch in enumerate(loader):
                parts += [batch[name].tobytes() for name in ["image", "label", "id"]]
                if i == 3:
                    state = json.dumps(loader.state_dict(), sort_keys=True)
                    break
            resumed = make()
            resumed.load_state_dict(json.loads(state))
            for batch in resumed:
                parts += [batch[name].tobytes() for name in ["image", "label", "id"]]
            print(f"epoch as {batch['image'].dtype}: {digest(*parts, state.encode())}")


if __name__ == "__main__":
    print(f"shardtool {st.__version__} on {platform.machine()}", file=sys.stderr)
    main(pathlib.Path(sys.argv[1]))
