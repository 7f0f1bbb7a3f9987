"""Models that threads share while they learn and predict: nothing hangs, and nothing is lost or torn."""

from __future__ import annotations

import random
import sys
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import lols
from tests.cli.calling import run
from tests.cli.test_stops import given
from tests.fuzz.judging import Lost
from tests.tasks.shared_models import KINDS, in_threads, one_by_one

NETWORK = ("--policy", "neural", "--width", 8, "--layers", 1)
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


class SharedNetworks:
    """Threads that share neural models: each must be told what one thread is told."""

    def __init__(self, folder: Path):
        self.models: list[Any] = []
        for kind in ("tagger", "parser") if find_spec("torch") else ():
            (folder / kind).mkdir()
            arguments, _ = given(kind, folder / kind)
            assert run("train", *arguments, *NETWORK, "-o", folder / kind / "m.lols").code == 0
            self.models.append((kind, lols.load(folder / kind / "m.lols")))
        self.threads = self.asked = 0

    def once(self, rng: random.Random) -> None:
        """Ask a model with several threads at a time."""
        if not self.models:
            return
        from tests.torch.sharing import asked_by_threads

        (kind, model), threads = rng.choice(self.models), rng.randint(2, 8)
        words = ("The", "cat", "sees", "a", "dog")
        inputs = [[rng.choices(words, k=rng.randint(1, 9)) for _ in range(rng.randint(1, 4))] for _ in range(10)]
        wanted = [model.predict(given) for given in inputs]
        if any(told != wanted for told in asked_by_threads(model.predict, inputs, threads)):
            raise Lost(f"neural {kind}: threads that share it are told something else than one thread")
        self.threads, self.asked = self.threads + threads, self.asked + threads * len(inputs)

    def line(self) -> str:
        """What was done."""
        if not self.models:
            return "shared networks: skipped, because PyTorch is not installed"
        return f"shared networks: {self.asked} calls by {self.threads} threads, as by a single one"
