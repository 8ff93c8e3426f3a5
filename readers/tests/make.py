"""Writes small datasets, from the specification's rules for writers. For tests of readers only.

    python3 make.py FOLDER    writes FOLDER/tiny, FOLDER/columns and FOLDER/steps
"""

import hashlib
import json
import struct
import sys
from pathlib import Path

sys.dont_write_bytecode = True


def crc32c(data: bytes, crc: int = 0) -> int:
    """Bit by bit, so that it shares no table with the readers."""
    crc ^= 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


# --- records ---


def varint(value: int) -> bytes:
    value %= 2**64
    out = b""
    while value >= 128:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def field(number: int, data: bytes) -> bytes:
    return varint(number * 8 + 2) + varint(len(data)) + data


def feature(kind: str, values: list) -> bytes:
    if kind == "bytes":
        return field(1, b"".join(field(1, value) for value in values))
    if kind == "float":
        packed = b"".join(struct.pack("<f", value) for value in values)
        return field(2, field(1, packed) if values else b"")
    return field(3, field(1, b"".join(map(varint, values))) if values else b"")


def features(named: dict) -> bytes:
    entries = sorted((name.encode(), kind, values) for name, (kind, values) in named.items())
    return b"".join(field(1, field(1, name) + field(2, feature(kind, values))) for name, kind, values in entries)


def frame(data: bytes) -> bytes:
    length = struct.pack("<Q", len(data))
    return b"".join(
        (length, struct.pack("<I", masked(crc32c(length))), data, struct.pack("<I", masked(crc32c(data))))
    )


# --- index ---


