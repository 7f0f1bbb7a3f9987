"""The structured contextual bandit: improve a live system from the losses of the structures it shows."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lols.bandit.bandit import StructuredBandit
    from lols.bandit.decider import Decider, Shown
    from lols.bandit.guard import Guard
    from lols.bandit.log import MemoryLog, SqliteLog
    from lols.bandit.off_policy import Estimated, Evaluated, deviations, evaluate_policy
    from lols.bandit.policy import BanditPolicy
    from lols.bandit.ranker import Ranker

__all__ = [
    "BanditPolicy",
    "Decider",
    "Estimated",
    "Evaluated",
    "Guard",
    "MemoryLog",
    "Ranker",
    "Shown",
    "SqliteLog",
    "StructuredBandit",
    "deviations",
    "evaluate_policy",
]

_MODULES = {
    "Decider": "decider",
    "Guard": "guard",
    "MemoryLog": "log",
    "Ranker": "ranker",
    "BanditPolicy": "policy",
    "Shown": "decider",
    "SqliteLog": "log",
    "StructuredBandit": "bandit",
}


def __getattr__(name: str) -> Any:
    """Import a name when it is used, so that a log alone needs no compiler."""
    if name not in __all__:
        raise AttributeError(f"module 'lols.bandit' has no attribute '{name}'")
    return getattr(import_module(f"lols.bandit.{_MODULES.get(name, 'off_policy')}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
