"""Compares pixels, orientations and sizes with Pillow's over whole collections of images, and packs, verifies and loads each.

    python crates/decode/tests/foreign.py PIXELS SHARDTOOL OUT [--write] NAME=FOLDER...

PIXELS is the example `pixels` with all features, SHARDTOOL the command line's program, NAME the name of a collection, such as
that of its repository with `+` for `/`. OUT is a folder for datasets and for `NAME.jsonl`, which has a line for each file; a
collection that has one is not examined again. `scripts/campaign collections` builds and runs all.

Formats are detected from content. Files of no format that we read go through `pack` only, which has to reject them or to convert
them to PNG. Needs
Pillow and numpy; compares JPEG XL too if there is pillow-jxl-plugin, and loads each dataset if there is the module
`shardtool`. Exits with 1

- if a decoder panics, ends, hangs for a minute, or takes more memory than the pixels of a decoded image explain;
- if pixels differ from Pillow's for a reason that is not in `EXPLAINED` here or in `formats.py`, or if an orientation or a
  size differs;
- if records and rejected inputs together are not the files of a collection; if an image that decodes is rejected or a bad sample,
  or one that does not decode passes `verify --decode`; if a loader does not deliver the good records;
- if the tables in docs/formats.md are not those of all files in OUT. `--write` writes them.
"""

import collections
import json
import multiprocessing
import os
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import warnings

import formats
import numpy as np
from PIL import Image, ImageOps

try:
    import pillow_jxl  # noqa: F401 reads JPEG XL
except ImportError:
    pass
try:
    import shardtool
except ImportError:
    shardtool = None

# Bytes of address space for one decoder, and what it may add to its peak: the file, its pixels a few times, and 64 MiB.
ADDRESS_SPACE, MARGIN, PER_PIXEL = 8 << 30, 64 << 20, 24

# Files by name: JPEG XL, of which the plugin shows something else, and lossy JPEG 2000.
PLUGIN = (
    "Reagan|testJXL_ISOBMFF|testJXL_exif|test|sample|3x3_jpeg_recompression|animation_(distance_[013]_0|effort_[39]|frame_indexed)|"
    "animation_(progressive|with_patches)|intensity_target_(1|4|10)000nits|multiple_layers_noise_spline|cropped_traffic_light|"
    "pq_gradient|(animation_(icos4d|newtons_cradle|spline)|bench_oriented_brg|cafe|grayscale|grayscale_jpeg|patches|progressive)/input"
)
FUZZED = "5112097090961408|5382562858532864|5582808628723712|5849986531721216|6329817929220096"
LOSSY = "ybr-cat|p0_03|p0_05|p1_03|subsampling_1|db11217111510058|issue458|issue979"

