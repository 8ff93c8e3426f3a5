"""Hugging Face datasets with `imagefolder`, and a DataLoader with two workers: datasets_loader.py FOLDER CACHE"""

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


def main(folder, cache):
    data = datasets.load_dataset("imagefolder", data_dir=folder, split="train", cache_dir=cache).with_transform(steps)
    torch.set_num_threads(1)

    def epoch():
        loader = torch.utils.data.DataLoader(data, 256, shuffle=True, num_workers=2, drop_last=True)
        return (batch["image"] for batch in loader)

    measure("datasets", datasets.__version__, epoch)


main(*sys.argv[1:])
