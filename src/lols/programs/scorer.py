"""The linear policy for programs: from features to the cheapest action, in one compiled call."""

from __future__ import annotations

import numbers
import struct
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from lols.contract.features import LARGEST, FeatureBuffer
from lols.engine.policy import add_features, cheapest, decode
from lols.engine.structures import FrozenPolicy
from lols.errors import SpaceError
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct
from lols.programs.choices import Legal
from lols.programs.feature_ids import Ids

MOST = 1 << 18  # the most decisions to remember
GIVEN = struct.Struct("=3q")

EncodedFeatures = tuple[list[int], list[float] | None]  # ids, and values unless all are 1


class AskedDecision(Struct):
    """The memory for scoring decisions, laid out once for a policy: features are written into the same arrays."""

    policy: FrozenPolicy
    random_ties: bool
    features: FeatureBuffer
    given: np.ndarray  # [3]: the number of features, the component, the stream
    legal: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    costs: np.ndarray
    bits: np.ndarray  # the same memory as integers


def cheapest_action(asked):
    """The legal action of least predicted cost; writes the costs to `costs`."""
    columns, given = asked.columns, asked.given
    for j in range(columns.size):
        columns[j] = 0.0
    add_features(asked.policy, given[1], asked.features, 0, given[0], 0, asked.rows, columns)
    decode(asked.policy, columns, asked.costs)
    return cheapest(asked.bits, asked.legal, asked.random_ties, given[2])


choose_kernel = Kernel(cheapest_action)


class Scorer:
    """Scores decisions under a frozen policy, which is exchanged by `follow`."""

    def __init__(self, compiled: bool = True):
        self.ids = Ids()
        self.compiled = compiled
        self.asked: dict[Any, int] = {}
        self._packers: dict[Any, Callable[..., None]] = {}

    def follow(self, policy: FrozenPolicy, random_ties: bool) -> None:
        """Use this policy from now on, with its present weights."""
        self.policy, self.random_ties = policy, random_ties
        self.components = int(policy.chances.size)
        self.asked.clear()
        self._room(64)

    def _room(self, count: int) -> None:
        """Make room for decisions of up to `count` features."""
        policy, actions = self.policy, self.policy.code.shape[1]
        self.costs = np.zeros(actions, np.float32)
        self.buffer, self.values = np.zeros(count, np.int64), np.ones(count, np.float32)
        self.given, self.legal = np.zeros(3, np.int64), np.ones(actions, np.bool_)
        self._bytes, self._given = (memoryview(a.data).cast("B") for a in (self.buffer, self.given))
        columns, rows = np.zeros(policy.stack.shape[2], np.float32), np.zeros(count, np.int64)
        asked = AskedDecision(
            policy=policy,
            random_ties=self.random_ties,
            features=FeatureBuffer(self.buffer, self.values, np.zeros(1, np.int64)),
            given=self.given,
            legal=self.legal,
            rows=rows,
            columns=columns,
            costs=self.costs,
            bits=self.costs.view(np.int32),
        )
        self._ones = True  # whether all values are 1
        self._call: Callable[[], int] = choose_kernel.on(self.compiled, asked)

    def encode(self, features: Any) -> EncodedFeatures:
        """Ids and values of features, which are an iterable, or a mapping from features to values."""
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

    def kept(self, features: Any) -> Any:
        """A copy of features as the program gives them, to be encoded later."""
        return dict(features) if hasattr(features, "items") else tuple(features)

    def choose(self, features: EncodedFeatures, legal: Legal, component: int = 0, stream: int = 0) -> int:
        """The legal action of least predicted cost."""
        ids, values = features
        count = len(ids)
        if count > self.buffer.size:
            self._room(2 * count)
        pack = self._packers.get(count)
        if pack is None:
            pack = self._packers[count] = struct.Struct(f"={count}q").pack_into
        pack(self._bytes, 0, *ids)
        if values is not None:
            self.values[:count] = values
            self._ones = False
        elif not self._ones:
            self.values[:] = 1.0
            self._ones = True
        GIVEN.pack_into(self._given, 0, count, component, stream)
        self.legal[:] = legal.mask
        return self._call()

    def choose_again(self, features: Any, legal: Legal) -> int:
        """The same for features as the program gives them, remembered; for policies that draw nothing at random."""
        if hasattr(features, "items"):
            return self.choose(self.encode(features), legal)
        asked = (tuple(features), legal)
        try:
            return self.asked[asked]
        except KeyError:
            if len(self.asked) >= MOST:
                self.asked.clear()
            action = self.asked[asked] = self.choose(self.encode(asked[0]), legal)
            return action
        except TypeError:
            return self.choose(self.encode(asked[0]), legal)


def _numbers(features: Any) -> list[float]:
    """The values of a mapping of features."""
    try:
        values = [float(value) for value in features.values()]
        if sum(map(abs, values)) <= LARGEST:
            return values
    except (TypeError, ValueError):
        pass
    for feature, value in features.items():
        if not isinstance(value, numbers.Real) or not abs(float(value)) <= LARGEST:
            raise SpaceError(f"feature {feature!r} has the value {value!r}: give a finite number, within 32-bit floats")
    return [float(value) for value in features.values()]
