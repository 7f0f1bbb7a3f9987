"""The cheapest completions and their costs, against brute force over all legal sequences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lols
from lols.contract.checks import check_space
from lols.kernels.kernel import kernel
from lols.tasks.tagging.span_oracle import completions, span_step, span_step_cost
from lols.tasks.tagging.spans import Automaton, automaton, span_marks
from tests.tasks.tagging.span_twin import WITH_AUTOMATON, convert, labels_of, legal_sequences, spans_of_legal


def price(gold: set[Any], found: set[Any]) -> float:
    """What the loss `f1` charges: false positives and false negatives."""
    return 0.5 * len(found - gold) + 1.5 * len(gold - found)


def check_completions(machine: Automaton, labels: list[str], gold: tuple[int, ...], loss: str) -> int:
    """Walk through all legal sequences: paid plus `cost_to_go` is the least true loss of all that may come.

    Gives the number of legal sequences.
    """
    numbers, n, states = np.array(gold, np.int64), len(gold), len(machine.next)
    offsets = np.array([0, n])
    cost_to_go = completions(numbers, offsets, machine, loss)
    assert cost_to_go.shape == (n + 1, states + 1) and cost_to_go.dtype == np.float32
    begins, ends = span_marks(numbers, offsets, machine)
    gold_spans = spans_of_legal([labels[a] for a in gold])
    seen = 0

    def walk(prefix: tuple[int, ...], q: int, matching: int, paid: float) -> float:
        nonlocal seen
        i = len(prefix)
        if i == n:
            if not machine.can_end[q]:
                best = np.inf
            elif loss == "hamming":
                best = float(sum(a != b for a, b in zip(prefix, gold)))
            else:
                best = price(gold_spans, spans_of_legal([labels[a] for a in prefix]))
            seen += bool(machine.can_end[q])
            assert not machine.can_end[q] or paid == best
        else:
            best = np.inf
            for a in np.flatnonzero(machine.next[q] >= 0).tolist():
                if loss == "hamming":
                    after, bit, cost = int(machine.next[q, a]), 0, float(a != gold[i])
                else:
                    after, bit = span_step(begins, ends, i, q, matching, a, machine.next, machine.opens, machine.types)
                    cost = span_step_cost(begins, ends, i, q, matching, a, machine.opens, machine.closes, machine.types)
                assert cost >= 0 and (after > 0 or not bit)
                best = min(best, walk((*prefix, a), after, bit, paid + cost))
        assert paid + cost_to_go[i, states if matching else q] == best, (gold, prefix)
        return best

    assert walk((), 0, 0, 0.0) == 0.0
    return seen


@pytest.mark.thinned(2)
@pytest.mark.parametrize("loss", ["hamming", "f1"])
@pytest.mark.parametrize("scheme", WITH_AUTOMATON)
def test_completions_equal_brute_force(scheme: str, loss: str) -> None:
    """Every gold sequence of up to three words, sampled ones of four to six; all legal sequences for each."""
    labels = labels_of(scheme, 2)
    machine = automaton(scheme, labels)
    rng = np.random.default_rng(7)
    seen = 0
    for n in range(7):
        golds = list(legal_sequences(machine, n))
        if n > 3:
            golds = [golds[j] for j in rng.choice(len(golds), {4: 100, 5: 40, 6: 20}[n], replace=False)]
        for gold in golds:
            seen += check_completions(machine, labels, gold, loss)
    assert seen > 50_000


@pytest.mark.uncompiled
@pytest.mark.parametrize("loss", ["hamming", "f1"])
@pytest.mark.parametrize("scheme", WITH_AUTOMATON)
def test_completions_of_short_sentences(scheme: str, loss: str) -> None:
    labels = labels_of(scheme, 2)
    machine = automaton(scheme, labels)
    for n in range(3):
        for gold in legal_sequences(machine, n):
            check_completions(machine, labels, gold, loss)


@pytest.mark.uncompiled
@given(st.data(), st.sampled_from(WITH_AUTOMATON), st.sampled_from(["hamming", "f1"]))
def test_a_corpus_is_its_sentences(data: st.DataObject, scheme: str, loss: str) -> None:
    """Rows of a corpus are those of its sentences, one after another; illegal gold spans are those that are read."""
    labels = labels_of(scheme, 2)
    machine = automaton(scheme, labels)
    sentences = data.draw(st.lists(st.lists(st.sampled_from(range(len(labels))), max_size=6), min_size=1, max_size=4))
    numbers = np.array([a for sentence in sentences for a in sentence], np.int64)
    offsets = np.cumsum([0, *map(len, sentences)])
    cost_to_go = completions(numbers, offsets, machine, loss)
    assert len(cost_to_go) == len(numbers) + len(sentences)
    for k, sentence in enumerate(sentences):
        alone = np.array(sentence, np.int64)
        if loss == "f1":
            mended = convert([labels[a] for a in sentence], scheme, scheme)
            alone = np.array([labels.index(label) for label in mended], np.int64)
        rows = cost_to_go[offsets[k] + k : offsets[k + 1] + k + 1]
        assert np.array_equal(rows, completions(alone, np.array([0, len(alone)]), machine, loss))


# --- the oracle in a search space -------------------------------------------------------------------------------------


def _span_space(machine: Automaton) -> tuple[lols.SearchSpace, lols.Reference]:
    """A tagger whose state is: position, automaton's state, labels. What was paid is found by replay."""
    states = len(machine.next)

    def actions(x, s, legal):
        i = s[0]
        if i < len(x.words):
            for a in range(len(legal)):
                after = x.next[s[1], a]
                legal[a] = after >= 0 and (i < len(x.words) - 1 or x.can_end[after])

    def step(x, s, a):
        s[2 + s[0]] = a
        s[1] = x.next[s[1], a]
        s[0] += 1

    def features(x, s, out):
        lols.emit(out, lols.feature(0, x.words[s[0]]))
        lols.emit(out, lols.feature(1, s[1]))

    def replay(x, y, s):
        q, matching, paid = 0, 0, 0.0
        for i in range(s[0]):
            a = s[2 + i]
            paid += span_step_cost(y.begins, y.ends, i, q, matching, a, x.opens, x.closes, x.types)
            q, matching = span_step(y.begins, y.ends, i, q, matching, a, x.next, x.opens, x.types)
        return q, matching, paid

    def loss(x, y, s):
        return replay(x, y, s)[2]

    def costs(x, y, s, out):
        q, matching, _ = replay(x, y, s)
        i = s[0]
        for a in range(len(out)):
            if x.next[q, a] >= 0:
                after, bit = span_step(y.begins, y.ends, i, q, matching, a, x.next, x.opens, x.types)
                column = states if bit else after
                cost = span_step_cost(y.begins, y.ends, i, q, matching, a, x.opens, x.closes, x.types)
                out[a] = cost + y.cost_to_go[(i + 1) * (states + 1) + column]

    def encode(pair):
        words, gold = pair
        numbers, offsets = np.array(gold, np.int64), np.array([0, len(gold)])
        begins, ends = span_marks(numbers, offsets, machine)
        cost_to_go = np.nan_to_num(completions(numbers, offsets, machine, "f1"), posinf=1e6).ravel()
        return lols.Example({"words": words}, {"begins": begins, "ends": ends, "cost_to_go": cost_to_go})

    space = lols.SearchSpace(
        start=lambda x, s: None,
        actions=actions,
        step=step,
        features=features,
        loss=loss,
        output=lambda x, s: s[2:].tolist(),
        encode=encode,
        sizes=lols.Sizes(
            state=lambda x: 2 + len(x.words),
            actions=machine.next.shape[1],
            features=2,
            steps=lambda x: len(x.words),
        ),
        settings=machine._asdict(),
    )
    return space, lols.Reference(costs=costs)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["bio", "bilou"])
