"""CRFsuite on the tagging data sets: a linear-chain CRF by averaged perceptron or by L-BFGS.

``python -m benchmarks.crfsuite wsj [--algorithm lbfgs]`` prints what it reaches. Needs ``pip install python-crfsuite``.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pycrfsuite

from benchmarks.corpora import CORPORA, TaggedSentence
from benchmarks.spans import span_scores

__all__ = ["ALGORITHMS", "Result", "chunk_features", "crfsuite", "tag_features"]

# CRFsuite's names, and the options of each beside the number of iterations.
ALGORITHMS: dict[str, dict[str, float]] = {"ap": {}, "lbfgs": {"c1": 0.0, "c2": 1.0}}
_BEFORE, _AFTER = "<s>", "</s>"


class Result(NamedTuple):
    """What one run reached; seconds are wall time, and CRFsuite uses one core.

    Neither ``train_seconds`` nor ``tokens_per_second_predict`` counts the extraction of features in Python:
    ``tokens_per_second_extract`` says what that takes on the test part. The model's start-up is not counted either.
    """

    accuracy: float
    predictions: list[list[str]]
    train_seconds: float
    tokens_per_second_predict: float
    tokens_per_second_extract: float


def tag_features(sentence: TaggedSentence) -> list[list[str]]:
    """Fill 13 templates at each word: its spelling, affixes and shape, and the words within two of it.

    CRFsuite adds pairs of neighbouring tags itself.

    >>> tag_features(TaggedSentence(["The", "F-16s"], ["DT", "NNS"]))[1]  # doctest: +NORMALIZE_WHITESPACE
    ['w=F-16s', 'l=f-16s', 'p1=F', 'p2=F-', 'p3=F-1', 's1=s', 's2=6s', 's3=16s', 'h=X-0x',
     'w-1=The', 'w+1=</s>', 'w-2=<s>', 'w+2=</s>']
    """
    words = [_BEFORE, _BEFORE, *sentence.words, _AFTER, _AFTER]
    return [
        [
            f"w={word}",
            f"l={word.lower()}",
            f"p1={word[:1]}",
            f"p2={word[:2]}",
            f"p3={word[:3]}",
            f"s1={word[-1:]}",
            f"s2={word[-2:]}",
            f"s3={word[-3:]}",
            f"h={_shape(word)}",
            f"w-1={words[i - 1]}",
            f"w+1={words[i + 1]}",
            f"w-2={words[i - 2]}",
            f"w+2={words[i + 2]}",
        ]
        for i, word in enumerate(sentence.words, start=2)
    ]


def chunk_features(sentence: TaggedSentence) -> list[list[str]]:
    """Add the given parts of speech of the words within two, alone and in neighbouring pairs and triples."""
    pos = [_BEFORE, _BEFORE, *sentence.pos, _AFTER, _AFTER]
    made = tag_features(sentence)
    for i, features in enumerate(made):
        window = pos[i : i + 5]
        for size in (1, 2, 3):
            features += [f"t{k - 2}:{size}={'/'.join(window[k : k + size])}" for k in range(6 - size)]
    return made


def crfsuite(
    train: list[TaggedSentence],
    test: list[TaggedSentence],
    algorithm: str = "ap",
    iterations: int | None = 10,
    features: Callable[[TaggedSentence], list[list[str]]] = tag_features,
    *,
    seed: int = 1,
) -> Result:
    """Train, and tag the test part; ``iterations=None`` lets L-BFGS run until it converges.

    ``seed`` goes to C's ``srand``, since CRFsuite's perceptron shuffles with ``rand``; 1 is what a new process has.
    """
    if algorithm not in ALGORITHMS:
        raise ValueError(f"algorithm {algorithm!r} is none of {', '.join(ALGORITHMS)}; choose one of them")
    ctypes.CDLL(None).srand(seed)
    trainer = pycrfsuite.Trainer(algorithm=algorithm, params=ALGORITHMS[algorithm], verbose=False)
    if iterations is not None:
        trainer.set("max_iterations", iterations)
    train_seconds = 0.0
    for sentence in train:
        rows = features(sentence)
        began = time.perf_counter()
        trainer.append(rows, sentence.tags)
        train_seconds += time.perf_counter() - began
    with tempfile.TemporaryDirectory() as folder:
        model = str(Path(folder) / "model")
        began = time.perf_counter()
        trainer.train(model)
        train_seconds += time.perf_counter() - began
        tagger = pycrfsuite.Tagger()
        tagger.open(model)
        began = time.perf_counter()
        extracted = [features(sentence) for sentence in test]
        extract_seconds = time.perf_counter() - began
        began = time.perf_counter()
        predictions = [tagger.tag(rows) for rows in extracted]
        predict_seconds = time.perf_counter() - began
        tagger.close()
    tokens = sum(len(sentence.words) for sentence in test)
    right = sum(
        tag == guess
        for sentence, guesses in zip(test, predictions, strict=True)
        for tag, guess in zip(sentence.tags, guesses, strict=True)
    )
    return Result(right / tokens, predictions, train_seconds, tokens / predict_seconds, tokens / extract_seconds)


def _shape(word: str) -> str:
    """Return the kinds of letters in a word, each run of a kind as one letter."""
    word = "".join("X" if c.isupper() else "x" if c.islower() else "0" if c.isdigit() else c for c in word)
    return re.sub(r"(.)\1+", r"\1", word)


def main() -> None:
    """Print one line for a corpus: accuracy, span F1 where there are spans, and speeds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("corpus", choices=list(CORPORA))
    parser.add_argument("--algorithm", choices=list(ALGORITHMS), default="ap")
    parser.add_argument("--iterations", type=int, help="10 for the perceptron, until convergence for L-BFGS")
    parser.add_argument("--seed", type=int, default=1, help="of the perceptron's order of sentences")
    parser.add_argument("--dev", action="store_true", help="test on the development part")
    options = parser.parse_args()
    corpus = CORPORA[options.corpus]()
    iterations = options.iterations or (10 if options.algorithm == "ap" else None)
    features = chunk_features if options.corpus == "conll2000" else tag_features
    test = corpus.dev if options.dev else corpus.test
    result = crfsuite(corpus.train, test, options.algorithm, iterations, features, seed=options.seed)
    line = f"{corpus.name} {options.algorithm}: accuracy {100 * result.accuracy:.2f}"
    if options.corpus == "conll2000":
        line += f", span F1 {100 * span_scores([s.tags for s in test], result.predictions).f1:.2f}"
    line += f"; trained in {result.train_seconds:.1f} s; tags {result.tokens_per_second_predict:,.0f} tokens/s"
    print(f"{line}, after extracting features of {result.tokens_per_second_extract:,.0f} tokens/s")


if __name__ == "__main__":
    main()