# As formats.EXPLAINED, and before it. The names have their folder, and the details the property of `properties`.
EXPLAINED = [
    ("BMP", "different: .*blauesglas_4", "4-bit run lengths beyond an odd row, which Pillow continues in the next one"),
    ("BMP", "different: .*; a palette of one colour", "a palette of one colour: other indices are black; Pillow reads the image as one of 1 bit"),
    ("GIF", "within 2", "pixels that are transparent or outside the first frame are black; in Pillow of a palette colour"),
    ("GIF", "Pillow refuses", "a first frame outside the canvas"),
    ("GIF", "we refuse: .*unknown extension", "an extension block of an unknown kind"),
    ("GIF", "we refuse: gif of \\d+x\\d+ pixels", "a canvas without pixels"),
    ("GIF", "we refuse: .*(End of File|minimal code|block type|wrong length)", "damaged blocks after those that Pillow reads"),
    ("JPEG", "we refuse: truncated jpeg", "cut short: an error here, a warning in libjpeg"),
    ("JPEG", "Pillow refuses", "an empty JFIF segment, on which no pixel depends"),
    ("JPEG 2000", "different: .*(bgra)", "components in another order, which the container declares (cdef): followed here, not in Pillow"),
    ("JPEG 2000", "different: .*(4bpp|u4|5bit|[1-7]bit)", "samples of fewer than 8 bits are scaled to 255; Pillow shifts them"),
    ("JPEG 2000", "different: .*(16bit|16bpp)", "16-bit samples are rounded to 8 bits; in Pillow the largest ones become 0"),
    ("JPEG 2000", "different: .*issue412", "a palette in which a colour occurs twice: Pillow moves the later ones"),
    ("JPEG 2000", "different: .*(ycc42|odd_origin)", "subsampled chroma of an odd width or origin: Pillow moves its rows"),
    ("JPEG 2000", "different: .*(mono_colr|p0_06)", "four components of different sampling and no colour space"),
    ("JPEG 2000", "different: at most 255, 0\\.", "16-bit samples are rounded to 8 bits; in Pillow the largest ones become 0"),
    ("JPEG 2000", f"different: at most \\d+,.*/({LOSSY})\\.", "another reconstruction of lossy coefficients than OpenJPEG's"),
    ("JPEG 2000", "we refuse: .*(SOT|marker|no tiles|box|exponents|coding passes)", "damaged boxes, markers or tiles"),
    ("JPEG XL", "we refuse: .*non-UTF-8", "a preview frame, which `jxl-oxide` does not read"),
    (
        "JPEG XL",
        f"different: .*(/|\\[)(({PLUGIN})\\.jxl|clusterfuzz-testcase-minimized-djxl_fuzzer-({FUZZED}))\\]",
        "the plugin shows linear light, the last frame of an animation, the JPEG that was transcoded, or does not turn; "
        "the references of libjxl/conformance are ours, to within 2",
    ),
    ("PNG", "we refuse: .*CRC error", "the checksum of a chunk with pixels is wrong; Pillow does not check it"),
    ("PNG", "we refuse: .*(appeared before|at most once)", "chunks in an order or number that PNG does not allow"),
    ("PNG", "we refuse: .*(Missing palette|PLTE)", "a palette that is missing or of a wrong length"),
    ("PNG", "we refuse: .*(end of file|compression method)", "damaged or cut short"),
    ("TIFF", "different: .*IndexColorPaletteTiled", "the last row of tiles without compression, which Pillow loses"),
    ("TIFF", "different: .*f57321e11d92", "a damaged directory, of which Pillow misses the last tag, ExtraSamples"),
    ("TIFF", "we refuse: .*lossless", "refused by name: lossless JPEG compression"),
    ("TIFF", "we refuse: .*(offset for each|truncated|ends at byte|are damaged in|the size of a JPEG)", "damaged tags or data"),
    ("WebP", "Pillow refuses", "damaged behind the pixels; `pack` rejects it as cut short"),
]


def peak(pid):
    """The peak of resident memory since it was last read, in bytes."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")
    return int(re.search(r"VmHWM:\s+(\d+)", text)[1]) << 10


def pillow_upright(path):
    """The size in the header, and the RGB pixels after `exif_transpose`: None if it fails, the word `same` if it does nothing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        image = Image.open(path)
        size = image.size
        try:
            turned = image.getexif().get(0x0112, 1) in range(2, 9)
            return size, np.asarray(ImageOps.exif_transpose(image).convert("RGB")) if turned else "same"
        except Exception:  # noqa: BLE001 Pillow raises anything
            return size, None


class Once:
    """Asks the program each request about a file once."""

    def __init__(self, ours):
        self.ours, self.answers = ours, {}

    def __call__(self, request, path):
        if request not in self.answers:
            self.answers[request] = self.ours(request, path)
        return self.answers[request]


state = {}


def start(program):
    Image.MAX_IMAGE_PIXELS = 1 << 27
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    state["ours"] = formats.Ours(program)
    state["folder"] = tempfile.mkdtemp(prefix="foreign-")


