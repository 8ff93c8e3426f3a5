"""Records are found by key, show themselves in a few lines, and files of other formats are named."""

import io
import json
import subprocess
import sys
import tarfile

import numpy as np
import pytest
import shardtool as st


def command(*arguments):
    return subprocess.run([sys.executable, "-m", "shardtool", *arguments], capture_output=True, text=True)


@pytest.fixture
def numbered(tmp_path):
    """Records whose keys are numbers, from the last to the first."""
    with st.Writer(tmp_path / "numbered", "train", labels=False) as writer:
        for number in reversed(range(20)):
            writer.write({"key": f"{number:06}", "image": np.full((8, 8, 3), number, np.uint8), "text": "x" * 5000})
    return st.Dataset(tmp_path / "numbered")["train"]


def test_records_by_key(numbered):
    for number in (0, 7, 19):
        key = f"{number:06}"
        assert numbered[key]["key"] == key and numbered[numbered.find(key)] == numbered[key]
        assert numbered.find(key) == 19 - number
    for missing in ("7", "", "000020"):
        with pytest.raises(st.errors.RecordKeyError, match="no record of split `train` has the key"):
            numbered[missing]
    with pytest.raises(st.errors.OptionTypeError, match="number, slice or key"):
        numbered[1.5]


def test_the_command_shows_a_record_by_key(numbered):
    dataset = str(numbered.path)
    assert "record 12 of train: 000007" in command("show", dataset, "000007").stdout
    assert "record 7 of train: 000012" in command("show", dataset, "7").stdout
    missing = command("show", dataset, "--key", "7")
    assert missing.returncode == 2 and "has the key `7`" in missing.stderr


def test_representations_fit_a_terminal(numbered):
    record = repr(numbered[0])
    assert len(record) < 2000 and "'key': '000019'" in record and "bytes: b'" in record
    loader = repr(st.Loader(numbered, 4, [st.RandomResizedCrop(8)], order=st.Shuffled(5)))
    assert len(loader) < 300 and "seed=5" in loader and "prefetch" not in loader
    assert "mean" in repr(st.Loader(numbered, 4, st.Image([st.RandomResizedCrop(8)], mean=np.zeros(3), std=np.ones(3))))


def parquet(path):
    path.write_bytes(b"PAR1" + bytes(60) + b"PAR1")


def tar(path):
    with tarfile.open(path, "w") as archive:
        archive.addfile(tarfile.TarInfo("a.jpg"), io.BytesIO(b""))


def text(path):
    path.write_text("file,label\na.jpg,cat\nb.jpg,dog\n")


@pytest.mark.parametrize(
    ("write", "kind"),
    [
        (parquet, "a Parquet file"),
        (tar, "a tar archive"),
        (text, "a text file"),
        (lambda path: np.save(path.open("wb"), np.zeros(3)), "a numpy array"),
        (lambda path: path.write_bytes(b"\xff\xd8\xff\xe0" + bytes(100)), "an image"),
    ],
)
def test_a_file_of_another_format_is_named(write, kind, tmp_path):
    path = tmp_path / "file"
    write(path)
    with pytest.raises(st.errors.DatasetError, match=f"it is {kind}.*shardtool pack"):
        st.Dataset(path)
    ran = command("info", str(path))
    assert ran.returncode == 2 and f"it is {kind}" in ran.stderr and "CRC" not in ran.stderr


def test_a_damaged_file_stays_damaged(numbered):
    path = numbered.shards[0].path
    damaged = bytearray(path.read_bytes())
    damaged[9] ^= 1
    other = path.parent / "bare.tfrecord"
    other.write_bytes(damaged)
    with pytest.raises(st.errors.DamageError, match="byte 0"):
        st.Dataset(other)


def test_the_users_function_has_a_stage(numbered):
    def stages(steps):
        with st.Loader(numbered, 4, steps) as loader:
            list(loader)
            return {stage["stage"]: stage["count"] for stage in loader.stats()["stages"]}

    assert stages([st.RandomResizedCrop(8)])["function"] == 0
    counts = stages([st.RandomResizedCrop(8), lambda image, seed: None])
    assert counts["function"] == counts["resize"] >= 20


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda image: image, "must take an image and a seed"),
        (dict(a=1).get, None),
        (lambda image, seed, more: image, "must take an image and a seed"),
        (lambda *values: None, None),
    ],
)
def test_a_function_that_is_not_one_of_image_and_seed_is_refused(numbered, function, message):
    steps = [st.RandomResizedCrop(8), function]
    if message is None:
        st.Loader(numbered, 4, steps)
    else:
        with pytest.raises(st.errors.OptionTypeError, match=message):
            st.Loader(numbered, 4, steps)


def test_names_of_torchvision_are_answered(numbered):
    for name, answer in (("Normalize", "`mean` and `std`"), ("ToTensor", "shardtool.torch.Loader"), ("DataLoader", "shardtool.Loader")):
        with pytest.raises(AttributeError, match=answer):
            getattr(st, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'$"):
        st.Nothing
    v2 = pytest.importorskip("torchvision.transforms.v2")
    for transform, answer in (
        (v2.Normalize([0.5] * 3, [0.5] * 3), "`mean` and `std`"),
        (v2.RandomHorizontalFlip(), "wrap it"),
        (v2.ColorJitter(0.1), "`st.ColorJitter`"),
        (v2.Compose([v2.ToImage()]), "a list of steps"),
    ):
        with pytest.raises(st.errors.OptionTypeError, match=answer):
            st.Loader(numbered, 4, [st.RandomResizedCrop(8), transform])


def test_an_empty_condition_finds_records_without_a_number(tmp_path):
    """Several numbers are not the lack of one."""
    with st.Writer(tmp_path / "d", images=False, labels=False, features={"n": "int64"}) as writer:
        for key, numbers in [("none", None), ("one", 1), ("two", [1, 2])]:
            writer.write({"key": key, **({} if numbers is None else {"n": numbers})})

    def keys(condition):
        command = [sys.executable, "-m", "shardtool", "ls", str(tmp_path / "d"), "--where", condition, "--json"]
        return [record["key"] for record in json.loads(subprocess.run(command, capture_output=True, check=True).stdout)["listed"]]

    assert keys("n=") == ["none"] and keys("n!=") == ["one", "two"]
    with pytest.raises(subprocess.CalledProcessError) as refused:
        keys("n=1")
    assert b"record `two` has several values of `n`" in refused.value.stderr
