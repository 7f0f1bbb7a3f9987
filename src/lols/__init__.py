"""lols: learning to search better than your teacher.

Importing `lols` is quick and does not import Numba; names are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOME = {
    "Algorithm": "algorithms",
    "Columns": "columns",
    "Example": "space",
    "Examples": "examples",
    "Labels": "texts",
    "LearnerSettings": "learners.settings",
    "LolsError": "errors",
    "Model": "model",
    "CostSensitiveClassifier": "estimators.classifier",
    "Parser": "estimators.parser",
    "Pipeline": "estimators.pipeline",
    "Program": "imperative.program",
    "Reference": "space",
    "SearchSpace": "space",
    "Sizes": "space",
    "SpaceError": "errors",
    "StructuredBandit": "bandit.bandit",
    "Tagger": "estimators.tagger",
    "Task": "task",
    "Trainer": "trainer",
    "algorithm": "algorithms",
    "certify": "certificates.certify",
    "checks": "",
    "emit": "features",
    "explain": "algorithms",
    "feature": "features",
    "load": "model",
    "look": "features",
    "mix": "hashing",
    "objects": "frames",
    "policies": "",
    "text": "texts",
    "train": "trainer",
    "uniform": "features",
}

__all__ = [
    "Algorithm",
    "Columns",
    "CostSensitiveClassifier",
    "Example",
    "Examples",
    "Labels",
    "LearnerSettings",
    "LolsError",
    "Model",
    "Parser",
    "Pipeline",
    "Program",
    "Reference",
    "SearchSpace",
    "Sizes",
    "SpaceError",
    "StructuredBandit",
    "Tagger",
    "Task",
    "Trainer",
    "__version__",
    "algorithm",
    "certify",
    "checks",
    "emit",
    "explain",
    "feature",
    "load",
    "look",
    "mix",
    "objects",
    "policies",
    "text",
    "train",
    "uniform",
]

if TYPE_CHECKING:
    import lols.checks as checks
    import lols.policies as policies
    from lols.algorithms import Algorithm, algorithm, explain
    from lols.bandit.bandit import StructuredBandit
    from lols.certificates.certify import certify
    from lols.columns import Columns
    from lols.errors import LolsError, SpaceError
    from lols.estimators.classifier import CostSensitiveClassifier
    from lols.estimators.parser import Parser
    from lols.estimators.pipeline import Pipeline
    from lols.estimators.tagger import Tagger
    from lols.examples import Examples
    from lols.features import emit, feature, look, uniform
    from lols.frames import objects
    from lols.hashing import mix
    from lols.imperative.program import Program
    from lols.learners.settings import LearnerSettings
    from lols.model import Model, load
    from lols.space import Example, Reference, SearchSpace, Sizes
    from lols.task import Task
    from lols.texts import Labels, text
    from lols.trainer import Trainer, train


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'lols' has no attribute '{name}'")
    home = _HOME[name]
    value = getattr(importlib.import_module(f"lols.{home}"), name) if home else importlib.import_module(f"lols.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
