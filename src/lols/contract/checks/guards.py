"""Arrays that refuse what compiled code gets wrong: indices out of range, lost fractions, writes to read-only data."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

# Adding these converts a narrow number to the width of compiled code, so that nothing overflows here that does not
# overflow there. Adding is several times faster than converting, and adding -0.0 changes no number.
WIDER: dict[type, Any] = dict.fromkeys((np.int8, np.int16, np.int32, np.uint8, np.uint16, np.uint32), np.int64(0))
WIDER |= dict.fromkeys((np.float16, np.float32), np.float64(-0.0))

INTEGERS = (int, np.integer)
COMMON_INTEGERS = frozenset((int, np.int64, np.int32))

# Reads and writes of guarded arrays so far, a measure of work that does not depend on the machine; and the most that
# there may be, beyond which even a call that is under way ends.
WORK, MOST_WORK = [0], [math.inf]

# Most accesses are to single entries, so the methods of the base class are looked up once.
read_entry, write_entry = np.ndarray.__getitem__, np.ndarray.__setitem__

FIX = {
    "the state": "raise Sizes.state, or check the index first",
    "legal": "actions are numbered below Sizes.actions: raise it",
    "out": "there is one entry for each action, and Sizes.actions of them",
    "the feature buffer": "write to it with lols.emit",
    "the item buffer": "write to it with lols.look",
}


class SpentError(BaseException):
    """All time or work is spent. Not an `Exception`, so that handlers of the functions' errors do not catch it."""


class MistakeError(Exception):
    """A function did something it must not do; has the kind of mistake, and a message with the fix."""

    def __init__(self, kind: str, message: str):
        super().__init__(message)
        self.kind = kind


class Guarded(np.ndarray):
    """A named array that refuses negative indices, indices beyond its end, and writes if it is read-only."""

    label = "an array"

    def __array_finalize__(self, parent: Any) -> None:
        self.label = getattr(parent, "label", "an array")

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        # results of computations are ordinary numbers and arrays
        return array[()] if return_scalar else np.asarray(array)

    def __getitem__(self, index: Any) -> Any:
        WORK[0] += 1
        if WORK[0] > MOST_WORK[0]:
            raise SpentError
        if type(index) not in COMMON_INTEGERS or not 0 <= index < len(self):
            self._refuse(index)
        value = read_entry(self, index)
        wider = WIDER.get(type(value))
        return value if wider is None else wider + value

    def __repr__(self) -> str:  # so that `print` works in a function that is being checked
        return repr(np.asarray(self))

    def __str__(self) -> str:
        return str(np.asarray(self))

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __setitem__(self, index: Any, value: Any) -> None:
        WORK[0] += 1
        if type(index) not in COMMON_INTEGERS or not 0 <= index < len(self):
            self._refuse(index)
        if not self.flags.writeable:
            raise MistakeError("modifies", f"writes to {self.label}, which it may only read: keep results in the state")
        write_entry(self, index, value)

    def _refuse(self, index: Any) -> None:
        for i, size in zip(index if type(index) is tuple else (index,), self.shape, strict=False):
            if not isinstance(i, INTEGERS):
                return  # slices and masks mean the same in compiled code, and stay inside the array
            if i < 0:
                message = f"uses index {i} of {self.label}: a negative index silently counts from the end"
                raise MistakeError("negative index", f"{message}: check it first, or write the position out")
            if i >= size:
                message = f"uses index {i} of {self.label}, which has {size} entries"
                raise MistakeError("outside", f"{message}: {FIX.get(self.label, 'check the index first')}")


class GuardedState(Guarded):
    """A state, which also refuses numbers that its cells cannot keep: fractions, and more than 32 bits."""

    def __setitem__(self, index: Any, value: Any) -> None:
        try:
            super().__setitem__(index, value)
            kept = self.dtype.kind == "f" or not np.any(read_entry(self, index) != value)
        except OverflowError:  # a large number of Python; one of NumPy is cut off
            kept = False
        if not kept:
            message = f"writes {value} into the state, whose cells are whole numbers of 32 bits"
            raise MistakeError("not kept", f"{message}: round or scale it first")


class HiddenTruth:
    """The truth for a reference that must not look at it: any access is a mistake."""

    def __getattr__(self, name: str) -> Any:
        raise MistakeError("truth", "reads `y`, although needs_truth is False: set needs_truth=True, or use `x` only")

    def _refuse(self, *_: Any) -> Any:
        return self.anything

    __getitem__ = __iter__ = __len__ = _refuse


def guard(array: np.ndarray, label: str, kind: type[Guarded] = Guarded, *, writeable: bool = True) -> Guarded:
    """A guarded view of an array."""
    guarded = array.view(kind)
    guarded.label = label
    guarded.flags.writeable = writeable
    return guarded


def guard_record(side: str, record: Any) -> Any:
    """The columns of an example, guarded and read-only."""
    values = [
        guard(value, f"{side}.{name}", writeable=False)
        if isinstance(value, np.ndarray)
        else WIDER[type(value)] + value
        if type(value) in WIDER
        else value
        for name, value in zip(record._fields, record, strict=True)
    ]
    return type(record)(*values)


def read_only_record(record: Any) -> Any:
    """The columns of an example as ordinary arrays that cannot be written."""
    values = [value.view() if isinstance(value, np.ndarray) else value for value in record]
    for value in values:
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return type(record)(*values)
