"""Checks which files outside of a dataset readers open: source files of virtual shards, and shards of other datasets; links, pipes and
devices, which the conformance kit cannot hold.

    python3 sources.py GOLDEN READER…

GOLDEN is the kit's folder of golden datasets; READER is a command of its protocol that implements `all`. Then also what the user
allows, with the Python reader.
"""

import json
import os
import shutil
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent))
from damage import Reader  # noqa: E402
from shardtool_reader import Damage, Dataset, crc32c, verify  # noqa: E402

CAT = "photos/cat.raw"


def outside(work: Path, dataset: Path) -> Path:
    """Moves the photos out of the dataset; returns their new folder."""
    shutil.move(dataset / "photos", work / "elsewhere")
    return work / "elsewhere"


def link_of_file(work: Path, dataset: Path):
    target = work / "cat.raw"
    shutil.move(dataset / CAT, target)
    (dataset / CAT).symlink_to(target)


def link_of_folder(work: Path, dataset: Path):
    (dataset / "photos").symlink_to(outside(work, dataset))


def link_of_parents(work: Path, dataset: Path):
    outside(work, dataset)
    (dataset / "photos").symlink_to("../elsewhere")


def link_to_neighbour(work: Path, dataset: Path):
    """A folder whose path begins as the dataset's does."""
    neighbour = Path(f"{dataset}-2")
    neighbour.mkdir()
    shutil.move(dataset / CAT, neighbour / "cat.raw")
    (dataset / CAT).symlink_to(neighbour / "cat.raw")


def link_to_nothing_outside(work: Path, dataset: Path):
    (dataset / CAT).unlink()
    (dataset / CAT).symlink_to(work / "nothing")


def link_inside(work: Path, dataset: Path):
    shutil.move(dataset / "photos", dataset / "other")
    (dataset / "photos").symlink_to("other")


def link_of_dataset(work: Path, dataset: Path):
    shutil.move(dataset, work / "real")
    dataset.symlink_to(work / "real")


def link_to_nothing_inside(work: Path, dataset: Path):
    (dataset / CAT).unlink()
    (dataset / CAT).symlink_to("nothing")


def pipe(work: Path, dataset: Path):
    (dataset / CAT).unlink()
    os.mkfifo(dataset / CAT)


def link_to_pipe(work: Path, dataset: Path):
    pipe(work, dataset)
    shutil.move(dataset / CAT, dataset / "pipe")
    (dataset / CAT).symlink_to("../pipe")


def device(work: Path, dataset: Path):
    (dataset / CAT).unlink()
    (dataset / CAT).symlink_to("/dev/zero")


# What each makes of the two records.
CASES = [
    (link_of_file, ["ForeignSource", None]),
    (link_of_folder, ["ForeignSource", "ForeignSource"]),
    (link_of_parents, ["ForeignSource", "ForeignSource"]),
    (link_to_neighbour, ["ForeignSource", None]),
    (link_to_nothing_outside, ["ForeignSource", None]),
    (link_inside, [None, None]),
    (link_of_dataset, [None, None]),
    (link_to_nothing_inside, ["MissingSource", None]),
    (pipe, ["MissingSource", None]),
    (link_to_pipe, ["MissingSource", None]),
    (device, ["ForeignSource", None]),
]


def made(golden: str, work: Path, change) -> Path:
    dataset = work / "dataset"
    shutil.copytree(Path(golden, "virtual-files"), dataset)
    change(work, dataset)
    return dataset


def check_readers(golden: str, commands: list) -> int:
    """Returns the number of answers that differ from what the specification says."""
    wrong = 0
    readers = [Reader(command) for command in commands]
    for change, expected in CASES:
        with tempfile.TemporaryDirectory() as work:
            dataset = made(golden, Path(work), change)
            for reader in readers:
                reader.ask("read", dataset)
                records = [line for line in map(json.loads, reader.answer()) if "record" in line and "lookup" not in line]
                found = [line.get("error") for line in sorted(records, key=lambda line: line["record"])]
                reader.ask("verify", dataset)
                lines = list(map(json.loads, reader.answer()))
                findings = sorted((line["record"], line["finding"]) for line in lines if "finding" in line)
                wanted = [(row, name) for row, name in enumerate(expected) if name is not None]
                if found != expected or findings != wanted:
                    print(f"{change.__name__}: {reader.command}: expected {expected}, found {found}, {findings}")
                    wrong += 1
    for reader in readers:
        reader.process.stdin.close()
    return wrong


