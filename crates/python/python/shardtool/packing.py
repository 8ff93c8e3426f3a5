"""Packing datasets."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from . import _shardtool
from .arrays import Array
from .checks import pair, real, whole
from .errors import OptionTypeError
from .keypoints import Keypoints, checked
from .launch import warn
from .progress import reporter

__all__ = ["Packed", "PackedPart", "pack", "pack_part", "write_plan"]


@dataclass(frozen=True)
class Packed:
    """The result of a pack: of one split, or the sums of several."""

    #: Name of the split; of several, their names with commas between them.
    split: str
    #: Number of images.
    images: int
    #: Number of shards.
    shards: int
    #: Bytes of the shards.
    bytes: int
    #: Number of classes that have a name.
    classes: int
    #: Identifies the records: eight hex digits; of several splits, theirs with commas between them.
    fingerprint: str
    #: Number of inputs that could not be packed.
    rejected: int
    #: The path or URL of the file that lists them, if there are any; of several splits, the first one.
    rejected_file: str | None
    #: Number of shards that an interrupted run had finished.
    resumed_shards: int
    #: Whether the split was complete before, so that nothing was written. Ignored by `==`.
    already_complete: bool = field(default=False, compare=False)
    #: Files and folders of the source that were left out: files of other splits, names that systems write, empty folders.
    left_out: tuple[str, ...] = field(default=(), compare=False)
    #: Number of records with at least one image that this run converted to PNG, because its format is not stored (PPM, QOI, ICO, TGA):
    #: their own image, a frame of a clip, a mask or another file. `None` for the result of a `Writer` or of `commit`, which do not
    #: count them. Ignored by `==`.
    converted_to_png: int | None = field(default=None, compare=False)
    #: Number of records whose image, or a frame of a clip, is cut or damaged, and was packed by this run as `truncated` says; `None` as
    #: above. Ignored by `==`.
    truncated: int | None = field(default=None, compare=False)
    #: Number of records from whose images this run removed metadata, with `strip_metadata`; `None` as above. Ignored by `==`.
    metadata_removed: int | None = field(default=None, compare=False)
    #: Number of records whose image had samples of 16 bits, or alpha, and is stored by this run as RGB of 8 bits, because it was resized
    #: or stored as pixels; `None` as above. Ignored by `==`.
    reduced_to_rgb8: int | None = field(default=None, compare=False)
    #: The result of each split, in the order of their names, if the source's names are those of several.
    splits: tuple[Packed, ...] = ()

    @property
    def samples(self) -> int:
        """Number of samples in the source: those that were packed, and those that could not be."""
        return self.images + self.rejected


def joined(splits: list[Packed]) -> Packed:
    """Returns the result of several splits as one; that of one split as it is."""
    if len(splits) == 1:
        return splits[0]
    return Packed(
        split=", ".join(split.split for split in splits),
        images=sum(split.images for split in splits),
        shards=sum(split.shards for split in splits),
        bytes=sum(split.bytes for split in splits),
        classes=splits[0].classes,
        fingerprint=", ".join(split.fingerprint for split in splits),
        rejected=sum(split.rejected for split in splits),
        rejected_file=next((split.rejected_file for split in splits if split.rejected_file), None),
        resumed_shards=sum(split.resumed_shards for split in splits),
        already_complete=all(split.already_complete for split in splits),
        left_out=splits[0].left_out,
        converted_to_png=sum(split.converted_to_png or 0 for split in splits),
        metadata_removed=sum(split.metadata_removed or 0 for split in splits),
        reduced_to_rgb8=sum(split.reduced_to_rgb8 or 0 for split in splits),
        splits=tuple(splits),
        truncated=sum(split.truncated or 0 for split in splits),
    )


def pack(
    source: str | os.PathLike[str],
    destination: str | os.PathLike[str],
    *,
    split: str | None = None,
    splits: Literal["auto", "names", "lists", "none"] = "auto",
    shard_size: int | str | None = None,
    shards: int | None = None,
    seed: int | None = 0,
    jobs: int | None = None,
    classes: str | os.PathLike[str] | None = None,
    kind: Literal["folder", "clips", "list", "tfrecord", "webdataset", "parquet", "mds", "coco", "voc", "yolo", "pairs"] | None = None,
    map: Mapping[str, str] | None = None,
    member_key: Literal["first-dot", "last-dot"] | None = None,
    label_offset: int = 0,
    jpeg: Literal["keep", "optimize"] = "keep",
    columns: Mapping[str, Literal["int64", "float", "bytes", "float64", "uint64", "file", "frames", "flow"] | Array] | None = None,
    fps: float | None = None,
    boxes: Literal["xywh", "xyxy", "cxcywh"] = "xywh",
    first_pixel: Literal[0, 1] = 1,
    box_unit: Literal["pixel", "fraction"] | None = None,
    annotated: Literal["coded", "upright"] | None = None,
    keypoints: Keypoints | None = None,
    images: str | os.PathLike[str] | None = None,
    pixels: Literal["encoded", "raw", "raw-zstd"] = "encoded",
    zstd_level: int = 3,
    resize_shorter: int | None = None,
    max_side: int | None = None,
    quality: int = 90,
    float_range: tuple[float, float] | None = None,
    strip_metadata: bool = False,
    truncated: Literal["error", "fill"] = "error",
    on_error: Literal["skip", "fail"] = "skip",
    allow_empty: bool = False,
    force: bool = False,
    jpeg_entries: bool = True,
    sha256: bool = False,
    ignore_times: bool = False,
    single_writer: bool = False,
    wait: float = 21600,
    progress: bool = False,
) -> Packed:
    """Packs images into the splits of a dataset.

    If the call is interrupted, by Ctrl-C or a kill, the same call resumes after the last finished shard. If the split is
    complete and was packed from the same source with the same options, `pack` writes nothing and returns it.

    Parameters
    ----------
    source
        A folder of class folders; a flat folder; a list (CSV with a header, or JSONL); a COCO annotation file
        (`instances.json`); a folder of Pascal VOC; a `data.yaml` of YOLO, or its folder; or archives: TFRecord,
        WebDataset, Parquet or MDS. The columns `path`, `label` and `key` of a list are used, and all others become features. Or
        the URL of a list, a COCO file, an archive, or a folder or glob of archives in a store.
    destination
        Folder of the dataset, which is created if it does not exist; or the URL of a folder of a store.
    split
        Name of the split. If files or top folders of the source are named for splits, only those of this name are packed.
        Default: each of these names is a split, with class ids in common, and all are published at once; if there are none,
        `"train"`.
    splits
        Whether names of files and top folders are those of splits: `"auto"` if all of them are, and refused where some are and
        others are not; `"names"`, where each top folder is a split; `"lists"`, where lists that lie among images and the files that belong
        to them name those of each split, whatever folders are named; or `"none"`, where the source is one split and top folders are classes.
    shard_size, shards
        Size of a shard in bytes, or as text such as `"256MiB"`; or the number of shards.
    seed
        Seed of the order in which images are packed; `None` keeps the order of the source.
    jobs
        Number of threads. Default: the number of CPUs that this process may use.
    classes
        File with the class names, one per line.
    kind
        Kind of the source. Default: detected from its content, except for `"clips"`: folders of frames, each of which is a
        clip, in class folders or without classes. The feature `frames` has one value per frame.
    map
        Names of an archive's fields, by their use: `{"image": "photo/bytes"}`.
    member_key
        Which members of a tar are one sample: those with the same name up to the first dot, so that `000.seg.png` is the field
        `seg.png` of `000`, or up to the last dot. Default: the first dot, as WebDataset reads tars; refused where that may join
        several samples.
    label_offset
        Subtracted from an archive's labels, which are numbers, to get class ids. Their names move along.
    jpeg
        `"keep"` stores JPEG files as they are; `"optimize"` transcodes them without loss, which makes them smaller.
    columns
        Types of a list's columns. A column of type `"file"` contains paths of files, whose bytes become the feature; one of
        type `Array(...)` paths of files of arrays, which are stored in chunks: `.npy`, PFM, `.flo`, `.dpt`, or PNG and TIFF, whose
        pixels are the elements; one of type `"flow"` paths of optical flow, which is stored as an array `[height, width, 2]`,
        also from KITTI's PNGs; one of type `"frames"` names the frames of a clip: a folder, or in JSONL a list of files.
    fps
        Frames per second of the clips, which becomes the feature `NAME/fps`.
    boxes
        Format of the boxes of a source's `objects`: `"xywh"` is left, top, width, height; `"xyxy"` is left, top, right,
        bottom; `"cxcywh"` is centre, width, height.
    first_pixel
        Number of the first pixel in boxes of Pascal VOC: 1, as its own files count, with right and bottom pixels that belong to the
        box; or 0, as some tools write, where the numbers are edges.
    box_unit
        Unit of these boxes and keypoints: `"pixel"` or `"fraction"`. Default: pixels; images whose boxes are all at most 1 are
        rejected.
    annotated
        The image that they refer to, if it has an EXIF orientation: `"coded"` or `"upright"`. Default: the one whose size the
        columns `width` and `height` give (those of an image in a COCO file); without these, such images are rejected.
    keypoints
        What the keypoints are: `Keypoints(names, …)`. Default: as the categories of a COCO file or the `data.yaml` of YOLO say, else
        as the dataset says that the split is added to.
    images
        Folder of the images of a COCO annotation file. Default: the folder of that file.
    pixels
        `"encoded"` stores image files as they are; `"raw"` and `"raw-zstd"` store decoded RGB.
    zstd_level
        Compression level of `"raw-zstd"`.
    resize_shorter, max_side
        Makes images smaller, so that the shorter or the longer side has at most this many pixels.
    quality
        JPEG quality of images that are made smaller, 1 to 100.
    float_range
        `(low, high)`: the values of floating-point samples (TIFF) that become 0 and 255 where pixels are decoded
        (`pixels`, `resize_shorter`, `max_side`). Values between are scaled linearly, values outside are clamped. Default:
        such images cannot be packed there.
    strip_metadata
        Whether to remove the metadata of all images of a record, also of masks and frames: positions, serial numbers, thumbnails,
        EXIF, XMP, texts. Orientation, colour profile and pixels stay. Images from which it cannot be removed (AVIF, HEIF, JPEG
        2000, JPEG XL in a container) are rejected.
    truncated
        `"error"` rejects a JPEG that is cut. `"fill"` stores its file; where pixels are decoded, it is what libjpeg-turbo makes of it:
        what is missing is grey. Loaders need the same argument.
    on_error
        What happens to inputs that cannot be packed: `"skip"` lists them in a file, `"fail"` ends the call.
    allow_empty
        Whether to publish a split although all of its inputs were rejected.
    force
        Whether to replace a split of that name.
    jpeg_entries
        Whether to store entry points of JPEGs in the index, with which a crop decodes only the rows that it needs.
    sha256
        Whether to store the SHA-256 of each shard in the manifest, which `verify` checks.
    ignore_times
        Whether a file whose length is the same is the same input, although it was written again. Otherwise contents are compared
        where times differ.
    single_writer
        Whether nothing else writes to `destination`: for stores that do not compare versions of objects.
    wait
        Seconds to wait, at most, for another process that packs the same split, such as another rank of the program: what it
        packed is then complete, and returned. If that process is killed, this one continues its work. Not with `force`.
    progress
        Whether to show the progress: a bar on a terminal or, if tqdm is installed, in a notebook; else lines on stderr.

    Raises
    ------
    PackError
        The source cannot be packed, or the split exists and was packed with a different source or options; the message
        names the difference.
    OptionError
        An argument is not valid.
    FileError
        A file operation failed.
    """
    options = locals().copy()
    report = _prepare(options)
    try:
        summaries = _shardtool.pack(options)
    finally:
        if report is not None:
            report.close()
    return results("pack", summaries)


def results(call: str, summaries: list[dict[str, Any]]) -> Packed:
    """Returns the summaries of a call for each split as one, and warns of what was rejected or left out."""
    packed: list[Packed] = []
    for summary in summaries:
        del summary["samples"]
        packed.append(Packed(**{**summary, "left_out": tuple(summary["left_out"])}))
        if summary["rejected"]:
            warn(f"{call} rejected {summary['rejected']} inputs; {summary['rejected_file']} lists them with the reasons")
    if packed[0].left_out:
        warn(f"{call} left out {'; '.join(packed[0].left_out)}")
    return joined(packed)


def _prepare(options: dict[str, Any]) -> Any:
    """Converts the arguments of `pack` for the native module. Returns what reports the progress, to be closed."""
    shard_size, fps, float_range = options["shard_size"], options["fps"], options["float_range"]
    for name, least in (("seed", 0), ("shards", 1), ("jobs", 1), ("resize_shorter", 1), ("max_side", 1), ("quality", 1)):
        if options[name] is not None:
            options[name] = whole(name, options[name], least)
    options["label_offset"] = whole("label_offset", options["label_offset"], -(2**63), 2**63 - 1)
    if shard_size is not None and not isinstance(shard_size, str):
        options["shard_size"] = whole("shard_size", shard_size, 1)
    if fps is not None:
        options["fps"] = real("fps", fps)
    if float_range is not None:
        options["float_range"] = pair("float_range", float_range)
    options["wait"] = real("wait", options["wait"])
    checked(options["keypoints"])
    if options["map"] is not None and not isinstance(options["map"], Mapping):
        raise OptionTypeError(f"`map` is {options['map']!r}: expected a dict of the names of features and of fields or patterns")
    options["map"] = list((options["map"] or {}).items())
    types = (options["columns"] or {}).items()
    options["columns"] = [(name, kind) for name, kind in types if not isinstance(kind, Array)]
    options["arrays"] = [kind._native(name) for name, kind in types if isinstance(kind, Array)]
    report = reporter("packed", "images") if options["progress"] else None
    # Without a reporter, the native module draws its own bar.
    options["report"], options["progress"] = report, options["progress"] and report is None
    return report


@dataclass(frozen=True)
class PackedPart:
    """The result of packing one part of a split."""

    #: Number of shards of the whole split.
    planned_shards: int
    #: Number of shards of this part.
    shards: int
    #: Of these, those that other attempts had finished.
    resumed_shards: int
    #: Number of images in this part's shards, as far as this attempt saw them.
    images: int
    #: Bytes of these shards.
    bytes: int
    #: Number of inputs of this part that could not be packed. `commit` lists them.
    rejected: int
    #: Whether the split was committed before, so that nothing was written.
    already_complete: bool
    #: Number of records whose image, or a frame of a clip, is cut or damaged, and was packed as `truncated` says.
    truncated: int = field(default=0, compare=False)
    #: Number of records with at least one image that this attempt converted to PNG, because its format is not stored.
    converted_to_png: int = field(default=0, compare=False)
    #: Number of records from whose images this attempt removed metadata, with `strip_metadata`.
    metadata_removed: int = field(default=0, compare=False)
    #: Number of records whose image had samples of 16 bits, or alpha, and is stored by this attempt as RGB of 8 bits.
    reduced_to_rgb8: int = field(default=0, compare=False)


def pack_part(
    source: str | os.PathLike[str], destination: str | os.PathLike[str], part: tuple[int, int], **options: Any
) -> PackedPart:
    """Packs one part of a split, on any machine; `commit(destination, split)` completes the split once all parts are packed.

    The parts may run in any order, and each at any time again, also twice at once. The result is that of a single `pack`, byte
    for byte.

    Parameters
    ----------
    source, destination
        As of `pack`, the same for all parts.
    part
        `(i, n)`: the shards whose number modulo `n` is `i`.
    **options
        As of `pack`, the same for all parts, without `force`.

    Raises
    ------
    PackError
        As of `pack`; also if another part had a different source or options.
    """
    number, count = part
    number, count = whole("part", number, 0, 2**32 - 1), whole("part", count, 1, 2**32 - 1)
    options = _with_defaults(source, destination, options)
    report = _prepare(options)
    try:
        return PackedPart(**_shardtool.pack_part(options, number, count))
    finally:
        if report is not None:
            report.close()


def write_plan(source: str | os.PathLike[str], destination: str | os.PathLike[str], **options: Any) -> int:
    """Writes the plan of a pack in parts, with the listing of the source, and no shard. Returns the number of shards. With `force=True`, removes the old split.

    It is not required: the first part that starts writes the plan as well. But then each part lists the source itself. Of a
    source with several splits, it writes the plan of each; each is then packed in parts and committed separately, with `split=NAME`.

    Parameters
    ----------
    source, destination, **options
        As of `pack`, the same as for the parts.
    """
    return sum(shards for _, shards in write_plans(source, destination, **options))


def write_plans(
    source: str | os.PathLike[str], destination: str | os.PathLike[str], **options: Any
) -> list[tuple[str, int]]:
    """As `write_plan`; returns name and number of shards of each split."""
    options = _with_defaults(source, destination, options)
    report = _prepare(options)
    try:
        return [(split, shards) for split, _, shards, _ in _shardtool.write_plans(options)]
    finally:
        if report is not None:
            report.close()


def _with_defaults(source: Any, destination: Any, given: dict[str, Any]) -> dict[str, Any]:
    """Returns all arguments of `pack`, and refuses those that it does not have."""
    signature = inspect.signature(pack)
    try:
        bound = signature.bind(source, destination, **given)
    except TypeError as error:
        raise OptionTypeError(f"pack: {error}") from None
    bound.apply_defaults()
    return dict(bound.arguments)
