"""Quantiles of Student's t distribution, beside SciPy's."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import stdtrit

from lols.training.t_distribution import t_quantile


@pytest.mark.parametrize("freedom", [1.0, 1.5, 2.0, 3.7, 10.0, 29.0, 150.3, 5_000.0, 99_999.0, 100_000.0, 1e7, 1e12])
def test_quantiles_are_scipys(freedom: float) -> None:
    for share in (0.001, 0.025, 0.2, 0.5, 0.6, 0.9, 0.95, 0.975, 0.995, 0.9995):
        assert t_quantile(freedom, share) == pytest.approx(float(stdtrit(freedom, share)), rel=1e-9, abs=1e-12)
    found = [t_quantile(freedom, share) for share in np.linspace(0.01, 0.99, 99)]
    assert (np.diff(found) > 0).all()
