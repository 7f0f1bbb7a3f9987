"""`lols reproduce` without its command line: what to run, what is done already, and the result as plain values."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lols import __version__
from lols.errors import ConfigurationError, LolsError
from lols.io.whole_file import write_whole
from lols.plots.look import check_plot
from lols.reproduction import bandit_part, certify_part
from lols.reproduction.cells import Run, measure
from lols.reproduction.claims import judge_claims
from lols.reproduction.data import DataPlace, generated, public
from lols.reproduction.plan import EWT, PARTS, cells_of
from lols.reproduction.runner import Work, run_work
from lols.reproduction.tables import make_table
from lols.reproduction.theory_part import run_theory

__all__ = ["check_file", "check_folder", "reproduce"]

SEEDS = {True: 2, False: 1}  # quick or not
LONGEST = ("parsing", "tagging", "classification")  # to compile
OFTEN = 2.0  # seconds from one writing of the results to the next

Watch = Callable[[int, int, list[str]], None]  # items done, items in all, and what is running


def reproduce(
    part: str = "all",
    *,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    quick: bool = False,
    seeds: int | None = None,
    jobs: int | None = None,
    file: str | os.PathLike[str] | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    say: Callable[[str], None] | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Run the paper's experiments, and return tables, claims, theory and bandit as plain values.

    Parameters
    ----------
    part
        `"table2"`, `"table3"`, `"table4"`, `"theory"`, `"bandit"` or `"all"`.
    data
        A folder with the public data sets; without it, data are generated.
    download
        Whether to download missing data sets into the cache (`lols.reproduction.sources`).
    quick
        Less data, fewer passes and fewer values of β.
    seeds
        The number of seeds; 2 when quick, else 1.
    jobs
        The number of processes, by default that of the cores. With more than one, a script must guard its own work by
        `if __name__ == "__main__":`.
    file
        A JSON file for results, written as they come.
    resume
        Whether to continue from that file.
    watch, say
        Called with the progress, and with what comes before it.
    command
        The command, for the report.

    """
    if part not in PARTS:
        raise ConfigurationError(f"unknown part '{part}': choose one of {', '.join(PARTS)}")
    _check_effects(part, data is not None, download, seeds is not None)
    if part == "bandit" and data is not None and not _has_treebank(data):
        needed = " and ".join(EWT)
        raise ConfigurationError(f"{os.fspath(data)}: holds no {needed}, which the bandit needs; leave out --data")
    count = SEEDS[quick] if seeds is None else seeds
    if count < 1:
        raise ConfigurationError(f"--seeds is {count}; it must be at least 1")
    if jobs is not None and jobs < 1:
        raise ConfigurationError(f"--jobs is {jobs}; it must be at least 1")
    if resume and file is None:
        raise ConfigurationError("--resume goes on from a file of results: name it with --json")
    if file is not None:
        check_file(file)
    tables = [name for name in ("table2", "table3", "table4") if part in (name, "all")]
    with ExitStack() as stack:
        if data is None and not download:
            places = generated(tables, stack.enter_context(tempfile.TemporaryDirectory(prefix="lols-")), quick=quick)
        else:
            places = public(tables, data, fetch=download, quick=quick, say=say)
        state = _State(part, places, quick, count, data, command, file)
        if resume:
            state.load()
        missing = [work for work in state.work if work.name not in state.done]
        total = len(missing) + len(state.done)

        def look(running: list[str]) -> None:
            if watch is not None:
                watch(len(state.done), total, running)

        try:
            run_work(missing, jobs=jobs or cores(), keep=state.keep, watch=look)
        finally:
            state.write()
    return state.result()


def _has_treebank(data: str | os.PathLike[str]) -> bool:
    """Whether a folder has what the bandit needs."""
    return all((Path(data) / name).is_file() for name in EWT)


