"""Reads shardtool datasets. Needs only Python's standard library (3.9 or later).

Written from `format-spec.md` alone, with its terms (`order-spec.md`: `shardtool_order.py`).

    Dataset(folder)            reads and checks the manifest, nothing else
    dataset.splits["train"]    a Split: len(), [i], iteration
    split[i]                   a Record: data, key, image, columns, features, class_id, pixels()
    verify(folder)             every Damage in a dataset, as a list

It decodes only raw pixels; images of other formats are returned as stored, for other libraries to decode.
Several threads may read one dataset. CRCs are computed in Python, at some ten MB/s.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import struct
import sys
from array import array
from pathlib import Path
from typing import Callable, Iterator, NamedTuple, Optional

MAX_DEPTH = 127  # of arrays and objects in a manifest; a dataset itself needs four


class Damage(Exception):
    """An error of the specification; `name` is its name there, `record` counts from 0 in the shard."""

    def __init__(self, name: str, file: str, text: str, record: Optional[int] = None):
        at = file if record is None else f"{file}, record {record}"
        super().__init__(f"{name}: {at}: {text}")
        self.name, self.file, self.record = name, file, record


class NotDecoded(Exception):
    """The image passed all checks of this reader, which does not decode its format."""


# --- CRC32C: four bytes per step, with two tables of 65536 entries ---


def _crc_tables():
    byte = []
    for n in range(256):
        for _ in range(8):
            n = (n >> 1) ^ (0x82F63B78 if n & 1 else 0)
        byte.append(n)
    two = []  # the state after two zero bytes, from its lower half
    for n in range(65536):
        n = byte[n & 255] ^ (n >> 8)
        two.append(byte[n & 255] ^ (n >> 8))
    return byte, two, [two[n & 65535] ^ (n >> 16) for n in two]


_BYTE, _HIGH, _LOW = _crc_tables()


def crc32c(data, crc: int = 0) -> int:
    """Returns the CRC32C of bytes; `crc` is that of the preceding bytes."""
    crc ^= 0xFFFFFFFF
    view = memoryview(data)
    whole = len(view) & ~3
    words = array("I", view[:whole].tobytes())
    if sys.byteorder == "big":
        words.byteswap()
    low, high = _LOW, _HIGH
    for word in words:
        word ^= crc
        crc = low[word & 65535] ^ high[word >> 16]
    for value in view[whole:]:
        crc = _BYTE[(crc ^ value) & 255] ^ (crc >> 8)
    return crc ^ 0xFFFFFFFF


def masked(crc: int) -> int:
    return (((crc >> 15) | (crc << 17)) + 0xA282EAD8) & 0xFFFFFFFF


# --- manifest ---


class ShardEntry(NamedTuple):
    """One shard's line of the manifest; `first` is the number of its first record in the split."""

    file: str
    records: int
    bytes: int
    crc32c: int
    index_bytes: int
    index_crc32c: int
    first: int


class _Object(list):
    """A JSON object as a list of its members, so that repeated members are detected."""


_END = re.compile(rb'\n  "crc32c": "([0-9a-f]{8})"\n\}\n\Z')
_TYPES = {
    "string": lambda v: isinstance(v, str),
    "string or null": lambda v: v is None or isinstance(v, str),
    "array": lambda v: isinstance(v, list) and not isinstance(v, _Object),
    "i64": lambda v: type(v) is int and -(2**63) <= v < 2**63,
    "u64": lambda v: type(v) is int and 0 <= v < 2**64,
    "kind": lambda v: v in ("bytes", "float", "int64"),
    "crc": lambda v: isinstance(v, str) and re.fullmatch("[0-9a-f]{8}", v) is not None,
}
_MANIFEST = {
    "format": "string", "version": "string", "created_by": "string", "image": "string or null",
    "label": "string or null", "label_offset": "i64", "features": "array", "classes": "array",
    "splits": "array", "crc32c": "crc",
}  # fmt: skip
_SHARD = {
    "file": "string", "records": "u64", "bytes": "u64", "crc32c": "crc", "index_bytes": "u64", "index_crc32c": "crc",
}  # fmt: skip


