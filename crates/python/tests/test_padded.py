"""Ragged columns as one array, in numpy, PyTorch and JAX."""

import numpy as np
import pytest

import shardtool as st

ROWS = [[3, 1], [], [7], [0, 5, 2]]


def ragged(dtype, *item):
    counts = [len(row) for row in ROWS]
    values = np.array([value for row in ROWS for value in row], dtype)
    values = np.broadcast_to(values.reshape(-1, *[1] * len(item)), (len(values), *item)).copy()
    return st.Ragged(np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), values)


def expected(length, fill, dtype):
    return np.array([(row + [fill] * length)[:length] for row in ROWS], dtype)


def converted(framework, value):
    """Returns a column as a framework has it, and how its arrays become those of numpy."""
    if framework == "torch":
        torch = pytest.importorskip("torch")
        return st.Ragged(*map(torch.from_numpy, value)), lambda array: array.numpy()
    if framework == "jax":
        jax = pytest.importorskip("jax")
        # 64 bits are narrowed unless JAX is configured for them.
        return st.Ragged(*map(jax.numpy.asarray, value)), np.asarray
    return value, lambda array: array


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
def test_rows_are_padded_to_the_longest_or_a_length(framework):
    for dtype in ("float32", "uint8", "int32"):
        column, back = converted(framework, ragged(dtype))
        result = back(column.padded(fill=9))
        assert type(column.padded(fill=9)) is type(column.values)
        np.testing.assert_array_equal(result, expected(3, 9, dtype))
        np.testing.assert_array_equal(back(column.padded(5, 9)), expected(5, 9, dtype))
        np.testing.assert_array_equal(back(column.padded(2, 9, cut=True)), expected(2, 9, dtype))
        assert back(column.padded(5)).dtype == dtype
    boxes, back = converted(framework, ragged("float32", 4))
    result = back(boxes.padded())
    np.testing.assert_array_equal(result, np.repeat(expected(3, 0, "float32")[..., None], 4, 2))
    masks, back = converted(framework, ragged("uint8", 2, 3))
    assert back(masks.padded(4)).shape == (4, 4, 2, 3)


@pytest.mark.parametrize("framework", ["numpy", "torch", "jax"])
def test_no_value_is_lost_without_a_word(framework):
    column, _ = converted(framework, ragged("float32"))
    with pytest.raises(st.OptionError, match="`length` is 2, but row 3 has 3 values"):
        column.padded(2)
    with pytest.raises(st.OptionError, match="length"):
        column.padded(-1)


@pytest.mark.parametrize("framework", ["numpy", "torch"])
def test_integers_need_a_number_that_is_none_of_theirs(framework):
    column, back = converted(framework, ragged("int64"))
    with pytest.raises(st.OptionError, match="`fill` is needed"):
        column.padded(3)
    np.testing.assert_array_equal(back(column.padded(3, fill=-1)), expected(3, -1, "int64"))


def test_columns_without_values_are_padded():
    column = st.Ragged(np.zeros(4, np.int64), np.zeros((0, 4), np.float32))
    assert column.padded().shape == (3, 0, 4) and column.padded(2).shape == (3, 2, 4)
    with pytest.raises(st.OptionError, match="expected an array"):
        st.Ragged(np.zeros(4, np.int64), object()).padded(2)
