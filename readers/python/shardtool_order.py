"""The order of samples in an epoch. Needs only Python's standard library (3.9 or later).

Written from `order-spec.md` alone, with its terms; `place` is a source position. Needs no dataset, only numbers:

    Order(...)                 an epoch's order: position to source position
    pack_order(n, seed)        the order in which the sorted listing is packed
    draws(...)                 the random numbers of an augmentation
"""

from __future__ import annotations

from typing import Iterator

MOST_SAMPLES = 2**63

_MASK = 2**64 - 1
_G = 0x9E3779B97F4A7C15


class Refused(ValueError):
    """A configuration that fails a check of the specification; `reason` is its name there."""

    def __init__(self, reason: str, text: str):
        super().__init__(f"{reason}: {text}")
        self.reason = reason


def _check_samples(n: int):
    if n > MOST_SAMPLES:
        raise Refused("TooManySamples", f"{n}, at most 2⁶³")


def _mix(x: int) -> int:
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    x = (x ^ (x >> 27)) * 0x94D049BB133111EB & _MASK
    return x ^ (x >> 31)


def derive_key(domain: str, seed: int, epoch: int = 0, tweak: int = 0) -> int:
    """Returns the key of a domain ("shuffled", "augment", …) for a seed, an epoch and a tweak."""
    h = int.from_bytes(domain.ljust(8).encode("ascii"), "big")
    for word in (seed, epoch, tweak):
        h = _mix((h ^ word) + _G & _MASK)
    return h


def draw(key: int, i: int) -> int:
    return _mix(key + (i + 1) * _G & _MASK)


def scale(x: int, n: int) -> int:
    """Scales a u64 to [0, n), for n up to 2³²."""
    return ((x >> 32) * n) >> 32


def draws(seed: int, epoch: int, place: int) -> Iterator[int]:
    """Yields the u64 draws of the augmentation of the sample at source position `place`. `draw >> 11` times 2⁻⁵³ is a
    number in [0, 1), scale(draw, n) an integer in [0, n)."""
    key, i = derive_key("augment", seed, epoch, place), 0
    while True:
        yield draw(key, i)
        i += 1


class Permutation:
    """A bijection on [0, n), for n up to 2⁶³."""

    def __init__(self, n: int, key: int):
        _check_samples(n)
        self.n, self._table = n, None
        if n <= 4096:
            table = list(range(n))
            for i in range(n - 1, 0, -1):
                j = scale(draw(key, n - 1 - i), i + 1)
                table[i], table[j] = table[j], table[i]
            self._table = table
            return
        low, high = 0, 2**32  # the smallest a with a² ≥ n
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if middle * middle >= n else (middle, high)
        self._a, self._b = high, -(-n // high)
        self._keys = [draw(key, i) for i in range(6)]

    def __call__(self, x: int) -> int:
        if not 0 <= x < self.n:
            raise IndexError(f"{x} of {self.n}")
        if self._table is not None:
            return self._table[x]
        a, b, k = self._a, self._b, self._keys
        while True:
            left, right = divmod(x, b)
            for i in (0, 2, 4):
                left = (left + scale(_mix(right ^ k[i]), a)) % a
                right = (right + scale(_mix(left ^ k[i + 1]), b)) % b
            x = left * b + right
            if x < self.n:
                return x


def pack_order(n: int, seed: int) -> Permutation:
    """pack_order(n, seed)(i) is the entry of the sorted listing that is packed i-th."""
    return Permutation(n, derive_key("pack", seed))


class Order:
    """An epoch's order over n source positions: order[q] is the source position at position q. `order` is "sequential",
    "shuffled" or "interleaved"; `run` and `window` are for interleaved only. If the source is a whole split, a source
    position is a record's number."""

    def __init__(self, order: str, n: int, seed: int = 0, epoch: int = 0, run: int = 0, window: int = 0):
        if order not in ("sequential", "shuffled", "interleaved"):
            raise ValueError(f"order {order!r}")
        if not (0 <= n and 0 <= seed < 2**64 and 0 <= epoch < 2**64):
            raise ValueError("n, seed and epoch are not negative, seed and epoch below 2⁶⁴")
        if order == "interleaved" and not (1 <= run < 2**32 and 1 <= window < 2**32):
            raise ValueError("run and window are from 1 to 2³² − 1")
        _check_samples(n)
        self.order, self.n, self._seed, self._epoch, self._run, self._window = order, n, seed, epoch, run, window
        self._inside: tuple = (None, None)
        if order == "shuffled":
            self._all = Permutation(n, derive_key("shuffled", seed, epoch))
        elif order == "interleaved" and n >= run:
            self._blocks = Permutation(n // run, derive_key("blocks", seed, epoch))

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, q: int) -> int:
        if not 0 <= q < self.n:
            raise IndexError(f"position {q} of {self.n}")
        if self.order == "sequential":
            return q
        if self.order == "shuffled":
            return self._all(q)
        run, window, blocks = self._run, self._window, self.n // self._run
        windows = max(1, -(-blocks // window))
        w = min(q // (window * run), windows - 1)
        m = min(blocks, w * window + window) - w * window
        if self._inside[0] != w:
            size = m * run + (self.n % run if w == windows - 1 else 0)
            self._inside = (w, Permutation(size, derive_key("window", self._seed, self._epoch, w)))
        t = self._inside[1](q - w * window * run)
        if t < m * run:
            return self._blocks(w * window + t // run) * run + t % run
        return blocks * run + t - m * run
