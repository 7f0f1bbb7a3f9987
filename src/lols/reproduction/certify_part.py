"""Certificates of three parsers: what Theorem 3 says of policies under a good and a bad teacher."""

from __future__ import annotations

from typing import Any

from lols.reproduction.cells import data_of, options_for
from lols.reproduction.data import DataPlace
from lols.reproduction.paper import LOLS
from lols.reproduction.plan import Cell
from lols.reproduction.runner import Work

__all__ = ["MARK", "TABLE", "certified", "certify_work"]

TABLE = "table4"  # here teachers differ most
POLICIES = {
    "LOLS, optimal teacher": Cell(TABLE, LOLS, "optimal", "hinge", 0),
    "LOLS, bad teacher": Cell(TABLE, LOLS, "bad", "hinge", 0),
    "Reference roll-outs, bad teacher": Cell(TABLE, "learned/reference", "bad", "hinge", 0),
}
LEFT_OUT = ("LOLS, optimal teacher",)  # when quick: it has a kernel of its own
LIMIT = {True: 100, False: 400}  # sentences, quick or not
MARK = "certificate: "


def certify_work(place: DataPlace | None, quick: bool, command: str) -> list[Work]:
    """What there is to do, where parsers are trained at all."""
    if place is None:
        return []
    return [
        Work(MARK + name, certified, (cell, place, LIMIT[quick], command), (place.spec.task, cell.teacher))
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
