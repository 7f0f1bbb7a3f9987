"""Engines: who does the work of a run: this process, other processes of this machine, or the machines of a Ray cluster.

An `Engine` is a few settings. Started, it is `Workers`: values are shared with them once, and functions are mapped over
items. Everything else (exact training, mixing, prediction, experiments) is written on these two, once for all of them.
"""

from __future__ import annotations

from lols.engines.files import ExampleFiles, Files
from lols.engines.processes import Processes
from lols.engines.protocol import Engine, InProcess, SharedValue, Workers
from lols.engines.ray import Ray
from lols.errors import ConfigurationError

__all__ = ["Engine", "ExampleFiles", "Files", "InProcess", "Processes", "Ray", "SharedValue", "Workers", "as_engine"]

ENGINES: dict[str, type[Engine]] = {"this": InProcess, "processes": Processes, "ray": Ray}


def as_engine(given: str | Engine | None) -> Engine:
    """The engine that is meant by its name, `"this"`, `"processes"` or `"ray"`; None is this process.

    Parameters
    ----------
    given
        A name, an engine, or None.

    Examples
    --------
    >>> type(as_engine("processes")).__name__, as_engine(None)
    ('Processes', InProcess(sync='exact', shards=None, legs=None))

    """
    if isinstance(given, Engine):
        return given
    if given is not None and given not in ENGINES:
        raise ConfigurationError(f"unknown engine '{given}': choose this, processes or ray")
    return ENGINES[given or "this"]()
