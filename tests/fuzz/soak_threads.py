"""Models that threads share while they learn and predict: nothing hangs, and nothing is lost or torn."""

from __future__ import annotations

import random
import sys
import warnings
from pathlib import Path

from tests.fuzz.judging import Lost
from tests.tasks.shared_models import KINDS, in_threads, one_by_one

CALLS = 12  # of each of the two threads that learn


class SharedModels:
    """Linear models of all kinds, each shared by threads, against one that learned alone."""

    def __init__(self, folder: Path):
        self.file = folder / "shared.lols"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # learning goes on from weights alone, as intended
            self.expected = {name: one_by_one(kind, 2 * CALLS) for name, kind in KINDS.items()}
        self.predictions = self.runs = 0

    def once(self, rng: random.Random) -> None:
        """Share one model."""
        name, before = rng.choice(list(KINDS)), sys.getswitchinterval()
        sys.setswitchinterval(10 ** rng.uniform(-6.0, -3.0))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                seen = in_threads(KINDS[name], CALLS, self.file)
        except Exception as error:
            raise Lost(f"a shared {name}: {type(error).__name__}: {error}") from error
        finally:
            sys.setswitchinterval(before)
        expected = self.expected[name]
        if seen[-1] != expected[-1]:
            raise Lost(f"a shared {name}: it has not learned what it would have learned alone")
        if not all(each in expected for each in seen):
            raise Lost(f"a shared {name}: a prediction is of no state between two calls")
        self.predictions, self.runs = self.predictions + len(seen), self.runs + 1

    def line(self) -> str:
        """What was done."""
        return f"threads: {self.runs} models shared, {self.predictions} predictions, all of a whole number of calls"
