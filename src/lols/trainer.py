"""Training: passes of batches through the two stages, for every algorithm, with checkpoints that resume bit for bit."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from lols.adaptive import Rivalry
from lols.algorithms import Algorithm, schedules
from lols.algorithms import algorithm as resolve
from lols.digest import digest_functions
from lols.engine.compiling import compile_seconds
from lols.engine.driver import FusedDriver
from lols.engine.structures import MIXES, ROLLS, Batch, Plan, Policy
from lols.engine.table import copied
from lols.errors import ConfigurationError, ModelFileError
from lols.examples import Examples
from lols.hashing import mix
from lols.io.model_file import read_tensors, write_tensors
from lols.learners.learner import Learner
from lols.learners.settings import LearnerSettings
from lols.mixture import PolicyMixture
from lols.model import Model
from lols.progress import Progress
from lols.space import Reference, SearchSpace

__all__ = ["Trainer", "train"]

MOST_TOGETHER = 64
TRICKS = ("merge", "reuse", "closed_form", "cache_items", "live", "bound")


class Trainer:
    """Trains a policy for a search space under a reference.

    Parameters
    ----------
    space, reference
        The contract.
    algorithm
        A preset's name or an `Algorithm`; `options` override single choices, as in `lols.algorithm`.
    learner
        A reduction's name (`"hinge"`, `"csoaa"`, `"secoc"`) or `LearnerSettings`.
    update
        The online update, where `learner` is a name.
    passes
        Passes over the data.
    batch_size
        How many examples see the same policy; the number is part of the result. 1 is Algorithm 1 as printed. By default
        a fiftieth of the examples, at least 1 and at most 64: enough to keep several threads busy.
    seed
        One number behind all randomness.
    threads
        Threads that share a batch; not part of the result.
    shuffle
        Whether every pass goes through the examples in another order.
    neighbours
        How many examples stay together when they are shuffled: reading small ones in runs is faster.
    compiled
        False runs the same code as plain Python, for debugging.
    tricks
        Speed tricks to switch off, for example `{"merge": False}`; the result is the same without them.

    """

    def __init__(
        self,
        space: SearchSpace,
        reference: Reference,
        *,
        algorithm: str | Algorithm = "lols",
        learner: str | LearnerSettings = "hinge",
        update: str | None = None,
        passes: int = 5,
        batch_size: int | None = None,
        seed: int = 0,
        threads: int = 1,
        shuffle: bool = True,
        neighbours: int = 1,
        compiled: bool = True,
        tricks: dict[str, bool] | None = None,
        **options: Any,
    ):
        for name, value in (
            ("passes", passes),
            ("batch_size", batch_size),
            ("threads", threads),
            ("neighbours", neighbours),
        ):
            if value is not None and value < 1:
                raise ConfigurationError(f"{name} is {value}; it must be at least 1")
        unknown = set(tricks or {}) - set(TRICKS)
        if unknown:
            raise ConfigurationError(f"unknown trick '{min(unknown)}': choose from {', '.join(TRICKS)}")
        self.space, self.reference = space, reference
        self.algorithm = resolve(algorithm, **options)
        if isinstance(learner, str):
            default = "nag" if learner == "csoaa" else "adagrad"
            learner = LearnerSettings(learner, update or default)
        elif update is not None:
            raise ConfigurationError("update has no effect: it is part of the LearnerSettings that were given")
        if learner.slack is not None and self.algorithm.restart:
            raise ConfigurationError(
                f"slack must be None for {self.algorithm.name}: its learner starts anew in every pass, and the policy "
                "that rolls in is another one"
            )
        self.settings = learner
        self.passes, self.batch_size, self.seed, self.threads = passes, batch_size, seed, threads
        self.shuffle, self.neighbours, self.compiled = shuffle, neighbours, compiled
        self.tricks = dict.fromkeys(TRICKS, True) | (tricks or {})
        if self.algorithm.horizon is not None and space.cost is None:
            raise ConfigurationError(
                "horizon needs a space with `cost`: a loss that is known at the end only cannot be cut"
            )
        self.plan = self._plan()

    def _plan(self) -> Plan:
        chosen, on = self.algorithm, self.tricks
        live = self.space.sizes.live if on["live"] and self.space.cost is not None else None
        auto = (chosen.beta == "auto" and "mixture" in (chosen.roll_out, chosen.roll_in)) or chosen.beta_in == "auto"
        return Plan(
            seed=mix(self.seed, 0x1015),
            roll_in=ROLLS[chosen.roll_in],
            roll_out=ROLLS[chosen.roll_out],
            mix=MIXES[chosen.mix],
            random_ties=chosen.ties == "random",
            random_teacher=self.reference.random,
            set_valued=self.reference.free is not None or self.reference.action is None,
            horizon=chosen.horizon or 0,
            sample_steps=chosen.sample_steps or 0,
            sample_actions=chosen.sample_actions or 0,
            prune=chosen.prune or 0,
            imitate=chosen.imitate,
            compare=bool(auto),
            merge=on["merge"],
            reuse=on["reuse"],
            closed_form=on["closed_form"],
            cache_items=on["cache_items"],
            live=live or 0,
            bound=on["bound"] and self.space.nonnegative and (self.settings.only_order or self._passes_over),
            exact=not self.settings.only_order,
            margin=self.settings.width,
            slack=np.inf if self.settings.slack is None else float(self.settings.slack),
        )

    @property
    def _passes_over(self) -> bool:
        """Whether states are passed over by the order of their costs alone."""
        return self.settings.slack is not None and self.settings.width >= 0.0

    def new_learner(self) -> Learner:
        """A learner that knows nothing yet."""
        chosen = self.algorithm
        return Learner(
            self.settings,
            self.space.sizes.actions,
            by_action=self.space.action_features is not None,
            averaged=chosen.restart or chosen.returned == "average",
            compiled=self.compiled,
        )

    def returned_policy(self, learner: Learner) -> Policy:
        """The policy that a learner has come to, as a copy: averaged or as it is now."""
        if self.algorithm.returned == "average" and learner.averaged:
            policy = learner.policy(averaged=True)  # new weights already
            return policy._replace(shared=copied(policy.shared), single=copied(policy.single))
        return frozen(learner.policy())

    def fit(
        self,
        data: Iterable[Any] | Examples,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        resume: bool = False,
        progress: bool | Progress | None = None,
        after_pass: Callable[[int, Model], bool | None] | None = None,
    ) -> Model:
        """Train, and give the model.

        Parameters
        ----------
        data
            The user's objects, or `Examples` in columns.
        checkpoint
            A file that is rewritten every `checkpoint_every` seconds.
        resume
            Go on from the checkpoint if there is one: the result is bit-identical to a run without interruption.
        progress
            Whether to show a bar, by default on a terminal only; or the bar that shall be moved, in steps.
        after_pass
            Called with the number of the pass and the model so far; training stops if it gives True.

        """
        if resume and checkpoint is None:
            raise ConfigurationError("resume has no effect: name the checkpoint file")
        began, compiling = time.perf_counter(), compile_seconds()
        examples = (
            data if isinstance(data, Examples) else Examples(self.space, data, truth=self.reference.needs_truth or None)
        )
        run = _Run(self, examples)
        if resume and checkpoint is not None and Path(checkpoint).exists():
            run.restore(checkpoint)
        saved = time.monotonic()
        with (
            FusedDriver(self.space, examples, self.reference, threads=self.threads, compiled=self.compiled) as driver,
            progress if isinstance(progress, Progress) else self.bar(examples, progress) as bar,
        ):
            for indices, rounds in run.batches():
                beta, beta_in = run.betas(rounds)
                batch = driver.collect(indices, rounds, run.rolling_policy(), self.plan, beta, beta_in)
                run.learn(batch)
                bar.advance(run.steps_done, loss=run.progressive_loss)
                if checkpoint is not None and time.monotonic() - saved >= checkpoint_every:
                    run.save(checkpoint)
                    saved = time.monotonic()
                if run.offset == 0 and after_pass is not None and after_pass(run.pass_ - 1, run.model()):
                    break
        self.learner = run.learner
        model = run.model()
        compiling = compile_seconds() - compiling
        model.report |= {"seconds_total": time.perf_counter() - began, "seconds_compiling": compiling}
        return model

    def bar(self, examples: Examples, wanted: bool | None = None, title: str = "training", unit: str = "steps") -> Any:
        """A progress bar for training on these examples."""
        return Progress(wanted, self.passes * int(examples.steps.sum()), title, unit)


class _Run:
    """The moving parts of one training run: everything here goes into a checkpoint."""

    def __init__(self, trainer: Trainer, examples: Examples):
        self.trainer, self.examples = trainer, examples
        chosen = trainer.algorithm
        self.total = trainer.passes * len(examples)
        self.batch_size = trainer.batch_size or max(1, min(MOST_TOGETHER, len(examples) // 50))
        self.learner = trainer.new_learner()
        self.mixture = PolicyMixture(chosen, self.total) if chosen.restart else None
        self.rivalry = Rivalry()
        self.schedules = schedules(chosen)
        self.pass_, self.offset = 0, 0
        self.sums = np.zeros((trainer.passes, 2))
        # The online-to-batch conversion draws a round; knowing it in advance, one copy is enough.
        self.drawn_round = mix(mix(trainer.seed, 0xD12A), 1) % self.total + 1 if chosen.returned == "drawn" else 0
        self.snapshot: Policy | None = None
        self.steps_done = 0

    # --- the order of things ---

    def batches(self) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Batches of example numbers with their rounds, from where the run stands."""
        count, size = len(self.examples), self.batch_size
        while self.pass_ < self.trainer.passes:
            order = self._order(self.pass_)
            if self.mixture is not None and self.offset == 0:
                self.mixture.begin(self.learner)
            while self.offset < count:
                until = min(self.offset + size, count)
                at = np.arange(self.offset, until)
                self._next = (self.pass_, until) if until < count else (self.pass_ + 1, 0)
                yield order[at], self.pass_ * count + at
                if self.offset == 0:
                    break

    def _order(self, number: int) -> np.ndarray:
        count = len(self.examples)
        if not self.trainer.shuffle:
            return np.arange(count)
        return shuffled(count, mix(mix(self.trainer.seed, 0x0DE2), number), self.trainer.neighbours)

    @property
    def done(self) -> int:
        """Rounds done so far."""
        return self.pass_ * len(self.examples) + self.offset

    @property
    def progressive_loss(self) -> float:
        """Mean loss of the roll-ins of this pass, each made before its example was learned from."""
        number = min(self.pass_ if self.offset else self.pass_ - 1, self.trainer.passes - 1)
        return float(self.sums[number, 0] / max(self.sums[number, 1], 1.0))

    def betas(self, rounds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """β of roll-out and roll-in for the next rounds."""
        if self.mixture is not None:
            beta = np.full(rounds.size, self.mixture.reference_weight)
            return beta, beta
        out, into = (
            np.full(rounds.size, self.rivalry.beta) if s is None else s(rounds, self.total) for s in self.schedules
        )
        return out, into

    def rolling_policy(self) -> Policy:
        """The policy that rolls in and out: the current one, or Searn's mixture of the passes before."""
        return self.learner.policy() if self.mixture is None else self.mixture.policy(self.learner)

    def learn(self, batch: Batch) -> None:
        """The second stage, and the bookkeeping."""
        self.learner.learn(batch)
        self.steps_done += int(batch.filled.sum())
        self.sums[self.pass_] += (batch.losses[:, 0].sum(), batch.losses.shape[0])
        if self.trainer.plan.compare:
            self.rivalry.observe(batch.losses)
        before = self.done
        self.pass_, self.offset = self._next
        if before < self.drawn_round <= self.done:
            self.snapshot = frozen(self.learner.policy())
        if self.mixture is not None and self.offset == 0:
            self.mixture.end(self.learner, len(self.examples))

    # --- what comes out ---

    def policy(self) -> Policy:
        """The policy that the algorithm returns."""
        if self.mixture is not None:
            return self.mixture.final(self.learner)
        if self.snapshot is not None:
            return self.snapshot
        return self.trainer.returned_policy(self.learner)

    def model(self) -> Model:
        """The model as it is now."""
        trainer = self.trainer
        about = {
            "algorithm": plain(trainer.algorithm),
            "learner": self.learner.describe(),
            "passes": trainer.passes,
            "batch_size": self.batch_size,
            "seed": trainer.seed,
            "examples": len(self.examples),
            "reference": trainer.reference.name,
            "beta": self.rivalry.beta if trainer.plan.compare else None,
        }
        seen = self.sums[self.sums[:, 1] > 0]
        report = {
            "progressive_loss": (seen[:, 0] / seen[:, 1]).tolist(),
            "beta": self.rivalry.beta,
            **self.learner.report(),
        }
        threads, compiled = trainer.threads, trainer.compiled
        return Model(trainer.space, self.policy(), trainer.plan, about, report, threads=threads, compiled=compiled)

    # --- checkpoints ---

    def _identity(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to be of this run."""
        trainer = self.trainer
        digest = hashlib.sha256()
        for column in (*self.examples.x, *self.examples.y, self.examples.items):
            for part in column:
                digest.update(np.ascontiguousarray(part).tobytes())
        return {
            "algorithm": plain(trainer.algorithm),
            "learner": asdict(trainer.settings),
            "passes": trainer.passes,
            "batch_size": self.batch_size,
            "seed": trainer.seed,
            "shuffle": trainer.shuffle,
            "neighbours": trainer.neighbours,
            "space": digest_functions(trainer.space.functions()),
            "reference": digest_functions(trainer.reference.functions()),
            "data": digest.hexdigest(),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint."""
        tensors = {f"learner.{k}": v for k, v in self.learner.state().items()} | {"sums": self.sums}
        if self.snapshot is not None:
            tensors |= {"snapshot.stack": self.snapshot.stack, "snapshot.single": self.snapshot.single_stack}
        if self.mixture is not None:
            tensors |= self.mixture.state()
        header = {
            "identity": self._identity(),
            "pass": self.pass_,
            "offset": self.offset,
            "rivalry": self.rivalry.state(),
        }
        write_tensors(path, "checkpoint", header, tensors)

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Go on from a checkpoint."""
        header, tensors = read_tensors(path, "checkpoint")
        found, mine = header.get("identity", {}), self._identity()
        for name, value in mine.items():
            if found.get(name) != value:
                raise ModelFileError(
                    f"{path}: made with another {name}; resume with the same data and options, or delete it"
                )
        try:
            self._take_over(header, tensors)
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise ModelFileError(f"{path}: the checkpoint is damaged ({type(error).__name__}: {error})") from error

    def _take_over(self, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        self.learner.load({k.removeprefix("learner."): v for k, v in tensors.items() if k.startswith("learner.")})
        if tensors["sums"].shape != self.sums.shape:
            raise ValueError(f"'sums' has shape {tensors['sums'].shape}")
        self.sums = tensors["sums"].copy()
        self.pass_, self.offset = int(header["pass"]), int(header["offset"])
        self.rivalry = Rivalry(**header["rivalry"])
        if self.mixture is not None:
            self.mixture.load(tensors, self.learner)
        if "snapshot.stack" in tensors:
            # Rows are only ever added, so the snapshot's rows are the first of the learner's.
            policy = frozen(self.learner.policy())
            stack, single = np.zeros_like(policy.stack), np.zeros_like(policy.single_stack)
            old, old_single = tensors["snapshot.stack"], tensors["snapshot.single"]
            rows, single_rows = min(old.shape[1], stack.shape[1]), min(old_single.shape[1], single.shape[1])
            stack[:, :rows], single[:, :single_rows] = old[:, :rows], old_single[:, :single_rows]
            self.snapshot = policy._replace(stack=stack, single_stack=single)


def train(space: SearchSpace, data: Iterable[Any] | Examples, reference: Reference, **options: Any) -> Model:
    """Train a policy in one call: `Trainer(space, reference, **options).fit(data)`.

    See `Trainer` for the options; `checkpoint`, `resume`, `progress` and `after_pass` are those of `Trainer.fit`.
    """
    names = ("checkpoint", "checkpoint_every", "resume", "progress", "after_pass")
    fitting = {name: options.pop(name) for name in names if name in options}
    return Trainer(space, reference, **options).fit(data, **fitting)


def plain(chosen: Algorithm) -> dict[str, Any]:
    """An algorithm as plain values, for model files."""
    return {k: v if v is None or isinstance(v, bool | int | float) else str(v) for k, v in vars(chosen).items()}


def shuffled(count: int, key: int, neighbours: int = 1) -> np.ndarray:
    """The numbers below `count` in an order of their own for each key, runs of `neighbours` left together.

    >>> shuffled(6, 1).tolist(), shuffled(6, 1, neighbours=2).tolist()
    ([3, 5, 2, 0, 1, 4], [4, 5, 0, 1, 2, 3])
    """
    generator = np.random.Philox(key=key & ((1 << 64) - 1))
    order = np.argsort(generator.random_raw(-(-count // neighbours)), kind="stable")
    if neighbours == 1:
        return order
    runs = (order[:, np.newaxis] * neighbours + np.arange(neighbours)).ravel()
    return runs[runs < count]


def frozen(policy: Policy) -> Policy:
    """A copy that later learning does not touch."""
    tables = [copied(t) for t in (policy.shared, policy.single)]
    return policy._replace(
        shared=tables[0], single=tables[1], stack=policy.stack.copy(), single_stack=policy.single_stack.copy()
    )
