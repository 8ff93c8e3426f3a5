"""The steps of scripts/test, in the order in which they start, and what each waits for.

A step is the program scripts/steps/NAME; the Rust tests are run by rust_tests.py. Three steps run at a time: tests
wait, so two would leave one of two processors idle. `install` runs in addition to them, because it waits for the network.
"""

import dataclasses
import pathlib

ROOT = pathlib.Path(__file__).parents[2]


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    needs: tuple[str, ...] = ()
    background: bool = False

    @property
    def program(self) -> pathlib.Path:
        return ROOT / "scripts/steps" / self.name

    @property
    def purpose(self) -> str:
        """The sentence in the second line of the program."""
        return self.program.read_text().splitlines()[1].removeprefix("# ")


_BUILT = ("build",)
_BOTH = ("build", "install")

STEPS = [
    Step("install", background=True),
    Step("fmt"),
    # Cargo locks the build folder: these follow each other.
    Step("clippy", needs=("fmt",)),
    Step("doc", needs=("clippy",)),
    Step("build", needs=("doc",)),
    Step("package", needs=_BUILT),
    Step("checkers"),
    # These need no Rust: they run while Cargo builds.
    Step("mutants", needs=("install",)),
    Step("ptx", needs=("install",)),
    # In a separate build folder, so that it waits for no other step.
    Step("darwin", needs=("install",)),
    # The longest first, so that none is left alone at the end.
    Step("rust", needs=_BUILT),
    Step("torch", needs=_BOTH),
    Step("python", needs=_BOTH),
    Step("readers", needs=_BOTH),
    Step("pixels", needs=_BOTH),
    Step("aarch64", needs=_BOTH),
    Step("ray", needs=_BOTH),
    Step("formats", needs=_BOTH),
    Step("jax", needs=_BOTH),
    Step("browser", needs=_BOTH),
    Step("portable", needs=_BUILT),
    Step("tensorflow", needs=_BOTH),
    Step("dali", needs=_BOTH),
    Step("view", needs=_BUILT),
    Step("doctest", needs=_BUILT),
    Step("train", needs=_BUILT),
]


def chosen(names: list[str], with_needs: bool) -> list[Step]:
    """Returns the named steps, all if none is named, and what they need; raises `KeyError` for an unknown name."""
    by_name = {step.name: step for step in STEPS}
    wanted: set[str] = set()

    def add(name: str) -> None:
        step = by_name[name]
        if name not in wanted:
            wanted.add(name)
            for need in step.needs if with_needs else ():
                add(need)

    for name in names or by_name:
        add(name)
    steps = [step for step in STEPS if step.name in wanted]
    if names:
        # A step that is run alone does not need the style checks.
        style = {"fmt", "clippy", "doc"} - set(names)
        steps = [step for step in steps if step.name not in style]
    return steps
