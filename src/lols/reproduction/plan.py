"""What is run for each table: strategies, teachers, learners, values of β, and how long."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from lols.reproduction.paper import LOLS, PAPER, STRATEGIES, TEACHERS, PaperTable, data_file

LEARNERS = ("csoaa", "hinge")  # the paper's, and our default
ROWS = (*STRATEGIES, "searn", "auto")
COIN = "learned/mixture, coin per roll-out"  # Algorithm 1 as printed: deviations of a state may have other finishers
CURVES = ("learned/reference", "learned/mixture", "learned/learned", "searn", "auto")
PARTS = ("story", "table2", "table3", "table4", "theory", "bandit", "all")
LEAST = 0.3  # seconds that a run takes, however small its data are
# Seconds for a row or sentence and pass, on average.
PACE = {"classification": 3e-6, "tagging": 6e-4, "parsing": 1.3e-3}
QUICK_BETAS = (0.0, 0.25, 0.5, 0.75, 1.0)
# A mixture that is all teacher or all learner is a row of its own; one half is LOLS.
SAME = {0.0: "learned/learned", 0.5: LOLS, 1.0: "learned/reference"}


class TableSpec(NamedTuple):
    """One table: of the paper, or the same on another data set; `tables.toml` lists them."""

    name: str
    paper: str  # which of the paper's tables
    title: str
    files: tuple[str, str]  # of the public data: to learn from, and to test on
    size: int  # rows or sentences to learn from
    tested: int  # rows or words to test on
    about: str
    teachers: tuple[str, ...] = TEACHERS
    learners: tuple[str, ...] = LEARNERS
    rows: tuple[str, ...] = ROWS
    betas: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
    coins: bool = False  # whether the coin of Algorithm 1 is tried, too
    passes: int = 5

    def in_brief(self) -> TableSpec:
        """The same with the teachers of the paper's own table, each of which is compiled for itself, and fewer β."""
        teachers = tuple(name for name in self.teachers if name in self.printed.figures)
        return self._replace(teachers=teachers, betas=tuple(beta for beta in self.betas if beta in QUICK_BETAS))

    def only(self, rows: Collection[str]) -> TableSpec:
        """The same with some rows."""
        return self._replace(
            rows=tuple(row for row in self.rows if row in rows),
            betas=tuple(beta for beta in self.betas if beta_row(beta) in rows),
            coins=self.coins and COIN in rows,
        )

    @property
    def printed(self) -> PaperTable:
        """The paper's table."""
        return PAPER[self.paper]


def _table(name: str, facts: dict[str, Any]) -> TableSpec:
    lists = {key: tuple(value) for key, value in facts.items() if isinstance(value, list)}
    return TableSpec(name, **facts | lists)


TABLES = {name: _table(name, facts) for name, facts in data_file("tables.toml").items()}
KDD99, EWT = TABLES["table2"].files, TABLES["table4-ewt"].files


class Cell(NamedTuple):
    """One training run."""

    table: str
    row: str
    teacher: str
    learner: str
    seed: int

    @property
    def key(self) -> str:
        """Its name in files."""
        return "|".join(map(str, self))

    @property
    def words(self) -> str:
        """What it is, for people."""
        return f"{self.table} {self.row}, {self.teacher} teacher, {self.learner}, seed {self.seed}"


def beta_row(beta: float) -> str:
    """The row that has LOLS with this β.

    >>> beta_row(0.25), beta_row(0.5), beta_row(1.0)
    ('beta=0.25', 'learned/mixture', 'learned/reference')
    """
    return SAME.get(beta, f"beta={beta:g}")


def row_name(row: str) -> str:
    """The name of a row, for people.

    >>> row_name("learned/mixture"), row_name("searn")
    ('learned / mixture', 'Searn')
    """
    return {"searn": "Searn", "auto": "LOLS, β = auto"}.get(row) or row.replace("/", " / ")


def options_of(row: str) -> dict[str, Any]:
    """The options of an estimator for a row.

    >>> options_of("reference/learned")
    {'algorithm': 'lols', 'roll_in': 'reference', 'roll_out': 'learned'}
    >>> options_of("beta=0.25")
    {'algorithm': 'lols', 'beta': 0.25}
    """
    if row == "searn":
        return {"algorithm": "searn"}
    if row == "auto":
        return {"algorithm": "lols", "beta": "auto"}
    if row == COIN:
        return {"algorithm": "lols", "mix": "rollout"}
    if row.startswith("beta="):
        return {"algorithm": "lols", "beta": float(row.removeprefix("beta="))}
    roll_in, roll_out = row.split("/")
    return {"algorithm": "lols", "roll_in": roll_in, "roll_out": roll_out}


def run_as(cell: Cell, spec: TableSpec) -> Cell:
    """The cell whose run gives this cell's figures: where only the learner acts, the teacher does not matter."""
    return cell._replace(teacher=spec.teachers[0]) if cell.row == "learned/learned" else cell


def cells_of(spec: TableSpec, seeds: int) -> list[Cell]:
    """All runs that a table needs, each once.

    >>> made = cells_of(TABLES["table3"]._replace(betas=(0.0, 0.25, 0.5, 1.0)), 1)
    >>> len(made), len(set(made)), made[0].words
    (52, 52, 'table3 reference/reference, optimal teacher, csoaa, seed 0')
    """
    wanted = []
    for seed in range(seeds):
        for teacher in spec.teachers:
            coin = [COIN] if spec.coins and teacher == "optimal" else []
            rows = (*spec.rows, *map(beta_row, spec.betas), *coin)
            for learner in spec.learners:
                wanted += [run_as(Cell(spec.name, row, teacher, learner, seed), spec) for row in rows]
    return list(dict.fromkeys(wanted))


def usual_seconds(spec: TableSpec) -> float:
    """About how long one run of a table takes."""
    return LEAST + PACE[spec.printed.task] * spec.size * spec.passes


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
