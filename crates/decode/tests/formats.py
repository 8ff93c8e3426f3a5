"""Compares decoded pixels with Pillow's, over the test images of Pillow, libjpeg-turbo and image-rs.

    cargo build --release -p shardtool-decode --example pixels
    python crates/decode/tests/formats.py target/release/examples/pixels [--write] [NAME=FOLDER]...

NAME=FOLDER adds the test images of a project (its checkout), for instance `libjpeg-turbo=FOLDER`; SHARDTOOL_FORMATS holds
more of them, separated by colons. Pillow's own are downloaded with pip into the user's cache, unless they are given.
Prints a skip for the others that are not given.

Needs Pillow and numpy. Exits with 1 if a decoder panics or hangs, if a difference to Pillow is not among those explained in
`EXPLAINED`, or if the table in docs/formats.md is not the one found here. `--write` writes that table.
"""

import collections
import os
import pathlib
import queue
import re
import struct
import subprocess
import sys
import tarfile
import threading
import warnings

import numpy as np
import PIL
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[3]
DOCUMENT = ROOT / "docs/formats.md"
SUFFIXES = set("jpg jpeg jfif png apng webp gif bmp dib tif tiff avif heic heif jxl jp2 j2k jpx jpc j2c".split())
BEGINNINGS = [
    (b"\xff\xd8\xff", "JPEG"),
    (b"\x89PNG", "PNG"),
    (b"GIF8", "GIF"),
    (b"BM", "BMP"),
    (b"II*\0", "TIFF"),
    (b"II+\0", "TIFF"),
    (b"MM\0*", "TIFF"),
    (b"MM\0+", "TIFF"),
    (b"\xff\x0a", "JPEG XL"),
    (b"\0\0\0\x0cJXL ", "JPEG XL"),
    (b"\0\0\0\x0cjP  ", "JPEG 2000"),
    (b"\xff\x4f\xff\x51", "JPEG 2000"),
]
SECONDS = 60

# Why a file is not equal to Pillow's reading of it: format, pattern of "OUTCOME: detail [NAME]", reason (with the groups).
EXPLAINED = [
    ("*", "different: its 16-bit", "16-bit grey: the upper 8 bits are kept; Pillow limits values to 255"),
    ("*", "we refuse: [a-z0-9]+ with (.*) is not supported", "refused by name: {0}"),
    ("*", "we refuse: .* images are not decoded: ([^;]*);", "refused by name: {0}"),
    ("TIFF", "we refuse: tiff with (floating-point samples) needs a range", "refused by name: {0}"),
    ("*", "raise `max_side`", "beyond the default limit of 65,535 pixels a side"),
    ("JPEG", "we refuse: invalid jpeg data", "damaged entropy-coded data: an error here, a warning in libjpeg"),
    ("TIFF", "we refuse: invalid jpeg data", "damaged JPEG data: an error here, a warning in libjpeg"),
    ("PNG", "Pillow refuses", "Pillow checks metadata chunks that do not concern the first frame's pixels"),
    ("PNG", "unknown_compression", "the compression method in its header is not checked"),
    ("GIF", "different: \\d+x", "the canvas is the logical screen; Pillow enlarges it to the first frame"),
    ("GIF", "different: at most", "pixels that are transparent or outside the first frame are black; in Pillow of a palette colour"),
    ("GIF", "we refuse: .*no color table", "an image without a palette"),
    ("BMP", "within 2", "samples of 5 and 6 bits are rounded differently"),
    ("BMP", "mmap_error", "its header places the pixels inside the palette: read there; by Pillow after the palette"),
    ("BMP", "we refuse: invalid bmp data: .*(plane|RLE|top-down|header type)", "rare or damaged header or run-length data: {0}"),
    ("BMP", "we refuse: .*pixels (beyond|below)", "damaged run-length data"),
    ("BMP", "Pillow refuses", "bit fields, 2-bit palettes or data cut short that Pillow does not read"),
    ("TIFF", "different: .*(rgb|separated)-planar-16", "Pillow exchanges the bytes of big-endian planes; equal to the same image stored interleaved"),
    ("TIFF", "different: .*ycbcr_lzw_bt709", "uncompressed YCbCr with coefficients, which Pillow ignores; equal to libtiff's own conversion"),
    ("TIFF", "we refuse: .*fax data", "damaged fax data: an error here, a message of libtiff's that Pillow drops"),
    ("TIFF", "Pillow refuses", "a combination of tags that Pillow's table does not have"),
    ("JPEG 2000", "within 2", "another rounding than OpenJPEG's"),
    ("JPEG 2000", "lossy", "another reconstruction of lossy coefficients than OpenJPEG's"),
    ("JPEG 2000", "Pillow refuses", "a box whose length is wrong: only the codestream is needed"),
    ("JPEG XL", "within 2", "another rounding than libjxl's"),
]


