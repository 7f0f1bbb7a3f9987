"""What learning goes on from: the learner's weights, sums, squared gradients and counts, and how far training came.

A model has this if it was asked to keep it, and then its file has it, too. Everything that is stored is data: arrays
without zeros, beside those of the policy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import numpy as np

from lols.engine.structures import FrozenPolicy
from lols.engine.table import features_by_row, is_fixed
from lols.errors import ConfigurationError, LolsError, ModelFileError
from lols.io.room import Room
from lols.io.sparse import pack, unpack
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings
from lols.learners.structures import ROUNDS, SECOND_ORDER, SKETCH
from lols.policies.own import as_policy
from lols.training.adaptive import AdaptiveBeta
from lols.training.recipe import Recipe


def state_of_policy(policy: FrozenPolicy, learner: Learner) -> dict[str, np.ndarray]:
    """The state of a learner like this one that has the weights of a policy, and remembers nothing else.

    The weights count as if they had been there from the first round on, so that the average begins with them.
    """
    if policy.chances.size != 1:
        raise ConfigurationError(
            "the policy is a mixture of several, as Searn makes them, and no learner has its weights: train anew with "
            "another algorithm to go on"
        )
    state = {"counters": np.zeros_like(learner.counters)}
    for name, table, weights, bank in (
        ("shared", policy.shared, policy.stack[0], learner.shared),
        ("single", policy.single, policy.single_stack[0][:, np.newaxis], learner.single),
    ):
        count = weights.shape[0] if is_fixed(table) else int((table.rows >= 0).sum())
        features = features_by_row(table, count)
        weights = np.ascontiguousarray(weights[:count], np.float32)
        if is_fixed(table) != is_fixed(bank.table) or weights.shape[1:] != bank.weights.shape[1:]:
            raise ConfigurationError("the policy's weights are those of another learner: go on with its own options")
        state[f"{name}.features"], state[f"{name}.weights"] = features, weights
        state[f"{name}.squares"] = np.zeros_like(weights[: count if bank.squares.shape[0] else 0])
        state[f"{name}.sums"] = weights[: count if bank.sums.shape[0] else 0]
        state[f"{name}.scales"] = np.zeros(count if bank.scales.shape[0] else 0, np.float32)
        if bank.inverse.size:
            state[f"{name}.inverse"] = bank.inverse
        if learner.recipe.update == SKETCH:
            state[f"{name}.base"] = weights
            state[f"{name}.sketch"] = np.zeros((*weights.shape, bank.sketch.shape[2]), np.float32)
            state[f"{name}.stamps"] = np.zeros(weights.shape, np.int32)
    if learner.recipe.update == SKETCH:
        state |= {part: array for part, array in learner.state().items() if part.startswith("sketch.")}
    return state


def widened(state: Mapping[str, np.ndarray], learner: Learner, places: np.ndarray) -> dict[str, np.ndarray]:
    """The state for a learner of more actions, of which action k of the earlier one is number `places[k]`.

    A new action costs what the others cost on average. The weights of the hinge add up to 0, so there that is 0.
    """
    settings = learner.settings
    if settings.reduction == "secoc" or settings.update in SECOND_ORDER:
        what = "secoc" if settings.reduction == "secoc" else settings.update
        raise ConfigurationError(
            f"{what} cannot learn new labels or actions later on: train anew, or use hinge or csoaa"
        )
    made, columns = dict(state), learner.columns
    added = np.setdiff1d(np.arange(columns), places)
    for part in ("weights", "squares", "sums"):
        old = state[f"shared.{part}"]
        if old.ndim != 2 or old.shape[1] != places.size:
            raise ConfigurationError("the learner's state has another number of actions: give one of this task")
        new = np.zeros((old.shape[0], columns), np.float32)
        new[:, places] = old
        if settings.reduction != "hinge" and part != "squares" and places.size:
            new[:, added] = old.mean(axis=1, dtype=np.float64).astype(np.float32)[:, np.newaxis]
        made[f"shared.{part}"] = new
    return made


PREFIX = "learning."
PARTS = ("weights", "squares", "sums")
SAME = ("reduction", "update", "bits", "thresholds", "directions")  # settings without which a state makes no sense


@dataclass
class LearningState:
    """A learner, and how far training came with it.

    Parameters
    ----------
    learner
        The linear learner, which further learning changes.
    passes
        How many passes over the data are done: the next one has the order of that number.
    adaptive
        What β="auto" has seen.
    data
        A digest of the data of these passes; None if there was a stream, or if it is not known.

    """

    learner: Learner
    passes: int = 0
    adaptive: AdaptiveBeta = field(default_factory=AdaptiveBeta)
    data: str | None = None

    def begin_average(self, policy: FrozenPolicy) -> None:
        """Go on from the weights of a policy, the average so far, with a new average; step sizes stay as they are."""
        for bank, weights in (
            (self.learner.shared, policy.stack[0]),
            (self.learner.single, policy.single_stack[0][:, np.newaxis]),
        ):
            rows = min(int(bank.filled[0]), weights.shape[0])
            bank.weights[:rows] = weights[:rows]
            if bank.sums.shape[0]:
                bank.sums[:rows] = weights[:rows]
        self.learner.counters[ROUNDS] = 0.0
        self.passes = 0

    @property
    def rounds(self) -> int:
        """How many examples were learned from."""
        return int(self.learner.counters[ROUNDS])

    def digest(self) -> str:
        """A digest of all that learning depends on."""
        made = hashlib.sha256(repr((self.passes, self.adaptive.state())).encode())
        for name, array in sorted(self.learner.state().items()):
            made.update(name.encode() + np.ascontiguousarray(array).tobytes())
        return made.hexdigest()

    def stored(self) -> StoredState:
        """The same as header and arrays of a model file."""
        learner = self.learner
        tensors = {f"{PREFIX}counters": learner.counters.copy()}
        state = learner.state()
        for name in ("shared", "single"):
            tensors[f"{PREFIX}{name}.features"] = state[f"{name}.features"]
            tensors[f"{PREFIX}{name}.scales"] = state[f"{name}.scales"]
            for part in PARTS:
                array = state.pop(f"{name}.{part}")
                kept, packed = pack(array[np.newaxis], np.arange(array.shape[0]))
                tensors[f"{PREFIX}{name}.{part}.rows"] = kept.astype(np.int64)
                tensors |= {f"{PREFIX}{name}.{part}.{each}": packed[each] for each in packed}
            for part in ("inverse", "base", "sketch", "stamps"):
                if f"{name}.{part}" in state:
                    tensors[f"{PREFIX}{name}.{part}"] = state[f"{name}.{part}"]
        tensors |= {f"{PREFIX}{part}": array for part, array in state.items() if part.startswith("sketch.")}
        header = {
            "settings": asdict(learner.settings),
            "averaged": learner.averaged,
            "actions": learner.actions,
            "passes": self.passes,
            "data": self.data,
            "rivalry": self.adaptive.state(),
        }
        return StoredState(header, tensors)

    def restored(self, recipe: Recipe, places: np.ndarray | None = None) -> LearningState:
        """A copy, as the trainer learns; with more actions if need be, of which those so far are at `places`."""
        check_same(self.learner.settings, recipe)
        made, state = recipe.new_learner(), self.learner.state()
        made.load(state if places is None or places.size == made.columns else widened(state, made, places))
        return LearningState(made, self.passes, replace(self.adaptive), self.data)


@dataclass
class StoredState:
    """A learning state as a model file holds it; it is unpacked when learning goes on."""

    header: dict[str, Any]
    tensors: dict[str, np.ndarray]

    def stored(self) -> StoredState:
        """The state as a model file holds it: itself."""
        return self

    @classmethod
    def of(cls, header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> StoredState | None:
        """That of a model file, if it has one."""
        own = {name: array for name, array in tensors.items() if name.startswith(PREFIX)}
        found = header.get("learning")
        return cls(dict(found), own) if isinstance(found, dict) else None

    @property
    def settings(self) -> LearnerSettings:
        """Those of the learner."""
        known = {each.name for each in fields(LearnerSettings)}
        given = {name: value for name, value in dict(self.header["settings"]).items() if name in known}
        plain = all(value is None or isinstance(value, str | int | float) for value in given.values())
        if not plain or type(given.get("bits")) not in (type(None), int):
            raise ValueError("its settings are not plain values")
        return LearnerSettings(**given)

    def restored(self, recipe: Recipe, places: np.ndarray | None = None) -> LearningState:
        """The state, for a trainer; `places` as in `widened`. Its margin and scale become those of the state."""
        try:
            settings, header = self.settings, self.header
            check_same(settings, recipe)
            learner = recipe.new_learner()
            if bool(header["averaged"]) != learner.averaged:
                raise ConfigurationError(
                    "the model's state has another average: go on with the algorithm of its training"
                )
            state = self._state(learner, places)
            learner.load(state)
            adaptive = AdaptiveBeta(**header["rivalry"])
            if not all(0.0 <= number < np.inf for number in adaptive.state().values()):
                raise ValueError(f"'rivalry' is {header['rivalry']}")
            passes = header["passes"]
            if type(passes) is not int or not 0 <= passes < 1 << 31:
                raise ValueError(f"'passes' is {passes}")
        except (ConfigurationError, ModelFileError):
            raise
        except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError, LolsError) as error:
            raise ModelFileError(f"the learner's state in the model file is damaged ({error})") from error
        return LearningState(learner, passes, adaptive, str(header["data"]) if header.get("data") else None)

    def _state(self, learner: Learner, places: np.ndarray | None) -> dict[str, np.ndarray]:
        """The arrays of the learner, within what a file of this size may take."""
        room, tensors = Room(self.tensors), self.tensors
        state = {"counters": tensors[f"{PREFIX}counters"]}
        actions = learner.columns if places is None else places.size
        for name, columns in (("shared", actions), ("single", 1)):
            features = tensors[f"{PREFIX}{name}.features"]
            fixed = learner.settings.bits is not None
            count = 1 << int(learner.settings.bits or 0) if fixed else int(features.size)
            state[f"{name}.features"] = features
            state[f"{name}.scales"] = tensors[f"{PREFIX}{name}.scales"]
            for part in PARTS:
                own = {each: tensors[f"{PREFIX}{name}.{part}.{each}"] for each in ("counts", "columns", "values")}
                rows = tensors[f"{PREFIX}{name}.{part}.rows"]
                bank = getattr(learner, name)
                used = count if getattr(bank, part).shape[0] else 0
                if rows.dtype != np.int64 or rows.ndim != 1 or own["counts"].shape != (1, rows.size):
                    raise ValueError(f"the rows of '{name}.{part}' do not fit")
                state[f"{name}.{part}"] = unpack(own, columns, room, (rows, used))[0]
            for part in ("inverse", "base", "sketch", "stamps"):
                if f"{PREFIX}{name}.{part}" in tensors:
                    state[f"{name}.{part}"] = tensors[f"{PREFIX}{name}.{part}"]
        sketched = f"{PREFIX}sketch."
        state |= {part.removeprefix(PREFIX): array for part, array in tensors.items() if part.startswith(sketched)}
        if places is not None and places.size < learner.columns:
            room.take(12 * learner.columns * int(state["shared.weights"].shape[0]))
            state = widened(state, learner, places)
        return state


def check_same(settings: LearnerSettings, recipe: Recipe) -> None:
    """Whether a trainer has the learner that a state is of; margin and scale become those of the state."""
    different = [name for name in SAME if getattr(settings, name) != getattr(recipe.settings, name)]
    if different:
        raise ConfigurationError(
            f"the model's state is of another {different[0]}: go on with the options of its training, or save it "
            "without state"
        )
    recipe.adopt(settings)


def without_state(name: str) -> str:
    """What is said where learning goes on with a model of this name that has weights only."""
    return (
        f"{name} has no learner's state: learning starts from its weights alone, with new averages and step sizes "
        "(keep_state=True, or --keep-state, keeps the state)"
    )


def start_of(model: Any, recipe: Recipe, places: np.ndarray | None = None) -> LearningState:
    """What a trainer goes on from with a model: its state if it has one, else its weights alone."""
    recipe.check_start()
    if model.learning is not None:
        found: LearningState = model.learning.restored(recipe, places)
        return found
    if not as_policy(model.policy).has_weights:
        raise ConfigurationError(
            "a linear policy cannot go on from another one: train anew, or go on with policy='neural'"
        )
    settled = model.about.get("learner")
    if recipe.unsettled and isinstance(settled, dict) and settled.get("scale"):
        recipe.adopt(replace(recipe.settings, margin=str(settled["margin"]), scale=float(settled["scale"])))
    return from_weights(model.policy, recipe, places)


def from_weights(policy: FrozenPolicy, recipe: Recipe, places: np.ndarray | None = None) -> LearningState:
    """A state with the weights of a policy alone: nothing is known of rounds, averages and squared gradients."""
    learner = recipe.new_learner()
    if places is None or places.size == learner.columns:
        learner.load(state_of_policy(policy, learner))
        return LearningState(learner)
    narrow = Learner(
        learner.settings, int(places.size), by_action=learner.by_action, averaged=learner.averaged, compiled=False
    )
    learner.load(widened(state_of_policy(policy, narrow), learner, places))
    return LearningState(learner)