def _refuse(name: str, text: str):
    raise Damage(name, "dataset.json", text)


def _parse_json(data: bytes):
    def integer(text):
        # Many parsers read "-0" as a float; an integer must fit into 64 bits.
        return int(text) if len(text) <= 20 and text != "-0" else float("nan")

    def constant(text):
        raise ValueError(f"{text} is not JSON")

    def check(value, depth):
        if isinstance(value, list):
            if depth == MAX_DEPTH:
                raise ValueError(f"nested deeper than {MAX_DEPTH}")
            for item in value:
                for part in item if isinstance(item, tuple) else (item,):
                    check(part, depth + 1)
        elif isinstance(value, str):
            value.encode("utf-8")  # fails on a lone surrogate

    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_Object, parse_int=integer, parse_constant=constant
        )
        check(value, 0)
        return value
    except (ValueError, RecursionError) as error:
        _refuse("ManifestSyntax", f"not JSON: {error}")


def _members(value, types: dict, optional=()) -> dict:
    if not isinstance(value, _Object):
        _refuse("ManifestSyntax", f"expected an object, found {value!r:.40}")
    found = {}
    for name, member in value:
        if name not in types:
            continue
        if name in found:
            _refuse("ManifestSyntax", f"member {name!r} occurs twice")
        if not _TYPES[types[name]](member):
            _refuse("ManifestSyntax", f"member {name!r}: expected {types[name]}, found {member!r:.40}")
        found[name] = member
    for name in types:
        if name not in found and name not in optional:
            _refuse("ManifestSyntax", f"member {name!r} is absent")
    return found


def _ascending(what: str, names: list):
    encoded = [name.encode("utf-8") for name in names]
    for before, after in zip(encoded, encoded[1:]):
        if before >= after:
            _refuse("ManifestValue", f"{what} are not in strictly ascending byte order at {after!r}")


class Manifest:
    """The contents of `dataset.json`. The constructor checks them and raises Damage."""

    def __init__(self, data: bytes):
        end = _END.search(data)
        if end is None:
            _refuse("ManifestCrc", "the file does not end in its CRC")
        found = crc32c(data[: end.start(1)] + b"00000000" + data[end.end(1) :])
        if found != int(end[1], 16):
            _refuse("ManifestCrc", f"expected {end[1].decode()}, found {found:08x}")

        root = _parse_json(data)
        identity = _members(root, {"format": "string", "version": "string"}, ("format", "version"))
        if identity.get("format") != "shardtool" or identity.get("version", "").split(".")[0] != "1":
            _refuse("ManifestVersion", f"expected format shardtool and version 1, found {identity}")

        members = _members(root, _MANIFEST, ("created_by", "image", "label"))
        self.image: Optional[str] = members.get("image")
        self.label: Optional[str] = members.get("label")
        self.label_offset: int = members["label_offset"]
        features = [_members(item, {"name": "string", "type": "kind"}) for item in members["features"]]
        self.classes: list[str] = members["classes"]
        if not all(isinstance(name, str) for name in self.classes):
            _refuse("ManifestSyntax", "a class is not a string")
        splits = [_members(item, {"name": "string", "shards": "array"}) for item in members["splits"]]
        for split in splits:
            split["shards"] = [_members(item, _SHARD) for item in split["shards"]]

        _ascending("features", [feature["name"] for feature in features])
        self.features: dict[str, str] = {feature["name"]: feature["type"] for feature in features}
        if len(set(self.classes)) != len(self.classes):
            _refuse("ManifestValue", "a class occurs twice")
        _ascending("splits", [split["name"] for split in splits])
        self.splits: dict[str, list[ShardEntry]] = {}
        files = set()
        for split in splits:
            self.splits[split["name"]] = self._shards(split, files)

    @staticmethod
    def _shards(split: dict, files: set) -> list:
        if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}", split["name"]):
            _refuse("ManifestValue", f"{split['name']!r} is not a valid split name")
        first, shards = 0, []
        for item in split["shards"]:
            file = item["file"]
            if file in ("", ".", "..") or re.search("[/\\\\\0-\x1f\x7f-\x9f]", file) or file in files:
                _refuse("ManifestValue", f"{file!r} is not a plain file name, or is listed twice")
            files.add(file)
            for name in ("crc32c", "index_crc32c"):
                item[name] = int(item[name], 16)
            shards.append(ShardEntry(first=first, **item))
            first += item["records"]
        if first >= 2**63:
            _refuse("ManifestValue", f"split {split['name']!r} has {first} records")
        return shards

    def fingerprint(self, split: str) -> int:
        """Returns the fingerprint, a CRC32C that changes if a record of the split or their order changes."""
        return crc32c(b"".join(struct.pack("<QQI", s.records, s.bytes, s.crc32c) for s in self.splits[split]))


