"""The teachers of parsing: the dynamic oracle against all completions of all states, and the others by hand."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest

from lols.contract.checks import check_space
from lols.contract.examples import Examples
from lols.engine.calls import reference_costs
from lols.kernels.dual import bind
from lols.kernels.kernel import Kernel
from lols.kernels.layout import row
from lols.tasks.parsing.space import DEPTH, HEAD, LABEL, LEFT, NEXT, PENDING, RIGHT, SHIFT, STACK, cell
from lols.tasks.parsing.task import LABELLINGS, ROOTS, ParsingTask
from lols.tasks.parsing.treebank import Trees
from lols.tasks.tokens.corpus import corpus_of

TEACHERS = ["optimal", "suboptimal", "bad"]
RELATIONS = ["a", "b", "root"]
SETTINGS = pytest.mark.parametrize(("labelling", "roots"), [(each, r) for each in LABELLINGS for r in ROOTS])
COUNTS = {"one": [0, 1, 2, 7, 30, 143, 728], "many": [1, 1, 3, 12, 55, 273, 1428]}  # of projective trees

Heads = tuple[int, ...]


# --- all trees --------------------------------------------------------------------------------------------------------


def below(low: int, high: int, head: int) -> Iterator[Heads]:
    """All ways in which the words of a span hang from a head outside, as projective trees side by side."""
    if low == high:
        yield ()
    for middle in range(low + 1, high + 1):
        for top in range(low, middle):
            for left, right in product(below(low, top, top), below(top + 1, middle, top)):
                for rest in below(middle, high, head):
                    yield (*left, head, *right, *rest)


@cache
def all_trees(length: int, roots: str) -> list[Heads]:
    return [t for t in below(0, length, -1) if roots == "many" or t.count(-1) == 1]


def task_of(labelling: str, roots: str) -> ParsingTask:
    return ParsingTask(RELATIONS, [0, 1], [0, 1], 2, templates=["S0.word"], labelling=labelling, roots=roots)


def examples_of(
    task: ParsingTask, trees: list[Heads], relations: np.ndarray | None = None, weights: np.ndarray | None = None
) -> Examples:
    """Sentences with these trees; without relations, all are the first, and roots have their own."""
    heads = np.array([h for t in trees for h in t], np.int64)
    given = np.zeros(heads.size, np.int64) if relations is None else relations.reshape(-1)
    counted = np.ones(heads.size) if weights is None else weights.reshape(-1)
    words = corpus_of([["w"] * len(t) for t in trees])
    return task.examples(words, Trees(heads, np.where(heads < 0, 2, given)), counted)


# --- all states -------------------------------------------------------------------------------------------------------


def legal_actions(task: ParsingTask, x: Any, s: np.ndarray) -> list[int]:
    legal = np.zeros(len(task.actions), np.bool_)
    task.space.actions(x, s, legal)
    return np.flatnonzero(legal).tolist()


def view(s: np.ndarray) -> tuple[tuple[int, ...], int, int]:
    """Stack, front of the buffer, and the kind of arc that waits for its label."""
    return tuple(int(s[cell(k, STACK)]) for k in range(s[DEPTH])), int(s[NEXT]), int(s[PENDING])


def all_states(task: ParsingTask, x: Any, size: int, *, by_labels: bool = False) -> list[np.ndarray]:
    """Every state that any actions lead to; those that differ in labels only count once, unless these matter."""
    found: dict[Any, np.ndarray] = {}
    waiting = [np.zeros(size, np.int32)]
    while waiting:
        s = waiting.pop()
        heads = tuple(int(s[cell(k, HEAD)]) for k in range(x.length))
        name = s.tobytes() if by_labels else (view(s), heads)
        if name not in found:
            found[name] = s
            for a in legal_actions(task, x, s):
                after = s.copy()
                task.space.step(x, after, a)
                waiting.append(after)
    return list(found.values())


# --- the least losses, over all completions ---------------------------------------------------------------------------


class Completions:
    """The least loss of what is still to come, by memoised search; for many truths of one length at once."""

    def __init__(self, task: ParsingTask, heads: np.ndarray, relations: np.ndarray, weights: np.ndarray):
        self.task, self.heads, self.relations, self.weights = task, heads, relations, weights
        self.length, self.many = heads.shape[1], task.roots == "many"
        self.known: dict[Any, np.ndarray] = {}

    def arc(self, word: int, head: int, relation: int | None) -> np.ndarray:
        """What a finished arc costs; a relation that is None will be right."""
        right = self.heads[:, word] == head
        if relation is not None and head >= 0 and self.task.labelling != "none":
            right &= self.relations[:, word] == relation
        return np.where(right, 0.0, self.weights[:, word])

    def after(self, stack: tuple[int, ...], front: int, pending: int, a: int) -> np.ndarray | None:
        """The least loss to come if an action is taken; None if it cannot be taken."""
        kind, relation, _ = self.task.actions[a]
        at_root = front == self.length
        if (kind == LABEL) != (pending > 0):
            return None
        if kind == SHIFT:
            return None if at_root else self.best((*stack, front), front + 1, 0)
        arc = pending or kind
        if len(stack) < (2 if arc == RIGHT else 1) or (arc == LEFT and at_root and not self.many):
            return None
        if kind == LEFT and self.task.labelling == "joint" and at_root != (relation == self.task.root):
            return None
        if kind != LABEL and self.task.labelling == "second":
            return self.best(stack, front, kind)
        head = stack[-2] if arc == RIGHT else (-1 if at_root else front)
        return self.arc(stack[-1], head, relation) + self.best(stack[:-1], front, 0)

    def best(self, stack: tuple[int, ...], front: int, pending: int) -> np.ndarray:
        name = stack, front, pending
        if name not in self.known:
            ways = [self.after(stack, front, pending, a) for a in range(len(self.task.actions))]
            possible = [way for way in ways if way is not None]
            if possible:
                self.known[name] = np.minimum.reduce(possible)
            elif self.many:
                self.known[name] = np.zeros(len(self.heads))
            else:
                self.known[name] = self.arc(stack[0], -1, None)
        return self.known[name]


def _claims(teacher, xs, ys, states, out):
    for t in range(out.shape[0]):
        x, y = row(xs, t), row(ys, t)
        for k in range(out.shape[1]):
            reference_costs(teacher, x, y, states[k], out[t, k])


claims = Kernel(_claims)


def compare(
    task: ParsingTask,
    trees: list[Heads],
    relations: np.ndarray,
    weights: np.ndarray,
    *,
    by_labels: bool = False,
    compiled: bool = True,
) -> int:
    """At every state and for every truth, costs in closed form are the least losses, less the least one there."""
    examples = examples_of(task, trees, relations, weights)
    x, heads, compared = examples.example(0)[0], np.array(trees, np.int64), 0
    truth = Completions(task, heads, np.where(heads < 0, 2, relations), weights)
    every = all_states(task, x, int(examples.states[0]), by_labels=by_labels)
    teacher = bind("Reference", task.reference("optimal").functions())
    at_once = 1 + 5_000_000 // (len(trees) * len(task.actions))
    for first in range(0, len(every), at_once):
        states = np.array(every[first : first + at_once])
        made = np.full((len(trees), len(states), len(task.actions)), np.nan)
        claims(compiled, teacher, examples.x, examples.y, states, made)
        for k, s in enumerate(states):
            legal, place = legal_actions(task, x, s), view(s)
            ways = [truth.after(*place, a) for a in range(len(task.actions))]
            assert legal == [a for a, way in enumerate(ways) if way is not None]
            if legal:
                least = np.array([ways[a] for a in legal]).T
                wrong = (made[:, k, legal] != least - least.min(axis=1, keepdims=True)).any(axis=1)
                for t in np.flatnonzero(wrong)[:1]:
                    case = f"{task.roots} {task.labelling}: {place}, heads {trees[t]}, weights {weights[t]}"
                    raise AssertionError(f"{case}: {made[t, k, legal]} is not {least[t]}, up to a constant")
                compared += len(trees)
    return compared


def truths(length: int, roots: str, draws: int) -> tuple[list[Heads], np.ndarray, np.ndarray]:
    """All trees, each with relations and weights at random: 0 or 1, in the first round 1 for all words."""
    generator = np.random.default_rng(length)
    trees = [t for _ in range(draws) for t in all_trees(length, roots)]
    weights = generator.integers(0, 2, (len(trees), length)).astype(np.float64)
    weights[: len(trees) // draws] = 1.0
    return trees, generator.integers(0, 2, (len(trees), length)), weights


def all_truths(length: int, roots: str) -> tuple[list[Heads], np.ndarray, np.ndarray]:
    """All trees with all weights of 0 and 1; relations at random, or all of them where that is not much."""
    trees, subsets = all_trees(length, roots), list(product([0.0, 1.0], repeat=length))
    generator = np.random.default_rng(length)
    drawn = [tuple(generator.integers(0, 2, length).tolist())]
    made = [(t, r, w) for t in trees for w in subsets for r in (subsets if length < 4 else drawn)]
    return [t for t, _, _ in made], np.array([r for _, r, _ in made], np.int64), np.array([w for _, _, w in made])


# --- the dynamic oracle -----------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@SETTINGS
def test_costs_of_up_to_three_words_whatever_the_weights_relations_and_labels_so_far(
    labelling: str, roots: str
) -> None:
    for length in range(1, 4):
        trees, relations, weights = all_truths(length, roots)
        some = slice(None, None, 1 if length < 3 else 5)
        compare(task_of(labelling, roots), trees[some], relations[some], weights[some], by_labels=True, compiled=False)


@pytest.mark.thinned(5)
@SETTINGS
def test_costs_of_up_to_five_words_whatever_the_weights(labelling: str, roots: str) -> None:
    compared = sum(compare(task_of(labelling, roots), *all_truths(length, roots)) for length in range(1, 6))
    assert compared > 1_000_000


@pytest.mark.parametrize("roots", ROOTS)
@pytest.mark.parametrize(
    "labelling", ["second", *(pytest.param(each, marks=pytest.mark.slow) for each in ("none", "joint"))]
)
def test_costs_of_six_words(labelling: str, roots: str) -> None:
    """Every tree, at every state that any actions lead to."""
    assert compare(task_of(labelling, roots), *truths(6, roots, 3)) > 3_000_000


@SETTINGS
def test_costs_are_losses_for_any_weights(labelling: str, roots: str) -> None:
    trees, relations, _ = truths(5, roots, 2)
    weights = np.random.default_rng(1).integers(0, 9, relations.shape) / 2
    assert compare(task_of(labelling, roots), trees, relations, weights) > 80_000


@pytest.mark.uncompiled
@pytest.mark.parametrize("roots", ROOTS)
@pytest.mark.parametrize("length", range(1, 7))
def test_actions_build_all_projective_trees_and_no_others(length: int, roots: str) -> None:
    task = task_of("none", roots)
    examples = examples_of(task, all_trees(length, roots)[:1])
    x = examples.example(0)[0]
    ends = [s for s in all_states(task, x, int(examples.states[0])) if not legal_actions(task, x, s)]
    made = [tuple(task.space.output(x, s)[0]) for s in ends]
    assert len(made) == len(set(made)) == COUNTS[roots][length] and set(made) == set(all_trees(length, roots))


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@SETTINGS
def test_following_the_oracle_builds_every_tree(labelling: str, roots: str) -> None:
    """Whichever of its free actions is taken; on all trees of up to five words, and on long ones."""
    task, generator = task_of(labelling, roots), np.random.default_rng(2)
    trees = [t for length in range(1, 6) for t in all_trees(length, roots)]
    trees += [tuple(task_walk(task, 40, generator)) for _ in range(3)]
    relations = generator.integers(0, 2, sum(map(len, trees)))
    examples = examples_of(task, trees, relations)
    for k in range(len(examples)):
        (x, y), s, steps = examples.example(k), np.zeros(examples.states[k], np.int32), 0
        while choices := legal_actions(task, x, s):
            costs = np.full(len(task.actions), np.nan)
            task.reference("optimal").costs(x, y, s, costs)
            free = [a for a in choices if costs[a] == 0]
            task.space.step(x, s, int(generator.choice(free)))
            steps += 1
        assert task.space.loss(x, y, s) == 0 and steps == task.steps(x)
        assert tuple(task.space.output(x, s)[0]) == trees[k]


def task_walk(task: ParsingTask, length: int, generator: np.random.Generator) -> list[int]:
    """A tree from actions at random."""
    examples = examples_of(task, [(-1,) * length])
    x, s = examples.example(0)[0], np.zeros(examples.states[0], np.int32)
    while choices := legal_actions(task, x, s):
        task.space.step(x, s, int(generator.choice(choices)))
    return task.space.output(x, s)[0]


# --- all teachers -----------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@pytest.mark.parametrize("teacher", TEACHERS)
@SETTINGS
def test_teachers_keep_the_contract(labelling: str, roots: str, teacher: str) -> None:
    task, generator = task_of(labelling, roots), np.random.default_rng(4)
    trees = [(-1,), *all_trees(4, roots)[::9], tuple(task_walk(task, 9, generator))]
    examples = examples_of(task, trees, generator.integers(0, 2, sum(map(len, trees))))
    assert check_space(task.space, examples, task.reference(teacher), rollouts=4) == []


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@pytest.mark.parametrize("teacher", TEACHERS)
@SETTINGS
def test_teachers_are_legal_everywhere(labelling: str, roots: str, teacher: str) -> None:
    """Even if a tree has relations that no action gives, or the root's within."""
    task = ParsingTask([*RELATIONS, "c"], [0, 1], [0], 2, templates=["S0.word"], labelling=labelling, roots=roots)
    reference, generator = task.reference(teacher), np.random.default_rng(6)
    for tree in all_trees(4, roots)[::2]:
        truth = Trees(np.array(tree, np.int64), generator.integers(0, 4, 4))
        examples = task.examples(corpus_of([["w"] * 4]), truth)
        x, y = examples.example(0)
        for s in all_states(task, x, int(examples.states[0])):
            legal = legal_actions(task, x, s)
            if legal and reference.action is not None:
                assert reference.action(x, y, s) in legal
            elif legal:
                costs = np.full(len(task.actions), np.nan)
                reference.costs(x, y, s, costs)
                assert np.isfinite(costs[legal]).all() and (costs[legal] >= 0).all()


