"""The search space of parsing: it keeps the contract, costs add up, keys say what is seen, tricks change nothing."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lols.contract.checks import check_space
from lols.contract.examples import Examples
from lols.contract.features import feature_buffer, item_buffer
from lols.errors import ConfigurationError
from lols.kernels.dual import bind
from lols.tasks.parsing.space import LABEL, LEFT, RIGHT, SHIFT
from lols.tasks.parsing.task import LABELLINGS, ROOTS, ParsingTask
from lols.tasks.parsing.templates import DYNAMIC
from lols.tasks.parsing.treebank import Trees
from lols.tasks.tokens.corpus import corpus_of
from lols.training.trainer import TRICKS, Trainer

TEACHERS = ["optimal", "suboptimal", "bad"]
RELATIONS = ["a", "b", "root"]
SEEN = [f"{p}.word" for p in ("S0", "S1", "S2", "S3", "N0", "N1", "S0l", "S0l2", "S0r", "S0r2", "S1l", "S1r", "N0l")]
SEEN += [f"{p}.relation" for p in ("S0l", "S0l2", "S0r", "S0r2", "S1l", "S1l2", "S1r", "S1r2", "N0l", "N0l2")]
SEEN += [f"{p}.{name}" for p in ("S0", "S1", "N0") for name in ("lefts", "rights", "left-set", "right-set")]
SEEN += ["distance(S0,N0)", "S1.word & S0.word & distance(S1,S0)", "S0[-1].word & N0[+1].word"]

Sentence = tuple[list[str], list[int], list[int]]  # words, heads, relations


def task_of(labelling: str, roots: str, templates: list[str] | None = None) -> ParsingTask:
    templates = SEEN if templates is None else templates
    return ParsingTask(RELATIONS, [0, 1], [0, 1], 2, templates=templates, labelling=labelling, roots=roots)


def examples_of(task: ParsingTask, sentences: list[Sentence], weights: list[float] | None = None) -> Examples:
    heads = np.array([h for _, heads, _ in sentences for h in heads], np.int64)
    relations = np.array([r for _, _, relations in sentences for r in relations], np.int64)
    counted = np.array(weights, np.float64) if weights is not None else None
    return task.examples(corpus_of([words for words, _, _ in sentences]), Trees(heads, relations), counted)


def random_sentence(generator: np.random.Generator, length: int, roots: str, words: int = 9) -> Sentence:
    """Words, and any tree, often no projective one; with any relations, also at the root."""
    order = generator.permutation(length).tolist()
    heads = [-1] * length
    for k in range(1, length):
        if roots == "one" or generator.random() < 0.7:
            heads[order[k]] = order[generator.integers(0, k)]
    drawn = [f"w{k}" for k in generator.integers(0, words, length)]
    return drawn, heads, generator.integers(0, len(RELATIONS), length).tolist()


def legal_actions(task: ParsingTask, x: Any, s: np.ndarray) -> list[int]:
    legal = np.zeros(len(task.actions), np.bool_)
    task.space.actions(x, s, legal)
    return np.flatnonzero(legal).tolist()


def stepped(task: ParsingTask, x: Any, s: np.ndarray, a: int) -> np.ndarray:
    after = s.copy()
    task.space.step(x, after, a)
    return after


# --- the contract -----------------------------------------------------------------------------------------------------


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@pytest.mark.parametrize("teacher", ["optimal", "bad"])  # more of teachers is in test_parsing_oracle
@pytest.mark.parametrize("roots", ROOTS)
@pytest.mark.parametrize("labelling", LABELLINGS)
def test_the_space_keeps_the_contract(labelling: str, roots: str, teacher: str) -> None:
    task = task_of(labelling, roots)
    task = ParsingTask(RELATIONS, [0, 1], [0, 1], 2, labelling=labelling, roots=roots) if teacher == "bad" else task
    heads = [[-1], [1, -1, 1], [1, 3, 1, -1, 3, 4], [-1, 0, 0, 2, 2]]
    sentences = [(list("abcdef")[: len(h)], h, [2 if k < 0 else k % 2 for k in h]) for h in heads]
    assert check_space(task.space, examples_of(task, sentences), task.reference(teacher), rollouts=10) == []


def test_one_set_of_functions_serves_all_settings() -> None:
    tasks = [task_of(labelling, roots) for labelling in LABELLINGS for roots in ROOTS]
    tasks.append(ParsingTask(["x"], [0], [0], 0, columns=["word", "upos"]))
    assert len({bind("Space", t.space.functions()).digest for t in tasks}) == 1


# --- costs, losses and results ----------------------------------------------------------------------------------------


def loss_by_hand(task: ParsingTask, gold: Sentence, weights: list[float], made: tuple[list[int], list[int]]) -> float:
    """The weight of words with a wrong head, or with the right one and a wrong relation; roots need no relation."""
    wrong = 0.0
    for word, weight in enumerate(weights):
        right = made[0][word] == gold[1][word]
        if task.labelling != "none" and made[0][word] >= 0:
            right = right and made[1][word] == gold[2][word]
        wrong += 0.0 if right else weight
    return wrong


def is_projective_tree(heads: list[int]) -> bool:
    """No word below itself, and no arc, nor one from before all words to a root, crosses another."""
    for word in range(len(heads)):
        at, steps = word, 0
        while at >= 0:
            at, steps = heads[at], steps + 1
            if steps > len(heads):
                return False
    arcs = [(min(word, head), max(word, head)) for word, head in enumerate(heads)]
    return not any(a < c < b < d for a, b in arcs for c, d in arcs)


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@pytest.mark.parametrize("roots", ROOTS)
@pytest.mark.parametrize("labelling", LABELLINGS)
@settings(max_examples=25)
@given(st.integers(0, 10**6), st.integers(1, 9))
def test_costs_add_up_to_the_loss_of_a_tree(labelling: str, roots: str, seed: int, length: int) -> None:
    task, generator = task_of(labelling, roots), np.random.default_rng(seed)
    sentences = [random_sentence(generator, size, roots) for size in (length, 1, 2)]
    weights = generator.integers(0, 2, length + 3).astype(np.float64).tolist()
    examples, taken, outputs = examples_of(task, sentences, weights), [], []
    offsets = np.cumsum([0, length, 1, 2])
    for k, gold in enumerate(sentences):
        x, y = examples.example(k)
        s, spent, steps = np.zeros(examples.states[k], np.int32), 0.0, 0
        while choices := legal_actions(task, x, s):
            a = int(generator.choice(choices))
            cost = task.space.cost(x, y, s, a)
            assert cost >= 0
            spent, steps = spent + cost, steps + 1
            task.space.step(x, s, a)
            taken.append(a)
        made = task.space.output(x, s)
        assert steps == task.steps(x) == examples.steps[k]
        assert spent == task.space.loss(x, y, s)
        assert spent == loss_by_hand(task, gold, weights[offsets[k] : offsets[k + 1]], made)
        assert is_projective_tree(made[0])
        assert made[0].count(-1) == 1 if roots == "one" else made[0].count(-1) >= 1
        assert all(relation == 2 for head, relation in zip(*made, strict=True) if head < 0)
        outputs.append(made)
    trees = task.trees(np.array(taken, np.int64), offsets)
    assert trees.heads.tolist() == [h for heads, _ in outputs for h in heads]
    assert trees.relations.tolist() == [r for _, relations in outputs for r in relations]


@pytest.mark.uncompiled
@pytest.mark.parametrize("labelling", LABELLINGS)
def test_sentences_of_one_word(labelling: str) -> None:
    """With one root, the word is shifted and is it; with many, it is reduced to the root."""
    for roots, kinds in [("one", [SHIFT]), ("many", [SHIFT, LEFT] + [LABEL] * (labelling == "second"))]:
        task = task_of(labelling, roots)
        examples = examples_of(task, [(["w"], [-1], [2])])
        x, s, taken = examples.example(0)[0], np.zeros(examples.states[0], np.int32), []
        while choices := legal_actions(task, x, s):
            assert len({task.actions[a][0] for a in choices}) == 1
            taken.append(task.actions[choices[0]][0])
            task.space.step(x, s, choices[0])
        assert taken == kinds and task.steps(x) == len(kinds)
        assert task.space.output(x, s) == ([-1], [2])


@pytest.mark.uncompiled
@pytest.mark.parametrize("roots", ROOTS)
def test_the_head_of_every_action(roots: str) -> None:
    task = task_of("joint", roots)
    examples = examples_of(task, [(list("wwww"), [-1] * 4, [2] * 4)])
    x, s = examples.example(0)[0], np.zeros(examples.states[0], np.int32)
    path = [(SHIFT, 0), (LEFT, 1), (SHIFT, 0), (SHIFT, 0), (RIGHT, 1), (SHIFT, 0)]
    path += [(RIGHT, 0)] if roots == "one" else [(LEFT, 2), (LEFT, 2)]
    for kind, relation in path:
        choices = [a for a in legal_actions(task, x, s) if task.actions[a][:2] == (kind, relation)]
        task.space.step(x, s, choices[0])
    assert not legal_actions(task, x, s)
    assert task.space.output(x, s) == ([1, -1, 1, 1 if roots == "one" else -1], [1, 2, 1, 0 if roots == "one" else 2])


@pytest.mark.thinned(5)
@pytest.mark.parametrize("labelling", LABELLINGS)
@pytest.mark.parametrize("roots", ROOTS)
def test_long_sentences(labelling: str, roots: str) -> None:
    """A thousand words: all on the stack before the first arc, all popped at once, or at random."""
    task, generator = task_of(labelling, roots), np.random.default_rng(1)
    examples = examples_of(task, [random_sentence(generator, 1000, roots)])
    x, y = examples.example(0)
    for order in ("first", "last", "random"):
        s, spent, taken = np.zeros(examples.states[0], np.int32), 0.0, []
        while choices := legal_actions(task, x, s):
            a = {"first": choices[0], "last": choices[-1], "random": int(generator.choice(choices))}[order]
            spent += task.space.cost(x, y, s, a)
            task.space.step(x, s, a)
            taken.append(a)
            if len(taken) % 100 == 1:
                seen_by(task, x, s)
                task.reference("optimal").costs(x, y, s, np.zeros(len(task.actions)))
        assert len(taken) == task.steps(x) and spent == task.space.loss(x, y, s)
        assert task.trees(np.array(taken), np.array([0, 1000])).heads.tolist() == task.space.output(x, s)[0]


# --- keys -------------------------------------------------------------------------------------------------------------


def seen_by(task: ParsingTask, x: Any, s: np.ndarray) -> tuple[Any, ...]:
    """All that a policy sees of a state."""
    sizes = task.space.sizes
    features, looks = feature_buffer(sizes.features), item_buffer(sizes.items)
    task.space.features(x, s, features)
    task.space.items(x, s, looks)
    assert features.size[0] <= sizes.features and looks.size[0] <= sizes.items
    ids = tuple(features.ids[: features.size[0]].tolist())
    items = zip(looks.items[: looks.size[0]].tolist(), looks.roles[: looks.size[0]].tolist(), strict=True)
    return ids, tuple(items), tuple(legal_actions(task, x, s))


def all_states(task: ParsingTask, x: Any, size: int) -> list[np.ndarray]:
    """Every state that any actions lead to."""
    found: dict[bytes, np.ndarray] = {}
    waiting = [np.zeros(size, np.int32)]
    while waiting:
        s = waiting.pop()
        if s.tobytes() not in found:
            found[s.tobytes()] = s
            waiting += [stepped(task, x, s, a) for a in legal_actions(task, x, s)]
    return list(found.values())


def keys_tell_futures(task: ParsingTask, length: int) -> tuple[int, int]:
    """Equal keys: the same is seen now, the same is paid, and keys are equal after the same action, so for ever.

    Gives the number of states and that of different keys.
    """
    generator = np.random.default_rng(3)
    # words are different, so that nothing is seen in two places
    sentences = [random_sentence(generator, length, task.roots) for _ in range(3)]
    examples = examples_of(task, [([f"w{k}" for k in range(length)], *s[1:]) for s in sentences])
    x = examples.example(0)[0]
    truths = [examples.example(k)[1] for k in range(3)]
    states = all_states(task, x, int(examples.states[0]))
    known: dict[int, Any] = {}
    with np.errstate(over="ignore"):
        for s in states:
            legal = legal_actions(task, x, s)
            after = [int(task.space.key(x, stepped(task, x, s, a))) for a in legal]
            costs = [task.space.cost(x, y, s, a) for a in legal for y in truths]
            teachers = [int(task.reference("suboptimal").action(x, y, s)) for y in truths if legal]
            view = seen_by(task, x, s), after, costs, teachers
            assert known.setdefault(int(task.space.key(x, s)), view) == view
    return len(states), len(known)


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@pytest.mark.parametrize("roots", ROOTS)
@pytest.mark.parametrize("labelling", LABELLINGS)
def test_equal_keys_have_equal_futures(labelling: str, roots: str) -> None:
    states, keys = keys_tell_futures(task_of(labelling, roots), 3 if labelling == "second" else 4)
    assert 0 < keys < states


@pytest.mark.uncompiled
@pytest.mark.thinned(2)
@pytest.mark.parametrize("name", DYNAMIC)
def test_keys_know_of_every_template_that_is_taken(name: str) -> None:
    """What a key does not know of cannot be asked for."""
    templates, refused = [], 0
    for place in ["S0", "N0", "S0l", "S0r", "S1l2", "S0[-1]", "N0[-1]", "S0[+1]", "S0l[+1]", "S0r[-1]"]:
        try:
            ParsingTask(RELATIONS, [0], [0], 2, templates=[f"{place}.{name}"])
            templates.append(f"{place}.{name}")
        except ConfigurationError:
            refused += 1
    assert templates
    for labelling, length in (("none", 6), ("joint", 4)):
        keys_tell_futures(task_of(labelling, "one", ["S0.word", *templates]), length)


def what_is_known(task: ParsingTask, path: list[int], length: int) -> tuple[Any, ...]:
    """Stack, front and pending arc after some actions, with all that templates can see of the words there."""
    stack: list[int] = []
    lefts, rights = defaultdict(list), defaultdict(list)  # dependents with their relations, in the order of arcs
    front = pending = 0
    for a in path:
        kind, relation, _ = task.actions[a]
        if kind == SHIFT:
            stack.append(front)
            front += 1
        elif kind != LABEL and task.labelling == "second":
            pending = kind
        else:
            arc, pending, word = pending or kind, 0, stack.pop()
            if arc == RIGHT:
                rights[stack[-1]].append((word, relation))
            elif front < length:
                lefts[front].append((word, relation))

    def facts(word: int) -> tuple[Any, ...]:
        sides = (lefts[word], rights[word])
        return word, *((side[-2:], min(len(side), 4), frozenset(r for _, r in side)) for side in sides)

    return front, pending, *map(facts, [*stack, *([front] if front < length else [])])


@pytest.mark.uncompiled
@pytest.mark.thinned(5)
@pytest.mark.parametrize("roots", ROOTS)
@pytest.mark.parametrize("labelling", LABELLINGS)
def test_keys_are_equal_where_the_same_is_known_and_nowhere_else(labelling: str, roots: str) -> None:
    task, generator = task_of(labelling, roots), np.random.default_rng(7)
    examples = examples_of(task, [(list("abcdefgh"), [-1] * 8, [2] * 8)])
    x = examples.example(0)[0]
    by_key: dict[int, Any] = {}
    by_facts: dict[str, int] = {}
    met = 0
    with np.errstate(over="ignore"):
        for _ in range(150):
            s, path = np.zeros(examples.states[0], np.int32), []
            while choices := legal_actions(task, x, s):
                facts, key = repr(what_is_known(task, path, 8)), int(task.space.key(x, s))
                met += key in by_key
                assert by_key.setdefault(key, facts) == facts
                assert by_facts.setdefault(facts, key) == key
                path.append(int(generator.choice(choices)))
                task.space.step(x, s, path[-1])
    assert met > 300 and len(by_key) > 300


# --- training ---------------------------------------------------------------------------------------------------------

PLAIN = ["S0..1.word", "N0..1.word", "S0.word & N0.word", "S0l.relation", "S0.word & S0.right-set", "distance(S0,N0)"]


def treebank(roots: str, count: int) -> list[Sentence]:
    """Projective trees that can be learned from words, somewhat: heads are those that random actions give."""
    generator, task = np.random.default_rng(11), task_of("joint", roots)
    made = []
    for _ in range(count):
        words, heads, relations = random_sentence(generator, int(generator.integers(1, 7)), roots, words=4)
        examples = examples_of(task, [(words, heads, relations)])
        x, s = examples.example(0)[0], np.zeros(examples.states[0], np.int32)
        while choices := legal_actions(task, x, s):
            task.space.step(x, s, int(generator.choice(choices)))
        made.append((words, *task.space.output(x, s)))
    return made


def weights_of(task: ParsingTask, examples: Examples, teacher: str, tricks: dict[str, bool], **options: Any) -> Any:
    trainer = Trainer(task.space, task.reference(teacher), passes=2, batch_size=4, tricks=tricks, seed=3, **options)
    model = trainer.fit(examples, progress=False)
    return model.policy.stack.tobytes(), model.report["progressive_loss"]


@pytest.mark.uncompiled
@pytest.mark.parametrize(("labelling", "roots"), [("joint", "one"), ("second", "many")])
def test_compiled_and_plain_python_learn_the_same(labelling: str, roots: str) -> None:
    task = task_of(labelling, roots, PLAIN)
    examples = examples_of(task, treebank(roots, 6))
    made = [weights_of(task, examples, "optimal", {}, compiled=compiled) for compiled in (True, False)]
    assert made[0] == made[1] and np.frombuffer(made[0][0], np.float32).any()


@pytest.mark.thinned(5)
@pytest.mark.parametrize("roots", ROOTS)
@pytest.mark.parametrize("labelling", LABELLINGS)
@pytest.mark.parametrize(
    ("teacher", "roll_out"), [("optimal", "mixture"), ("optimal", "reference"), ("bad", "mixture")]
)
def test_parsing_needs_no_trick(labelling: str, roots: str, teacher: str, roll_out: str) -> None:
    """Least of all costs in closed form: real roll-outs of the oracle give the same weights."""
    task = task_of(labelling, roots, PLAIN)
    examples = examples_of(task, treebank(roots, 12))
    plain = weights_of(task, examples, teacher, dict.fromkeys(TRICKS, False), roll_out=roll_out)
    for trick in (None, *TRICKS):
        assert weights_of(task, examples, teacher, {trick: False} if trick else {}, roll_out=roll_out) == plain
