"""Floating-point numbers read as integers of the same order, to find the least one without branches."""

from __future__ import annotations

import numpy as np

from lols.kernels.dual import dual

SIGN_32, MOST_32 = np.int32(31), np.int32(2147483647)
SIGN_64, MOST_64 = np.int64(63), np.int64(9223372036854775807)


@dual
def ordered(bits, sign, most):
    """The bits of a number as an integer that compares as the number does; also the way back, from integer to bits.

    `sign` is the position of the sign bit, and `most` the largest integer of that width. Of -0.0 and 0.0, which are
    equal as numbers, the first one is less.

    >>> [int(ordered(np.float32(x).view(np.int32), SIGN_32, MOST_32)) < 0 for x in (-1.5, 2.0)]
    [True, False]
    """
    return bits ^ ((bits >> sign) & most)
