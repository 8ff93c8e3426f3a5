"""shardtool packs files that other libraries write, and they read its exports: sample for sample.

Usage: python with_formats.py SHARDTOOL [PHOTOS]    (run by scripts/test, in the environment `formats`)
PHOTOS is a folder of class folders; without it the test makes its own images.
"""

import io
import json
import os
import pathlib
import struct
import subprocess
import sys
import tarfile
import tempfile
import unittest

os.environ["HF_HUB_OFFLINE"] = os.environ["HF_DATASETS_OFFLINE"] = "1"
import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import webdataset as wds
import zstandard
from cloudless import import_streaming
from PIL import Image

datasets.disable_progress_bars()
SHARDTOOL = sys.argv[1]
PHOTOS = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None


try:
    streaming = import_streaming()
except ImportError as error:
    streaming = None
    print(f"skipped: mosaicml-streaming cannot be imported: {error}")


def shardtool(*args, status=0):
    """Runs shardtool, checks its exit status, returns its standard output."""
    run = subprocess.run([SHARDTOOL, *map(str, args)], capture_output=True, text=True)
    assert run.returncode == status, f"{args}: status {run.returncode}\n{run.stdout}\n{run.stderr}"
    return run.stdout


def records(dataset, split="train"):
    """Returns the records of a split by key, parsed from the bytes of the shards by this script, with features as in protobuf."""
    found = {}
    manifest = json.loads((dataset / "dataset.json").read_text())
    for shard in next(s for s in manifest["splits"] if s["name"] == split)["shards"]:
        data, at = (dataset / shard["file"]).read_bytes(), 0
        while at < len(data):
            (length,) = struct.unpack_from("<Q", data, at)
            features = example(data[at + 12 : at + 12 + length])
            key = features["image/key"][0].decode()
            assert key not in found, key
            found[key] = features
            at += length + 16
    return found


def in_place(source, packed, *options):
    """Indexes a source where it is, and compares the shards that it describes with those that were packed of it, byte for byte."""
    before = {path: path.read_bytes() for path in source.iterdir() if path.is_file()}
    shardtool("index", source, *options)
    shardtool("verify", source, "--decode")
    exported = source.with_name(f"{source.name}-exported")
    shardtool("export", source, exported, "--to", "tfrecord")
    shards = sorted(packed.glob("*.tfrecord"))
    assert shards and [path.name for path in shards] == sorted(path.name for path in exported.glob("*.tfrecord"))
    for path in shards:
        assert path.read_bytes() == (exported / path.name).read_bytes(), path
    assert not list(source.glob("*.tfrecord")) and all(path.read_bytes() == data for path, data in before.items())


def fields(data):
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        tag = varint()
        assert tag & 7 == 2, "canonical records hold only delimited fields here"
        length = varint()
        yield tag >> 3, data[at : at + length]
        at += length


def example(data):
    """Parses a canonical tf.train.Example into lists of values, following example.proto."""
    features = {}
    for _, all_features in fields(data):
        for _, entry in fields(all_features):
            entry = dict(fields(entry))
            ((kind, values),) = fields(entry[2])
            values = [value for _, value in fields(values)]
            if kind == 2:
                values = list(np.frombuffer(b"".join(values), "<f4"))
            elif kind == 3:
                values = list(ints(b"".join(values)))
            features[entry[1].decode()] = values
    return features


def ints(data):
    value = shift = 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            yield value - (1 << 64) if value >> 63 else value
            value = shift = 0


