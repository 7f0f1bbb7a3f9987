"""The public data sets, which `sources.toml` lists: finding, checking and downloading them.

A checksum is that of the content, whether the file is compressed or not. Files are looked for in the folder that the
user names, then in the cache: `LOLS_CACHE`, or the platform's folder for caches.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import shutil
import sys
import tempfile
import tomllib
import urllib.error
import urllib.request
import zlib
from pathlib import Path
from typing import NamedTuple

from lols.errors import LolsError

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


SOURCES = {
    file: Source(file, **facts)
    for file, facts in tomllib.loads(Path(__file__).with_name("sources.toml").read_text(encoding="utf-8")).items()
}


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
    try:
        with path.open("rb") as file:
            packed = file.read(2) == PACKED
        with gzip.open(path) if packed else path.open("rb") as content:
            found = hashlib.file_digest(content, "sha256").hexdigest()
    except (OSError, EOFError, zlib.error) as error:
        raise LolsError(f"{path}: cannot be read ({error}); get it again from {source.home}") from None
    if source.sha256 and found != source.sha256:
        raise LolsError(
            f"{path}: is not {source.about}: the SHA-256 of its content is {found[:12]}..., not "
            f"{source.sha256[:12]}...; delete it, and get it again from {source.home}"
        )
    return path


def download(source: Source) -> Path:
    """Download a file from its public home into the cache, and check it; nothing is kept if that fails."""
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
            first = answer.read(2)
            # kept compressed, as its name says
            with file if first == PACKED else gzip.open(file, "wb", 6) as packed:
                packed.write(first)
                shutil.copyfileobj(answer, packed)
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
