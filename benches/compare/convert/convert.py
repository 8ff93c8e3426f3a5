"""Compares the speed of conversion with the readers and writers of other libraries: the same photographs, in one run.

Usage: python convert.py SHARDTOOL PHOTOS [RUNS]    (in an environment of scripts/requirements: formats, tensorflow)

PHOTOS is a folder of class folders. Peers that are not installed are left out. Times of shardtool are those of its whole
process, with the first reading of archives, checksums, indexes and fsync; peers are timed without imports, and do not
sync. Prints the median of RUNS (default 3), one warm-up apart; and checks that every sample arrived.
"""

import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

SHARDTOOL, PHOTOS = sys.argv[1], pathlib.Path(sys.argv[2])
RUNS = int(sys.argv[3]) if len(sys.argv) > 3 else 3
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
FILES = sorted(path for path in PHOTOS.glob("*/*") if path.is_file())
CLASSES = sorted({path.parent.name for path in FILES})
LABELS = {name: number for number, name in enumerate(CLASSES)}
IMAGES = [path.read_bytes() for path in FILES]
BYTES = sum(map(len, IMAGES))
SHARDS = 4
PART = -(-len(FILES) // SHARDS)


def shardtool(*args):
    subprocess.run([SHARDTOOL, *map(str, args)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def rows():
    for path, image in zip(FILES, IMAGES):
        yield f"{path.parent.name}/{path.stem}", image, LABELS[path.parent.name]


def parts():
    every = list(rows())
    return [every[at : at + PART] for at in range(0, len(every), PART)]


def timed(work, folder):
    """Returns the median seconds of `work(out)`, each run with a new folder."""
    seconds = []
    for run in range(RUNS + 1):
        out = folder / f"run-{run}"
        begin = time.perf_counter()
        work(out)
        seconds.append(time.perf_counter() - begin)
        shutil.rmtree(out, ignore_errors=True)
    return statistics.median(seconds[1:])


def report(what, who, seconds, ours=None):
    rate, volume = len(FILES) / seconds, BYTES / seconds / 1e6
    ratio = "" if ours is None else f"   shardtool is {seconds / ours:.1f} times as fast"
    print(f"{what:<16} {who:<34} {rate:>8,.0f} images/s {volume:>7,.0f} MB/s{ratio}", flush=True)


def count(dataset):
    manifest = json.loads((dataset / "dataset.json").read_text())
    return sum(shard["records"] for split in manifest["splits"] for shard in split["shards"])


def compare(root, kind, write, read, extra=()):
    """In: packs what `write` wrote, compared with `read` of all its samples. Out: the opposite direction."""
    theirs = root / f"{kind}-theirs"
    write(theirs)
    shardtool("pack", theirs, root / f"{kind}-check", "--from", kind, *extra)
    assert count(root / f"{kind}-check") == len(FILES), kind
    work = root / f"{kind}-work"
    work.mkdir()
    plain = ["--no-jpeg-entries"]
    for what, more in [("shardtool pack", []), ("shardtool pack --no-jpeg-entries", plain)]:
        seconds = timed(lambda out: shardtool("pack", theirs, out, "--from", kind, *more, *extra), work)
        report(f"{kind} in", what, seconds)
    report(f"{kind} in", "the peer reads all samples", timed(lambda out: read(theirs), work), seconds)
    both = timed(lambda out: (read(theirs), write(out)), work)
    report(f"{kind} in", "the peer reads and writes them", both, seconds)
    if kind == "mds":
        return
    seconds = timed(lambda out: shardtool("export", root / "packed", out, "--to", kind), work)
    report(f"{kind} out", "shardtool export", seconds)
    report(f"{kind} out", "the peer writes them from memory", timed(write, work), seconds)


def checked(samples):
    samples = list(samples)
    assert len(samples) == len(FILES) and sum(map(len, samples)) == BYTES
    return samples


def webdataset(root):
    import webdataset as wds

    def write(out):
        out.mkdir()
        with wds.ShardWriter(str(out / "x-%05d.tar"), maxcount=PART, verbose=0) as writer:
            for key, image, label in rows():
                writer.write({"__key__": key.replace(".", "_"), "jpg": image, "cls": label})

    def read(theirs):
        tars = sorted(map(str, theirs.glob("*.tar")))
        checked(sample["jpg"] for sample in wds.WebDataset(tars, shardshuffle=False))

    compare(root, "webdataset", write, read)


def parquet(root):
    import datasets

    datasets.disable_progress_bars()
    features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=CLASSES)})

    def write(out):
        out.mkdir()
        for number, part in enumerate(parts()):
            columns = {"image": [{"bytes": i, "path": f"{k}.jpg"} for k, i, _ in part], "label": [l for _, _, l in part]}
            datasets.Dataset.from_dict(columns, features=features).to_parquet(out / f"train-{number:05}.parquet")

    def read(theirs):
        files = {"train": sorted(map(str, theirs.glob("*.parquet")))}
        data = datasets.load_dataset("parquet", data_files=files, streaming=True, split="train")
        data = data.cast_column("image", datasets.Image(decode=False))
        checked(row["image"]["bytes"] for row in data)

    compare(root, "parquet", write, read)


def tfrecord(root):
    import tensorflow as tf

    def feature(**kind):
        return tf.train.Feature(**kind)

    def write(out):
        out.mkdir()
        for number, part in enumerate(parts()):
            with tf.io.TFRecordWriter(str(out / f"train-{number:05}.tfrecord")) as writer:
                for key, image, label in part:
                    features = {
                        "image/encoded": feature(bytes_list=tf.train.BytesList(value=[image])),
                        "image/filename": feature(bytes_list=tf.train.BytesList(value=[key.encode()])),
                        "image/class/label": feature(int64_list=tf.train.Int64List(value=[label])),
                    }
                    writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())

    def read(theirs):
        spec = {"image/encoded": tf.io.FixedLenFeature([], tf.string), "image/class/label": tf.io.FixedLenFeature([], tf.int64)}
        data = tf.data.TFRecordDataset(sorted(map(str, theirs.glob("*.tfrecord"))))
        data = data.batch(64).map(lambda batch: tf.io.parse_example(batch, spec)["image/encoded"], tf.data.AUTOTUNE)
        checked(image for batch in data.prefetch(tf.data.AUTOTUNE).as_numpy_iterator() for image in batch)

    compare(root, "tfrecord", write, read)


def mds(root):
    sys.path.append(str(pathlib.Path(__file__).parents[3] / "crates/cli/tests"))
    from cloudless import import_streaming

    MDSWriter = import_streaming().MDSWriter
    from streaming.base.format.mds import MDSReader

    def write(out):
        with MDSWriter(out=str(out), columns={"image": "bytes", "label": "int"}, size_limit=BYTES // SHARDS) as writer:
            for _, image, label in rows():
                writer.write({"image": image, "label": label})

    def read(theirs):
        shards = json.loads((theirs / "index.json").read_text())["shards"]
        readers = [MDSReader.from_json(str(theirs), "", dict(shard)) for shard in shards]
        checked(reader[i]["image"] for reader in readers for i in range(len(reader)))

    compare(root, "mds", write, read)


def main():
    print(f"{len(FILES)} photographs, {BYTES / 1e6:.0f} MB, {os.cpu_count()} processors; median of {RUNS}")
    for peer in (tfrecord, webdataset, parquet, mds):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            shardtool("pack", PHOTOS, root / "packed", "--shards", SHARDS)
            try:
                peer(root)
            except ImportError as error:
                print(f"{peer.__name__:<16} left out: {error}")


main()
