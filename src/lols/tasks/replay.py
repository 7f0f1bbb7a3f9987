"""Old data mixed into the new: a file of which a share of the examples is taken."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from lols.errors import ConfigurationError
from lols.io.conll import Sentences
from lols.kernels.hashing import mix
from lols.training.order import shuffled


class ReplayedFile(str):
    """The path of a file of which a share of the examples is taken, drawn by the seed.

    >>> old = ReplayedFile.read("old.conllu:0.3", seed=1)
    >>> str(old), old.share, old.chosen(10).tolist()
    ('old.conllu', 0.3, [1, 8, 9])
    """

    share: float
    seed: int

    @classmethod
    def read(cls, text: str, seed: int = 0) -> Self:
        """From `FILE:SHARE`."""
        path, _, number = text.rpartition(":")
        try:
            share = float(number)
        except ValueError:
            share = -1.0
        if not path or not 0.0 < share <= 1.0:
            raise ConfigurationError(f"--replay {text}: write a file and a share of it, such as old.conllu:0.3")
        made = cls(path)
        made.share, made.seed = share, seed
        return made

    def chosen(self, count: int) -> np.ndarray:
        """The numbers of the examples that are taken, of this many; at least one."""
        taken = max(1, round(self.share * count)) if count else 0
        return np.sort(shuffled(count, mix(self.seed, 0x2E91A7))[:taken])


def thinned(sentences: Sentences, path: Any) -> Sentences:
    """The sentences of a file; of one that is replayed, only its share."""
    if not isinstance(path, ReplayedFile):
        return sentences
    return sentences.select(path.chosen(sentences.offsets.size - 1))
