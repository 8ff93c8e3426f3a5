"""Hugging Face datasets and a DataLoader with two workers: datasets_loader.py imagefolder|parquet FOLDER CACHE"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "load"))
import datasets  # noqa: E402
import torch  # noqa: E402
from measure import measure  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

STEPS = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()])


def steps(rows):
    return {"image": [STEPS(image.convert("RGB")) for image in rows["image"]], "label": rows["label"]}


def main(kind, folder, cache):
    torch.set_num_threads(1)
    if kind == "imagefolder":
        # By a pattern: in a folder, a file whose name has the word `train` would be the whole split.
        options = {"data_files": f"{folder}/*/*", "split": "train", "drop_labels": False, "cache_dir": cache}
        data = datasets.load_dataset("imagefolder", **options).with_transform(steps)
        options = {"shuffle": True}
    else:
        # As its guide for PyTorch has it: Parquet is streamed, and shuffled in a buffer.
        files = sorted(map(str, pathlib.Path(folder).glob("*.parquet")))
        data = datasets.load_dataset("parquet", data_files=files, split="train", streaming=True, cache_dir=cache)
        data = data.shuffle(seed=1, buffer_size=1000).map(steps, batched=True, batch_size=32).with_format("torch")
        options = {}

    def epoch():
        loader = torch.utils.data.DataLoader(data, 256, num_workers=2, drop_last=True, **options)
        return (batch["image"] for batch in loader)

    measure(f"datasets, {kind}", datasets.__version__, epoch)


if __name__ == "__main__":
    main(*sys.argv[1:])
