"""What a bandit decides by, as a value: weights, settings, and whether they are trusted. It can be saved and loaded."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from lols._version import __version__
from lols.bandit.settings import BanditSettings
from lols.engine.structures import FILLED, TURNS, FrozenPolicy, Sketched
from lols.engine.table import distinct, features_by_row, fill, fixed_table, growing_table, is_fixed
from lols.errors import ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.kernels.hashing import mix, unit
from lols.learners.settings import LearnerSettings
from lols.learners.sketch import columns_of, make_sketches, settled, still

KIND = "policy of a bandit"
DRAWING = 22  # a purpose of draws
CURRENT, FINAL, KEPT, MEMBER = "current", "final", "kept", "member"  # names of weights; the last two are numbered
MOST_BITS = 31  # of a table
SKETCH = ("counts", "ridge", "inverse", "shift")  # what a policy has of sketches beside its columns


@dataclass(frozen=True, eq=False)
class BanditPolicy:
    """A policy that decides without its bandit: in another process, on another machine.

    Parameters
    ----------
    weights
        Weights by name: `current`, those after the last loss; `final`, those that act when nothing is explored; the
        policies to draw from, `kept/0`, `kept/1`, ...; the members of a bag, `member/0`, `member/1`, ...
    settings
        The settings of the bandit.
    schema
        What the weights are for: the space, and the version of learning.
    version
        The number of policies before this one.
    epsilon
        How often to explore.
    trusted
        Whether the guard trusts the learned policy; None without a guard.
    pace
        In how many steps of a structure the learned policy acts, on average; None for all. In the others it is the
        reference.
    compared
        The share of rounds in which the reference alone acts, to be compared with.

    Examples
    --------
    >>> import tempfile
    >>> import lols
    >>> from lols.bandit import Decider, BanditPolicy, StructuredBandit
    >>> from lols.datasets.worlds import tagging_space
    >>> rules = lols.Reference(action=lambda x, y, s: 0, needs_truth=False)
    >>> bandit = StructuredBandit(tagging_space(labels=3), rules, epsilon=0.5, compiled=False)
    >>> path = tempfile.mkdtemp() + "/policy.safetensors"
    >>> bandit.policy().save(path)
    >>> policy = BanditPolicy.load(path)
    >>> decider = Decider(bandit.space, bandit.reference, compiled=False)
    >>> shown, decision = decider.decide({"words": [4, 5]}, policy, "request-17")
    >>> shown.id, shown.output
    ('request-17', [0, 0])

    """

    weights: Mapping[str, FrozenPolicy]
    settings: BanditSettings
    schema: Mapping[str, Any] = field(default_factory=dict)
    version: int = 0
    epsilon: float = 0.0
    trusted: bool | None = None
    pace: float | None = None
    compared: float = 0.0

    @property
    def final(self) -> FrozenPolicy:
        """The weights that act when nothing is explored."""
        return self.weights.get(FINAL, self.weights[CURRENT])

    def exploiting(self, stream: int) -> tuple[FrozenPolicy, int]:
        """The weights that act when nothing is explored, and their number among those kept (-1: none of them).

        Parameters
        ----------
        stream
            The random numbers of the decision.

        """
        if self.settings.exploit == "drawn":
            kept = self.numbered(KEPT)
            which = min(int(unit(mix(stream, DRAWING)) * len(kept)), len(kept) - 1)
            return kept[which], which
        return self.final, -1

    def numbered(self, name: str) -> list[FrozenPolicy]:
        """The weights of a numbered name, in order.

        Parameters
        ----------
        name
            `"kept"` or `"member"`.

        """
        found: list[FrozenPolicy] = []
        while f"{name}/{len(found)}" in self.weights:
            found.append(self.weights[f"{name}/{len(found)}"])
        return found

    def copy(self) -> BanditPolicy:
        """A copy that later learning does not change, without spare room."""
        tensors = self._tensors()
        return replace(self, weights=_weights(tensors))

    def digest(self) -> str:
        """A digest of all bits of the weights, by which policies are compared.

        Equal weights have equal digests, however much room their tables have.
        """
        digest = hashlib.sha256()
        for name, array in sorted(self._tensors().items()):
            digest.update(f"{name} {array.dtype} {array.shape} ".encode() + np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:32]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the policy to a safetensors file.

        Parameters
        ----------
        path
            The file.

        """
        header = {
            "version": __version__,
            "schema": dict(self.schema),
            "settings": asdict(self.settings),
            "policy": {
                "version": self.version,
                "epsilon": self.epsilon,
                "trusted": self.trusted,
                "pace": self.pace,
                "compared": self.compared,
            },
        }
        write_tensors(path, KIND, header, self._tensors())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> BanditPolicy:
        """Read a policy from a file.

        Parameters
        ----------
        path
            A file that `save` has written.

        """
        header, tensors = read_tensors(path, KIND)
        try:
            told, settings = header["policy"], dict(header["settings"])
            learner = LearnerSettings(**settings.pop("learner"))
            trusted = None if told["trusted"] is None else bool(told["trusted"])
            pace = None if told.get("pace") is None else float(told["pace"])
            return cls(
                _weights(tensors),
                BanditSettings(learner=learner, **settings),
                dict(header["schema"]),
                int(told["version"]),
                float(told["epsilon"]),
                trusted,
                pace,
                float(told.get("compared", 0.0)),
            )
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError, MemoryError) as error:
            why = " ".join(str(error).split())
            raise ModelFileError(f"{path}: the policy is damaged ({why}): save it again") from None

    def _tensors(self) -> dict[str, np.ndarray]:
        tensors: dict[str, np.ndarray] = {}
        for name, weights in self.weights.items():
            if name == FINAL and weights is self.weights.get(CURRENT):
                continue
            tensors |= {f"{name}.{part}": array for part, array in arrays_of(weights).items()}
        return tensors


