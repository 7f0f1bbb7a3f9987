"""Data in files that workers read themselves, so that the driver never holds them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from lols.errors import ConfigurationError, LolsError

__all__ = ["Files"]


@dataclass(frozen=True)
class Files:
    """Files as data for `lols.train`: with `sync="pass"` each worker reads those of its shards.

    Parameters
    ----------
    paths
        Names of files, or a pattern such as `"part-*.jsonl"`. Shard k of n has files k, k + n, k + 2n, ... in order.
    read
        `read(path)` gives the labelled objects of a file; it runs on the worker.

    """

    paths: str | Sequence[str]
    read: Callable[[str], Iterable[Any]]

    @property
    def names(self) -> list[str]:
        """The names of the files."""
        found = sorted(glob.glob(self.paths)) if isinstance(self.paths, str) else [os.fspath(p) for p in self.paths]
        if not found:
            raise LolsError(f"{self.paths}: no file has such a name")
        return found

    def __iter__(self) -> Iterator[Any]:
        for name in self.names:
            yield from self.read(name)

    def first(self, count: int) -> list[Any]:
        """The first objects."""
        return list(islice(self, count))

    def shards(self, count: int) -> list[Files]:
        """The files of each shard."""
        names = self.names
        if count > len(names):
            raise ConfigurationError(
                f"there are {len(names)} files for {count} shards: give more files, or shards={len(names)}"
            )
        return [Files(names[shard::count], self.read) for shard in range(count)]
