"""The linear policy for candidates: from the features of each to the cheapest one, in one compiled call."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import numpy as np

from lols.engine.policy import cheapest, single_score
from lols.engine.structures import FrozenPolicy
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct
from lols.programs.candidates import EncodedCandidates, encode_candidates
from lols.programs.choices import Legal
from lols.programs.scorer import GIVEN, Scorer


class AskedCandidates(Struct):
    """The memory for scoring candidates, laid out once for a policy: features are written into the same arrays."""

    policy: FrozenPolicy
    random_ties: bool
    ids: np.ndarray
    values: np.ndarray
    bounds: np.ndarray
    given: np.ndarray  # [3]: the number of candidates, the component, the stream
    legal: np.ndarray
    costs: np.ndarray
    bits: np.ndarray  # the same memory as integers


def cheapest_candidate(asked):
    """The legal candidate of least predicted cost; writes the costs to `costs`."""
    costs, given, bounds = asked.costs, asked.given, asked.bounds
    for a in range(given[0]):
        costs[a] = 0.0
        if asked.legal[a]:
            low, high = bounds[a], bounds[a + 1]
            costs[a] = single_score(asked.policy, given[1], asked.ids, asked.values, low, high, costs[a])
    return cheapest(asked.bits, asked.legal[: given[0]], asked.random_ties, given[2])


candidate_kernel = Kernel(cheapest_candidate)


class CandidateScorer(Scorer):
    """Scores candidates under a frozen policy, which is exchanged by `follow`."""

    def _room(self, count: int, candidates: int = 16) -> None:
        """Make room for `count` features and this many candidates."""
        self.costs = np.zeros(candidates, np.float32)
        self.buffer, self.values = np.zeros(count, np.int64), np.ones(count, np.float32)
        self.given, self.legal = np.zeros(3, np.int64), np.ones(candidates, np.bool_)
        bounds = np.zeros(candidates + 1, np.int64)
        memory = (self.buffer, self.values, bounds, self.given)
        self._bytes, self._values, self._bounds, self._given = (memoryview(a.data).cast("B") for a in memory)
        asked = AskedCandidates(
            policy=self.policy,
            random_ties=self.random_ties,
            ids=self.buffer,
            values=self.values,
            bounds=bounds,
            given=self.given,
            legal=self.legal,
            costs=self.costs,
            bits=self.costs.view(np.int32),
        )
        self._call = candidate_kernel.on(self.compiled, asked)

    def encode(self, features: Any) -> Any:
        """Ids and values of the features of candidates: a pair of the candidates, and what they share."""
        return encode_candidates(self.ids, *features)

    def kept(self, features: Any) -> Any:
        """A copy, to be encoded later."""
        candidates, shared = features
        return {candidate: _copy(own) for candidate, own in candidates.items()}, _copy(shared)

    def choose(self, features: Any, legal: Legal, component: int = 0, stream: int = 0) -> int:
        """The legal candidate of least predicted cost."""
        seen: EncodedCandidates = features
        count, candidates = len(seen.ids), legal.count
        if count > self.buffer.size or candidates > self.costs.size:
            self._room(max(2 * count, self.buffer.size), max(2 * candidates, self.costs.size))
        self._packer(f"={count}q")(self._bytes, 0, *seen.ids)
        self._packer(f"={count}f")(self._values, 0, *seen.values)
        self._packer(f"={candidates + 1}q")(self._bounds, 0, *seen.bounds)
        GIVEN.pack_into(self._given, 0, candidates, component, stream)
        self.legal[:candidates] = legal.mask
        return self._call()

    def _packer(self, layout: str) -> Callable[..., None]:
        packer = self._packers.get(layout)
        if packer is None:
            packer = self._packers[layout] = struct.Struct(layout).pack_into
        return packer

    def choose_again(self, features: Any, legal: Legal) -> int:
        """The same for candidates as the program gives them."""
        return self.choose(self.encode(features), legal)


def _copy(features: Any) -> Any:
    if callable(features):  # now: it may read variables of the program, which change
        features = features()
    return dict(features) if hasattr(features, "items") else tuple(features)
