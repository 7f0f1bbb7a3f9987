"""Results of `lols reproduce` on the public data sets, stored with the package to be shown beside those of small data.

`python -m lols.reproduction.stored RESULT.json` stores those of a new run.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["brief", "public_results"]

FILE = Path(__file__).with_name("public_results.json")


@cache
def public_results() -> Mapping[str, Any]:
    """What is stored: tables without curves, and the words of the claims.

    >>> sorted(public_results()["tables"])
    ['table2', 'table3', 'table4']
    """
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def brief(result: Mapping[str, Any]) -> dict[str, Any]:
    """What of a result is stored."""
    kept = {name: result[name] for name in ("version", "command", "seeds")}
    tables = {
        name: table | {"curves": [], "beta": None, "coins": None, "cells": [_rounded(cell) for cell in table["cells"]]}
        for name, table in result["tables"].items()
        if name == table["paper_name"]
    }
    claims = [{n: claim[n] for n in ("id", "ours")} for claim in result["claims"] if claim["table"] in tables]
    return kept | {"tables": tables, "claims": claims}


def _rounded(cell: Mapping[str, Any]) -> dict[str, Any]:
    figures = {name: round(cell[name], 4) for name in ("mean", "sd", "se", "seconds")}
    return {**cell, **figures, "values": [round(value, 4) for value in cell["values"]]}


if __name__ == "__main__":
    made = brief(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))
    FILE.write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
