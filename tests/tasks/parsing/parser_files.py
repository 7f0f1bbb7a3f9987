"""What the tests of parsers on the command line share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lols.io.model_file import read_tensors
from tests.cli.calling import fine
from tests.tasks.parsing.test_parser import (
    TAGS,
)

PASSES = ("--passes", 4, "--json")


def conllu(words: list[list[str]], trees: list[list[tuple[int, str]]], *, xpos: str = "") -> str:
    """A CoNLL-U file with comments, multi-word tokens and empty nodes."""
    lines = []
    for n, (sentence, tree) in enumerate(zip(words, trees, strict=True)):
        lines += [f"# sent_id = {n}", f"# text = {' '.join(sentence)}"]
        for k, (word, (head, relation)) in enumerate(zip(sentence, tree, strict=True), 1):
            if k == 1 and len(sentence) > 1:
                lines.append("1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No")
            feats = "Number=Sing" if TAGS[word] == "NOUN" else "_"
            tag = TAGS[word]
            lines.append(f"{k}\t{word}\tlemma\t{tag}\t{xpos or tag[0]}\t{feats}\t{head}\t{relation}\t_\tId={k}")
            if k == 1:
                lines.append("1.1\te\te\tX\tX\t_\t_\t_\t0:root\t_")
        lines.append("")
    return "\n".join(lines) + "\n"


def with_columns(text: str, changes: dict[int, list[str]], *, skip: int = 0) -> str:
    """The same lines with columns of the words replaced, one line at a time."""
    given = {column: iter(values) for column, values in changes.items()}
    made = []
    for n, line in enumerate(text.split("\n")):
        end = "\r" if line.endswith("\r") else ""
        cells = line.removesuffix("\r").split("\t")
        if n >= skip and len(cells) > 1 and (len(cells) < 10 or cells[0].isdigit()):
            for column, values in given.items():
                cells[column] = next(values)
        made.append("\t".join(cells) + end)
    assert not any(list(values) for values in given.values())
    return "\n".join(made)


def flat(trees: list[list[tuple[int, str]]], head: int = 6, relation: int = 7) -> dict[int, list[str]]:
    arcs = [arc for tree in trees for arc in tree]
    return {head: [str(h) for h, _ in arcs], relation: [r for _, r in arcs]}


def view(words: list[list[str]]) -> list[list[dict[str, str]]]:
    """What a parser sees of such a file."""
    feats = {"NOUN": "Number=Sing"}
    return [
        [{"word": w, "upos": TAGS[w], "xpos": TAGS[w][0], "feats": feats.get(TAGS[w], "_")} for w in s] for s in words
    ]


def train(*arguments: Any, **options: Any) -> dict[str, Any]:
    return fine("train", "parser", *arguments, *PASSES, **options).json


def weights(path: Path) -> dict[str, Any]:
    found = read_tensors(path, "model")[1]
    return {name: (t.dtype.str, t.shape, t.tobytes()) for name, t in found.items()}


def rows(*cells: tuple[Any, str, Any, str]) -> str:
    return "".join(f"{k}\t{w}\t_\tX\t_\t_\t{h}\t{r}\t_\t_\n" for k, w, h, r in cells) + "\n"