# --- files ---


def _map(path: Path, missing: str, name: str):
    """Maps a file and returns its bytes. (An empty file cannot be mapped.)"""
    try:
        with open(path, "rb") as file:
            if os.fstat(file.fileno()).st_size == 0:
                return memoryview(b"")
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except FileNotFoundError:
        raise Damage(missing, name, "no such file") from None


# --- shards ---


def read_frame(shard, offset: int, file: str, record: Optional[int], check_data_crc: bool = True):
    """Returns the data of the frame at an offset, and the offset of its end."""

    def damage(name, text):
        return Damage(name, file, f"frame at offset {offset}: {text}", record)

    left = len(shard) - offset
    if left < 12:
        raise damage("TruncatedFrame", f"expected 12 bytes, {left} are left")
    length, crc = struct.unpack_from("<QI", shard, offset)
    found = masked(crc32c(shard[offset : offset + 8]))
    if found != crc:
        start = bytes(shard[:2])
        if offset == 0 and (start == b"\x1f\x8b" or (start[0] == 0x78 and start[1] in b"\x01\x5e\x9c\xda")):
            raise Damage("CompressedRecords", file, "a gzip or zlib file: decompress it")
        raise damage("LengthCrc", f"expected {crc:08x}, found {found:08x}")
    if length + 16 > left:
        raise damage("TruncatedFrame", f"expected {length + 16} bytes, {left} are left")
    data = shard[offset + 12 : offset + 12 + length]
    (crc,) = struct.unpack_from("<I", shard, offset + 12 + length)
    if check_data_crc:
        found = masked(crc32c(data))
        if found != crc:
            raise damage("DataCrc", f"expected {crc:08x}, found {found:08x}")
    return data, offset + 16 + length


# --- records ---


class _Malformed(ValueError):
    pass


class Feature(NamedTuple):
    """`kind` is "bytes", "float" or "int64"; `begins` holds, for byte strings, their offsets in the record."""

    kind: str
    values: list
    begins: list


def _varint(data, at: int, end: int):
    value = 0
    for shift in range(0, 70, 7):
        if at == end:
            raise _Malformed("unfinished varint")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >= 2**64:
                break
            return value, at
    raise _Malformed("varint over 64 bits")


def _fields(data, at: int, end: int):
    """Yields field number, wire type, and begin and end of the value; for a varint, its value and None."""
    while at < end:
        tag, at = _varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if not 1 <= number < 2**29:
            raise _Malformed(f"field number {number}")
        if wire == 0:
            value, at = _varint(data, at, end)
            yield number, wire, value, None
            continue
        if wire == 2:
            size, at = _varint(data, at, end)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise _Malformed(f"wire type {wire}")
        if size > end - at:
            raise _Malformed(f"field {number} is longer than its message")
        yield number, wire, at, at + size
        at += size


