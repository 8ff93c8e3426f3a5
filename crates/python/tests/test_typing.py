"""Types, as mypy, pyright and completion see them."""

import importlib
import importlib.util
import inspect
import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import shardtool as st

CACHE = pathlib.Path(__file__).parents[3] / "target/mypy"

PROGRAM = '''
import numpy as np
import shardtool as st

split = st.Dataset("x")["train"]
loader = st.Loader(split, 8, st.Image([st.RandomResizedCrop(32)], mean=(0.5, 0.5, 0.5)))
for batch in loader:
    reveal_type(batch["image"])
    reveal_type(batch["image/width"])
for pair in st.Loader(split, batch_size=8, collate_fn=st.image_label):
    reveal_type(pair)
st.Loader(split, 8, order="x")  # E: arg-type
st.Loader(split, 8, wrokers=2)  # E: arg-type
st.Loader(split, 8, [st.Image(), st.Mask("mask"), "caption"])
st.Loader(split, 8, ["caption"])
st.Loader(split, 8, st.ResizeTo(8))  # E: arg-type
st.Image([st.ResizeTo(8)], dtype="int8")  # E: arg-type
st.Image([st.ResizeTo(8)], mode="int8")  # E: arg-type
reveal_type(split[0])
reveal_type(split[:3])
'''
TORCH = '''
import shardtool as st
from shardtool.torch import Loader

for batch in Loader(st.Dataset("x")["train"], 8, [st.ResizeTo(8)]):
    reveal_type(batch["image"])
def f(batch: dict[str, object]) -> int: return 3
for number in Loader(st.Dataset("x")["train"], 8, [st.ResizeTo(8)], collate_fn=f):
    reveal_type(number)
Loader(st.Dataset("x")["train"], 8, wrokers=2)  # E: arg-type
'''


def check(tmp_path, *arguments):
    """Runs `mypy --strict` for this interpreter; mypy itself may run in another one (SHARDTOOL_MYPY)."""
    python = os.environ.get("SHARDTOOL_MYPY", sys.executable)
    if subprocess.run([python, "-c", "import mypy"], capture_output=True).returncode:
        pytest.skip("mypy is not installed")
    command = [python, "-m", "mypy", "--strict", "--python-executable", sys.executable, *map(str, arguments)]
    environment = {**os.environ, "MYPYPATH": str(pathlib.Path(st.__file__).parents[1])}
    environment.pop("PYTHONPATH", None)
    # Kept from run to run, for each interpreter: most of the time is that of the packages, such as PyTorch.
    environment["MYPY_CACHE_DIR"] = str(CACHE / pathlib.Path(sys.prefix).name)
    return subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment)


def mypy(program, tmp_path):
    file = tmp_path / "program.py"
    file.write_text(program)
    run = check(tmp_path, "--no-error-summary", "--show-error-codes", file)
    lines = run.stdout.splitlines()
    errors = {int(line.split(":")[1]): line.rsplit("[", 1)[1].rstrip("]") for line in lines if ": error: " in line}
    expected = {n: line.split("# E: ")[1] for n, line in enumerate(program.splitlines(), 1) if "# E: " in line}
    assert errors == expected, run.stdout
    return [line.split('"')[1] for line in lines if "Revealed type is" in line]


def test_types_of_numpy_batches_and_options(tmp_path):
    image, column, pair, record, records = mypy(PROGRAM, tmp_path)
    assert image.startswith("numpy.ndarray") and column == "Any" and pair.startswith("tuple[Any, Any")
    assert record == "shardtool.display.Record" and records.removeprefix("builtins.") == f"list[{record}]"


def test_types_of_torch_batches(tmp_path):
    pytest.importorskip("torch")
    assert mypy(TORCH, tmp_path) in (["torch._tensor.Tensor", "builtins.int"], ["torch._tensor.Tensor", "int"], ["Tensor", "int"])


#: Rules of pyright's strict mode about third-party code: types that torch and the trainers do not annotate or export.
LENIENT = [
    "reportMissingTypeStubs",
    "reportPrivateImportUsage",
    "reportUnknownArgumentType",
    "reportUnknownLambdaType",
    "reportUnknownMemberType",
    "reportUnknownParameterType",
    "reportUnknownVariableType",
    "reportUntypedFunctionDecorator",
]


def pyright(tmp_path, files, lenient=()):
    """Runs pyright in strict mode on copies of files; `scripts/pyright` installs it, and SHARDTOOL_PYRIGHT is its path."""
    command = os.environ.get("SHARDTOOL_PYRIGHT")
    if not command:
        pytest.skip("pyright is not installed: SHARDTOOL_PYRIGHT=$(scripts/pyright)")
    (tmp_path / "checked").mkdir()
    for file in files:
        shutil.copy(file, tmp_path / "checked")
    config = {"include": ["checked"], "typeCheckingMode": "strict", "extraPaths": [str(pathlib.Path(st.__file__).parents[1])]}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({**config, **dict.fromkeys(lenient, False)}))
    run = subprocess.run([command, "--pythonpath", sys.executable], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stdout + run.stderr


def test_stubs_pass_pyright_in_strict_mode(tmp_path):
    pyright(tmp_path, [pathlib.Path(st.__file__).parent / "_shardtool.pyi"])


def test_pyright_finds_an_error(tmp_path):
    file = tmp_path / "wrong.py"
    file.write_text('import shardtool as st\n\nst.Dataset("x").split(3)\n')
    with pytest.raises(AssertionError, match="reportArgumentType"):
        pyright(tmp_path, [file], LENIENT)


def test_module_passes_mypy_in_strict_mode(tmp_path):
    folder = pathlib.Path(st.__file__).parent
    absent = [f"{name}.py" for name in ("torch", "jax", "ray") if importlib.util.find_spec(name) is None]
    files = [str(f) for f in folder.glob("*.py") if f.name not in absent]
    run = check(tmp_path, *files)
    assert run.returncode == 0, run.stdout


def test_every_loader_has_the_same_signature():
    from_numpy = inspect.signature(st.Loader)
    assert {"batch_size", "fields", "order", "replica", "collate_fn"} <= set(from_numpy.parameters)
    for name in ("torch", "jax"):
        if importlib.util.find_spec(name) is not None:
            module = importlib.import_module(f"shardtool.{name}")
            assert set(inspect.signature(module.Loader).parameters) == set(from_numpy.parameters), name
