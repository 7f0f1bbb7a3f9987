"""The structured contextual bandit: improve a live system from the loss of what was shown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lols.bandit.bandit import Shown, StructuredBandit
    from lols.bandit.guard import Guard
    from lols.bandit.log import MemoryLog, SqliteLog
    from lols.bandit.off_policy import deviations, evaluate_policy
    from lols.bandit.off_policy_estimates import Estimated, Evaluated

_HOME = {
    "Estimated": "off_policy_estimates",
    "Evaluated": "off_policy_estimates",
    "Guard": "guard",
    "MemoryLog": "log",
    "Shown": "bandit",
    "SqliteLog": "log",
    "StructuredBandit": "bandit",
    "deviations": "off_policy",
    "evaluate_policy": "off_policy",
}

__all__ = [
    "Estimated",
    "Evaluated",
    "Guard",
    "MemoryLog",
    "Shown",
    "SqliteLog",
    "StructuredBandit",
    "deviations",
    "evaluate_policy",
]


def __getattr__(name: str) -> Any:
    """Import a name when it is used: a log alone needs no compiler."""
    if name not in _HOME:
        raise AttributeError(f"module 'lols.bandit' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(f"lols.bandit.{_HOME[name]}"), name)
