"""A trained model: a search space and a policy that follows it, saved and loaded without executing anything."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lols import __version__
from lols.engine.driver import FusedDriver, Predictions
from lols.engine.dual import bind
from lols.engine.structures import Plan, Policy, following
from lols.engine.table import fill, fixed_table, growing_table, is_fixed
from lols.errors import ModelFileError
from lols.examples import Examples
from lols.io.model_file import read_tensors, write_tensors
from lols.learners.learner import hadamard_code
from lols.space import Reference, SearchSpace

__all__ = ["Model", "load"]


@dataclass
class Model:
    """A policy for a search space.

    Parameters
    ----------
    space
        The search space.
    policy
        Weights, and for Searn the chances of its components.
    plan
        What the engine must know to follow the policy.
    about
        Algorithm, learner, seed and other facts, kept in the model file.
    report
        What training saw: progressive loss per pass, seconds, memory.

    """

    space: SearchSpace
    policy: Policy
    plan: Plan
    about: dict[str, Any] = field(default_factory=dict)
    report: dict[str, Any] = field(default_factory=dict)
    threads: int = 1
    compiled: bool = True

    def predict(self, objects: Iterable[Any]) -> list[Any]:
        """The space's output for each of the user's objects."""
        objects = list(objects)
        if not objects:
            return []
        predictions = self.run(Examples(self.space, objects, truth=False))
        return [predictions.output(i) for i in range(len(objects))]

    def predict_one(self, obj: Any) -> Any:
        """The space's output for one object."""
        return self.predict([obj])[0]

    def run(self, examples: Examples, *, scores: bool = False) -> Predictions:
        """Follow the policy on examples that are already in columns."""
        with FusedDriver(self.space, examples, threads=self.threads, compiled=self.compiled) as driver:
            return driver.predict(self.policy, self.plan, scores=scores)

    def losses(self, objects: Iterable[Any] | Examples) -> np.ndarray:
        """The loss of the policy on each labelled object."""
        examples = objects if isinstance(objects, Examples) else Examples(self.space, objects, truth=True)
        with FusedDriver(self.space, examples, threads=self.threads, compiled=self.compiled) as driver:
            return driver.losses(driver.predict(self.policy, self.plan), self.policy)

    def evaluate(self, objects: Iterable[Any] | Examples) -> float:
        """The mean loss of the policy on labelled objects."""
        return float(self.losses(objects).mean())

    def reference_losses(self, objects: Iterable[Any] | Examples, reference: Reference) -> np.ndarray:
        """The loss of a teacher on each labelled object: what the policy is to be compared with."""
        examples = objects if isinstance(objects, Examples) else Examples(self.space, objects, truth=True)
        with FusedDriver(self.space, examples, reference, compiled=self.compiled) as driver:
            return driver.losses(driver.follow_teacher(self.plan, self.policy), self.policy)

    # --- files ---

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model file, atomically. Rows without any weight are left out."""
        header = {
            "about": self.about,
            "version": __version__,
            "space": {
                "name": self.space.name,
                "digest": bind("Space", self.space.functions()).digest,
                "settings": {k: np.asarray(v).tolist() for k, v in self.space.settings.items()},
                "actions": self.space.sizes.actions,
            },
            "following": {"seed": self.plan.seed, "random_ties": self.plan.random_ties},
            "thresholds": self.policy.thresholds,
        }
        tensors = {"chances": self.policy.chances}
        for name, table, stack in (
            ("shared", self.policy.shared, self.policy.stack),
            ("single", self.policy.single, self.policy.single_stack[:, :, np.newaxis]),
        ):
            fixed = is_fixed(table)
            taken = np.zeros(0, np.int64) if fixed else np.flatnonzero(table.rows >= 0)
            taken = taken[np.argsort(table.keys[taken])]  # one policy, one file, however its table came about
            rows = np.arange(stack.shape[1]) if fixed else table.rows[taken].astype(np.int64)
            used = stack[:, rows].any(axis=(0, 2))
            keep = np.ones(rows.size, bool) if fixed else used
            tensors[f"{name}.features"] = np.zeros(0, np.int64) if fixed else table.keys[taken][keep]
            tensors[f"{name}.weights"] = stack[:, rows[keep]]
            header[f"{name}_bits"] = 64 - table.shift if fixed else None
        write_tensors(path, "model", header, tensors)


def load(path: str | os.PathLike[str], space: SearchSpace, *, threads: int = 1, compiled: bool = True) -> Model:
    """Read a model file for a space that the caller brings; the file itself is data only.

    The space must have as many actions as the one that was trained; if its functions changed since, the model's `about`
    says so under `"space_changed"`.
    """
    header, tensors = read_tensors(path, "model")
    try:
        about, how = dict(header["about"]), header["following"]
        plan = following(int(np.int64(how["seed"])), bool(how["random_ties"]))
        actions = int(header["space"]["actions"])
        policy = _policy(header, tensors, actions)
        digest = header["space"]["digest"]
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise ModelFileError(f"{path}: the header is damaged ({type(error).__name__}: {error})") from error
    if actions != space.sizes.actions:
        raise ModelFileError(f"{path}: trained for {actions} actions; this space has {space.sizes.actions}")
    if bind("Space", space.functions()).digest != digest:
        about["space_changed"] = True
    return Model(space, policy, plan, about, threads=threads, compiled=compiled)


def _policy(header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], actions: int) -> Policy:
    thresholds = int(header["thresholds"])
    code = hadamard_code(actions) if thresholds else np.zeros((0, actions), np.float32)
    columns = code.shape[0] * thresholds if thresholds else actions
    chances = tensors["chances"]
    if chances.ndim != 1 or chances.dtype != np.float64:
        raise ModelFileError("the chances of the policies are not a list of numbers")
    parts: list[Any] = []
    for name, width in (("shared", columns), ("single", 1)):
        weights, features, bits = tensors[f"{name}.weights"], tensors[f"{name}.features"], header[f"{name}_bits"]
        rows = features.size if bits is None else 1 << int(bits)
        if features.dtype != np.int64 or features.ndim != 1 or np.unique(features).size != features.size:
            raise ModelFileError(f"'{name}.features' is not a list of distinct 64-bit integers")
        if weights.shape != (chances.size, rows, width):
            raise ModelFileError(f"'{name}.weights' has shape {weights.shape}, not {(chances.size, rows, width)}")
        if bits is None:
            table = growing_table(1 << max(int(2 * rows).bit_length(), 4))
            fill(table, features.astype(np.int64))
        else:
            table = fixed_table(int(bits))
        parts += [table, np.ascontiguousarray(weights, np.float32)]
    if chances.size < 1 or abs(chances[-1] - 1.0) > 1e-9 or (np.diff(chances) < 0).any():
        raise ModelFileError("the chances of the policies do not add up to 1")
    return Policy(parts[0], parts[1], parts[2], parts[3][:, :, 0].copy(), chances, code, thresholds)
