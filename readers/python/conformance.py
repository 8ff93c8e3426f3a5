"""Runs the Python reader as the conformance kit asks: `python3 conformance.py TASK PATH` prints JSON lines.

    read DATASET      contents of splits, records and columns
    verify DATASET    findings, and the number of records without one
    order FILE        results of the vectors in a file
    all               reads lines `TASK PATH` from standard input, and ends each answer with {"end": exit status}

The exit status of another task is 3. `fixtures/conformance/README.md` describes the lines.
"""

import json
import struct
import sys

sys.dont_write_bytecode = True
import shardtool_order as ordering  # noqa: E402
import shardtool_reader as reader  # noqa: E402
import shardtool_schedule as scheduling  # noqa: E402

NOT_IMPLEMENTED = 3


def show(**line):
    sys.stdout.write(json.dumps(line) + "\n")


def digest(data) -> str:
    return f"{reader.crc32c(data):08x}:{len(data)}"


def printable(kind: str, stored):
    """Returns a stored value as the protocol writes it."""
    if stored is None:
        return None
    if kind == "bytes":
        return digest(stored)
    if kind == "float":
        return f"{stored:08x}"
    return str(stored)


def feature(value) -> dict:
    return {"type": value.kind, "values": [printable(value.kind, stored) for stored in value.stored]}


def logical(kind: str, numbers) -> dict:
    """Describes the numbers of a logical type: the bits of floats, as 16 hex digits; integers in decimal."""
    printed = str if kind == "uint64" else lambda number: f"{struct.unpack('<Q', struct.pack('<d', number))[0]:016x}"
    return {"type": kind, "values": None if numbers is None else [printed(number) for number in numbers]}


def attempt(decode):
    """Returns what `decode` returns, or its error as the protocol writes it."""
    try:
        return decode()
    except reader.Damage as damage:
        return {"error": damage.name}
    except reader.NotDecoded:
        return {"error": "unsupported"}


def array(record, name: str) -> dict:
    value = record.array(name)
    return {"shape": [str(length) for length in value.shape], "dtype": value.dtype, "data": digest(value.data)}


def is_raw(features, image) -> bool:
    kind = reader.one(features, "image/format", "bytes")
    return image is not None and kind in (b"raw", b"raw-zstd")


def show_record(manifest, split, i: int):
    try:
        record = split[i]
        features = record.features
    except reader.Damage as damage:
        show(split=split.name, record=i, error=damage.name)
        return
    entry = manifest.splits[split.name][split.shard_of(i)]
    image = reader.one(features, manifest.image, "bytes")
    class_id = record.class_id
    line = {
        "split": split.name,
        "record": record.id,
        "key": digest(reader.key_of(features, entry.file, record.row)),
        "data": digest(record.data),
        "image": None if image is None else digest(image),
        "class": None if class_id is None else str(class_id),
    }
    if manifest.stored:
        line["features"] = {name: feature(value) for name, value in features.items()}
    numbers = {name: logical(kind, record.numbers(name)) for name, kind in manifest.logical.items() if name in features}
    if numbers:
        line["numbers"] = numbers
    if is_raw(features, image):
        line["pixels"] = attempt(lambda: digest(record.pixels()[2]))
    names = record.array_names()
    if names:
        line["arrays"] = {name: attempt(lambda: array(record, name)) for name in names}
    show(**line)


def show_columns(manifest, split, number: int):
    """Shows the columns of features and value ranges in one shard, without those that the version replaces or drops."""
    changed = {*split.shards[number].companions, *manifest.dropped}
    try:
        index = reader.open_index(split.sources, split.shards[number])
    except reader.Damage:
        return
    for column in index.columns.values():
        prefix, _, name = column.name.partition(":")
        if prefix not in ("feature", "values") or name in changed:
            continue
        try:
            column.check()
        except reader.Damage as damage:
            show(split=split.name, shard=number, column=column.name, error=damage.name)
            continue
        rows = range(index.records)
        if column.name.startswith("values:"):
            values = [[[str(at), str(length), f"{crc:08x}"] for at, length, crc in column.ranges(row)] for row in rows]
        else:
            values = [printable(column.type, column.stored(row)) for row in rows]
        show(split=split.name, shard=number, column=column.name, values=values)


def read(folder: str):
    try:
        dataset = reader.Dataset(folder)
    except reader.Damage as damage:
        show(refused=damage.name)
        return
    for name, split in dataset.splits.items():
        show(split=name, records=len(split), fingerprint=f"{dataset.manifest.fingerprint(name):08x}")
    for name, split in dataset.splits.items():
        for i in range(len(split)):
            show_record(dataset.manifest, split, i)
        for number in range(len(split.shards)):
            show_columns(dataset.manifest, split, number)
        damaged: list = []
        for key, record in split.keys(lambda file, damage: damaged.append(file)).items():
            show(split=name, lookup=key.hex(), record=record if damaged else split.lookup(key))


