"""Quantiles of Student's t distribution."""

from __future__ import annotations

import math
from statistics import NormalDist

MANY = 1e5  # degrees of freedom from which an expansion is exact to the last digits
TINY = 1e-300


def t_quantile(freedom: float, share: float) -> float:
    """The value that a share of Student's t distribution lies below.

    >>> round(t_quantile(2, 0.975), 6), t_quantile(9, 0.5), round(t_quantile(1e9, 0.975), 6)
    (4.302653, 0.0, 1.959964)
    """
    if share == 0.5:
        return 0.0
    if share < 0.5:
        return -t_quantile(freedom, 1.0 - share)
    if freedom >= MANY:
        z = NormalDist().inv_cdf(share)
        return z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
    low, high = 0.0, 1.0
    while _tail(freedom, high) > 1.0 - share and high < 1e300:
        low, high = high, 2.0 * high
    for _ in range(200):
        middle = (low + high) / 2.0
        if middle in (low, high):
            break
        low, high = (middle, high) if _tail(freedom, middle) > 1.0 - share else (low, middle)
    return (low + high) / 2.0


def _tail(freedom: float, t: float) -> float:
    """The share above t, for t from 0 on: half the incomplete beta function."""
    x = freedom / (freedom + t * t)
    return _incomplete_beta(freedom / 2.0, 0.5, x) / 2.0


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised incomplete beta function, by its continued fraction on the side where it converges fast."""
    if x <= 0.0 or x >= 1.0:
        return float(x >= 1.0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1.0) / (a + b + 2.0):
        return 1.0 - front * _fraction(b, a, 1.0 - x) / b
    return front * _fraction(a, b, x) / a


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function, by the method of Lentz."""
    c, d = 1.0, 1.0 / (1.0 - (a + b) * x / (a + 1.0) or TINY)
    total = d
    for m in range(1, 10_000):
        even = m * (b - m) * x / ((a + 2 * m - 1.0) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1.0))
        for term in (even, odd):
            d = 1.0 / (1.0 + term * d or TINY)
            c = 1.0 + term / c or TINY
            change = c * d
            total *= change
        if abs(change - 1.0) < 1e-16:
            break
    return total
