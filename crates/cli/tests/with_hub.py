"""shardtool reads datasets of the Hugging Face Hub, from a server on this machine that Hugging Face's own client accepts.

Usage: python with_hub.py SHARDTOOL    (run by scripts/test, in the environment `formats`)
"""

import io
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import pyarrow as pa
import pyarrow.parquet as pq
import trustme
from hub_server import Hub, Origin
from PIL import Image

SHARDTOOL = sys.argv[1]
#: Found in no file but those of the test, if it stays where it belongs.
TOKEN = "hf_TokenThatNobodyElseMaySee0123456789"
THEIRS = """
import json, sys, huggingface_hub as hub
api = hub.HfApi()
tree = {entry.path: getattr(entry, "size", None) for entry in api.list_repo_tree("o/n", repo_type="dataset", recursive=True)}
path = hub.hf_hub_download("o/n", "data/train-00000-of-00002.parquet", repo_type="dataset")
small = hub.hf_hub_download("o/n", "README.md", repo_type="dataset")
files = hub.HfFileSystem()
with files.open("datasets/o/n/data/train-00001-of-00002.parquet") as file:
    file.seek(100)
    middle = file.read(300).hex()
sha = api.dataset_info("o/n").sha
print(json.dumps([tree, open(path, "rb").read().hex(), open(small).read(), middle, sorted(files.glob("datasets/o/n/data/*")), sha]))
"""


