"""The data of each table: made by the project, or the public sets; files in either case, read the same way."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from lols.errors import LolsError
from lols.reproduction.plan import TABLES, TableSpec
from lols.reproduction.sources import SOURCES, find

__all__ = ["FURTHER", "DataPlace", "generated", "public"]

# Made rows and sentences: to learn from and to test on, and the passes.
SIZES = {"table2": (20_000, 20_000, 5), "table3": (3_000, 1_000, 5), "table4": (1_200, 600, 5)}
QUICK = {"table2": (8_000, 10_000, 5), "table3": (400, 500, 2), "table4": (200, 300, 2)}
FILES = {
    "table2": ("kdd99-10percent.csv.gz", "kdd99-corrected.csv.gz"),
    "table3": ("wsj-train.conll.gz", "wsj-test.conll.gz"),
    "table4": ("wsj-train.conll.gz", "wsj-test.conll.gz"),
    "table3-craft": ("craft-train.conllu.gz", "craft-test.conllu.gz"),
    "table4-ewt": ("ewt-train.conllu.gz", "ewt-test.conllu.gz"),
}
ABOUT = {
    "table2": "KDD Cup 99: the 10 % file, tested on the contest's test set",
    "table3": "the Penn Treebank sample of NLTK, fine tags",
    "table4": "the Penn Treebank sample of NLTK, arcs only",
    "table3-craft": "CRAFT, fine tags",
    "table4-ewt": "Universal Dependencies English EWT 2.16, arcs only",
}
FURTHER = {"table3": ("table3-craft",), "table4": ("table4-ewt",)}  # tables that come with it on public data
TRAIN, TEST = 1, 2  # seeds of made data


class DataPlace(NamedTuple):
    """Where a table's data are; another process can read them again."""

    table: str
    train: str
    test: str
    label: str  # of tagging: the column
    passes: int
    about: str
    digest: str  # changes with the data
    quick: bool = False

    @property
    def spec(self) -> TableSpec:
        """What is run on it."""
        return TABLES[self.table].in_brief() if self.quick else TABLES[self.table]


def generated(tables: Iterable[str], folder: str | os.PathLike[str], *, quick: bool) -> list[DataPlace]:
    """Make data, as files in a folder."""
    made = []
    for table in tables:
        train, test, passes = (QUICK if quick else SIZES)[table]
        ending = "csv" if table == "table2" else "conllu"
        paths = [Path(folder) / f"{table}-{part}.{ending}" for part in ("train", "test")]
        if table == "table2":
            _write_connections(paths, train, test)
            about = f"generated: a table of network connections, {train:,} rows, tested on {test:,}"
        else:
            _write_sentences(paths, train, test)
            about = f"generated: sentences of a small grammar, {train:,}, tested on {test:,}"
        made.append(DataPlace(table, str(paths[0]), str(paths[1]), "upos", passes, about, _digest(paths), quick))
    return made


def _write_connections(paths: list[Path], train: int, test: int) -> None:
    from lols.datasets.intrusion import generate, write_csv

    write_csv(paths[0], generate(train, TRAIN))
    write_csv(paths[1], generate(test, TRAIN, test=True))


def _write_sentences(paths: list[Path], train: int, test: int) -> None:
    from lols.datasets.grammar import generate, write_conllu

    write_conllu(paths[0], generate(train, TRAIN))
    write_conllu(paths[1], generate(test, TEST))


def public(
    tables: Iterable[str],
    folder: str | os.PathLike[str] | None,
    *,
    fetch: bool = False,
    quick: bool = False,
    say: Callable[[str], None] | None = None,
) -> list[DataPlace]:
    """Find the public sets in a folder or the cache, and check them."""
    if folder is not None and not Path(folder).is_dir():
        raise LolsError(f"{os.fspath(folder)}: is no folder; --data names the one with {FILES['table2'][0]} and others")
    made = []
    for table in tables:
        names = (table,) if quick else (table, *FURTHER.get(table, ()))
        for name in names:
            if say is not None:
                say(f"checking {' and '.join(FILES[name])}")
            train, test = (str(find(file, folder, fetch=fetch)) for file in FILES[name])
            passes = 1 if quick else TABLES[name].passes
            digest = "-".join(SOURCES[file].sha256[:8] for file in FILES[name])
            made.append(DataPlace(name, train, test, "xpos", passes, ABOUT[name], digest, quick))
    return made


def _digest(paths: Iterable[Path]) -> str:
    return "-".join(hashlib.sha256(path.read_bytes()).hexdigest()[:8] for path in paths)
