"""wids, which reads tars by index, and a DataLoader with two workers: wids_loader.py FOLDER"""

import importlib.metadata
import pathlib
import sys
import tarfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "load"))
import torch  # noqa: E402
import wids  # noqa: E402
from measure import measure  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

STEPS = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()])


def steps(sample):
    return STEPS(sample[".jpg"].convert("RGB"))


def samples(tar):
    with tarfile.open(tar) as file:
        return sum(name.endswith(".jpg") for name in file.getnames())


def main(folder):
    torch.set_num_threads(1)
    tars = [{"url": str(tar), "nsamples": samples(tar)} for tar in sorted(pathlib.Path(folder).glob("*.tar"))]
    data = wids.ShardListDataset(tars, cache_dir=f"{folder}-cache").add_transform(steps)

    def epoch():
        sampler = wids.ShardedSampler(data, shufflefirst=True)
        return (images for images in torch.utils.data.DataLoader(data, 256, sampler=sampler, num_workers=2, drop_last=True))

    measure("wids", importlib.metadata.version("wids"), epoch)


if __name__ == "__main__":
    main(*sys.argv[1:])
