"""A manifest that claims more records than its files can hold: everything that loops over records ends with an error by name."""

import pathlib
import subprocess
import sys
import textwrap

import pytest
from conftest import crc32c

import shardtool as st


@pytest.fixture(params=[2**20, 2**30, 2**60])
def claim(request, photos, tmp_path) -> tuple[pathlib.Path, int]:
    """A dataset of one shard whose sealed manifest claims another number of records, and that number."""
    st.pack(photos, tmp_path / "set", shards=1)
    path = tmp_path / "set/dataset.json"
    count = len(st.Dataset(tmp_path / "set").split("train"))
    text = path.read_text().replace(f'"records": {count},', f'"records": {request.param},')
    before, _ = text.rsplit('"crc32c": "', 1)
    crc = crc32c(f'{before}"crc32c": "00000000"\n}}\n'.encode())
    path.write_text(f'{before}"crc32c": "{crc:08x}"\n}}\n')
    return tmp_path / "set", request.param


def test_claimed_records_end_loaders_and_loops(claim):
    path, records = claim
    assert len(st.Dataset(path).split("train")) == records
    # In another process: a loop that did not end, or memory for every claimed record, would stop the tests.
    code = """
        import resource, sys
        import shardtool as st

        resource.setrlimit(resource.RLIMIT_DATA, (1 << 30, 1 << 30))
        split = st.Dataset(sys.argv[1]).split("train")
        steps = [st.ResizeTo(8)]
        loops = {
            "sequential": lambda: st.Loader(split, 4, steps, order=st.Sequential()),
            "shuffled": lambda: st.Loader(split, 4, steps, order=st.Shuffled()),
            "interleaved": lambda: st.Loader(split, 4, steps, order=st.Interleaved(run=2, window=8)),
            "masked": lambda: st.Loader(split, 4, steps, order=st.Sequential(), bad_samples="mask"),
            "a replica": lambda: st.Loader(split, 4, steps, replica=st.Replica(1, 3)),
            "samples": lambda: (split[i] for i in range(len(split))),
            "columns": lambda: [split.columns["image/class/label"]],
        }
        for name, loop in loops.items():
            try:
                for _ in loop():
                    pass
                print(name, "ended without an error")
            except st.DamageError as error:
                print(name, error.name)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), str(path)], capture_output=True, text=True, timeout=120
    )
    names = ["sequential", "shuffled", "interleaved", "masked", "a replica", "samples", "columns"]
    assert done.stdout.splitlines() == [f"{name} RecordCount" for name in names], done.stdout + done.stderr
    assert done.returncode == 0


def test_claimed_records_are_damage_for_verify(claim):
    path, _ = claim
    assert "RecordCount" in {damage.name for damage in st.verify(path).damages}
