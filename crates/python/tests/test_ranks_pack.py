"""Several processes of one program that pack the same source: one works, the others wait and get the same result."""

import json
import subprocess
import sys

import pytest
import shardtool as st

PROGRAM = """
import json, sys
import shardtool as st
packed = st.pack(sys.argv[1], sys.argv[2], shards=4, progress=True)
print(json.dumps([packed.images, packed.fingerprint, packed.already_complete]))
"""


def start(photos, out):
    return subprocess.Popen([sys.executable, "-c", PROGRAM, photos, out], stdout=subprocess.PIPE, text=True)


def test_every_rank_gets_the_split(photos, tmp_path):
    for attempt in range(3):
        ranks = [start(photos, tmp_path / str(attempt)) for _ in range(4)]
        results = [json.loads(rank.communicate(timeout=120)[0]) for rank in ranks]
        assert all(rank.returncode == 0 for rank in ranks)
        assert len({tuple(result[:2]) for result in results}) == 1
        assert [result[2] for result in results].count(False) == 1


def test_waiting_has_a_limit_and_continues_what_a_killed_process_began(photos, tmp_path):
    lock = tmp_path / "out" / ".pack-train.lock"
    holder = f"""
import fcntl, os, sys, time
os.makedirs({str(lock.parent)!r})
file = open({str(lock)!r}, "w")
fcntl.flock(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "held\n"
    with pytest.raises(st.errors.PackError, match="another process is writing"):
        st.pack(photos, tmp_path / "out", wait=0.3)
    with pytest.raises(st.errors.PackError, match="another process is writing"):
        st.pack(photos, tmp_path / "out", force=True)
    waiting = start(photos, tmp_path / "out")
    process.kill()
    assert json.loads(waiting.communicate(timeout=120)[0])[2] is False
    process.communicate()
    for wrong in (-1, float("nan")):
        with pytest.raises(st.OptionError, match="`wait`"):
            st.pack(photos, tmp_path / "out", wait=wrong)
