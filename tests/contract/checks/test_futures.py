"""Checks of keys: states with equal keys have equal futures."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import lols
from lols import Reference
from lols.contract.checks import check_space
from tests.contract.checks.spaces import DATA, GOOD, RICH, TEACHER, assert_found, not_twice

# --- keys -------------------------------------------------------------------------------------------------------------


def test_a_key_that_merges_states_with_other_features_is_found():
    assert_found(replace(GOOD, key=lambda x, s: s[0]), "key", "two states", "features differ")


def test_a_key_that_merges_states_with_other_actions_is_found():
    blind = replace(GOOD, actions=not_twice, features=lambda x, s, out: None, key=lambda x, s: s[0])
    assert_found(blind, "key", "two states", "legal actions differ")


def blind_pairs(**changes):
    """A space that looks at no history, and whose cost is that of repeated tags."""

    def cost(x, y, s, a):
        return 1.0 if s[0] > 0 and a == s[1] else 0.0

    def loss(x, y, s):
        total = 0.0
        for i in range(1, len(x.words)):
            total += s[3 + i] == s[2 + i]
        return total

    def features(x, s, out):
        lols.emit(out, x.words[s[0]])

    return replace(GOOD, cost=cost, loss=loss, features=features, **changes)


def test_a_key_that_merges_states_with_other_remaining_costs_is_found():
    assert check_space(blind_pairs(key=lambda x, s: s[0] * 10 + s[1] + 1), DATA) == []
    assert_found(blind_pairs(key=lambda x, s: s[0]), "key", "two states", "remaining cost differs", "same actions")


def test_without_costs_a_key_must_tell_final_losses_apart():
    space = replace(blind_pairs(key=lambda x, s: s[0] * 10 + s[1] + 1), cost=None)
    assert_found(space, "key", "two states", "final loss differs")


def test_a_key_must_know_what_the_reference_looks_at():
    # the same actions cost the same from states with one key, but this teacher takes others
    space = replace(GOOD, features=lambda x, s, out: lols.emit(out, x.words[s[0]]), key=lambda x, s: s[0])
    assert check_space(space, DATA, TEACHER) == []
    reference = Reference(action=lambda x, y, s: max(s[1], 0))
    assert_found(space, "key", "remaining cost differs", "the reference finishes", reference=reference)


def test_no_more_than_twenty_findings_are_reported():
    def fail(x, s, out):
        raise RuntimeError

    broken = replace(RICH, features=fail, items=fail, key=lambda x, s: s[-1], loss=lambda x, y, s: np.nan)
    findings = check_space(broken, DATA, Reference(action=lambda x, y, s: 9, free=lambda x, y, s, out: None))
    assert 5 <= len(findings) <= 20
    assert all("\n" not in str(f) for f in findings)
