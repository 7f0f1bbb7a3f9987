"""Data in files that workers read themselves, so that the driver never holds them."""

from __future__ import annotations

import glob
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np

from lols.contract.choosing import some
from lols.contract.examples import Examples
from lols.errors import ConfigurationError, LolsError


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
    read: Callable[[Any], Any]

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

    def first(self, count: int) -> Any:
        """The first objects.

        Parameters
        ----------
        count
            How many objects.

        """
        return list(islice(self, count))

    def held(self) -> Any:
        """All objects, in memory."""
        return list(self)

    def shards(self, count: int) -> list[Files]:
        """The files of each shard.

        Parameters
        ----------
        count
            How many shards.

        """
        names = self.names
        if count > len(names):
            raise ConfigurationError(
                f"there are {len(names)} files for {count} shards: give more files, or shards={len(names)}"
            )
        return [replace(self, paths=names[shard::count]) for shard in range(count)]


@dataclass(frozen=True)
class ExampleFiles(Files):
    """The same for estimators: `read(paths)` gives the examples of several files, which were counted before.

    Parameters
    ----------
    paths
        The names of the files.
    read
        `read(paths)` gives the examples of several files.
    count
        How many examples they have.
    total
        How many steps these have.

    """

    count: int = 0
    total: int = 0  # steps

    def __len__(self) -> int:
        return self.count

    @property
    def steps(self) -> np.ndarray:
        """All steps, in one number, for progress bars."""
        return np.array([self.total])

    def first(self, count: int) -> Examples:
        """The first examples; only the first file is read.

        Parameters
        ----------
        count
            How many examples.

        """
        found: Any = self.read(self.names[:1])
        return some(found, np.arange(min(count, len(found))))

    def held(self) -> Examples:
        """All examples, in memory."""
        found: Any = self.read(self.names)
        return found
