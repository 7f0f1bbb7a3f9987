"""The data of each table: made by the project, or the public sets; files in either case, read the same way."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from lols.datasets import grammar, intrusion
from lols.errors import LolsError
from lols.reproduction.plan import KDD99, TABLES, TableSpec
from lols.reproduction.sources import SOURCES, find, has

# Made rows and sentences: to learn from and to test on, and the passes.
SIZES = {"table2": (20_000, 20_000, 5), "table3": (3_000, 1_000, 5), "table4": (1_200, 600, 5)}
QUICK = {"table2": (8_000, 10_000, 5), "table3": (400, 500, 2), "table4": (200, 300, 2)}
TRAIN, TEST = 1, 2  # seeds of made data


class DataPlace(NamedTuple):
    """A table to be run, and where its data are; another process can read them again."""

    spec: TableSpec
    train: str
    test: str
    label: str  # of tagging: the column
    digest: str  # changes with the data


def generated(tables: Iterable[str], folder: str | os.PathLike[str], *, quick: bool) -> list[DataPlace]:
    """Make data, as files in a folder."""
    made = []
    for table in tables:
        train, test, passes = (QUICK if quick else SIZES)[table]
        rows = table == "table2"
        paths = [Path(folder) / f"{table}-{part}.{'csv' if rows else 'conllu'}" for part in ("train", "test")]
        if rows:
            intrusion.write_csv(paths[0], intrusion.generate(train, TRAIN))
            intrusion.write_csv(paths[1], intrusion.generate(test, TRAIN, test=True))
            about = f"generated: a table of network connections, {train:,} rows, tested on {test:,}"
        else:
            grammar.write_conllu(paths[0], grammar.generate(train, TRAIN))
            sentences = grammar.generate(test, TEST)
            grammar.write_conllu(paths[1], sentences)
            about = f"generated: sentences of a small grammar, {train:,}, tested on {test:,}"
        digest = "-".join(hashlib.sha256(path.read_bytes()).hexdigest()[:8] for path in paths)
        spec = TABLES[table].in_brief() if quick else TABLES[table]
        tested = test if rows else sum(len(sentence.forms) for sentence in sentences)
        spec = spec._replace(about=about, passes=passes, size=train, tested=tested)
        made.append(DataPlace(spec, str(paths[0]), str(paths[1]), "upos", digest))
    return made


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
        raise LolsError(f"{os.fspath(folder)}: is not a folder; give --data the one with {KDD99[0]} and the others")
    made = []
    for table in tables:
        further = [name for name, spec in TABLES.items() if spec.paper == table != name and not quick]
        for name in (table, *(name for name in further if _wanted(TABLES[name], folder))):
            spec = TABLES[name].in_brief()._replace(passes=1) if quick else TABLES[name]
            if say is not None:
                say(f"checking {' and '.join(spec.files)}")
            train, test = (str(find(file, folder, fetch=fetch)) for file in spec.files)
            digest = "-".join(SOURCES[file].sha256[:8] or "own" for file in spec.files)
            made.append(DataPlace(spec, train, test, "xpos", digest))
    return made


def _wanted(spec: TableSpec, folder: str | os.PathLike[str] | None) -> bool:
    """Whether a further data set is run: one that cannot be published only if the user has a copy of it."""
    own = [file for file in spec.files if not SOURCES[file].sha256]
    return not own or (folder is not None and all(has(file, folder) for file in own))
