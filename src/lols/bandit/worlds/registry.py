"""Worlds by name, with the data that they need: given files, or sentences that a grammar makes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lols.bandit.worlds.layout_world import layout_world
from lols.bandit.worlds.parsing_world import parsing_world
from lols.bandit.worlds.tagging_world import tagging_world
from lols.bandit.worlds.world import World
from lols.datasets.grammar import generate
from lols.errors import ConfigurationError, LolsError
from lols.io import conll
from lols.io.strings import Texts
from lols.tasks.parsing.trees import read_heads, require_trees, single_root

__all__ = ["WORLDS", "load_world", "made_sentences", "read_sentences"]

WORLDS = ("layout", "tagging", "parsing")
FILES = ("ewt-train.conllu.gz", "ewt-test.conllu.gz")
MADE = (4000, 1000)  # generated sentences: those that arrive, and those held out

Path_ = str | os.PathLike[str]


def load_world(name: str, data: Path_ | Sequence[Path_] | None = None) -> World:
    """A world to try a bandit in.

    Parameters
    ----------
    name
        `"layout"`, `"tagging"` or `"parsing"`.
    data
        For the last two: a folder that holds ewt-train.conllu.gz and ewt-test.conllu.gz, or two CoNLL-U files, to
        learn from and to test on. None: sentences that a grammar makes (`lols.datasets.grammar`).

    Examples
    --------
    >>> load_world("tagging").name
    'tagging'
    >>> load_world("chess")
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: unknown world 'chess': choose layout, tagging, parsing

    """
    if name not in WORLDS:
        raise ConfigurationError(f"unknown world '{name}': choose {', '.join(WORLDS)}")
    if name == "layout":
        if data is not None:
            raise ConfigurationError("the layout world makes its own data: leave the files out")
        return layout_world()
    train, held_out = made_sentences() if data is None else map(read_sentences, _files(data))
    return (tagging_world if name == "tagging" else parsing_world)(train, held_out)


def made_sentences() -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Sentences of the grammar as objects: those that arrive, and those held out."""
    made = [{"forms": s.forms, "tags": s.upos, "heads": s.heads} for s in generate(sum(MADE))]
    return made[: MADE[0]], made[MADE[0] :]


def read_sentences(path: Path_) -> list[dict[str, Any]]:
    """The sentences of a CoNLL-U file: forms, tags (UPOS) and heads, counted from 1 with 0 for the one root."""
    found = conll.read(path, ["form", "upos", "head"], format="conllu")
    heads = read_heads(found, 2)
    require_trees(heads, found)
    heads = single_root(heads, found.offsets)[0] + 1
    forms, tags = (Texts(found.buffer, found.begin[k], found.end[k]).strings() for k in (0, 1))
    missing = next((k for k, tag in enumerate(tags) if tag in ("", "_")), None)
    if missing is not None:
        raise LolsError(f"{found.path}, line {found.lines[missing]}: there is no tag; give a file with UPOS filled in")
    bounds = list(zip(found.offsets[:-1].tolist(), found.offsets[1:].tolist(), strict=True))
    return [{"forms": forms[b:e], "tags": tags[b:e], "heads": heads[b:e].tolist()} for b, e in bounds]


def _files(data: Path_ | Sequence[Path_]) -> Sequence[Path_]:
    if not isinstance(data, str | os.PathLike):
        if len(data) != 2:
            raise ConfigurationError(f"there are {len(data)} files: give two, to learn from and to test on")
        return data
    folder = Path(data)
    if not folder.is_dir():
        raise ConfigurationError(f"{data} is no folder: give the one that holds {' and '.join(FILES)}, or two files")
    missing = [name for name in FILES if not (folder / name).is_file()]
    if missing:
        raise ConfigurationError(f"there is no {missing[0]} in {data}: put it there, or give two CoNLL-U files")
    return [folder / name for name in FILES]
