"""Certificates of real parsers: a bad teacher whose roll-outs are learned from is found out, LOLS is freed of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import lols
from lols.tasks.parsing.files import ParserColumns, read_treebank, treebank

pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets"),
]


def sentences(part: str, count: int) -> tuple[list[list[dict[str, str]]], list[list[int]]]:
    """The first sentences of a part of EWT: words with their tags, and heads."""
    path = Path(os.environ["LOLS_DATA"]) / f"ewt-{part}.conllu.gz"
    columns = ParserColumns(use={"upos": "upos"})
    data = treebank(read_treebank([path], columns), columns)
    names = list(data.corpus.columns)
    texts = [data.corpus.columns[name].texts.strings() for name in names]
    numbers = [data.corpus.columns[name].numbers.tolist() for name in names]
    words, heads = [], []
    for k in range(count):
        span = range(int(data.corpus.offsets[k]), int(data.corpus.offsets[k + 1]))
        words.append([{n: t[m[i]] for n, t, m in zip(names, texts, numbers, strict=True)} for i in span])
        heads.append([int(data.heads[i]) + 1 for i in span])
    return words, heads


def test_a_bad_teacher_is_found_out() -> None:
    seen, unseen = sentences("train", 1500), sentences("dev", 700)
    options = {"labelling": "none", "reference": "bad", "passes": 3, "threads": 2}
    spoilt = lols.certify(lols.Parser(roll_out="reference", **options).fit(*seen), unseen, threads=2)
    assert spoilt.verdict == "the teacher is the bottleneck"
    freed = lols.certify(lols.Parser(**options).fit(*seen), unseen, threads=2)
    assert freed.verdict != "the teacher is the bottleneck"
    assert freed.loss.value < 0.8 * spoilt.loss.value