class Ours:
    """The example program. A request that takes longer than SECONDS counts as a hang and restarts it."""

    def __init__(self, program):
        self.program = program
        self.start()

    def start(self):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen([self.program], stdin=pipe, stdout=pipe, stderr=pipe)
        self.errors = queue.Queue()
        threading.Thread(target=self.listen, args=(self.process, self.errors), daemon=True).start()

    @staticmethod
    def listen(process, errors):
        for line in process.stderr:
            errors.put(line.decode(errors="replace").rstrip("\n"))
        errors.put(None)

    def __call__(self, request, path):
        """The pixels, or the reason why there are none."""
        line = f"{request} {path}"
        watch = threading.Timer(SECONDS, self.process.kill)
        watch.start()
        try:
            self.process.stdin.write((line + "\n").encode())
            self.process.stdin.flush()
            head = self.process.stdout.read(12)
            if len(head) < 12:
                reason = f"hang: no answer in {SECONDS} s" if not watch.is_alive() else "crash: the program ended"
                self.start()
                return None, reason
            width, height, length = struct.unpack("<III", head)
            data = self.process.stdout.read(length)
        finally:
            watch.cancel()
        if width:
            return np.frombuffer(data, np.uint8).reshape(height, width, 3), None
        while True:
            text = self.errors.get(timeout=SECONDS)
            if text is None or text.startswith(f"{line}: "):
                return None, (text or "crash").removeprefix(f"{line}: ")


