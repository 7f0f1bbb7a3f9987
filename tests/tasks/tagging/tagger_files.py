"""What the tests of taggers on the command line share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.calling import fine
from tests.tasks.tagging.tagger_data import conllu, sentences, spans

WORDS, GOLD = sentences(40)
UNSEEN, UNSEEN_GOLD = sentences(15, seed=1)
CHUNK_WORDS, CHUNKS = spans(30)


def train(*arguments: Any) -> dict[str, Any]:
    return fine("train", "tagger", *arguments, "--passes", 2, "--json").json


def with_column(text: str, index: int, tags: list[list[str]], separator: str = "\t") -> str:
    """The same lines with one column of the tokens replaced, one line at a time."""
    flat = [tag for sentence in tags for tag in sentence]
    made = []
    for line in text.split("\n"):
        end = "\r" if line.endswith("\r") else ""
        cells = line.removesuffix("\r").split(separator)
        if len(cells) > 1 and (separator == " " or len(cells) < 10 or cells[0].isdigit()):
            cells[index] = flat.pop(0)
        made.append(separator.join(cells) + end)
    assert not flat
    return "\n".join(made)


def noisy(folder: Path) -> tuple[Path, Path]:
    """Files on which a pass before the last is best (see test_tagger.py)."""
    paths = folder / "noisy.conllu", folder / "noisy-dev.conllu"
    for path, data in zip(paths, (sentences(25, seed=6, noise=0.5), sentences(15, seed=7, noise=0.3)), strict=True):
        path.write_text(conllu(*data))
    return paths
