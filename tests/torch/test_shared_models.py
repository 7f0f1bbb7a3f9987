"""Threads that share a neural model are told what one thread is told."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from tests.torch.sharing import asked_by_threads
from tests.torch.small_networks import UNSEEN, make_policy, train
from tests.torch.test_pretrained import TAGS, TREES, encoder, needs_transformers  # noqa: F401

SMALL: dict[str, Any] = {"policy": "neural", "device": "cpu", "width": 8, "layers": 1, "passes": 2, "rate": 0.01}
THREADS = 4
WORDS = ("the", "dog", "cat", "sun", "sees", "barks")
SENTENCES = [["the", n, v] for n in WORDS[1:4] for v in WORDS[4:]] * 4
INPUTS = [[[WORDS[(a * k + b) % 6] for k in range(1 + (a + b) % 7)] for b in range(1 + a % 3)] for a in range(12)]


def network_of(estimator: Any) -> Any:
    return estimator._fitted.policy.network


def check(ask: Callable[[Any], Any], inputs: Any, network: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare what threads are told with what one is told.

    Every thread has encoded its own sentences before any of them is scored: a memory in common would be the last one's.
    """
    wanted = [ask(given) for given in inputs]
    assert len({repr(each) for each in wanted}) > 2
    encode, encoded = network.encode, threading.Barrier(THREADS)

    def slowly(examples: Any) -> Any:
        made = encode(examples)
        encoded.wait(30.0)
        return made

    with monkeypatch.context() as patched:
        patched.setattr(network, "encode", slowly)
        for told in asked_by_threads(ask, inputs, THREADS):
            assert told == wanted


@pytest.fixture(scope="module")
def tagger() -> lols.Tagger:
    return lols.Tagger(**SMALL).fit(SENTENCES, TAGS).calibrate_with(SENTENCES, TAGS)


@pytest.fixture(scope="module")
def parser() -> lols.Parser:
    return lols.Parser(**SMALL).fit(SENTENCES, TREES)


@pytest.mark.parametrize(
    "ask",
    [
        lambda tagger, given: tagger.predict(given),
        lambda tagger, given: repr(tagger.predict(given, confidence=True)),
        lambda tagger, given: repr(tagger.predict_costs(given)),
        lambda tagger, given: repr(tagger.predict_kbest(given, 2)),
    ],
    ids=["tags", "confidences", "costs", "the best ones"],
)
def test_a_tagger(ask: Any, tagger: lols.Tagger, monkeypatch: pytest.MonkeyPatch) -> None:
    check(lambda given: ask(tagger, given), INPUTS, network_of(tagger), monkeypatch)


@pytest.mark.parametrize("beam", [1, 2])
def test_a_parser(parser: lols.Parser, beam: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parser, "beam", beam)
    check(parser.predict, INPUTS, network_of(parser), monkeypatch)


@pytest.mark.parametrize("compiled", [False, True])
def test_a_network_of_ones_own(compiled: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    model = train(make_policy(), passes=2)
    model.compiled = compiled
    inputs = [UNSEEN[k : k + 1 + k % 3] for k in range(8)]
    check(model.predict, inputs, model.policy.network, monkeypatch)  # type: ignore[attr-defined]


def test_a_policy_remembers_nothing_and_what_begins_a_search_does() -> None:
    from lols.contract.examples import Examples

    model = train(make_policy(), passes=1)
    policy: Any = model.policy
    examples = Examples(model.space, UNSEEN, truth=False)
    network, before = policy.network, policy.network.encoded
    begun = policy.begin(examples, np.arange(3))
    assert policy.memory is None and begun.memory is not None and begun.network is network
    assert begun.begin(examples, np.array([1])) is begun and network.encoded == before + 1
    assert begun.begin(examples, np.array([3])) is not begun and network.encoded == before + 2


def test_a_parser_encodes_each_sentence_once(parser: lols.Parser, monkeypatch: pytest.MonkeyPatch) -> None:
    network = network_of(parser)
    encode, sizes = network.encode, []
    monkeypatch.setattr(network, "encode", lambda batch: (sizes.append(len(batch)), encode(batch))[1])
    for beam in (1, 2):
        monkeypatch.setattr(parser, "beam", beam)
        parser.predict(SENTENCES[:5])
    assert sizes == [5, 5]


@needs_transformers
def test_a_tagger_with_an_encoder(encoder: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    tagger = lols.Tagger(**SMALL, encoder=str(encoder)).fit(SENTENCES, TAGS)
    check(lambda given: repr(tagger.predict_costs(given)), INPUTS[:5], network_of(tagger), monkeypatch)