def test_the_oracle_is_a_teacher(scheme: str) -> None:
    """`check_space` compares the closed form with rolling out; training compiles the functions into its kernels."""
    labels = labels_of(scheme, 2)
    machine = automaton(scheme, labels)
    space, teacher = _span_space(machine)
    rng = np.random.default_rng(3)
    golds = [gold for n in (1, 3, 4) for gold in legal_sequences(machine, n)]
    data = [(list(golds[j]), list(golds[j])) for j in rng.choice(len(golds), 60)]
    assert check_space(space, data[:10], teacher) == []
    model = lols.train(space, data, teacher, passes=10, seed=1)
    assert model.evaluate(data) < 0.2
    assert model.reference_losses(data, teacher).max() == 0.0


@kernel
def _pay(begins, ends, sequence, following, opens, closes, types):
    q, matching, paid = 0, 0, 0.0
    for i in range(len(sequence)):
        paid += span_step_cost(begins, ends, i, q, matching, sequence[i], opens, closes, types)
        q, matching = span_step(begins, ends, i, q, matching, sequence[i], following, opens, types)
    return paid


@pytest.mark.uncompiled
@pytest.mark.parametrize("scheme", WITH_AUTOMATON)
def test_costs_add_up_in_compiled_code(scheme: str) -> None:
    """Along every legal sequence of three words, against every gold sequence."""
    labels = labels_of(scheme, 2)
    machine = automaton(scheme, labels)
    sequences = list(legal_sequences(machine, 3))
    spans = [spans_of_legal([labels[a] for a in sequence]) for sequence in sequences]
    arrays = [np.array(sequence) for sequence in sequences]
    for gold, gold_spans in list(zip(arrays, spans))[:: 1 + len(arrays) // 40]:
        begins, ends = span_marks(gold, np.array([0, 3]), machine)
        for sequence, found in zip(arrays, spans):
            paid = _pay(begins, ends, sequence, machine.next, machine.opens, machine.closes, machine.types)
            assert paid == price(gold_spans, found)
