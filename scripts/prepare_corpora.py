"""Prepare the corpora that cannot be downloaded as they are, from your own copy, for `lols reproduce --data DIR`.

    python scripts/prepare_corpora.py nltk nltk_data/corpora/dependency_treebank DIR
    python scripts/prepare_corpora.py craft CRAFT DIR
    python scripts/prepare_corpora.py ptb treebank_3/parsed/mrg/wsj DIR

- nltk: the sample of the Penn Treebank that comes with NLTK, as dependencies: wsj-train.conll.gz, wsj-test.conll.gz
- craft: a clone of the repository of CRAFT, version 5: craft-train.conllu.gz, craft-test.conllu.gz
- ptb: the Wall Street Journal part of the Penn Treebank 3 (LDC99T42), from which the paper's own data are made:
  ptb-tags-*.conll.gz (sections 00-18, tested on 19-24) and ptb-trees-*.conll.gz (sections 02-21, tested on 23).
  Trees become dependencies by the head rules of Collins (1999, appendix A).

Files of the first two are compared with the checksums of the figures in docs/reproduce.md. With the third, further
tables are run.
"""

from __future__ import annotations

import argparse
import gzip
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from lols.errors import LolsError
from lols.reproduction.data import SOURCES, checked

TAGGING = {"train": range(19), "test": range(19, 25)}  # sections
PARSING = {"train": range(2, 22), "test": range(23, 24)}

# What a phrase has for its head: where to begin looking, and for what, the first of these before the second.
NOUNS = "NN NNP NNPS NNS NX POS JJR"
RULES = {
    "ADJP": "left NNS QP NN $ ADVP JJ VBN VBG ADJP JJR NP JJS DT FW RBR RBS SBAR RB",
    "ADVP": "right RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN",
    "CONJP": "right CC RB IN",
    "FRAG": "right",
    "INTJ": "left",
    "LST": "right LS :",
    "NAC": "left NN NNS NNP NNPS NP NAC EX $ CD QP PRP VBG JJ JJS JJR ADJP FW",
    "PP": "right IN TO VBG VBN RP FW",
    "PRN": "left",
    "PRT": "right RP",
    "QP": "left $ IN NNS NN JJ RB DT CD NCD QP JJR JJS",
    "RRC": "right VP NP ADVP ADJP PP",
    "S": "left TO IN VP S SBAR ADJP UCP NP",
    "SBAR": "left WHNP WHPP WHADVP WHADJP IN DT S SQ SINV SBAR FRAG",
    "SBARQ": "left SQ S SINV SBARQ FRAG",
    "SINV": "left VBZ VBD VBP VB MD VP S SINV ADJP NP",
    "SQ": "left VBZ VBD VBP VB MD VP SQ",
    "UCP": "right",
    "VP": "left TO VBD VBN MD VBZ VB VBG VBP VP ADJP NN NNS NP",
    "WHADJP": "left CC WRB JJ ADJP",
    "WHADVP": "right CC WRB",
    "WHNP": "left WDT WP WP$ WHADJP WHPP WHNP",
    "WHPP": "right IN TO FW",
}
PUNCTUATION = {",", ".", ":", "``", "''"}


class Node(NamedTuple):
    """A word with its tag, or a phrase."""

    label: str
    word: str = ""
    children: Sequence[Node] = ()


class Token(NamedTuple):
    """A word, its tag, and the number of its head."""

    word: str
    tag: str
    head: int


# --- trees ------------------------------------------------------------------------------------------------------------


def read_trees(text: str) -> Iterator[Node]:
    """The trees of a file, without traces and without phrases that have no words."""
    stack: list[list[Node | str]] = [[]]
    for piece in re.findall(r"[()]|[^()\s]+", text):
        if piece == "(":
            stack.append([])
        elif piece != ")":
            stack[-1].append(piece)
        else:
            if len(stack) == 1:
                raise LolsError("a bracket is closed that was not opened")
            node = _node(stack.pop())
            if node is not None:
                stack[-1].append(node)
            if len(stack) == 1 and stack[0]:
                yield stack[0].pop()  # type: ignore[misc]  # a tree, not a word
    if len(stack) > 1:
        raise LolsError("a bracket is not closed")


def _node(parts: Sequence[Node | str]) -> Node | None:
    label = str(parts[0]) if parts and isinstance(parts[0], str) else ""
    children = [part for part in parts if isinstance(part, Node)]
    if label == "-NONE-":
        return None
    if len(parts) == 2 and isinstance(parts[1], str):
        return Node(label, parts[1])
    plain = label if label.startswith("-") else re.split("[-=]", label)[0]
    return Node(plain, "", children) if children else None


