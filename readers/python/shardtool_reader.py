"""Reads shardtool datasets, version 1.1. Needs only Python's standard library (3.9 or later).

Written from `format-spec.md` alone, with its terms (`order-spec.md`: `shardtool_order.py`).

    Dataset(folder)            reads and checks the manifest, nothing else; Dataset(folder, version="paper") an earlier version
    dataset.splits["train"]    a Split: len(), [i], lookup(key), iteration
    split[i]                   a Record: data, key, image, columns, features, class_id, pixels(), array(name)
    verify(folder)             every Damage in a dataset, and the number of records without one

Both take `sources=["/photos"]`: folders outside the dataset's in which its shards, and source files of virtual ones, may lie.

It decodes raw pixels and arrays; images of other formats are returned as stored, for other libraries to decode. zstd
frames are decoded if Python has `compression.zstd` (3.14 or later) or the package `zstandard`; otherwise only their
headers are checked. Files are mapped: if one is truncated while it is read, the process ends with SIGBUS. Several threads
may read one dataset. CRCs are computed in Python, at some ten MB/s.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import re
import struct
import sys
from array import array
from bisect import bisect_right
from pathlib import Path
from typing import Callable, Iterator, NamedTuple, Optional

try:
    from compression import zstd as _zstd
except ImportError:
    try:
        import zstandard as _zstd
    except ImportError:
        _zstd = None

MAX_DEPTH = 127  # of arrays and objects in a manifest; a dataset itself needs four
MAX_DECODED = 1 << 30  # bytes of one image or array that are decompressed
KNOWN_REQUIREMENTS = ("foreign", "sequence-example", "versions")


class Damage(Exception):
    """An error of the specification. `name` is its name there, `record` counts from 0 in the shard, `offset` is that of
    the record's frame."""

    def __init__(self, name: str, file: str, text: str, record: Optional[int] = None, offset: Optional[int] = None):
        at = file if record is None else f"{file}, record {record}"
        super().__init__(f"{name}: {at}: {text}")
        self.name, self.file, self.record, self.offset = name, file, record, offset


class NotDecoded(Exception):
    """The image or array passed all checks of this reader, which does not decode its format."""


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


class FilePart(NamedTuple):
    """Where a companion lies: a part of a file in `_columns`."""

    file: str
    offset: int
    bytes: int
    crc32c: int

    @property
    def path(self) -> str:
        return f"_columns/{self.file}"


class Deleted(NamedTuple):
    """The number of a shard's deleted rows, and their bitmap."""

    rows: int
    bitmap: FilePart


class Companion(NamedTuple):
    """A column that replaces a feature in a shard: `feature:NAME`, or `encoded:NAME` whose rows are messages."""

    name: str
    part: FilePart

    @property
    def is_encoded(self) -> bool:
        return self.name.startswith("encoded:")


class ShardEntry(NamedTuple):
    """One shard's line of the manifest; `first` is the number of its first record in the split. `records` counts all rows;
    `companions` are by feature; `source` is the folder of the source files of a virtual shard, or of the dataset that has the shard
    and its index; None for the dataset's own."""

    file: str
    records: int
    bytes: int
    crc32c: int
    index_bytes: int
    index_crc32c: int
    sha256: Optional[str]
    first: int
    deleted: Optional[Deleted]
    companions: dict
    is_virtual: bool
    source: Optional[str]

    @property
    def live(self) -> int:
        """Rows that are not deleted."""
        return self.records if self.deleted is None else self.records - self.deleted.rows


class _Object(list):
    """A JSON object as a list of its members, so that repeated members are detected."""


_END = re.compile(rb'\n  "crc32c": "([0-9a-f]{8})"\n\}\n\Z')
_VERSION_1 = re.compile(r"1\.(0|[1-9][0-9]*)")
_SPLIT_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_FORBIDDEN_IN_FILE = re.compile("[/\\\\:\0-\x1f\x7f-\x9f]")
_TAG_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,99}")
_COMPANION_FILE = re.compile(r"[0-9a-f]{16}\.columns")
_BITMAP_FILE = re.compile(r"[0-9a-f]{16}\.deleted")
_VERSION_FOLDERS = (b"_versions", b"_columns")
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")
_URL = re.compile("[A-Za-z][A-Za-z0-9+.-]*://")
_DEVICE = re.compile(r"CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³]", re.ASCII | re.IGNORECASE)


def _is_array(value) -> bool:
    return isinstance(value, list) and not isinstance(value, _Object)


def _is_string(value) -> bool:
    return isinstance(value, str)


def _is_strings(value) -> bool:
    return _is_array(value) and all(isinstance(item, str) for item in value)


def _is_hex(value, digits: int) -> bool:
    return isinstance(value, str) and re.fullmatch(f"[0-9a-f]{{{digits}}}", value) is not None


_TYPES = {
    "string": _is_string,
    "string or null": lambda v: v is None or isinstance(v, str),
    "array": _is_array,
    "object": lambda v: isinstance(v, _Object),
    "boolean": lambda v: isinstance(v, bool),
    "strings": _is_strings,
    "i64": lambda v: type(v) is int and -(2**63) <= v < 2**63,
    "u64": lambda v: type(v) is int and 0 <= v < 2**64,
    "feature type": lambda v: v in ("bytes", "float", "int64"),
    "CRC": lambda v: _is_hex(v, 8),
    "SHA-256": lambda v: _is_hex(v, 64),
}
_IDENTITY = {"format": "string", "version": "string", "requires": "strings"}
_MANIFEST = {
    "format": "string",
    "version": "string",
    "requires": "strings",
    "created_by": "string",
    "image": "string or null",
    "label": "string or null",
    "label_offset": "i64",
    "features": "array",
    "classes": "strings",
    "splits": "array",
    "crc32c": "CRC",
}
_FEATURE = {"name": "string", "type": "feature type", "logical": "string"}
#: Logical types: how struct unpacks the eight bytes of a number.
_LOGICAL = {"float64": "<d", "uint64": "<Q"}
_SPLIT = {"name": "string", "shards": "array"}
_SHARD = {
    "file": "string",
    "records": "u64",
    "bytes": "u64",
    "crc32c": "CRC",
    "index_bytes": "u64",
    "index_crc32c": "CRC",
    "sha256": "SHA-256",
}
# Further members of a dataset that requires `versions`.
_CHANGED = {"dataset_version": "object", "tags": "array", "columns": "array"}
_CHANGED_SHARD = {"deleted": "object", "columns": "array"}
# Further members of a shard in a dataset that requires `foreign`.
_FOREIGN_SHARD = {"virtual": "boolean", "source": "string"}
_VERSION = {"number": "u64", "parent": "CRC", "command": "string", "message": "string", "author": "string"}
_TAG = {"name": "string", "number": "u64"}
_COLUMN = {**_FEATURE, "dropped": "boolean"}
_PART = {"file": "string", "offset": "u64", "bytes": "u64", "crc32c": "CRC"}
_DELETED = {"rows": "u64", **_PART}
_COMPANION = {"name": "string", **_PART}


def _refuse(name: str, text: str):
    raise Damage(name, "dataset.json", text)


def _parse_json(data: bytes):
    def integer(text):
        # Many parsers read "-0" as a float; an integer must fit into 64 bits.
        if text == "-0":
            return float("nan")
        if len(text) > 20:
            return float("nan")
        return int(text)

    def constant(text):
        raise ValueError(f"{text} is not JSON")

    def check(value, depth):
        if isinstance(value, str):
            value.encode("utf-8")  # fails on a lone surrogate
        if not isinstance(value, list):
            return
        if depth == MAX_DEPTH:
            raise ValueError(f"nested more than {MAX_DEPTH} deep")
        for item in value:
            if isinstance(item, tuple):
                check(item[0], depth + 1)
                check(item[1], depth + 1)
            else:
                check(item, depth + 1)

    try:
        text = data.decode("utf-8")
        value = json.loads(text, object_pairs_hook=_Object, parse_int=integer, parse_constant=constant)
        check(value, 0)
        return value
    except (ValueError, RecursionError) as error:
        _refuse("ManifestSyntax", f"not JSON: {error}")


def _members(value, types: dict, optional=()) -> dict:
    """Returns the members of an object that `types` names. Each must occur once and have its type."""
    if not isinstance(value, _Object):
        _refuse("ManifestSyntax", f"expected an object, found {value!r:.40}")
    found: dict = {}
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


def _check_ascending(what: str, names: list):
    encoded = [name.encode("utf-8") for name in names]
    for before, after in zip(encoded, encoded[1:]):
        if before >= after:
            _refuse("ManifestValue", f"{what} are not in strictly ascending byte order at {after!r}")


def _is_device(name: str) -> bool:
    return _DEVICE.fullmatch(name.split(".")[0].rstrip(" ")) is not None


def _check_source(source: str):
    """Checks the folder in which the source files of a virtual shard, or a shard of another dataset, lie."""
    url = _URL.match(source)
    path = source[url.end() :] if url else source
    if len(source.encode("utf-8")) > 4096:
        _refuse("ManifestValue", "a source is longer than 4096 bytes")
    if _CONTROL.search(source):
        _refuse("ManifestValue", f"source {source!r} has a control character")
    if not url and not source.startswith("/"):
        _refuse("ManifestValue", f"source {source!r} is neither an absolute path nor a URL")
    if not {".", ".."}.isdisjoint(path.split("/")):
        _refuse("ManifestValue", f"source {source!r} has a component '.' or '..'")
    if url and ("@" in path.split("/")[0] or "?" in path or "#" in path):
        _refuse("ManifestValue", f"source {source!r} has a user, a password, a query or a fragment")


def _check_file_name(file: str):
    folded = file.encode("utf-8").lower()  # of bytes, so that only ASCII letters change
    if file == "":
        _refuse("ManifestValue", "a shard's file name is empty")
    if _FORBIDDEN_IN_FILE.search(file):
        _refuse("ManifestValue", f"file name {file!r} contains '/', '\\', ':' or a control character")
    if file.startswith("."):
        _refuse("ManifestValue", f"file name {file!r} begins with '.'")
    if file.endswith("."):
        _refuse("ManifestValue", f"file name {file!r} ends with '.'")
    if file.endswith(" "):
        _refuse("ManifestValue", f"file name {file!r} ends with a space")
    if folded == b"dataset.json":
        _refuse("ManifestValue", f"file name {file!r} is the manifest's")
    if folded == b"_index":
        _refuse("ManifestValue", f"file name {file!r} is that of the folder of indexes")
    if folded.startswith(b"rejected-") and folded.endswith(b".jsonl"):
        _refuse("ManifestValue", f"file name {file!r} is that of a report")
    if _is_device(file):
        _refuse("ManifestValue", f"file name {file!r} is a device name of Windows")


