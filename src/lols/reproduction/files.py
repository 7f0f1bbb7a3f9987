"""The data and texts of this package, which are TOML files beside its modules."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any


def data_file(name: str) -> dict[str, Any]:
    """What a TOML file of this folder has."""
    return tomllib.loads(Path(__file__).with_name(name).read_text(encoding="utf-8"))
