"""The results of `lols reproduce all --data DIR`, stored with the package.

They are shown beside figures on generated data, and say how long runs take.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Any

from lols.reproduction.plan import TABLES, Cell, TableSpec

__all__ = ["brief", "public_results", "usual_seconds"]

FILE = Path(__file__).with_name("public_results.json")
LEAST = 0.3  # seconds that a run takes, however small its data are


@cache
def public_results() -> Mapping[str, Any]:
    """What is stored."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def brief(result: Mapping[str, Any]) -> dict[str, Any]:
    """What of a result is stored: tables without curves, and the words of the claims."""
    kept = {name: result[name] for name in ("version", "command", "seeds", "seconds")}
    tables = {
        name: table | {"name": name, "curves": [], "beta": None, "cells": [_rounded(cell) for cell in table["cells"]]}
        for name, table in result["tables"].items()
    }
    words = ("id", "claim", "ours_only", "table", "task", "teacher", "learner", "text", "paper", "ours")
    return kept | {"tables": tables, "claims": [{name: claim[name] for name in words} for claim in result["claims"]]}


def _rounded(cell: Mapping[str, Any]) -> dict[str, Any]:
    values = [round(value, 4) for value in cell["values"]]
    return {**cell, "values": values} | {name: round(cell[name], 4) for name in ("mean", "sd", "se", "seconds")}


def usual_seconds(cell: Cell, spec: TableSpec) -> float:
    """How long a run took on the public data, on as many examples as here: a rough guess.

    >>> cell, small = Cell("table4", "learned/mixture", "bad", "hinge", 0), TABLES["table4"]._replace(size=340)
    >>> LEAST < usual_seconds(cell, small) < usual_seconds(cell, TABLES["table4"])
    True
    """
    table = public_results()["tables"].get(cell.table) or public_results()["tables"][spec.paper]
    usual = fmean(c["seconds"] for c in table["cells"])
    of_row = [c["seconds"] for c in table["cells"] if c["row"] == cell.row and c["learner"] == cell.learner]
    share = spec.size * spec.passes / (TABLES[table["name"]].size * table["passes"])
    return LEAST + share * (fmean(of_row) if of_row else usual)
