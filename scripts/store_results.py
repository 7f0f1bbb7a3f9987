"""Stores results of `lols reproduce` on the public data sets with the package, to be shown beside those of small data.

`python scripts/store_results.py RESULT.json`, with the file of `lols reproduce all --data DIR --json RESULT.json`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lols.reproduction.describe import STORED


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
    STORED.write_text(json.dumps(made, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
