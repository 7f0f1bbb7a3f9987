"""Versions that must be the same on all machines of a run, so that results are, and what is sent is understood."""

from __future__ import annotations

import platform
import socket
from collections.abc import Mapping
from importlib import metadata

from lols._version import __version__
from lols.errors import ConfigurationError


def versions() -> dict[str, str]:
    """The versions here, and the name of this machine.

    >>> sorted(versions())
    ['NumPy', 'Numba', 'Python', 'host', 'lols']
    """
    return {
        "lols": __version__,
        "Python": platform.python_version(),
        "NumPy": metadata.version("numpy"),
        "Numba": metadata.version("numba"),
        "host": socket.gethostname(),
    }


def check_versions(here: Mapping[str, str], there: Mapping[str, str]) -> None:
    """Raise an error that names both sides if a version differs.

    >>> check_versions({"Numba": "0.65", "host": "a"}, {"Numba": "0.62", "host": "b"})
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: a has Numba 0.65, and the worker on b has Numba 0.62: install the same on both
    """
    different = [name for name in here if name != "host" and here[name] != there.get(name)]
    if different:
        sides = (", ".join(f"{name} {side.get(name, 'unknown')}" for name in different) for side in (here, there))
        ours, theirs = sides
        raise ConfigurationError(
            f"{here['host']} has {ours}, and the worker on {there['host']} has {theirs}: install the same on both"
        )