def check_words(golden: str) -> int:
    """What the user of the Python reader allows."""
    wrong = 0
    with tempfile.TemporaryDirectory() as work:
        dataset = made(golden, Path(work), link_of_folder)
        folder = Path(work, "elsewhere")
        for sources, name in [
            ([folder], None),
            ([f"{folder}/"], None),
            ([work], None),
            (["/nonexistent-source", dataset / "photos"], None),
            ([], "ForeignSource"),
            ([folder / "cat"], "ForeignSource"),
            ([f"{folder}-2", str(folder)[:-1]], "ForeignSource"),
            (["https://host/a"], "ForeignSource"),
        ]:
            try:
                found = [len(record.image) for record in Dataset(dataset, sources=sources).splits["train"]]
            except Damage as damage:
                found = damage.name
            findings = {finding.name for finding in verify(dataset, sources=sources)[0]}
            if found != (name or [12, 6]) or findings != {name} - {None}:
                print(f"sources {sources}: expected {name}, found {found}, {findings}")
                wrong += 1
    return wrong


def clone(golden: str, work: Path, source=None) -> Path:
    """Makes a dataset of the shards of `tiny`, which is copied to `work`/base."""
    if not (work / "base").exists():
        shutil.copytree(Path(golden, "tiny"), work / "base")
    text = (work / "base/dataset.json").read_text()
    text = text.replace('"version": "1.0"', '"version": "1.1",\n  "requires": ["foreign"]')
    lines = []
    for line in text.splitlines():
        if '"index_crc32c"' in line:
            before, end, after = line.rpartition("}")
            line = f'{before}, "source": {json.dumps(str(source or work / "base"))}{end}{after}'
        lines.append(line)
    assert lines[-2].startswith('  "crc32c"')
    lines[-2] = '  "crc32c": "00000000"'
    body = "\n".join([*lines, ""]).encode()
    (work / "clone").mkdir(exist_ok=True)
    (work / "clone/dataset.json").write_bytes(body.replace(b"00000000", b"%08x" % crc32c(body)))
    return work / "clone"


def check_clones(golden: str, commands: list) -> int:
    """Shards of another dataset: refused without the user's word; with it, the records of that dataset. The readers are given no word,
    the Python reader is."""
    wrong = 0

    def differs(what, expected, found):
        nonlocal wrong
        if expected != found:
            print(f"clone, {what}: expected {expected}, found {found}")
            wrong += 1

    with tempfile.TemporaryDirectory() as temporary:
        work = Path(temporary)
        dataset = clone(golden, work)
        readers = [Reader(command) for command in commands]
        for reader in readers:
            reader.ask("read", dataset)
            records = [line for line in map(json.loads, reader.answer()) if "record" in line and "lookup" not in line]
            differs(reader.command, {"ForeignSource"}, {line.get("error") for line in records})
            reader.ask("verify", dataset)
            lines = list(map(json.loads, reader.answer()))
            found = {(line["finding"], line["record"]) for line in lines if "finding" in line}
            differs(reader.command, {("ForeignSource", None)}, found)
            reader.process.stdin.close()
        base = [(record.key, record.image) for split in Dataset(work / "base").splits.values() for record in split]

        def read(sources):
            try:
                return [(record.key, record.image) for split in Dataset(dataset, sources=sources).splits.values() for record in split]
            except Damage as damage:
                return damage.name

        for sources in ([work / "base"], [f"{work}/base/"], [work]):
            differs(sources, base, read(sources))
            differs(sources, ([], len(base)), verify(dataset, sources=sources))
        for sources in ([], [work / "base/_index"], [f"{work}/bas"], ["https://host/a"]):
            differs(sources, "ForeignSource", read(sources))
        shard = next((work / "base").glob("*.tfrecord"))
        index = work / f"base/_index/{shard.name}.index"
        # An index that lies outside of what is allowed keeps its shard closed.
        shutil.move(index, work / "index")
        index.symlink_to(work / "index")
        differs("a link of an index", "ForeignSource", read([work / "base"]))
        index.unlink()
        differs("no index", "MissingIndex", read([work / "base"]))
        shutil.move(work / "index", index)
        shard.unlink()
        differs("no shard", "MissingShard", read([work / "base"]))
        os.mkfifo(shard)
        differs("a pipe", "MissingShard", read([work / "base"]))
        clone(golden, work, "https://127.0.0.1:9/a")
        differs("a store", "ForeignSource", read([work]))
    return wrong


def main():
    os.environ.pop("SHARDTOOL_SOURCES", None)
    golden, commands = sys.argv[1], sys.argv[2:]
    wrong = check_readers(golden, commands) + check_words(golden) + check_clones(golden, commands)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
