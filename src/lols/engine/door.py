"""The door: every example passes it before a kernel runs on it, whoever runs the kernel.

What a kernel reads and writes depends on the sizes of examples and on the functions of the space. Sizes are compared
with those that the space declares. The functions of a user's own space are called as plain Python, with guarded arrays,
on the largest examples, and again whenever an example is larger than all before: then a wrong index is an error that
names the function and the line. Their kernels check indices, too (`lols.engine.compile.dual`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.checks.indices import check_indices
from lols.contract.examples import Examples, Ragged
from lols.contract.space import Reference, SearchSpace
from lols.engine.compile.dual import Bound
from lols.engine.structures import Data
from lols.errors import SpaceError

__all__ = ["admit"]

FIRST, LATER = 0.2, 0.02  # the most seconds for a new space, and for examples that are larger than all before
MOST_EXAMPLES = 4
MOST_CELLS = 1 << 31  # of a state; steps of an example
SAME = ("actions", "features", "items", "roles", "action_features")  # sizes that memory is made for

# The largest sizes so far, by the digests of the functions: state, steps, items, and the length of each column.
_LARGEST: dict[tuple[str, ...], list[int]] = {}


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
    if compiled and len(examples) and any(each is not None and each.checked for each in bound):
        _check_functions(space, reference, examples, tuple(each.digest for each in bound if each is not None))
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
        if sizes.size and sizes.max() >= MOST_CELLS:
            at = int(sizes.argmax())
            raise SpaceError(f"example {at}: Sizes.{name} gives {sizes[at]}; it must be below {MOST_CELLS}")


def _check_functions(
    space: SearchSpace, reference: Reference | None, examples: Examples, digests: tuple[str, ...]
) -> None:
    """Walk through the largest examples if they are larger than all before."""
    before = _LARGEST.get(digests)
    largest = _largest(examples)
    if before is not None and len(before) == len(largest):
        larger = [k for k, (old, new) in enumerate(zip(before, largest, strict=True)) if new > old]
        if not larger:
            return
    else:
        before, larger = None, list(range(len(largest)))
    sizes = _sizes(examples)
    chosen = list(dict.fromkeys(int(sizes[k].argmax()) for k in larger))[:MOST_EXAMPLES]
    if before is None:
        chosen = list(dict.fromkeys([*chosen, int(examples.steps.argmin())]))
    if reference is not None and reference.needs_truth and not examples.has_truth:
        reference = None
    check_indices(space, reference, examples, chosen, FIRST if before is None else LATER)
    _LARGEST[digests] = largest if before is None else [max(pair) for pair in zip(before, largest, strict=True)]


def _largest(examples: Examples) -> list[int]:
    """The largest of each size; quick for a single example."""
    if len(examples) > 1:
        return [int(sizes.max()) for sizes in _sizes(examples)]
    lengths = [int(column.offsets[1]) for side in (examples.x, examples.y) for column in side if type(column) is Ragged]
    return [int(examples.states[0]), int(examples.steps[0]), int(examples.items.first[-1]), *lengths]


def _sizes(examples: Examples) -> list[np.ndarray]:
    """The sizes of each example: state, steps, items, and the length of each column."""
    first = examples.items.first
    items = np.diff(first) if first.size > 1 else np.zeros(len(examples), np.int64)
    columns = [column for side in (examples.x, examples.y) for column in side if type(column) is Ragged]
    return [examples.states, examples.steps, items, *(np.diff(column.offsets) for column in columns)]
