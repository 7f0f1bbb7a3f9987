"""The linear policy as a program needs it: from features to the action it likes best, in one compiled call."""

from __future__ import annotations

import math
import numbers
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numba
import numpy as np

from lols.engine.compile.kernel import Kernel
from lols.engine.scoring import add_row, cheapest, decode
from lols.engine.structures import Policy, Table
from lols.engine.table import lookup
from lols.errors import SpaceError
from lols.imperative.choices import Legal
from lols.imperative.things import Ids
from lols.learners.learner import LIBRARY

__all__ = ["Features", "Scorer"]

MOST = 1 << 18  # decisions that are remembered

Features = tuple[list[int], list[float] | None]  # ids, and values unless all are 1


def choose(
    library, ids, values, count, shift, entries, marks, stack, component, code, thresholds, columns, costs, bits, legal,
    random_ties, stream,
):  # fmt: skip
    """The legal action of least predicted cost; the costs are left in `costs`, whose integer view `bits` is."""
    table = Table(shift, entries, marks)
    for j in range(columns.size):
        columns[j] = 0.0
    for k in range(count):
        row = lookup(table, ids[k])
        if row >= 0:
            add_row(columns, stack, component, row, values[k])
    decode(code, thresholds, columns, costs)
    return cheapest(bits, legal, random_ties, stream)


choose_kernel = Kernel(choose)


class Scorer:
    """Scores decisions under one frozen policy after the other."""

    def __init__(self, compiled: bool = True):
        self.ids = Ids()
        self.compiled = compiled
        self.asked: dict[Any, int] = {}
        self._entries: dict[Any, Callable[..., int]] = {}
        self._packers: dict[int, Callable[..., None]] = {}
        self._room(64)

    def _room(self, count: int) -> None:
        self.buffer = np.zeros(count, np.int64)
        self._bytes = memoryview(self.buffer.data).cast("B")
        self.ones, self.values = np.ones(count, np.float32), np.ones(count, np.float32)

    def follow(self, policy: Policy, random_ties: bool) -> None:
        """Go on with this policy, as its weights are now."""
        self.policy, self.random_ties = policy, random_ties
        actions = policy.code.shape[1]
        self.columns, self.costs = np.zeros(policy.stack.shape[2], np.float32), np.zeros(actions, np.float32)
        self.components = int(policy.chances.size)
        self.asked.clear()
        bits = self.costs.view(np.int32)
        table, legal = policy.shared, np.ones(actions, np.bool_)
        self._middle = (table.shift, table.entries, table.marks, policy.stack)
        self._last = (policy.code, policy.thresholds, self.columns, self.costs, bits)
        arguments = (LIBRARY, self.buffer, self.ones, 0, *self._middle, 0, *self._last, legal, random_ties, 0)
        self._call = self._entry(arguments)

    def _entry(self, arguments: tuple[Any, ...]) -> Callable[..., int]:
        """The compiled function for arguments of these types, past the dispatcher, which takes longer than the work."""
        if not self.compiled or not hasattr(choose_kernel.compiled, "overloads"):
            return lambda *given: int(choose_kernel(False, *given))
        kinds = tuple((a.dtype, a.flags.writeable, a.flags.c_contiguous) for a in arguments if hasattr(a, "dtype"))
        if kinds not in self._entries:
            choose_kernel(True, *arguments)
            signature = tuple(numba.typeof(a) for a in arguments)
            self._entries[kinds] = choose_kernel.compiled.overloads[signature].entry_point
        return self._entries[kinds]

    def encode(self, features: Any) -> Features:
        """Ids and values of features: things, or a mapping from things to values."""
        if features.__class__ is str:
            raise SpaceError(f"the features are one string, {features!r}: give a list of them")
        try:
            if hasattr(features, "items"):
                return list(map(self.ids.__getitem__, features)), _numbers(features)
            return list(map(self.ids.__getitem__, features)), None
        except TypeError as error:
            if not isinstance(features, Iterable):
                raise SpaceError(f"the features are {features!r}: give a list of them, or a dict with values") from None
            if "unhashable" in str(error):
                raise SpaceError(f"a feature cannot be looked up ({error}): give strings, numbers or tuples") from None
            raise

    def like(self, features: Features, legal: Legal, component: int = 0, stream: int = 0) -> int:
        """The legal action that the policy likes best."""
        ids, values = features
        count = len(ids)
        if count > self.buffer.size:
            self._room(2 * count)
        pack = self._packers.get(count)
        if pack is None:
            pack = self._packers[count] = struct.Struct(f"={count}q").pack_into
        pack(self._bytes, 0, *ids)
        if values is None:
            given = self.ones
        else:
            given = self.values
            given[:count] = values
        return self._call(
            LIBRARY, self.buffer, given, count, *self._middle, component, *self._last, legal.mask, self.random_ties,
            stream,
        )  # fmt: skip

    def like_again(self, features: Any, legal: Legal) -> int:
        """The same for features as the program gives them, remembered: the policy never draws at random."""
        if hasattr(features, "items"):
            return self.like(self.encode(features), legal)
        asked = (tuple(features), legal)
        try:
            return self.asked[asked]
        except KeyError:
            if len(self.asked) >= MOST:
                self.asked.clear()
            made = self.asked[asked] = self.like(self.encode(asked[0]), legal)
            return made
        except TypeError:
            return self.like(self.encode(asked[0]), legal)


def _numbers(features: Any) -> list[float]:
    """The values of features that are a mapping."""
    try:
        values = [float(value) for value in features.values()]
        if math.isfinite(sum(values)):
            return values
    except (TypeError, ValueError):
        pass
    for thing, value in features.items():
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            raise SpaceError(f"feature {thing!r} has the value {value!r}: give a finite number")
    return [float(value) for value in features.values()]
