"""Model files: what they hold, and the model that a file describes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from lols._version import __version__
from lols.contract.identity import identity_of, source_digest
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import as_teacher
from lols.engine.drivers.adapted import adapted
from lols.engine.structures import FrozenPolicy, Plan, following
from lols.engine.table import distinct, fill, fixed_table, growing_table, is_fixed
from lols.errors import LolsError, ModelFileError, shown
from lols.io.model_file import KEPT
from lols.io.room import Room
from lols.io.sparse import pack, unpack
from lols.learners.learner import hadamard_code, hadamard_size
from lols.policies.own import as_policy
from lols.training.calibration import Calibration
from lols.training.learning_state import LearningState, StoredState

MOST_NOTED = 1 << 12  # settings with more numbers are not recorded in model files


class WrittenModel(Protocol):
    """What is written of a model."""

    space: SearchSpace
    plan: Plan
    about: dict[str, Any]
    calibration: Calibration | None
    kept_reference: Reference | None
    learning: LearningState | StoredState | None

    @property
    def policy(self) -> Any:
        """Its weights, or an object of the user's."""


def contents_of(
    model: WrittenModel,
    task: Mapping[str, Any] | None = None,
    tensors: Mapping[str, np.ndarray] | None = None,
    *,
    keep_state: bool = False,
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Header and arrays of a model's file."""
    settings = {k: np.asarray(v).tolist() for k, v in model.space.settings.items() if np.size(v) <= MOST_NOTED}
    header: dict[str, Any] = {
        "task": dict(task or {}),
        "about": model.about,
        "version": __version__,
        "space": {
            "name": model.space.name,
            "source": identity_of(_functions(model.space)),
            "settings": settings,
            "actions": model.space.fixed_actions,
        },
        "following": {"seed": model.plan.seed, "random_ties": model.plan.random_ties},
    }
    if model.calibration is not None:
        header["calibration"] = model.calibration.describe()
    if model.kept_reference is not None:
        header |= {"format": KEPT, "kept_reference": _described(model.kept_reference, model.space)}
    arrays = {f"task.{name}": array for name, array in (tensors or {}).items()}
    if not as_policy(model.policy).has_weights:
        policy = adapted(model.policy)
        own = {f"policy.{name}": array for name, array in policy.state().items()}
        return header | {"policy": policy.kind}, arrays | own
    header["thresholds"], arrays["chances"] = model.policy.thresholds, model.policy.chances
    for name, table, stack in (
        ("shared", model.policy.shared, model.policy.stack),
        ("single", model.policy.single, model.policy.single_stack[:, :, np.newaxis]),
    ):
        fixed = is_fixed(table)
        taken = np.zeros(0, np.int64) if fixed else np.flatnonzero(table.rows >= 0)
        # equal policies give equal files, in whatever order features were inserted
        taken = taken[np.argsort(table.keys[taken])]
        rows = np.arange(stack.shape[1]) if fixed else table.rows[taken].astype(np.int64)
        kept, packed = pack(stack, rows)
        arrays[f"{name}.features"] = kept if fixed else table.keys[taken][kept]
        arrays |= {f"{name}.{part}": array for part, array in packed.items()}
        header[f"{name}_bits"] = 64 - table.shift if fixed else None
    if keep_state and model.learning is not None:
        stored = model.learning.stored()
        header["learning"], arrays = stored.header, arrays | stored.tensors
    return header, arrays


def parts_of(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    space: SearchSpace,
    reference: Reference | None = None,
    *,
    policy: Any = None,
    compiled: bool = True,
    room: Room | None = None,
) -> dict[str, Any]:
    """The arguments of the `Model` that a file's header and arrays describe, for a space."""
    room = room or Room(tensors)
    try:
        about, how = dict(header["about"]), header["following"]
        plan = following(int(np.int64(how["seed"])), bool(how["random_ties"]))
        actions, kind = header["space"]["actions"], header.get("policy")
        known = {name: header["space"][name] for name in ("source", "digest") if name in header["space"]}
        settings = dict(header["space"]["settings"])
        if not known:
            raise KeyError("source")
        if actions != space.fixed_actions:
            numbers = ["any number of" if n is None else n for n in (actions, space.fixed_actions)]
            raise ModelFileError("trained for {} actions; this space has {}".format(*numbers))
        linear = _policy(header, tensors, space, compiled, room) if kind is None else None
        fitted = header.get("calibration")
        classes = header["task"].get("classes")
        biased = len(classes) if isinstance(classes, list) else actions
        calibration = None if fitted is None else Calibration.from_description(fitted, biased)
        kept = _kept_reference(header.get("kept_reference"), space, reference)
    except ModelFileError as error:
        raise ModelFileError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
        raise ModelFileError(f"{path}: the header is damaged ({type(error).__name__}: {error})") from error
    _check_settings(path, settings, space)
    if policy is not None or linear is None:
        policy = _filled(path, kind, tensors, policy)
    if _changed(known, space):
        about["space_changed"] = True
    if kept is not None and identity_of(kept.functions()) != header["kept_reference"].get("source"):
        about["space_changed"] = True
    learning = StoredState.of(header, tensors)
    own = {"policy": linear or policy, "plan": plan, "about": about}
    return own | {"calibration": calibration, "learning": learning, "kept_reference": kept}


def is_own(reference: Reference, space: SearchSpace) -> bool:
    """Whether a reference is that of the space, which knows it by itself."""
    return space.teacher is not None and reference.functions() == as_teacher(None, space).functions()


def _described(reference: Reference, space: SearchSpace) -> dict[str, Any]:
    """What a file says of the reference that decides; the functions themselves are those of the user's task."""
    return {
        "name": reference.name,
        "source": identity_of(reference.functions()),
        "own": is_own(reference, space),
    }


def _kept_reference(described: Any, space: SearchSpace, given: Reference | None) -> Reference | None:
    """The reference that decides if the file says so: the one that is given, else that of the space."""
    if described is None:
        return None
    name = shown(described.get("name"))
    if given is None and not described["own"]:
        raise ModelFileError(
            f"decides by the reference {name} that lols.optimise was given: give it to "
            "lols.load(path, task, reference=...)"
        )
    if given is None and space.teacher is None:
        raise ModelFileError(
            f"decides by the reference {name}, because no policy was better, and {space.name or 'the space'} has none: "
            "give the task that has it, or lols.load(path, task, reference=...)"
        )
    return as_teacher(given, space)


def _functions(space: SearchSpace) -> dict[str, Any]:
    return space.functions() | {"output": space.output}


def _changed(known: Mapping[str, Any], space: SearchSpace) -> bool:
    """Whether the functions of a space are others than in training; 0.2 and before told them by their byte code."""
    if "source" in known:
        return identity_of(_functions(space)) != known["source"]
    return source_digest(_functions(space)) != known["digest"]


def _filled(path: str | os.PathLike[str], kind: Any, tensors: Mapping[str, np.ndarray], policy: Any) -> Any:
    """The policy with the arrays of a file, which belong to class `kind`; None stands for a linear policy."""
    if kind is None:
        raise ModelFileError(f"{path}: holds a linear policy: load it without policy")
    if not isinstance(kind, str):
        raise ModelFileError(f"{path}: the header is damaged (the policy is {shown(kind)}, not the name of a class)")
    if policy is None:
        raise ModelFileError(f"{path}: holds a policy of class {kind}: give load(..., policy=...) an object of it")
    own = adapted(policy)
    own.check_saved("a model file")
    if own.kind.rpartition(":")[2] != kind.rpartition(":")[2]:
        raise ModelFileError(f"{path}: holds a policy of class {kind}, not {own.kind}")
    try:
        own.load({k.removeprefix("policy."): v for k, v in tensors.items() if k.startswith("policy.")})
    except LolsError:
        raise
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ModelFileError(
            f"{path}: `load` of {kind} failed with {reason}; was it made with other settings?"
        ) from error
    return policy


def _check_settings(path: str | os.PathLike[str], settings: Mapping[str, Any], space: SearchSpace) -> None:
    """Raise an error if the space has other settings than in training: its features may depend on them."""
    for name, value in settings.items():
        if name not in space.settings:
            continue
        noted = np.size(space.settings[name]) <= MOST_NOTED
        if not noted or np.asarray(space.settings[name]).tolist() != value:
            single = not isinstance(value, list) and np.ndim(space.settings[name]) == 0
            own = shown(space.settings[name])
            what = f"{name} = {shown(value)}, and this space has {own}" if single else f"another {name}"
            raise ModelFileError(f"{path}: trained with {what}: load it with the same settings")


def _policy(
    header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], space: SearchSpace, compiled: bool, room: Room
) -> FrozenPolicy:
    thresholds, chances, actions = int(header["thresholds"]), tensors["chances"], space.fixed_actions or 1
    if chances.ndim != 1 or chances.dtype != np.float64:
        raise ModelFileError("the chances of the policies are not a list of numbers")
    if chances.size < 1 or abs(chances[-1] - 1.0) > 1e-9 or not chances[0] >= 0.0 or (np.diff(chances) < 0).any():
        raise ModelFileError("the chances of the policies do not add up to 1")
    subsets = hadamard_size(actions) if thresholds else 0
    columns = subsets * thresholds if thresholds else actions
    if columns < 1:
        raise ModelFileError(f"'thresholds' is {thresholds}")
    room.take(4 * columns * chances.size * space.sizes.roles + 8 * subsets * actions)  # scores of an item, and the code
    code = hadamard_code(actions) if thresholds else np.zeros((0, actions), np.float32)
    parts: list[Any] = []
    for name, width in (("shared", columns), ("single", 1)):
        features, bits = tensors[f"{name}.features"], header[f"{name}_bits"]
        if not distinct(features):
            raise ModelFileError(f"'{name}.features' is not a list of distinct 64-bit integers")
        if bits is not None and not 1 <= int(bits) <= 30:
            raise ModelFileError(f"'{name}_bits' is {bits}")
        packed = {part: tensors[f"{name}.{part}"] for part in ("counts", "columns", "values")}
        if packed["counts"].shape != (chances.size, features.size):
            shape = (chances.size, features.size)
            raise ModelFileError(f"'{name}' has weights of {packed['counts'].shape} rows, not {shape}")
        if bits is None:
            weights = unpack(packed, width, room)
            table = growing_table(1 << max(int(2 * features.size).bit_length(), 4))
            fill(table, features, compiled=compiled)
        else:
            weights, table = unpack(packed, width, room, (features, 1 << int(bits))), fixed_table(int(bits))
        parts += [table, weights]
    return FrozenPolicy(parts[0], parts[1], parts[2], parts[3][:, :, 0], chances, code, thresholds)