# States, as the actions that lead there: S, R, L; then costs of S, R, L (- where illegal), and what the others do.
@pytest.mark.uncompiled
@pytest.mark.parametrize(
    ("roots", "heads", "path", "costs", "suboptimal", "bad"),
    [
        ("one", (1, -1, 1), "", "0 - -", "S", "S"),
        ("one", (1, -1, 1), "S", "2 - 0", "L", "S"),  # Shift loses an arc and the root
        ("one", (1, -1, 1), "SL", "0 - -", "S", "S"),
        ("one", (1, -1, 1), "SLS", "0 - 2", "S", "S"),  # the front's head is the top
        ("one", (1, -1, 1), "SLSS", "- 0 -", "R", "R"),
        ("one", (-1, 0, 0), "SS", "1 0 1", "S", "S"),  # here the suboptimal teacher is wrong
        ("one", (-1, 0, 0), "SSS", "- 0 -", "R", "R"),
        ("one", (-1, 0, 1), "SS", "0 1 2", "S", "S"),
        ("one", (2, 2, -1), "S", "0 - 1", "S", "S"),
        ("one", (2, 2, -1), "SS", "3 1 0", "L", "S"),
        ("one", (2, 2, -1), "SSL", "2 - 0", "L", "S"),
        ("one", (2, 0, -1), "SS", "2 0 1", "S", "S"),
        ("one", (-1, 0, 1, 0), "SSR", "0 - 2", "S", "S"),  # the front's head has gone
        ("one", (-1, 0, 1, 0), "SSRS", "1 0 0", "S", "S"),  # as has the top's: either arc is wrong
        ("one", (1, -1, 1, 1), "SS", "0 2 2", "S", "S"),  # the root lies above another word already
        ("one", (-1,), "", "0 - -", "S", "S"),
        ("many", (-1,), "S", "- - 0", "L", "L"),
        ("many", (-1, -1), "S", "0 - 1", "S", "S"),
        ("many", (-1, -1), "SS", "- 1 0", "R", "R"),
        ("many", (-1, -1), "SSL", "- - 0", "L", "L"),
        ("many", (-1, 0), "SS", "- 0 1", "R", "R"),
        ("many", (1, -1), "S", "1 - 0", "L", "S"),
        ("many", (1, -1, -1), "SS", "0 1 1", "S", "S"),
    ],
)
def test_teachers_by_hand(roots: str, heads: Heads, path: str, costs: str, suboptimal: str, bad: str) -> None:
    task = task_of("none", roots)
    examples = examples_of(task, [heads])
    (x, y), s = examples.example(0), np.zeros(examples.states[0], np.int32)
    for action in path:
        task.space.step(x, s, "SRL".index(action))
    made = np.full(3, np.nan)
    task.reference("optimal").costs(x, y, s, made)
    legal = legal_actions(task, x, s)
    assert " ".join(f"{made[a]:g}" if a in legal else "-" for a in range(3)) == costs
    assert "SRL"[task.reference("suboptimal").action(x, y, s)] == suboptimal
    assert "SRL"[task.reference("bad").action(x, y, s)] == bad