def _messages(data, at: int, end: int, field: int):
    """Yields begin and end of the messages in one field of a message; skips other fields."""
    for number, wire, begin, stop in _fields(data, at, end):
        if number == field and wire == 2:
            yield begin, stop


def _list(data, kind: str, at: int, end: int, feature: Feature):
    for number, wire, begin, stop in _fields(data, at, end):
        if number != 1:
            continue
        if kind == "bytes" and wire == 2:
            feature.values.append(bytes(data[begin:stop]))
            feature.begins.append(begin)
        elif kind == "int64" and wire == 0:
            feature.values.append(begin - 2**64 if begin >> 63 else begin)
        elif kind == "int64" and wire == 2:
            while begin < stop:
                value, begin = _varint(data, begin, stop)
                feature.values.append(value - 2**64 if value >> 63 else value)
        elif kind == "float" and (wire == 5 or wire == 2 and (stop - begin) % 4 == 0):
            feature.values.extend(struct.unpack_from(f"<{(stop - begin) // 4}f", data, begin))
        else:
            raise _Malformed(f"a value of wire type {wire} in a list of {kind}")


def parse_example(data) -> dict:
    """Returns the features of a `tf.train.Example`, by name."""
    features: dict = {}
    for at, end in _messages(data, 0, len(data), 1):
        for entry, entry_end in _messages(data, at, end, 1):
            name, feature = "", None
            for begin, stop in _messages(data, entry, entry_end, 1):
                name = bytes(data[begin:stop]).decode("utf-8")
            for value, value_end in _messages(data, entry, entry_end, 2):
                feature = None  # the last value is used
                for number, wire, begin, stop in _fields(data, value, value_end):
                    if wire != 2 or number > 3:
                        raise _Malformed("a field in a Feature that is not a list")
                    kind = ("bytes", "float", "int64")[number - 1]
                    if feature is None or feature.kind != kind:
                        feature = Feature(kind, [], [])
                    _list(data, kind, begin, stop, feature)
            features.pop(name, None)
            if feature is not None:
                features[name] = feature
    return features


def one(features: dict, name: Optional[str], kind: str):
    """Returns the value of a feature that has exactly one, of this kind; otherwise None."""
    feature = features.get(name)
    return feature.values[0] if feature and feature.kind == kind and len(feature.values) == 1 else None


def _key(features: dict, file: str, row: int) -> bytes:
    for name in ("image/key", "image/filename"):
        value = one(features, name, "bytes")
        if value is not None:
            return value
    return f"{file}#{row}".encode("utf-8")


def _image_range(features: dict, name: Optional[str]):
    image = one(features, name, "bytes")
    return (0, 0) if image is None else (features[name].begins[0], len(image))


# --- index ---

_ELEMENTS = {1: ("u32", "I"), 2: ("u64", "Q"), 3: ("i64", "q"), 4: ("f32", "f")}
_REQUIRED = {"record_offset": (0, 2), "image_offset": (0, 1), "image_length": (0, 1), "key": (1, 0)}


def _aligned(offset: int) -> int:
    return (offset + 63) // 64 * 64