def aligned(offset: int) -> int:
    return -(-offset // 64) * 64


def fixed(element: int, code: str, values: list, nulls: bool = False):
    data = b"".join(struct.pack(f"<{code}", 0 if value is None else value) for value in values)
    return 0, element, validity(values) if nulls else None, None, data


def variable(values: list, nulls: bool = False):
    ends = [0]
    for value in values:
        ends.append(ends[-1] + len(value or b""))
    offsets = b"".join(struct.pack("<q", end) for end in ends)
    return 1, 0, validity(values) if nulls else None, offsets, b"".join(value or b"" for value in values)


def validity(values: list):
    if None not in values:
        return None
    bits = bytearray((len(values) + 7) // 8)
    for row, value in enumerate(values):
        bits[row // 8] |= (value is not None) << row % 8
    return bytes(bits)


def index(columns: dict, records: int, shard: bytes) -> bytes:
    names = b"".join(name.encode() for name in columns)
    directory_bytes = 72 * len(columns) + len(names)
    entries, body = b"", b""
    at = 64 + directory_bytes
    for name, (kind, element, *parts) in columns.items():
        ranges, crcs = [], []
        for part in parts:
            if part is None:
                ranges += [0, 0]
                crcs.append(0)
                continue
            body += bytes(aligned(at) - at)
            at = aligned(at)
            ranges += [at, len(part)]
            crcs.append(crc32c(part))
            body += part
            at += len(part)
        entries += struct.pack("<BBHI6Q3II", kind, element, len(name.encode()), 0, *ranges, *crcs, 0)
    body += bytes(aligned(at) - at)
    directory = entries + names
    header = struct.pack(
        "<8sHHIIIQQIIQI", b"\x89STI\r\n\x1a\n", 1, 0, 0, 0, len(columns), records, len(shard), crc32c(shard),
        directory_bytes, aligned(at), crc32c(directory),
    )  # fmt: skip
    return header + struct.pack("<I", crc32c(header)) + directory + body


# --- datasets ---


def manifest(folder: Path, image, label, types: dict, classes: list, shards: list, more: dict, private: dict):
    def text(value):
        return json.dumps(value, ensure_ascii=False)

    def lines(items):
        return "[\n" + ",\n".join(f"    {item}" for item in items) + "\n  ]" if items else "[]"

    feature_lines = [f'{{"name": {text(n)}, "type": {text(types[n])}}}' for n in sorted(types, key=str.encode)]
    rows = ",\n".join(f"      {text(shard)}" for shard in shards)
    split = f'{{"name": "train", "shards": [\n{rows}\n    ]}}'
    members = {"format": '"shardtool"', "version": '"1.0"', **{name: text(value) for name, value in more.items()}}
    members.update(created_by='"readers/tests/make.py"', image=text(image), label=text(label), label_offset="0")
    members.update(features=lines(feature_lines), classes=lines([text(name) for name in classes]), splits=lines([split]))
    members.update({name: text(value) for name, value in private.items()}, crc32c='"00000000"')
    body = "{\n" + ",\n".join(f'  "{name}": {value}' for name, value in members.items()) + "\n}\n"
    data = body.encode()
    crc = crc32c(data)
    (folder / "dataset.json").write_bytes(data.replace(b'"crc32c": "00000000"\n}\n', b'"crc32c": "%08x"\n}\n' % crc))


def write(folder: Path, records: list, columns: dict, image, label, types: dict, classes: list, more={}, private={}, sha=None):
    """Writes a dataset of one shard."""
    (folder / "_index").mkdir(parents=True)
    shard = b"".join(map(frame, records))
    offsets = [sum(len(record) + 16 for record in records[:i]) for i in range(len(records))]
    columns = {"record_offset": fixed(2, "Q", offsets), **columns}
    index_bytes = index(columns, len(records), shard)
    (folder / "train-00000.tfrecord").write_bytes(shard)
    (folder / "_index/train-00000.tfrecord.index").write_bytes(index_bytes)
    line = {
        "file": "train-00000.tfrecord",
        "records": len(records),
        "bytes": len(shard),
        "crc32c": f"{crc32c(shard):08x}",
        "index_bytes": len(index_bytes),
        "index_crc32c": f"{crc32c(index_bytes):08x}",
    }
    if sha:
        line["sha256"] = sha(shard)
    manifest(folder, image, label, types, classes, [line], more, private)


def ranges(record: bytes, values: list) -> bytes:
    return b"".join(struct.pack("<III", record.index(value), len(value), crc32c(value)) for value in values)


def image_columns(records: list, images: list, keys: list) -> dict:
    return {
        "image_offset": fixed(1, "I", [record.index(i) if i else 0 for record, i in zip(records, images)]),
        "image_length": fixed(1, "I", [len(i or b"") for i in images]),
        "key": variable(keys),
    }


def tiny(folder: Path):
    images = [bytes.fromhex("ff000000ff000000ffffffff"), bytes.fromhex("010203040506")]
    sizes, keys = [(2, 2), (1, 2)], [b"cat/0.png", b"dog/1.png"]
    samples = [
        {
            "image/class/label": ("int64", [i]),
            "image/encoded": ("bytes", [images[i]]),
            "image/format": ("bytes", [b"raw"]),
            "image/height": ("int64", [sizes[i][0]]),
            "image/key": ("bytes", [keys[i]]),
            "image/width": ("int64", [sizes[i][1]]),
        }
        for i in range(2)
    ]
    records = [field(1, features(sample)) for sample in samples]
    columns = image_columns(records, images, keys)
    columns["feature:image/class/label"] = fixed(3, "q", [0, 1])
    columns["feature:image/height"] = fixed(3, "q", [2, 1])
    columns["feature:image/width"] = fixed(3, "q", [2, 2])
    types = {name: kind for sample in samples for name, (kind, _) in sample.items()}
    write(folder, records, columns, "image/encoded", "image/class/label", types, ["cat", "dog"])


def columns(folder: Path):
    """Nulls in columns of integers, floats and byte strings, value ranges, and a SHA-256."""
    frames = [bytes(range(20)), bytes(range(50, 70)), bytes(257)]
    samples = [
        {"caption": ("bytes", [b"a cat"]), "frames": ("bytes", [frames[0], frames[2]]), "score": ("float", [-0.0])},
        {"caption": ("bytes", []), "view": ("int64", [-3])},
        {"caption": ("bytes", [b""]), "frames": ("bytes", [frames[1]]), "score": ("float", [float("nan")])},
    ]
    records = [field(1, features(sample)) for sample in samples]
    found = image_columns(records, [None] * 3, [b"train-00000.tfrecord#%d" % row for row in range(3)])
    found["feature:caption"] = variable([b"a cat", None, b""], nulls=True)
    found["feature:score"] = fixed(4, "f", [-0.0, None, float("nan")], nulls=True)
    found["feature:view"] = fixed(3, "q", [None, -3, None], nulls=True)
    rows = [ranges(records[0], [frames[0], frames[2]]), b"", ranges(records[2], [frames[1]])]
    found["values:frames"] = variable(rows)
    types = {name: kind for sample in samples for name, (kind, _) in sample.items()}
    private = {"x-licence": "CC BY 4.0"}
    write(folder, records, found, None, None, types, [], private=private, sha=lambda data: hashlib.sha256(data).hexdigest())


def steps(folder: Path):
    """SequenceExamples, and an array."""

    def sequence(context: dict, lists: dict) -> bytes:
        entries = b""
        for name, values in sorted(lists.items()):
            entries += field(1, field(1, name.encode()) + field(2, b"".join(field(1, v) for v in values)))
        return field(1, features(context)) + field(2, entries)

    volume = {
        "volume": ("bytes", [b"\1\2\4\5", b"\3\6", b"\7\x08", b"\x09"]),
        "volume/chunk": ("int64", [2, 2]),
        "volume/codec": ("bytes", [b"raw"]),
        "volume/dtype": ("bytes", [b"u8"]),
        "volume/shape": ("int64", [3, 3]),
    }
    records = [
        sequence(
            {"image/key": ("bytes", [b"a"])},
            {
                "action": [feature("int64", [1]), feature("int64", [2, -3]), b"", feature("float", [])],
                "none": [b"", b""],
            },
        ),
        sequence({"image/key": ("bytes", [b"b"]), **volume}, {"action": [feature("int64", [7])]}),
    ]
    found = image_columns(records, [None, None], [b"a", b"b"])
    types = {"action": "int64", "action/lengths": "int64", "image/key": "bytes", "none/lengths": "int64"}
    types.update({name: kind for name, (kind, _) in volume.items()})
    more = {"requires": ["sequence-example"]}
    write(folder, records, found, None, None, types, [], more)


if __name__ == "__main__":
    for make in (tiny, columns, steps):
        make(Path(sys.argv[1], make.__name__))
