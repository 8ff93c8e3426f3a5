"""Runs a trainer written in Rust: it learns, a resumed run has the same weights, and an evaluation shows each sample once.

    python scripts/gate/rust_trainer.py SHARDTOOL PROGRAM EXTENSION_OF_WEIGHTS
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

SAMPLES = 75


def main(shardtool: str, program: str, extension: str) -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for number in range(SAMPLES):
            kind, value = ("dark", 20) if number % 2 == 0 else ("light", 180)
            path = folder / "photos" / kind / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            data = bytes(value + at * (number + 3) % 60 for at in range(96 * 80 * 3))
            Image.frombytes("RGB", (96, 80), data).save(path)
        subprocess.run([shardtool, "pack", folder / "photos", folder / "dataset"], check=True, capture_output=True)

        def run(checkpoint: str, steps: int, **environment: str) -> list[str]:
            command = [program, folder / "dataset", folder / checkpoint, str(steps)]
            return subprocess.check_output(command, text=True, env={**os.environ, **environment}).splitlines()

        def copy(source: str, target: str) -> None:
            for suffix in (extension, "json"):
                shutil.copy(folder / f"{source}.{suffix}", folder / f"{target}.{suffix}")

        def evaluated(lines: list[str]) -> tuple[int, int]:
            words = lines[-1].split()
            return int(words[0]), int(words[2])

        assert evaluated(run("whole", 0))[1] == SAMPLES
        copy("whole", "parts")
        straight = run("whole", 30)
        resumed = run("parts", 13)[:-1] + run("parts", 17)
        assert [line.split(": ", 1)[-1] for line in straight] == [line.split(": ", 1)[-1] for line in resumed]
        weights = [(folder / f"{name}.{extension}").read_bytes() for name in ("whole", "parts")]
        assert weights[0] == weights[1], "the resumed run has other weights"
        right, samples = evaluated(straight)
        assert samples == SAMPLES and right > samples * 0.9, (right, samples)
        ranks = []
        for rank in range(2):
            copy("whole", f"rank-{rank}")
            ranks.append(evaluated(run(f"rank-{rank}", 0, RANK=str(rank), WORLD_SIZE="2")))
        assert tuple(map(sum, zip(*ranks))) == (right, samples), ranks
        print(f"30 steps, resumed after 13 with the same weights; {right} of {samples} right, by one process and by two")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
