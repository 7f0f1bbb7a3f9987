"""The door: every example passes it before a kernel runs on it, no matter who runs the kernel.

What a kernel reads and writes depends on the sizes of examples and on the functions of the space. Sizes are compared
with those that the space declares. The functions of a user's own space are called as plain Python, with guarded arrays,
on the largest examples, and again whenever an example is larger than all before: then a wrong index is an error that
names the function and the line. Their kernels check indices, too (`lols.kernels.dual`). Before anything is
learned, a few examples are looked over for what is wrong in silence.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from lols.contract.checks.indices import check_indices
from lols.contract.checks.quick import check_quickly
from lols.contract.examples import Examples, Ragged
from lols.contract.space import Reference, SearchSpace
from lols.engine.structures import Data
from lols.errors import SpaceError
from lols.kernels.dual import Bound

FIRST, LATER = 0.2, 0.02  # the most seconds for a new space, and for examples that are larger than all before
MOST_EXAMPLES = 4
MOST_CELLS = 1 << 31  # of a state; steps of an example
SAME = ("actions", "features", "items", "roles", "action_features")  # sizes that memory is made for

# The largest sizes so far of a space's examples: state, steps, items, and the length of each column; for each reference
# and, because they are other columns, with and without truth.
_LARGEST: WeakKeyDictionary[SearchSpace, dict[Any, list[int]]] = WeakKeyDictionary()

# The most examples that were looked over for the functions of a space and a reference, with or without truth.
_LOOKED_OVER: dict[Any, int] = {}
AGAIN = 2  # times as many examples are looked over again


def look_over(
    space: SearchSpace, reference: Reference | None, examples: Examples, bound: tuple[Bound | None, ...]
) -> None:
    """A short check of the contract before anything is learned: see `lols.contract.checks.quick`.

    Only functions of users are checked, once, and again when there are far more examples.
    """
    if len(examples) and any(each.checked for each in bound if each is not None):
        digests = tuple(each.digest for each in bound if each is not None)
        kind = (digests, space.sizes, examples.has_truth)
        if len(examples) >= AGAIN * _LOOKED_OVER.get(kind, 0):
            check_quickly(space, reference, examples)
            _LOOKED_OVER[kind] = len(examples)


def admit(
    space: SearchSpace,
    reference: Reference | None,
    examples: Examples,
    y: Any,
    bound: tuple[Bound | None, ...],
    *,
    compiled: bool,
) -> Data:
    """The examples as kernels read them, after a check of their sizes; `y` is the truth that the kernels are given.

    `bound` are the functions of the space and of the reference. Plain Python checks indices by itself, so nothing is
    called for kernels that are not compiled.
    """
    _check_sizes(space, examples)
    if compiled and len(examples) and any([each.checked for each in bound if each is not None]):
        _check_functions(space, reference, examples)
    return Data(examples.x, y, examples.items, examples.states, examples.steps)


def _check_sizes(space: SearchSpace, examples: Examples) -> None:
    if examples.space is not space:
        for name in SAME:
            theirs, ours = (getattr(sizes, name) for sizes in (examples.space.sizes, space.sizes))
            if theirs != ours:
                raise SpaceError(
                    f"these examples were made for a space with Sizes.{name} = {theirs}, and this one has {ours}: make "
                    "them with this space"
                )
    for name, sizes in (("state", examples.states), ("steps", examples.steps)):
        if _most(sizes) >= MOST_CELLS:
            at = int(sizes.argmax())
            raise SpaceError(f"example {at}: Sizes.{name} gives {sizes[at]}; it must be below {MOST_CELLS}")


def _check_functions(space: SearchSpace, reference: Reference | None, examples: Examples) -> None:
    """Walk through the largest examples if they are larger than all before."""
    columns = [column.offsets for side in (examples.x, examples.y) for column in side if type(column) is Ragged]
    offsets = [examples.items.first, *columns]
    largest = [_most(examples.states), _most(examples.steps), *map(_longest, offsets)]
    known, kind = _LARGEST.setdefault(space, {}), (reference, type(examples.x), type(examples.y))
    before = known.get(kind) or [-1] * len(largest)
    larger = [k for k, most in enumerate(largest) if most > before[k]]
    if not larger:
        return
    sizes = [examples.states, examples.steps, *map(np.diff, offsets)]
    chosen = [int(sizes[k].argmax()) for k in larger if sizes[k].size][:MOST_EXAMPLES]
    first = before[0] < 0
    if first:
        chosen.append(int(examples.steps.argmin()))
    if reference is not None and reference.needs_truth and not examples.has_truth:
        reference = None
    check_indices(space, reference, examples, list(dict.fromkeys(chosen)), FIRST if first else LATER)
    known[kind] = [max(pair) for pair in zip(before, largest, strict=True)]


def _most(sizes: np.ndarray) -> int:
    """The largest size; quick for one example, for a bandit asks about one at a time."""
    return int(sizes[0]) if sizes.size == 1 else int(sizes.max(initial=0))


def _longest(offsets: np.ndarray) -> int:
    """The most entries that one example has in a column."""
    return int(offsets[-1] - offsets[0]) if offsets.size <= 2 else int(np.diff(offsets).max())
