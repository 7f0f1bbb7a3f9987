"""The identity of a log: the settings that what is in it depends on, as JSON, and where two of them differ."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lols.errors import ConfigurationError, ModelFileError

__all__ = ["compare", "parsed", "written"]

_SHOWN = 60  # characters of a value in a message
_MOST = 5  # differences in a message


def written(identity: Mapping[str, Any]) -> str:
    """The identity as it is kept in the log."""
    try:
        return json.dumps(dict(identity), sort_keys=True, allow_nan=False, default=_number)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"the identity of a log must be JSON: {error}") from error


def _number(value: Any) -> Any:
    """A number of NumPy as a plain one."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} is no value of JSON")


def parsed(text: Any, path: Path) -> dict[str, Any]:
    """The identity as `written` made it."""
    try:
        value = json.loads(text)
    except (TypeError, ValueError):
        value = None
    if not isinstance(value, dict):
        raise ModelFileError(f"{path}: the identity of the log is damaged: restore the file from a copy")
    return value


def compare(held: Mapping[str, Any], wanted: Mapping[str, Any], path: Path) -> None:
    """Refuse a log of other settings, naming what differs.

    >>> compare({"space": {"labels": 3}, "seed": 1}, {"space": {"labels": 4}, "seed": 1}, Path("shown.log"))
    Traceback (most recent call last):
    lols.errors.ConfigurationError: shown.log: of another bandit: space.labels is 3 in the log and 4 here; give the same
    settings, or another file
    """
    one, other = dict(_leaves(held)), dict(_leaves(wanted))
    different = [name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)]
    if different:
        said = [
            f"{name} is {_shown(one, name)} in the log and {_shown(other, name)} here" for name in different[:_MOST]
        ]
        if len(different) > _MOST:
            said.append(f"{len(different) - _MOST} more")
        fix = "give the same settings, or another file"
        if all(name.endswith(".digest") for name in different):
            fix = (
                "its functions (or Python, NumPy or lols) are of another version: go back to that, or give another file"
            )
        raise ConfigurationError(f"{path}: of another bandit: {', '.join(said)}; {fix}")


def _leaves(value: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, str]]:
    """Each setting by its full name (`learner.rate`), as JSON: there 1, 1.0 and true are three things."""
    for name, inner in value.items():
        if isinstance(inner, dict) and inner:
            yield from _leaves(inner, f"{above}{name}.")
        else:
            yield f"{above}{name}", json.dumps(inner, ensure_ascii=False)


def _shown(leaves: Mapping[str, str], name: str) -> str:
    text = leaves.get(name, "not given")
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."
