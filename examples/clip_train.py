"""CLIP: pairs of images and captions. Of several captions of an image, each epoch draws one.

    shardtool pack captions_train2017.json DATASET --from coco --images train2017
    python examples/clip_train.py DATASET --model resnet18 --checkpoint run.pt

The records have texts in the feature `caption`, whose bytes are the tokens here: use the tokenizer of your model. Run again, it
resumes from the checkpoint. The accuracy is how often a caption is nearest to its image, among those of the batch.
"""

import argparse
import os
from functools import partial
from typing import Any

import torch
import torchvision
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

import shardtool as st
from shardtool.torch import Loader

WIDTH, PADDING = 128, 0


class Pairs(torch.nn.Module):
    """Embeds images and captions."""

    def __init__(self, model: str):
        super().__init__()
        self.image = torchvision.models.get_model(model, num_classes=WIDTH)
        self.tokens = torch.nn.Embedding(256, WIDTH, padding_idx=PADDING)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, 4, 256, batch_first=True)
        self.text = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, batch: dict[str, Any]) -> torch.Tensor:
        """Returns the similarities of each image to each caption: `[N, N]`."""
        tokens = pad_sequence([torch.tensor(list(text[:77] or b" ")) for text in batch["caption"]], True, PADDING)
        absent = tokens == PADDING
        texts = self.text(self.tokens(tokens), src_key_padding_mask=absent).masked_fill(absent[..., None], 0).sum(1)
        return functional.normalize(self.image(batch["image"])) @ functional.normalize(texts).T / 0.07


@torch.no_grad()
def accuracy_of(model: Pairs, loader: Loader) -> float:
    """Returns how often a caption is nearest to its image."""
    return float(torch.cat([(model(b).argmax(1) == torch.arange(len(b["id"])))[b["valid"]] for b in loader]).float().mean())


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--model", default="resnet50", help="name of a torchvision model")
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--batch-size", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    parser.add_argument("--save-every", type=int, default=500, help="steps between checkpoints")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    image = partial(st.Image, mean=(0.481, 0.458, 0.408), std=(0.269, 0.261, 0.276))
    crop = image([st.RandomResizedCrop(args.size, scale=(0.9, 1.0), interpolation="bicubic")])
    plain, caption = image([st.Resize(args.size), st.CenterCrop(args.size)]), st.Column("caption", draw=True)
    loader = Loader(train, args.batch_size, [crop, caption])
    test = Loader(val, args.batch_size, [plain, caption], order=st.Sequential())
    model = Pairs(args.model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-4)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
    if os.path.exists(args.checkpoint):
        random, states = torch.load(args.checkpoint)
        torch.set_rng_state(random)  # of dropout
        for name, state in states.items():
            parts[name].load_state_dict(state)
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        model.train()
        for step, batch in enumerate(loader, loader.steps_done + 1):
            similar, own = model(batch), torch.arange(len(batch["id"]))
            loss = functional.cross_entropy(similar, own) + functional.cross_entropy(similar.T, own)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % args.save_every == 0 or step == len(loader):
                torch.save((torch.get_rng_state(), {n: p.state_dict() for n, p in parts.items()}), f"{args.checkpoint}.tmp")
                os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        print(f"epoch {epoch}: accuracy {accuracy_of(model.eval(), test):.3f}", flush=True)


if __name__ == "__main__":
    main()
