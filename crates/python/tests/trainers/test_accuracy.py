"""Training with shardtool gives the accuracy of training with ImageFolder and a DataLoader, on a small real task.

The task: from which photograph is a tile? Each of 30 ImageNet photographs is cut into 8 x 6 tiles, stored as JPEG files in
a separate folder. As on a chessboard, one half of the tiles is for training and the other for evaluation.

Each loader trains the same network on the same files with the same transforms, once for each of three seeds, which give the
initial weights, the order and the crops. Two mean accuracies are equal if they differ by at most

    t * s * sqrt(2 / 3)

where s is the standard deviation between seeds, pooled over both loaders (4 degrees of freedom), and t = 4.604 the 99.5 %
quantile of Student's t distribution: equally good loaders fail with 1 of 100 choices of seeds. That this comparison can fail
is tested as well, with loaders that have a fault.

`scripts/campaign trainers` runs this file and prints the accuracies. It needs photographs: data/imagenet-sample in
$SHARDTOOL_SHARED, or in ../shared.
"""

from __future__ import annotations

import pytest
from frameworks import PROGRAMS

#: In fractions. A larger margin would hide faults.
LARGEST_MARGIN = 0.05

pytestmark = pytest.mark.campaign


@pytest.fixture(scope="module")
def task():
    """The module `accuracy`, which needs torchvision."""
    pytest.importorskip("torchvision")
    assert (PROGRAMS / "accuracy.py").exists()
    import accuracy

    return accuracy


@pytest.fixture(scope="module")
def tiles(task, tmp_path_factory):
    found = task.photographs()
    if len(found) < task.PHOTOGRAPHS:
        pytest.skip(f"no photographs: the test needs {task.PHOTOGRAPHS}, {task.folder()} has {len(found)} of the size")
    root = tmp_path_factory.mktemp("tiles")
    task.make_tiles(found, root)
    return root


@pytest.fixture(scope="module")
def result(task, tiles):
    """`result(NAME)` trains with the loader of that name at the first call."""
    results = {}

    def find(name):
        if name not in results:
            results[name] = task.train_and_judge(getattr(task, name)(tiles))
        return results[name]

    return find


@pytest.fixture
def comparison(result, record_property):
    """`comparison(NAME)` returns the results with ImageFolder and with the loader of that name, and a text about them."""

    def compare(name):
        theirs, ours = result("ImageFolders"), result(name)
        difference, margin = 100 * (ours.mean - theirs.mean), 100 * ours.margin(theirs)
        text = f"ImageFolder {theirs}, {name} {ours}: difference {difference:+.1f}, margin {margin:.1f} points"
        record_property("found", text)
        return theirs, ours, text

    return compare


def test_accuracy_equals_that_of_image_folder(comparison):
    theirs, ours, text = comparison("Shardtool")
    assert theirs.mean > 0.7, f"the network does not learn the task: {text}"
    assert ours.margin(theirs) <= LARGEST_MARGIN, f"the seeds differ too much for a conclusion: {text}"
    assert ours.equals(theirs), text


@pytest.mark.parametrize("faulty", ["SameCrops", "WrongLabels"])
def test_accuracy_with_a_faulty_loader_differs(comparison, faulty):
    theirs, wrong, text = comparison(faulty)
    assert not wrong.equals(theirs), text


def test_both_loaders_evaluate_a_network_alike(task, result, tiles):
    """Decoding and resizing differ by roundings, which change the class of a few tiles at most."""
    loaders = [task.ImageFolders(tiles), task.Shardtool(tiles)]
    for net in result("ImageFolders").networks + result("Shardtool").networks:
        (theirs, samples), (ours, _) = (task.judged(net, loader.evaluate()) for loader in loaders)
        assert abs(ours - theirs) <= samples / 200, f"{ours} and {theirs} of {samples} tiles"
