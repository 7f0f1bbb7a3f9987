"""Eigenvalues and eigenvectors of a small symmetric matrix: Householder's reduction, then implicit QL steps.

In plain loops, so that the bits of the result depend on no library and on no number of threads.
"""

from __future__ import annotations

import math

import numpy as np

from lols.kernels.dual import dual, not_inlined

MOST_STEPS = 60  # for one eigenvalue; a few are enough
EPSILON = 2.0**-52


@not_inlined
@dual
def decompose(matrix, values, vectors, beside, work):
    """Write the eigenvalues of `matrix`, in no order, and its eigenvectors, which are the rows of `vectors`.

    The matrix is overwritten; `beside` and `work` are working memory of one number for each row.
    """
    size = values.size
    for i in range(size):
        for k in range(size):
            vectors[i, k] = 1.0 if i == k else 0.0
    for i in range(size - 2):
        reflect(matrix, vectors, i, values, work)
    for i in range(size):
        values[i] = matrix[i, i]
        beside[i] = matrix[i, i + 1] if i + 1 < size else 0.0
    for i in range(size):
        for _ in range(MOST_STEPS):
            last = i
            while last < size - 1 and abs(beside[last]) > EPSILON * (abs(values[last]) + abs(values[last + 1])):
                last += 1
            if last == i:
                break
            chase(values, beside, vectors, i, last)


@dual
def reflect(matrix, vectors, i, normal, work):
    """Reflect a symmetric matrix so that row `i` has nothing behind the place next to the diagonal."""
    size, first = normal.size, i + 1
    length = 0.0
    for k in range(first, size):
        normal[k] = matrix[i, k]
        length += normal[k] * normal[k]
    length = math.sqrt(length)
    if length == 0.0:
        return
    normal[first] += length if normal[first] >= 0.0 else -length
    square = 0.0
    for k in range(first, size):
        square += normal[k] * normal[k]
    times = 2.0 / square
    # matrix -> (1 - times n n') matrix (1 - times n n')
    for k in range(i, size):
        work[k] = 0.0
    for row in range(first, size):
        for k in range(i, size):
            work[k] += normal[row] * matrix[row, k]
    along = 0.0
    for k in range(first, size):
        along += work[k] * normal[k]
    for k in range(first, size):
        work[k] = times * (work[k] - 0.5 * times * along * normal[k])
    across = times * work[i]
    for row in range(first, size):
        for k in range(first, size):
            matrix[row, k] -= normal[row] * work[k] + work[row] * normal[k]
        matrix[row, i] -= across * normal[row]
        matrix[i, row] = matrix[row, i]
    for k in range(size):
        work[k] = 0.0
    for row in range(first, size):
        for k in range(size):
            work[k] += normal[row] * vectors[row, k]
    for row in range(first, size):
        for k in range(size):
            vectors[row, k] -= times * normal[row] * work[k]


@dual
def chase(values, beside, vectors, first, last):
    """One QL step on rows `first` to `last` of a tridiagonal matrix, shifted by an estimate of the first eigenvalue."""
    slope = (values[first + 1] - values[first]) / (2.0 * beside[first])
    root = math.sqrt(slope * slope + 1.0)
    g = values[last] - values[first] + beside[first] / (slope + (root if slope >= 0.0 else -root))
    sine, cosine, lost = 1.0, 1.0, 0.0
    for i in range(last - 1, first - 1, -1):
        f, b = sine * beside[i], cosine * beside[i]
        root = math.sqrt(f * f + g * g)
        beside[i + 1] = root
        if root == 0.0:
            values[i + 1] -= lost
            beside[last] = 0.0
            return
        sine, cosine = f / root, g / root
        g = values[i + 1] - lost
        root = (values[i] - g) * sine + 2.0 * cosine * b
        lost = sine * root
        values[i + 1] = g + lost
        g = cosine * root - b
        for k in range(vectors.shape[1]):
            low, high = vectors[i, k], vectors[i + 1, k]
            vectors[i + 1, k] = sine * low + cosine * high
            vectors[i, k] = cosine * low - sine * high
    values[first] -= lost
    beside[first] = g
    beside[last] = 0.0


@dual
def order(values, places):
    """Write the places of numbers, the largest first."""
    for k in range(values.size):
        at = k
        while at > 0 and values[places[at - 1]] < values[k]:
            places[at] = places[at - 1]
            at -= 1
        places[at] = np.int64(k)
