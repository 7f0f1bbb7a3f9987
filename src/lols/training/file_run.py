"""A run in pass mode over files that only workers read."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

from lols.contract.examples import Examples
from lols.engines import Files
from lols.training.model import Model
from lols.training.run import TrainingRun

if TYPE_CHECKING:
    from lols.training.trainer import Trainer

BATCH = 64  # examples, by default: what a large data set has, and files are for these


class FileRun(TrainingRun):
    """A run whose driver has seen a few examples only, by which margins are settled and kernels compiled."""

    def __init__(self, trainer: Trainer, few: Examples, files: Files):
        super().__init__(trainer, few)
        self.files = files
        self.batch_size = trainer.batch_size or BATCH

    @property
    def data(self) -> Files:
        """What shards are made of."""
        return self.files

    def model(self) -> Model:
        """The model as it is now; how many examples there are is known after a pass."""
        self.count = int(self.sums[:, 1].max(initial=0))
        return super().model()

    def data_digest(self) -> str:
        """A digest of the names and sizes of the files, as far as this machine sees them."""
        known = [f"{name} {os.path.getsize(name) if os.path.exists(name) else ''}" for name in self.files.names]
        return hashlib.sha256("\0".join(known).encode()).hexdigest()
