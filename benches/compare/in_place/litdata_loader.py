"""LitData and a DataLoader with two workers: litdata_loader.py raw|parquet FOLDER|URL [CACHE]"""

import io
import os
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "load"))
os.environ["DO_NOT_TRACK"] = "1"
import litdata  # noqa: E402
import torch  # noqa: E402
from measure import measure  # noqa: E402
from PIL import Image  # noqa: E402
from torchvision.transforms import v2  # noqa: E402

# LitData has no option for a server without TLS; all else is in the environment.
litdata.streaming.downloader._OBSTORE_CLIENT_OPTIONS["allow_http"] = True
STEPS = v2.Compose([v2.RandomResizedCrop(224), v2.RandomHorizontalFlip(), v2.PILToTensor()])


def steps(data):
    return STEPS(Image.open(io.BytesIO(data)).convert("RGB"))


class Rows(litdata.StreamingDataset):
    """Rows of Parquet: images in Hugging Face's struct."""

    def __getitem__(self, index):
        image = super().__getitem__(index)["image"]
        return steps(image["bytes"])


def main(kind, place, cache=None):
    torch.set_num_threads(1)
    if kind == "raw":
        data = litdata.StreamingRawDataset(place, cache_dir=cache, transform=steps)

        def epoch():
            loader = torch.utils.data.DataLoader(data, 256, shuffle=True, num_workers=2, drop_last=True)
            return (images for images in loader)
    else:
        litdata.index_parquet_dataset(place)
        loader = litdata.streaming.item_loader.ParquetLoader()
        data = Rows(place, item_loader=loader, shuffle=True, drop_last=True)

        # Polars needs workers that are spawned; they stay, since each takes seconds to start.
        options = {"num_workers": 2, "multiprocessing_context": "spawn", "persistent_workers": True}
        batches = litdata.StreamingDataLoader(data, batch_size=256, **options)

        def epoch():
            return (images for images in batches)

    measure(f"LitData, {kind}", litdata.__version__, epoch)


if __name__ == "__main__":
    main(*sys.argv[1:])
