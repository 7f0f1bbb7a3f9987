"""The public data sets: where they live, what their checksum is, and where a copy is kept.

A checksum is that of the content, whether the file is packed or not. Files are looked for in the folder that the user
names, then in the cache: `LOLS_CACHE`, or where the platform keeps such things.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import sys
import tempfile
import urllib.error
import urllib.request
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

from lols.errors import LolsError

__all__ = ["SOURCES", "Source", "cache_folder", "checked", "download", "find"]

PIECE = 1 << 20
PATIENCE = 60.0  # seconds without a byte
EWT = "https://raw.githubusercontent.com/UniversalDependencies/UD_English-EWT/r2.16/en_ewt-ud-"
KDD = "http://kdd.ics.uci.edu/databases/kddcup99/"


class Source(NamedTuple):
    """A file of a public data set."""

    file: str
    about: str
    licence: str
    home: str
    sha256: str  # of the unpacked content
    address: str | None = None  # where exactly this content can be fetched
    made: str = ""  # how the file is made from what is at its home, where it is not there as it is


_WSJ = (
    "https://www.nltk.org/nltk_data/",
    "the files wsj_0001.dp to wsj_0160.dp (train) and wsj_0161.dp to wsj_0199.dp (test) of dependency_treebank, as "
    "CoNLL-X: the tag in columns 4 and 5, the head in 7, root or dep in 8",
)
_CRAFT = (
    "https://github.com/UCDenver-ccp/CRAFT",
    "the gold trees of the 97 articles, converted to dependencies as CoNLL-U",
)

SOURCES: dict[str, Source] = {
    source.file: source
    for source in (
        Source(
            "kdd99-10percent.csv.gz",
            "KDD Cup 99, the 10 % training file",
            "free for research; cite the UCI KDD archive",
            KDD + "kddcup99.html",
            "f8c8267ebcd9c0ed1fd7d6277fe5bfff8732e9b7db8e61b873542b2a534b6f9a",
            KDD + "kddcup.data_10_percent.gz",
        ),
        Source(
            "kdd99-corrected.csv.gz",
            "KDD Cup 99, the labelled test set",
            "free for research; cite the UCI KDD archive",
            KDD + "kddcup99.html",
            "547dfb9c0f0dc1d9944219ec79e851191faebaeb8acbfa1cd171c418397052a4",
            KDD + "corrected.gz",
        ),
        Source(
            "wsj-train.conll.gz",
            "the Penn Treebank sample that comes with NLTK, dependencies",
            "sample, for non-commercial use",
            _WSJ[0],
            "2ebea57e06f128601328c55c064669a2e02038eb0e020d6606e72417046615f7",
            made=_WSJ[1],
        ),
        Source(
            "wsj-test.conll.gz",
            "the Penn Treebank sample that comes with NLTK, dependencies",
            "sample, for non-commercial use",
            _WSJ[0],
            "1acd4cef9a431b47644b44ccb4d729b7107f7940e51e62aa984f640bc05a67d4",
            made=_WSJ[1],
        ),
        Source(
            "ewt-train.conllu.gz",
            "Universal Dependencies 2.16, English EWT",
            "CC BY-SA 4.0",
            "https://universaldependencies.org/treebanks/en_ewt/",
            "3fb78e2b55482c8ee00caa653af436c88c9e5bc9a73ce26e4ae3ddc79d2b7e7b",
            EWT + "train.conllu",
        ),
        Source(
            "ewt-test.conllu.gz",
            "Universal Dependencies 2.16, English EWT",
            "CC BY-SA 4.0",
            "https://universaldependencies.org/treebanks/en_ewt/",
            "e266e515a0a7547657ed3d90d9ba46487d6bd251f27ad4269d4e8a427c8555cd",
            EWT + "test.conllu",
        ),
        Source(
            "craft-train.conllu.gz",
            "CRAFT, biomedical articles, University of Colorado",
            "CC BY 3.0",
            _CRAFT[0],
            "f727feebf0f4d9d054f73447a276e53eccc4f3b9c43dc97741cbfb2f6d7691ce",
            made=_CRAFT[1],
        ),
        Source(
            "craft-test.conllu.gz",
            "CRAFT, biomedical articles, University of Colorado",
            "CC BY 3.0",
            _CRAFT[0],
            "2b6e3a4577f8d4e39d8544fa0ae047c56ab74e765491b759ed20384b0e868dd1",
            made=_CRAFT[1],
        ),
    )
}


def cache_folder() -> Path:
    """Where fetched files are kept: `LOLS_CACHE`, or a folder of the platform's for such things."""
    named = os.environ.get("LOLS_CACHE")
    if named:
        return Path(named)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local") / "lols"
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "lols"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "lols"


