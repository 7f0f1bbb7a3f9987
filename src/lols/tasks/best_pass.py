"""Choosing a model on held-out data: the best pass, early stopping, and what survives an interruption."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from lols.contract.space import SearchSpace
from lols.contract.whole_numbers import check_whole
from lols.errors import ConfigurationError, ModelFileError
from lols.io.model_file import read_tensors
from lols.io.whole_file import remove
from lols.tasks.verbs import BEST_SO_FAR
from lols.training.model import Model, make_model
from lols.training.progress import Progress

DECISIVE = ("las", "uas", "f1", "accuracy")  # the first of these that there is

SETTINGS = ("algorithm", "passes", "batch_size", "seed")  # that both a checkpoint and a model say


class Choice:
    """Called after every pass: scores the model on the dev data, keeps the best, says when to stop.

    Parameters
    ----------
    space
        The space of the models.
    score
        The scores of a model on the dev data, by name; None if there is none.
    patience
        How many passes without improvement end the training; None for all passes.
    bar
        Where the score is shown.
    checkpoint
        The checkpoint of the training, beside which the best model is kept.

    """

    def __init__(
        self,
        space: SearchSpace,
        score: Callable[[Model], dict[str, float]] | None,
        patience: int | None,
        bar: Progress,
        checkpoint: Any = None,
    ):
        check_patience(patience, score is not None)
        self.space, self.score, self.patience, self.bar = space, score, patience, bar
        self.kept = None if checkpoint is None else best_beside(checkpoint)
        self.best: Model | None = None
        self.history: list[dict[str, float]] = []
        self.policy: Callable[[], Any] = lambda: None  # makes what the best model's policy is read into

    def __call__(self, number: int, model: Model) -> bool:
        """Score a pass; True if training shall stop."""
        assert self.score is not None
        entry = {"pass": float(number + 1)} | self.score(model)
        values = [value_of(e) for e in self.history]
        self.history.append(entry)
        self.bar.say(f"dev {shown_score(entry)}")
        if self.best is None or value_of(entry) > max(values):
            self.best = model
        if self.kept is not None and self.best is not None:
            self.best.save(self.kept, task={"name": BEST_SO_FAR, "history": self.history})
        since = len(values) - int(np.argmax([*values, value_of(entry)]))
        return self.patience is not None and since >= self.patience

    @property
    def best_pass(self) -> int | None:
        """The pass that was best, counted from 1."""
        values = [value_of(entry) for entry in self.history]
        return int(np.argmax(values)) + 1 if values else None

    def resume(self, checkpoint: Any) -> None:
        """Take over what was best before an interruption; an error if the checkpoint was made with other dev data."""
        if checkpoint is None or self.kept is None or not Path(checkpoint).exists():
            return
        header, _ = read_tensors(checkpoint, "checkpoint")
        try:
            passes, seen, identity = int(header["pass"]), list(header["history"]), dict(header["identity"])
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ModelFileError(f"{checkpoint}: the checkpoint is damaged ({error})") from error
        if len(seen) != (0 if self.score is None else passes):
            raise _other_data(checkpoint)
        if seen:
            self._take_over(checkpoint, identity, seen)

    def _take_over(self, checkpoint: Any, identity: dict[str, Any], seen: list[dict[str, float]]) -> None:
        """Read the best model and the scores so far; both may be newer than the checkpoint."""
        assert self.kept is not None and self.score is not None
        header, tensors = read_tensors(self.kept, "model")
        try:
            history, about = list(header["task"]["history"]), dict(header["about"])
            best = int(np.argmax([float(value_of(entry)) for entry in history]))
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ModelFileError(
                f"{self.kept}: what was best so far is damaged; delete it and {checkpoint}, and start again"
            ) from error
        if history[: len(seen)] != seen or any(about.get(name) != identity.get(name) for name in SETTINGS):
            raise ModelFileError(f"{self.kept}: not of the run of {checkpoint}; delete both, and start again")
        self.best = make_model(self.kept, header, tensors, self.space, policy=self.policy())
        if {name: value for name, value in history[best].items() if name != "pass"} != self.score(self.best):
            raise _other_data(checkpoint)
        self.history = seen


def forget(checkpoint: Path) -> None:
    """Delete a checkpoint and what is beside it: training is done, and its model is in its own file."""
    remove(checkpoint)  # first, because it is of no use without the best model
    remove(best_beside(checkpoint))
    remove(trials_beside(checkpoint))


def best_beside(checkpoint: Any) -> Path:
    """Where the best model so far is kept."""
    return Path(f"{checkpoint}.best")


def trials_beside(checkpoint: Any) -> Path:
    """Where is kept what trials of settings have cost."""
    return Path(f"{checkpoint}.trials")


def _other_data(checkpoint: Any) -> ModelFileError:
    return ModelFileError(
        f"{checkpoint}: made with other dev data; resume with the same data and options, or delete it"
    )


def check_patience(patience: int | None, held_out: bool) -> None:
    """Patience is a number of passes, and needs held-out data to lose it on."""
    if patience is not None:
        check_whole("patience", patience, otherwise=" pass, or None for all passes")
    if patience is not None and not held_out:
        raise ConfigurationError("patience has no effect: there are no dev data to get better on; give some")


def value_of(entry: dict[str, float]) -> float:
    """The score that decides; the more, the better."""
    return -entry["cost"] if "cost" in entry else entry[_deciding(entry)]


def shown_score(entry: dict[str, float]) -> str:
    """The score that decides, in words.

    >>> shown_score({"pass": 1.0, "uas": 0.91, "las": 0.885}), shown_score({"cost": 0.2})
    ('LAS 88.50', 'cost 0.2000')
    """
    if "cost" in entry:
        return f"cost {entry['cost']:.4f}"
    name = _deciding(entry)
    return f"{name if name == 'accuracy' else name.upper()} {100 * entry[name]:.2f}"


def _deciding(entry: dict[str, float]) -> str:
    return next(name for name in DECISIVE if name in entry or name == DECISIVE[-1])
