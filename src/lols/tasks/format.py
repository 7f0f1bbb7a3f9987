"""Files as an estimator's data: what reads and writes them, here or on a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, Self

from lols.errors import ConfigurationError
from lols.tasks.replay import ReplayedFile


class Format(Protocol):
    """How files hold data. Workers are given a format, so it can be pickled, and takes little time to import."""

    @property
    def layout(self) -> Any:
        """Where things are in the files: a value of the estimator's `VERBS.files`."""

    def settled(self, paths: Sequence[Any]) -> Self:
        """The format with what was left open as it is in these files."""

    def read(self, paths: Sequence[Any]) -> Any:
        """The labelled data in files, with the `seconds` that reading took."""

    def scan(self, path: Any) -> Any:
        """What is to be known of one file of several; it is `joined` with that of the others, in order."""

    def agreed(self, scan: Any) -> Self:
        """The format for files of which all is known."""

    def pieces(self, path: Any) -> Iterator[Any]:
        """A file that need not be labelled, piece by piece."""

    def inputs(self, piece: Any) -> Any:
        """What a piece holds to be predicted."""

    def write(self, piece: Any, problem: Any, outputs: Any, sure: Any) -> bytes:
        """A piece with what was predicted for it, and how sure that is unless it is None; nothing without inputs."""


class ExampleReader(NamedTuple):
    """Reads files as examples of a problem, on a worker."""

    format: Format
    problem: Any

    def examples(self, paths: Sequence[str]) -> Any:
        """The examples of files."""
        return self.problem.examples_of(self.format.read(paths))


# --- files that workers read themselves -------------------------------------------------------------------------------


def by_workers(estimator: Any, paths: Sequence[str], dev: str | None) -> bool:
    """Whether workers read the files themselves: with sync pass, and at least as many files as shards."""
    from lols.engines import as_engine

    engine = as_engine(estimator.engine)
    shards = engine.shards or engine.count
    alone = not estimator.BY_WORKERS or any(isinstance(path, ReplayedFile) for path in paths)
    if alone or engine.sync != "pass" or len(paths) < max(2, shards):
        return False
    if (estimator.warm_start and estimator.__sklearn_is_fitted__()) or not estimator.is_linear:
        return False
    if estimator.calibrate and dev is None:
        raise ConfigurationError(
            "calibrate needs dev data (--dev) where workers read their own files: nothing is held out of these"
        )
    return True


def scanned(estimator: Any, scan: Any, items: Iterable[Any]) -> list[Any]:
    """The scans of all files, in order."""
    from lols.engines import as_engine

    with as_engine(estimator.engine).start() as workers:
        return list(workers.map(scan, items))


def never(*_: Any) -> Any:
    """Nothing is held out of files that only workers read."""
    raise AssertionError