class Formats(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory()
        cls.root = pathlib.Path(cls.tmp.name)
        cls.samples = list(cls.make_samples())
        cls.packed = cls.root / "packed"
        for sample in cls.samples:
            path = cls.root / "photos" / sample["class"] / sample["name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(sample["image"])
        rows = [dict(path=f"photos/{s['class']}/{s['name']}", label=s["class"], key=f"{s['class']}/{s['name']}",
                     caption=s["caption"], score=s["score"], box=s["box"], tags=s["tags"]) for s in cls.samples]
        (cls.root / "list.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        shardtool("pack", cls.root / "list.jsonl", cls.packed, "--shards", 3)

    @classmethod
    def tearDownClass(cls):
        cls.tmp.cleanup()

    @classmethod
    def make_samples(cls):
        """Makes images with a class and fields of every type, from photographs if available."""
        random = np.random.default_rng(3)
        if PHOTOS:
            classes = sorted(path for path in PHOTOS.iterdir() if path.is_dir())[:60]
            files = [(c.name, f.name, f.read_bytes()) for c in classes for f in sorted(c.iterdir())[:20]]
        else:
            files = []
            for c in range(4):
                for i in range(12):
                    coarse = Image.fromarray(random.integers(0, 256, (4, 5, 3)).astype(np.uint8))
                    out, form = io.BytesIO(), "PNG" if i % 5 == 4 else "JPEG"
                    coarse.resize((20 + i, 30 + c), Image.BICUBIC).save(out, form)
                    files.append((f"class {c}", f"{i}.{form.lower().replace('jpeg', 'jpg')}", out.getvalue()))
        names = sorted({c for c, _, _ in files})
        for i, (c, name, image) in enumerate(files):
            yield {"class": c, "label": names.index(c), "name": name, "image": image, "caption": f"sämple {i}",
                   "score": i / 8, "box": [i, 2, 3], "tags": [f"t{i}", "x"]}

    def folder(self, name):
        path = self.root / self.id().rsplit(".")[-1] / name
        path.mkdir(parents=True)
        return path

    def check(self, found, key, image="image/encoded", caption="caption", score="score", box="box", text=True):
        """Checks that a dataset's records are the samples, and verifies its files."""
        self.assertEqual(len(found), len(self.samples))
        for i, sample in enumerate(self.samples):
            features = found[key(i, sample)]
            self.assertEqual(features[image], [sample["image"]])
            self.assertEqual(features["image/class/label"], [sample["label"]])
            if text:
                self.assertEqual(features["image/class/text"], [sample["class"].encode()])
            self.assertEqual(features[caption], [sample["caption"].encode()])
            # float32, or float64 if the source says so.
            wide = isinstance(features[score][0], bytes)
            numbers = list(struct.unpack("<d", features[score][0])) if wide else features[score]
            self.assertEqual(numbers, [sample["score"] if wide else np.float32(sample["score"])])
            self.assertEqual(features[box], sample["box"])

    def test_packs_webdataset(self):
        """ShardWriter's tars, plain, gzipped and compressed with zstd."""
        for suffix in ["tar", "tar.gz", "tar.zst"]:
            folder = self.folder(suffix)
            pattern = str(folder / f"shard-%05d.{suffix.replace('.zst', '')}")
            with wds.ShardWriter(pattern, maxcount=len(self.samples) // 2 + 1, verbose=0) as writer:
                for i, s in enumerate(self.samples):
                    writer.write({"__key__": f"part/{i:06}", Image.open(io.BytesIO(s["image"])).format.lower(): s["image"],
                                  "cls": s["label"], "txt": s["caption"],
                                  "json": {"score": s["score"], "box": s["box"], "tags": s["tags"], "none": None}})
            if suffix == "tar.zst":
                for tar in list(folder.glob("*.tar")):
                    tar.with_suffix(".tar.zst").write_bytes(zstandard.compress(tar.read_bytes()))
                    tar.unlink()
            out = folder.with_name(f"{suffix}-out")
            shardtool("pack", folder, out, "--map", "caption=txt")
            shardtool("verify", out, "--decode")
            self.check(records(out), lambda i, s: f"part/{i:06}", text=False)
            if suffix == "tar":
                in_place(folder, out, "--map", "caption=txt")
            else:
                shardtool("index", folder, status=2)
        print(f"webdataset {wds.__version__}: {len(self.samples)} samples in, three compressions")

    def test_exports_webdataset(self):
        out = self.folder("x").with_name("out")
        shardtool("export", self.packed, out, "--to", "webdataset")
        expected = {f"{s['class']}/{s['name']}": s for s in self.samples}
        seen = set()
        for sample in wds.WebDataset(sorted(map(str, out.glob("*.tar"))), shardshuffle=False):
            fields = json.loads(sample["json"])
            key = fields["image/key"]
            s = expected[key]
            self.assertEqual(sample["__key__"], key.rsplit(".", 1)[0].replace(".", "_"))
            image = [sample[e] for e in ("jpg", "png") if e in sample]
            self.assertEqual((image, int(sample["cls"])), ([s["image"]], s["label"]))
            self.assertEqual([fields[n] for n in ("caption", "score", "box", "tags")],
                             [s[n] for n in ("caption", "score", "box", "tags")])
            self.assertEqual(fields["image/class/text"], s["class"])
            seen.add(key)
        self.assertEqual(seen, set(expected))
        decoded = next(iter(wds.WebDataset(str(next(out.glob("*.tar"))), shardshuffle=False).decode("pil")))
        self.assertIsInstance(decoded.get("jpg", decoded.get("png")), Image.Image)
        self.back("webdataset", out)

    def back(self, kind, out):
        """Packing exported files gives the same shards, byte for byte."""
        again = out.with_name(f"{out.name}-again")
        shardtool("pack", out, again, "--no-shuffle", "--from", kind)
        for shard in sorted(self.packed.glob("*.tfrecord")):
            self.assertEqual((again / shard.name).read_bytes(), shard.read_bytes(), shard.name)
        shardtool("verify", again)

    def test_packs_hugging_face_parquet(self):
        """`datasets` with Image and ClassLabel features, in several files, embedded bytes."""
        folder = self.folder("parquet")
        names = sorted({s["class"] for s in self.samples})
        features = datasets.Features({
            "picture": datasets.Image(), "label": datasets.ClassLabel(names=names), "caption": datasets.Value("string"),
            "score": datasets.Value("float64"), "box": datasets.List(datasets.Value("int32")),
            "tags": datasets.List(datasets.Value("string")), "flag": datasets.Value("bool"),
            "meta": {"source": datasets.Value("string"), "year": datasets.Value("int16")},
        })
        rows = {
            "picture": [{"bytes": s["image"], "path": f"{s['class']}/{s['name']}"} for s in self.samples],
            **{n: [s[n] for s in self.samples] for n in ("label", "caption", "score", "box", "tags")},
            "flag": [i % 2 == 0 if i % 3 else None for i in range(len(self.samples))],
            "meta": [{"source": "camera", "year": 1999} for _ in self.samples],
        }
        dataset = datasets.Dataset.from_dict(rows, features=features)
        for n in range(2):
            dataset.shard(2, n).to_parquet(folder / f"train-{n:05}-of-00002.parquet", batch_size=17)
        out = folder.with_name("out")
        shardtool("pack", folder, out)
        shardtool("verify", out, "--decode")
        found = records(out)
        self.check(found, lambda i, s: f"{s['class']}/{s['name']}")
        for i, s in enumerate(self.samples):
            features = found[f"{s['class']}/{s['name']}"]
            self.assertEqual(features["tags"], [t.encode() for t in s["tags"]])
            self.assertEqual(features["flag"], [int(i % 2 == 0)] if i % 3 else [])
            self.assertEqual((features["meta/source"], features["meta/year"]), ([b"camera"], [1999]))
        in_place(folder, out)
        print(f"datasets {datasets.__version__}: {len(self.samples)} rows in")

    def test_packs_hugging_face_objects_as_boxes(self):
        """`objects` as `datasets` writes them: a struct of lists, and a list of structs; boxes as COCO has them."""
        names = ["cup", "fork"]
        members = {
            "id": datasets.Value("int64"), "area": datasets.Value("int64"),
            "bbox": datasets.List(datasets.Value("float32"), length=4), "category": datasets.ClassLabel(names=names),
        }
        structs = {name: datasets.List(feature) for name, feature in members.items()}
        for layout, feature in [("struct", structs), ("list", datasets.List(members))]:
            rows, expected = {"image": [], "objects": [], "polygons": []}, {}
            for i, sample in enumerate(self.samples[:20]):
                width, height = Image.open(io.BytesIO(sample["image"])).size
                objects = [
                    {"id": 10 * i + o, "area": 6, "bbox": [o, 1, 2 + i, 3], "category": (i + o) % 2} for o in range(i % 4)
                ]
                transposed = {name: [o[name] for o in objects] for name in members}
                key = f"{i}.jpg"
                rows["image"].append({"bytes": sample["image"], "path": key})
                rows["objects"].append(transposed if layout == "struct" else objects)
                rows["polygons"].append([[1.0, 2.0], [3.0] * i] if i % 2 else [])
                boxes = [
                    v for x, y, w, h in transposed["bbox"]
                    for v in (x / width, y / height, (x + w) / width, (y + h) / height)
                ]
                expected[key] = (boxes, transposed["category"], transposed["id"], [2, i] if i % 2 else [])
            features = datasets.Features({
                "image": datasets.Image(), "objects": feature,
                "polygons": datasets.List(datasets.List(datasets.Value("float32"))),
            })
            folder = self.folder(f"objects-{layout}")
            datasets.Dataset.from_dict(rows, features=features).to_parquet(folder / "train.parquet")
            out = folder.with_suffix(".out")
            shardtool("pack", folder / "train.parquet", out)
            shardtool("verify", out, "--decode")
            found = records(out)
            self.assertEqual(len(found), 20)
            for key, (boxes, classes, ids, lengths) in expected.items():
                features = found[key]
                self.assertEqual(len(features["image/object/bbox"]), len(boxes))
                for ours, theirs in zip(features["image/object/bbox"], boxes):
                    self.assertAlmostEqual(ours, theirs, places=5)
                self.assertEqual(features["image/object/class/label"], classes)
                self.assertEqual(features["image/object/id"], ids)
                self.assertEqual(features["polygons/lengths"], lengths)
            self.assertEqual(json.loads((out / "dataset.json").read_text())["classes"], names)

    def test_packs_plain_parquet(self):
        """pyarrow tables with a binary column, for each compression."""
        table = pa.table({
            "image": pa.array([s["image"] for s in self.samples], pa.binary()),
            "label": pa.array([s["class"] for s in self.samples]).dictionary_encode(),
            "caption": [s["caption"] for s in self.samples],
            "score": pa.array([s["score"] for s in self.samples], pa.float32()),
            "box": pa.array([s["box"] for s in self.samples], pa.list_(pa.int64())),
            "id": [f"id-{i}" for i in range(len(self.samples))],
        })
        for compression in ["none", "snappy", "zstd", "gzip", "lz4"]:
            path = self.folder(compression) / "file.parquet"
            pq.write_table(table, path, compression=compression, row_group_size=31)
            out = path.parent.with_name(f"{compression}-out")
            shardtool("pack", path, out, "--map", "key=id")
            self.check(records(out), lambda i, s: f"id-{i}")
            # Synthetic images may repeat, so that codecs change too many of their bytes.
            if compression == "none" or (compression != "gzip" and PHOTOS):
                in_place(path.parent, out, "--map", "key=id")
                index = sum(file.stat().st_size for file in (path.parent / "_index").iterdir())
                print(f"{compression}: {index} bytes of index for {path.stat().st_size} of Parquet")
                self.assertLess(index, path.stat().st_size / 5)
        print(f"pyarrow {pa.__version__}: {len(self.samples)} rows in, five compressions")

    def test_exports_parquet(self):
        out = self.folder("x").with_name("out")
        shardtool("export", self.packed, out, "--to", "parquet")
        files = {"train": sorted(map(str, out.glob("*.parquet")))}
        dataset = datasets.load_dataset("parquet", data_files=files, cache_dir=str(out.with_name("cache")))["train"]
        names = sorted({s["class"] for s in self.samples})
        self.assertEqual(dataset.features["label"], datasets.ClassLabel(names=names))
        self.assertEqual(dataset.features["caption"], datasets.Value("string"))
        expected = {f"{s['class']}/{s['name']}": s for s in self.samples}
        self.assertEqual(dataset[0]["image"].size, dataset[0]["image"].convert("RGB").size)
        for row in dataset.cast_column("image", datasets.Image(decode=False)):
            s = expected.pop(row["image"]["path"])
            self.assertEqual((row["image"]["bytes"], row["label"]), (s["image"], s["label"]))
            for name in ("caption", "score", "box", "tags"):
                self.assertEqual(row[name], s[name])
        self.assertEqual(expected, {})
        table = pq.read_table(files["train"][0])
        self.assertEqual(table.schema.field("image").type, pa.struct([("bytes", pa.binary()), ("path", pa.string())]))
        self.back("parquet", out)

    def test_exports_folders(self):
        out = self.folder("x").with_name("out")
        shardtool("export", self.packed, out, "--to", "folder")
        dataset = datasets.load_dataset("imagefolder", data_dir=str(out), split="train",
                                        cache_dir=str(out.with_name("cache")))
        self.assertEqual(len(dataset), len(self.samples))
        expected = {f"{s['class']}/{s['name']}": s["image"] for s in self.samples}
        found = {str(p.relative_to(out)): p.read_bytes() for p in out.rglob("[!.]*") if p.is_file()}
        same = {os.path.splitext(k)[0]: v for k, v in found.items()} == {os.path.splitext(k)[0]: v for k, v in expected.items()}
        self.assertTrue(same)

    @unittest.skipUnless(streaming, "mosaicml-streaming is not there")
    def test_packs_mds(self):
        """MDSWriter with each encoding, plain and compressed."""
        columns = {"image": "jpeg" if PHOTOS else "bytes", "label": "int", "class": "str", "caption": "str",
                   "score": "float32", "half": "float16", "box": "ndarray:int32:3", "any": "ndarray", "meta": "json",
                   "big": "uint16", "number": "str_int", "blob": "bytes", "pickle": "pkl"}
        for compression in [None, "zstd", "gz:3"]:
            out = self.folder(str(compression).split(":")[0])
            random = np.random.default_rng(5)
            # One column has one type: of float64 and float32, float64.
            arrays = [random.normal(size=(2, 3)).astype([np.float64, np.float32][i % 2]) for i in range(len(self.samples))]
            with streaming.MDSWriter(out=str(out), columns=columns, compression=compression, size_limit=1 << 20) as writer:
                for i, s in enumerate(self.samples):
                    path = self.root / "photos" / s["class"] / s["name"]
                    writer.write({
                        "image": Image.open(path) if PHOTOS else s["image"], "label": s["label"], "class": s["class"],
                        "caption": s["caption"], "score": np.float32(s["score"]), "half": np.float16(0.1 * i),
                        "box": np.array(s["box"], np.int32), "any": arrays[i], "meta": {"i": i, "tags": s["tags"]},
                        "big": np.uint16(65535 - i), "number": -i, "blob": bytes([i % 256, 255]), "pickle": (i,)})
            packed = out.with_name(f"{out.name}-out")
            shardtool("pack", out, packed, "--map", "label=label", "--map", "class=class", "--map", "key=number")
            shardtool("verify", packed, "--decode")
            found = records(packed)
            self.check(found, lambda i, s: str(-i))
            if compression is None:
                in_place(out, packed, "--map", "label=label", "--map", "class=class", "--map", "key=number")
            for i, s in enumerate(self.samples):
                f = found[str(-i)]
                self.assertEqual(f["half"], [np.float32(np.float16(0.1 * i))])
                self.assertEqual((f["big"], f["blob"]), ([65535 - i], [bytes([i % 256, 255])]))
                self.assertEqual((f["meta/i"], f["meta/tags"]), ([i], [t.encode() for t in s["tags"]]))
                np.testing.assert_array_equal(np.frombuffer(b"".join(f["any"]), "<f8"), arrays[i].ravel())
                self.assertEqual(f["any/shape"], [2, 3])
        print(f"streaming {streaming.__version__}: {len(self.samples)} samples in, three compressions")

    @unittest.skipUnless(streaming, "mosaicml-streaming is not there")
    def test_packs_mds_pixels(self):
        """Encodings `pil`, `png` and `ndarray` for the image: pixels are kept."""
        random = np.random.default_rng(6)
        pixels = [random.integers(0, 256, (5 + i, 7, 3)).astype(np.uint8) for i in range(6)]
        for encoding in ["pil", "png", "ndarray", "ndarray:uint8"]:
            out = self.folder(encoding.replace(":", "-"))
            with streaming.MDSWriter(out=str(out), columns={"image": encoding, "n": "int64"}) as writer:
                for n, array in enumerate(pixels):
                    writer.write({"image": array if "nd" in encoding else Image.fromarray(array), "n": np.int64(n)})
            packed = out.with_name(f"{out.name}-out")
            shardtool("pack", out, packed, "--map", "key=n")
            for n, features in records(packed).items():
                image = Image.open(io.BytesIO(features["image/encoded"][0])).convert("RGB")
                np.testing.assert_array_equal(np.asarray(image), pixels[int(n)])

    def test_exports_tfrecord_with_dali_index(self):
        out = self.folder("x").with_name("out")
        shardtool("export", self.packed, out, "--to", "tfrecord", "--dali-index")
        for shard in sorted(self.packed.glob("*.tfrecord")):
            data = (out / shard.name).read_bytes()
            self.assertEqual(data, shard.read_bytes())
            expected, at = [], 0
            while at < len(data):
                size = struct.unpack_from("<Q", data, at)[0] + 16
                expected.append(f"{at} {size}")
                at += size
            self.assertEqual((out / f"{shard.stem}.idx").read_text().splitlines(), expected)

    def test_splits_of_hugging_face_keep_their_names(self):
        """Files as `datasets` names them become their splits, with its class names, in one command."""
        def split(labels):
            features = datasets.Features({"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])})
            return datasets.Dataset.from_dict({"image": [self.image(i) for i in range(len(labels))], "label": labels}, features)
        with tempfile.TemporaryDirectory() as temp:
            data, out = pathlib.Path(temp, "data"), pathlib.Path(temp, "out")
            data.mkdir()
            made = datasets.DatasetDict(train=split([0, 1, 1]), validation=split([1]), test=split([0, 0]))
            for name, of in made.items():
                of.to_parquet(data / f"{name}-00000-of-00001.parquet")
            planned = json.loads(shardtool("pack", data, out, "--dry-run", "--json"))
            self.assertEqual({s["split"]: s["inputs"] for s in planned["splits"]},
                             {name: [f"{name}-00000-of-00001.parquet"] for name in made})
            shardtool("pack", data, out)
            manifest = json.loads((out / "dataset.json").read_text())
            self.assertEqual(manifest["classes"], ["cat", "dog"])
            for name, of in made.items():
                labels = sorted(int(r["image/class/label"][0]) for r in records(out, name).values())
                self.assertEqual(labels, sorted(of["label"]))
            # Other names of the same ids are refused.
            other = made["test"].cast_column("label", datasets.ClassLabel(names=["dog", "cat"]))
            other.to_parquet(data / "test-00000-of-00001.parquet")
            shardtool("pack", data, pathlib.Path(temp, "other"), status=2)

    def test_parquet_reasons_are_the_true_ones(self):
        """Lists of images, labels of -1, floats as labels, several structs, and a compression that is not read."""
        image = lambda: {"bytes": self.image(1)["bytes"], "path": None}
        def refused(status, *options, compression="snappy", **columns):
            with tempfile.TemporaryDirectory() as temp:
                file = pathlib.Path(temp, "a.parquet")
                pq.write_table(pa.table(columns), file, compression=compression)
                run = subprocess.run([SHARDTOOL, "pack", file, temp + "/out", *options], capture_output=True, text=True)
                self.assertEqual(run.returncode, status, run.stdout + run.stderr)
                return run.stdout + run.stderr
        self.assertIn("images:frames", refused(2, images=[[image(), image()]]))
        self.assertIn("--map label=none", refused(2, image=[image()], label=[-1]))
        self.assertIn("1 sample = 1 record + 0 rejected", refused(0, "--map", "label=none", image=[image()], label=[-1]))
        self.assertIn("--map label=none", refused(2, image=[image()] * 2, label=[1.0, float("nan")]))
        refused(0, image=[image()] * 2, target=[0.5, 1.0])
        self.assertIn("--map image=mask", refused(2, mask=[image()], photo=[image()]))
        refused(0, "--map", "image=photo", second=[image()], photo=[image()])
        self.assertIn("not damaged", refused(2, compression="brotli", image=[image()]))

    def test_webdataset_names_with_dots_are_asked_for(self):
        """Names as a camera with a time in seconds has them, written by WebDataset."""
        with tempfile.TemporaryDirectory() as temp:
            tar, out = pathlib.Path(temp, "a.tar"), pathlib.Path(temp, "out")
            with wds.TarWriter(str(tar)) as sink:
                for i in range(4):
                    sink.write({"__key__": f"cam_0.{i:02}", "jpg": self.image(i)["bytes"], "cls": i})
            shardtool("pack", tar, out, status=2)
            shardtool("pack", tar, out, "--member-key", "last-dot")
            found = {key: int(r["image/class/label"][0]) for key, r in records(out).items()}
            self.assertEqual(found, {f"cam_0.{i:02}": i for i in range(4)})

    def image(self, number):
        """Returns a JPEG as Hugging Face's struct."""
        out = io.BytesIO()
        Image.new("RGB", (20 + number, 16), (number * 40, 90, 10)).save(out, "JPEG")
        return {"bytes": out.getvalue(), "path": None}

    def test_damaged_tars_are_reported(self):
        """A truncated tar: complete samples are packed, the others are listed."""
        folder = self.folder("tars")
        with tarfile.open(folder / "a.tar", "w") as tar:
            for i, s in enumerate(self.samples[:10]):
                info = tarfile.TarInfo(f"{i}.jpg")
                info.size = len(s["image"])
                tar.addfile(info, io.BytesIO(s["image"]))
        data = (folder / "a.tar").read_bytes()
        (folder / "a.tar").write_bytes(data[: len(data) // 2])
        out = folder.with_name("out")
        report = json.loads(shardtool("pack", folder, out, "--json", status=1))
        self.assertEqual(report["rejected"], 1)
        self.assertLess(report["images"], 10)
        for key, features in records(out).items():
            self.assertEqual(features["image/encoded"], [self.samples[int(key)]["image"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
