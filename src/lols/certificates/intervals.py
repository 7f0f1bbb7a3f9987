"""Bootstrap intervals. Whole examples are resampled, because the decisions of an example are not independent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lols.kernels.hashing import mix

RESAMPLES = 1000
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A mean per example, and its 95 % interval."""

    value: float
    low: float
    high: float

    @property
    def positive(self) -> bool:
        """Whether the interval lies above 0."""
        return self.low > 0.0


def estimates(columns: Sequence[np.ndarray], seed: int, resamples: int = RESAMPLES) -> list[Estimate]:
    """The means of columns that have one value per example, with bootstrap intervals.

    The ends of an interval are percentiles of the means of `resamples` samples with replacement; all columns are
    resampled together.

    >>> estimates([np.array([0.0, 1.0] * 50), np.ones(100)], seed=0)
    [Estimate(value=0.5, low=0.4, high=0.59), Estimate(value=1.0, low=1.0, high=1.0)]
    """
    values = np.stack(columns, axis=1).astype(np.float64)
    count = values.shape[0]
    generator = np.random.Generator(np.random.Philox(key=mix(seed, 0xB007) & ((1 << 64) - 1)))
    means = np.empty((resamples, values.shape[1]))
    for k in range(resamples):
        times = np.bincount(generator.integers(0, count, count), minlength=count)
        means[k] = times @ values / count
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    mean = values.mean(axis=0)
    low, high = np.minimum(low, mean), np.maximum(high, mean)  # can fail by rounding, or with few resamples
    return [Estimate(*row) for row in zip(mean.tolist(), low.tolist(), high.tolist(), strict=True)]