def _check_effects(part: str, data: bool, download: bool, seeds: bool) -> None:
    """Refuse options that are given although this part has no use for them."""
    for option, given, idle, why in (
        ("--data", data, ("theory",), "it needs no data"),
        ("--download", download, ("theory", "bandit"), "it downloads no data"),
        ("--seeds", seeds, ("theory",), "it is computed exactly"),
    ):
        if given and part in idle:
            raise ConfigurationError(f"{option} has no effect on {part}: {why}; leave it out")


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class _State:
    """What is wanted, and what is done."""

    def __init__(
        self,
        part: str,
        places: Sequence[DataPlace],
        quick: bool,
        seeds: int,
        data: str | os.PathLike[str] | None,
        command: str,
        file: str | os.PathLike[str] | None,
    ):
        self.places, self.quick, self.seeds = {place.spec.name: place for place in places}, quick, seeds
        self.command, self.file = command, file
        self.work = [*self._parts(part, data), *self._cells(), *self._certificates()]
        self.done: dict[str, Any] = {}  # by the name of the work
        self.kept: dict[str, Any] = {}  # runs of a file that are not asked for now
        self.known: dict[str, str] = {}  # and on which data they were
        self.seconds, self.began = 0.0, time.perf_counter()
        self.written = 0.0

    def _parts(self, part: str, data: str | os.PathLike[str] | None) -> list[Work]:
        """Theory and bandit: long work, which comes first, so that it is not left over in the end."""
        made = [Work("theory", run_theory, (self.quick,))] if part in ("theory", "all") else []
        if part in ("bandit", "all"):
            folder = os.fspath(data) if data is not None and _has_treebank(data) else None
            made += bandit_part.bandit_work(self.quick, self.seeds, folder)
        return made

    def _cells(self) -> list[Work]:
        """The cells of all tables, further data sets last; what takes longest to compile first, while others run."""
        order = sorted(self.places.values(), key=lambda p: (p.spec.name != p.spec.paper, LONGEST.index(p.spec.task)))
        return [
            Work(cell.key, measure, (cell, place), (place.spec.task, cell.teacher), cell.words)
            for place in order
            for cell in cells_of(place.spec, self.seeds)
        ]

    def _certificates(self) -> list[Work]:
        table = certify_part.TABLE
        return certify_part.certify_work(self.places.get(table), self.quick, self._table_command(table))

    def _table_command(self, table: str) -> str:
        """The command for one table of the paper."""
        return self.command.replace("reproduce all", f"reproduce {table}")

    def keep(self, work: Work, found: Any) -> None:
        """Take a result, and write all of them now and then."""
        self.done[work.name] = found
        if time.monotonic() - self.written >= OFTEN:
            self.write()

    def settings(self) -> dict[str, Any]:
        """What runs must have in common."""
        digests = {name: f"{place.digest}, {place.spec.passes} passes" for name, place in self.places.items()}
        return {"version": __version__, "quick": self.quick, "data": self.known | digests}

    def load(self) -> None:
        """Take over the results of a file."""
        path = Path(self.file or "")
        if not path.exists():
            return  # nothing is done yet
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            kept, own = found["settings"], self.settings()
            same = kept["version"] == own["version"] and kept["quick"] == own["quick"]
            same &= all(own["data"].get(name, digest) == digest for name, digest in kept["data"].items())
            bandit = found["bandit"] or {"worlds": {}, "regret": None}
            done = {key: Run(**run) for key, run in found["runs"].items()}
            done |= {"theory": found["theory"], bandit_part.REGRET: bandit["regret"]}
            done |= {bandit_part.MARK + name: world for name, world in bandit["worlds"].items()}
            done |= {certify_part.MARK + name: value for name, value in (found.get("certificates") or {}).items()}
            other_seeds = {bandit_part.MARK + n for n, w in bandit["worlds"].items() if len(w["seeds"]) != self.seeds}
            self.seconds = float(found["seconds"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise LolsError(f"{path}: holds no results to go on from; leave out --resume, or name another") from None
        if not same:
            raise LolsError(f"{path}: has runs of other data or another version; leave out --resume, or name another")
        wanted = {work.name for work in self.work}
        self.kept = {key: run for key, run in found["runs"].items() if key not in wanted}
        self.known = {name: digest for name, digest in kept["data"].items() if name not in self.places}
        left_out = {*self.kept, *(other_seeds & wanted)}
        self.done = {name: value for name, value in done.items() if name not in left_out and value is not None}

    def write(self) -> None:
        """Write what is done, as JSON; an interruption leaves the old file or the new one."""
        if self.file is not None:
            write_whole(self.file, json.dumps(self.result(), indent=1, ensure_ascii=False).encode("utf-8"))
            self.written = time.monotonic()

    def _named(self, mark: str) -> dict[str, Any]:
        """The results whose names begin so, in the order of the work, whichever was done first."""
        order = dict.fromkeys([*(work.name for work in self.work), *self.done])
        return {
            name.removeprefix(mark): self.done[name] for name in order if name.startswith(mark) and name in self.done
        }

    def result(self) -> dict[str, Any]:
        """All of it, as plain values."""
        runs = {name: found for name, found in self.done.items() if isinstance(found, Run)}
        tables = {
            name: make_table(place, runs, self.seeds, self._table_command(place.spec.paper))
            for name, place in self.places.items()
        }
        worlds = self._named(bandit_part.MARK)
        regret = worlds.pop(bandit_part.REGRET.removeprefix(bandit_part.MARK), None)
        return {
            "version": __version__,
            "command": self.command,
            "quick": self.quick,
            "seeds": list(range(self.seeds)),
            "data": {name: place.spec.about for name, place in self.places.items()},
            "seconds": self.seconds + time.perf_counter() - self.began,
            "tables": tables,
            "claims": judge_claims(tables),
            "theory": self.done.get("theory"),
            "bandit": {"worlds": worlds, "regret": regret} if worlds or regret else None,
            "certificates": self._named(certify_part.MARK) or None,
            "settings": self.settings(),
            "runs": {name: run._asdict() for name, run in runs.items()} | self.kept,
        }


def check_file(path: str | os.PathLike[str]) -> None:
    """Raise an error, before the work, if a file could not be written."""
    target = Path(path)
    if target.is_dir():
        raise LolsError(f"{target}: is a folder; name a file")
    if not target.parent.is_dir():
        raise LolsError(f"{target}: there is no folder {target.parent}; make it, or name another file")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise LolsError(f"{target}: cannot be written; name another file")


def check_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder for pictures if it is missing; raise an error if they could not be written."""
    target = Path(path)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LolsError(f"{target}: cannot be made a folder ({error.strerror}); name another") from None
    check_plot(target / "table2.png")
