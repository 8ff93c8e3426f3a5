"""Rows of several samples of tokens."""

import json

import numpy as np
import pytest

import shardtool as st

CAPACITY = 48


def tokens_of(number):
    return np.arange(number * 11 % 40, dtype=np.int64) + 100 * number


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Texts of 0 to 39 tokens, with a weight for each token, and a label."""
    folder = tmp_path_factory.mktemp("texts") / "dataset"
    with st.Writer(folder, "train") as writer:
        for number in range(300):
            tokens = tokens_of(number)
            writer.write({"key": f"{number}", "tokens": tokens, "weights": tokens / 2.0, "length": len(tokens), "kind": number % 7})
    return st.Dataset(folder).split("train")


PACKED = st.Tokens("length", CAPACITY, {"tokens": -1, "weights": 0.5}, window=64)


def loader(split, **options):
    return st.Loader(split, 4, [PACKED, "kind"], order=st.Shuffled(9), remainder="mask", **options)


def test_every_text_is_in_one_row(texts):
    with loader(texts) as batches:
        steps = [None, None]
        for epoch in range(2):
            expected_steps = len(batches)
            seen, filled, rows = [], 0, 0
            for step, batch in enumerate(batches):
                assert batch["tokens"].shape == batch["weights"].shape == (4, CAPACITY)
                assert batch["tokens"].dtype == np.int64 and batch["weights"].dtype == np.float64
                assert batch["segment_ids"].dtype == batch["position_ids"].dtype == np.int32
                for row in range(4):
                    ids, lengths = batch["id"].row(row), batch["seq_lens"].row(row)
                    texts_of_row = [tokens_of(id) for id in ids]
                    assert [len(text) for text in texts_of_row] == lengths.tolist()
                    whole = np.concatenate([*texts_of_row, np.zeros(0, np.int64)])
                    assert len(whole) <= CAPACITY and batch["valid"][row] == (len(ids) > 0)
                    used = np.arange(CAPACITY) < len(whole)
                    np.testing.assert_array_equal(batch["tokens"][row], np.pad(whole, (0, CAPACITY - len(whole)), constant_values=-1))
                    np.testing.assert_array_equal(batch["weights"][row][used], (whole / 2))
                    assert (batch["weights"][row][~used] == 0.5).all()
                    np.testing.assert_array_equal(batch["segment_ids"][row][used], np.repeat(np.arange(len(ids)) + 1, lengths))
                    positions = np.concatenate([np.arange(length) for length in lengths] + [[]])
                    np.testing.assert_array_equal(batch["position_ids"][row][used], positions)
                    assert not batch["segment_ids"][row][~used].any() and not batch["position_ids"][row][~used].any()
                    assert (batch["kind"].row(row) == ids % 7).all()
                    seen.extend(ids.tolist())
                    filled, rows = filled + len(whole), rows + (len(ids) > 0)
            assert sorted(seen) == list(range(300)) and seen != sorted(seen)
            # In windows of 64 texts, of up to 39 tokens in rows of 48.
            assert filled >= 0.93 * rows * CAPACITY
            steps[epoch] = (step + 1, expected_steps)
        assert all(done == expected for done, expected in steps)


def test_a_run_resumes_with_other_workers_and_ranks(texts):
    def rows_of(batch):
        return [(batch["id"].row(row).tolist(), batch["tokens"][row].tolist()) for row in range(4) if batch["valid"][row]]

    with loader(texts, workers=1) as first:
        states, whole = [], []
        for batch in first:
            states.append(json.dumps(first.state_dict()))
            whole.append(rows_of(batch))
    for done in range(1, len(whole)):
        with loader(texts, workers=3) as again:
            again.load_state_dict(json.loads(states[done - 1]))
            assert [rows_of(batch) for batch in again] == whole[done:]
    ranks = []
    for rank in range(2):
        with loader(texts, replica=st.Replica(rank, 2)) as replica:
            replica.load_state_dict(json.loads(states[2]))
            ranks.append([rows_of(batch) for batch in replica])
    assert len(ranks[0]) == len(ranks[1])
    assert [row for step in zip(*ranks) for rows in step for row in rows] == [row for rows in whole[3:] for row in rows]


def test_attention_within_segments_is_that_of_each_text_alone(texts):
    """What packing is for: a model that uses `segment_ids` and `position_ids` computes for a packed row what it computes for
    each of its texts alone."""
    torch = pytest.importorskip("torch")
    from shardtool.torch import Loader

    torch.manual_seed(1)
    tokens, positions = torch.nn.Embedding(40_000, 16), torch.nn.Embedding(CAPACITY, 16)
    attention = torch.nn.MultiheadAttention(16, 2, batch_first=True)

    def model(ids, places, same):
        x = tokens(ids) + positions(places)
        return attention(x, x, x, attn_mask=~same.tril().repeat_interleave(2, 0), need_weights=False)[0]

    batch = next(iter(Loader(texts, 4, st.Tokens("length", CAPACITY, {"tokens": 0}, window=64))))
    segments = batch["segment_ids"]
    packed = model(batch["tokens"], batch["position_ids"], segments[:, :, None] == segments[:, None, :])
    for row in range(4):
        start = 0
        for id, length in zip(batch["id"].row(row), batch["seq_lens"].row(row)):
            if length == 0:
                continue
            text = torch.from_numpy(tokens_of(int(id)))[None]
            alone = model(text, torch.arange(int(length))[None], torch.ones(1, int(length), int(length), dtype=torch.bool))
            torch.testing.assert_close(packed[row, start : start + int(length)], alone[0])
            start += int(length)


def test_arguments_are_checked(texts):
    with pytest.raises(st.OptionError, match="`capacity` is 0: expected 1 to 2147483647"):
        st.Tokens("length", 0, {"tokens": 0})
    with pytest.raises(st.OptionError, match="`window` is 131072: expected 1 to 65536"):
        st.Tokens("length", 8, {"tokens": 0}, window=1 << 17)
    with pytest.raises(st.OptionError, match="`longer` is 'drop': expected \"error\", \"cut\""):
        st.Tokens("length", 8, {"tokens": 0}, longer="drop")
    with pytest.raises(st.OptionTypeError, match=r"`padded` is \['tokens'\]: expected a dict of features and numbers"):
        st.Tokens("length", 8, ["tokens"])
    with pytest.raises(st.OptionTypeError, match=r"`padded\['tokens'\]` is 'zero': expected a number"):
        st.Tokens("length", 8, {"tokens": "zero"})
    with pytest.raises(st.OptionError, match="no column has tokens"):
        st.Loader(texts, 4, st.Tokens("length", CAPACITY, {}))
    with pytest.raises(st.OptionError, match="no feature `words`"):
        st.Loader(texts, 4, st.Tokens("length", CAPACITY, {"words": 0}))
    for image, name in ((st.Image([st.ResizeTo(8)]), "`Image`"), (st.Image(), "a stored record")):
        with pytest.raises(st.OptionError, match=f"`Tokens` does not go with {name}: .* only columns are packed"):
            st.Loader(texts, 4, [image, PACKED])
    with pytest.raises(st.OptionTypeError, match="48 is not a field"):
        st.Loader(texts, 4, [CAPACITY, "tokens"])
    with pytest.raises(st.OptionError, match="the fields have `Tokens` twice"):
        st.Loader(texts, 4, [PACKED, PACKED])
    with pytest.raises(st.ShardtoolError, match="longer|more than|exceed"):
        st.Loader(texts, 4, st.Tokens("length", 8, {"tokens": 0}))
    with pytest.raises(st.OptionError, match="the policy `shard` does not go with `Tokens`"):
        st.Loader(texts, 4, PACKED, replica=st.Replica(policy="shard"))
    cut = st.Loader(texts, 4, st.Tokens("length", 8, {"tokens": 0}, longer="cut"))
    assert max(length for batch in cut for length in batch["seq_lens"].values) == 8


def test_packed_features_may_also_be_listed(texts):
    for fields in ([PACKED, "tokens"], ["weights", "tokens", PACKED]):
        batch = next(iter(st.Loader(texts, 4, fields)))
        assert batch["tokens"].shape == batch["weights"].shape == (4, CAPACITY)
