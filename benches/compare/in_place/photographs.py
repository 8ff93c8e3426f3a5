"""Copies of photographs, as files and as tars, and the packages of an environment."""

import io
import pathlib
import shutil
import tarfile

from harness import ROOT, call


def copies(photos, folder, repeats):
    """Copies the photographs `repeats` times; returns path and class of each copy."""
    found = []
    for path in sorted(photos.glob("*/*")):
        for turn in range(repeats):
            copy = folder / path.parent.name / f"{turn}-{path.name}"
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
            found.append((copy, path.parent.name))
    return found


def write_tars(files, folder, count):
    """Writes samples of an image and a class, as WebDataset has them."""
    folder.mkdir()
    classes = sorted({name for _, name in files})
    for tar in range(count):
        with tarfile.open(folder / f"train-{tar:05}.tar", "w") as out:
            for number, (path, name) in list(enumerate(files))[tar::count]:
                for suffix, data in (("jpg", path.read_bytes()), ("cls", str(classes.index(name)).encode())):
                    member = tarfile.TarInfo(f"{number:07}.{suffix}")
                    member.size = len(data)
                    out.addfile(member, io.BytesIO(data))


def packages(environment, package):
    """Returns the folder of an environment's packages."""
    python = call(ROOT / "scripts/python-env", environment).strip()
    return call(python, "-c", f"import {package}, pathlib; print(pathlib.Path({package}.__file__).parents[1])").strip()