def _own_crc(data: bytes) -> Optional[str]:
    """Returns the digits that end a manifest, unchecked."""
    end = _END.search(data)
    return None if end is None else end[1].decode()


def _check_crc(data: bytes):
    end = _END.search(data)
    if end is None:
        _refuse("ManifestCrc", "the file does not end in its CRC")
    found = crc32c(data[: end.start(1)] + b"00000000" + data[end.end(1) :])
    if found != int(end[1], 16):
        _refuse("ManifestCrc", f"expected {end[1].decode()}, found {found:08x}: `shardtool repair --reseal` corrects it")


def _file_part(members: dict, names) -> FilePart:
    """Returns where a companion lies, checked."""
    if not names.fullmatch(members["file"]):
        _refuse("ManifestValue", f"{members['file']!r} is not the name of a file of companions")
    if members["offset"] + members["bytes"] >= 2**64:
        _refuse("ManifestValue", f"a part of {members['file']!r} ends past 2⁶⁴")
    return FilePart(members["file"], members["offset"], members["bytes"], int(members["crc32c"], 16))


class Manifest:
    """The contents of `dataset.json`. The constructor checks them and raises Damage."""

    version: int = 1  #: Number of the version of a changed dataset.

    def __init__(self, data: bytes):
        self.tags: dict[str, int] = {}
        self.dropped: list[str] = []
        _check_crc(data)
        root = _parse_json(data)
        identity = _members(root, _IDENTITY, optional=_IDENTITY)
        if identity.get("format") != "shardtool":
            _refuse("ManifestVersion", f"expected format 'shardtool', found {identity.get('format')!r}")
        if not _VERSION_1.fullmatch(identity.get("version", "")):
            _refuse("ManifestVersion", f"expected version 1.N, found {identity.get('version')!r}")
        self.requires: list[str] = identity.get("requires", [])
        for name in self.requires:
            if name not in KNOWN_REQUIREMENTS:
                _refuse("ManifestRequires", f"this reader does not know {name!r}")
        self._read_members(root)
        if "versions" in self.requires:
            self._read_version(root)
        self._check_values()

    def _read_members(self, root):
        members = _members(root, _MANIFEST, optional=("requires", "created_by", "image", "label"))
        self.private: dict[str, str] = self._private_members(root)
        self.image: Optional[str] = members.get("image")
        self.label: Optional[str] = members.get("label")
        self.label_offset: int = members["label_offset"]
        self.classes: list[str] = members["classes"]
        self._features = [_members(item, _FEATURE, optional=("logical",)) for item in members["features"]]
        #: Types of the features of the records: in the shards, and of this version.
        self.stored: dict[str, str] = {feature["name"]: feature["type"] for feature in self._features}
        self.features: dict[str, str] = dict(self.stored)
        #: Logical type of each feature that has one of 1.1.
        self.logical: dict[str, str] = self._logical_types(self._features)
        self._splits = [_members(item, _SPLIT) for item in members["splits"]]
        types, optional = dict(_SHARD), ["sha256"]
        if "versions" in self.requires:
            types.update(_CHANGED_SHARD)
            optional += _CHANGED_SHARD
        if "foreign" in self.requires:
            types.update(_FOREIGN_SHARD)
            optional += _FOREIGN_SHARD
        for split in self._splits:
            split["shards"] = [self._shard(_members(item, types, optional)) for item in split["shards"]]

    @staticmethod
    def _shard(members: dict) -> dict:
        """Reads what a changed dataset says of a shard."""
        if "deleted" in members:
            members["deleted"] = _members(members["deleted"], _DELETED)
        members["columns"] = [_members(item, _COMPANION) for item in members.get("columns", ())]
        return members

    @staticmethod
    def _logical_types(features: list) -> dict:
        known = [feature for feature in features if feature.get("logical") in _LOGICAL]
        if any(feature["type"] != "bytes" for feature in known):
            _refuse("ManifestSyntax", "a logical type of a feature that is not of type bytes")
        return {feature["name"]: feature["logical"] for feature in known}

    def _read_version(self, root):
        """Reads the members of a changed dataset, and makes `features` and `logical` those of its version."""
        members = _members(root, _CHANGED, optional=("tags", "columns"))
        version = _members(members["dataset_version"], _VERSION, optional=("message", "author"))
        self.version = version["number"]
        self._tags = [_members(item, _TAG) for item in members.get("tags", ())]
        self._columns = [_members(item, _COLUMN, ("type", "logical", "dropped")) for item in members.get("columns", ())]
        for column in self._columns:
            if ("type" in column) == column.get("dropped", False):
                _refuse("ManifestSyntax", f"column {column['name']!r} has neither a type nor is dropped, or both")
        listed = [column for column in self._columns if "type" in column]
        self._column_types = {column["name"]: column["type"] for column in listed}
        self._column_logical = self._logical_types(listed)
        #: Names of the features that the records in the shards have and this version has not.
        self.dropped: list[str] = [column["name"] for column in self._columns if "type" not in column]
        for name in self.dropped:
            self.features.pop(name, None)
            self.logical.pop(name, None)
        self._stored_logical = dict(self.logical)
        self.features.update(self._column_types)
        self.logical.update(self._column_logical)

    @staticmethod
    def _private_members(root) -> dict:
        found: dict = {}
        for name, member in root:
            if not name.startswith("x-"):
                continue
            if name in found:
                _refuse("ManifestSyntax", f"member {name!r} occurs twice")
            if not isinstance(member, str):
                _refuse("ManifestSyntax", f"member {name!r}: expected string, found {member!r:.40}")
            found[name] = member
        return found

    def _check_version(self):
        if self.version == 0:
            _refuse("ManifestValue", "version 0: versions are numbered from 1")
        _check_ascending("tags", [tag["name"] for tag in self._tags])
        for tag in self._tags:
            if not _TAG_NAME.fullmatch(tag["name"]) or _is_hex(tag["name"], 8):
                _refuse("ManifestValue", f"{tag['name']!r} is not a valid tag")
            if not 1 <= tag["number"] <= self.version:
                _refuse("ManifestValue", f"tag {tag['name']!r} is of version {tag['number']} of {self.version}")
        self.tags = {tag["name"]: tag["number"] for tag in self._tags}
        _check_ascending("columns", [column["name"] for column in self._columns])
        for name, kind in self._column_types.items():
            same = self._column_logical.get(name) == self._stored_logical.get(name)
            if name in self.stored and not (self.stored[name] == kind and same):
                _refuse("ManifestValue", f"column {name!r} is of another type than the feature")
        for name in self.dropped:
            if name not in self.stored:
                _refuse("ManifestValue", f"{name!r} is dropped, but is not a feature")

    def _check_values(self):
        _check_ascending("requires", self.requires)
        if "versions" in self.requires:
            self._check_version()
        _check_ascending("features", [feature["name"] for feature in self._features])
        if self.image is not None and self.features.get(self.image) != "bytes":
            _refuse("ManifestValue", f"image {self.image!r} is not a feature of type bytes")
        if self.label is not None and self.features.get(self.label) != "int64":
            _refuse("ManifestValue", f"label {self.label!r} is not a feature of type int64")
        if len(set(self.classes)) != len(self.classes):
            _refuse("ManifestValue", "a class occurs twice")
        _check_ascending("splits", [split["name"] for split in self._splits])
        self.splits: dict[str, list[ShardEntry]] = {}
        files: set = set()
        for split in self._splits:
            if not _SPLIT_NAME.fullmatch(split["name"]):
                _refuse("ManifestValue", f"{split['name']!r} is not a valid split name")
            if _is_device(split["name"]):
                _refuse("ManifestValue", f"split name {split['name']!r} is a device name of Windows")
            self._check_folder(split["name"])
            self.splits[split["name"]] = self._shards(split, files)

    def _check_folder(self, name: str):
        if "versions" in self.requires and name.encode("utf-8").lower() in _VERSION_FOLDERS:
            _refuse("ManifestValue", f"{name!r} is the name of a folder of the dataset")

    def _deleted(self, item: dict) -> Optional[Deleted]:
        """Returns the deleted rows of a shard, checked."""
        if "deleted" not in item:
            return None
        rows = item["deleted"]["rows"]
        if not 1 <= rows <= item["records"]:
            _refuse("ManifestValue", f"{item['file']!r}: {rows} deleted rows of {item['records']}")
        bitmap = _file_part(item["deleted"], _BITMAP_FILE)
        if bitmap.bytes != (item["records"] + 7) // 8:
            _refuse("ManifestValue", f"{item['file']!r}: a bitmap of {bitmap.bytes} bytes for {item['records']} records")
        return Deleted(rows, bitmap)

    def _companions(self, item: dict) -> dict:
        """Returns the companions of a shard by feature, checked."""
        found = {}
        for column in item["columns"]:
            prefix, _, feature = column["name"].partition(":")
            if prefix not in ("feature", "encoded") or feature not in self._column_types:
                _refuse("ManifestValue", f"{item['file']!r}: {column['name']!r} is not of a listed column")
            if column["offset"] % 64 != 0:
                _refuse("ManifestValue", f"{item['file']!r}: offset {column['offset']} is not a multiple of 64")
            found[feature] = Companion(column["name"], _file_part(column, _COMPANION_FILE))
        _check_ascending("companions", [column["name"].partition(":")[2] for column in item["columns"]])
        return found

    @staticmethod
    def _check_virtual(item: dict):
        if item.get("virtual", True) is False:
            _refuse("ManifestValue", f"{item['file']!r}: virtual is false")
        if "source" in item:
            _check_source(item["source"])

    def _shards(self, split: dict, files: set) -> list:
        first, records, shards = 0, 0, []
        for item in split["shards"]:
            _check_file_name(item["file"])
            self._check_folder(item["file"])
            self._check_virtual(item)
            if item["file"] in files:
                _refuse("ManifestValue", f"file {item['file']!r} is listed twice")
            files.add(item["file"])
            shards.append(
                ShardEntry(
                    file=item["file"],
                    records=item["records"],
                    bytes=item["bytes"],
                    crc32c=int(item["crc32c"], 16),
                    index_bytes=item["index_bytes"],
                    index_crc32c=int(item["index_crc32c"], 16),
                    sha256=item.get("sha256"),
                    first=first,
                    deleted=self._deleted(item),
                    companions=self._companions(item),
                    is_virtual="virtual" in item,
                    source=item.get("source"),
                )
            )
            first += shards[-1].live
            records += item["records"]
        if records >= 2**63:
            _refuse("ManifestValue", f"split {split['name']!r} has {records} records")
        return shards

    def fingerprint(self, split: str) -> int:
        """Returns the fingerprint, a CRC32C that changes if a record of the split or their order changes."""
        shards = self.splits[split]
        data = b"".join(struct.pack("<QQI", s.records, s.bytes, s.crc32c) for s in shards)
        if any(shard.deleted is not None or shard.companions for shard in shards):
            data += b"".join(map(self._companion_numbers, shards))
        return crc32c(data)

    @staticmethod
    def _companion_numbers(shard: ShardEntry) -> bytes:
        """Returns what the companions of a shard add to the fingerprint."""
        rows, crc = (0, 0) if shard.deleted is None else (shard.deleted.rows, shard.deleted.bitmap.crc32c)
        data = struct.pack("<QII", rows, crc, len(shard.companions))
        for companion in shard.companions.values():
            name = companion.name.encode("utf-8")
            data += struct.pack("<I", len(name)) + name + struct.pack("<I", companion.part.crc32c)
        return data


