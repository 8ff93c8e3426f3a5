"""Runs over members (datasets, classes, selections) whose shares change. Needs shardtool_order.py, shardtool_reader.py.

Written from `order-spec.md` alone, section "Schedules", with its terms:

    Schedule(...)              members and stages: whose sample is at each position of the run
    Run(...)                   steps, rows, ids and substitutes of a run over a schedule
    turns(weights)             the members that have the turns of a stage
    firsts(weights)            the turns with which a period can begin
"""

from __future__ import annotations

import heapq
import struct
from array import array
from bisect import bisect_left, bisect_right
from math import gcd
from typing import Iterator, Sequence, Union

from shardtool_order import MOST_SAMPLES, Order, Refused, derive_key, draw, scale
from shardtool_reader import crc32c

MOST_TURNS = 2**20
MOST_MEMBERS = 2**16
SUBSTITUTES = 16


def _u64(name: str, value: int) -> int:
    if not 0 <= value < 2**64:
        raise ValueError(f"{name} is {value}, expected 0 to 2⁶⁴ − 1")
    return value


def numbers_crc(numbers: Sequence[int]) -> int:
    """Returns the CRC32C of numbers, each as eight little-endian bytes."""
    return crc32c(struct.pack(f"<{len(numbers)}Q", *numbers))


