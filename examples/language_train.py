"""A language model on packed rows: several texts share a row, and attend to themselves only.

    python examples/language_train.py DATASET --capacity 2048 --checkpoint run.pt

The records have token ids in the feature `tokens`, and their number in `length`. Run again, it resumes from the checkpoint. The
accuracy is how often the most probable token is the next one.
"""

import argparse
import os
from typing import Any

import torch
from torch.nn import functional

import shardtool as st
from shardtool.torch import Loader

WIDTH, HEADS, PADDING = 128, 4, 0


class Language(torch.nn.Module):
    """Predicts the next token of each text of each row."""

    def __init__(self, vocabulary: int, capacity: int):
        super().__init__()
        self.tokens = torch.nn.Embedding(vocabulary, WIDTH)
        self.positions = torch.nn.Embedding(capacity, WIDTH)
        layer = torch.nn.TransformerEncoderLayer(WIDTH, HEADS, 4 * WIDTH, dropout=0.0, batch_first=True)
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.next = torch.nn.Linear(WIDTH, vocabulary)

    def forward(self, batch: dict[str, Any]) -> torch.Tensor:
        """Returns the logits of each token's successor: `[N, V, vocabulary]`."""
        segments = batch["segment_ids"]
        mask = ~(segments[:, :, None] == segments[:, None, :]).tril().repeat_interleave(HEADS, 0)
        hidden = self.layers(self.tokens(batch["tokens"]) + self.positions(batch["position_ids"]), mask)
        logits: torch.Tensor = self.next(hidden)
        return logits


def targets(batch: dict[str, Any]) -> torch.Tensor:
    """Returns the next token of each token of the same text, and -100 at the end of a text: `[N, V - 1]`."""
    segments = batch["segment_ids"]
    follows = (segments[:, 1:] == segments[:, :-1]) & (segments[:, 1:] > 0)
    return torch.where(follows, batch["tokens"][:, 1:], -100)


def loss_and_hits(model: Language, batch: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the mean loss, and whether each predicted token is right."""
    logits, wanted = model(batch)[:, :-1], targets(batch)
    hits = (logits.argmax(-1) == wanted)[wanted >= 0]
    return functional.cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=-100), hits


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("dataset")
    parser.add_argument("--eval-split", default="val")
    parser.add_argument("--vocabulary", type=int, default=50_000)
    parser.add_argument("--capacity", type=int, default=2048, help="tokens of a row")
    parser.add_argument("--batch-size", type=int, default=16, help="rows of a batch")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--checkpoint", default="checkpoint.pt")
    args = parser.parse_args()
    train, val = (st.Dataset(args.dataset).split(name) for name in ("train", args.eval_split))
    tokens = st.Tokens("length", args.capacity, {"tokens": PADDING}, longer="cut")
    loader = Loader(train, args.batch_size, tokens, remainder="mask")
    test = Loader(val, args.batch_size, tokens, order=st.Sequential())
    model = Language(args.vocabulary, args.capacity)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    parts: dict[str, Any] = {"model": model, "optimizer": optimizer, "loader": loader}
    if os.path.exists(args.checkpoint):
        for name, state in torch.load(args.checkpoint).items():
            parts[name].load_state_dict(state)
    for epoch in range(loader.state_dict()["epoch"], args.epochs):
        for batch in loader:
            loss, _ = loss_and_hits(model, batch)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        torch.save({name: part.state_dict() for name, part in parts.items()}, f"{args.checkpoint}.tmp")
        os.replace(f"{args.checkpoint}.tmp", args.checkpoint)
        with torch.no_grad():
            hits = torch.cat([loss_and_hits(model, batch)[1] for batch in test])
        print(f"epoch {epoch}: accuracy {hits.float().mean():.3f}", flush=True)


if __name__ == "__main__":
    main()