# --- files ---


def _map(path: Path, missing: str, name: str):
    """Maps a file and returns its bytes. Anything but a file is missing: opening a pipe would block."""
    if not os.path.isfile(path):
        raise Damage(missing, name, "no such file")
    with open(path, "rb") as file:
        if os.fstat(file.fileno()).st_size == 0:  # an empty file cannot be mapped
            return memoryview(b"")
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


# --- shards ---


def _is_compressed(shard) -> bool:
    start = bytes(shard[:2])
    if start == b"\x1f\x8b":
        return True
    return start in (b"\x78\x01", b"\x78\x5e", b"\x78\x9c", b"\x78\xda")


class Frame:
    """The frame at an offset of a shard. The constructor checks its length; `data()` checks and returns its data. `first` is the
    offset of the first byte of `shard`, which may be a part of the whole."""

    def __init__(self, shard, offset: int, file: str, record: Optional[int], first: int = 0):
        self._shard, self.offset, self._file, self._record = shard, offset, file, record
        self._begin = begin = offset - first
        left = len(shard) - begin
        if left < 12:
            raise self._damage("TruncatedFrame", f"expected 12 bytes, {left} are left")
        self.length, length_crc = struct.unpack_from("<QI", shard, begin)
        found = masked(crc32c(shard[begin : begin + 8]))
        if found != length_crc:
            if offset == 0 and _is_compressed(shard):
                raise Damage("CompressedRecords", file, "a gzip or zlib file: decompress it")
            raise self._damage("LengthCrc", f"expected {length_crc:08x}, found {found:08x}")
        if self.length + 16 > left:
            raise self._damage("TruncatedFrame", f"expected {self.length + 16} bytes, {left} are left")
        self.end = offset + self.length + 16

    def data(self, check_crc: bool = True):
        end = self._begin + self.length + 12
        data = self._shard[self._begin + 12 : end]
        (expected,) = struct.unpack_from("<I", self._shard, end)
        if check_crc:
            found = masked(crc32c(data))
            if found != expected:
                raise self._damage("DataCrc", f"expected {expected:08x}, found {found:08x}")
        return data

    @property
    def bytes(self):
        """The whole frame."""
        return self._shard[self._begin : self._begin + self.length + 16]

    def _damage(self, name: str, text: str) -> Damage:
        return Damage(name, self._file, f"frame at offset {self.offset}: {text}", self._record, self.offset)


# --- records ---


class _Malformed(ValueError):
    pass


KINDS = {1: "bytes", 2: "float", 3: "int64"}  # by the field of a Feature


class Feature:
    """A list of values. `kind` is "bytes", "float" or "int64"; `stored` holds byte strings, the 32 bits of floats, or
    integers; `begins` holds, for byte strings, their offsets in the record."""

    def __init__(self, kind: str):
        self.kind = kind
        self.stored: list = []
        self.begins: list = []

    @property
    def values(self) -> list:
        """The byte strings, floats or integers."""
        if self.kind == "float":
            return [_float(bits) for bits in self.stored]
        return self.stored


