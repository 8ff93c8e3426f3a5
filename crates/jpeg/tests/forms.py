"""Compares this crate's pixels with libjpeg-turbo's for JPEGs of every form that the standard allows, bit for bit.

    cargo build --release -p shardtool-jpeg --example crc
    python crates/jpeg/tests/forms.py target/release/examples/crc [COUNT [SEED]]

Needs numpy, and Pillow built with libjpeg-turbo. Each file is made from random quantised coefficients by the entropy coder below, so
that it depends on no encoder: one, three or four components; sampling factors from 1 to 4; one scan, a scan for each component,
scans that repeat others or are missing, scans of progressive images in any legal order; restart intervals; Adobe and JFIF markers;
equal component identifiers; DNL. The whole image, its reductions, random rectangles and the transcoded image must equal Pillow's
`convert("RGB")`, and in grey its `convert("L")` or libjpeg's luma, or both must refuse the file. Files are numbered: a SEED and a
number always give the same file.
"""

import collections
import os
import random
import re
import subprocess
import sys
import tempfile
import warnings
import zlib

import numpy as np
from PIL import ImageFile, features

from oracle import references

ZIGZAG = [
    0, 1, 8, 16, 9, 2, 3, 10, 17, 24, 32, 25, 18, 11, 4, 5, 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6, 7, 14, 21, 28, 35, 42,
    49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63,
]  # fmt: skip

#: Sampling factors that encoders write, and that libjpeg reads, for three components; a fourth one has those of the first.
COMMON = [
    [(1, 1), (1, 1), (1, 1)],
    [(2, 2), (1, 1), (1, 1)],
    [(2, 1), (1, 1), (1, 1)],
    [(1, 2), (1, 1), (1, 1)],
    [(4, 1), (1, 1), (1, 1)],
    [(2, 2), (2, 1), (1, 2)],
    [(1, 1), (2, 2), (2, 2)],
    [(3, 1), (1, 1), (1, 1)],
    [(4, 3), (1, 1), (1, 1)],
]

#: The largest number of low bits that a scan can leave out.
BEYOND = 13


class Bits:
    """Entropy-coded data with byte stuffing, as symbols whose codes are chosen at the end."""

    def __init__(self, interval):
        self.items, self.interval, self.mcus, self.restarts = [], interval, 0, 0

    def mcu(self):
        """Begins an MCU. Returns whether a restart marker precedes it."""
        restart = self.interval > 0 and self.mcus > 0 and self.mcus % self.interval == 0
        self.mcus += 1
        if restart:
            self.items.append(("restart", self.restarts & 7))
            self.restarts += 1
        return restart

    def symbol(self, table, symbol, value=0, size=0):
        self.items.append((table, symbol))
        if size:
            self.items.append(("bits", value, size))

    def bits(self, value, size):
        if size:
            self.items.append(("bits", value, size))

    def encode(self, codes):
        out, held, count = bytearray(), 0, 0
        for item in self.items:
            if item[0] == "restart":
                out += pad(held, count) + bytes([0xFF, 0xD0 + item[1]])
                held = count = 0
                continue
            value, size = item[1:] if item[0] == "bits" else codes[item[0]][item[1]]
            held, count = held << size | value, count + size
            while count >= 8:
                byte = held >> (count - 8) & 255
                out.append(byte)
                if byte == 255:
                    out.append(0)
                count -= 8
            held &= (1 << count) - 1
        return bytes(out + pad(held, count))


def pad(held, count):
    """Returns the last bits filled up with ones."""
    if count == 0:
        return b""
    byte = held << (8 - count) | (1 << (8 - count)) - 1
    return bytes([byte, 0]) if byte == 255 else bytes([byte])


def lengths(frequencies):
    """Returns (symbol, length) of a prefix code in which no code has more than 16 bits or ones only."""
    symbols = [symbol for symbol, _ in frequencies.most_common()]
    # A code of 2 to 9 bits for the frequent symbols, and one of 16 bits behind the ones for all others.
    short = 1
    while len(symbols) > (1 << short) - 1 and short < 7:
        short += 1
    first = symbols[: (1 << short) - 1]
    return [(symbol, short) for symbol in first] + [(symbol, 16) for symbol in symbols[len(first) :]]


def huffman(frequencies):
    """Returns the body of a table after its index, and the codes."""
    pairs = lengths(frequencies)
    counts, codes, code, last = [0] * 16, {}, 0, 0
    for symbol, length in pairs:
        code <<= length - last
        last = length
        counts[length - 1] += 1
        codes[symbol] = (code, length)
        code += 1
    return bytes(counts) + bytes(symbol for symbol, _ in pairs), codes


