"""ImageFolder and DataLoader with two workers: torchvision_loader.py WORK FOLDER REPEATS"""

import sys

import torch
import torchvision
from torchvision.transforms import v2

from measure import measure

WORKERS = 2


STEPS = {
    "train": [v2.RandomResizedCrop(224), v2.RandomHorizontalFlip()],
    "eval": [v2.Resize(256), v2.CenterCrop(224)],
}


def main(work, folder, repeats):
    steps = v2.Compose([*STEPS[work], v2.PILToTensor()])
    images = torchvision.datasets.ImageFolder(folder, steps)
    data = torch.utils.data.ConcatDataset([images] * repeats)
    torch.set_num_threads(1)

    def epoch():
        # New workers in each epoch: their CPU time counts once they have exited.
        loader = torch.utils.data.DataLoader(data, 256, shuffle=work == "train", num_workers=WORKERS, drop_last=True)
        return (images for images, _ in loader)

    measure("torchvision", f"{torchvision.__version__}, torch {torch.__version__}", epoch)


main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