@pytest.mark.uncompiled
def test_teachers_of_relations_by_hand() -> None:
    for labelling, path, costs, suboptimal, bad in [
        ("joint", [0], [2, None, None, 1, 0], 4, 0),  # Shift, then to the right with a or b, to the left with a or b
        ("joint", [0, 3, 0], [0, None, None, 2, 2], 0, 0),
        ("joint", [0, 3, 0, 0], [None, 0, 1, None, None], 1, 1),
        ("second", [0], [2, None, 0, None, None, None], 2, 0),
        ("second", [0, 2], [None, None, None, 1, 0, 1], 4, 3),
        ("second", [0, 2, 3, 0, 0], [None, 0, None, None, None, None], 1, 1),
        ("second", [0, 2, 3, 0, 0, 1], [None, None, None, 0, 1, 1], 3, 3),
        ("second", [0, 0, 1], [None, None, None, 0, 0, 0], 5, 3),  # a wrong arc: no label makes it worse
    ]:
        task = task_of(labelling, "one")
        examples = examples_of(task, [(1, -1, 1)], np.array([1, 2, 0]))
        (x, y), s = examples.example(0), np.zeros(examples.states[0], np.int32)
        for a in path:
            task.space.step(x, s, a)
        made = np.full(len(task.actions), np.nan)
        task.reference("optimal").costs(x, y, s, made)
        legal = legal_actions(task, x, s)
        assert [made[a] if a in legal else None for a in range(len(made))] == costs
        assert task.reference("suboptimal").action(x, y, s) == suboptimal
        assert task.reference("bad").action(x, y, s) == bad


@pytest.mark.uncompiled
def test_words_that_do_not_count_cost_nothing() -> None:
    task = task_of("none", "one")
    examples = examples_of(task, [(1, -1, 1)], weights=np.array([0.0, 1.0, 0.0]))
    (x, y), s, costs = examples.example(0), np.zeros(examples.states[0], np.int32), np.zeros(3)
    task.space.step(x, s, SHIFT)
    task.reference("optimal").costs(x, y, s, costs)
    assert (costs[SHIFT], costs[LEFT]) == (1, 0)
