"""`lols reproduce` without its command line: what to run, what is done already, and the result as plain values."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lols._version import __version__
from lols.contract.threads import cores
from lols.engines import Engine, InProcess, Processes
from lols.errors import ConfigurationError, LolsError
from lols.io.whole_file import check_output, write_whole
from lols.reproduction import parts
from lols.reproduction.cells import Run, measure
from lols.reproduction.claims import judge_claims
from lols.reproduction.data import DataPlace, generated, public
from lols.reproduction.parts import BANDIT, CERTIFICATE, REGRET
from lols.reproduction.plan import (
    COIN,
    EWT,
    PARTS,
    ROWS,
    TABLES,
    Work,
    beta_row,
    cells_of,
    compiling_first,
    usual_seconds,
)
from lols.reproduction.story import run_story
from lols.reproduction.tables import make_table
from lols.reproduction.theory_part import run_theory

FEW_SEEDS = 2  # when quick
SEEDS, PATIENCE = 3, 80 * 60.0  # else, if all take fewer seconds of one core than this; or one
LONGEST = ("parsing", "tagging", "classification")  # to compile
COMPILING = 15.0  # seconds, for the first run of a task
OFTEN = 2.0  # seconds from one writing of the results to the next

Watch = Callable[[int, int, list[str], float], None]  # items done, items in all, what is running, seconds left


def reproduce(
    part: str = "all",
    *,
    data: str | os.PathLike[str] | None = None,
    download: bool = False,
    quick: bool = False,
    seeds: int | None = None,
    only: Sequence[str] = (),
    workers: int | None = None,
    engine: Engine | None = None,
    file: str | os.PathLike[str] | None = None,
    resume: bool = False,
    watch: Watch | None = None,
    say: Callable[[str], None] | None = None,
    show: Callable[[str, Any], None] | None = None,
    command: str = "",
) -> dict[str, Any]:
    """Run the paper's experiments, and return tables, claims, theory and bandit as plain values.

    Options are those of the command, which has their help; `file` is that of `--json`. With several workers, a script
    must guard its own work by `if __name__ == "__main__":`. `watch` is called with the progress, `say` with what comes
    before it, `show` with the name and the result of each piece of work. `command` is for the report. `engine` runs the
    cells in place of processes of this machine; on a cluster, all machines must see the data under the same names.
    """
    if part not in PARTS:
        raise ConfigurationError(f"unknown part '{part}': choose one of {', '.join(PARTS)}")
    _check_effects(part, {"--data": data, "--download": download, "--seeds": seeds, "--only": only})
    rows = (*ROWS, *map(beta_row, TABLES["table2"].betas), COIN)
    for row in only:
        if row not in rows:
            raise ConfigurationError(f"--only has no row '{row}': choose from {', '.join(dict.fromkeys(rows))}")
    if part == "bandit" and data is not None and not _has_treebank(data):
        needed = " and ".join(EWT)
        raise ConfigurationError(f"{os.fspath(data)}: holds no {needed}, which the bandit needs; leave out --data")
    for option, number in (("--seeds", seeds), ("--workers", workers)):
        if number is not None and number < 1:
            raise ConfigurationError(f"{option} is {number}; it must be at least 1")
    if resume and file is None:
        raise ConfigurationError("--resume goes on from a file of results: name it with --json")
    if file is not None:
        check_output(file)
    tables = [name for name in ("table2", "table3", "table4") if part in (name, "all")]
    with ExitStack() as stack:
        if data is None and not download:
            places = generated(tables, stack.enter_context(tempfile.TemporaryDirectory(prefix="lols-")), quick=quick)
        else:
            places = public(tables, data, fetch=download, quick=quick, say=say)
        if only:
            places, part = [place._replace(spec=place.spec.only(only)) for place in places], "" if tables else part
        state = _State(part, places, quick, seeds, data, command, file)
        if resume:
            state.load()
        missing = [work for work in state.work if work.name not in state.done]
        total = len(missing) + len(state.done)
        if engine is None:
            count = min(workers or cores(), len(missing))
            engine = Processes(workers=count) if count > 1 else InProcess()
        clock = _Clock(missing, engine.count)

        def look(running: list[str]) -> None:
            if watch is not None:
                watch(len(state.done), total, running, clock.left(state.done))

        def keep(work: Work, found: Any) -> None:
            state.keep(work, found)
            if show is not None:
                show(work.name, found)

        try:
            run_work(missing, engine, keep, look)
        finally:
            state.write()
    return state.result()


def run_work(
    work: Iterable[Work], engine: Engine, keep: Callable[[Work, Any], None], watch: Callable[[list[str]], None]
) -> None:
    """Run work by an engine; the results do not depend on it.

    `keep` is called with each work and its result, `watch` with what is running whenever that changes.
    """
    order = compiling_first(work)
    running: dict[int, str] = {}

    def begun() -> Iterator[Work]:
        for number, one in enumerate(order):
            running[number] = one.words or one.name
            watch(list(running.values()))
            yield one

    with engine.start() as workers:
        for number, found in workers.completed(_done, begun()):
            del running[number]
            keep(order[number], found)


def _done(work: Work) -> Any:
    return work.function(*work.arguments)


class _Clock:
    """How many seconds are left: by how long runs usually take, and more and more by how long they take here."""

    def __init__(self, work: Sequence[Work], workers: int):
        self.usual = {one.name: one.seconds for one in work}
        kernels = {one.kernel[0]: one.name for one in reversed(work) if one.kernel is not None}
        for name in kernels.values():
            self.usual[name] += COMPILING
        self.total, self.workers, self.began = sum(self.usual.values()), workers, time.perf_counter()

    def left(self, done: Mapping[str, Any]) -> float:
        """The seconds left; the guess weighs as much as a tenth of the work."""
        finished = sum(seconds for name, seconds in self.usual.items() if name in done)
        guess = 0.1 * self.total
        pace = (time.perf_counter() - self.began + guess / self.workers) / max(finished + guess, 1e-9)
        return (self.total - finished) * pace


def _has_treebank(data: str | os.PathLike[str]) -> bool:
    """Whether a folder has what the bandit needs."""
    return all((Path(data) / name).is_file() for name in EWT)


def _check_effects(part: str, given: Mapping[str, Any]) -> None:
    """Refuse options that are given although this part has no use for them."""
    for option, idle, why in (
        ("--data", ("story", "theory"), "it needs no data"),
        ("--download", ("story", "theory", "bandit"), "it downloads no data"),
        ("--seeds", ("theory",), "it is computed exactly"),
        ("--seeds", ("story",), "it always has three"),
        ("--only", ("story", "theory", "bandit"), "it has no rows"),
    ):
        if given[option] and part in idle:
            raise ConfigurationError(f"{option} has no effect on {part}: {why}; leave it out")


class _State:
    """What is wanted, and what is done."""

    def __init__(
        self,
        part: str,
        places: Sequence[DataPlace],
        quick: bool,
        seeds: int | None,
        data: str | os.PathLike[str] | None,
        command: str,
        file: str | os.PathLike[str] | None,
    ):
        self.places, self.quick = {place.spec.name: place for place in places}, quick
        self.command, self.file, self.generated = command, file, all(place.label == "upos" for place in places)
        self.seeds = seeds or (FEW_SEEDS if quick else SEEDS)
        cells = self._cells()
        if seeds is None and not quick and sum(work.seconds for work in cells) > PATIENCE:
            self.seeds, cells = 1, [work for work in cells if work.name.endswith("|0")]
        self.work = [*self._parts(part, data), *cells]
        if part and (place := self.places.get(parts.CERTIFIED_TABLE)):
            self.work += parts.certify_work(place, quick, self._table_command(parts.CERTIFIED_TABLE))
        self.done: dict[str, Any] = {}  # by the name of the work
        self.kept: dict[str, Any] = {}  # runs of a file that are not asked for now
        self.known: dict[str, str] = {}  # and on which data they were
        self.seconds, self.began = 0.0, time.perf_counter()
        self.written = 0.0

    def _parts(self, part: str, data: str | os.PathLike[str] | None) -> list[Work]:
        """The story, which is shown first; theory and bandit: long work, which is not to be left over in the end."""
        made = [Work("story", run_story, words="a policy overtakes its teacher", seconds=15.0)]
        made += [Work("theory", run_theory, (self.quick,), seconds=10.0 if self.quick else 50.0)]
        made = [work for work in made if part in (work.name, "all")]
        if part in ("bandit", "all"):
            folder = os.fspath(data) if data is not None and _has_treebank(data) else None
            made += parts.bandit_work(self.quick, self.seeds, folder)
        return made

    def _cells(self) -> list[Work]:
        """The cells of all tables, further data sets last; what takes longest to compile first, while others run."""
        order = sorted(
            self.places.values(), key=lambda p: (p.spec.name != p.spec.paper, LONGEST.index(p.spec.printed.task))
        )
        return [
            Work(cell.key, measure, (cell, place), (spec.printed.task, cell.teacher), cell.words, usual_seconds(spec))
            for place in order
            for spec in [place.spec]
            for cell in cells_of(spec, self.seeds)
        ]

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
            done |= {"story": found.get("story"), "theory": found["theory"], REGRET: bandit["regret"]}
            done |= {BANDIT + name: world for name, world in bandit["worlds"].items()}
            done |= {CERTIFICATE + name: value for name, value in (found.get("certificates") or {}).items()}
            other_seeds = {BANDIT + n for n, w in bandit["worlds"].items() if len(w["seeds"]) != self.seeds}
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
        worlds = self._named(BANDIT)
        regret = worlds.pop(REGRET.removeprefix(BANDIT), None)
        return {
            "version": __version__,
            "command": self.command,
            "quick": self.quick,
            "generated": self.generated,
            "seeds": list(range(self.seeds)),
            "data": {name: place.spec.about for name, place in self.places.items()},
            "seconds": self.seconds + time.perf_counter() - self.began,
            "story": self.done.get("story"),
            "tables": tables,
            "claims": judge_claims(tables),
            "theory": self.done.get("theory"),
            "bandit": {"worlds": worlds, "regret": regret} if worlds or regret else None,
            "certificates": self._named(CERTIFICATE) or None,
            "settings": self.settings(),
            "runs": {name: run._asdict() for name, run in runs.items()} | self.kept,
        }
