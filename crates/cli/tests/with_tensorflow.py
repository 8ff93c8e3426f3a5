"""TensorFlow reads shardtool's files, and shardtool reads TensorFlow's.

Usage: python with_tensorflow.py SHARDTOOL [PHOTOS]    (run by scripts/test, in the environment `tensorflow`)
PHOTOS is a folder of class folders; without it the test makes its own images.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "2"
import numpy as np
import tensorflow as tf

SHARDTOOL = sys.argv[1]
PHOTOS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None


def shardtool(*args, status=0):
    """Runs shardtool, checks its exit status, returns its standard output."""
    run = subprocess.run([SHARDTOOL, *map(str, args)], capture_output=True, text=True)
    assert run.returncode == status, f"{args}: status {run.returncode}\n{run.stdout}\n{run.stderr}"
    return run.stdout + run.stderr if status else run.stdout


def made_photos(folder, classes=3, each=7):
    """Class folders of JPEGs encoded by TensorFlow from smooth random images."""
    random = np.random.default_rng(1)
    for c in range(classes):
        path = folder / f"class {c}"
        path.mkdir(parents=True)
        for i in range(each):
            coarse = random.integers(0, 256, (1, 4, 5, 3)).astype(np.float32)
            size = (int(random.integers(20, 90)), int(random.integers(20, 90)))
            pixels = tf.cast(tf.image.resize(coarse, size)[0], tf.uint8)
            (path / f"{i}.jpg").write_bytes(tf.io.encode_jpeg(pixels).numpy())
    return folder


class TensorFlow(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)
        self.root = pathlib.Path(self.tmp.name)

    def test_reads_our_shards(self):
        photos = PHOTOS or made_photos(self.root / "photos")
        files = {f"{p.parent.name}/{p.name}": p for p in photos.glob("*/*") if p.is_file()}
        classes = sorted({p.parent.name for p in files.values()}, key=lambda name: name.encode())
        out = self.root / "out"
        shardtool("pack", photos, out, "--shards", 3)
        dataset = tf.data.TFRecordDataset(tf.io.gfile.glob(str(out / "train-*")))
        features = {
            "image/encoded": tf.io.FixedLenFeature([], tf.string),
            "image/format": tf.io.FixedLenFeature([], tf.string),
            "image/height": tf.io.FixedLenFeature([], tf.int64),
            "image/width": tf.io.FixedLenFeature([], tf.int64),
            "image/class/label": tf.io.FixedLenFeature([], tf.int64),
            "image/class/text": tf.io.FixedLenFeature([], tf.string),
            "image/key": tf.io.FixedLenFeature([], tf.string),
        }
        seen = set()
        for record in dataset:
            example = tf.io.parse_single_example(record, features)
            key = example["image/key"].numpy().decode()
            image = example["image/encoded"].numpy()
            self.assertEqual(image, files[key].read_bytes(), key)
            self.assertEqual(int(example["image/class/label"]), classes.index(files[key].parent.name), key)
            self.assertEqual(example["image/class/text"].numpy().decode(), files[key].parent.name)
            if len(seen) < 30:
                height, width = tf.io.decode_image(image, expand_animations=False).shape[:2]
                self.assertEqual((int(example["image/height"]), int(example["image/width"])), (height, width))
            # Parsed and serialised again by protobuf, our records have the same features.
            self.assertEqual(tf.train.Example.FromString(record.numpy()).features.feature["image/key"].bytes_list.value, [key.encode()])
            seen.add(key)
        self.assertEqual(seen, set(files))
        print(f"TensorFlow {tf.__version__} read {len(seen)} records of ours, every byte and label right")

    def test_reads_numbers_of_64_bits(self):
        """float64 and uint64 are byte strings of eight bytes."""
        rows = [{"time": 1700000000.123 + i, "hash": 2**63 + i, "times": [0.1, 1e300, float(i)]} for i in range(5)]
        (self.root / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        shardtool("pack", self.root / "rows.jsonl", self.root / "rows", "--no-shuffle")
        features = {
            "time": tf.io.FixedLenFeature([], tf.string), "hash": tf.io.FixedLenFeature([], tf.string),
            "times": tf.io.FixedLenFeature([3], tf.string),
        }
        found = []
        for record in tf.data.TFRecordDataset(str(self.root / "rows" / "train-00000.tfrecord")):
            example = tf.io.parse_single_example(record, features)
            floats = {name: tf.io.decode_raw(example[name], tf.float64).numpy().ravel().tolist() for name in ("time", "times")}
            # `decode_raw` has no uint64.
            unsigned = tf.bitcast(tf.io.decode_raw(example["hash"], tf.int64), tf.uint64).numpy()
            found.append({"time": floats["time"][0], "hash": int(unsigned[0]), "times": floats["times"]})
        self.assertEqual(found, rows)

    def write(self, path, examples, compression=""):
        with tf.io.TFRecordWriter(str(path), compression) as writer:
            for example in examples:
                writer.write(example.SerializeToString())

    def examples(self):
        """Other conventions: different names, labels from 1, lists, floats, a feature that is sometimes missing."""
        random = np.random.default_rng(2)
        for i in range(25):
            pixels = tf.constant(random.integers(0, 256, (8 + i, 9, 3)), tf.uint8)
            feature = {
                "jpeg": tf.train.Feature(bytes_list=tf.train.BytesList(value=[tf.io.encode_jpeg(pixels).numpy()])),
                "category": tf.train.Feature(int64_list=tf.train.Int64List(value=[1 + i % 4])),
                "box": tf.train.Feature(float_list=tf.train.FloatList(value=[0.25 * j for j in range(i % 3)])),
                "weight": tf.train.Feature(float_list=tf.train.FloatList(value=[i / 3])),
                "negative": tf.train.Feature(int64_list=tf.train.Int64List(value=[-i])),
            }
            if i % 2:
                feature["note"] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[f"nöte {i}".encode()]))
            yield tf.train.Example(features=tf.train.Features(feature=feature))

    def test_adopts_tensorflow_files(self):
        folder = self.root / "theirs"
        folder.mkdir()
        examples = list(self.examples())
        self.write(folder / "val-00000-of-00002", examples[:10])
        self.write(folder / "val-00001-of-00002", examples[10:])
        before = {p: p.read_bytes() for p in folder.iterdir()}
        shardtool("index", *sorted(folder.iterdir()), "--image", "jpeg", "--label", "category", "--label-offset", 1)
        self.assertEqual({p: p.read_bytes() for p in before}, before, "the shards themselves are untouched")
        shardtool("verify", folder, "--decode")
        for i, example in enumerate(examples):
            shown = json.loads(shardtool("show", folder, i, "--json"))
            features = example.features.feature
            self.assertEqual(shown["features"]["category"], list(features["category"].int64_list.value))
            self.assertEqual(shown["features"]["negative"], [-i])
            self.assertEqual(np.float32(shown["features"]["weight"][0]), np.float32(i / 3))
            self.assertEqual(shown["features"]["box"], list(features["box"].float_list.value))
            self.assertEqual(shown["features"].get("note"), [f"nöte {i}"] if i % 2 else None)
        listed = json.loads(shardtool("ls", folder, "--json"))["listed"]
        self.assertEqual([row["label"] for row in listed], [i % 4 for i in range(25)])
        out = self.root / "images"
        shardtool("extract", folder, out)
        images = sorted(p.read_bytes() for p in out.rglob("[!.]*") if p.is_file())
        self.assertEqual(images, sorted(e.features.feature["jpeg"].bytes_list.value[0] for e in examples))
        print(f"{len(examples)} records of TensorFlow's adopted and read back right")

    def test_packs_tensorflow_files(self):
        """Features of any name, in plain and compressed files, with a different shard size."""
        examples = list(self.examples())
        for compression in ["", "GZIP", "ZLIB"]:
            folder = self.root / f"theirs{compression}"
            folder.mkdir()
            self.write(folder / "val-00000-of-00002", examples[:10], compression)
            self.write(folder / "val-00001-of-00002", examples[10:], compression)
            out = self.root / f"packed{compression}"
            arguments = ["--map", "image=jpeg", "--map", "label=category", "--label-offset", 1, "--shard-size", "4kB"]
            shardtool("pack", folder, out, *arguments)
            shardtool("verify", out, "--decode")
            found = {}
            for record in tf.data.TFRecordDataset(sorted(map(str, out.glob("*.tfrecord")))):
                features = tf.train.Example.FromString(record.numpy()).features.feature
                found[features["image/key"].bytes_list.value[0].decode()] = features
            self.assertEqual(len(found), len(examples))
            for i, example in enumerate(examples):
                theirs = example.features.feature
                ours = found[f"val-0000{int(i >= 10)}-of-00002#{i - 10 * (i >= 10)}"]
                self.assertEqual(ours["image/encoded"], theirs["jpeg"])
                self.assertEqual(list(ours["image/class/label"].int64_list.value), [i % 4])
                for name in ["weight", "negative"]:
                    self.assertEqual(ours[name], theirs[name])
                self.assertEqual(list(ours["box"].float_list.value), list(theirs["box"].float_list.value))
                self.assertEqual(list(ours["note"].bytes_list.value), list(theirs["note"].bytes_list.value))
        print(f"{len(examples)} records of TensorFlow's packed, plain, gzip and zlib, every feature right")

    def test_shards_have_what_was_there_before_a_change_and_compact_writes_what_is(self):
        photos = PHOTOS or made_photos(self.root / "changing-photos")
        folder = self.root / "changing"
        shardtool("pack", photos, folder, "--shards", 2)

        def features():
            listed = [shard["file"] for shard in json.loads((folder / "dataset.json").read_text())["splits"][0]["shards"]]
            files = [str(folder / file) for file in listed]
            examples = map(tf.train.Example.FromString, tf.data.TFRecordDataset(files).as_numpy_iterator())
            return {example.features.feature["image/key"].bytes_list.value[0]: example.features.feature for example in examples}

        before = features()
        keys = sorted(before)
        values = self.root / "captions.csv"
        values.write_text("key,caption\n" + "".join(f'"{key.decode()}","caption of {key.decode()}"\n' for key in keys))
        shardtool("column", "add", folder, values)
        (self.root / "gone").write_bytes(b"\n".join(keys[::3]))
        shardtool("delete", folder, "--keys", self.root / "gone")
        same = features()
        self.assertEqual(sorted(same), keys)
        self.assertTrue(all("caption" not in feature for feature in same.values()))
        shardtool("compact", folder)
        after = features()
        self.assertEqual(sorted(after), sorted(set(keys) - set(keys[::3])))
        for key, feature in after.items():
            self.assertEqual(feature["caption"].bytes_list.value[0], b"caption of " + key)
            for name in before[key]:
                self.assertEqual(feature[name], before[key][name])
        print(f"{len(after)} records of a changed dataset, before and after it was compacted")

    def test_bare_files_are_verified_and_read(self):
        path = self.root / "bare.tfrecord"
        self.write(path, self.examples())
        shardtool("verify", path)
        damaged = bytearray(path.read_bytes())
        damaged[len(damaged) // 2] ^= 1
        path.write_bytes(damaged)
        report = shardtool("verify", path, status=1)
        self.assertRegex(report, "DataCrc|LengthCrc")
        with self.assertRaises(tf.errors.DataLossError):
            for _ in tf.data.TFRecordDataset(str(path)):
                pass

    def test_compressed_files_are_refused_by_name(self):
        for compression, name in [("GZIP", "gzip"), ("ZLIB", "zlib")]:
            path = self.root / f"{name}.tfrecord"
            self.write(path, self.examples(), compression)
            message = shardtool("index", path, status=2)
            self.assertIn(f"compressed with {name}", message)
            # The command in the message converts the file.
            command = message.split("convert it: ")[1].strip()
            subprocess.run(["sh", "-c", command], check=True)
            shardtool("verify", f"{path}.tfrecord")
            self.assertIn(f"{name}-compressed", shardtool("verify", path, status=1))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