def divide_weights(weights: Sequence[int]) -> list[int]:
    """Divides the weights of a stage by their greatest common divisor. Raises Refused (`StageWeights`)."""
    divisor = gcd(*weights)
    divided = [weight // divisor for weight in weights] if divisor else list(weights)
    if not 1 <= sum(divided) <= MOST_TURNS:
        text = f"{list(weights)} divided by {divisor} add up to {sum(divided)}, expected 1 to {MOST_TURNS}"
        raise Refused("StageWeights", text)
    return divided


class _Turns:
    """The turns of a stage: `members[k]` has turn k; `places[d]` are the turns of member d; a period can begin with `firsts`."""

    def __init__(self, weights: Sequence[int]):
        total = sum(weights)
        self.members, self.places = array("H"), [array("I") for _ in weights]
        counts = [0] * len(weights)
        ready: list = []  # ((c + 1) ÷ w, d) of members that may take a turn; as doubles, such quotients differ
        later: list = [[] for _ in range(total)]  # members that may take one from turn k on
        later[0] = [d for d, weight in enumerate(weights) if weight]
        for k in range(total):
            for d in later[k]:
                heapq.heappush(ready, ((counts[d] + 1) / weights[d], d))
            later[k] = None
            d = heapq.heappop(ready)[1]
            self.members.append(d)
            self.places[d].append(k)
            counts[d] += 1
            if counts[d] < weights[d]:
                # c · S < (k + 1) · w holds from k = ⌊c · S ÷ w⌋ on, which is after this turn: none is taken when overdue.
                later[counts[d] * total // weights[d]].append(d)


        possible = bytearray(b"\1") * total
        for weight, places in zip(weights, self.places):
            excess, had = array("q"), 0
            for k, place in enumerate([*places, total - 1]):
                excess.extend(total * k - j * weight for j in range(had, place + 1))
                had = place + 1
            low, high = max(excess) - total, min(excess) + total
            for k, one in enumerate(excess):
                possible[k] &= low < one < high
        self.firsts = array("I", (k for k in range(total) if possible[k]))

    def first(self, seed: int, start: int, period: int) -> int:
        """Returns the turn with which a period of a stage that begins at `start` begins."""
        word = draw(derive_key("phase", seed, start, period % 2**64), 0)
        return self.firsts[scale(word, len(self.firsts))]

    def count(self, d: int, first: int, k: int) -> int:
        """Returns how many of the first k turns of a period that begins with `first` are member d's."""
        end, places = first + k, self.places[d]
        wrapped = len(places) if end >= len(self.members) else 0
        return wrapped + bisect_left(places, end % len(self.members)) - bisect_left(places, first)


def turns(weights: Sequence[int]) -> list[int]:
    """Returns the member of each turn of a stage."""
    return list(_Turns(divide_weights(weights)).members)


def firsts(weights: Sequence[int]) -> list[int]:
    """Returns the turns of a stage with which a period can begin."""
    return list(_Turns(divide_weights(weights)).firsts)


class _Member:
    """A range `(first, count)` or a list of ids; member[i] is the id of its sample i."""

    def __init__(self, given: Union[tuple[int, int], list[int]]):
        self.ids = [_u64("id", one) for one in given] if isinstance(given, list) else None
        if self.ids is None:
            self.first, self.count = (_u64(name, one) for name, one in zip(("first", "count"), given))
            self.json = f'{{"first":{self.first},"count":{self.count}}}'
        else:
            self.count = len(self.ids)
            self.json = f'{{"count":{self.count},"crc32c":"{numbers_crc(self.ids):08x}"}}'

    def is_below(self, samples: int) -> bool:
        """Returns whether all ids are below a number."""
        if self.ids is None:
            return not self.count or self.first + self.count <= samples
        return all(one < samples for one in self.ids)

    def __getitem__(self, i: int) -> int:
        return self.first + i if self.ids is None else self.ids[i]


class Schedule:
    """A scheduled source of N = `draws` positions per epoch over `samples` (M) ids. A member is `(first, count)`, or a
    list of ids; a stage is `(start, weights)` with one weight for each member, which holds from position `start` of the
    run on. Raises Refused (`ListedId`, `StageStart`, `StageMembers`, `StageWeights`, `EmptyMember`, `TooManySamples`),
    or ValueError for numbers out of range."""

    def __init__(self, members: Sequence, stages: Sequence[tuple[int, Sequence[int]]], draws: int, samples: int):
        if len(members) > MOST_MEMBERS:
            raise ValueError(f"{len(members)} members, expected at most {MOST_MEMBERS}")
        self.draws, self.samples = _u64("draws", draws), _u64("samples", samples)
        self.members = [_Member(given) for given in members]
        stages = [(_u64("start", start), [_u64("weight", one) for one in weights]) for start, weights in stages]
        for d, member in enumerate(self.members):
            if not member.is_below(samples):
                raise Refused("ListedId", f"member {d} has an id that is not below {samples}, the samples of the run")
        self.stages = [(start, self._check_stage(t, stages)) for t, (start, _) in enumerate(stages)]
        if not stages:
            raise Refused("StageStart", "0 stages, expected one or more, of which the first begins at 0")
        if draws > MOST_SAMPLES:
            raise Refused("TooManySamples", f"{draws} positions, at most 2⁶³")
        self._starts = [start for start, _ in stages]
        self._before: dict = {}  # of a seed and each stage, the samples of the members before it
        self._kept: tuple = (None, None)

    def _check_stage(self, t: int, stages: Sequence) -> list[int]:
        """Returns the divided weights of a stage, or raises its first failing check."""
        start, weights = stages[t]
        if t == 0 and start > 0:
            raise Refused("StageStart", f"stage 0 begins at {start}, expected 0")
        if t > 0 and start <= stages[t - 1][0]:
            raise Refused("StageStart", f"stage {t} begins at {start}, the one before it at {stages[t - 1][0]}")
        if len(weights) != len(self.members):
            raise Refused("StageMembers", f"stage {t} has {len(weights)} weights for {len(self.members)} members")
        divided = divide_weights(weights)
        for d, weight in enumerate(divided):
            if weight and not self.members[d].count:
                raise Refused("EmptyMember", f"stage {t} has weight {weights[d]} for member {d}, which has no samples")
        return divided

    @property
    def json(self) -> str:
        """The canonical JSON."""
        stages = []
        for start, weights in self.stages:
            last = max(d for d, weight in enumerate(weights) if weight)
            stages.append(f'{{"start":{start},"weights":[{",".join(map(str, weights[: last + 1]))}]}}')
        members = ",".join(member.json for member in self.members)
        return f'{{"source":"scheduled","draws":{self.draws},"members":[{members}],"stages":[{",".join(stages)}]}}'

    @property
    def checksum(self) -> int:
        """The source checksum."""
        return crc32c(self.json.encode("ascii"))

    def _turns(self, t: int) -> _Turns:
        if self._kept[0] != t:
            self._kept = (t, _Turns(self.stages[t][1]))
        return self._kept[1]

    def _counts_in(self, seed: int, t: int, g: int) -> list[int]:
        """Returns how many samples of each member come before position g of stage t."""
        before, taken, (start, weights) = self._at_start(seed, t), self._turns(t), self.stages[t]
        period, k = divmod(g - start, len(taken.members))
        first = taken.first(seed, start, period)
        return [before[d] + period * weight + taken.count(d, first, k) for d, weight in enumerate(weights)]

    def _at_start(self, seed: int, stage: int) -> list[int]:
        known = self._before.setdefault(seed, [])
        for t in range(len(known), stage + 1):
            known.append(self._counts_in(seed, t - 1, self.stages[t][0]) if t else [0] * len(self.members))
        return known[stage]

    def counts(self, epoch: int, p: int, seed: int) -> list[int]:
        """Returns how many samples of each member come before position p of an epoch, in a run with this seed."""
        g = epoch * self.draws + min(p, self.draws)
        return self._counts_in(seed, bisect_right(self._starts, g) - 1, g)

    def locate(self, epoch: int, q: int, seed: int) -> tuple[int, int, int]:
        """Returns the member of position q of an epoch, the pass of the member, and the number in this pass."""
        g = epoch * self.draws + q
        t = bisect_right(self._starts, g) - 1
        before = self._at_start(seed, t)
        taken = self._turns(t)
        period, k = divmod(g - self._starts[t], len(taken.members))
        first = taken.first(seed, self._starts[t], period)
        d = taken.members[(first + k) % len(taken.members)]
        x = before[d] + period * self.stages[t][1][d] + taken.count(d, first, k)
        return d, x // self.members[d].count % 2**64, x % self.members[d].count


class Run:
    """A run over a schedule: `batch` rows for each of `world` replicas in a step. `order` is that of the passes of each
    member. `policy` is "sample" or "off", `remainder` "drop", "pad" or "mask". Raises Refused (`ShardSource`,
    `GlobalBatch`, `EmptySource`, `DropWithoutStep`)."""

    def __init__(
        self,
        schedule: Schedule,
        order: str,
        batch: int,
        world: int = 1,
        policy: str = "sample",
        remainder: str = "drop",
        seed: int = 0,
        run: int = 0,
        window: int = 0,
    ):
        if not (1 <= batch < 2**32 and 1 <= world < 2**32):
            raise ValueError("batch and world are from 1 to 2³² − 1")
        if policy not in ("sample", "off", "shard") or remainder not in ("drop", "pad", "mask"):
            raise ValueError(f"policy {policy!r}, remainder {remainder!r}")
        Order(order, 0, seed, 0, run, window)  # checks them
        if policy == "shard":
            raise Refused("ShardSource", "the source is scheduled, expected everything or a list")
        self.stride = batch if policy == "off" else world * batch
        if self.stride > MOST_SAMPLES:
            raise Refused("GlobalBatch", f"{self.stride} positions in a step, at most 2⁶³")
        if not schedule.draws:
            raise Refused("EmptySource", "the source has no samples")
        if remainder == "drop" and schedule.draws < self.stride:
            raise Refused("DropWithoutStep", f"{schedule.draws} positions, a step needs {self.stride}")
        self.schedule, self.batch, self.policy, self.remainder = schedule, batch, policy, remainder
        self._order, self._seed = (order, run, window), seed
        self._orders: dict = {}

    def _id(self, d: int, passed: int, number: int) -> int:
        """Returns the id of a number in a pass of member d."""
        order, run, window = self._order
        member = self.schedule.members[d]
        if self._orders.get(d, (None,))[0] != passed:
            seed = derive_key("member", self._seed, 0, d)
            self._orders[d] = passed, Order(order, member.count, seed, passed, run, window)
        return member[self._orders[d][1][number]]

    def __getitem__(self, place: tuple[int, int]) -> int:
        """run[epoch, q] is the id of the sample at position q of an epoch."""
        epoch, q = place
        if not 0 <= q < self.schedule.draws:
            raise IndexError(f"position {q} of {self.schedule.draws}")
        return self._id(*self.schedule.locate(epoch, q, self._seed))

    def substitutes(self, epoch: int, q: int) -> list[int]:
        """Returns the ids to try, in order, in place of a sample that cannot be read; it keeps its augmentation."""
        d, passed, number = self.schedule.locate(epoch, q, self._seed)
        count = self.schedule.members[d].count
        if count == 1:
            return []
        m = 1 + derive_key("spare", self._seed, epoch, q) % (count - 1)
        return [self._id(d, passed, (number + k * m) % count) for k in range(1, SUBSTITUTES + 1)]

    def rows(self, epoch: int, p: int, rank: int) -> Iterator[tuple[str, int, int]]:
        """Yields (kind, position, id) of the rows of a replica in the step that begins at p. `kind` is "sample",
        "repeated", or "masked" with id −1."""
        first = p if self.policy == "off" else p + rank * self.batch
        for q in range(first, first + self.batch):
            if q < self.schedule.draws:
                yield "sample", q, self[epoch, q]
            elif self.remainder == "pad":
                q %= self.schedule.draws
                yield "repeated", q, self[epoch, q]
            else:
                yield "masked", q, -1

    def steps_left(self, p: int) -> int:
        """Returns the steps from position p to the end of the epoch."""
        left = max(0, self.schedule.draws - p)
        return left // self.stride if self.remainder == "drop" else -(-left // self.stride)

    def dropped(self, p: int) -> int:
        """Returns the samples that `drop` omits from position p on."""
        if self.remainder != "drop":
            return 0
        return max(0, self.schedule.draws - p) - self.steps_left(p) * self.stride

    def after(self, epoch: int, p: int) -> tuple[int, int]:
        """Returns epoch and p after the step that begins at p."""
        return ((epoch + 1) % 2**64, 0) if self.steps_left(p) <= 1 else (epoch, p + self.stride)