def properties(row, ours, path):
    """What `EXPLAINED` has to know of a file in addition to its outcome."""
    if row["format"] == "BMP" and row["outcome"] == "different":
        # A palette with one entry (biClrUsed); our pixels are of that colour or black, for any other index.
        start, pixels = path.read_bytes()[:64], ours("decode", path)[0].reshape(-1, 3)
        header, used = (int.from_bytes(start[at : at + 4], "little") for at in (14, 46))
        color = np.frombuffer(start[14 + header : 17 + header][::-1], np.uint8)
        if header == 40 and used == 1 and ((pixels == color).all(axis=1) | (pixels == 0).all(axis=1)).all():
            return "; a palette of one colour"
    return ""


def examine(path):
    """A row about one file."""
    row = {"path": str(path), "bytes": path.stat().st_size, "format": formats.format_of(path)}
    if row["format"] is None:
        return row
    # The protocol separates by spaces.
    link = pathlib.Path(state["folder"]) / ("link" + (path.suffix if path.suffix.isascii() and " " not in path.suffix else ""))
    link.unlink(missing_ok=True)
    link.symlink_to(path.resolve())
    program = state["ours"]
    ours = Once(program)
    peak(program.process.pid)
    pid, before = program.process.pid, peak(program.process.pid)
    row["outcome"], row["detail"] = formats.compare(ours, link)
    info, reason = ours("info", link)
    row["detail"] += properties(row, ours, link)
    if info is not None:
        row["orientation"], row["channels"] = int(info[0, 0, 0]), int(info[0, 0, 1])
    else:
        row["header"] = reason
    pixels = 0
    if row["outcome"] in ("equal", "within 2", "different"):
        size, theirs = pillow_upright(link)
        stored, _ = ours("decode", link)
        row["size"], row["pillow_size"] = [stored.shape[1], stored.shape[0]], list(size)
        pixels = stored.shape[0] * stored.shape[1]
        # JPEG XL and TIFF are turned by one of the decoders already.
        if (isinstance(theirs, str) and row["orientation"] == 1) or row["format"] in ("JPEG XL", "TIFF"):
            pass
        elif isinstance(theirs, str) or theirs is None:
            row["upright"] = f"orientation {row['orientation']}, Pillow: {theirs or 'an error'}"
        else:
            mine, _ = ours("upright", link)
            if mine is None or mine.shape != theirs.shape:
                row["upright"] = f"orientation {row['orientation']}: {None if mine is None else mine.shape}, Pillow {theirs.shape}"
            elif row["outcome"] == "equal" and not np.array_equal(mine, theirs):
                row["upright"] = "pixels differ after orientation"
    if program.process.pid == pid:
        row["memory"] = peak(pid) - before
        row["much"] = row["memory"] > MARGIN + 4 * row["bytes"] + PER_PIXEL * pixels
    return row


def listing(folder):
    """The files that `pack` takes: not the hidden ones."""
    hidden = lambda path: any(part.startswith(".") for part in path.relative_to(folder).parts)  # noqa: E731
    return sorted(path for path in folder.rglob("*") if path.is_file() and not hidden(path))


def command(*arguments, expected=(0, 1)):
    """The JSON that a command prints, and its exit status."""
    result = subprocess.run([*map(str, arguments), "--json"], capture_output=True, text=True, timeout=1800)
    if result.returncode not in expected:
        raise RuntimeError(f"{arguments}: status {result.returncode}: {result.stderr[-400:]}")
    return json.loads(result.stdout) if result.stdout.strip() else {}, result.stderr


def loaded(dataset, bad):
    """Loads an epoch; yields what contradicts `bad`, the keys that `verify` found."""
    split = shardtool.Dataset(str(dataset)).split("train")
    steps = [shardtool.RandomResizedCrop(64)]
    loader = shardtool.Loader(split, 32, steps, order=shardtool.Shuffled(1), bad_samples=shardtool.BadSamples("mask", max_bad=1 << 30), remainder="mask")
    rows = sum(int((np.asarray(batch["label"]) >= 0).sum()) for batch in loader)
    missing = loader.bad_samples()
    if rows + len(missing) != len(split):
        yield f"{len(split)} records, {rows} loaded, {len(missing)} bad samples"
    keys = {sample["key"] for sample in missing}
    # Damage outside of a crop is not detected.
    ranged = {sample["key"] for sample in missing if "needs a range" in sample["message"]}
    for key in sorted(keys - set(bad) - ranged):
        yield f"{key}: a bad sample of the loader, but verify: good"


