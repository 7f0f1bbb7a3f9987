"""The data of each table: made by the project, or the public sets; files in either case, read the same way."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import sys
import urllib.request
import zlib
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lols.datasets import grammar, intrusion
from lols.errors import LolsError
from lols.io.whole_file import write_whole
from lols.reproduction.paper import data_file
from lols.reproduction.plan import KDD99, TABLES, TableSpec

PACKED = b"\x1f\x8b"  # how files of gzip begin
PATIENCE = 60.0  # seconds without a byte


class Source(NamedTuple):
    """A file of a public data set."""

    file: str
    about: str
    licence: str
    home: str
    sha256: str = ""  # of the unpacked content; none for a copy of the user's own
    address: str | None = None  # where exactly this content can be fetched
    made: str = ""  # how the file is made from what is at its home, where it is not there as it is


SOURCES = {file: Source(file, **facts) for file, facts in data_file("sources.toml").items()}


def cache_folder() -> Path:
    """The folder for downloaded files: `LOLS_CACHE`, or one in the platform's folder for caches."""
    if named := os.environ.get("LOLS_CACHE"):
        return Path(named)
    variable, usual = {
        "win32": ("LOCALAPPDATA", Path.home() / "AppData" / "Local"),
        "darwin": ("", Path.home() / "Library" / "Caches"),
    }.get(sys.platform, ("XDG_CACHE_HOME", Path.home() / ".cache"))
    return Path(os.environ.get(variable) or usual) / "lols"


def find(name: str, folder: str | os.PathLike[str] | None = None, *, fetch: bool = False) -> Path:
    """A file of a data set, checked, from a folder or the cache; `fetch` downloads it if it is in neither.

    Uncompressed files may lack the `.gz` of their name.
    """
    source = SOURCES[name]
    for place in ([] if folder is None else [Path(folder)]) + [cache_folder()]:
        if path := has(name, place):
            return checked(path, source)
    if fetch:
        return download(source)
    where = cache_folder() if folder is None else Path(folder)
    raise LolsError(f"{where / name}: is not there ({source.about}); {_advice(source)}")


def has(name: str, folder: str | os.PathLike[str]) -> Path | None:
    """A file of a folder, compressed or not, if it is there."""
    paths = (Path(folder) / name, Path(folder) / name.removesuffix(".gz"))
    return next((path for path in paths if path.is_file()), None)


def _advice(source: Source) -> str:
    """How to get a file without a network."""
    if source.address is None:
        return f"make it from {source.home}: {source.made}"
    return f"put {source.address} there under this name, or let --download fetch it (home: {source.home})"


def checked(path: Path, source: Source) -> Path:
    """The path itself, if the content of the file is that of the data set."""
    _check(path, partial(path.open, "rb"), source)
    return path


def _check(where: object, opened: Callable[[], Any], source: Source) -> None:
    """Raise an error, which says where, if the content of a file is not that of the data set."""
    try:
        with opened() as file:
            packed = file.read(2) == PACKED
            file.seek(0)
            found = hashlib.file_digest(gzip.GzipFile(fileobj=file) if packed else file, "sha256").hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        raise LolsError(f"{where}: cannot be read ({error}); get it again from {source.home}") from None
    if source.sha256 and found != source.sha256:
        raise LolsError(
            f"{where}: is not {source.about}: the SHA-256 of its content is {found[:12]}..., not "
            f"{source.sha256[:12]}...; get it again from {source.home}"
        )


def download(source: Source) -> Path:
    """Download a file from its public home into the cache, and check it; nothing is kept if that fails."""
    folder = cache_folder()
    target = folder / source.file
    if source.address is None:
        raise LolsError(f"{target}: cannot be downloaded as it is; {_advice(source)}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LolsError(f"{folder}: cannot be written ({error.strerror}); let LOLS_CACHE name another") from None
    try:
        with urllib.request.urlopen(source.address, timeout=PATIENCE) as answer:
            content = answer.read()
    except OSError as error:
        why = getattr(error, "reason", None) or error.strerror or error
        raise LolsError(
            f"{source.address}: cannot be fetched ({why}); without a network, put this file at {target}"
        ) from None
    _check(source.address, partial(io.BytesIO, content), source)
    write_whole(target, content if content.startswith(PACKED) else gzip.compress(content, 6))  # as its name says
    return target


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
