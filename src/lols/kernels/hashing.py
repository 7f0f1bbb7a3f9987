"""Counter-based hashing: one function, `mix`, behind feature ids, random streams and shuffles.

This is the plain Python version; `backend` has the compiled one. Everything is a signed 64-bit integer,
because Numba converts mixtures of signed and unsigned integers to floating point.
"""

from __future__ import annotations

MOST = 6  # values that are hashed together
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15
MULTIPLY_1 = 0xBF58476D1CE4E5B9
MULTIPLY_2 = 0x94D049BB133111EB
SPREAD = 0xD1342543DE82EF95


def mix(a: int, b: int) -> int:
    """Hash two integers into one signed 64-bit integer (splitmix64's finaliser over a linear combination).

    Parameters
    ----------
    a
        An integer, such as a hash so far.
    b
        An integer that is to change it.

    Examples
    --------
    >>> mix(1, 2) != mix(2, 1)
    True
    >>> -(2**63) <= mix(-5, 7) < 2**63
    True

    """
    z = (int(a) * SPREAD + int(b) * GOLDEN + GOLDEN) & MASK
    z = ((z ^ (z >> 30)) * MULTIPLY_1) & MASK
    z = ((z ^ (z >> 27)) * MULTIPLY_2) & MASK
    z ^= z >> 31
    return z - (1 << 64) if z >> 63 else z


def chain(identity: int, values: tuple[int, ...]) -> int:
    """Hash a number and up to six others, one after the other.

    >>> chain(7, (1, 2)) == mix(mix(7, 1), 2)
    True
    """
    for value in values:
        identity = mix(identity, value)
    return identity


def add_product(total: int, factor: int, value: int) -> int:
    """A total plus a factor times a value, as a signed 64-bit integer.

    With random odd factors, one for each position, such sums hash several values (multilinear hashing), several times
    faster than repeated calls of `mix`.

    >>> add_product(1, 2, 3), add_product(2**63 - 1, 1, 1) == -(2**63)
    (7, True)
    """
    z = (int(total) + int(factor) * int(value)) & MASK
    return z - (1 << 64) if z >> 63 else z


def unit(key: int) -> float:
    """Turn a hash into a number in [0, 1).

    >>> 0.0 <= unit(mix(0, 0)) < 1.0
    True
    """
    return float((int(key) & MASK) >> 11) * (1.0 / (1 << 53))


def spread(key: int, shift: int) -> int:
    """The top 64 - `shift` bits of a key times the golden ratio (Fibonacci hashing), for slots of tables.

    >>> [spread(k, 62) for k in (1, 2, 3)]
    [2, 0, 3]
    """
    return ((int(key) * GOLDEN) & MASK) >> int(shift)
