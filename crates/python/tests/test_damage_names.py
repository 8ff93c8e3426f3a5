"""Over all hostile fixtures, the names of damage are those in the specification's tables."""

import pathlib
import re

import pytest
import shardtool as st

ROOT = pathlib.Path(__file__).parents[3]


def documented() -> set[str]:
    """The names in the first column of the two tables of errors."""
    text = (ROOT / "format-spec.md").read_text(encoding="utf-8")
    sections = [re.split(r"\n#", text.split(f"\n### {heading}\n")[1])[0] for heading in ("Errors of bytes", "Errors of datasets")]
    return set(re.findall(r"^\| `(\w+)` \|", "".join(sections), re.M))


def verified(folder: pathlib.Path) -> st.Report:
    try:
        return st.verify(folder, decode=True)
    except st.OptionError:  # neither images nor arrays
        return st.verify(folder)


def test_verify_and_exceptions_use_the_names_of_the_specification():
    names = documented()
    assert len(names) > 20
    found, raised = set(), set()
    for folder in sorted((ROOT / "fixtures/conformance/hostile").iterdir()):
        if folder.name.startswith("ForeignSource-"):  # ends a verification, and is not a DamageError
            with pytest.raises(st.DatasetError, match="is not in the dataset's folder"):
                st.verify(folder)
            found.add("ForeignSource")
            continue
        found |= {damage.name for damage in verified(folder).damages}
        try:
            split = st.Dataset(folder).split("train")
            [split[i] for i in range(len(split))]
        except st.DamageError as error:
            raised.add(error.name)
    assert found == names
    assert raised <= names and {"ManifestCrc", "MissingIndex", "DataCrc"} <= raised


def test_loaders_use_the_names_of_the_specification():
    for fixture in ("ImageDecode-jpeg-cut", "PixelsLength-raw", "DataCrc-data"):
        split = st.Dataset(ROOT / "fixtures/conformance/hostile" / fixture).split("train")
        loader = st.Loader(split, 1, [st.ResizeTo(8)], order=st.Sequential(), bad_samples="mask")
        damaged = sum(not valid for batch in loader for valid in batch["valid"])
        bad = loader.bad_samples()
        assert damaged == len(bad) > 0
        name = fixture.split("-")[0]
        assert name in {sample["name"] for sample in bad} <= documented(), fixture
