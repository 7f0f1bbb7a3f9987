"""The functions that a search space calls: `feature`, `emit` and its relatives, `look` and `uniform`.

Each is an ordinary Python function that kernels replace by a compiled version (`lols.kernels`), so that a space
runs both as plain Python and compiled.
"""

from __future__ import annotations

import math
from functools import cache
from typing import NamedTuple

import numpy as np

from lols.errors import SpaceError
from lols.kernels.digest import COVERED
from lols.kernels.dual import dual, in_kernels, not_inlined
from lols.kernels.hashing import chain, mix, unit

LARGEST = float(np.finfo(np.float32).max)  # of the values of features
PLACES = 32  # bits of the size of a buffer; the bits above have the place of a value that is refused, counted from 1
FAR = float(1 << 62)  # knots from 0, beyond which there are none

COVERED.add(__name__)


class FeatureBuffer(NamedTuple):
    """Where `features` and `action_features` write: hashed ids, their values, and how many there are."""

    ids: np.ndarray
    values: np.ndarray
    size: np.ndarray


class ItemBuffer(NamedTuple):
    """Where `items` writes: the input items a state looks at, the role of each, and how many there are."""

    items: np.ndarray
    roles: np.ndarray
    size: np.ndarray


def feature_buffer(capacity: int) -> FeatureBuffer:
    """An empty buffer for `capacity` features."""
    return FeatureBuffer(np.zeros(capacity, np.int64), np.zeros(capacity, np.float32), np.zeros(1, np.int64))


def item_buffer(capacity: int) -> ItemBuffer:
    """An empty buffer for `capacity` items."""
    return ItemBuffer(np.zeros(capacity, np.int64), np.zeros(capacity, np.int64), np.zeros(1, np.int64))


class FeatureError(SpaceError):
    """The value of a feature is not a number that can be kept."""


_mix_once = cache(mix)


def _chained(template, *values):
    return chain(mix(template, len(values)), values)


@in_kernels(_chained)
def feature(template: int, *values: int) -> int:
    """Hash a template number and up to six integers into the id of a feature.

    Parameters
    ----------
    template
        A number that tells kinds of features apart.
    *values
        Up to six integers.

    Examples
    --------
    >>> feature(0, 17) != feature(1, 17)
    True
    >>> feature(2, 3, 4) != feature(2, 4, 3)
    True

    """
    identity = _mix_once(template, len(values))
    for value in values:
        identity = mix(identity, value)
    return identity


@dual
def hamming(made: np.ndarray, true: np.ndarray) -> float:
    """The number of places where what was made differs from the truth: the Hamming loss.

    Parameters
    ----------
    made
        What was predicted.
    true
        The truth.

    Examples
    --------
    >>> hamming(np.array([0, 2, 1]), np.array([0, 1, 1]))
    1.0

    """
    wrong = 0.0
    for i in range(len(true)):
        wrong += made[i] != true[i]
    return float(wrong)


@dual
def emit(out: FeatureBuffer, identity: int, value: float = 1.0) -> None:
    """Append one feature. More features than `Sizes.features` are only counted, and reported as an error.

    So is a value that is not finite, or too large for a 32-bit float.

    Parameters
    ----------
    out
        The argument `out` of `features` or `action_features`.
    identity
        The id of the feature, from `feature`, `look` or `text`.
    value
        Its value.

    Examples
    --------
    >>> out = feature_buffer(4)
    >>> emit(out, feature(0, 17)); emit(out, feature(1, 3), 0.5)
    >>> int(out.size[0]), out.values[:2].tolist()
    (2, [1.0, 0.5])

    """
    if abs(value) <= LARGEST:  # compiled code does not compare a constant
        append(out, identity, value)
    else:
        refuse(out, value)


@dual
def append(out: FeatureBuffer, identity: int, value: float) -> None:
    """Append one feature, whose value is finite."""
    n = out.size[0]
    if n < out.ids.size:
        out.ids[n] = identity
        out.values[n] = value
    out.size[0] = n + 1


@not_inlined
def mark_refused(out, value):
    """What `refuse` is in kernels: it writes where the first of these values is, and thereby overflows the buffer."""
    if out.size[0] >> PLACES == 0:
        out.size[0] += (out.size[0] + 1) << PLACES


@in_kernels(mark_refused)
def refuse(out: FeatureBuffer, value: float) -> None:
    """Report a value that is not finite: with an exception, or in compiled code by `mark_refused`."""
    place = int(out.size[0]) + 1
    raise FeatureError(f"emits the value {value} as feature {place}: keep values finite, and within 32-bit floats")


