"""How rows, learners, metrics and figures of the tables are printed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["LEARNERS", "METRICS", "UNITS", "row_name", "shown"]

ROWS = {"searn": "Searn", "auto": "LOLS, β = auto"}
LEARNERS = {"csoaa": "csoaa, the paper's learner", "hinge": "hinge, our default"}
METRICS = {
    "accuracy": "accuracy, % of words with the right tag",
    "uas": "unlabelled attachment, % of words with the right head",
    "cost": "average cost",
}
UNITS = {"accuracy": "accuracy, %", "uas": "UAS, %", "cost": "average cost"}


def row_name(row: str) -> str:
    """The name of a row.

    >>> row_name("learned/mixture"), row_name("searn")
    ('learned / mixture', 'Searn')
    """
    return ROWS.get(row) or row.replace("/", " / ")


def shown(table: Mapping[str, Any], value: float) -> str:
    """A figure of a table: percentages have two decimals, costs four."""
    return f"{value:.2f}" if table.get("unit", "percent") == "percent" else f"{value:.4f}"