class Column:
    """One column of an index. Its contents are checked when it is first used."""

    def __init__(self, index: "Index", name: str, kind: int, element: int, parts: list):
        self.index, self.name, self.kind, self.element, self._parts = index, name, kind, element, parts
        self._rows = None

    def check(self):
        """Checks CRCs, padding and ends."""
        if self._rows is not None:
            return self
        data, file = self.index.data, self.index.file
        for offset, length, crc in self._parts:
            found = crc32c(data[offset : offset + length])
            if found != crc:
                raise Damage("ColumnCrc", file, f"{self.name}: expected {crc:08x}, found {found:08x}")
        for offset, length, _ in self._parts:
            if any(data[offset + length : _aligned(offset + length)]):
                raise Damage("IndexPadding", file, f"bytes after {self.name} are not zero")
        offset, length, _ = self._parts[0]
        code, size = ("Q", 8) if self.kind == 1 else (_ELEMENTS[self.element][1], self.index.width(self.element))
        rows = struct.unpack_from(f"<{length // size}{code}", data, offset)
        if self.kind == 1:
            before = 0
            for row, end in enumerate(rows):
                if end < before:
                    raise Damage("ColumnValue", file, f"{self.name}: ends decrease at row {row}")
                before = end
            if before != self._parts[1][1]:
                raise Damage("ColumnValue", file, f"{self.name}: {self._parts[1][1]} bytes, ends at {before}")
        self._rows = rows
        return self

    def __getitem__(self, row: int):
        rows = self.check()._rows
        if self.kind == 0:
            return rows[row]
        start = self._parts[1][0]
        return bytes(self.index.data[start + (rows[row - 1] if row else 0) : start + rows[row]])


class Index:
    """The index of a shard. Opening it checks header, directory and the padding after the directory."""

    def __init__(self, data, file: str):
        self.data, self.file = data, file

        def damage(name, text):
            return Damage(name, file, text)

        if len(data) < 64:
            raise damage("IndexTruncated", f"expected a header of 64 bytes, found {len(data)}")
        (magic, major, _, required, _, columns, self.records, self.shard_bytes, self.shard_crc32c, size, length,
         directory_crc, header_crc) = struct.unpack_from("<8sHHIIIQQIIQII", data)  # fmt: skip
        if magic != b"\x89STX\r\n\x1a\n":
            raise damage("IndexMagic", f"it begins with {magic!r}")
        if crc32c(data[:60]) != header_crc:
            raise damage("IndexHeaderCrc", f"expected {header_crc:08x}, found {crc32c(data[:60]):08x}")
        if major != 1:
            raise damage("IndexVersion", f"expected major version 1, found {major}")
        if required:
            raise damage("IndexFlags", f"required flags {required:#x}")
        if len(data) != length:
            name = "IndexTruncated" if len(data) < length else "IndexLayout"
            raise damage(name, f"expected {length} bytes, found {len(data)}")
        if 64 + size > length:
            raise damage("IndexLayout", f"a directory of {size} bytes runs past the index")
        if crc32c(data[64 : 64 + size]) != directory_crc:
            raise damage("IndexDirectoryCrc", f"expected {directory_crc:08x}")
        self._read_directory(columns, 64 + size)
        if any(data[64 + size : _aligned(64 + size)]):
            raise damage("IndexPadding", "bytes after the directory are not zero")
        self._check_columns()

    @staticmethod
    def width(element: int) -> int:
        return struct.calcsize("<" + _ELEMENTS[element][1])

    def _read_directory(self, columns: int, end: int):
        def layout(text):
            return Damage("IndexLayout", self.file, text)

        self.columns: dict = {}
        at = 64 + 48 * columns
        if at > end:
            raise layout(f"{columns} columns run past the directory")
        free = end
        for number in range(columns):
            kind, element, name_size, reserved, *first_second, crc1, crc2 = struct.unpack_from(
                "<BBHIQQQQII", self.data, 64 + 48 * number
            )
            if name_size > end - at:
                raise layout("a name runs past the directory")
            try:
                name = bytes(self.data[at : at + name_size]).decode("utf-8")
            except UnicodeDecodeError:
                raise layout("a name is not UTF-8") from None
            at += name_size
            if reserved or not (kind == 0 and element in _ELEMENTS or kind == 1 and element == 0):
                raise layout(f"{name}: kind {kind}, element {element}, reserved {reserved}")
            if name in self.columns:
                raise layout(f"two columns {name!r}")
            offset1, length1, offset2, length2 = first_second
            if length1 != self.records * (8 if kind == 1 else self.width(element)):
                raise layout(f"{name}: {length1} bytes for {self.records} records")
            parts = [(offset1, length1, crc1)]
            if kind == 1:
                parts.append((offset2, length2, crc2))
            elif offset2 or length2 or crc2:
                raise layout(f"{name}: a second part in a fixed-width column")
            for offset, length, _ in parts:
                if offset != _aligned(free) or length > len(self.data) - offset:
                    raise layout(f"{name}: a part at {offset} of {length} bytes, expected at {_aligned(free)}")
                free = offset + length
            self.columns[name] = Column(self, name, kind, element, parts)
        if at != end:
            raise layout(f"{end - at} bytes of the directory are left over")
        if _aligned(free) != len(self.data):
            raise layout(f"the columns end at {_aligned(free)}, the index at {len(self.data)}")

    def _check_columns(self):
        for name, expected in {**_REQUIRED, "jpeg_entries": (1, 0)}.items():
            column = self.columns.get(name)
            if (column is None and name in _REQUIRED) or (column and (column.kind, column.element) != expected):
                raise Damage("IndexColumn", self.file, f"column {name} is absent or of another kind")
        for name, column in self.columns.items():
            if name.startswith("feature:") and (column.kind, column.element) not in ((0, 3), (0, 4)):
                raise Damage("IndexColumn", self.file, f"column {name} is of another kind")


