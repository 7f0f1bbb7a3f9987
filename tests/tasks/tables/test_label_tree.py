"""Classification by a label tree: every state of random trees by hand, teachers, and training without any trick."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from lols.contract.checks import check_space
from lols.contract.features import item_buffer
from lols.contract.space import Reference
from lols.kernels.dual import bind
from lols.tasks.tables.space import make_examples, references
from tests.tasks.tables.label_tree_worlds import (
    COSTS,
    TEACHERS,
    TREES,
    World,
    bare_rows,
    teacher,
    world_of,
    worlds,
)
from tests.tasks.tables.test_tree_of_labels import leaves

# --- every state, by hand ---------------------------------------------------------------------------------------------


@dataclass
class Place:
    """A state, what the tree as lists has there (a node, or a label's number), and what it cost to come here."""

    state: np.ndarray
    part: Any
    spent: float


def legal_actions(world: World, x: Any, s: np.ndarray) -> list[int]:
    legal = np.zeros(world.tree.arity, np.bool_)
    world.space.actions(x, s, legal)
    return np.flatnonzero(legal).tolist()


def places(world: World, number: int) -> Iterator[Place]:
    """All states of an example, from the root down."""
    x, y = world.examples.example(number)
    state = np.zeros(2, np.int32)
    world.space.start(x, state)
    waiting = [Place(state, world.tree.nested(), 0.0)]
    while waiting:
        place = waiting.pop()
        yield place
        for a in legal_actions(world, x, place.state):
            below = place.state.copy()
            world.space.step(x, below, a)
            price = world.space.cost(x, y, place.state, a)
            assert price >= 0.0
            waiting.append(Place(below, place.part[a], place.spent + price))


def cheapest(world: World, number: int, part: Any) -> float:
    """The least cost of any leaf below."""
    return min(world.costs[number, world.tree.leaf_of[label]] for label in leaves(part))


@pytest.mark.uncompiled
@given(worlds())
def test_states_are_nodes_and_costs_add_up_to_the_cost_of_the_leaf(world: World) -> None:
    for number in range(len(world.examples)):
        x, y = world.examples.example(number)
        ends, keys = [], set()
        for place in places(world, number):
            keys.add(world.space.key(x, place.state))
            if isinstance(place.part, list):
                assert legal_actions(world, x, place.state) == list(range(len(place.part)))
                continue
            leaf = world.tree.leaf_of[place.part]
            assert legal_actions(world, x, place.state) == []
            assert world.space.output(x, place.state) == leaf
            assert world.space.loss(x, y, place.state) == world.costs[number, leaf]
            assert abs(place.spent - world.costs[number, leaf]) <= 1e-9
            ends.append(place.part)
        assert sorted(ends) == list(range(world.tree.labels))
        assert len(keys) == world.tree.children.shape[0] + world.tree.labels


@pytest.mark.uncompiled
@given(worlds())
def test_every_node_looks_at_the_row_in_a_role_of_its_own(world: World) -> None:
    x, roles = world.examples.example(0)[0], []
    for place in places(world, 0):
        if isinstance(place.part, list):
            out = item_buffer(2)
            world.space.items(x, place.state, out)
            assert out.size[0] == world.space.sizes.items == 1 and out.items[0] == 0
            roles.append(int(out.roles[0]))
    assert sorted(roles) == list(range(world.space.sizes.roles))


# --- teachers ---------------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@given(worlds())
def test_the_optimal_teacher_knows_the_cheapest_leaf_below_every_child(world: World) -> None:
    optimal, bad = teacher("optimal"), teacher("bad")
    for number in range(len(world.examples)):
        x, y = world.examples.example(number)
        for place in places(world, number):
            if not isinstance(place.part, list):
                continue
            best = np.array([cheapest(world, number, child) for child in place.part])
            costs = np.full(world.tree.arity, np.nan)
            optimal.costs(x, y, place.state, costs)
            known = costs[: best.size]
            assert np.isnan(costs[best.size :]).all()
            assert np.abs((known - known[0]) - (best - best[0])).max() <= 1e-9  # the same, up to a constant
            assert optimal.action(x, y, place.state) == int(np.argmin(best))
            assert bad.action(x, y, place.state) == 0


def follow(world: World, number: int, reference: Reference, stream: int = 0) -> int:
    """The leaf that a teacher comes to from the root."""
    x, y = world.examples.example(number)
    state, rng = np.zeros(2, np.int32), np.array([stream])
    while legal_actions(world, x, state):
        draw = (rng,) if reference.random else ()
        world.space.step(x, state, reference.action(x, y, state, *draw))
    return world.space.output(x, state)


@pytest.mark.uncompiled
@given(worlds())
def test_the_optimal_teacher_comes_to_the_cheapest_leaf_and_the_bad_one_to_the_first(world: World) -> None:
    for number in range(len(world.examples)):
        assert world.costs[number, follow(world, number, teacher("optimal"))] == world.costs[number].min()
        assert follow(world, number, teacher("bad")) == 0
    assert teacher("optimal").needs_truth and not teacher("bad").needs_truth
    assert references("best") is None


@pytest.mark.uncompiled
@pytest.mark.parametrize("skill", [0.0, 0.25, 0.8, 1.0])
@pytest.mark.parametrize("kind", COSTS)
def test_the_suboptimal_teacher_is_right_as_often_as_it_is_skilled(kind: str, skill: float) -> None:
    suboptimal, optimal, right = teacher("suboptimal"), teacher("optimal"), []
    for name in ("flat", "halves", "wide"):
        world = world_of(TREES[name], kind, 3, skill=skill)
        rng = np.array([17])
        for number in range(len(world.examples)):
            x, y = world.examples.example(number)
            for place in places(world, number):
                best = optimal.action(x, y, place.state) if isinstance(place.part, list) else 0
                for _ in range(30 if best else 0):
                    a = suboptimal.action(x, y, place.state, rng)
                    assert a in (0, best)
                    right.append(a == best)
            if skill in (0.0, 1.0):
                like = teacher("optimal" if skill else "bad")
                assert follow(world, number, suboptimal, stream=number) == follow(world, number, like)
    assert len(right) >= 300
    assert abs(np.mean(right) - skill) <= 4 * np.sqrt(skill * (1 - skill) / len(right))


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@pytest.mark.parametrize("name", TEACHERS)
@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("shape", TREES)
def test_label_trees_keep_the_contract(shape: str, kind: str, name: str) -> None:
    world = world_of(TREES[shape], kind, 1)
    assert check_space(world.space, world.examples, teacher(name), rollouts=10) == []


@pytest.mark.uncompiled
def test_one_set_of_functions_serves_all_trees_and_costs() -> None:
    made = [world_of(tree, kind, 0) for tree in TREES.values() for kind in COSTS]
    assert len({bind("Space", world.space.functions()).digest for world in made}) == 1
    kinds = {
        tuple(np.asarray(part).dtype.str + str(np.ndim(part)) for side in world.examples.example(0) for part in side)
        for world in made
    }
    assert len(kinds) == 1  # else numba would compile once more for each


@pytest.mark.uncompiled
def test_a_row_without_truth_can_be_predicted_and_an_object_cannot_be_encoded() -> None:
    world = world_of(TREES["halves"], "labels", 0)
    assert not make_examples(world.space, bare_rows(3)).has_truth
    with pytest.raises(TypeError, match=r"filled by columns: use lols\.CostSensitiveClassifier"):
        world.space.encode({})
