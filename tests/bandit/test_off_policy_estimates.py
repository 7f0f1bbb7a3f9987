"""Off-policy estimates from weights and losses, against their formulas."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.bandit.off_policy_estimates import summarised
from lols.errors import LolsError


def test_a_round_with_much_of_the_weight_is_named() -> None:
    heavy = summarised(np.array([50.0] + [1.0] * 400), np.full(401, 0.5), np.full(401, 0.5), 0, 0.95)
    assert heavy.warning is not None and "one round has 11% of all weight" in heavy.warning


@given(st.lists(st.tuples(st.floats(0, 50), st.floats(0, 1), st.floats(-5, 5)), min_size=1, max_size=30))
def test_estimates_against_their_formulas(rounds: list[tuple[float, float, float]]) -> None:
    w, seen, r = np.array(rounds).T
    if not w.sum() > 0 or not w @ w > 0:
        with pytest.raises(LolsError, match="none of"):
            summarised(w * 0, seen, r, 0, 0.95)
        return
    made = summarised(w, seen, r, 5, 0.9)
    assert made.ips.value == pytest.approx(sum(a * b for a, b in zip(w, seen, strict=True)) / len(rounds))
    assert made.snips.value == pytest.approx(sum(a * b for a, b in zip(w, seen, strict=True)) / sum(w))
    assert made.logged.value == pytest.approx(seen.mean()) and made.rounds == len(rounds) and made.left_out == 5
    ends = sorted((float(r.mean()), made.ips.value))
    assert ends[0] - 1e-9 <= made.dr.value <= ends[1] + 1e-9
    assert made.difference.value == pytest.approx(made.dr.value - made.logged.value)
    for one in (made.ips, made.snips, made.dr, made.logged):
        assert 0 <= one.low <= one.high <= 1
    scaled = summarised(w * 4, seen, r, 5, 0.9)
    assert made.snips[:5] == pytest.approx(scaled.snips[:5]) and 4 * made.ips.value == pytest.approx(scaled.ips.value)
    for one, wider in zip(made[:5], summarised(w, seen, r, 5, 0.99)[:5], strict=True):
        assert wider.low <= one.low + 1e-12 and wider.high >= one.high - 1e-12
