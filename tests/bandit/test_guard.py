"""The guard: it trusts the learned policy only when that is better with confidence."""

from __future__ import annotations

import numpy as np
import pytest

from lols.bandit import MemoryLog
from lols.bandit.guard import Guard
from lols.bandit.log import Decision
from lols.errors import ConfigurationError
from tests.bandit.small_bandit import bandit, run, same


def test_the_guard_trusts_what_is_better_and_only_that() -> None:
    rng = np.random.default_rng(1)
    for gap, trusted in ((0.1, True), (0.0, False), (-0.1, False)):
        guard = Guard()
        for _ in range(3000):
            guard.saw(float(rng.random() < 0.5), by_reference=True)
            guard.saw(float(rng.random() < 0.5 - gap), by_reference=False)
        assert guard.trusted == trusted
    guard = Guard(memory=200)
    for mean in (0.2, 0.8):  # better than the reference, then worse
        for _ in range(1000):
            guard.saw(0.5, by_reference=True)
            guard.saw(mean, by_reference=False)
        assert guard.trusted == (mean < 0.5)


def test_no_false_trust_in_one_that_is_no_better() -> None:
    rng, wrong = np.random.default_rng(2), 0
    for _ in range(40):
        guard = Guard(memory=1e6)
        for _ in range(600):
            guard.saw(float(rng.random() < 0.5), by_reference=True)
            guard.saw(float(rng.random() < 0.5), by_reference=False)
            if guard.trusted:
                wrong += 1
                break
    assert wrong <= 3


def test_with_a_guard_the_reference_is_shown_until_the_policy_is_better() -> None:
    log = MemoryLog()
    made = bandit(guard=True, epsilon=0.4, estimator="mtr", log=log)
    run(made, 2500)
    assert made.report()["trusted"]
    shown = [entry for entry in log.replay() if isinstance(entry, Decision) and not entry.explored]
    early, late = shown[:40], shown[-400:]
    assert sum(d.guarded for d in early) > 0.6 * len(early)
    assert sum(d.guarded for d in late) < 0.4 * len(late)
    assert all(d.by_reference for d in shown if d.guarded)
    same(made, bandit(guard=True, epsilon=0.4, estimator="mtr", log=log))


def test_guards_are_checked() -> None:
    with pytest.raises(ConfigurationError, match="confidence is 1"):
        Guard(confidence=1.0)
    with pytest.raises(ConfigurationError, match="memory is 3"):
        Guard(memory=3)
