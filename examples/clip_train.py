"""CLIP: pairs of images and captions, in batches of captions of similar lengths.

    python examples/clip_train.py DATASET --model resnet18 --checkpoint run.pt

The records have the token ids of their caption in the feature `tokens`, and their number in `length`. Run again, it resumes from
the checkpoint. The accuracy is how often a caption is nearest to its image, among those of the batch.
"""

import argparse
import os
from functools import partial
from typing import Any

import torch
import torchvision
from torch.nn import functional

import shardtool as st
from shardtool.torch import Loader

WIDTH, PADDING = 128, 0


class Pairs(torch.nn.Module):
    """Embeds images and captions."""

    def __init__(self, model: str, vocabulary: int):
        super().__init__()
        self.image = torchvision.models.get_model(model, num_classes=WIDTH)
        self.tokens = torch.nn.Embedding(vocabulary, WIDTH, padding_idx=PADDING)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 256, batch_first=True)
        self.text = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, batch: dict[str, Any]) -> torch.Tensor:
        """Returns the similarities of each image to each caption: `[N, N]`."""
        absent = batch["tokens"] == PADDING
        texts = self.text(self.tokens(batch["tokens"]), src_key_padding_mask=absent)
        texts = texts.masked_fill(absent[..., None], 0).sum(1)
        images = functional.normalize(self.image(batch["image"]))
        return images @ functional.normalize(texts).T / 0.07


@torch.no_grad()
def accuracy_of(model: Pairs, loader: Loader) -> float:
    """Returns how often a caption is nearest to its image."""
    right = [(model(batch).argmax(1) == torch.arange(len(batch["id"])))[batch["valid"]] for batch in loader]
    return float(torch.cat(right).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--model", default="resnet50", help="name of a torchvision model")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--vocabulary", type=int, default=50_000)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    captions = st.LengthBuckets("length", [16, 32, 77], longer="cut", padded={"tokens": PADDING})
    image = partial(st.Image, mean=(0.481, 0.458, 0.408), std=(0.269, 0.261, 0.276))
    crop = image([st.RandomResizedCrop(args.size, scale=(0.9, 1.0), interpolation="bicubic")])
    loader = Loader(train, args.batch_size, [crop, "tokens"], buckets=captions)
    plain = image([st.Resize(args.size), st.CenterCrop(args.size)])
    test = Loader(val, args.batch_size, [plain, "tokens"], buckets=captions, order=st.Sequential())
    model = Pairs(args.model, args.vocabulary)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
    if os.path.exists(args.checkpoint):
        for name, state in torch.load(args.checkpoint).items():
            parts[name].load_state_dict(state)
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        model.train()
        for batch in loader:
            similar, own = model(batch), torch.arange(len(batch["id"]))
            loss = functional.cross_entropy(similar, own) + functional.cross_entropy(similar.T, own)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save({name: part.state_dict() for name, part in parts.items()}, args.checkpoint)
        print(f"epoch {epoch}: accuracy {accuracy_of(model.eval(), test):.3f}", flush=True)


if __name__ == "__main__":
    main()