def arrays_of(weights: FrozenPolicy) -> dict[str, np.ndarray]:
    """Weights as arrays, in the order in which their features were inserted, without spare rows."""
    weights = settled(weights)
    sketches = weights.sketched.sketches
    arrays = {"chances": weights.chances, "code": weights.code, "thresholds": np.array([weights.thresholds])}
    for name, table, stack in (
        ("shared", weights.shared, weights.stack),
        ("single", weights.single, weights.single_stack),
    ):
        count = stack.shape[1] if is_fixed(table) else int((table.rows >= 0).sum())
        arrays[f"{name}.features"] = features_by_row(table, count)
        arrays[f"{name}.weights"] = stack[:, :count].copy()
        arrays[f"{name}.shift"] = np.array([table.shift if is_fixed(table) else -1])
        if sketches.counts.size:
            columns = getattr(weights.sketched, name)
            arrays |= {f"{name}.base": columns.base[:count], f"{name}.sketch": columns.sketch[:count]}
    return arrays | {f"sketch.{part}": getattr(sketches, part) for part in SKETCH if sketches.counts.size}


def weights_of(arrays: Mapping[str, np.ndarray]) -> FrozenPolicy:
    """Weights from the arrays of `arrays_of`; ValueError if they do not fit together."""
    tables, stacks = [], []
    for name, ndim in (("shared", 3), ("single", 2)):
        features, stack = arrays[f"{name}.features"], arrays[f"{name}.weights"]
        shift = int(arrays[f"{name}.shift"].item())
        if stack.ndim != ndim or stack.dtype != np.float32:
            raise ValueError(f"'{name}.weights' is not an array of weights")
        if shift >= 0:
            bits = 64 - shift
            if not 0 < bits <= MOST_BITS or stack.shape[1] != 1 << bits:
                raise ValueError(f"'{name}.weights' has not 2 ** {bits} rows")
            table = fixed_table(bits)
        else:
            if not distinct(features) or features.size != stack.shape[1]:
                raise ValueError(f"'{name}.features' is not a list of different features, one for each row")
            table = growing_table(1 << max(int(2 * features.size).bit_length(), 4))
            fill(table, features)
            if not features.size:  # kernels look up rows in an array that is not empty
                stack = np.zeros((stack.shape[0], 1, *stack.shape[2:]), np.float32)
        tables.append(table)
        stacks.append(np.ascontiguousarray(stack))
    chances, code = (np.ascontiguousarray(arrays[name]) for name in ("chances", "code"))
    components = {chances.size, stacks[0].shape[0], stacks[1].shape[0]}
    if chances.ndim != 1 or chances.dtype != np.float64 or len(components) != 1 or not chances.size:
        raise ValueError("its parts differ in their number of components")
    if code.ndim != 2 or code.dtype != np.float32:
        raise ValueError("'code' is not a matrix")
    thresholds = int(arrays["thresholds"].item())
    columns = code.shape[0] * thresholds if thresholds else code.shape[1]
    if stacks[0].shape[2] != columns or thresholds < 0:
        raise ValueError(f"'shared.weights' has {stacks[0].shape[2]} columns, not {columns}")
    policy = FrozenPolicy(tables[0], stacks[0], tables[1], stacks[1], chances, code, thresholds)
    return policy if "sketch.counts" not in arrays else policy._replace(sketched=_sketched(arrays, policy))


def _sketched(arrays: Mapping[str, np.ndarray], policy: FrozenPolicy) -> Sketched:
    """How sure weights are, from the arrays of `arrays_of`."""
    counts, parts = arrays["sketch.counts"], []
    rows = arrays["sketch.shift"].shape[-1]
    sketches = still(make_sketches(counts.shape[0], rows // 2, 1.0))
    given = {part: np.ascontiguousarray(arrays[f"sketch.{part}"]) for part in SKETCH}
    for part, array in given.items():
        wanted = getattr(sketches, part)
        if array.shape != wanted.shape or array.dtype != wanted.dtype:
            raise ValueError(f"'sketch.{part}' has the wrong shape")
    columns = policy.stack.shape[2]
    if counts.shape[0] not in (1, columns) or (counts < 0).any() or (counts[:, FILLED] >= max(rows, 1)).any():
        raise ValueError("'sketch.counts' does not fit the weights")
    if counts[:, TURNS].any() or not (given["ridge"] > 0.0).all():
        raise ValueError("'sketch' has numbers that do not count")
    for name, shape in (("shared", policy.stack.shape[1:]), ("single", (policy.single_stack.shape[1], 1))):
        base, sketch = arrays[f"{name}.base"], arrays[f"{name}.sketch"]
        there = base.shape[0]
        if base.shape != (there, shape[1]) or there > shape[0] or sketch.shape != (*base.shape, rows):
            raise ValueError(f"'{name}.sketch' does not fit the weights")
        to = columns_of(shape[0], shape[1], rows, stamp=1)
        to.base[:there], to.sketch[:there] = base, sketch
        parts.append(to)
    return Sketched(parts[0], parts[1], sketches._replace(**given))


def _weights(tensors: Mapping[str, np.ndarray]) -> dict[str, FrozenPolicy]:
    by_name: dict[str, dict[str, np.ndarray]] = {}
    for name, array in tensors.items():
        owner, _, part = name.partition(".")
        by_name.setdefault(owner, {})[part] = array
    if CURRENT not in by_name:
        raise ValueError("it has no current weights")
    return {name: weights_of(arrays) for name, arrays in by_name.items()}
