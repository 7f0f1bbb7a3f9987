"""Theorem 4: longest snakes, the losses built on them, and how long descent takes, by independent brute force."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.datasets.small_spaces import depth_space
from lols.errors import ConfigurationError
from lols.reproduction import theory_part
from lols.reproduction.theory import snakes
from lols.reproduction.theory.runs import train_lols
from lols.reproduction.theory.snakes import (
    STORED,
    descend,
    hamming_losses,
    is_snake,
    remember,
    snake,
    snake_losses,
)

pytestmark = pytest.mark.slow  # the reproduction of the paper, and long runs

LONGEST = {1: 1, 2: 2, 3: 4, 4: 7, 5: 13, 6: 26, 7: 50}  # edges: https://oeis.org/A099155
UPDATES = {3: 4, 4: 7, 5: 13, 6: 26, 7: 50}


# --- snakes -----------------------------------------------------------------------------------------------------------


def all_snakes(steps: int) -> Iterator[tuple[int, ...]]:
    """All snakes from corner 0 that cannot go on, as changed steps; steps are numbered in the order of their first use.

    Any other snake is one of these with the cube turned or mirrored.
    """
    blocked = np.zeros(1 << steps, np.int64)  # how many corners of the path, the head aside, are here or next to here
    changes: list[int] = []

    def block(corner: int, by: int) -> None:
        blocked[corner] += by
        for step in range(steps):
            blocked[corner ^ (1 << step)] += by

    def go(head: int, used: int) -> Iterator[tuple[int, ...]]:
        ways = [step for step in range(min(used + 1, steps)) if not blocked[head ^ (1 << step)]]
        if not ways:
            yield tuple(changes)
        block(head, 1)
        for step in ways:
            changes.append(step)
            yield from go(head ^ (1 << step), max(used, step + 1))
            changes.pop()
        block(head, -1)

    yield from go(0, 0)


def corners(changes: list[int]) -> list[int]:
    """The policies that a sequence of changed steps leads through."""
    path = [0]
    for step in changes:
        path.append(path[-1] ^ (1 << step))
    return path


def induced_path(path: list[int], steps: int) -> bool:
    """The definition in the paper's proof: a path, within which ends have one neighbour and all others two."""
    on_it = set(path)
    neighbours = [sum(corner ^ (1 << step) in on_it for step in range(steps)) for corner in path]
    joined = all(a ^ b in {1 << step for step in range(steps)} for a, b in pairwise(path))
    return joined and len(on_it) == len(path) and neighbours == [1] + [2] * (len(path) - 2) + [1]


def paths_from(path: list[int], steps: int) -> Iterator[list[int]]:
    """All snakes that begin so and cannot go on, by trying every next corner."""
    longer = [[*path, path[-1] ^ (1 << step)] for step in range(steps)]
    longer = [one for one in longer if induced_path(one, steps)]
    if not longer:
        yield path
    for one in longer:
        yield from paths_from(one, steps)


def renamed(path: list[int]) -> tuple[int, ...]:
    """A path as changed steps, numbered in the order of their first use."""
    names: dict[int, int] = {}
    return tuple(names.setdefault(a ^ b, len(names)) for a, b in pairwise(path))


@pytest.mark.parametrize("steps", [2, 3, 4])
def test_all_snakes_are_found_each_once(steps: int) -> None:
    found = list(all_snakes(steps))
    assert len(set(found)) == len(found)
    assert set(found) == {renamed(path) for path in paths_from([0], steps)}


@pytest.mark.parametrize("steps", sorted(LONGEST))
def test_the_longest_snakes_are_as_long_as_is_known(steps: int) -> None:
    path = snake(steps)
    assert len(path) - 1 == LONGEST[steps]
    assert steps == 1 or induced_path(path, steps)


def test_the_search_agrees_with_the_literature_up_to_five_steps() -> None:
    found = ["".join(map(str, max(all_snakes(steps), key=len))) for steps in range(1, 6)]
    assert found == [STORED[steps] for steps in range(1, 6)]


@given(st.integers(2, 6), st.lists(st.integers(0, 5), min_size=2, max_size=12))
def test_a_path_is_told_from_a_snake_as_the_definition_says(steps: int, changes: list[int]) -> None:
    path = corners([change % steps for change in changes])
    assert is_snake(path) == induced_path(path, steps)


def test_a_stored_path_that_is_none_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STORED, 6, STORED[6][:-1] + STORED[6][-2])
    with pytest.raises(AssertionError, match="T = 6 comes next to itself"):
        snake(6)


def test_what_is_not_known_is_said() -> None:
    with pytest.raises(ConfigurationError, match="take T from 1 to 7"):
        snake(8)


# --- descent ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("steps", "updates"), UPDATES.items())
def test_descent_follows_the_snake_to_its_end(steps: int, updates: int) -> None:
    path = snake(steps)
    losses = snake_losses(path, steps)
    assert descend(losses, path[0]) == path and len(path) - 1 == updates
    for here, after in pairwise(path):  # whichever improvement an algorithm prefers: there is one
        better = [here ^ (1 << step) for step in range(steps) if losses[here ^ (1 << step)] < losses[here]]
        assert better == [after]
    assert all(losses[path[-1] ^ (1 << step)] > losses[path[-1]] for step in range(steps))