def _float(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value


def _varint(data, at: int, end: int):
    """Returns the varint at an offset, and the offset of its end."""
    value = 0
    for shift in range(0, 70, 7):
        if at == end:
            raise _Malformed("unfinished varint")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value >= 2**64:
                raise _Malformed("varint over 64 bits")
            return value, at
    raise _Malformed("varint of more than ten bytes")


def _fields(data, at: int, end: int):
    """Yields field number, wire type, and begin and end of the value; for a varint, its value and None."""
    while at < end:
        tag, at = _varint(data, at, end)
        number, wire = tag >> 3, tag & 7
        if number == 0:
            raise _Malformed("field number 0")
        if number >= 2**29:
            raise _Malformed(f"field number {number}")
        if wire == 0:
            value, at = _varint(data, at, end)
            yield number, wire, value, None
            continue
        if wire == 1:
            size = 8
        elif wire == 2:
            size, at = _varint(data, at, end)
        elif wire == 5:
            size = 4
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


def _read_list(data, at: int, end: int, feature: Feature):
    """Appends the values of a BytesList, FloatList or Int64List."""
    for number, wire, begin, stop in _fields(data, at, end):
        if number != 1:
            continue
        if feature.kind == "bytes" and wire == 2:
            feature.stored.append(bytes(data[begin:stop]))
            feature.begins.append(begin)
        elif feature.kind == "int64" and wire == 0:
            feature.stored.append(_signed(begin))
        elif feature.kind == "int64" and wire == 2:
            while begin < stop:
                value, begin = _varint(data, begin, stop)
                feature.stored.append(_signed(value))
        elif feature.kind == "float" and wire == 5:
            feature.stored.extend(struct.unpack_from("<I", data, begin))
        elif feature.kind == "float" and wire == 2:
            if (stop - begin) % 4 != 0:
                raise _Malformed("packed floats are not a multiple of four bytes")
            feature.stored.extend(struct.unpack_from(f"<{(stop - begin) // 4}I", data, begin))
        else:
            raise _Malformed(f"a value of wire type {wire} in a list of {feature.kind}")


def _read_feature(data, at: int, end: int) -> Optional[Feature]:
    """Returns the list of a Feature, or None if it has none."""
    feature = None
    for number, wire, begin, stop in _fields(data, at, end):
        if number not in KINDS:
            raise _Malformed(f"field {number} in a Feature is not a list")
        if wire != 2:
            raise _Malformed(f"a list of wire type {wire} in a Feature")
        if feature is None or feature.kind != KINDS[number]:
            feature = Feature(KINDS[number])
        _read_list(data, begin, stop, feature)
    return feature


def _read_name(data, at: int, end: int) -> str:
    """Returns the last key of an Entry; without one, the empty name."""
    name = ""
    for begin, stop in _messages(data, at, end, 1):
        name = bytes(data[begin:stop]).decode("utf-8")
    return name


def _read_features(data, at: int, end: int, features: dict):
    """Adds the entries of a Features message. The last entry of a name replaces those before."""
    for entry, entry_end in _messages(data, at, end, 1):
        name = _read_name(data, entry, entry_end)
        feature = None
        for begin, stop in _messages(data, entry, entry_end, 2):
            feature = _read_feature(data, begin, stop)
        features.pop(name, None)
        if feature is not None:
            features[name] = feature


def parse_example(data) -> dict:
    """Returns the features of a `tf.train.Example`, by name. Raises ValueError."""
    features: dict = {}
    for begin, stop in _messages(data, 0, len(data), 1):
        _read_features(data, begin, stop, features)
    return features


def _read_steps(data, at: int, end: int) -> list:
    """Returns the list of each step of a FeatureList, None for a step without one."""
    return [_read_feature(data, begin, stop) for begin, stop in _messages(data, at, end, 1)]


def _join_steps(steps: list):
    """Returns the values of all steps as one list (None without values), and the number of values of each step."""
    joined = None
    lengths = Feature("int64")
    for step in steps:
        count = 0 if step is None else len(step.stored)
        lengths.stored.append(count)
        if count == 0:
            continue
        if joined is None:
            joined = Feature(step.kind)
        if step.kind != joined.kind:
            raise _Malformed(f"steps of {joined.kind} and {step.kind} in one feature list")
        joined.stored.extend(step.stored)
        joined.begins.extend(step.begins)
    return joined, lengths


def parse_sequence_example(data) -> dict:
    """Returns the features of a `tf.train.SequenceExample`: those of the context, and NAME and NAME/lengths of each
    feature list. Raises ValueError."""
    features = parse_example(data)
    lists: dict = {}
    for begin, stop in _messages(data, 0, len(data), 2):
        for entry, entry_end in _messages(data, begin, stop, 1):
            name = _read_name(data, entry, entry_end)
            steps = None
            for value, value_end in _messages(data, entry, entry_end, 2):
                steps = _read_steps(data, value, value_end)
            lists.pop(name, None)
            if steps is not None:
                lists[name] = steps
    names = [*features, *lists, *(f"{name}/lengths" for name in lists)]
    if len(set(names)) != len(names):
        raise _Malformed("a name occurs twice in context and feature lists")
    for name, steps in lists.items():
        joined, lengths = _join_steps(steps)
        if joined is not None:
            features[name] = joined
        features[f"{name}/lengths"] = lengths
    return features


def parse_record(data, manifest: Manifest) -> dict:
    """Returns the features of a record, by name; none in an opaque dataset. Raises ValueError."""
    if not manifest.stored:
        return {}
    if "sequence-example" in manifest.requires:
        return parse_sequence_example(data)
    return parse_example(data)


def _encode_varint(value: int) -> bytes:
    data = bytearray()
    while value > 127:
        data.append(value & 127 | 128)
        value >>= 7
    data.append(value)
    return bytes(data)


def _encode_field(number: int, content: bytes) -> bytes:
    return _encode_varint(number << 3 | 2) + _encode_varint(len(content)) + content


def _encode_list(feature: Feature) -> bytes:
    if feature.kind == "bytes":
        return b"".join(_encode_field(1, value) for value in feature.stored)
    if feature.kind == "float":
        packed = struct.pack(f"<{len(feature.stored)}I", *feature.stored)
    else:
        packed = b"".join(_encode_varint(value % 2**64) for value in feature.stored)
    return _encode_field(1, packed) if packed else b""


def encode_example(features: dict) -> bytes:
    """Returns the canonical `tf.train.Example` of features."""
    numbers = {kind: number for number, kind in KINDS.items()}
    data = b""
    for name, feature in sorted((name.encode("utf-8"), feature) for name, feature in features.items()):
        value = _encode_field(numbers[feature.kind], _encode_list(feature))
        data += _encode_field(1, _encode_field(1, name) + _encode_field(2, value))
    return _encode_field(1, data)


def one(features: dict, name: Optional[str], kind: str):
    """Returns the stored value of a feature that has exactly one, of this kind; otherwise None."""
    feature = features.get(name)
    if feature is None:
        return None
    if feature.kind != kind:
        return None
    if len(feature.stored) != 1:
        return None
    return feature.stored[0]


def key_of(features: dict, file: str, row: int) -> bytes:
    """Returns the key of a record, from its features."""
    for name in ("image/key", "image/filename"):
        value = one(features, name, "bytes")
        if value is not None:
            return value
    return f"{file}#{row}".encode("utf-8")


def image_range(features: dict, name: Optional[str]):
    """Returns offset and length of the image in the record; 0 and 0 without an image."""
    image = one(features, name, "bytes")
    if image is None:
        return 0, 0
    return features[name].begins[0], len(image)


def class_of(features: dict, manifest: Manifest) -> Optional[int]:
    """Returns the class id of a record, or None."""
    label = one(features, manifest.label, "int64")
    if label is None:
        return None
    class_id = label - manifest.label_offset
    if class_id < 0:
        return None
    if class_id >= 2**63:
        return None
    if manifest.classes and class_id >= len(manifest.classes):
        return None
    return class_id


# --- zstd frames ---


class _WrongLength(ValueError):
    """Pixels or chunks of another number or length than their sizes say: `PixelsLength`."""


class _Undecodable(ValueError):
    """An image or array that cannot be decoded: `ImageDecode`."""


class _ZstdFrame(NamedTuple):
    """What the header of a zstd frame (RFC 8878, 3.1.1) says. `content_size` is None if it is absent."""

    content_size: Optional[int]
    dictionary: int
    has_checksum: bool
    blocks: int


def _zstd_header(data) -> _ZstdFrame:
    data = bytes(data[:18])
    if data[:4] != b"\x28\xb5\x2f\xfd":
        raise _Undecodable("no zstd frame")
    if len(data) < 5:
        raise _Undecodable("the frame ends in its header")
    descriptor = data[4]
    single_segment = descriptor >> 5 & 1
    if descriptor & 8:
        raise _Undecodable("a reserved bit is set")
    window_bytes = 1 - single_segment
    dictionary_bytes = (0, 1, 2, 4)[descriptor & 3]
    size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    at = 5 + window_bytes
    blocks = at + dictionary_bytes + size_bytes
    if len(data) < blocks:
        raise _Undecodable("the frame ends in its header")
    dictionary = int.from_bytes(data[at : at + dictionary_bytes], "little")
    size = int.from_bytes(data[at + dictionary_bytes : blocks], "little")
    if size_bytes == 0:
        return _ZstdFrame(None, dictionary, bool(descriptor & 4), blocks)
    if size_bytes == 2:
        size += 256
    return _ZstdFrame(size, dictionary, bool(descriptor & 4), blocks)


def _zstd_end(data, frame: _ZstdFrame) -> int:
    """Returns the offset of the frame's end, from the headers of its blocks."""
    at = frame.blocks
    last = 0
    while not last:
        if len(data) - at < 3:
            raise _Undecodable("the frame ends in a block")
        header = int.from_bytes(data[at : at + 3], "little")
        last, kind, size = header & 1, header >> 1 & 3, header >> 3
        if kind == 3:
            raise _Undecodable("a block of a reserved type")
        at += 3 + (1 if kind == 1 else size)  # of a repeated byte, only the byte is stored
    if frame.has_checksum:
        at += 4
    if at > len(data):
        raise _Undecodable("the frame ends in a block")
    return at


def _decompress(data, size: int) -> bytes:
    if size > MAX_DECODED:
        raise NotDecoded(f"{size} bytes, more than this reader decodes")
    if _zstd is None:
        raise NotDecoded("Python has no zstd module")
    try:
        if _zstd.__name__ == "zstandard":
            return _zstd.ZstdDecompressor().decompress(bytes(data), max_output_size=size)
        return _zstd.decompress(bytes(data))
    except _zstd.ZstdError as error:
        raise _Undecodable(str(error)) from None


def _decode_zstd(data, size: int) -> bytes:
    """Decompresses one zstd frame of exactly `size` bytes."""
    frame = _zstd_header(data)
    if frame.content_size is None:
        raise _WrongLength("a zstd frame without content size")
    if frame.content_size != size:
        raise _WrongLength(f"expected {size} bytes, found a content size of {frame.content_size}")
    if frame.dictionary != 0:
        raise _Undecodable("a zstd frame with a dictionary")
    if _zstd_end(data, frame) != len(data):
        raise _Undecodable("bytes after the zstd frame")
    decoded = _decompress(data, size)
    if len(decoded) != size:
        raise _Undecodable(f"expected {size} bytes, decoded {len(decoded)}")
    return decoded


# --- images ---

_FILE_FORMATS = b"jpeg png webp gif bmp tiff avif jxl jp2 heif".split()
_BMP_HEADERS = (12, 16, 40, 52, 56, 64, 108, 124)
_AVIF_BRANDS = (b"avif", b"avis")
_HEIF_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")


def detect_format(image) -> Optional[bytes]:
    """Returns the format of an image by its first bytes, or None."""
    data = bytes(image[:256])
    if data.startswith(b"\xff\xd8\xff"):
        return b"jpeg"
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return b"png"
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return b"webp"
    if data.startswith((b"GIF87a", b"GIF89a")):
        return b"gif"
    if data.startswith((b"II\x2a\0", b"II\x2b\0", b"MM\0\x2a", b"MM\0\x2b")):
        return b"tiff"
    if data.startswith(b"BM") and len(data) >= 18 and int.from_bytes(data[14:18], "little") in _BMP_HEADERS:
        return b"bmp"
    if data.startswith((b"\xff\x0a", b"\0\0\0\x0cJXL \r\n\x87\n")):
        return b"jxl"
    if data.startswith((b"\xff\x4f\xff\x51", b"\0\0\0\x0cjP  \r\n\x87\n")):
        return b"jp2"
    if data[4:8] == b"ftyp":
        end = min(int.from_bytes(data[:4], "big"), len(data))
        brands = [data[at : at + 4] for at in (8, *range(16, end - 3, 4))]
        if any(brand in _AVIF_BRANDS for brand in brands):
            return b"avif"
        if any(brand in _HEIF_BRANDS for brand in brands):
            return b"heif"
    return None


def pixels_of(features: dict, image_name: Optional[str]):
    """Returns (height, width, bytes) of raw pixels, or None without an image. Raises NotDecoded for other formats."""
    image = one(features, image_name, "bytes")
    if image is None:
        return None
    kind = one(features, "image/format", "bytes")
    if kind is None:
        kind = detect_format(image)
    if kind not in (b"raw", b"raw-zstd"):
        if kind is None or kind.lower() not in _FILE_FORMATS:
            raise _Undecodable(f"the format {kind!r} is not known")
        raise NotDecoded(f"this reader does not decode {kind.decode()}")
    height = one(features, "image/height", "int64")
    width = one(features, "image/width", "int64")
    if height is None:
        raise _WrongLength("image/height is absent")
    if width is None:
        raise _WrongLength("image/width is absent")
    if height < 1:
        raise _WrongLength(f"image/height is {height}")
    if width < 1:
        raise _WrongLength(f"image/width is {width}")
    if kind == b"raw-zstd":
        return height, width, _decode_zstd(image, height * width * 3)
    if len(image) != height * width * 3:
        raise _WrongLength(f"height {height}, width {width}, {len(image)} bytes")
    return height, width, image


# --- arrays ---

DTYPES = {
    b"u8": 1, b"i8": 1, b"u16": 2, b"i16": 2, b"u32": 4, b"i32": 4, b"u64": 8, b"i64": 8,
    b"f16": 2, b"bf16": 2, b"f32": 4, b"f64": 8, b"bool": 1,
}  # fmt: skip


class Array(NamedTuple):
    """An array of numbers: `data` is the whole array in C order, little-endian."""

    shape: list
    dtype: str
    data: bytes


def array_names(features: dict) -> list:
    """Returns the names of all arrays of a record."""
    names = []
    for name in features:
        if not name.endswith("/codec"):
            continue
        base = name[: -len("/codec")]
        if all(f"{base}/{part}" in features for part in ("shape", "chunk", "dtype")):
            names.append(base)
    return names


def _product(numbers) -> int:
    """Returns the product of numbers ≥ 0. It stops growing above 2⁶³, so that it takes linear time."""
    numbers = list(numbers)
    if 0 in numbers:
        return 0
    product = 1
    for number in numbers:
        product *= number
        if product >= 2**63:
            return 2**63
    return product


def _lengths(features: dict, name: str, least: int) -> list:
    feature = features[name]
    if feature.kind != "int64":
        raise _Undecodable(f"{name} is of type {feature.kind}")
    if len(feature.stored) == 0:
        raise _Undecodable(f"{name} is empty")
    for length in feature.stored:
        if length < least:
            raise _Undecodable(f"{name} has a length of {length}")
    if _product(feature.stored) >= 2**63:
        raise _Undecodable(f"the product of {name} is over 2⁶³ − 1")
    return feature.stored


def array_of(features: dict, name: str) -> Array:
    """Returns an array of a record."""
    shape = _lengths(features, f"{name}/shape", 0)
    chunk = _lengths(features, f"{name}/chunk", 1)
    dtype = one(features, f"{name}/dtype", "bytes")
    codec = one(features, f"{name}/codec", "bytes")
    if len(shape) != len(chunk):
        raise _Undecodable(f"{len(shape)} dimensions in {name}/shape, {len(chunk)} in {name}/chunk")
    if dtype not in DTYPES:
        raise _Undecodable(f"{name}/dtype {dtype!r} is not known")
    if codec not in (b"raw", b"zstd"):
        raise _Undecodable(f"{name}/codec {codec!r} is not known")
    feature = features.get(name)
    chunks = feature.stored if feature is not None and feature.kind == "bytes" else []
    grid = [-(-length // part) for length, part in zip(shape, chunk)]
    if len(chunks) != _product(grid):
        raise _WrongLength(f"expected {_product(grid)} chunks, found {len(chunks)}")
    data = _join_chunks(chunks, shape, chunk, DTYPES[dtype], codec)
    return Array(shape, dtype.decode(), data)


def _join_chunks(chunks: list, shape: list, chunk: list, width: int, codec: bytes) -> bytes:
    """Returns the whole array in C order. Dimensions of length 1 do not change the order of elements; without them
    there are at most 62."""
    if not chunks:
        return b""
    shape, chunk = zip(*[pair for pair in zip(shape, chunk) if pair[0] > 1] or [(1, 1)])
    strides = [width]  # the distance in bytes of neighbours in each dimension
    for length in reversed(shape[1:]):
        strides.insert(0, strides[0] * length)
    total = _product(shape) * width
    if codec == b"zstd" and total > MAX_DECODED:
        raise NotDecoded(f"{total} bytes, more than this reader decodes")
    pieces, missing = [], None
    place = [0] * len(shape)  # of the chunk: its first element
    for value in chunks:
        size = [min(part, length - first) for part, length, first in zip(chunk, shape, place)]
        try:
            pieces.append((list(place), size, _chunk(value, _product(size) * width, codec)))
        except NotDecoded as error:  # all chunks are checked, also if none can be decoded
            missing = error
        _advance(place, shape, chunk)
    if missing is not None:
        raise missing
    joined = bytearray(total)
    for place, size, data in pieces:
        _copy(data, joined, place, size, strides, width)
    return bytes(joined)


def _chunk(value: bytes, size: int, codec: bytes) -> bytes:
    if codec == b"zstd":
        return _decode_zstd(value, size)
    if len(value) != size:
        raise _WrongLength(f"expected a chunk of {size} bytes, found {len(value)}")
    return value


def _advance(place: list, shape, steps):
    """Moves to the next place in C order: the last dimension varies fastest."""
    for dimension in reversed(range(len(place))):
        place[dimension] += steps[dimension]
        if place[dimension] < shape[dimension]:
            return
        place[dimension] = 0


def _copy(data: bytes, joined: bytearray, place: list, size: list, strides: list, width: int):
    """Copies a chunk into the whole array, row by row."""
    row = size[-1] * width
    inside = [0] * len(size)
    rows = size[:-1] + [1]
    for begin in range(0, len(data), row):
        to = sum((first + i) * stride for first, i, stride in zip(place, inside, strides))
        joined[to : to + row] = data[begin : begin + row]
        _advance(inside, rows, [1] * len(rows))


def _decoded(decode: Callable, file: str, row: int, offset: Optional[int]):
    """Calls a decoder and names its errors."""
    try:
        return decode()
    except _WrongLength as error:
        raise Damage("PixelsLength", file, str(error), row, offset) from None
    except _Undecodable as error:
        raise Damage("ImageDecode", file, str(error), row, offset) from None


# --- index ---

FIXED, VARIABLE = 0, 1
BYTES, U32, U64, I64, F32 = range(5)
_WIDTHS = {BYTES: 1, U32: 4, U64: 8, I64: 8, F32: 4}
_CODES = {U32: "<I", U64: "<Q", I64: "<q", F32: "<I"}  # floats are kept as their bits
_REQUIRED = {
    "record_offset": (FIXED, U64),
    "image_offset": (FIXED, U32),
    "image_length": (FIXED, U32),
    "key": (VARIABLE, BYTES),
}
_VIRTUAL = ("virtual_files", "virtual_ranges", "virtual_bytes")
_ROW_UNITS = {"values": 12, "virtual_ranges": 32}  # bytes of which a row has a multiple, by name or prefix
_FEATURE_COLUMNS = {(FIXED, I64): "int64", (FIXED, F32): "float", (VARIABLE, BYTES): "bytes"}
ENTRY_BYTES = 72


def _aligned(offset: int) -> int:
    return (offset + 63) // 64 * 64


class Part(NamedTuple):
    """Validity, offsets or values of a column. An absent part has length 0."""

    offset: int
    length: int
    crc: int


class Column:
    """One column of an index. Its contents are checked when it is first used."""

    def __init__(self, index: "Index", name: str, kind: int, element: int, parts: list):
        self.index, self.name, self.kind, self.element = index, name, kind, element
        self.validity, self.offsets, self.values = parts
        self._checked = False
        self._failure: Optional[Damage] = None

    @property
    def type(self) -> str:
        """The type of the feature in a column `feature:NAME`."""
        return _FEATURE_COLUMNS[self.kind, self.element]

    def check(self):
        """Checks CRCs, padding, offsets and validity, once, before the first use."""
        if self._failure is not None:
            raise self._failure.with_traceback(None)
        if self._checked:
            return
        try:
            self._check()
        except Damage as damage:
            self._failure = damage
            raise
        self._checked = True

    def _check(self):
        for part in (self.validity, self.offsets, self.values):
            self._check_part(part)
        if self.kind == VARIABLE:
            self._check_offsets()
        if self.validity.length:
            self._check_validity()
        unit = _ROW_UNITS.get(self.name.partition(":")[0] if self.name.startswith("values:") else self.name)
        if unit is not None:
            self._check_ranges(unit)

    def _damage(self, name: str, text: str):
        return Damage(name, self.index.file, f"{self.name}: {text}")

    def _check_part(self, part: Part):
        data = self.index.data
        end = part.offset + part.length
        found = crc32c(data[part.offset : end])
        if found != part.crc:
            raise self._damage("ColumnCrc", f"expected {part.crc:08x}, found {found:08x}")
        if any(data[end : _aligned(end)]):
            raise self._damage("IndexPadding", f"bytes at {end} are not zero")

    def _check_offsets(self):
        before = 0
        for row in range(self.index.records + 1):
            offset = self._offset(row)
            if row == 0 and offset != 0:
                raise self._damage("ColumnValue", f"the first offset is {offset}")
            if offset < before:
                raise self._damage("ColumnValue", f"offsets decrease at row {row}")
            before = offset
        if before != self.values.length:
            raise self._damage("ColumnValue", f"the last offset is {before}, the length {self.values.length}")

    def _check_validity(self):
        bits = self.index.data[self.validity.offset : self.validity.offset + self.validity.length]
        records = self.index.records
        nulls = 0
        for row in range(8 * len(bits)):
            if bits[row // 8] >> row % 8 & 1:
                if row >= records:
                    raise self._damage("ColumnValue", "unused bits of the validity are not 0")
            elif row < records:
                nulls += 1
                if not self._is_zero(row):
                    raise self._damage("ColumnValue", f"a value under the null of row {row}")
        if nulls == 0:
            raise self._damage("ColumnValue", "a validity without nulls")

    def _is_zero(self, row: int) -> bool:
        if self.kind == VARIABLE:
            return self._offset(row) == self._offset(row + 1)
        return self._number(row) == 0

    def _check_ranges(self, unit: int):
        for row in range(self.index.records):
            length = self._offset(row + 1) - self._offset(row)
            if length % unit != 0:
                raise self._damage("ColumnValue", f"row {row} has {length} bytes, not a multiple of {unit}")

    def _offset(self, row: int) -> int:
        return struct.unpack_from("<q", self.index.data, self.offsets.offset + 8 * row)[0]

    def _number(self, row: int) -> int:
        width = _WIDTHS[self.element]
        return struct.unpack_from(_CODES[self.element], self.index.data, self.values.offset + width * row)[0]

    def stored(self, row: int):
        """Returns an integer, the bits of a float, a byte string, or None for null."""
        self.check()
        if self.validity.length and not self.index.data[self.validity.offset + row // 8] >> row % 8 & 1:
            return None
        if self.kind == FIXED:
            return self._number(row)
        first = self.values.offset
        return bytes(self.index.data[first + self._offset(row) : first + self._offset(row + 1)])

    def all_values(self):
        """Returns the bytes of all rows of a variable column."""
        self.check()
        return self.index.data[self.values.offset : self.values.offset + self.values.length]

    def ranges(self, row: int) -> list:
        """Returns (offset, length, CRC) of each value, from a column of value ranges."""
        return list(struct.iter_unpack("<III", self.stored(row)))

    def __getitem__(self, row: int):
        value = self.stored(row)
        return _float(value) if self.element == F32 and value is not None else value


class Index:
    """The index of a shard, or a companion. Opening it checks header, directory and the padding after the directory."""

    def __init__(self, data, file: str, flags: int = 0):
        self.data, self.file, self.flags = data, file, flags
        self._read_header()
        self._read_directory()

    def _damage(self, name: str, text: str):
        return Damage(name, self.file, text)

    def _read_header(self):
        data = self.data
        if len(data) < 64:
            raise self._damage("IndexTruncated", f"expected a header of 64 bytes, found {len(data)}")
        if data[:8] != b"\x89STI\r\n\x1a\n":
            if data[:8] == b"\x89STX\r\n\x1a\n":
                raise self._damage("IndexMagic", "an index of version 0.1: run `shardtool repair`")
            raise self._damage("IndexMagic", f"it begins with {bytes(data[:8])!r}")
        major, _, required, _ = struct.unpack_from("<HHII", data, 8)
        self.column_count, self.records, self.shard_bytes, self.shard_crc32c = struct.unpack_from("<IQQI", data, 20)
        self.directory_bytes, length, self.directory_crc, header_crc = struct.unpack_from("<IQII", data, 44)
        found = crc32c(data[:60])
        if found != header_crc:
            raise self._damage("IndexHeaderCrc", f"expected {header_crc:08x}, found {found:08x}")
        if major != 1:
            raise self._damage("IndexVersion", f"expected major version 1, found {major}")
        if required & ~self.flags:
            raise self._damage("IndexFlags", f"required flags {required:#x}")
        if required != self.flags:
            raise self._damage("IndexLayout", "an index in the place of a companion")
        if len(data) < length:
            raise self._damage("IndexTruncated", f"expected {length} bytes, found {len(data)}")
        if len(data) > length:
            raise self._damage("IndexLayout", f"expected {length} bytes, found {len(data)}")

    def _read_directory(self):
        end = 64 + self.directory_bytes
        if end > len(self.data):
            raise self._damage("IndexLayout", f"a directory of {self.directory_bytes} bytes runs past the index")
        found = crc32c(self.data[64:end])
        if found != self.directory_crc:
            raise self._damage("IndexDirectoryCrc", f"expected {self.directory_crc:08x}, found {found:08x}")
        if any(self.data[end : _aligned(end)]):
            raise self._damage("IndexPadding", "bytes after the directory are not zero")
        at = 64 + ENTRY_BYTES * self.column_count
        if at > end:
            raise self._damage("IndexLayout", f"{self.column_count} columns run past the directory")
        entries = [64 + ENTRY_BYTES * number for number in range(self.column_count)]
        names = [struct.unpack_from("<H", self.data, entry + 2)[0] for entry in entries]
        if at + sum(names) != end:
            raise self._damage("IndexLayout", f"names of {sum(names)} bytes do not fill the directory")
        self.columns: dict = {}
        free = end
        for entry, length in zip(entries, names):
            free = self._read_entry(entry, self.data[at : at + length], free)
            at += length
        if _aligned(free) != len(self.data):
            raise self._damage("IndexLayout", f"the columns end at {_aligned(free)}, the index at {len(self.data)}")

    def _read_entry(self, at: int, name_bytes, free: int) -> int:
        """Reads an entry of the directory. Returns where its last part ends."""

        def layout(text):
            return self._damage("IndexLayout", f"entry at {at}: {text}")

        kind, element = struct.unpack_from("<BB", self.data, at)
        (reserved,) = struct.unpack_from("<I", self.data, at + 4)
        (reserved_at_end,) = struct.unpack_from("<I", self.data, at + 68)
        ranges = struct.unpack_from("<6Q", self.data, at + 8)
        crcs = struct.unpack_from("<3I", self.data, at + 56)
        parts = [Part(ranges[2 * i], ranges[2 * i + 1], crcs[i]) for i in range(3)]
        validity, offsets, values = parts
        if reserved != 0:
            raise layout(f"reserved field {reserved:#x}")
        if reserved_at_end != 0:
            raise layout(f"reserved field {reserved_at_end:#x}")
        if kind not in (FIXED, VARIABLE):
            raise layout(f"kind {kind}")
        if element not in _WIDTHS:
            raise layout(f"element {element}")
        if kind == FIXED and element == BYTES:
            raise layout("a fixed-width column of bytes")
        if kind == VARIABLE and element != BYTES:
            raise layout(f"a variable column of element {element}")
        if validity.length == 0 and validity != (0, 0, 0):
            raise layout("an absent validity has an offset or a CRC")
        if kind == FIXED and offsets != (0, 0, 0):
            raise layout("a fixed-width column has offsets")
        if validity.length != 0 and validity.length != (self.records + 7) // 8:
            raise layout(f"a validity of {validity.length} bytes for {self.records} records")
        if kind == VARIABLE and offsets.length != (self.records + 1) * 8:
            raise layout(f"offsets of {offsets.length} bytes for {self.records} records")
        if kind == FIXED and values.length != self.records * _WIDTHS[element]:
            raise layout(f"values of {values.length} bytes for {self.records} records")
        present = [values]
        if kind == VARIABLE:
            present.insert(0, offsets)
        if validity.length != 0:
            present.insert(0, validity)
        for part in present:
            if part.offset != _aligned(free):
                raise layout(f"a part at {part.offset}, expected at {_aligned(free)}")
            free = part.offset + part.length
            if free > len(self.data):
                raise layout(f"a part at {part.offset} of {part.length} bytes runs past the index")
        self._add_column(bytes(name_bytes), kind, element, parts, layout)
        return free

    def _add_column(self, name_bytes: bytes, kind: int, element: int, parts: list, layout: Callable):
        if name_bytes == b"":
            raise layout("the name is empty")
        try:
            name = name_bytes.decode("utf-8")
        except UnicodeDecodeError:
            raise layout("the name is not UTF-8") from None
        if name in self.columns:
            raise layout(f"two columns {name!r}")
        self.columns[name] = Column(self, name, kind, element, parts)

    def compare(self, entry: ShardEntry):
        """Compares the index with the manifest, and its columns with the specification."""
        self.compare_shard(entry)
        for name in (*_REQUIRED, *(_VIRTUAL if entry.is_virtual else ())):
            if name not in self.columns:
                raise self._damage("IndexColumn", f"column {name} is absent")
        for column in self.columns.values():
            self._check_column(column)

    def only_column(self, name: str, form: tuple) -> Column:
        """Returns the column of a companion, which must have this name, kind and element."""
        found = [(column.name, column.kind, column.element) for column in self.columns.values()]
        if found != [(name, *form)]:
            raise self._damage("IndexColumn", f"expected the column {name} only")
        return self.columns[name]

    def compare_shard(self, entry: ShardEntry):
        """Compares records, length and CRC of the shard with the manifest."""
        if self.records != entry.records:
            raise self._damage("RecordCount", f"expected {entry.records} records, found {self.records}")
        if self.shard_bytes != entry.bytes:
            raise self._damage("IndexMismatch", f"expected a shard of {entry.bytes} bytes, found {self.shard_bytes}")
        if self.shard_crc32c != entry.crc32c:
            raise self._damage(
                "IndexMismatch", f"expected a shard with CRC {entry.crc32c:08x}, found {self.shard_crc32c:08x}"
            )

    def _check_column(self, column: Column):
        name = column.name
        found = (column.kind, column.element)
        if name in _REQUIRED and found != _REQUIRED[name]:
            raise self._damage("IndexColumn", f"column {name} is of another kind or element")
        is_bytes = name in ("jpeg_entries", *_VIRTUAL) or name.startswith("values:")
        if is_bytes and found != (VARIABLE, BYTES):
            raise self._damage("IndexColumn", f"column {name} is of another kind or element")
        if name.startswith("feature:") and found not in _FEATURE_COLUMNS:
            raise self._damage("IndexColumn", f"column {name} is of another kind or element")
        if column.validity.length == 0:
            return
        if name in _REQUIRED or is_bytes:
            raise self._damage("IndexColumn", f"column {name} has a validity")


# --- datasets ---


def index_file(entry: ShardEntry) -> str:
    return f"_index/{entry.file}.index"


def open_index(sources: "Sources", entry: ShardEntry) -> Index:
    """Opens the index of a shard and compares it with the manifest."""
    file = index_file(entry)
    index = Index(_map(sources.stored(entry, file), "MissingIndex", file), file)
    index.compare(entry)
    return index


# --- changed datasets ---

COMPANION_FLAG = 1
_FORMS = {kind: form for form, kind in _FEATURE_COLUMNS.items()}


def _read_part(folder: Path, part: FilePart):
    data = _map(folder / part.path, "MissingCompanion", part.path)
    end = part.offset + part.bytes
    if end > len(data):
        raise Damage("MissingCompanion", part.path, f"expected at least {end} bytes, found {len(data)}")
    return data[part.offset : end]


def _check_part(data, part: FilePart):
    found = crc32c(data)
    if found != part.crc32c:
        text = f"{part.bytes} bytes at {part.offset}: expected {part.crc32c:08x}, found {found:08x}"
        raise Damage("CompanionCrc", part.path, text)


def live_rows(folder: Path, entry: ShardEntry):
    """Returns the rows of a shard that are not deleted, in order."""
    if entry.deleted is None:
        return range(entry.records)
    bitmap = entry.deleted.bitmap
    bits = _read_part(folder, bitmap)
    _check_part(bits, bitmap)
    deleted = {row for row in range(8 * len(bits)) if bits[row // 8] >> row % 8 & 1}
    if deleted and max(deleted) >= entry.records:
        raise Damage("BitmapValue", bitmap.path, "unused bits of the bitmap are not 0")
    if len(deleted) != entry.deleted.rows:
        raise Damage("BitmapValue", bitmap.path, f"expected {entry.deleted.rows} deleted rows, found {len(deleted)}")
    return [row for row in range(entry.records) if row not in deleted]


class ChangedFeature:
    """A feature of a shard whose values lie in a companion. Opening it checks the companion."""

    def __init__(self, folder: Path, manifest: Manifest, entry: ShardEntry, name: str):
        companion = entry.companions[name]
        self.name, self.kind, self.companion = name, manifest.features[name], companion
        self.data = _read_part(folder, companion.part)
        index = Index(self.data, companion.part.path, COMPANION_FLAG)
        index.compare_shard(entry)
        form = (VARIABLE, BYTES) if companion.is_encoded else _FORMS[self.kind]
        self._column = index.only_column(companion.name, form)
        self._column.check()

    def row(self, row: int) -> Optional[Feature]:
        """Returns the feature of a record; None if it has none."""
        value = self._column.stored(row)
        if value is None:
            return None
        if self.companion.is_encoded:
            try:
                return _read_feature(value, 0, len(value))
            except ValueError as error:
                text = f"{self.companion.name}: row {row} is not a Feature: {error}"
                raise Damage("ColumnValue", self.companion.part.path, text) from None
        feature = Feature(self.kind)
        feature.stored.append(value)
        return feature


# --- virtual shards ---


class SourceRange(NamedTuple):
    """A part of a frame that lies in a source file; `file_bytes` is the length of the file when it was described."""

    name: str
    file_bytes: int
    offset: int
    length: int


def _is_plain_name(name: str) -> bool:
    """Tells whether the name of a source file cannot leave the source's folder, unless a link does."""
    return not _CONTROL.search(name) and {"", ".", ".."}.isdisjoint(name.split("/"))


class Sources:
    """The files of shards. Opens those in the dataset's folder and in the folders that the user names, after links are resolved. Does
    not read stores."""

    def __init__(self, folder: Path, allowed=()):
        self._folder = folder
        self._allowed = [os.path.join(os.path.realpath(path), "") for path in (folder, *allowed)]

    def read(self, entry: ShardEntry, row: int, part: SourceRange) -> bytes:
        """Returns the bytes of a range, for a record."""
        path = part.name if entry.source is None else f"{entry.source}/{part.name}"
        resolved = self._resolve(entry, path, row)
        if not os.path.isfile(resolved):  # opening a pipe would block
            raise Damage("MissingSource", entry.file, f"{path!r} does not exist, or is not a regular file", row)
        with open(resolved, "rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found != part.file_bytes:
                raise Damage("SourceLength", entry.file, f"{path!r}: expected {part.file_bytes} bytes, found {found}", row)
            file.seek(part.offset)
            return file.read(part.length)

    def stored(self, entry: ShardEntry, file: str) -> Path:
        """Returns the path of a shard that is not virtual, or of an index: in the dataset's folder, or in that of the dataset that has
        the shard."""
        if entry.is_virtual or entry.source is None:
            return self._folder / file
        # Neither is opened if one of the two is refused.
        found = {name: self._resolve(entry, f"{entry.source}/{name}") for name in (entry.file, index_file(entry))}
        return Path(found[file])

    def _resolve(self, entry: ShardEntry, path: str, row: Optional[int] = None) -> str:
        """Returns a path without links, if its file may be opened."""
        if entry.source is not None and _URL.match(entry.source):
            raise Damage("ForeignSource", entry.file, f"{path!r}: this reader reads files only", row)
        resolved = os.path.realpath(os.path.join(self._folder, path))
        if not resolved.startswith(tuple(self._allowed)):
            raise Damage("ForeignSource", entry.file, f"{path!r}: name its folder in sources=[…] to allow it", row)
        return resolved


class VirtualShard:
    """Makes the frames of a virtual shard, by its index."""

    def __init__(self, index: Index, entry: ShardEntry, sources: Sources):
        self._index, self._entry, self._sources = index, entry, sources

    def _mismatch(self, text: str, row: int) -> Damage:
        return Damage("IndexMismatch", self._index.file, text, row)

    def frame(self, row: int, check_data_crc: bool = True) -> Frame:
        """Returns the frame of a record, which is as long as the offsets of the index say."""
        offsets = self._index.columns["record_offset"]
        start = offsets.stored(row)
        end = offsets.stored(row + 1) if row + 1 < self._entry.records else self._entry.bytes
        parts = self._parts(row, end - start)
        for part in parts:
            if isinstance(part, SourceRange) and not _is_plain_name(part.name):
                raise Damage("ForeignSource", self._entry.file, f"{part.name!r} is no plain path", row)
        data = b"".join(self._sources.read(self._entry, row, p) if isinstance(p, SourceRange) else p for p in parts)
        frame = Frame(data, start, self._entry.file, row, first=start)
        frame.data(check_data_crc)
        if frame.end != end:
            raise self._mismatch(f"the frame ends at {frame.end}, the next begins at {end}", row)
        return frame

    def _parts(self, row: int, length: int) -> list:
        """Returns the parts of a frame, in order: bytes, and ranges of source files."""
        other = self._index.columns["virtual_bytes"].stored(row)
        parts: list = []
        at = 0
        left = length - len(other)
        for file, offset, size, _, before, reserved in struct.iter_unpack(
            "<QQIIII", self._index.columns["virtual_ranges"].stored(row)
        ):
            if reserved != 0:
                raise self._mismatch(f"reserved field {reserved:#x} of a range", row)
            if size == 0:
                raise self._mismatch("an empty range", row)
            if before > len(other) - at:
                raise self._mismatch(f"a range after {at + before} bytes, the row has {len(other)}", row)
            parts += [other[at : at + before], self._range(row, file, offset, size)]
            at += before
            left -= size
        if left != 0:
            raise self._mismatch(f"the parts are {length - left} bytes, the frame {length}", row)
        return [*parts, other[at:]]

    def _range(self, row: int, at: int, offset: int, size: int) -> SourceRange:
        files = self._index.columns["virtual_files"].all_values()
        if at + 12 > len(files):
            raise self._mismatch(f"the entry of a file at {at} leaves the column", row)
        file_bytes, length = struct.unpack_from("<QI", files, at)
        if at + 12 + length > len(files):
            raise self._mismatch(f"the name of a file at {at} leaves the column", row)
        try:
            name = bytes(files[at + 12 : at + 12 + length]).decode("utf-8")
        except UnicodeDecodeError:
            raise self._mismatch("the name of a file is not UTF-8", row) from None
        if offset + size > file_bytes:
            raise self._mismatch(f"a range past the end of {name!r}", row)
        return SourceRange(name, file_bytes, offset, size)


def _shard_length(entry: ShardEntry, found: int, row: Optional[int] = None, offset: Optional[int] = None) -> Damage:
    return Damage("ShardLength", entry.file, f"expected {entry.bytes} bytes, found {found}", row, offset)


class Shard:
    """A shard and its index, opened."""

    def __init__(self, folder: Path, manifest: Manifest, entry: ShardEntry, sources: Sources):
        self.manifest, self.entry, self._folder = manifest, entry, folder
        self.data = b"" if entry.is_virtual else _map(sources.stored(entry, entry.file), "MissingShard", entry.file)
        self.index = open_index(sources, entry)
        self._virtual = VirtualShard(self.index, entry, sources)
        self.live = live_rows(folder, entry)
        self._changed: Optional[list] = None

    @property
    def is_changed(self) -> bool:
        """Whether records of the version are other bytes than those in the shard."""
        return bool(self.entry.companions or self.manifest.dropped)

    def composed(self, row: int, features: dict) -> bytes:
        """Returns the record of the version, from the features of the record in the shard."""
        if self._changed is None:
            names = self.entry.companions
            self._changed = [ChangedFeature(self._folder, self.manifest, self.entry, name) for name in names]
        features = {name: feature for name, feature in features.items() if name not in self.manifest.dropped}
        for changed in self._changed:
            features.pop(changed.name, None)
            feature = changed.row(row)
            if feature is not None:
                features[changed.name] = feature
        return encode_example(features)

    def mismatch(self, text: str, row: int) -> Damage:
        return Damage("IndexMismatch", self.index.file, text, row)

    def frame_offset(self, row: int) -> int:
        return self.index.columns["record_offset"].stored(row)

    def frame(self, row: int, check_data_crc: bool):
        """Returns the data of a record."""
        if self.entry.is_virtual:
            return self._virtual.frame(row, check_data_crc).data(False)
        offset = self.frame_offset(row)
        next_offset = self.frame_offset(row + 1) if row + 1 < self.entry.records else self.entry.bytes
        is_short = len(self.data) < self.entry.bytes
        if offset >= len(self.data):
            if is_short:
                raise _shard_length(self.entry, len(self.data), row, offset)
            raise self.mismatch(f"frame offset {offset} is past the shard's end", row)
        try:
            frame = Frame(self.data, offset, self.entry.file, row)
        except Damage as damage:
            if damage.name == "TruncatedFrame" and is_short:
                raise _shard_length(self.entry, len(self.data), row, offset) from None
            raise
        data = frame.data(check_data_crc)
        if frame.end != next_offset:
            raise self.mismatch(f"the frame ends at {frame.end}, the next begins at {next_offset}", row)
        return data


class Record:
    """One sample. The CRC of `data` has been checked; values from the index are read on request. In a changed dataset it is
    the record of the version; `row` counts deleted rows, `id` does not."""

    def __init__(self, shard: Shard, number: int, check_data_crc: bool):
        self._shard, self.row = shard, shard.live[number]
        self.id: int = shard.entry.first + number
        self.data = shard.frame(self.row, check_data_crc)
        self._features: Optional[dict] = None
        if shard.is_changed:
            self.data = shard.composed(self.row, self.features)
            self._features = parse_example(self.data)

    @property
    def key(self) -> bytes:
        """The key, from the index."""
        return self._shard.index.columns["key"][self.row]

    @property
    def image(self):
        """The image as stored, at the range in the index; None if the record has none."""
        if self._shard.is_changed:  # the index describes the record in the shard
            return one(self.features, self._shard.manifest.image, "bytes")
        columns = self._shard.index.columns
        offset, length = columns["image_offset"][self.row], columns["image_length"][self.row]
        if offset + length > len(self.data):
            raise self._shard.mismatch("the image range is past the record's end", self.row)
        return self.data[offset : offset + length] if offset else None

    @property
    def columns(self) -> dict:
        """The features of this record that the index has, by name; None is null. Of a feature that is absent here, the
        value is unknown: see `features`. Features that the version replaces or drops are absent."""
        columns, changed = self._shard.index.columns, {*self._shard.entry.companions, *self._shard.manifest.dropped}
        names = [name[8:] for name in columns if name.startswith("feature:")]
        return {name: columns[f"feature:{name}"][self.row] for name in names if name not in changed}

    @property
    def features(self) -> dict:
        """The parsed record: name → Feature. Empty in an opaque dataset."""
        if self._features is None:
            try:
                self._features = parse_record(self.data, self._shard.manifest)
            except ValueError as error:
                offset = self._shard.frame_offset(self.row)
                raise Damage("MalformedExample", self._shard.entry.file, str(error), self.row, offset) from None
        return self._features

    def numbers(self, name: str) -> Optional[list]:
        """Returns the numbers of a feature of a logical type; None if the record does not have them."""
        code = _LOGICAL[self._shard.manifest.logical[name]]
        feature = self.features.get(name)
        if feature is None or feature.kind != "bytes" or any(len(value) != 8 for value in feature.stored):
            return None
        return [struct.unpack(code, value)[0] for value in feature.stored]

    @property
    def class_id(self) -> Optional[int]:
        """Stored label − `label_offset`; None if the record has no class."""
        return class_of(self.features, self._shard.manifest)

    def pixels(self):
        """Returns (height, width, bytes) of raw pixels, or None without an image. Raises NotDecoded for other formats."""
        return self._decoded(lambda: pixels_of(self.features, self._shard.manifest.image))

    def array_names(self) -> list:
        return array_names(self.features)

    def array(self, name: str) -> Array:
        """Returns an array of the record. Raises NotDecoded if it cannot be decompressed here."""
        return self._decoded(lambda: array_of(self.features, name))

    def _decoded(self, decode: Callable):
        return _decoded(decode, self._shard.entry.file, self.row, self._shard.frame_offset(self.row))


class Split:
    """The records of a split, numbered from 0 across its shards."""

    def __init__(self, dataset: "Dataset", name: str):
        self._dataset, self.name, self.folder, self.sources = dataset, name, dataset.folder, dataset.sources
        self.shards = dataset.manifest.splits[name]
        self._firsts = [shard.first for shard in self.shards]
        self._open: dict = {}
        self._keys: Optional[dict] = None

    def __len__(self) -> int:
        return self.shards[-1].first + self.shards[-1].live if self.shards else 0

    def __getitem__(self, i: int) -> Record:
        if not 0 <= i < len(self):
            raise IndexError(f"record {i} of {len(self)} in split {self.name!r}")
        number = self.shard_of(i)
        return Record(self.open(number), i - self.shards[number].first, self._dataset.check_data_crc)

    def shard_of(self, i: int) -> int:
        """Returns the number of the shard that holds a record: the last one that begins at or before it."""
        return bisect_right(self._firsts, i) - 1

    def open(self, number: int) -> Shard:
        """Returns a shard. Opens it if this is its first use; one that cannot be opened is not tried again."""
        if number not in self._open:
            try:
                dataset = self._dataset
                self._open[number] = Shard(self.folder, dataset.manifest, self.shards[number], dataset.sources)
            except Damage as damage:
                self._open[number] = damage
        shard = self._open[number]
        if isinstance(shard, Damage):
            raise shard.with_traceback(None)
        return shard

    def lookup(self, key: bytes) -> Optional[int]:
        """Returns the number of the first record with a key, or None. Uses indexes only."""
        if self._keys is None:
            self._keys = self.keys()
        return self._keys.get(key)

    def keys(self, on_damage: Optional[Callable[[str, Damage], None]] = None) -> dict:
        """Returns the number of the first record of each key. If an index or its keys cannot be read, calls `on_damage`
        with the shard's file and the Damage, and continues; without `on_damage`, raises the Damage."""
        keys: dict = {}
        for entry in self.shards:
            try:
                column = open_index(self.sources, entry).columns["key"]
                column.check()
                rows = live_rows(self.folder, entry)
            except Damage as damage:
                if on_damage is None:
                    raise
                on_damage(entry.file, damage)
                continue
            for number, row in enumerate(rows):
                keys.setdefault(column[row], entry.first + number)
        return keys

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

    def __init__(self, folder, check_data_crc: bool = True, version=None, sources=()):
        """Opens the newest version, or the one with a number (int), a tag, or the CRC that ends its manifest (str). `sources` are
        folders in which source files of virtual shards may lie, besides the dataset's."""
        self.folder, self.check_data_crc = Path(folder), check_data_crc
        self.sources = Sources(self.folder, sources)
        data = (self.folder / "dataset.json").read_bytes()
        self.manifest = Manifest(data)
        if version is not None:
            self.manifest = self._manifest_of(version, data)
        self.splits = {name: Split(self, name) for name in self.manifest.splits}

    def _manifest_of(self, version, data: bytes) -> Manifest:
        newest = self.manifest
        if isinstance(version, str) and _is_hex(version, 8):
            if _own_crc(data) == version:
                return newest
            for path in sorted((self.folder / "_versions").glob("*.json")):
                if path.stem.isdigit() and _own_crc(path.read_bytes()) == version:
                    return self._earlier(int(path.stem))
            raise LookupError(f"no version with the CRC {version}")
        number = newest.tags.get(version, version)
        if number == newest.version:
            return newest
        if not isinstance(number, int) or not 1 <= number < newest.version:
            raise LookupError(f"no version {version!r}")
        return self._earlier(number)

    def _earlier(self, number: int) -> Manifest:
        manifest = Manifest((self.folder / "_versions" / f"{number:06}.json").read_bytes())
        if manifest.version != number:
            _refuse("ManifestValue", f"version {manifest.version} in the file of version {number}")
        return manifest


# --- verification ---


def verify(folder, sources=()):
    """Returns all findings in a dataset, and the number of records that are delivered without error. `sources` as of Dataset."""
    folder = Path(folder)
    opened = Sources(folder, sources)
    try:
        manifest = Manifest((folder / "dataset.json").read_bytes())
    except Damage as damage:
        return [damage], 0
    findings: list = []
    good = 0
    for shards in manifest.splits.values():
        for entry in shards:
            check = _ShardCheck(folder, manifest, entry, opened)
            check.run()
            findings += check.findings
            good += check.good
    return findings, good


class _ShardCheck:
    """Verifies one shard and its index."""

    def __init__(self, folder: Path, manifest: Manifest, entry: ShardEntry, sources: Sources):
        self.folder, self.manifest, self.entry, self._sources = folder, manifest, entry, sources
        self._index: Optional[Index] = None
        self.findings: list = []
        self.columns: dict = {}  # those that passed their check
        self.live: set = set()  # rows that are records of the version and can be delivered
        self.good = 0

    def run(self):
        try:
            self._sources.stored(self.entry, self.entry.file)
        except Damage as refused:
            self.findings.append(refused)
            return
        data = None if self.entry.is_virtual else self._map_shard()
        self._open_index()
        self._check_companions()
        if data is not None:
            self._read_frames(data)
            if not self._has_finding(self.entry.file):
                self._check_shard(crc32c(data), hashlib.sha256(data))
        elif self.entry.is_virtual and self._index is not None:
            self._read_virtual(self._index)
        self._check_index()

    def _has_finding(self, file: str) -> bool:
        return any(finding.file == file for finding in self.findings)

    def _has_error(self, *names: str) -> bool:
        return any(finding.name in names for finding in self.findings)

    def _map_shard(self):
        try:
            data = _map(self._sources.stored(self.entry, self.entry.file), "MissingShard", self.entry.file)
        except Damage as damage:
            self.findings.append(damage)
            return None
        if len(data) != self.entry.bytes:
            self.findings.append(_shard_length(self.entry, len(data)))
        return data

    def _open_index(self):
        try:
            index = open_index(self._sources, self.entry)
        except Damage as damage:
            self.findings.append(damage)
            return
        self._index = index
        for column in index.columns.values():
            try:
                column.check()
            except Damage as damage:
                self.findings.append(damage)
                continue
            self.columns[column.name] = column

    def _check_companions(self):
        try:
            self.live = set(live_rows(self.folder, self.entry))
        except Damage as damage:
            self.findings.append(damage)
        for name in self.entry.companions:
            try:
                changed = ChangedFeature(self.folder, self.manifest, self.entry, name)
            except Damage as damage:
                self.findings.append(damage)
                self.live = set()
                continue
            try:
                self._check_rows(changed)
                _check_part(changed.data, changed.companion.part)
            except Damage as damage:
                self.findings.append(damage)

    def _check_rows(self, changed: ChangedFeature):
        """Checks each row. Raises the first Damage, which costs the records of such rows only."""
        first = None
        for row in range(self.entry.records):
            try:
                changed.row(row)
            except Damage as damage:
                self.live.discard(row)
                first = first or damage
        if first is not None:
            raise first

    def _read_frames(self, data):
        """Reads the shard from its first frame to its last. Bytes past the manifest's length are ignored."""
        end = min(len(data), self.entry.bytes)
        offsets = self._sorted_offsets()
        at, row = 0, 0
        while at < end:
            try:
                frame = Frame(data, at, self.entry.file, row)
            except Damage as damage:
                following = bisect_right(offsets, (at, self.entry.records))
                is_last = following == len(offsets) or offsets[following][0] >= end
                # A wrong length of the file explains that its last frame is truncated.
                if not (damage.name == "TruncatedFrame" and is_last and self._has_error("ShardLength")):
                    self.findings.append(damage)
                if damage.name == "CompressedRecords" or is_last:
                    break
                at, row = offsets[following]
                continue
            self._check_record(row, frame)
            at, row = frame.end, row + 1
        explained = ("ShardLength", "LengthCrc", "TruncatedFrame", "CompressedRecords", "RecordCount")
        if row != self.entry.records and not self._has_error(*explained):
            text = f"expected {self.entry.records} records, found {row}"
            self.findings.append(Damage("RecordCount", self.entry.file, text))

    def _read_virtual(self, index: Index):
        """Makes and checks the frame of each row of a virtual shard."""
        shard = VirtualShard(index, self.entry, self._sources)
        crc, digest, is_whole = 0, hashlib.sha256(), True
        for row in range(self.entry.records):
            try:
                frame = shard.frame(row)
            except Damage as damage:
                is_whole = False
                if damage.record is not None:  # that of a column was found before
                    self.findings.append(damage)
                continue
            crc = crc32c(frame.bytes, crc)
            digest.update(frame.bytes)
            self._check_record(row, frame)
        if is_whole and not self._has_finding(self.entry.file):
            self._check_shard(crc, digest)

    def _sorted_offsets(self) -> list:
        """Returns (offset, row) of all frames by the index, for continuing after a damaged frame."""
        column = self.columns.get("record_offset")
        if column is None:
            return []
        return sorted((column.stored(row), row) for row in range(self.entry.records))

    def _check_record(self, row: int, frame: Frame):
        found = len(self.findings)
        try:
            data = frame.data()
        except Damage as damage:
            self.findings.append(damage)
            return
        try:
            features = parse_record(data, self.manifest)
        except ValueError as error:
            self.findings.append(Damage("MalformedExample", self.entry.file, str(error), row, frame.offset))
            return
        if row < self.entry.records:
            self._compare_row(frame.offset, row, features)
        self._decode(lambda: pixels_of(features, self.manifest.image), row, frame.offset)
        for name in array_names(features):
            self._decode(lambda: array_of(features, name), row, frame.offset)
        if row in self.live and "record_offset" in self.columns and len(self.findings) == found:
            self.good += 1

    def _decode(self, decode: Callable, row: int, at: int):
        try:
            _decoded(decode, self.entry.file, row, at)
        except NotDecoded:
            pass
        except Damage as damage:
            self.findings.append(damage)

    def _compare_row(self, at: int, row: int, features: dict):
        """Compares a record with its row of the index."""
        self._compare("record_offset", row, at)
        self._compare_image(row, *image_range(features, self.manifest.image))
        self._compare("key", row, key_of(features, self.entry.file, row))
        for name, column in self.columns.items():
            if name.startswith("feature:"):
                self._compare(name, row, one(features, name[len("feature:") :], column.type))
            if name.startswith("values:"):
                self._compare_ranges(column, row, features.get(name[len("values:") :]))

    def _compare(self, name: str, row: int, expected):
        column = self.columns.get(name)
        if column is None:
            return
        found = column.stored(row)
        if found != expected:
            self._mismatch(f"{name}: record {expected!r:.60}, index {found!r:.60}", row)

    def _compare_image(self, row: int, offset: int, length: int):
        """Compares offset and length, as one check."""
        for name, expected in (("image_offset", offset), ("image_length", length)):
            column = self.columns.get(name)
            if column is not None and column.stored(row) != expected:
                self._mismatch(f"{name}: record {expected}, index {column.stored(row)}", row)
                return

    def _compare_ranges(self, column: Column, row: int, feature: Optional[Feature]):
        expected = []
        if feature is not None and feature.kind == "bytes":
            expected = [(begin, len(value), crc32c(value)) for begin, value in zip(feature.begins, feature.stored)]
        found = column.ranges(row)
        if found != expected:
            self._mismatch(f"{column.name}: record {expected!r:.60}, index {found!r:.60}", row)

    def _mismatch(self, text: str, row: int):
        self.findings.append(Damage("IndexMismatch", index_file(self.entry), text, row))

    def _check_shard(self, found: int, digest):
        """Compares CRC and SHA-256 of the shard with the manifest. Call it if nothing else explains that they differ."""
        if found != self.entry.crc32c:
            self.findings.append(
                Damage("ShardCrc", self.entry.file, f"expected {self.entry.crc32c:08x}, found {found:08x}")
            )
            return
        if self.entry.sha256 is None:
            return
        if digest.hexdigest() != self.entry.sha256:
            self.findings.append(
                Damage("ShardSha256", self.entry.file, f"expected {self.entry.sha256}, found {digest.hexdigest()}")
            )

    def _check_index(self):
        """Compares length and CRC of the index with the manifest, if nothing else explains that they differ."""
        file = index_file(self.entry)
        if self._has_finding(file):
            return
        data = _map(self._sources.stored(self.entry, file), "MissingIndex", file)
        if len(data) != self.entry.index_bytes:
            self.findings.append(
                Damage("IndexCrc", file, f"expected {self.entry.index_bytes} bytes, found {len(data)}")
            )
            return
        found = crc32c(data)
        if found != self.entry.index_crc32c:
            self.findings.append(
                Damage("IndexCrc", file, f"expected {self.entry.index_crc32c:08x}, found {found:08x}")
            )
