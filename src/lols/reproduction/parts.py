"""Work that an engine runs: the cells of tables, the structured bandit (section 5), and certificates of parsers."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from lols.engines import Engine, InProcess, Processes
from lols.reproduction.cells import data_of, options_for
from lols.reproduction.data import DataPlace
from lols.reproduction.paper import LOLS
from lols.reproduction.plan import Cell

REGRET = "bandit regret"
BANDIT = "bandit "  # how the names of its work begin
LAYOUT_ROUNDS = {True: 4_000, False: 20_000}  # quick or not
TAGGING_ROUNDS = 20_000
REGRET_ROUNDS = {True: (1_000, 3_000, 10_000), False: (1_000, 10_000, 100_000)}
REGRET_SEEDS = {True: 2, False: 4}
HELD_OUT = {True: 300, False: None}
BETA = 0.5
SLOPE = -1 / 3  # Corollary 2: the regret falls at least as the third root of the rounds

CERTIFICATE = "certificate: "
CERTIFIED_TABLE = "table4"  # here teachers differ most
POLICIES = {
    "LOLS, optimal teacher": Cell(CERTIFIED_TABLE, LOLS, "optimal", "hinge", 0),
    "LOLS, bad teacher": Cell(CERTIFIED_TABLE, LOLS, "bad", "hinge", 0),
    "Reference roll-outs, bad teacher": Cell(CERTIFIED_TABLE, "learned/reference", "bad", "hinge", 0),
}
LEFT_OUT = ("LOLS, optimal teacher",)  # when quick: it has a kernel of its own
SENTENCES = {True: 100, False: 400}  # to certify on, quick or not


class Work(NamedTuple):
    """Something to run: a function that processes can import, and what it is called with."""

    name: str  # in files
    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    kernel: tuple[str, str] | None = None  # a task and a teacher: what is compiled for it
    words: str = ""  # for people, where the name will not do
    seconds: float = 10.0  # about how long it takes


def compiling_first(work: Iterable[Work]) -> list[Work]:
    """The order in which to begin: what compiles a kernel comes before what uses it again.

    >>> names = [("a", "bad"), ("b", "bad"), ("c", "optimal"), ("d", "")]
    >>> made = [Work(name, print, kernel=("tagging", teacher) if teacher else None) for name, teacher in names]
    >>> [one.name for one in compiling_first(made)]
    ['a', 'c', 'd', 'b']
    """
    work = list(work)
    first = {one.kernel: one.name for one in reversed(work)}
    return sorted(work, key=lambda one: one.kernel is not None and first[one.kernel] != one.name)


def run_work(
    work: Iterable[Work],
    *,
    workers: int,
    keep: Callable[[Work, Any], None],
    watch: Callable[[list[str]], None],
    engine: Engine | None = None,
) -> None:
    """Run work by an engine, by default in `workers` processes; the results do not depend on it.

    `keep` is called with each work and its result, `watch` with what is running whenever that changes. One worker is
    this process.
    """
    order = compiling_first(work)
    if engine is None:
        alone = workers == 1 or len(order) < 2
        engine = InProcess() if alone else Processes(workers=min(workers, len(order)))
    running: dict[int, str] = {}

    def begun() -> Iterator[Work]:
        for number, one in enumerate(order):
            running[number] = one.words or one.name
            watch(list(running.values()))
            yield one

    with engine.start() as started:
        for number, found in started.completed(_done, begun()):
            del running[number]
            keep(order[number], found)


def _done(work: Work) -> Any:
    return work.function(*work.arguments)


# --- the bandit -------------------------------------------------------------------------------------------------------


def bandit_work(quick: bool, seeds: int, data: str | None) -> list[Work]:
    """Simulations, and how the exact regret falls with the rounds; `data` is a folder with the EWT treebank."""
    layout = ("layout", LAYOUT_ROUNDS[quick], seeds, HELD_OUT[quick], None, not quick)
    tagging = ("tagging", TAGGING_ROUNDS, seeds, None, data)
    worlds = [layout] if quick else [layout, tagging]
    work = [Work(BANDIT + str(world[0]), simulated, world) for world in worlds]
    return [*work, Work(REGRET, regret_curve, (REGRET_ROUNDS[quick], REGRET_SEEDS[quick]))]


def simulated(
    world: str, rounds: int, seeds: int, held_out: int | None, data: str | None, full_information: bool = True
) -> dict[str, Any]:
    """What `lols bandit simulate` gives; without a learner that sees the truth there is less to compile."""
    from lols.bandit.worlds.outcome import summarise
    from lols.bandit.worlds.simulate import simulate_seeds
    from lols.bandit.worlds.world import WorldSpec

    spec = WorldSpec(world, data, held_out=held_out)
    found = summarise(simulate_seeds(spec, {}, rounds, range(seeds), jobs=1, full_information=full_information))
    command = f"lols bandit simulate {world} --rounds {rounds} --seeds {seeds}"
    command += "" if held_out is None else f" --held-out {held_out}"
    return {**found, "command": command + ("" if full_information else " --no-full-information")}


def regret_curve(rounds: tuple[int, ...], seeds: int, compiled: bool = True) -> dict[str, Any]:
    """The left side of Theorem 3 for the bandit, computed exactly, and its slope on logarithmic scales.

    >>> found = regret_curve((50, 200), 2, False)
    >>> found["rounds"], len(found["values"][0])
    ([50, 200], 2)
    """
    from lols.reproduction.theory.bandit_regret import log_log_slope, run_algorithm2, run_sides
    from lols.reproduction.theory.small_spaces import ladder_space

    space = ladder_space()
    values = []
    for n in rounds:
        runs = (run_algorithm2(space, n, seed=seed, beta=BETA, compiled=compiled) for seed in range(seeds))
        values.append([float(run_sides(space, lives, BETA).left) for lives in runs])
    slope = log_log_slope(rounds, values)
    return {
        "rounds": list(rounds),
        "seeds": list(range(seeds)),
        "values": values,
        "means": [statistics.fmean(v) for v in values],
        "slope": {name: float(value) for name, value in slope._asdict().items()},
        "bound": SLOPE,
    }


# --- certificates -----------------------------------------------------------------------------------------------------


def certify_work(place: DataPlace | None, quick: bool, command: str) -> list[Work]:
    """Certificates of parsers, where these are trained at all: what Theorem 3 says of policies and their teachers."""
    if place is None:
        return []
    return [
        Work(
            CERTIFICATE + name,
            certified,
            (cell, place, SENTENCES[quick], command),
            (place.spec.printed.task, cell.teacher),
        )
        for name, cell in POLICIES.items()
        if cell.teacher in place.spec.teachers and not (quick and name in LEFT_OUT)
    ]


def certified(cell: Cell, place: DataPlace, limit: int, command: str) -> dict[str, Any]:
    """Train the parser of a cell, and certify it on the test part."""
    from lols.certificates.certify import certify_case
    from lols.tasks.parsing.case import treebank_case

    data = data_of(place)
    corpus, *trees = data.test
    case = treebank_case(data.fit(**options_for(cell, place)), corpus, tuple(trees), None, limit, cell.seed)
    return {**certify_case(case, seed=cell.seed, progress=False).as_dict(), "command": command}
