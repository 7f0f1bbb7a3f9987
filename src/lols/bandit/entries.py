"""The entries of a log: decisions, losses and events, with their checks."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol, Self

import numpy as np

from lols.bandit.seen import Seen, check_seen, unpacked
from lols.contract.space import SearchSpace
from lols.engine.structures import LARGEST_COST
from lols.errors import LolsError, shown

WHOLE = -1  # in the place of a step: the loss of the whole structure
LONGEST_ID = 200
FLAGS = ("by_reference", "guarded", "active")


class Decision(NamedTuple):
    """One structure that was shown, with all that learning and off-policy evaluation need.

    With `context`, the features of its states follow from it and the actions. `seen` has them for objects that are not
    JSON, and in logs of lols 0.2.
    """

    id: str  # the user's own, or the number as text
    number: int  # 0, 1, 2, ...
    time: float  # seconds since 1970
    context: str | None  # the object as given, as JSON
    actions: np.ndarray  # int32: the actions of the structure
    chances: np.ndarray  # float32: the probability of each of them; empty if not drawn step by step
    baseline: np.ndarray | None  # int32: the actions of the reference for this object
    step: int  # t, the step to learn from; -1 if nothing was explored
    action: int  # a_t; -1 if nothing was explored
    by_reference: bool  # whether the reference completed the roll-out
    chance_step: float  # p(t); 1 if nothing was explored
    chance_action: float  # p(a_t | s_t)
    version: int  # the number of losses that the policy had learned from
    policy: int  # the number of the kept policy that acted; -1 for the current one
    guarded: bool  # whether the guard showed the reference
    propensity: float  # of the whole structure; NaN if it cannot be computed
    active: bool  # whether it was shown at once; if not, a loss or `activate` says that it was
    seen: Seen | None

    @property
    def explored(self) -> bool:
        """Whether something is to be learned from it."""
        return self.step >= 0

    @property
    def object(self) -> Any:
        """The object that was decided; None if it was not JSON."""
        try:
            return None if self.context is None else json.loads(self.context)
        except (ValueError, RecursionError):
            raise LolsError(f"decision {self.id}: its object is not JSON") from None


class Loss(NamedTuple):
    """News of an earlier decision: the loss of its whole structure, losses of its steps, or both; from 0 to 1."""

    id: str
    losses: Mapping[int, float]  # by step; `WHOLE` for the whole structure
    time: float = 0.0


class Event(NamedTuple):
    """What else is to be known for a replay: settings that changed, or that a decision was shown later."""

    kind: str  # "settings" or "active"
    value: Mapping[str, Any]
    time: float = 0.0


Entry = Decision | Loss | Event


class Snapshot(NamedTuple):
    """What a bandit knew after an entry of its log."""

    place: int  # of that entry
    version: int  # the number of losses that the policy had learned from
    digest: str  # of the policy
    state: bytes | None  # None where a later snapshot has taken its place
    time: float = 0.0


class Log(Protocol):
    """The methods that a bandit needs of its log, to be implemented for a server database in the place of `SqliteLog`.

    A log has one writer. It must count each loss exactly once, also across crashes.
    """

    space: SearchSpace | None = None  # that of the bandit that has the log open
    reading: bool = False  # whether it was opened to read it only

    def append(self, entry: Entry) -> bool:
        """Write an entry; it is durable when this returns.

        Returns False if it is there already: a decision with this id, or all parts of this loss; parts that are new are
        written. What is ignored of a loss is counted as a duplicate. After an error nothing was written.

        Parameters
        ----------
        entry
            A decision, losses, or an event.

        """

    def find(self, id: str) -> Decision | None:
        """The decision with this id; None if there is none.

        Parameters
        ----------
        id
            The id of the decision.

        """

    def parts(self, id: str) -> Mapping[int, float]:
        """The losses of a decision so far, by step.

        Parameters
        ----------
        id
            The id of the decision.

        """

    def replay(self, after: int = 0) -> Iterator[Entry]:
        """All entries behind this place that exist when the reading begins, in the order in which they were written.

        Parameters
        ----------
        after
            The place of the last entry before those; 0 for all.

        """

    def decisions(self) -> int:
        """The number of decisions, which is the number of the next one."""

    def duplicates(self) -> int:
        """The number of losses that were ignored because their decision had them."""

    def place(self) -> int:
        """The place of the last entry: the number of entries so far."""

    def keep(self, snapshot: Snapshot) -> None:
        """Write a snapshot; a log that cannot do so ignores it.

        Parameters
        ----------
        snapshot
            What was learned up to an entry.

        """
        return

    def about(self, name: str) -> str | None:
        """A note that the log has of itself; None if there is none.

        Parameters
        ----------
        name
            What the note is called.

        """
        return None

    def note(self, name: str, value: str) -> None:
        """Write a note, in the place of one of this name; a log that cannot do so ignores it.

        Parameters
        ----------
        name
            What the note is called.
        value
            Its text.

        """
        return

    def snapshots(self) -> list[Snapshot]:
        """All snapshots in their order."""
        return []

    def close(self) -> None:
        """Close the log; closing it twice is allowed."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