# --- datasets ---


class Shard:
    """A shard and its index, opened."""

    def __init__(self, folder: Path, manifest: Manifest, entry: ShardEntry):
        self.manifest, self.entry = manifest, entry
        self.data = _map(folder / entry.file, "MissingShard", entry.file)
        self.index = open_index(folder, entry)

    def frame(self, row: int, check_data_crc: bool):
        offset = self.index.columns["record_offset"][row]
        if len(self.data) < self.entry.bytes and (offset >= len(self.data)):
            raise length_damage(self.entry, len(self.data), row)
        if offset >= len(self.data):
            raise Damage("IndexMismatch", self.index.file, f"frame offset {offset} is past the shard's end", row)
        try:
            return read_frame(self.data, offset, self.entry.file, row, check_data_crc)[0]
        except Damage as damage:
            if damage.name == "TruncatedFrame" and len(self.data) < self.entry.bytes:
                raise length_damage(self.entry, len(self.data), row) from None
            raise


def length_damage(entry: ShardEntry, found: int, row: Optional[int] = None) -> Damage:
    return Damage("ShardLength", entry.file, f"expected {entry.bytes} bytes, found {found}", row)


def open_index(folder: Path, entry: ShardEntry) -> Index:
    """Opens the index of a shard and compares it with the manifest."""
    file = f"_index/{entry.file}.index"
    index = Index(_map(folder / file, "MissingIndex", file), file)
    if index.records != entry.records:
        raise Damage("RecordCount", file, f"expected {entry.records} records, found {index.records}")
    if (index.shard_bytes, index.shard_crc32c) != (entry.bytes, entry.crc32c):
        raise Damage("IndexMismatch", file, "length or CRC of the shard is not the manifest's")
    return index


class Record:
    """One sample. The CRC of `data` has been checked; values from the index are read on request."""

    def __init__(self, shard: Shard, row: int, check_data_crc: bool):
        self._shard, self.row = shard, row
        self.id: int = shard.entry.first + row
        self.data = shard.frame(row, check_data_crc)
        self._features = None

    @property
    def key(self) -> bytes:
        return self._shard.index.columns["key"][self.row]

    @property
    def image(self):
        """The image as stored, at the range in the index; None if the record has none."""
        columns = self._shard.index.columns
        offset, length = columns["image_offset"][self.row], columns["image_length"][self.row]
        if offset + length > len(self.data):
            raise Damage("IndexMismatch", self._shard.index.file, "image range past the record's end", self.row)
        return self.data[offset : offset + length] if offset else None

    @property
    def columns(self) -> dict:
        """The numbers of this record in the index, by feature name."""
        columns = self._shard.index.columns
        return {name[8:]: columns[name][self.row] for name in columns if name.startswith("feature:")}

    @property
    def features(self) -> dict:
        """The parsed record: name → Feature. Empty in an opaque dataset."""
        if self._features is None:
            try:
                self._features = parse_example(self.data) if self._shard.manifest.features else {}
            except ValueError as error:
                raise Damage("MalformedExample", self._shard.entry.file, str(error), self.row) from None
        return self._features

    @property
    def class_id(self) -> Optional[int]:
        """Stored label − `label_offset`; None without a label, or if the difference does not fit an i64."""
        label = one(self.features, self._shard.manifest.label, "int64")
        class_id = None if label is None else label - self._shard.manifest.label_offset
        return class_id if class_id is not None and -(2**63) <= class_id < 2**63 else None

    def pixels(self):
        """Returns (height, width, bytes) of raw pixels, or None without an image. Raises NotDecoded for other formats."""
        return pixels(self.features, self._shard.manifest.image, self._shard.entry.file, self.row)