def pillow(path):
    """Pillow's pixels as RGB, as 16-bit grey if they are, and the reason why there are none."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(path)
            deep = np.asarray(image) if image.mode.startswith("I;16") else None
            return np.asarray(image.convert("RGB")), deep, None
    except Exception as error:  # noqa: BLE001 Pillow raises anything
        return None, None, f"{type(error).__name__}: {str(error).replace(str(path), path.name)}"


def format_of(path):
    start = path.read_bytes()[:32]
    for beginning, name in BEGINNINGS:
        if start.startswith(beginning):
            return name
    if start[8:12] == b"WEBP":
        return "WebP"
    if start[4:8] == b"ftyp":
        return "AVIF" if start[8:12] in (b"avif", b"avis") else "HEIF"
    return None


def compare(ours, path):
    """(outcome, detail): equal, within 1 or 2, different, or who refuses it."""
    theirs, deep, their_reason = pillow(path)
    mine, reason = ours("decode", path)
    if mine is None:
        if re.match("hang|crash", reason) or "panicked" in reason:
            return "panics", reason
        return ("both refuse" if theirs is None else "we refuse"), reason
    if theirs is None:
        return "Pillow refuses", their_reason
    if mine.shape != theirs.shape or not np.array_equal(mine, theirs):
        upright, _ = ours("upright", path)
        if upright is not None and upright.shape == theirs.shape and np.array_equal(upright, theirs):
            return "equal", "upright"
    if mine.shape != theirs.shape:
        return "different", f"{mine.shape[1]}x{mine.shape[0]}, Pillow {theirs.shape[1]}x{theirs.shape[0]}"
    difference = np.abs(mine.astype(int) - theirs.astype(int))
    if not difference.any():
        return "equal", ""
    for shift in range(1, 9):
        if deep is not None and np.abs(mine.astype(int) - (deep >> shift)[..., None]).max() <= 1:
            return "different", f"its 16-bit values shifted by {shift}, to within 1"
    detail = f"at most {difference.max()}, {100 * (difference.max(axis=2) > 0).mean():.1f} % of pixels"
    return ("within 2" if difference.max() <= 2 else "different"), detail


OUTCOMES = ["equal", "within 2", "different", "we refuse", "Pillow refuses", "both refuse", "panics"]


def pillow_images():
    """Tests/images of the release that is installed, from its source distribution."""
    cache = pathlib.Path(os.environ.get("XDG_CACHE_HOME", pathlib.Path.home() / ".cache")) / "shardtool/images"
    folder = cache / f"pillow-{PIL.__version__}"
    if not folder.is_dir():
        source = f"pillow=={PIL.__version__}"
        command = [sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps"]
        result = subprocess.run([*command, "--no-binary", "pillow", "-d", cache, source], capture_output=True, text=True)
        archives = list(cache.glob(f"[pP]illow-{PIL.__version__}.tar.gz"))
        if not archives:
            sys.exit(f"Pillow's test images cannot be downloaded: {result.stderr.strip()[-200:]}")
        with tarfile.open(archives[0]) as archive:
            archive.extractall(cache / "unpacked", filter="data")
        (images,) = (cache / "unpacked").glob("*/Tests/images")
        images.rename(folder)
    return folder


def suites(arguments):
    given = [a for a in arguments if "=" in a] + [a for a in os.environ.get("SHARDTOOL_FORMATS", "").split(":") if a]
    found = dict(argument.split("=", 1) for argument in given)
    if "pillow" not in found:
        found["pillow"] = pillow_images()
    for name in ("libjpeg-turbo", "image", "image-tiff"):
        if name not in found:
            print(f"skipped: the test images of {name} are not there (SHARDTOOL_FORMATS={name}=FOLDER)")
    return {name: pathlib.Path(folder) for name, folder in sorted(found.items())}


def files(folder):
    for path in sorted(folder.rglob("*")):
        # The protocol of the example separates by spaces.
        if path.suffix[1:].lower() in SUFFIXES and path.is_file() and " " not in str(path):
            yield path


def explanation(kind, outcome, detail, name):
    for wanted, pattern, why in EXPLAINED:
        found = re.search(pattern, f"{outcome}: {detail} [{name}]") if wanted in (kind, "*") else None
        if found:
            return why.format(*found.groups())
    return None


def section(name, rows):
    """The generated part of the document about one suite."""
    lines = [f"<!-- {name}: begin -->"]
    lines += ["| format | files | " + " | ".join(OUTCOMES) + " |", "|---|" + "---|" * (len(OUTCOMES) + 1)]
    counts = collections.defaultdict(collections.Counter)
    for _, kind, outcome, _, _ in rows:
        counts[kind][outcome] += 1
    for kind in sorted(counts):
        row = [counts[kind][o] or "" for o in OUTCOMES]
        lines.append(f"| {kind} | {sum(counts[kind].values())} | " + " | ".join(map(str, row)) + " |")
    total = [sum(c[o] for c in counts.values()) for o in OUTCOMES]
    lines.append(f"| all | {len(rows)} | " + " | ".join(str(n or "") for n in total) + " |")
    reasons = collections.defaultdict(list)
    for path, kind, outcome, _, why in rows:
        if outcome not in ("equal", "both refuse"):
            reasons[kind, outcome, why].append(path)
    if reasons:
        lines += ["", "| format | outcome | files | why |", "|---|---|---|---|"]
    for (kind, outcome, why), paths in sorted(reasons.items(), key=lambda item: [str(part) for part in item[0]]):
        shown = ", ".join(f"`{p.name}`" for p in paths[:4]) + (f" and {len(paths) - 4} more" if len(paths) > 4 else "")
        lines.append(f"| {kind} | {outcome} | {shown} | {why} |")
    return "\n".join([*lines, f"<!-- {name}: end -->"])


def main():
    program, *arguments = sys.argv[1:]
    Image.MAX_IMAGE_PIXELS = 1 << 27
    ours, failed = Ours(program), False
    document = DOCUMENT.read_text() if DOCUMENT.exists() else ""
    for suite, folder in suites(arguments).items():
        rows = []
        for path in files(folder):
            kind = format_of(path)
            if kind is None:
                continue
            outcome, detail = compare(ours, path)
            why = explanation(kind, outcome, detail, path.name)
            rows.append((path, kind, outcome, detail, why))
            if outcome == "panics" or (outcome not in ("equal", "both refuse") and why is None):
                print(f"NOT EXPLAINED {kind} {path.relative_to(folder)}: {outcome}: {detail}")
                failed = True
        counts = collections.Counter(row[2] for row in rows)
        print(f"{suite}: {len(rows)} files, " + ", ".join(f"{counts[o]} {o}" for o in OUTCOMES if counts[o]))
        text = section(suite, rows)
        pattern = re.compile(re.escape(f"<!-- {suite}: begin -->") + ".*?" + re.escape(f"<!-- {suite}: end -->"), re.S)
        if "--write" in arguments and not failed:
            document = pattern.sub(lambda _: text, document)
            DOCUMENT.write_text(document)
        elif text not in document:
            print(f"the table about {suite} in {DOCUMENT.name} is not what was found; run with --write")
            failed = True
    return failed


if __name__ == "__main__":
    sys.exit(main())
