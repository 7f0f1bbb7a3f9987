"""The four tagging data sets with their own words for tags: WSJ sample, EWT, CoNLL-2000 chunking, CRAFT.

``python -m benchmarks.corpora`` prints their sizes. The files are looked for where `benchmarks.data` looks.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.data import Sentence, data_directory, read_rows

__all__ = [
    "CORPORA",
    "TaggedCorpus",
    "TaggedSentence",
    "Tree",
    "attachment",
    "blocks",
    "conll2000",
    "craft",
    "ewt",
    "numbered",
    "repaired",
    "trees",
    "wsj",
]


class TaggedSentence(NamedTuple):
    """Words and their tags; ``pos`` is CoNLL-2000's given part of speech, and empty elsewhere."""

    words: list[str]
    tags: list[str]
    pos: Sequence[str] = ()


class Tree(NamedTuple):
    """Words, their tags, and their heads: counted from 1, and 0 for the root."""

    words: list[str]
    tags: list[str]
    heads: list[int]


class TaggedCorpus(NamedTuple):
    """The parts of a data set; ``dev`` is empty where the data set has none."""

    name: str
    train: list[TaggedSentence]
    dev: list[TaggedSentence]
    test: list[TaggedSentence]


def wsj() -> TaggedCorpus:
    """Load the Penn Treebank sample: the fine tags, column 5 of its CoNLL-X files."""
    return TaggedCorpus("wsj", _conll("wsj-train.conll.gz"), [], _conll("wsj-test.conll.gz"))


def ewt() -> TaggedCorpus:
    """Load English EWT with its XPOS tags."""
    return TaggedCorpus("ewt", *(_conll(f"ewt-{part}.conllu.gz") for part in ("train", "dev", "test")))


def craft() -> TaggedCorpus:
    """Load CRAFT with its XPOS tags."""
    return TaggedCorpus("craft", *(_conll(f"craft-{part}.conllu.gz") for part in ("train", "dev", "test")))


def conll2000() -> TaggedCorpus:
    """Load the chunking task: tags are chunks (B-NP, I-NP, ..., O), and ``pos`` holds the parts of speech."""
    train, test = (
        [
            TaggedSentence([row[0] for row in rows], [row[2] for row in rows], [row[1] for row in rows])
            for rows in read_rows(_find(f"conll2000-{part}.txt.gz"), " ")
        ]
        for part in ("train", "test")
    )
    return TaggedCorpus("conll2000", train, [], test)


CORPORA = {"wsj": wsj, "ewt": ewt, "conll2000": conll2000, "craft": craft}


def numbered(*parts: list[TaggedSentence]) -> tuple[list[list[Sentence]], list[str]]:
    """Number the tags in the order in which the parts first show them, as `benchmarks.vw` and our engine want them.

    >>> train, test = [TaggedSentence(["a", "dog"], ["DT", "NN"])], [TaggedSentence(["dog", "days"], ["NN", "NNS"])]
    >>> numbered(train, test)[0][1]
    [Sentence(words=['dog', 'days'], tags=[1, 2])]
    >>> numbered(train, test)[1]
    ['DT', 'NN', 'NNS']
    """
    numbers: dict[str, int] = {}
    made = [
        [Sentence(s.words, [numbers.setdefault(tag, len(numbers)) for tag in s.tags]) for s in part] for part in parts
    ]
    return made, list(numbers)


def blocks(path: Path) -> list[str]:
    """Read the sentences of a file, gzipped or not, as they are written, without the empty lines between them."""
    content = path.read_bytes()
    text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode("utf-8")
    return [block.strip("\n") for block in text.split("\n\n") if block.strip("\n")]


def trees(path: Path) -> list[Tree]:
    """Read words, fine tags and heads of a CoNLL-X or CoNLL-U file."""
    made = []
    for block in blocks(path):
        rows = [line.split("\t") for line in block.split("\n")]
        rows = [row for row in rows if row[0].isdecimal()]
        made.append(Tree([row[1] for row in rows], [row[4] for row in rows], [int(row[6]) for row in rows]))
    return made


def repaired(heads: list[int]) -> list[int]:
    """Attach words whose head is no word of the sentence to the root, as we do for Vowpal Wabbit's parser.

    >>> repaired([2, 0, 9999999])
    [2, 0, 2]
    """
    root = heads.index(0) + 1 if 0 in heads else 0
    return [head if 0 <= head <= len(heads) else root for head in heads]


def attachment(gold: list[Tree], heads: list[list[int]]) -> float:
    """Return the share of all words, punctuation too, that have the right head.

    >>> attachment([Tree(["dogs", "bark"], ["NNS", "VBP"], [2, 0])], [[2, 1]])
    0.5
    """
    pairs = [pair for tree, found in zip(gold, heads, strict=True) for pair in zip(tree.heads, found, strict=True)]
    return sum(one == other for one, other in pairs) / len(pairs)


def _conll(name: str) -> list[TaggedSentence]:
    """Read words and column 5 of a CoNLL-X or CoNLL-U file."""
    sentences = []
    for rows in read_rows(_find(name)):
        # A plain number is a word: not a comment, a multi-word range (3-4) or an empty node (5.1).
        words = [row for row in rows if row[0].isdecimal()]
        sentences.append(TaggedSentence([row[1] for row in words], [row[4] for row in words]))
    return sentences


def _find(name: str) -> Path:
    """Return the path of a data file."""
    directory = data_directory()
    if directory is None or not (directory / name).is_file():
        raise FileNotFoundError(f"no {name} in {directory}; let LOLS_DATA name the folder that holds it")
    return directory / name


def main() -> None:
    """Print sentences, tokens and tags of every part, and the tags that training never shows."""
    for load in CORPORA.values():
        corpus = load()
        known = {tag for sentence in corpus.train for tag in sentence.tags}
        for part in ("train", "dev", "test"):
            sentences: list[TaggedSentence] = getattr(corpus, part)
            tags = [tag for sentence in sentences for tag in sentence.tags]
            new = sorted(set(tags) - known)
            print(f"{corpus.name:<10}{part:<6}{len(sentences):7}{len(tags):8}{len(set(tags)):4} tags; new: {new}")


if __name__ == "__main__":
    main()
