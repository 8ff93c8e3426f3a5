"""The Python that the loader's page of `shardtool view` shows runs as it is."""

import html
import re
import subprocess
import sys
import urllib.request

import pytest

QUERIES = [
    "batch=8&size=32",
    "batch=8&work=eval&size=56&order=sequential&workers=1&prefetch=2",
    "batch=8&work=read&order=interleaved&budget=64",
]


@pytest.mark.parametrize("query", QUERIES)
def test_python_of_the_loader_page(dataset, query):
    command = [sys.executable, "-m", "shardtool", "view", str(dataset), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        url = server.stdout.readline().strip()
        with urllib.request.urlopen(f"{url}train/loader?{query}", timeout=60) as answer:
            page = answer.read().decode()
        server.terminate()
    code = html.unescape(re.search(r"<pre[^>]*><code>(.*?)</code></pre>", page, re.DOTALL)[1])
    names = {}
    exec(code, names)
    loader, batch = names["loader"], names["batch"]
    for option in query.split("&"):
        name, value = option.split("=")
        if name == "batch":
            assert len(batch["label"]) == int(value)
        if name == "size":
            assert batch["image"].shape[1:] == (int(value), int(value), 3)
        if name == "budget":
            assert loader.stats()["memory"]["budget"] == int(value) << 20
        if name == "workers":
            assert loader.stats()["workers"] == int(value)
    loader.close()