_ROUNDING = 1e-9  # by which a sum of probabilities may exceed 1
_ROUNDING_STEPS = 1e-6  # the same for those of single steps, of 32 bits
SMALLEST_CHANCE = 1.0 / LARGEST_COST  # of what was explored: a loss divided by it is a cost to learn from


_encode = json.JSONEncoder(allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode


def context_of(obj: Any) -> str | None:
    """An object as JSON; None if it would not come back as it is.

    >>> context_of({"words": [4, 5]}), context_of({1: 2}), context_of({"words": (4, 5)})
    ('{"words":[4,5]}', None, None)
    """
    try:
        text = _encode(obj)
        same = json.loads(text) == obj
        text.encode()
        return text if same is True else None
    except (TypeError, ValueError, RecursionError):
        return None


def check_id(id: Any) -> str:
    """The id of a decision as text; a whole number is one, too."""
    if isinstance(id, int | np.integer) and not isinstance(id, bool) and -(1 << 63) <= id < 1 << 63:
        return str(int(id))
    if isinstance(id, str) and 0 < len(id) <= LONGEST_ID and id.isprintable():
        return str(id)
    raise LolsError(f"the id of a decision is {shown(id)}: give a text of 1 to {LONGEST_ID} printable characters")


def unknown(id: Any) -> LolsError:
    """The error for an id without a decision."""
    return LolsError(f"unknown decision {shown(id)}: give the id that came with the decision")


def check(entry: Entry, count: int) -> None:
    """Check an entry before it is written to a log of `count` decisions, or when it is read after as many."""
    if isinstance(entry, Decision):
        if entry.number != count:
            raise LolsError(
                f"decision {shown(entry.number)} is out of order: the log holds {count}, so the next is {count}"
            )
        check_fields(entry)
    elif isinstance(entry, Loss):
        check_id(entry.id)
        if not entry.losses:
            raise LolsError(f"decision {entry.id}: no loss is given: give `loss`, `losses`, or both")
        for step, loss in entry.losses.items():
            check_loss(loss)
            if step < WHOLE:
                raise LolsError(f"decision {entry.id}: there is no step {step}: steps are counted from 0")
    elif not isinstance(entry, Event):
        raise LolsError(f"a log takes a Decision, a Loss or an Event, not {type(entry).__name__}")


def check_fields(entry: Decision) -> None:
    """Check that a decision can be read back bit for bit, and that it can be learned from."""
    check_id(entry.id)
    where = f"decision {entry.id}"
    arrays = [("actions", entry.actions, np.int32), ("chances", entry.chances, np.float32)]
    for name, array, dtype in [*arrays, ("baseline", entry.baseline, np.int32)]:
        if array is None and name == "baseline":
            continue
        if not isinstance(array, np.ndarray) or array.dtype != dtype or array.ndim != 1:
            kind = f"{array.dtype}, {array.ndim}-d" if isinstance(array, np.ndarray) else type(array).__name__
            raise LolsError(f"{where}: {name} is {kind}: give a 1-d array of {np.dtype(dtype)}")
    if entry.chances.size not in (0, entry.actions.size):
        raise LolsError(f"{where}: {entry.chances.size} chances for {entry.actions.size} actions: give all")
    for name in ("number", "step", "action", "version", "policy"):
        value = getattr(entry, name)
        if not isinstance(value, int | np.integer) or not -(1 << 63) <= value < 1 << 63:
            raise LolsError(f"{where}: {name} is {shown(value)}; it must be a whole number of 64 bits")
    for name in ("chance_step", "chance_action", "propensity"):
        chance = getattr(entry, name)
        if name == "propensity" and math.isnan(chance):
            continue
        if not 0 <= chance <= 1 + _ROUNDING:
            raise LolsError(f"{where}: {name} is {chance}: a probability lies between 0 and 1")
    if entry.chances.size and not 0 < entry.chances.min() <= entry.chances.max() <= 1 + _ROUNDING_STEPS:
        raise LolsError(f"{where}: its actions cannot have been taken with the chances it has")
    if not math.isfinite(entry.time):
        raise LolsError(f"{where}: its time is {entry.time}: give seconds since 1970")
    if entry.seen is not None:
        check_seen(entry.seen, where)
    if entry.step >= 0:
        if entry.step >= entry.actions.size or entry.actions[entry.step] != entry.action:
            raise LolsError(f"{where}: its action {entry.action} is not the one at step {entry.step}")
        if entry.seen is not None and not (entry.seen.taken[entry.seen.steps == entry.step] == entry.action).any():
            raise LolsError(f"{where}: it has not the state of step {entry.step}")
        chance = min(entry.chance_step, entry.chance_action)
        if not chance >= SMALLEST_CHANCE:
            raise LolsError(f"{where}: its action cannot have been taken with the chance {chance}")


def check_loss(loss: Any) -> None:
    """Check that a loss is a number from 0 to 1."""
    try:
        valid = 0 <= loss <= 1 and math.isfinite(loss)
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise LolsError(f"loss {shown(loss)}: give a number from 0 to 1")


# --- rows of tables ---------------------------------------------------------------------------------------------------

COLUMNS = [name for name in Decision._fields if name != "seen"] + ["features", "checksum"]


def to_row(entry: Decision) -> tuple[Any, ...]:
    """The columns of a checked decision in the order of `COLUMNS`."""
    row = (
        str(entry.id),
        int(entry.number),
        float(entry.time) + 0.0,  # SQLite keeps no sign of zero
        None if entry.context is None else zlib.compress(entry.context.encode(), 6),
        _whole_text(entry.actions),
        _float_text(entry.chances),
        None if entry.baseline is None else _whole_text(entry.baseline),
        int(entry.step),
        int(entry.action),
        int(entry.by_reference),
        float(entry.chance_step) + 0.0,
        float(entry.chance_action) + 0.0,
        int(entry.version),
        int(entry.policy),
        int(entry.guarded),
        None if math.isnan(entry.propensity) else float(entry.propensity) + 0.0,
        int(entry.active),
        None if entry.seen is None else entry.seen.to_bytes(),
    )
    return (*row, checksum(row))


def from_row(row: tuple[Any, ...]) -> Decision:
    """The decision of a row that `to_row` made; ValueError if the row was changed."""
    *values, wanted = row
    if checksum(tuple(values)) != wanted:
        raise ValueError("the checksum is wrong")
    fields: dict[str, Any] = dict(zip(COLUMNS, values, strict=False))
    try:
        packed, features = fields["context"], fields.pop("features")
        fields["context"] = None if packed is None else unpacked(packed).decode()
        fields["actions"] = np.array(json.loads(fields["actions"]), np.int32)
        fields["chances"] = np.array(json.loads(fields["chances"]), np.float32)
        fields["baseline"] = None if fields["baseline"] is None else np.array(json.loads(fields["baseline"]), np.int32)
        fields["propensity"] = math.nan if fields["propensity"] is None else fields["propensity"]
        fields |= {name: bool(fields[name]) for name in FLAGS}
        return Decision(**fields, seen=None if features is None else Seen.from_bytes(features))
    except (TypeError, ValueError, OverflowError, RecursionError, zlib.error) as error:
        raise ValueError(f"it cannot be read: {' '.join(str(error).split())}") from None


def checksum(row: tuple[Any, ...]) -> int:
    """A checksum of the values of a row."""
    crc = zlib.crc32(repr([value for value in row if not isinstance(value, bytes)]).encode("utf-8", "replace"))
    for value in row:
        if isinstance(value, bytes):
            crc = zlib.crc32(value, crc)
    return crc


def _whole_text(array: np.ndarray) -> str:
    return f"[{','.join(map(str, array.tolist()))}]"


def _float_text(array: np.ndarray) -> str:
    """Numbers of 32 bits as text: nine digits tell each of them."""
    return f"[{','.join([f'{value:.9g}' for value in array.tolist()])}]"