def packed(program, name, folder, out, rows):
    """Packs, verifies and loads a collection; yields what contradicts its rows."""
    source, dataset = out / f"{name}.source", out / f"{name}.dataset"
    source.mkdir(exist_ok=True)
    # One class, so that files next to folders have one too.
    (source / "all").unlink(missing_ok=True)
    (source / "all").symlink_to(folder.resolve())
    options = ["--from", "folder", "--splits", "none", "--allow-empty", "--force"]
    report, _ = command(program, "pack", source, dataset, *options)
    rejected = {}
    if report["rejected"]:
        for line in (dataset / "rejected-train.jsonl").read_text().splitlines():
            entry = json.loads(line)
            rejected[entry["input"]] = entry["reason"]
    expected = {"all/" + str(pathlib.Path(row["path"]).relative_to(folder)): row for row in rows}
    if report["samples"] != report["images"] + report["rejected"] or report["samples"] != len(expected):
        yield f"{len(expected)} files, {report['images']} records, {report['rejected']} rejected"
    listed = {}
    if report["images"]:
        columns = ["--column", "image/width", "--column", "image/height"]
        listed = {record["key"]: record for record in command(program, "ls", dataset, *columns)[0]["listed"]}
        damages = command(program, "verify", dataset, "--decode")[0]["damages"]
        bad = {damage["key"]: damage["found"] for damage in damages}
        if shardtool:
            yield from loaded(dataset, bad)
    else:
        bad = {}
    for key, row in expected.items():
        row["packed"] = key in listed
        if key in rejected:
            row["rejected"] = rejected[key]
        if key in bad:
            row["verify"] = bad[key]
        if (key in listed) == (key in rejected):
            yield f"{key}: {'both a record and rejected' if key in listed else 'neither a record nor rejected'}"
        decoded = row.get("outcome") in ("equal", "within 2", "different", "Pillow refuses")
        ranged = "needs a range" in row.get("detail", "")
        # Of a file that was converted, the PNG has to decode.
        if key in listed and (decoded or row["format"] is None) == (key in bad) and not ranged:
            yield f"{key}: {row.get('outcome')} but verify: {bad.get(key, 'good')}"
        # What is cut short after its pixels decodes, but is not a complete file. libwebp reads headers that Pillow and
        # `pack` refuse.
        cut_short = rejected.get(key, "").startswith("truncated") or row.get("outcome") == "Pillow refuses"
        if key in rejected and decoded and not cut_short:
            yield f"{key}: {row.get('outcome')} but rejected: {rejected[key]}"
        if key in listed and "pillow_size" in row:
            found = [listed[key]["columns"]["image/width"], listed[key]["columns"]["image/height"]]
            if found != row["pillow_size"] and found != row["size"]:
                yield f"{key}: stored size {found}, decoded {row['size']}, Pillow {row['pillow_size']}"


def explain(row):
    folder, name = row["path"].rsplit("/", 2)[-2:]
    for wanted, pattern, why in EXPLAINED:
        if wanted == row["format"] and re.search(pattern, f"{row['outcome']}: {row['detail']} [{folder}/{name}]"):
            return why
    return formats.explanation(row["format"], row["outcome"], row["detail"], name)


def problems(rows):
    """What is not explained."""
    for row in rows:
        outcome, size = row.get("outcome"), row.get("size")
        if outcome == "panics" or (outcome not in (None, "equal", "both refuse", "no image") and explain(row) is None):
            yield f"{row['path']}: {outcome}: {row['detail']}"
        if row.get("upright") and "Pillow: an error" not in row["upright"]:
            yield f"{row['path']}: {row['upright']}"
        if row.get("much") and size:
            yield f"{row['path']}: {row['memory'] >> 20} MiB"
        # Pillow turns TIFF itself, and enlarges the canvas of GIF to its first frame; the plugin does not turn JPEG XL.
        if size and size != row["pillow_size"] and row["format"] not in ("TIFF", "GIF", "JPEG XL"):
            yield f"{row['path']}: {size}, Pillow {row['pillow_size']}"