def test_the_example_in_the_papers_proof() -> None:
    path = [0b000, 0b001, 0b011, 0b111, 0b110]
    assert snake(3) == path == descend(snake_losses(path, 3), 0b000)


@pytest.mark.parametrize("steps", [3, 4, 5])
def test_rounds_of_algorithm_1_in_the_space_itself_make_the_same_moves(steps: int) -> None:
    path = snake(steps)
    losses = snake_losses(path, steps)
    space, policy, walked = depth_space(losses), path[0], [path[0]]
    while True:
        exact = space.exact(space.policies[[policy]])
        costs = [(exact.visits[0][:, np.newaxis] * exact.worths[0])[space.layer == t].sum(axis=0) for t in range(steps)]
        chosen = sum(int(np.argmin(cost)) << t for t, cost in enumerate(costs))
        if chosen == policy:
            break
        policy = chosen
        walked.append(policy)
    assert walked == path == descend(losses, path[0], together=True)


def test_changes_together_may_go_round_in_circles() -> None:
    losses = np.array([1.0, 0.0, 0.0, 1.0])  # from 00, both changes are good, and together they are not
    with pytest.raises(ConfigurationError, match="take together=False"):
        descend(losses, 0, together=True)
    assert len(descend(losses, 0)) == 2


@pytest.mark.parametrize("steps", UPDATES)
def test_hamming_loss_takes_one_update_for_each_wrong_decision(steps: int) -> None:
    target = 0b1010101 & ((1 << steps) - 1)
    losses = hamming_losses(target, steps)
    for start in range(1 << steps):
        wrong = (start ^ target).bit_count()
        assert len(descend(losses, start)) - 1 == wrong <= steps
        assert len(descend(losses, start, together=True)) - 1 == (wrong > 0)


def test_growth_is_exponential() -> None:
    found = theory_part._snakes()
    base, scale = found["fit"]["base"], found["fit"]["scale"]
    assert {row["steps"]: row["updates"] for row in found["rows"]} == UPDATES
    assert 1.85 < base < 1.95 and 0.5 < scale < 0.65
    assert [scale * base**steps for steps in UPDATES] == pytest.approx(list(UPDATES.values()), rel=0.06)


# --- a learner that remembers -----------------------------------------------------------------------------------------


def remembered_round_by_round(losses: np.ndarray, start: int, most: int) -> list[tuple[int, int]]:
    steps = losses.size.bit_length() - 1
    costs, policy, lived = np.zeros((steps, 2)), start, [(start, 0)]
    for _ in range(most):
        if all(losses[policy ^ (1 << t)] >= losses[policy] for t in range(steps)):
            break
        for t in range(steps):
            costs[t] += [losses[policy & ~(1 << t)], losses[policy | (1 << t)]]
        lived[-1] = (policy, lived[-1][1] + 1)
        policy = sum(int(costs[t, 1] < costs[t, 0]) << t for t in range(steps))
        if policy != lived[-1][0]:
            lived.append((policy, 0))
    return lived


@pytest.mark.parametrize("steps", [2, 3, 4])
def test_rounds_are_counted_as_if_they_were_made(steps: int) -> None:
    losses = snake_losses(snake(steps), steps)
    whole = (losses * len(snake(steps))).round()  # sums of these are exact
    assert remember(losses, 0) == remembered_round_by_round(whole, 0, 5000)


@pytest.mark.parametrize("steps", UPDATES)
def test_it_comes_to_the_same_policies_ever_more_slowly(steps: int) -> None:
    lived = remember(snake_losses(snake(steps), steps), 0)
    assert [policy for policy, _ in lived] == snake(steps)
    rounds = [rounds for _, rounds in lived[:-1]]
    assert rounds == sorted(rounds) and sum(rounds) > 2**steps


@pytest.mark.parametrize("seed", range(4))
def test_the_librarys_training_takes_as_many_rounds_as_computed(seed: int) -> None:
    # Losses without ties, so that rounding decides nothing. Ridge regression of the costs, learned roll-outs.
    path, losses = snake(3), np.ones(8)
    losses[path] = np.sort(np.random.default_rng(seed).choice(np.arange(1, 900), len(path), replace=False))[::-1] / 1000
    counts = train_lols(depth_space(losses), 60, 0.0, seed=seed, compiled=False)
    left = 60
    for policy, rounds in remember(losses, 0):
        expected = left if policy == path[-1] else min(rounds, left)
        assert counts[policy] == expected
        left -= expected


def test_snakes_module_stores_what_it_says() -> None:
    assert set(snakes.STORED) == set(LONGEST)
    assert all(len(snakes.STORED[steps]) == LONGEST[steps] for steps in snakes.STORED)
