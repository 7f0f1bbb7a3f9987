"""Checkpoints: learning as it is after a batch, in a file from which it resumes bit for bit."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from lols.contract.identity import LEARNING
from lols.errors import LolsError, ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.training.adaptive import AdaptiveBeta
from lols.training.learning import Learning
from lols.training.mixing import shards_and_legs
from lols.training.sources import DataSource


def write_checkpoint(
    path: str | os.PathLike[str], learning: Learning, source: DataSource, history: Sequence[Any] = ()
) -> None:
    """Write a checkpoint, with what was found after the passes so far."""
    header = {
        "identity": _identity(learning, source),
        "pass": learning.pass_,
        "offset": learning.offset,
        "rivalry": learning.adaptive.state(),
        "history": list(history),
    }
    write_tensors(path, "checkpoint", header, learning.policy.state() | {"sums": learning.sums})


def read_checkpoint(path: str | os.PathLike[str], learning: Learning, source: DataSource) -> None:
    """Continue from a checkpoint."""
    header, tensors = read_tensors(path, "checkpoint")
    identity = header.get("identity")
    identity = identity if isinstance(identity, dict) else {}
    if "version of learning" not in identity:
        raise ModelFileError(f"{path}: a checkpoint of lols 0.2 or before: train on with that version, or delete it")
    for name, value in _identity(learning, source).items():
        if identity.get(name) != value:
            raise ModelFileError(
                f"{path}: made with another {name}; resume with the same data and options, or delete it"
            )
    rivalry = header.get("rivalry")
    if learning.recipe.plan.compare and isinstance(rivalry, dict) and not rivalry.keys() & {"squares", "weights"}:
        raise ModelFileError(f"{path}: made by a version with another beta='auto'; delete it and train anew")
    try:
        _take_over(learning, header, tensors)
    except LolsError as error:
        raise ModelFileError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RuntimeError) as error:
        raise ModelFileError(f"{path}: the checkpoint is damaged ({type(error).__name__}: {error})") from error


def _identity(learning: Learning, source: DataSource) -> dict[str, Any]:
    """What must be equal for a checkpoint to belong to a training."""
    recipe = learning.recipe
    return {
        "version of learning": LEARNING,
        "algorithm": recipe.algorithm.described(),
        "learner": learning.policy.identity(),
        "passes": recipe.passes,
        "batch_size": learning.batch_size,
        "seed": recipe.seed,
        "shuffle": recipe.shuffle,
        "neighbours": recipe.neighbours,
        **({} if learning.began is None else {"start": learning.began}),
        **_shards(learning),
        **source.identity(recipe),
    }


def _shards(learning: Learning) -> dict[str, Any]:
    """How the data are cut, unless training is exact."""
    engine = learning.recipe.engine
    if engine.sync == "exact":
        return {}
    shards, (first, others) = shards_and_legs(engine)
    return {"number of shards": shards, "number of legs": others, "number of legs in the first pass": first}


def _take_over(learning: Learning, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
    learning.policy.load(tensors)
    if tensors["sums"].shape != learning.sums.shape or tensors["sums"].dtype != learning.sums.dtype:
        raise ValueError(f"'sums' has shape {tensors['sums'].shape}")
    learning.sums = tensors["sums"].copy()
    pass_, offset = int(header["pass"]), int(header["offset"])
    most = _shards(learning).get("number of legs" if pass_ else "number of legs in the first pass", learning.count or 0)
    if not (0 <= pass_ <= learning.passes and 0 <= offset < int(most)):
        raise ValueError(f"it is at example {offset} of pass {pass_}")
    learning.go_to(pass_, offset)
    learning.adaptive = AdaptiveBeta(**header["rivalry"])
    if not all(0.0 <= number < np.inf for number in learning.adaptive.state().values()):
        raise ValueError(f"'rivalry' is {header['rivalry']}")