def outcome_of(row):
    return row.get("outcome", "converted" if row.get("packed") else "no image")


def section(out):
    """The generated part of the document, about all files in `out`."""
    lines = ["<!-- collections: begin -->"]
    columns = formats.OUTCOMES
    lines += ["| collection | files | no image | converted | " + " | ".join(columns) + " |", "|---|---|---|---|" + "---|" * len(columns)]
    reasons, kinds, total = collections.Counter(), collections.defaultdict(collections.Counter), collections.Counter()
    for path in sorted(out.glob("*.jsonl"), key=lambda path: path.name.lower()):
        rows = [json.loads(line) for line in path.read_text().splitlines()]
        counts = collections.Counter(map(outcome_of, rows))
        total.update(counts)
        lines.append(table_row(path.stem.replace("+", "/"), counts))
        for row in rows:
            if "outcome" in row:
                kinds[row["format"]][row["outcome"]] += 1
                if row["outcome"] not in ("equal", "both refuse"):
                    reasons[row["format"], row["outcome"], explain(row)] += 1
    lines.append(table_row("all", total))
    lines += ["", "| format | files | " + " | ".join(columns) + " |", "|---|---|" + "---|" * len(columns)]
    for kind, counts in sorted(kinds.items()):
        cells = [str(counts[o] or "") for o in columns]
        lines.append(f"| {kind} | {sum(counts.values())} | " + " | ".join(cells) + " |")
    lines += ["", "| format | outcome | files | why |", "|---|---|---|---|"]
    for (kind, outcome, why), count in sorted(reasons.items(), key=lambda item: [str(part) for part in item[0]]):
        lines.append(f"| {kind} | {outcome} | {count} | {why} |")
    return "\n".join([*lines, "<!-- collections: end -->"])


def table_row(name, counts):
    cells = [str(counts[o] or "") for o in ("no image", "converted", *formats.OUTCOMES)]
    return f"| {name} | {sum(counts.values())} | " + " | ".join(cells) + " |"


def main():
    arguments = [argument for argument in sys.argv[1:] if argument != "--write"]
    pixels, program, out, *arguments = arguments
    out = pathlib.Path(out)
    out.mkdir(parents=True, exist_ok=True)
    failed = False
    with multiprocessing.Pool(int(os.environ.get("JOBS", os.cpu_count())), start, (pixels,)) as pool:
        for argument in arguments:
            name, folder = argument.split("=", 1)
            folder, results = pathlib.Path(folder), out / f"{name}.jsonl"
            if results.exists():
                continue
            rows = list(pool.imap(examine, listing(folder), 4))
            wrong = list(packed(program, name, folder, out, rows))
            counts = collections.Counter(map(outcome_of, rows))
            print(f"{name}: {len(rows)} files, " + ", ".join(f"{n} {o}" for o, n in counts.items()), flush=True)
            for line in wrong:
                print(f"PACK {name}: {line}", flush=True)
            failed |= bool(wrong)
            results.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for path in sorted(out.glob("*.jsonl")):
        for problem in problems([json.loads(line) for line in path.read_text().splitlines()]):
            print(f"NOT EXPLAINED {problem}")
            failed = True
    text, document = section(out), formats.DOCUMENT.read_text()
    if "--write" in sys.argv and not failed:
        pattern = re.compile("<!-- collections: begin -->.*?<!-- collections: end -->", re.S)
        formats.DOCUMENT.write_text(pattern.sub(lambda _: text, document))
    elif text not in document:
        print("the tables about collections in docs/formats.md are not what was found; run with --write")
        failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
