"""`lols reproduce` without its command line: what to run, what is done already, and the result as plain values."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from lols import __version__
from lols.errors import ConfigurationError, LolsError
from lols.io.whole_file import write_whole
from lols.plots.look import check_matplotlib, check_plot
from lols.reproduction.bandit_part import REGRET, bandit_work, join_bandit
from lols.reproduction.cells import Run
from lols.reproduction.certify_part import MARK, TABLE, certify_work, join_certificates
from lols.reproduction.claims import judge_claims
from lols.reproduction.data import FILES, DataPlace, generated, public
from lols.reproduction.plan import PARTS, Cell, cells_of
from lols.reproduction.runner import Item, Work, run_items
from lols.reproduction.tables import make_table

__all__ = ["check_file", "check_folder", "check_page", "reproduce", "write_json"]

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
    if part == "bandit" and data is not None and bandit_data(data) is None:
        needed = " and ".join(FILES["table4-ewt"])
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
            made = generated(tables, stack.enter_context(tempfile.TemporaryDirectory(prefix="lols-")), quick=quick)
        else:
            made = public(tables, data, fetch=download, quick=quick, say=say)
        places = {place.table: place for place in made}
        state = _State(places, quick, count, part, command, file)
        if resume:
            state.load()
        items = state.missing(bandit_data(data))
        total = len(items) + len(state.runs) + len(state.others)

        def look(running: list[str]) -> None:
            if watch is not None:
                watch(len(state.runs) + len(state.others), total, running)

        try:
            run_items(items, places, jobs=jobs or cores(), keep=state.keep, watch=look)
        finally:
            state.write()
    return state.result()


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
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def bandit_data(data: str | os.PathLike[str] | None) -> str | None:
    """The folder for the bandit that tags, if it has what that needs."""
    if data is None or not all((Path(data) / name).is_file() for name in FILES["table4-ewt"]):
        return None
    return os.fspath(data)


class _State:
    """What is wanted, and what is done."""

    def __init__(
        self,
        places: Mapping[str, DataPlace],
        quick: bool,
        seeds: int,
        part: str,
        command: str,
        file: str | os.PathLike[str] | None,
    ):
        self.places, self.quick, self.seeds = places, quick, seeds
        self.part, self.command, self.file = part, command, file
        self.runs: dict[str, Run] = {}
        self.others: dict[str, Any] = {}
        self.kept: dict[str, Any] = {}  # runs of a file that are not asked for now
        self.known: dict[str, str] = {}  # and on which data they were
        self.seconds, self.began = 0.0, time.perf_counter()
        self.written = 0.0

    def betas(self, place: DataPlace) -> tuple[float, ...]:
        return place.spec.quick_betas if self.quick else place.spec.betas

    def wanted(self) -> list[Cell]:
        """The cells of all tables, further data sets last; what takes longest to compile first, while others run."""
        order = sorted(self.places.values(), key=lambda p: (p.table != p.spec.paper, LONGEST.index(p.spec.task)))
        return [cell for place in order for cell in cells_of(place.spec, self.seeds, self.betas(place))]

    def work(self, data: str | None) -> list[Work]:
        """What is to be done besides the cells."""
        made = []
        if self.part in ("theory", "all"):
            from lols.reproduction.theory_part import run_theory

            made.append(Work("theory", run_theory, (self.quick,)))
        if self.part in ("bandit", "all"):
            made += bandit_work(self.quick, self.seeds, data)
        return made

    def table_command(self, table: str) -> str:
        """The command for one table of the paper."""
        return self.command.replace("reproduce all", f"reproduce {table}")

    def missing(self, data: str | None) -> list[Item]:
        """What is still to run; long work first, so that it is not left over in the end."""
        certificates = certify_work(self.places.get(TABLE), self.quick, self.table_command(TABLE))
        return [
            *(work for work in self.work(data) if work.name not in self.others),
            *(cell for cell in self.wanted() if cell.key not in self.runs),
            *(work for work in certificates if work.name not in self.others),
        ]

    def keep(self, item: Item, found: Any) -> None:
        """Take a result, and write all of them now and then."""
        if isinstance(item, Cell):
            self.runs[item.key] = found
        else:
            self.others[item.name] = found
        if time.monotonic() - self.written >= OFTEN:
            self.write()

    def settings(self) -> dict[str, Any]:
        """What runs must have in common."""
        digests = {name: f"{place.digest}, {place.passes} passes" for name, place in self.places.items()}
        return {"version": __version__, "quick": self.quick, "data": self.known | digests}

    def load(self) -> None:
        """Take over the results of a file."""
        assert self.file is not None
        path = os.fspath(self.file)
        if not Path(path).exists():
            return  # nothing is done yet
        try:
            found = json.loads(Path(path).read_text(encoding="utf-8"))
            kept, own = found["settings"], self.settings()
            same = kept["version"] == own["version"] and kept["quick"] == own["quick"]
            same &= all(own["data"].get(name, digest) == digest for name, digest in kept["data"].items())
            runs = {key: Run(**run) for key, run in found["runs"].items()}
            bandit = found["bandit"] or {"worlds": {}, "regret": None}
            others = {f"bandit {name}": value for name, value in bandit["worlds"].items()}
            others |= {"theory": found["theory"], REGRET: bandit["regret"]}
            others |= {MARK + name: value for name, value in (found.get("certificates") or {}).items()}
            seconds = float(found["seconds"])
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            raise LolsError(f"{path}: holds no results to go on from; leave out --resume, or name another") from None
        if not same:
            raise LolsError(f"{path}: has runs of other data or another version; leave out --resume, or name another")
        wanted = {cell.key for cell in self.wanted()}
        self.runs = {key: run for key, run in runs.items() if key in wanted}
        self.kept = {key: run._asdict() for key, run in runs.items() if key not in wanted}
        self.known = {name: digest for name, digest in kept["data"].items() if name not in self.places}
        self.others = {name: value for name, value in others.items() if value is not None and self.fits(name, value)}
        self.seconds = seconds

    def fits(self, name: str, value: Mapping[str, Any]) -> bool:
        """Whether other work was done for the number of seeds that is asked for now."""
        asked = {work.name for work in self.work(None)} - {"theory", REGRET}
        return name not in asked or len(value["seeds"]) == self.seeds

    def write(self) -> None:
        """Write what is done."""
        if self.file is not None:
            write_json(self.file, self.result())
            self.written = time.monotonic()

    def result(self) -> dict[str, Any]:
        """All of it, as plain values."""
        tables = {
            name: make_table(
                place,
                self.runs,
                seeds=self.seeds,
                betas=self.betas(place),
                command=self.table_command(place.spec.paper),
            )
            for name, place in self.places.items()
        }
        return {
            "version": __version__,
            "command": self.command,
            "quick": self.quick,
            "seeds": list(range(self.seeds)),
            "data": {name: place.about for name, place in self.places.items()},
            "seconds": self.seconds + time.perf_counter() - self.began,
            "tables": tables,
            "claims": judge_claims(tables),
            "theory": self.others.get("theory"),
            "bandit": join_bandit(self.others),
            "certificates": join_certificates(self.others) or None,
            "settings": self.settings(),
            "runs": {key: run._asdict() for key, run in self.runs.items()} | self.kept,
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


def check_page(path: str | os.PathLike[str]) -> None:
    """Raise an error if the report could not be written; its charts need matplotlib."""
    check_file(path)
    check_matplotlib()


def check_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder for pictures if it is missing; raise an error if they could not be written."""
    target = Path(path)
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise LolsError(f"{target}: cannot be made a folder ({error.strerror}); name another") from None
    check_plot(target / "table2.png")


def write_json(path: str | os.PathLike[str], values: Mapping[str, Any]) -> None:
    """Write plain values as JSON; an interruption leaves the old file or the new one."""
    write_whole(path, json.dumps(values, indent=1, ensure_ascii=False).encode("utf-8"))
