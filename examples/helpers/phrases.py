"""Chunked sentences without a download: phrases of a few patterns, their parts of speech tagged with some mistakes."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["generate"]

WORDS = {
    "DT": "the a this every some no",
    "NN": "bank market price plan rise trade report share increase chief company offer",
    "NNS": "prices shares plans reports sales banks traders offers",
    "NNP": "London Friday Smith October Japan Brown",
    "JJ": "sharp new foreign chief early large recent firm",
    "PRP": "it they he we she",
    "VBD": "said rose offered planned reported fell traded",
    "VBZ": "has plans offers reports is trades",
    "VBN": "expected planned reported offered traded",
    "VB": "rise offer plan report trade increase",
    "MD": "will may could should",
    "TO": "to",
    "RB": "sharply early often widely not still",
    "IN": "in of for with that as before",
}
PHRASES = {
    "NP": ["DT NN", "DT JJ NN", "NNP", "PRP", "DT NN NN", "JJ NNS", "NNS", "NNP NNP", "NNP NN NNS", "DT JJ JJ NN"],
    "VP": ["VBD", "MD VB", "VBZ VBN", "VBZ RB VBN TO VB", "MD RB VB", "VBD TO VB"],
    "PP": ["IN"],
    "SBAR": ["IN"],
    "ADVP": ["RB"],
    "ADJP": ["RB JJ"],
}
SENTENCES = ["NP VP NP", "NP VP NP PP NP", "NP VP NP NP", "PP NP O NP VP NP ADVP", "NP VP SBAR NP VP NP", "NP VP ADJP",
             "NP PP NP VP NP PP NP", "ADVP NP VP PP NP NP"]  # fmt: skip
MISTAKEN = {"NN": "VB", "VB": "NN", "NNS": "VBZ", "VBZ": "NNS", "VBD": "VBN", "VBN": "VBD", "JJ": "NN", "RB": "JJ"}


def generate(count: int, seed: int = 0, mistakes: float = 0.1) -> list[dict[str, Any]]:
    """Make so many sentences; with a chance of `mistakes` a word has the tag that it is most often confused with.

    >>> one = generate(1, seed=5)[0]
    >>> print(*map("/".join, zip(one["words"], one["pos"], one["tags"], strict=True)))
    London/NNP/B-NP chief/NN/I-NP offers/NNS/I-NP planned/VBD/B-VP often/JJ/B-ADJP new/NN/I-ADJP ././O
    """
    rng = np.random.default_rng(seed)
    return [_sentence(rng, mistakes) for _ in range(count)]


def _pick(rng: np.random.Generator, some: list[str]) -> str:
    return some[rng.integers(len(some))]


def _sentence(rng: np.random.Generator, mistakes: float) -> dict[str, Any]:
    rows = []
    for kind in _pick(rng, SENTENCES).split():
        if kind == "O":
            rows.append((",", ",", "O"))
            continue
        for place, tag in enumerate(_pick(rng, PHRASES[kind]).split()):
            given = MISTAKEN[tag] if tag in MISTAKEN and rng.random() < mistakes else tag
            rows.append((_pick(rng, WORDS[tag].split()), given, f"{'I' if place else 'B'}-{kind}"))
    rows.append((".", ".", "O"))
    return dict(zip(("words", "pos", "tags"), map(list, zip(*rows, strict=True)), strict=True))
