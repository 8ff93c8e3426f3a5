"""Runs the Python reader. `driver.c` runs the C reader on the same commands, with the same output.

    examine DIR…    for each dataset, all findings (error, file, record), then a line per record: split, id, key,
                    class id, bytes and CRC of the image, columns, pixels, or the error of reading it
    patched DIR     the same for each line `FILE OFFSET:BYTE …` on stdin, with these bytes changed
    order           for each question on stdin, its answer
"""

import sys
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parent.parent / "python"))
import shardtool_order as ordering  # noqa: E402
import shardtool_reader as reader  # noqa: E402


def escaped(data: bytes) -> str:
    return "".join(chr(b) if 0x20 < b < 0x7F and b != 0x5C else f"\\x{b:02x}" for b in data)


def described(damage: reader.Damage) -> str:
    return f"{damage.name} {damage.file} {-1 if damage.record is None else damage.record}"


def line(record) -> str:
    image, label = record.image, record.class_id
    fields = [escaped(record.key), "-" if label is None else str(label)]
    fields += ["-", "-"] if image is None else [str(len(image)), f"{reader.crc32c(image):08x}"]
    for name, value in record.columns.items():
        fields.append(f"{escaped(name.encode())}={value.hex() if isinstance(value, float) else value}")
    try:
        pixels = record.pixels()
        fields.append("no-pixels" if pixels is None else f"{pixels[0]}x{pixels[1]}")
    except reader.NotDecoded:
        fields.append("not-decoded")
    return " ".join(fields)


def examine(folder):
    for damage in reader.verify(folder):
        print(" ", described(damage))
    try:
        dataset = reader.Dataset(folder)
    except reader.Damage as damage:
        print(described(damage))
        return
    for name, split in dataset.splits.items():
        print(f"{name}: {len(split)} records, fingerprint {dataset.manifest.fingerprint(name):08x}")
        for i in range(len(split)):
            try:
                print(name, i, line(split[i]))
            except reader.Damage as damage:
                print(name, i, described(damage))


def patched(folder):
    for request in sys.stdin:
        name, *changes = request.split()
        path = Path(folder, name)
        sound = path.read_bytes()
        data = bytearray(sound)
        for change in changes:
            offset, value = change.split(":")
            data[int(offset)] = int(value)
        path.write_bytes(data)
        print(">", request.strip())
        examine(folder)
        path.write_bytes(sound)


def order():
    for question in sys.stdin:
        kind, *words = question.split()
        try:
            print(*answer(kind, words))
        except ValueError:
            print("refused")


def answer(kind, words):
    if kind == "key":
        key = ordering.derive_key(words[0], *map(int, words[1:]))
        draws = [ordering.draw(key, i) for i in range(4)]
        return [f"{key:016x}", *(f"{w:016x} {w >> 11} {ordering.scale(w, 1000)}" for w in draws)]
    if kind == "below":
        return [ordering.scale(ordering.draw(int(words[0], 16), i), int(n)) for i, n in enumerate(words[1:])]
    if kind == "augment":
        draws = ordering.draws(*map(int, words))
        return [f"{next(draws):016x}" for _ in range(4)]
    if kind == "permutation":
        permutation = ordering.Permutation(int(words[0]), int(words[1], 16))
        return [permutation(int(x)) for x in words[2:]]
    if kind == "pack":
        entry = ordering.pack_order(int(words[0]), int(words[1]))
        return [entry(int(i)) for i in words[2:]]
    n, seed, epoch, run, window = map(int, words[:5])
    places = ordering.Order(kind, n, seed, epoch, run, window)
    return [places[int(q)] for q in words[5:]]


if __name__ == "__main__":
    command, *arguments = sys.argv[1:]
    if command == "examine":
        for folder in arguments:
            print(">", folder)
            examine(folder)
    elif command == "patched":
        patched(arguments[0])
    elif command == "order":
        order()
