"""Rows of the blocks of Ray Data, and the types of their features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from ray.data.block import BlockAccessor

from ..errors import OptionError
from ..objects import Boxes, is_objects
from ..values import Kind, infer_features

__all__ = ["OWN", "Fields", "Row", "features_of", "rows_of"]

#: Members of a row that are not features.
OWN = ()
#: Rows that are converted to Python at once.
AT_ONCE = 64
_OBJECTS = "objects"
#: Columns that are left out, since every record has these features, made of its key, image and label.
_DERIVED = frozenset(
    f"image/{name}"
    for name in ("channels", "encoded", "filename", "format", "height", "key", "orientation", "width", "class/label", "class/text")
)
_USES = ("image", "label", "key")


class Fields:
    """Names of the columns that are image, label and key."""

    def __init__(self, given: Mapping[str, str]):
        if unknown := set(given) - set(_USES):
            raise OptionError(f"`map` has {sorted(unknown)}: expected names of columns for {', '.join(_USES)}")
        self.image, self.label, self.key = (given.get(use, use) for use in _USES)
        self.path = "path"


@dataclass(frozen=True)
class Row:
    """A row: its key, image and label, and the values of the other columns with their types."""

    key: str
    image: Any
    label: Any
    has_image: bool
    has_label: bool
    values: dict[str, Any]
    types: dict[str, pa.DataType]


def rows_of(blocks: Iterable[Any], fields: Fields, task: int) -> Iterator[Row]:
    """Yields the rows of blocks, which are read once."""
    number = 0
    for block in blocks:
        table = BlockAccessor.for_block(block).to_arrow()
        table = table.drop_columns([name for name in table.column_names if name in _DERIVED])
        types: dict[str, pa.DataType] = {}
        for field in table.schema:
            types.update(_flat_types(field.name, field.type))
        has_image = fields.image in table.column_names or fields.path in table.column_names
        has_label = fields.label in table.column_names and not pa.types.is_null(table.schema.field(fields.label).type)
        for start in range(0, table.num_rows, AT_ONCE):
            part = table.slice(start, AT_ONCE)
            columns = {name: _values(part.column(name)) for name in part.column_names}
            for at in range(part.num_rows):
                values = {name: column[at] for name, column in columns.items()}
                path = values.pop(fields.path, None)
                image = _image(values.pop(fields.image, None), path)
                key = values.pop(fields.key, None)
                label = _scalar(values.pop(fields.label, None))
                key = _key(path if key is None else key) or f"{task:05}-{number:08}"
                yield Row(key, image, label, has_image, has_label, _flat(values), types)
                number += 1


def features_of(values: Mapping[str, Any], types: Mapping[str, pa.DataType], boxes: Boxes) -> dict[str, Kind]:
    """Returns the features of a row with their types, which are those of the columns."""
    features: dict[str, Kind] = {}
    for name, value in values.items():
        if value is None:
            continue
        if name == _OBJECTS and is_objects(value):
            features.update(infer_features({name: value}, OWN, boxes))
        else:
            features.update(_features(name, types[name]))
    return features


def _features(name: str, kind: pa.DataType) -> dict[str, Kind]:
    leaf, depth, ragged = kind, 0, False
    while True:
        if pa.types.is_list(leaf) or pa.types.is_large_list(leaf):
            leaf, depth, ragged = leaf.value_type, depth + 1, True
        elif pa.types.is_fixed_size_list(leaf):
            leaf, depth = leaf.value_type, depth + 1
        elif _is_tensor(leaf):
            leaf, depth = _element(leaf), depth + len(leaf.shape)
        elif pa.types.is_dictionary(leaf):
            leaf = leaf.value_type
        else:
            break
    found: dict[str, Kind] = {name: _kind(name, leaf)}
    if depth == 2 and ragged:
        found[f"{name}/lengths"] = "int64"
    elif depth > 1:
        found[f"{name}/shape"] = "int64"
    return found


def _is_tensor(kind: pa.DataType) -> bool:
    return isinstance(kind, pa.BaseExtensionType) and hasattr(kind, "shape")


def _element(kind: Any) -> pa.DataType:
    """Returns the type of the elements of tensors."""
    storage = kind.storage_type
    # Tensors of different shapes are structs of elements and shape.
    return storage.field("data").type.value_type if pa.types.is_struct(storage) else storage.value_type


def _kind(name: str, leaf: pa.DataType) -> Kind:
    types = pa.types
    if types.is_uint64(leaf):
        return "uint64"
    if types.is_boolean(leaf) or types.is_integer(leaf):
        return "int64"
    if types.is_floating(leaf):
        return "float64" if types.is_float64(leaf) else "float"
    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary, types.is_fixed_size_binary)
    if any(is_text(leaf) for is_text in texts):
        return "bytes"
    raise OptionError(f"column `{name}` is of type {leaf}: expected numbers, text, bytes, or lists of these; convert or drop it")


def _flat_types(name: str, kind: pa.DataType) -> dict[str, pa.DataType]:
    """Returns the types of a column, or of the members of a struct."""
    if not pa.types.is_struct(kind):
        return {name: kind}
    found = {name: kind}
    for at in range(kind.num_fields):
        member = kind.field(at)
        found.update(_flat_types(f"{name}/{member.name}", member.type))
    return found


def _flat(values: dict[str, Any]) -> dict[str, Any]:
    """Returns values by name, with a name for each member of a struct."""
    if not any(isinstance(value, Mapping) for value in values.values()):
        return values
    found: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, Mapping) and not (name == _OBJECTS and is_objects(value)):
            found.update(_flat({f"{name}/{member}": inner for member, inner in value.items()}))
        else:
            found[name] = value
    return found


def _values(column: pa.ChunkedArray) -> list[Any]:
    """Returns the values of a column; tensors as arrays."""
    found: list[Any] = []
    for chunk in column.chunks:
        if hasattr(chunk, "to_numpy_ndarray"):
            found.extend(chunk.to_numpy_ndarray())
        elif _is_tensor(chunk.type):
            found.extend(chunk.to_numpy(zero_copy_only=False))
        else:
            found.extend(chunk.to_pylist())
    return found


def _image(image: Any, path: Any) -> Any:
    """Returns an image: of the column as it is, or as Hugging Face's datasets have it; else of the file that `path` names."""
    if isinstance(image, Mapping):
        image = image.get("bytes") or image.get("path")
    return path if image is None else image


def _key(key: Any) -> str:
    return key.decode(errors="replace") if isinstance(key, bytes) else "" if key is None else str(key)


def _scalar(label: Any) -> Any:
    return label.item() if hasattr(label, "item") else label
