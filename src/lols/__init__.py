"""lols: learning to search better than your teacher.

Importing `lols` is quick and does not import Numba; names are loaded when they are used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lols._version import __version__

_HOME = {
    "Algorithm": "training.algorithms",
    "Columns": "contract.columns",
    "Example": "contract.space",
    "Examples": "contract.examples",
    "Labels": "contract.texts",
    "InPieces": "training.sources",
    "LearnerSettings": "learners.settings",
    "LolsError": "errors",
    "Model": "training.model",
    "CostSensitiveClassifier": "tasks.tables.estimator",
    "Parser": "tasks.parsing.estimator",
    "Pipeline": "tasks.pipeline.estimator",
    "Program": "programs.program",
    "Reference": "contract.space",
    "SearchSpace": "contract.space",
    "Sizes": "contract.space",
    "SpaceError": "errors",
    "State": "contract.state",
    "StructuredBandit": "bandit.bandit",
    "Tagger": "tasks.tagging.estimator",
    "Task": "contract.task",
    "Trainer": "training.trainer",
    "algorithm": "training.algorithms",
    "certify": "certificates.certify",
    "above_least": "contract.features",
    "emit": "contract.features",
    "emit_curve": "contract.features",
    "emit_surface": "contract.features",
    "explain": "training.algorithms",
    "feature": "contract.features",
    "hamming": "contract.features",
    "load": "front",
    "look": "contract.features",
    "mix": "kernels.hashing",
    "objects": "contract.frames",
    "optimise": "heuristics.optimise",
    "reals": "contract.state",
    "rollout_costs": "training.rollouts",
    "text": "contract.texts",
    "train": "front",
    "uniform": "contract.features",
}

# Modules that belong to the public interface.
_MODULES = {"checks": "contract.checks", "io": "io", "engines": "engines", "policies": "policies"}

__all__ = [
    "Algorithm",
    "Columns",
    "CostSensitiveClassifier",
    "Example",
    "Examples",
    "InPieces",
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
    "State",
    "StructuredBandit",
    "Tagger",
    "Task",
    "Trainer",
    "__version__",
    "above_least",
    "algorithm",
    "certify",
    "checks",
    "emit",
    "emit_curve",
    "emit_surface",
    "engines",
    "explain",
    "feature",
    "hamming",
    "io",
    "load",
    "look",
    "mix",
    "objects",
    "optimise",
    "policies",
    "reals",
    "rollout_costs",
    "text",
    "train",
    "uniform",
]

if TYPE_CHECKING:
    import lols.contract.checks as checks
    import lols.engines as engines
    import lols.io as io
    import lols.policies as policies
    from lols.bandit.bandit import StructuredBandit
    from lols.certificates.certify import certify
    from lols.contract.columns import Columns
    from lols.contract.examples import Examples
    from lols.contract.features import above_least, emit, emit_curve, emit_surface, feature, hamming, look, uniform
    from lols.contract.frames import objects
    from lols.contract.space import Example, Reference, SearchSpace, Sizes
    from lols.contract.state import State, reals
    from lols.contract.task import Task
    from lols.contract.texts import Labels, text
    from lols.errors import LolsError, SpaceError
    from lols.front import load, train
    from lols.heuristics.optimise import optimise
    from lols.kernels.hashing import mix
    from lols.learners.settings import LearnerSettings
    from lols.programs.program import Program
    from lols.tasks.parsing.estimator import Parser
    from lols.tasks.pipeline.estimator import Pipeline
    from lols.tasks.tables.estimator import CostSensitiveClassifier
    from lols.tasks.tagging.estimator import Tagger
    from lols.training.algorithms import Algorithm, algorithm, explain
    from lols.training.model import Model
    from lols.training.rollouts import rollout_costs
    from lols.training.sources import InPieces
    from lols.training.trainer import Trainer


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(importlib.import_module(f"lols.{_HOME[name]}"), name)
    elif name in _MODULES:
        value = importlib.import_module(f"lols.{_MODULES[name]}")
    else:
        raise AttributeError(f"module 'lols' has no attribute '{name}'")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