def head_of(node: Node) -> int:
    """Which child of a phrase has its head."""
    labels = [child.label for child in node.children]
    words = [k for k, label in enumerate(labels) if label not in PUNCTUATION] or list(range(len(labels)))
    if node.label in ("NP", "NX"):
        return _noun(labels, words)
    side, *wanted = RULES.get(node.label, "right").split()
    order = words if side == "left" else words[::-1]
    return next((k for label in wanted for k in order if labels[k] == label), order[0])


def _noun(labels: Sequence[str], words: Sequence[int]) -> int:
    """The head of a noun phrase, which has rules of its own."""
    if labels[words[-1]] == "POS":
        return words[-1]
    for side, wanted in (
        ("right", NOUNS), ("left", "NP"), ("right", "$ ADJP PRN"), ("right", "CD"), ("right", "JJ JJS RB QP"),
    ):  # fmt: skip
        for k in words if side == "left" else words[::-1]:
            if labels[k] in wanted.split():
                return k
    return words[-1]


def dependencies(tree: Node) -> list[Token]:
    """The words of a tree, each with its head; 0 is the root."""
    words: list[tuple[str, str]] = []
    heads: dict[int, int] = {}

    def visit(node: Node) -> int:
        if node.word:
            words.append((node.word, node.label))
            return len(words)
        own = [visit(child) for child in node.children]
        head = own[head_of(node)]
        heads.update({word: head for word in own if word != head})
        return head

    visit(tree)
    return [Token(word, tag, heads.get(k, 0)) for k, (word, tag) in enumerate(words, 1)]


# --- files ------------------------------------------------------------------------------------------------------------


def conll(sentences: Iterable[Sequence[Token]]) -> str:
    """Sentences in the columns of CoNLL-X."""
    lines = (
        "".join(
            f"{k}\t{t.word}\t_\t{t.tag}\t{t.tag}\t_\t{t.head}\t{'dep' if t.head else 'root'}\t_\t_\n"
            for k, t in enumerate(sentence, 1)
        )
        for sentence in sentences
    )
    return "".join(f"{sentence}\n" for sentence in lines)


def nltk_sample(folder: Path) -> dict[str, str]:
    """Files of a word, its tag and the number of its head in each line."""
    made = {}
    for part, numbers in (("train", range(1, 161)), ("test", range(161, 200))):
        sentences = []
        for number in numbers:
            text = _read(folder / f"wsj_{number:04}.dp")
            for block in re.split(r"\n\s*\n", text.strip()) if text.strip() else ():
                rows = [line.split() for line in block.splitlines()]
                sentences.append([Token(word, tag, int(head)) for word, tag, head in rows])
        made[f"wsj-{part}.conll.gz"] = conll(sentences)
    return made


def craft(folder: Path) -> dict[str, str]:
    """The articles one after the other, as they are."""
    made = {}
    for part in ("train", "test"):
        names = _read(folder / "articles" / "ids" / f"craft-ids-{part}.txt").split()
        articles = folder / "structural-annotation" / "dependency" / "conllu"
        made[f"craft-{part}.conllu.gz"] = "".join(_read(articles / f"{name}.conllu") for name in sorted(names))
    return made


def penn_treebank(folder: Path) -> dict[str, str]:
    """Sections of trees, as dependencies."""
    sections: dict[int, list[list[Token]]] = {}
    for section in range(25):
        files = sorted((folder / f"{section:02}").glob("*.mrg"))
        if not files:
            raise LolsError(f"{folder / f'{section:02}'}: holds no .mrg files; name the folder parsed/mrg/wsj")
        sections[section] = [dependencies(tree) for file in files for tree in read_trees(_read(file))]
    return {
        f"ptb-{of}-{part}.conll.gz": conll(sentence for section in numbers for sentence in sections[section])
        for of, parts in (("tags", TAGGING), ("trees", PARSING))
        for part, numbers in parts.items()
    }


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise LolsError(f"{path}: cannot be read ({error}); name the folder that holds the corpus") from None


CORPORA = {"nltk": nltk_sample, "craft": craft, "ptb": penn_treebank}


def main(argv: Sequence[str] | None = None) -> None:
    """Read a corpus, write its files, and check them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("folder", type=Path, help="the corpus")
    parser.add_argument("output", type=Path, help="the folder for `lols reproduce --data`")
    chosen = parser.parse_args(argv)
    try:
        made = CORPORA[chosen.corpus](chosen.folder)
        chosen.output.mkdir(parents=True, exist_ok=True)
        for name, text in made.items():
            path = chosen.output / name
            path.write_bytes(gzip.compress(text.encode("utf-8"), mtime=0))
            checked(path, SOURCES[name])
            print(f"{path}: {sum(not line for line in text.splitlines()):,} sentences")
    except (LolsError, OSError) as error:
        sys.exit(f"prepare_corpora: {error}")


if __name__ == "__main__":
    main()