def pixels(features: dict, image_name: Optional[str], file: str, row: int):
    """See Record.pixels."""
    image = one(features, image_name, "bytes")
    if image is None:
        return None
    kind = one(features, "image/format", "bytes")
    if kind not in (None, *b"raw jpeg png webp gif bmp tiff avif jxl jp2 heif raw-zstd".split()):
        raise Damage("ImageDecode", file, f"image/format {kind!r} is not known", row)
    if kind != b"raw":
        raise NotDecoded(f"image/format {kind!r}")
    height, width = (one(features, name, "int64") for name in ("image/height", "image/width"))
    if height is None or width is None or height < 0 or width < 0 or height * width * 3 != len(image):
        raise Damage("PixelsLength", file, f"height {height}, width {width}, {len(image)} bytes", row)
    return height, width, image


class Split:
    """The records of a split, numbered from 0 across its shards."""

    def __init__(self, dataset: "Dataset", name: str):
        self._dataset, self.name = dataset, name
        self.shards = dataset.manifest.splits[name]
        self._open: dict = {}

    def __len__(self) -> int:
        return self.shards[-1].first + self.shards[-1].records if self.shards else 0

    def __getitem__(self, i: int) -> Record:
        if not 0 <= i < len(self):
            raise IndexError(f"record {i} of {len(self)} in split {self.name!r}")
        low, high = 0, len(self.shards)  # the last shard that begins at or before i and is not empty
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.shards[middle].first <= i else (low, middle)
        entry = self.shards[low]
        if low not in self._open:
            self._open[low] = Shard(self._dataset.folder, self._dataset.manifest, entry)
        return Record(self._open[low], i - entry.first, self._dataset.check_data_crc)

    def __iter__(self) -> Iterator[Record]:
        return self.records()

    def records(self, on_damage: Optional[Callable[[int, Damage], None]] = None) -> Iterator[Record]:
        """Iterates over all records. If a record cannot be read, calls `on_damage` with its number and the Damage, and
        continues; without `on_damage`, raises the Damage."""
        for i in range(len(self)):
            try:
                record = self[i]
            except Damage as damage:
                if on_damage is None:
                    raise
                on_damage(i, damage)
                continue
            yield record


class Dataset:
    """The manifest and splits of a dataset. A shard is opened when one of its records is first read."""

    def __init__(self, folder, check_data_crc: bool = True):
        self.folder, self.check_data_crc = Path(folder), check_data_crc
        self.manifest = Manifest((self.folder / "dataset.json").read_bytes())
        self.splits = {name: Split(self, name) for name in self.manifest.splits}


# --- verification ---


def verify(folder) -> list:
    """Returns all damage of a dataset. Raw pixels are compared with height and width; images of other formats are
    not decoded."""
    folder = Path(folder)
    try:
        manifest = Manifest((folder / "dataset.json").read_bytes())
    except Damage as damage:
        return [damage]
    entries = [entry for shards in manifest.splits.values() for entry in shards]
    return [damage for entry in entries for damage in _verify_shard(folder, manifest, entry)]


