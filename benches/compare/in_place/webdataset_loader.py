"""WebDataset and WebLoader with two workers: webdataset_loader.py FOLDER"""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "load"))
import torch  # noqa: E402
import webdataset  # noqa: E402
from measure import measure  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

STEPS = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()])


def main(folder):
    tars = sorted(map(str, pathlib.Path(folder).glob("*.tar")))
    torch.set_num_threads(1)

    def epoch():
        data = webdataset.WebDataset(tars, shardshuffle=len(tars), empty_check=False).shuffle(1000)
        data = data.decode("pilrgb").to_tuple("jpg", "cls").map_tuple(STEPS, int).batched(256, partial=False)
        # New workers in each epoch: their CPU time counts once they have exited.
        return (images for images, _ in webdataset.WebLoader(data, batch_size=None, num_workers=2))

    measure("WebDataset", webdataset.__version__, epoch)


main(sys.argv[1])
