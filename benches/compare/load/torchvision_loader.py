"""ImageFolder and DataLoader with two workers: torchvision_loader.py FOLDER REPEATS"""

import sys

import torch
import torchvision
from torchvision.transforms import v2

from measure import measure

WORKERS = 2


def main(folder, repeats):
    steps = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()])
    images = torchvision.datasets.ImageFolder(folder, steps)
    data = torch.utils.data.ConcatDataset([images] * repeats)
    torch.set_num_threads(1)

    def epoch():
        # New workers in each epoch: their CPU time counts once they have exited.
        loader = torch.utils.data.DataLoader(data, 256, shuffle=True, num_workers=WORKERS, drop_last=True)
        return (images for images, _ in loader)

    measure("torchvision", f"{torchvision.__version__}, torch {torch.__version__}", epoch)


main(sys.argv[1], int(sys.argv[2]))
