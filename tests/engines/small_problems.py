"""Problems that engines are tested on, and an engine that cuts batches into parts inside this process."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.engines import InProcess, Workers
from lols.engines.protocol import InProcessWorkers

SPACE, TEACHERS = tagging_space(labels=5), tagging_references()
DATA = tagging_data(60, labels=5, words=40)


def fitted(engine: Any, data: Any = DATA, space: Any = SPACE, teacher: str = "optimal", **options: Any) -> lols.Trainer:
    """A trainer after training with an engine."""
    how: dict[str, Any] = {"passes": 2, "batch_size": 16, "seed": 3} | options
    fitting = {
        name: how.pop(name) for name in ("checkpoint", "checkpoint_every", "resume", "after_pass") if name in how
    }
    reference = TEACHERS[teacher] if space is SPACE else None
    trainer = lols.Trainer(space, reference, engine=engine, **how)
    trainer.model = trainer.fit(data, progress=False, **fitting)  # type: ignore[attr-defined]
    return trainer


def same(one: lols.Trainer, other: lols.Trainer) -> bool:
    """Whether two trainings have the same result, bit for bit."""
    a, b = (arrays(trainer) for trainer in (one, other))
    losses = [t.model.report["progressive_loss"] for t in (one, other)]  # type: ignore[attr-defined]
    return losses[0] == losses[1] and a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)


def arrays(trainer: lols.Trainer) -> dict[str, np.ndarray]:
    """The arrays of the model, and of the learner if it can go on."""
    made: dict[str, np.ndarray] = dict(trainer.model.contents()[1])  # type: ignore[attr-defined]
    return made | ({} if trainer.state is None else trainer.state.learner.state())


class InParts(InProcessWorkers):
    """This process, but batches are cut into three parts."""

    alive = 3


@dataclass(frozen=True, kw_only=True)
class Parts(InProcess):
    """An engine that cuts batches, and does all parts in this process: copies of policies are all that is tested."""

    LOCAL: ClassVar[bool] = False

    def start(self) -> Workers:
        return InParts()


def doubled(number: int) -> int:
    """For `map`."""
    return 2 * number


def slowly(number: int) -> int:
    """The first items take longest."""
    time.sleep(0.05 * max(0, 4 - number))
    return number


def refused(number: int) -> int:
    """Items from 2 on are an error."""
    if number >= 2:
        raise lols.LolsError(f"item {number} is refused")
    return number


def dies_once(task: tuple[str, int]) -> int:
    """Kills its process when the item comes for the first time."""
    folder, number = task
    mark = Path(folder) / str(number)
    if number == 2 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return number


def dies(number: int) -> int:
    """Kills its process."""
    os.kill(os.getpid(), signal.SIGKILL)
    return number