def magnitude(value):
    size = abs(value).bit_length()
    return (value if value >= 0 else value + (1 << size) - 1), size


def segment(marker, body):
    return bytes([0xFF, marker]) + (len(body) + 2).to_bytes(2, "big") + bytes(body)


class Component:
    """A component: its identifier, sampling factors, and the coefficients of its blocks in zigzag order."""

    def __init__(self, identifier, factors, table):
        self.id, (self.h, self.v), self.table = identifier, factors, table
        # The AC coefficients that a decoder of progressive scans has so far.
        self.decoded = None

    def fill(self, rng, numbers, size, largest, mcus, quant):
        (width, height), (max_h, max_v) = size, largest
        self.across, self.down = -(-width * self.h // (8 * max_h)), -(-height * self.v // (8 * max_v))
        across, down = mcus[0] * self.h, mcus[1] * self.v
        density, size = rng.choice([0, 0.02, 0.1, 0.4]), rng.choice([1, 3, 20, 200])
        blocks = numbers.integers(-size, size + 1, (down, across, 64))
        blocks *= numbers.random((down, across, 64)) < density
        # Frequencies at the start of the zigzag order are larger in images.
        blocks[:, :, 1:6] += numbers.integers(-2, 3, (down, across, 5)) * (numbers.random((down, across, 5)) < 0.3)
        low = rng.choice([4, 60, 500])
        blocks[:, :, 0] = numbers.integers(-low, low + 1, (down, across))
        # Where coefficients are far beyond those of an encoder, the implementations in libjpeg-turbo differ from each other.
        most = 2047 // np.maximum(quant, 1)
        self.blocks = np.clip(blocks, -most, most).tolist()
        if self.decoded is None:
            self.decoded = np.zeros_like(blocks).tolist()


def mcus_of(scan, mcus):
    """Yields for each MCU of a scan its blocks: pairs of the index in the scan and the block."""
    if len(scan) == 1:
        for y in range(scan[0].down):
            for block in scan[0].blocks[y][: scan[0].across]:
                yield [(0, block)]
        return
    for row in range(mcus[1]):
        for column in range(mcus[0]):
            yield [
                (i, c.blocks[row * c.v + v][column * c.h + h]) for i, c in enumerate(scan) for v in range(c.v) for h in range(c.h)
            ]


def dc_difference(bits, table, value, before):
    coded, size = magnitude(value - before)
    bits.symbol(table, size, coded, size)


def write_sequential(bits, scan, mcus):
    before = [0] * 4
    for blocks in mcus_of(scan, mcus):
        if bits.mcu():
            before = [0] * 4
        for i, block in blocks:
            dc_difference(bits, ("dc", i), block[0], before[i])
            before[i], run, table = block[0], 0, ("ac", i)
            end = max((k for k in range(1, 64) if block[k]), default=0)
            for value in block[1 : end + 1]:
                if value == 0:
                    run += 1
                    continue
                while run > 15:
                    bits.symbol(table, 0xF0)
                    run -= 16
                coded, size = magnitude(value)
                bits.symbol(table, run << 4 | size, coded, size)
                run = 0
            if end < 63:
                bits.symbol(table, 0)


def write_dc(bits, scan, mcus, high, low):
    before = [0] * 4
    for blocks in mcus_of(scan, mcus):
        if bits.mcu():
            before = [0] * 4
        for i, block in blocks:
            if high:
                bits.bits(block[0] >> low & 1, 1)
                continue
            value = block[0] >> low
            dc_difference(bits, ("dc", i), value, before[i])
            before[i] = value


class EndOfBand:
    """A run of blocks without new coefficients, and the correction bits in them."""

    def __init__(self, bits, longest):
        self.bits, self.longest, self.run, self.corrections = bits, longest, 0, []

    def add(self, corrections):
        self.run += 1
        self.corrections += corrections
        if self.run == self.longest:
            self.flush()

    def flush(self):
        if self.run:
            size = self.run.bit_length() - 1
            self.bits.symbol(("ac", 0), size << 4, self.run - (1 << size), size)
            for bit in self.corrections:
                self.bits.bits(bit, 1)
        self.run, self.corrections = 0, []


def write_ac(bits, component, band, high, low, longest):
    first, last = band
    end_of_band, table, one = EndOfBand(bits, longest), ("ac", 0), 1 << low
    positions = [(y, x) for y in range(component.down) for x in range(component.across)]
    for y, x in positions:
        if bits.interval and bits.mcus and bits.mcus % bits.interval == 0:
            end_of_band.flush()
        bits.mcu()
        block, decoded = component.blocks[y][x], component.decoded[y][x]
        shifted = [abs(value) >> low for value in block]
        # A refining scan has a bit for each coefficient that is not 0 so far.
        known = [high > 0 and value != 0 for value in decoded]
        new = [k for k in range(first, last + 1) if shifted[k] and not known[k]]
        end = max(new, default=first - 1)
        run, corrections = 0, []
        for k in range(first, last + 1):
            if known[k]:
                corrections.append(shifted[k] & 1)
                if shifted[k] & 1 and not decoded[k] & one:
                    decoded[k] += one if decoded[k] > 0 else -one
                continue
            if shifted[k] == 0:
                run += 1
                # Zeros at the end of the band are in its run.
                if run == 16 and k < end:
                    end_of_band.flush()
                    bits.symbol(table, 0xF0)
                    for bit in corrections:
                        bits.bits(bit, 1)
                    run, corrections = 0, []
                continue
            end_of_band.flush()
            amount = 1 if high else shifted[k]
            value = amount if block[k] > 0 else -amount
            decoded[k] = value << low
            coded, size = magnitude(value)
            bits.symbol(table, run << 4 | size, coded, size)
            for bit in corrections:
                bits.bits(bit, 1)
            run, corrections = 0, []
        if end < last:
            end_of_band.add(corrections)
        else:
            for bit in corrections:
                bits.bits(bit, 1)
    end_of_band.flush()


def progressive_script(rng, count, large):
    """Returns scans (components, band, high, low) in which every bit of every coefficient comes once, in a random legal order."""
    queues = []
    groups = [[i] for i in range(count)] if rng.random() < (0.9 if large else 0.5) else [list(range(count))]
    for group in groups:
        low = rng.choice([0, 0, 1, 2])
        scans = [(group, (0, 0), 0, low)]
        while low:
            if rng.random() < 0.3 and len(group) > 1:
                scans += [([i], (0, 0), low, low - 1) for i in group]
            else:
                scans.append((group, (0, 0), low, low - 1))
            low -= 1
        queues.append(scans)
    for i in range(count):
        cuts = sorted(rng.sample(range(2, 64), rng.choice([0, 0, 1, 2])))
        for first, end in zip([1] + cuts, cuts + [64]):
            low = rng.choice([0, 0, 1, 2])
            scans = [([i], (first, end - 1), 0, low)]
            for before in range(low, 0, -1):
                scans.append(([i], (first, end - 1), before, before - 1))
            queues.append(scans)
    script = []
    if rng.random() < 0.7:
        # DC first, as T.81 requires; libjpeg reads any order.
        for queue in queues:
            if queue[0][1] == (0, 0):
                script.append(queue.pop(0))
    while queues := [queue for queue in queues if queue]:
        script.append(rng.choice(queues).pop(0))
    return script


def sequential_script(rng, count, large):
    everything = (0, 63)
    form = rng.choice(["separate"] * 4 * large + ["one", "separate", "separate", "pairs", "shuffled"])
    if form == "one" or count == 1:
        script = [list(range(count))]
    elif form == "pairs":
        cut = rng.randint(1, count - 1)
        script = [list(range(cut)), list(range(cut, count))]
    else:
        script = [[i] for i in range(count)]
        if form == "shuffled":
            rng.shuffle(script)
    return [(group, everything, 0, 0) for group in script]


def quantisation(rng):
    """Returns a quantisation table in zigzag order."""
    scale = rng.choice([1, 3, 10, 40, 400])
    values = [rng.randint(1, scale) for _ in range(64)]
    if rng.random() < 0.02:
        values[rng.randrange(10)] = 0
    return values


def scanned(components, group):
    """Returns the components that libjpeg takes for those of a scan: the first one with the identifier that is not before its place
    in the scan."""
    indices = range(len(components))
    found = [next((k for k in indices[i:] if components[k].id == components[n].id), n) for i, n in enumerate(group)]
    return [components[k] for k in found]


def make(seed, number):
    """Returns the file of that number, and what is special about it."""
    rng = random.Random(f"{seed} {number}")
    numbers = np.random.default_rng([seed, number])
    count = rng.choice([1, 3, 3, 3, 4, 4])
    width, height = (rng.choice([rng.randint(1, 20), rng.randint(1, 70)]) for _ in range(2))
    progressive = rng.random() < 0.5
    notes = {"progressive" if progressive else "sequential", f"{count} components"}
    draw = rng.random()
    if draw < 0.5:
        factors = rng.choice(COMMON)
        factors = (factors + factors[:1])[:count]
    elif draw < 0.9:
        # Factors that divide the largest ones.
        largest = rng.choice([1, 2, 3, 4]), rng.choice([1, 2, 3, 4])
        divisors = [[n for n in (1, 2, 3, 4) if m % n == 0] for m in largest]
        factors = [tuple(rng.choice(d) for d in divisors) for _ in range(count)]
        factors[rng.randrange(count)] = largest
    else:
        factors = [(rng.randint(1, 4), rng.randint(1, 4)) for _ in range(count)]
    ids = rng.choice([[1, 2, 3, 4], [0, 1, 2, 3], [82, 71, 66, 75], [67, 77, 89, 75], [200, 3, 9, 1]])[:count]
    if rng.random() < 0.08 and count > 1:
        ids = rng.choice([[1] * 4, [1, 1, 2, 2], [1, 2, 1, 2]])[:count]
        notes.add("equal identifiers")
    components = [Component(i, f, rng.randint(0, 3)) for i, f in zip(ids, factors)]
    max_h, max_v = (max(f) for f in zip(*factors))
    if count == 1:
        mcus = -(-width // 8), -(-height // 8)
        components[0].h = components[0].v = max_h = max_v = 1
    else:
        mcus = -(-width // (8 * max_h)), -(-height // (8 * max_v))
    tables = [quantisation(rng) for _ in range(4)]

    def fill(some):
        for c in some:
            c.fill(rng, numbers, (width, height), (max_h, max_v), mcus, tables[c.table])

    fill(components)
    # An MCU of all components may be too large for an interleaved scan.
    large = sum(c.h * c.v for c in components) > 10
    script = (progressive_script if progressive else sequential_script)(rng, count, large)
    # libjpeg reads no scan after one sequential scan of all components.
    if rng.random() < 0.1 and (progressive or len(script) > 1):
        script.append(rng.choice(script))
        notes.add("repeated")
    if rng.random() < (0.3 if progressive else 0.12) and len(script) > 1:
        del script[rng.randint(1, len(script) - 1) :]
        notes.add("missing scans")
    if rng.random() < 0.05:
        rng.shuffle(script)
        notes.add("shuffled")
    if progressive and rng.random() < 0.05:
        script.append(([rng.randrange(count)], (1, 63), 0, BEYOND))
        notes.add("beyond 16 bits")
    out = bytearray(b"\xff\xd8")
    if rng.random() < 0.3:
        out += segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0")
    adobe = rng.choice([None, None, 0, 1, 2])
    if adobe is not None:
        out += segment(0xEE, b"Adobe\0\x64\0\0\0\0" + bytes([adobe]))
    for i, values in enumerate(tables):
        wide = max(values) > 255
        body = b"".join(v.to_bytes(2, "big") for v in values) if wide else bytes(values)
        out += segment(0xDB, bytes([wide * rng.choice([1, 1, 15]) << 4 | i]) + body)
    frame = b"".join(bytes([c.id, f[0] << 4 | f[1], c.table]) for c, f in zip(components, factors))
    header = b"\x08" + height.to_bytes(2, "big") + width.to_bytes(2, "big") + bytes([count]) + frame
    out += segment(0xC2 if progressive else rng.choice([0xC0, 0xC1]), header)
    interval = 0
    dnl = rng.random() < 0.05
    for at, (group, band, high, low) in enumerate(script):
        if at == 0 or rng.random() < 0.2:
            interval = rng.choice([0, 0, 0, 1, 2, 7, 50])
            out += segment(0xDD, interval.to_bytes(2, "big"))
        scan, bits = scanned(components, group), Bits(interval)
        if (group, band, high, low) in script[:at] and rng.random() < 0.7:
            # The coefficients that are not 0 replace those before.
            fill(scan)
        if low == BEYOND:
            # They become 0 in a coefficient of 16 bits.
            for block in (block for row in scan[0].blocks for block in row):
                block[1:] = [rng.choice([0, 0, 8 << BEYOND]) for _ in block[1:]]
        if not progressive:
            write_sequential(bits, scan, mcus)
        elif band == (0, 0):
            write_dc(bits, scan, mcus, high, low)
        else:
            write_ac(bits, scan[0], band, high, low, rng.choice([1, 5, 32767]))
        frequencies = collections.defaultdict(collections.Counter)
        for item in bits.items:
            if item[0] not in ("bits", "restart"):
                frequencies[item[0]][item[1]] += 1
        # Tables that are not used need not exist.
        unused = 0 if not progressive else rng.choice([0, 0, 15])
        codes, selected = {}, [[unused, unused] for _ in group]
        for (kind, i), counter in frequencies.items():
            body, codes[kind, i] = huffman(counter)
            out += segment(0xC4, bytes([(kind == "ac") << 4 | i]) + body)
            selected[i][kind == "ac"] = i
        selectors = b"".join(bytes([c.id, dc << 4 | ac]) for c, (dc, ac) in zip(scan, selected))
        out += segment(0xDA, bytes([len(scan)]) + selectors + bytes([*band, high << 4 | low]))
        out += bits.encode(codes)
        if at == 0 and dnl:
            out += segment(0xDC, height.to_bytes(2, "big"))
            notes.add("DNL")
    if rng.random() < 0.98:
        out += b"\xff\xd9"
    else:
        notes.add("no end")
    if any(max_h % c.h or max_v % c.v for c in components):
        notes.add("fractional sampling")
    return bytes(out), notes


def main():
    warnings.simplefilter("ignore")
    assert features.check("libjpeg_turbo"), "this test needs Pillow with libjpeg-turbo"
    binary = sys.argv[1]
    count, seed = int((sys.argv + ["300"])[2]), int((sys.argv + ["", "1"])[3]) if len(sys.argv) > 3 else 1
    keep = os.environ.get("KEEP")
    rng = random.Random(seed)
    requests, expected, seen = [], [], collections.Counter()
    with tempfile.TemporaryDirectory() as scratch:
        folder = keep or scratch
        all_notes = {}
        for number in range(count):
            jpeg, notes = make(seed, number)
            path = os.path.join(folder, f"{number:05}.jpg")
            with open(path, "wb") as f:
                f.write(jpeg)
            all_notes[path] = notes
            seen.update(notes)
            # This crate decodes a file without its end if all scans are there, as Pillow does on request.
            ImageFile.LOAD_TRUNCATED_IMAGES = "no end" in notes
            # In grey, libjpeg does not look at the sampling of chroma.
            for divisor, gray, whole, size in references(jpeg, "fractional sampling" not in notes):
                refused = isinstance(whole, Exception)
                rects = [None] + ([] if refused else [random_rect(rng, *size) for _ in range(2)] + [None])
                for mode, rect in zip(("plain", "entries", "portable", "transcoded"), rects):
                    x, y, w, h = rect or (0, 0, 0, 0)
                    requests.append((path, f"{path} {divisor} {x} {y} {w} {h} {mode}{'-gray' if gray else ''}"))
                    if refused:
                        expected.append(f"error {type(whole).__name__}: {whole}")
                        continue
                    part = whole.crop((x, y, x + w, y + h)) if rect else whole
                    expected.append(f"{part.width} {part.height} {zlib.crc32(part.tobytes()):08x}")
        lines = "\n".join(line for _, line in requests)
        answers = subprocess.run([binary], input=lines, capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(answers) == len(requests)
    equal, refusals, wrong = collections.Counter(), collections.Counter(), []
    for (path, request), want, got in zip(requests, expected, answers):
        if want.startswith("error") and got.startswith("error"):
            refusals[re.sub(r"byte \d+", "byte N", f"{got}  |  {want}")] += 1
        elif got.startswith("error") and "no end" in all_notes[path]:
            # Then Pillow reports no errors.
            refusals["files without an end"] += 1
        elif got.rsplit(" ", 1)[0] != want:
            wrong.append(f"{request}: expected {want}, found {got} ({', '.join(sorted(all_notes[path]))})")
        else:
            equal[got.rsplit(" ", 1)[1]] += 1
    print(f"Pillow with libjpeg-turbo {features.version('libjpeg_turbo')}: {count} files: {dict(sorted(seen.items()))}")
    print(f"{sum(equal.values())} decodes equal: {dict(equal)}; {sum(refusals.values())} refused by both")
    for text, n in sorted(refusals.items()):
        print(f"  {n} x {text}")
    for line in wrong[: int(os.environ.get("SHOWN", "20"))]:
        print(line)
    print(f"{len(wrong)} wrong")
    sys.exit(1 if wrong or sum(equal.values()) < 2 * count else 0)


def random_rect(rng, width, height):
    w, h = rng.randint(1, width), rng.randint(1, height)
    return rng.randint(0, width - w), rng.randint(0, height - h), w, h


if __name__ == "__main__":
    main()