@dual
def emit_curve(out: FeatureBuffer, identity: int, value: float, width: float) -> None:
    """Append two features, with which the policy learns a curve: any function of `value` with a knot every `width`.

    The value lies between two knots. Each has a feature, and the nearer one has more weight, so what is learned is
    continuous: linear between the knots.

    Parameters
    ----------
    out
        The argument `out` of `features` or `action_features`.
    identity
        The id of the first feature.
    value
        What the policy learns a function of.
    width
        How far apart two points of the curve are: between them it is a line.

    Examples
    --------
    >>> out = feature_buffer(2)
    >>> emit_curve(out, feature(0), 7.5, 2.0)  # three quarters of the way from knot 3, at 6.0, to knot 4, at 8.0
    >>> out.values.tolist(), out.ids.tolist() == [mix(feature(0), 3), mix(feature(0), 4)]
    ([0.25, 0.75], True)

    """
    place = value / width
    if abs(place) <= FAR:
        knot = math.floor(place)
        share = place - knot
        append(out, mix(identity, knot), 1.0 - share)
        append(out, mix(identity, knot + 1), share)
    else:
        refuse(out, value)


@dual
def emit_surface(
    out: FeatureBuffer, identity: int, value: float, width: float, other: float, other_width: float
) -> None:
    """Append four features, with which the policy learns any function of two values with knots on a grid.

    Parameters
    ----------
    out
        The argument `out` of `features` or `action_features`.
    identity
        The id of the first feature.
    value
        The first value that the policy learns a function of.
    width
        How far apart two points are in the direction of `value`.
    other
        The second value.
    other_width
        How far apart two points are in the direction of `other`.

    Examples
    --------
    >>> out = feature_buffer(4)
    >>> emit_surface(out, feature(0), 7.5, 2.0, 0.5, 1.0)
    >>> out.values.tolist()
    [0.125, 0.125, 0.375, 0.375]

    """
    place, other_place = value / width, other / other_width
    if abs(place) <= FAR and abs(other_place) <= FAR:
        knot, other_knot = math.floor(place), math.floor(other_place)
        share, rest = place - knot, other_place - other_knot
        near = mix(identity, knot)
        far = mix(identity, knot + 1)
        append(out, mix(near, other_knot), (1.0 - share) * (1.0 - rest))
        append(out, mix(near, other_knot + 1), (1.0 - share) * rest)
        append(out, mix(far, other_knot), share * (1.0 - rest))
        append(out, mix(far, other_knot + 1), share * rest)
    else:
        refuse(out, other if abs(place) <= FAR else value)


@dual
def above_least(values: np.ndarray, legal: np.ndarray) -> None:
    """Turn the values of the legal actions into how much they are above the least of them; in place.

    For `survey`, so that features compare an action with the best of the others.

    Parameters
    ----------
    values
        A value for each action; it is changed.
    legal
        Which actions are legal.

    Examples
    --------
    >>> values = np.array([5.0, 3.0, 1.0])
    >>> above_least(values, np.array([True, True, False]))
    >>> values.tolist()
    [2.0, 0.0, 1.0]

    """
    least = math.inf
    for a in range(len(values)):
        if legal[a]:
            least = min(least, values[a])
    for a in range(len(values)):
        if legal[a]:
            values[a] -= least


@dual
def look(out: ItemBuffer, item: int, role: int = 0) -> None:
    """Add an input item that the state looks at, in a role (this word, the top of the stack, ...).

    Parameters
    ----------
    out
        The argument `out` of `features`.
    item
        The number of the item.
    role
        What the item is to the state; from 0 to `Sizes.roles` - 1.

    Examples
    --------
    >>> out = item_buffer(2)
    >>> look(out, 5); look(out, 6, 1)
    >>> out.items.tolist(), out.roles.tolist()
    ([5, 6], [0, 1])

    """
    n = out.size[0]
    if n < out.items.size:
        out.items[n] = item
        out.roles[n] = role
    out.size[0] = n + 1


@dual
def uniform(rng: np.ndarray) -> float:
    """Draw a number in [0, 1) from the random stream `rng` that a reference's `action` receives.

    Parameters
    ----------
    rng
        The stream that the action is given as its last argument.

    Examples
    --------
    >>> rng = np.array([7]); first = uniform(rng)
    >>> first != uniform(rng)
    True

    """
    rng[0] = mix(int(rng[0]), 1)
    return unit(int(rng[0]))
