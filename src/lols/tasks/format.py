"""Files as an estimator's data: what reads and writes them, here or on a worker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Protocol, Self

from lols.contract.examples import Examples
from lols.engines import as_engine
from lols.errors import ConfigurationError, LolsError
from lols.io.opening import opened
from lols.tasks.replay import ReplayedFile
from lols.training.clock import Clock
from lols.training.sources import InPieces

BLOCK = 1 << 20  # bytes


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

    def agreed(self, known: Any) -> Self:
        """The format for files like those that are known: read as data, or scanned."""

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


# --- files that are larger than memory --------------------------------------------------------------------------------

TIMES = 6  # as much memory as the text of a file does what is made of it take


class PartsFormat(Format, Protocol):
    """A format that can read files part by part."""

    def parts(self, paths: Sequence[Any], room: int) -> Iterator[Any]:
        """The labelled data in files, in parts of about so many bytes of text."""

    def scan_of(self, data: Any) -> Any:
        """What is to be known of a part."""


@dataclass(frozen=True)
class InParts:
    """Labelled files that memory does not hold: they are read again in every pass, part by part."""

    form: PartsFormat
    paths: Sequence[Any]
    room: int  # bytes of text in a part
    seen: Any  # what is known of all parts
    seconds: float  # that it took to find out

    @classmethod
    def of(cls, form: PartsFormat, paths: Sequence[Any], memory: int | None) -> Self | None:
        """Files as far as they are larger than memory; None if it holds them."""
        room = None if memory is None else memory // TIMES
        if room is None or not is_larger(paths, room):
            return None
        clock = Clock()
        seen: Any = reduce(lambda before, scan: before.joined([scan]), map(form.scan_of, form.parts(paths, room)))
        return cls(form.agreed(seen), paths, room, seen, clock.working())

    def __len__(self) -> int:
        return len(self.seen)

    @property
    def layout(self) -> Any:
        """Where things are in the files."""
        return self.form.layout

    @property
    def size(self) -> int:
        """How much there is."""
        return int(self.seen.tokens)

    @property
    def use(self) -> Any:
        """The further columns, where those that are filled in are used."""
        return self.seen.use

    def check(self) -> None:
        """Nothing: it was checked when it was scanned."""

    def scan(self, *, stream: bool = False) -> Any:
        """What is known of all parts."""
        return self.seen

    def remarks(self, held: Any) -> Iterator[str]:
        """How much there is, and what that means."""
        yield self.seen.summary(len(self.paths))
        yield "larger than --memory: the files are read again in every pass"

    def facts(self) -> dict[str, Any]:
        """How much there is."""
        found: dict[str, Any] = self.seen.facts()
        return found

    def place(self, example: int) -> str:
        """Which example it is of all files."""
        return f"number {example + 1:,} of all files"

    def examples_of(self, problem: Any) -> InPieces:
        """The parts as examples of a problem, read anew in each pass."""

        def read() -> Iterator[Examples]:
            return map(problem.examples_of, self.form.parts(self.paths, self.room))

        return InPieces(read, len(self), unit="sentences", name=self.seen.fingerprint)

    def check_training(self, estimator: Any, dev: str | None) -> None:
        """Raise an error if something is wanted that needs all data at once."""
        what = f"{self.paths[0]}: the data are larger than --memory, "
        if estimator.warm_start and estimator.__sklearn_is_fitted__():
            raise ConfigurationError(
                f"{what}and a model goes on only with data in memory: allow more, or give them in parts"
            )
        if not as_engine(estimator.engine).LOCAL:
            raise ConfigurationError(
                f"{what}and workers learn from such data only with sync='pass', from files of their own: cut them, or "
                "allow more"
            )
        if not estimator.is_linear:
            raise ConfigurationError(f"{what}and a network learns only from data in memory: allow more")
        if estimator.calibrate and dev is None:
            raise ConfigurationError(
                f"{what}so nothing is held out of them: calibrate needs dev data (--dev), or more --memory"
            )


def is_larger(paths: Iterable[Any], size: int) -> bool:
    """Whether files have more text than so many bytes, uncompressed."""
    left = size
    for path in paths:
        if path == "-":
            raise LolsError("standard input: --memory needs files, which can be read again; write it to a file first")
        with opened(path) as stream:
            while block := stream.read(BLOCK):
                left -= len(block)
                if left < 0:
                    return True
    return False


# --- files that workers read themselves -------------------------------------------------------------------------------


def by_workers(estimator: Any, paths: Sequence[str], dev: str | None) -> bool:
    """Whether workers read the files themselves: with sync pass, and at least as many files as shards."""
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
    with as_engine(estimator.engine).start() as workers:
        return list(workers.map(scan, items))


def never(*_: Any) -> Any:
    """Nothing is held out of files that only workers read."""
    raise AssertionError