def photo(seed):
    out = io.BytesIO()
    pixels = bytes((seed * 7 + i * i // 5 + i) % 256 for i in range(48 * 40 * 3))
    Image.frombytes("RGB", (48, 40), pixels).save(out, "JPEG", quality=90)
    return out.getvalue()


def parquet(first, rows=9):
    samples = range(first, first + rows)
    table = pa.table({
        "image": pa.array([{"bytes": photo(i), "path": f"{i:04}.jpg"} for i in samples]),
        "label": pa.array([i % 3 for i in samples]),
        "caption": [f"photograph {i}" for i in samples],
    })
    out = io.BytesIO()
    pq.write_table(table, out, compression="none", use_dictionary=False)
    return out.getvalue()


def dataset(seed=0):
    files = {f"data/train-{n:05}-of-00002.parquet": parquet(seed + 100 * n) for n in range(2)}
    return files | {"data/test-00000-of-00001.parquet": parquet(seed + 500, 4), "README.md": b"# About\n"}


class HubTest(unittest.TestCase):
    def setUp(self):
        self.temp = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.temp)
        self.home = self.temp / "home"
        self.home.mkdir()

    def environment(self, hub, **variables):
        kept = {name: os.environ[name] for name in ("PATH", "LD_LIBRARY_PATH") if name in os.environ}
        return kept | {
            "HOME": str(self.home), "HF_ENDPOINT": hub.url, "SHARDTOOL_STORE_TIMEOUT": "20", "HF_HUB_DISABLE_XET": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1", **variables,
        }

    def run_shardtool(self, hub, *args, status=0, **variables):
        """Runs shardtool; returns all that it printed."""
        run = subprocess.run(
            [SHARDTOOL, *map(str, args)], capture_output=True, text=True, env=self.environment(hub, **variables), timeout=120
        )
        text = run.stdout + run.stderr
        self.assertEqual(run.returncode, status, f"{args}:\n{text}")
        self.assertNotIn(TOKEN, text)
        self.assertNotIn("Signature", text)
        return text

    def local(self, files, name="local"):
        folder = self.temp / name
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        return folder

    def assert_token_stays(self, hub):
        """No byte that the second origin got, and no file that was written, is of the token."""
        self.assertNotIn(TOKEN, "\n".join(hub.storage.received))
        self.assertNotIn("uthorization", "\n".join(hub.storage.received))
        for path in self.temp.rglob("*"):
            self.assertNotIn(TOKEN, str(path))
            if path.is_file() and path != self.home / "token":
                self.assertNotIn(TOKEN.encode(), path.read_bytes(), path)
                self.assertNotIn(b"Signature=", path.read_bytes(), path)

    def test_their_client_accepts_the_server(self):
        with Hub(token=TOKEN) as hub:
            files = dataset()
            commit = hub.push("o/n", files)
            run = subprocess.run(
                [sys.executable, "-c", THEIRS], capture_output=True, text=True, env=self.environment(hub, HF_TOKEN=TOKEN)
            )
            self.assertEqual(run.returncode, 0, run.stderr)
            tree, first, small, middle, names, sha = json.loads(run.stdout)
            self.assertEqual({n: s for n, s in tree.items() if n != "data"}, {n: len(d) for n, d in files.items()})
            self.assertEqual(first, files["data/train-00000-of-00002.parquet"].hex())
            self.assertEqual((small, sha), (files["README.md"].decode(), commit))
            self.assertEqual(middle, files["data/train-00001-of-00002.parquet"][100:400].hex())
            self.assertEqual(names, sorted(f"datasets/o/n/{name}" for name in files if name.startswith("data/")))

    def test_a_private_dataset_is_packed_and_indexed_as_its_files(self):
        with Hub(token=TOKEN) as hub:
            files = dataset()
            commit = hub.push("o/n", files)
            local = self.local(files)
            expected, packed, index = self.temp / "expected", self.temp / "packed", self.temp / "index"
            self.run_shardtool(hub, "pack", local / "data", expected)
            self.run_shardtool(hub, "pack", "hf://datasets/o/n/data", packed, HF_TOKEN=TOKEN)
            self.run_shardtool(hub, "diff", expected, packed)
            # The token of `hf auth login`.
            (self.home / ".cache/huggingface").mkdir(parents=True)
            (self.home / ".cache/huggingface/token").write_text(TOKEN + "\n")
            text = self.run_shardtool(hub, "index", "hf://datasets/o/n/data", "--out", index)
            (self.home / ".cache/huggingface/token").unlink()
            source = f"hf://datasets/o/n@{commit}/data"
            self.assertIn(f"--source {source}", text)
            manifest = json.loads((index / "dataset.json").read_text())
            shards = [shard for split in manifest["splits"] for shard in split["shards"]]
            self.assertEqual({shard["source"] for shard in shards}, {source})
            for allowed in (source, f"hf://datasets/o/n@{commit}"):
                self.run_shardtool(hub, "diff", expected, index, "--source", allowed, HF_TOKEN=TOKEN)
            # The branch moves: the dataset is that of its commit.
            hub.push("o/n", dataset(50))
            self.run_shardtool(hub, "verify", index, "--decode", "--source", source, HF_TOKEN=TOKEN)
            # A loader, with a cache on disk: in the second epoch it asks for nothing.
            for _ in range(2):
                before = len(hub.storage.received)
                bench = ("bench", index, "--source", source, "--split", "train", "--batch", 6)
                self.run_shardtool(hub, *bench, "--cache", self.temp / "cache", HF_TOKEN=TOKEN)
            self.assertEqual(len(hub.storage.received), before)
            # Without --source: a refusal, and no request.
            before = len(hub.hub.received)
            text = self.run_shardtool(hub, "extract", index, self.temp / "none", status=2, HF_TOKEN=TOKEN)
            self.assertIn("--source", text)
            self.assertEqual(len(hub.hub.received), before)
            self.assert_token_stays(hub)
            self.assertTrue(any(TOKEN in head for head in hub.hub.received))

    def test_without_a_token_a_private_dataset_is_refused_with_the_way(self):
        with Hub(token=TOKEN) as hub:
            hub.push("o/n", dataset())
            for variables in ({}, {"HF_TOKEN": "hf_wrong"}, {"HF_HUB_DISABLE_IMPLICIT_TOKEN": "1"}):
                text = self.run_shardtool(hub, "pack", "hf://datasets/o/n/data", self.temp / "out", status=2, **variables)
                for part in ("hf://datasets/o/n", "401", "HF_TOKEN", "hf auth login"):
                    self.assertIn(part, text)
            self.assertFalse((self.temp / "out/dataset.json").exists())
        with Hub() as hub:
            hub.push("o/n", dataset())
            for url, word in [
                ("hf://datasets/o/other/data", "does not exist"),
                ("hf://datasets/o/n@nowhere/data", "does not exist"),
                ("hf://datasets/o/n/nowhere", "hf://datasets/o/n/nowhere"),
                ("hf://o/n/data", "hf://datasets/OWNER/NAME"),
                ("hf://models/o/n", "only datasets"),
            ]:
                text = self.run_shardtool(hub, "pack", url, self.temp / "out", status=2)
                self.assertIn(word, text)
            text = self.run_shardtool(hub, "pack", self.local(dataset()) / "data", "hf://datasets/o/n/out", status=2)
            self.assertIn("only read", text)
            text = self.run_shardtool(hub, "index", "hf://datasets/o/n/data", status=2)
            self.assertIn("--out", text)

    def test_a_packed_dataset_is_read_from_a_branch_and_from_a_commit(self):
        with Hub() as hub:
            local = self.local(dataset())
            packed = self.temp / "packed"
            self.run_shardtool(hub, "pack", local / "data", packed)
            files = {f"set/{p.relative_to(packed)}": p.read_bytes() for p in packed.rglob("*") if p.is_file()}
            commit = hub.push("o/n", files, branch="refs/convert/shards")
            hub.push("o/n", {"README.md": b"nothing"})
            for revision in (commit, "refs/convert/shards", "refs%2Fconvert%2Fshards"):
                url = f"hf://datasets/o/n@{revision}/set"
                self.run_shardtool(hub, "diff", packed, url)
                self.run_shardtool(hub, "verify", url, "--decode")
            self.run_shardtool(hub, "verify", "hf://datasets/o/n/set", status=2)

    def test_expired_signatures_are_renewed_and_busy_servers_asked_again(self):
        with Hub(token=TOKEN) as hub:
            files = dataset()
            hub.push("o/n", files)
            hub.uses = 3
            expected, index = self.temp / "expected", self.temp / "index"
            self.run_shardtool(hub, "pack", self.local(files) / "data", expected)
            text = self.run_shardtool(hub, "index", "hf://datasets/o/n/data", "--out", index, HF_TOKEN=TOKEN)
            source = text.split("--source ")[1].split()[0]
            # Orders in which each image is a request.
            self.run_shardtool(hub, "diff", expected, index, "--source", source, HF_TOKEN=TOKEN)
            self.run_shardtool(hub, "extract", index, self.temp / "images", "--source", source, HF_TOKEN=TOKEN)
            refused = [left for left in hub.signatures.values() if left < 0]
            self.assertTrue(refused, "no signature expired: the test shows nothing")
            self.assert_token_stays(hub)
            # Without the kept URL, each range would be asked for at both servers.
            resolved = sum("/resolve/" in head and head.startswith("GET") for head in hub.hub.received)
            self.assertLess(resolved, len(hub.storage.received))
            hub.busy = 1
            self.run_shardtool(hub, "pack", "hf://datasets/o/n/data", self.temp / "busy", HF_TOKEN=TOKEN)
            self.run_shardtool(hub, "diff", expected, self.temp / "busy")

    def test_redirects_and_links_that_lead_elsewhere_are_refused(self):
        def refused(hub, word, **variables):
            text = self.run_shardtool(
                hub, "pack", "hf://datasets/o/n/data", self.temp / "out", status=2, HF_TOKEN=TOKEN, **variables
            )
            self.assertIn(word, text)

        with Hub(token=TOKEN) as hub:
            hub.push("o/n", dataset())
            # A metadata service, and others without encryption; a loop.
            for target in ("http://169.254.169.254/latest", "http://example.com", "ftp://127.0.0.1", "file:///etc/passwd"):
                hub.sends_to = target
                refused(hub, "is not encrypted")
            hub.sends_to = f"{hub.url}/datasets/o/n/resolve/main/data/train-00000-of-00002.parquet?"
            refused(hub, "redirects")
            hub.sends_to, hub.wrong_next = hub.storage.url, True
            hub.push("o/n", dataset() | {f"data/validation-{n:05}-of-00004.parquet": parquet(900 + n, 2) for n in range(4)})
            refused(hub, "on another server")
            self.assertEqual(hub.storage.received, [])
        # An endpoint that is not encrypted, and not of this machine, is never asked.
        with Hub(token=TOKEN) as hub:
            hub.push("o/n", dataset())
            refused(hub, "not encrypted", HF_ENDPOINT="http://example.com")
            refused(hub, "no URL", HF_ENDPOINT="example.com")
            self.assertEqual(hub.hub.received, [])

    def test_a_list_names_what_lies_in_its_folder(self):
        with Hub(token=TOKEN) as hub:
            hub.push("o/n", dataset())
            for path in ("other/a.parquet", "data/more/a.parquet", "data", "/etc/passwd", "data/../../a.parquet"):
                hub.lists = lambda entries, path=path: [{"type": "file", "path": path, "size": 500, "oid": "0" * 40}, *entries]
                text = self.run_shardtool(
                    hub, "pack", "hf://datasets/o/n/data", self.temp / "out", status=2, HF_TOKEN=TOKEN
                )
                self.assertIn("does not lie in this folder" if ".." not in path else path, text)
            # More files than a page has.
            hub.push("o/n", dataset() | {f"data/validation-{n:05}-of-00004.parquet": parquet(900 + n, 2) for n in range(4)})
            hub.lists = lambda entries: []
            text = self.run_shardtool(hub, "pack", "hf://datasets/o/n/data", self.temp / "out", status=2, HF_TOKEN=TOKEN)
            self.assertIn("has no entry", text)
            self.assertFalse((self.temp / "out").exists())

    def test_no_proxy_sees_what_is_not_encrypted(self):
        proxy = Origin(lambda request: request.answer(502))
        self.addCleanup(proxy.close)
        with Hub(token=TOKEN) as hub:
            hub.push("o/n", dataset())
            names = ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HTTPS_PROXY", "https_proxy")
            variables = dict.fromkeys(names, proxy.url) | {"NO_PROXY": "", "no_proxy": ""}
            self.run_shardtool(hub, "pack", "hf://datasets/o/n/data", self.temp / "out", HF_TOKEN=TOKEN, **variables)
            self.run_shardtool(hub, "pack", self.local(dataset()) / "data", self.temp / "expected")
            self.run_shardtool(hub, "diff", self.temp / "expected", self.temp / "out")
            self.assertEqual(proxy.received, [])
            self.assert_token_stays(hub)

    def test_an_encrypted_server_cannot_lead_to_one_that_is_not(self):
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.temp / "ca.pem")
        with Hub(token=TOKEN, tls=authority.issue_cert("localhost")) as hub:
            hub.push("o/n", dataset())
            variables = {"HF_TOKEN": TOKEN, "SSL_CERT_FILE": str(self.temp / "ca.pem")}
            # The repository is found: the connection is good, and only the redirect is refused.
            text = self.run_shardtool(hub, "pack", "hf://datasets/o/n/data", self.temp / "out", status=2, **variables)
            self.assertIn("is not encrypted", text)
            self.assertEqual(hub.storage.received, [])
            self.assertTrue(any("/resolve/" in head for head in hub.hub.received))
            # Small files come from the Hub itself.
            hub.push("o/n", {"a.csv": b"path,label\n"})
            text = self.run_shardtool(hub, "pack", "hf://datasets/o/n/a.csv", self.temp / "out", status=2, **variables)
            self.assertNotIn("is not encrypted", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