def find(name: str, folder: str | os.PathLike[str] | None = None, *, fetch: bool = False) -> Path:
    """A file of a data set, checked; an error says in one line what to do where it is missing.

    Parameters
    ----------
    name
        The file's name, such as `kdd99-corrected.csv.gz`; unpacked it may lack its `.gz`.
    folder
        Where to look first; then comes the cache.
    fetch
        Whether to download it into the cache if it is in neither.

    """
    source = SOURCES[name]
    bare = name.removesuffix(".gz")
    for place in ([] if folder is None else [Path(folder)]) + [cache_folder()]:
        for path in (place / name, place / bare):
            if path.is_file():
                return checked(path, source)
    if fetch:
        return download(source)
    where = cache_folder() if folder is None else Path(folder)
    raise LolsError(f"{where / name}: is not there ({source.about}); {_advice(source)}")


def _advice(source: Source) -> str:
    """What to do without a network, or without this file."""
    if source.address is None:
        return f"make it from {source.home}: {source.made}"
    return f"put {source.address} there under this name, or let --download fetch it (home: {source.home})"


def checked(path: Path, source: Source) -> Path:
    """The same path, if its content is the data set's."""
    digest = hashlib.sha256()
    try:
        with _unpacked(path) as file:
            while piece := file.read(PIECE):
                digest.update(piece)
    except (OSError, EOFError, zlib.error) as error:
        raise LolsError(f"{path}: cannot be read ({error}); get it again from {source.home}") from None
    found = digest.hexdigest()
    if found != source.sha256:
        raise LolsError(
            f"{path}: is not {source.about}: the SHA-256 of its content is {found[:12]}..., not "
            f"{source.sha256[:12]}...; delete it, and get it again from {source.home}"
        )
    return path


@contextmanager
def _unpacked(path: Path) -> Iterator[IO[bytes]]:
    """The content of a file, whether it is packed or not."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    with gzip.open(path) if packed else path.open("rb") as content:
        yield content  # type: ignore[misc]


def download(source: Source) -> Path:
    """Fetch a file from its public home into the cache, and check it; nothing is kept if that fails."""
    folder = cache_folder()
    target = folder / source.file
    if source.address is None:
        raise LolsError(f"{target}: cannot be downloaded as it is; {_advice(source)}")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=folder, prefix=source.file, suffix=".part")
    except OSError as error:
        raise LolsError(f"{folder}: cannot be written ({error.strerror}); let LOLS_CACHE name another") from None
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file, urllib.request.urlopen(source.address, timeout=PATIENCE) as answer:
            first = answer.read(PIECE)
            # Kept packed, as its name says.
            with file if first.startswith(b"\x1f\x8b") else gzip.open(file, "wb", 6) as packed:
                while first:
                    packed.write(first)
                    first = answer.read(PIECE)
        checked(part, source)
        part.replace(target)
    except (OSError, urllib.error.URLError) as error:
        reason = getattr(error, "reason", None) or error.strerror or error
        raise LolsError(
            f"{source.address}: cannot be fetched ({reason}); without a network, put this file at {target}"
        ) from None
    finally:
        part.unlink(missing_ok=True)
    return target