def _verify_shard(folder: Path, manifest: Manifest, entry: ShardEntry) -> list:
    index_file = f"_index/{entry.file}.index"
    found: list = []
    index = None
    try:
        data = _map(folder / entry.file, "MissingShard", entry.file)
    except Damage as damage:
        found.append(damage)
        data = None
    if data is not None and len(data) != entry.bytes:
        found.append(length_damage(entry, len(data)))
    try:
        index = open_index(folder, entry)
    except Damage as damage:
        found.append(damage)
    good: dict = {}
    for column in index.columns.values() if index else ():
        try:
            good[column.name] = column.check()
        except Damage as damage:
            found.append(damage)
    if data is not None:
        walk = _Walk(manifest, entry, data, good, found, index_file)
        walk.run()
        if not any(d.file == entry.file for d in found) and crc32c(data) != entry.crc32c:
            found.append(Damage("ShardCrc", entry.file, f"expected {entry.crc32c:08x}, found {crc32c(data):08x}"))
    if not any(d.file == index_file for d in found):
        data = _map(folder / index_file, "MissingIndex", index_file)
        if (len(data), crc32c(data)) != (entry.index_bytes, entry.index_crc32c):
            found.append(Damage("IndexCrc", index_file, "length or CRC is not the manifest's"))
    return found


class _Walk:
    """Reads a shard from its first frame to its last and compares each with its row of the index."""

    def __init__(self, manifest, entry, data, columns, found, index_file):
        self.manifest, self.entry, self.columns, self.found = manifest, entry, columns, found
        self.index_file = index_file
        # A wrong length is reported once, without its consequences.
        self.sound_length = len(data) == entry.bytes
        self.data = data[: entry.bytes]

    def run(self):
        at, row, complete = 0, 0, self.sound_length
        offsets = self.columns.get("record_offset")
        while at < len(self.data):
            try:
                data, after = read_frame(self.data, at, self.entry.file, row, False)
            except Damage as damage:
                if damage.name != "TruncatedFrame" or self.sound_length:
                    self.found.append(damage)
                complete = False
                after = offsets[row + 1] if offsets and row + 1 < self.entry.records else 0
                if damage.name == "CompressedRecords" or not at < after < len(self.data):
                    break
                at, row = after, row + 1
                continue
            if row < self.entry.records:
                self._record(at, row, data)
            at, row = after, row + 1
        if complete and row != self.entry.records and not any(d.name == "RecordCount" for d in self.found):
            self.found.append(
                Damage("RecordCount", self.entry.file, f"expected {self.entry.records} records, found {row}")
            )

    def _record(self, at: int, row: int, data):
        try:
            self._compare("record_offset", row, at)
            read_frame(self.data, at, self.entry.file, row)
            try:
                features = parse_example(data) if self.manifest.features else {}
            except ValueError as error:
                raise Damage("MalformedExample", self.entry.file, str(error), row) from None
            offset, length = _image_range(features, self.manifest.image)
            self._compare("image_offset", row, offset)
            self._compare("image_length", row, length)
            self._compare("key", row, _key(features, self.entry.file, row))
            for name, column in self.columns.items():
                if name.startswith("feature:"):
                    self._compare(name, row, one(features, name[8:], "int64" if column.element == 3 else "float"))
            pixels(features, self.manifest.image, self.entry.file, row)
        except NotDecoded:
            pass
        except Damage as damage:
            self.found.append(damage)

    def _compare(self, name: str, row: int, expected):
        if name not in self.columns:
            return
        value = self.columns[name][row]
        if isinstance(expected, float):  # bitwise: NaN equals itself, and 0 differs from −0
            value, expected = struct.pack("<f", value), struct.pack("<f", expected)
        if value != expected:
            raise Damage("IndexMismatch", self.index_file, f"{name}: record {expected!r}, index {value!r}", row)