def verify(folder: str):
    findings, good = reader.verify(folder)
    for finding in findings:
        show(finding=finding.name, file=finding.file, record=finding.record, offset=finding.offset)
    show(good=good)


def keys(question: dict) -> dict:
    key = ordering.derive_key(question["domain"], question["seed"], question["epoch"], question["tweak"])
    draws = [ordering.draw(key, i) for i in range(4)]
    answer = {
        "key": f"{key:016x}",
        "words": [f"{word:016x}" for word in draws],
        "floats_times_2_53": [word >> 11 for word in draws],
        "below_1000": [ordering.scale(word, 1000) for word in draws],
    }
    if "bounds" in question:
        bounds = question["bounds"]
        answer["below"] = [ordering.scale(ordering.draw(key, i), bound) for i, bound in enumerate(bounds)]
    return answer


def permutation(question: dict) -> dict:
    n = question["len"]
    packed = "seed" in question
    map_entry = ordering.pack_order(n, question["seed"]) if packed else ordering.Permutation(n, int(question["key"], 16))
    return {"y": [map_entry(x) for x in question.get("x", [])]}


def positions(question: dict) -> dict:
    parameters = [question[name] for name in ("order", "len", "seed", "epoch")]
    places = ordering.Order(*parameters, question.get("run", 0), question.get("window", 0))
    return {"place": [places[q] for q in question.get("position", [])]}


def turns(question: dict) -> dict:
    members, firsts = scheduling.turns(question["weights"]), scheduling.firsts(question["weights"])
    crc = scheduling.numbers_crc
    crcs = {"turns_crc32c": f"{crc(members):08x}", "firsts_crc32c": f"{crc(firsts):08x}"}
    return {"turns": members, "firsts": firsts, **crcs}


def run_of(question: dict):
    """Returns the run of a vector of schedules."""
    source = question["source"]
    members = [member["ids"] if isinstance(member, dict) else tuple(member) for member in source["members"]]
    stages = [(stage["start"], stage["weights"]) for stage in source["stages"]]
    schedule = scheduling.Schedule(members, stages, source["draws"], source["split"])
    names = ("order", "batch", "world", "policy", "remainder", "seed", "run", "window")
    return scheduling.Run(schedule, *(question[name] for name in names))


def steps(question: dict) -> dict:
    run, epoch, p = run_of(question), question["epoch"], question["p"]
    rows = [list(run.rows(epoch, p, rank)) for rank in range(question["world"])]
    mark = {"sample": "{}", "repeated": "+{}", "masked": "-"}

    def augmentation(q: int) -> str:
        return f"{ordering.draw(ordering.derive_key('augment', question['seed'], epoch, q), 0):016x}"

    return {
        "augment": [[None if kind == "masked" else augmentation(q) for kind, q, _ in batch] for batch in rows],
        "steps_left": run.steps_left(p),
        "dropped": run.dropped(p),
        "after": run.after(epoch, p),
        "rows": [[mark[kind].format(q) for kind, q, _ in batch] for batch in rows],
        "ids": [[id for _, _, id in batch] for batch in rows],
        "json": run.schedule.json,
        "crc32c": f"{run.schedule.checksum:08x}",
        "counts": [str(count) for count in run.schedule.counts(epoch, p, question["seed"])],
    }


def scheduled(question: dict) -> dict:
    """Returns the results of a vector of schedules: a step, substitutes, or whether a configuration is refused."""
    if question["vector"] == "steps":
        return steps(question)
    if question["vector"] == "substitutes":
        return {"candidates": run_of(question).substitutes(question["epoch"], question["position"])}
    if question["vector"] == "refusals":
        run_of(question)
        return {"refused": None}
    return {"unsupported": True}


def answer(question: dict) -> dict:
    """Returns the results of one vector. Other sources, their steps, and states belong to loaders."""
    try:
        if question["vector"] == "turns":
            return turns(question)
        source = question.get("source")
        if isinstance(source, dict) and source["kind"] == "scheduled":
            return scheduled(question)
        if "domain" in question:
            return keys(question)
        if "key" in question:
            return permutation(question)
        if "order" in question and "len" in question:
            return positions(question)
    except ordering.Refused as refused:
        return {"refused": refused.reason}
    return {"unsupported": True}


def order(file: str):
    with open(file, encoding="utf-8") as lines:
        for line in lines:
            show(**answer(json.loads(line)))


TASKS = {"read": read, "verify": verify, "order": order}


def main(arguments: list) -> int:
    if arguments == ["all"]:  # tasks from standard input, each answered by its lines and its exit status
        for request in sys.stdin:
            show(end=main(request.rstrip("\n").split(" ", 1)))
            sys.stdout.flush()
        return 0
    task, path = arguments
    if task not in TASKS:
        return NOT_IMPLEMENTED
    TASKS[task](path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
