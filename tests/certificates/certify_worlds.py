"""Small worlds in which it is known what stands in the way of a better policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols import Example, Reference, SearchSpace, Sizes, emit, feature

WORDS = 12


def _start(x, s):
    pass


def _actions(x, s, legal):
    legal[:] = s[0] < len(x.words)


def _step(x, s, a):
    s[1 + s[0]] = a
    s[0] += 1


def _sighted(x, s, out):
    emit(out, feature(0, x.words[s[0]]))


def _blind(x, s, out):
    emit(out, feature(1))


def _wrong(x, y, s):
    total = 0.0
    for i in range(len(x.words)):
        total += s[1 + i] != y.bits[i]
    return total


def _trap(x, y, s):
    """Both steps changed together end at 0; a single one makes it worse."""
    if s[1] == s[2]:
        return 0.5 - 0.5 * s[1]
    return 1.0


def _output(x: Any, s: np.ndarray) -> list[int]:
    return list(s[1:].tolist())


def _encode(obj: dict[str, list[int]]) -> Example:
    return Example({"words": obj["words"]}, {"bits": obj["bits"]})


def _space(features: Any, loss: Any) -> SearchSpace:
    return SearchSpace(
        start=_start,
        actions=_actions,
        step=_step,
        features=features,
        loss=loss,
        output=_output,
        encode=_encode,
        sizes=Sizes(state=lambda x: 1 + len(x.words), actions=2, features=1, steps=lambda x: len(x.words)),
        name="certify_worlds",
    )


SIGHTED, BLIND, TRAP = _space(_sighted, _wrong), _space(_blind, _wrong), _space(_blind, _trap)
KNOWING = Reference(action=lambda x, y, s: y.bits[s[0]], name="knowing")
LAZY = Reference(action=lambda x, y, s: 0, needs_truth=False, name="lazy")


def sentences(count: int, seed: int = 0, length: int = 4) -> list[dict[str, list[int]]]:
    """Words whose bit is 1 if they are odd."""
    rng = np.random.default_rng(seed)
    words = rng.integers(0, WORDS, (count, length))
    return [{"words": row, "bits": [w % 2 for w in row]} for row in words.tolist()]
