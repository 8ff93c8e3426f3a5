"""DALI reads the files of `shardtool export --to tfrecord --dali-index`: every record of every file, byte for byte.

Usage: python with_dali.py SHARDTOOL [PHOTOS]    (run by scripts/test, in the environment `dali`)
PHOTOS is a folder of class folders; without it the test packs the demo's photographs.
"""

import pathlib
import subprocess
import sys
import tempfile

try:
    import nvidia.dali.fn as fn
    import nvidia.dali.tfrecord as tfrecord
    from nvidia.dali import __version__, pipeline_def
except (ImportError, OSError) as error:
    print(f"skipped: DALI cannot run here: {error}")
    sys.exit(0)

SHARDTOOL = sys.argv[1]


@pipeline_def(batch_size=16, num_threads=2, device_id=None)
def pipeline(files, indexes):
    features = {
        "image/encoded": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/key": tfrecord.FixedLenFeature((), tfrecord.string, ""),
        "image/class/label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    }
    read = fn.readers.tfrecord(path=files, index_path=indexes, features=features, name="reader")
    return read["image/encoded"], read["image/key"], read["image/class/label"]


with tempfile.TemporaryDirectory() as tmp:
    root = pathlib.Path(tmp)
    if len(sys.argv) > 2:
        photos = pathlib.Path(sys.argv[2])
    else:
        subprocess.run([SHARDTOOL, "demo", "--keep", root / "demo"], check=True, stdout=subprocess.DEVNULL)
        photos = root / "demo" / "photos"
    files = {f"{p.parent.name}/{p.name}": p.read_bytes() for p in photos.glob("*/*") if p.is_file()}
    classes = sorted({key.split("/")[0] for key in files}, key=str.encode)
    subprocess.run([SHARDTOOL, "pack", photos, root / "packed", "--shards", "3"], check=True, stdout=subprocess.DEVNULL)
    arguments = ["--to", "tfrecord", "--dali-index"]
    subprocess.run([SHARDTOOL, "export", root / "packed", root / "out", *arguments], check=True, stdout=subprocess.DEVNULL)
    paths = [sorted(map(str, (root / "out").glob(f"*.{suffix}"))) for suffix in ("tfrecord", "idx")]
    pipe = pipeline(*paths)
    pipe.build()
    records = pipe.reader_meta("reader")["epoch_size"]
    assert records == len(files), (records, len(files))
    seen = {}
    while len(seen) < records:
        encoded, keys, labels = pipe.run()
        for i in range(len(keys)):
            key = bytes(keys.at(i)).decode()
            assert bytes(encoded.at(i)) == files[key], key
            assert classes[labels.at(i)[0]] == key.split("/")[0], key
            seen[key] = None
        assert len(seen) <= records
    print(f"DALI {__version__} read {len(seen)} records by their .idx, every byte and label right")
