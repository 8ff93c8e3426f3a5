#!/usr/bin/env python3
"""Blends two datasets of 700 and 400 records by weights that change, with Grain, Megatron Energon and shardtool.

    benches/python/blending.py        in the environment `blending` (scripts/python-env blending), with shardtool on PYTHONPATH

Of each: how far the share of the first dataset is from what its weight asks for, at the worst of the first 20,000 samples; what becomes
of a run that is saved after 1,000 samples at 0.9 and 0.1, and continues with 0.5 each; how often a sample then comes although others of
its dataset have come less often by two; and the time of a sample.
"""

import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter

SIZES = {"a": 700, "b": 400}
POSITIONS, SAVED, AFTER = 20_000, 1_000, 3_000


def deviation(ids, share=0.9):
    """Returns the largest difference from the share, in samples."""
    had, worst = 0, 0.0
    for k, name in enumerate(ids, 1):
        had += name[0] == "a"
        worst = max(worst, abs(had - k * share))
    return worst


def uneven(ids):
    """Counts samples that come for the (n + 2)th time while another of their dataset has come n times."""
    had = {name: Counter({f"{name}{i}": 0 for i in range(size)}) for name, size in SIZES.items()}
    wrong = 0
    for name in ids:
        own = had[name[0]]
        own[name] += 1
        wrong += own[name] > min(own.values()) + 1
    return wrong


def report(name, take, resume):
    begin = time.perf_counter()
    ids = take(POSITIONS)
    each = (time.perf_counter() - begin) / POSITIONS
    before, after, words = resume()
    half = sum(i[0] == "a" for i in after) / max(1, len(after))
    print(f"{name:10} off by {deviation(ids):6.1f} samples at worst; {each * 1e6:6.1f} µs a sample; other weights: {words}, "
          f"{half:.3f} of the first; {uneven(before + after)} of {len(before + after)} samples too early")


def grain_candidate():
    import grain.python as grain

    def mixed(weights):
        parts = [grain.MapDataset.source([f"{name}{i}" for i in range(size)]).shuffle(seed=1).repeat() for name, size in SIZES.items()]
        return iter(grain.MapDataset.mix(parts, weights=weights).to_iter_dataset())

    def take(n, weights=(0.9, 0.1)):
        rows = mixed(list(weights))
        return [next(rows) for _ in range(n)]

    def resume():
        rows = mixed([0.9, 0.1])
        before = [next(rows) for _ in range(SAVED)]
        state = rows.get_state()
        rows = mixed([0.5, 0.5])
        rows.set_state(state)
        return before, [next(rows) for _ in range(AFTER)], "accepted without a word"

    report("Grain", take, resume)


def energon_candidate(folder):
    from megatron.energon import (
        Cooker, DefaultTaskEncoder, WorkerConfig, basic_sample_keys, get_savable_loader, get_train_dataset, stateless,
    )

    for name, size in SIZES.items():
        (folder / name).mkdir()
        with tarfile.open(folder / name / "shard_0.tar", "w") as tar:
            for i in range(size):
                data = json.dumps({"id": f"{name}{i}"}).encode()
                member = tarfile.TarInfo(f"{i:05}.json")
                member.size = len(data)
                tar.addfile(member, io.BytesIO(data))
        prepare = ["prepare", str(folder / name), "--non-interactive", "--split-ratio", "1,0,0", "--sample-type", "CrudeWebdataset"]
        energon = pathlib.Path(sys.executable).parent / "energon"
        subprocess.run([energon, *prepare, "--num-workers", "1"], check=True, capture_output=True)

    @stateless
    def cook(sample):
        return {**basic_sample_keys(sample), "id": sample["json"]["id"]}

    class Encoder(DefaultTaskEncoder):
        cookers = [Cooker(cook)]

        def batch(self, samples):
            return [sample["id"] for sample in samples]

        def encode_batch(self, batch):
            return batch

    def loader(a, b):
        blend = [{"weight": a, "path": str(folder / "a")}, {"weight": b, "path": str(folder / "b")}]
        meta = {"__module__": "megatron.energon", "__class__": "MetadatasetV2", "splits": {"train": {"blend": blend}}}
        (folder / "meta.yaml").write_text(json.dumps(meta))
        config = WorkerConfig(rank=0, world_size=1, num_workers=0)
        dataset = get_train_dataset(
            folder / "meta.yaml", worker_config=config, batch_size=1, shuffle_buffer_size=None, max_samples_per_sequence=None,
            task_encoder=Encoder(),
        )
        return get_savable_loader(dataset)

    def first(rows, n):
        taken = []
        for batch in rows:
            taken += batch
            if len(taken) >= n:
                return taken
        return taken

    def resume():
        rows = loader(0.9, 0.1)
        before = first(rows, SAVED)
        state = rows.save_state_rank()
        rows = loader(0.5, 0.5)
        rows.restore_state_rank(state)
        return before, first(rows, AFTER), "accepted without a word"

    report("Energon", lambda n: first(loader(0.9, 0.1), n), resume)


def shardtool_candidate(folder):
    import shardtool as st

    splits = []
    for name, size in SIZES.items():
        with st.Writer(folder / f"st-{name}", "train", features={"number": "int64"}, images=False, labels=False) as writer:
            for i in range(size):
                writer.write({"key": f"{name}{i}", "number": i})
        splits.append(st.Dataset(folder / f"st-{name}")["train"])

    def loader(stages):
        source = st.Scheduled(stages, draws=1_000)
        return st.Loader(splits, 10, [st.Column("number")], source=source, order=st.Shuffled(1), remainder="mask")

    def first(rows, n):
        taken = []
        while len(taken) < n:
            for batch in rows:
                taken += ids(batch)
                if len(taken) >= n:
                    break
        return taken[:n]

    def ids(batch):
        return [f"a{i}" if i < SIZES["a"] else f"b{i - SIZES['a']}" for i in batch["id"].tolist()]

    def resume():
        rows = loader({0: [0.9, 0.1]})
        before = first(rows, SAVED)
        state = rows.state_dict()
        other = loader({0: [0.5, 0.5]})
        try:
            other.load_state_dict(state)
            words = "accepted without a word"
        except st.StateError:
            words = "refused, and as a later stage exact"
        rows = loader({0: [0.9, 0.1], "1000 samples": [0.5, 0.5]})
        rows.load_state_dict(state)
        return before, first(rows, AFTER), words

    report("shardtool", lambda n: first(loader({0: [0.9, 0.1]}), n), resume)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        grain_candidate()
        energon_candidate(pathlib.Path(temporary))
        shardtool_candidate(pathlib.Path(temporary))
