"""Weights of features as a policy: searched with by the fused driver, and learned online."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.threads import Threads
from lols.engine.beam import BeamDriver
from lols.engine.drivers.fused import FusedDriver, KernelCall
from lols.engine.structures import Batch, FrozenPolicy, Plan
from lols.engine.table import copied
from lols.errors import ConfigurationError, LolsError
from lols.learners.learner import Learner, frozen
from lols.learners.settings import LearnerSettings
from lols.learners.structures import SECOND_ORDER
from lols.policies.in_lock_step import LinearPolicy
from lols.policies.mixture import PolicyMixture
from lols.policies.policy import Given, Policy, Terms


class Linear(Given, Policy):
    """A linear policy: it takes the action whose features have the best weights.

    Parameters
    ----------
    learner
        How costs become weights: `"hinge"`, `"csoaa"` or `"secoc"`; or `LearnerSettings`, which leave nothing open.
    update
        The online update; by default `"nag"` for csoaa, else `"adagrad"`.
    settings
        Single settings by the names of `LearnerSettings`, such as `rate=0.1` or `bits=20`. Margin and scale follow from
        the costs of the first examples unless they are given. Estimators such as `lols.Tagger` have defaults of their
        own for what is not given.

    Examples
    --------
    >>> import lols
    >>> from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
    >>> policy = Linear("csoaa", rate=0.2)
    >>> teacher = tagging_references()["optimal"]
    >>> model = lols.train(tagging_space(3), tagging_data(9, labels=3), teacher, policy=policy, compiled=False)
    >>> model.about["learner"]["update"], model.about["learner"]["rate"]
    ('nag', 0.2)

    """

    KIND = "linear"
    SETTINGS = ("learner", *(each.name for each in fields(LearnerSettings) if each.name != "reduction"))
    OPTIONS = (*SETTINGS, "prune", "templates", "more_templates", "clusters", "keep_state")
    has_weights = True

    def __init__(self, learner: str | LearnerSettings | None = None, update: str | None = None, **settings: Any):
        named = {"learner": learner, "update": update}
        self._given = {name: value for name, value in named.items() if value is not None} | settings
        if isinstance(learner, LearnerSettings):
            for name in [*(["update"] if update is not None else []), *settings]:
                raise ConfigurationError(f"{name} has no effect: it is part of the given LearnerSettings")
            self.settings = learner
        else:
            unknown = sorted(settings.keys() - {each.name for each in fields(LearnerSettings)})
            if unknown:
                raise ConfigurationError(f"unknown setting '{unknown[0]}' of a linear policy: see LearnerSettings")
            name = learner or "hinge"
            graded = name == "hinge" and update != "perceptron"
            left_open = {"margin": "auto" if graded else "unit", "scale": None}
            update = update or ("nag" if name == "csoaa" else "adagrad")
            self.settings = LearnerSettings(name, update, **left_open | settings)
        self._weights: FrozenPolicy | None = None
        self._learner: Learner | None = None
        self._mixture: PolicyMixture | None = None
        self._returned = "average"
        self._kept: FrozenPolicy | None = None

    @classmethod
    def of(cls, weights: FrozenPolicy) -> Linear:
        """Weights that have been learned.

        Parameters
        ----------
        weights
            The weights, as a policy that does not change.

        """
        made = cls()
        made._weights = weights
        return made

    @property
    def given(self) -> dict[str, Any]:
        """The settings that were given, by the names of the constructor."""
        return self._given

    # --- deciding ---

    @property
    def asked(self) -> FrozenPolicy:
        """The weights as they are now; those of the learner share memory with it."""
        if self._weights is not None:
            return self._weights
        learner = self._own_learner
        return learner.policy() if self._mixture is None else self._mixture.policy(learner)

    @property
    def name(self) -> str:
        return self.KIND

    @property
    def components(self) -> int:
        return int(self.asked.chances.size)

    @property
    def keeps_scores(self) -> bool:
        return True

    def driver(
        self,
        space: SearchSpace,
        examples: Examples,
        reference: Reference | None = None,
        *,
        threads: Threads = 1,
        together: int | None = None,
        compiled: bool = True,
    ) -> FusedDriver:
        return FusedDriver(space, examples, reference, threads=threads, together=together, compiled=compiled)

    def beam_driver(self, space: SearchSpace, examples: Examples, *, threads: Threads, compiled: bool) -> BeamDriver:
        return BeamDriver(space, examples, threads=threads, compiled=compiled)

    def in_lock_step(self, space: SearchSpace, *, compiled: bool = True) -> LinearPolicy:
        return LinearPolicy(space, weights=self.asked, compiled=compiled)

    # --- learning ---

    def begun(self, terms: Terms) -> Linear:
        made = type(self)(terms.settings)
        averaged = terms.alpha is not None or terms.returned == "average"
        space = terms.space
        by_action = space.action_features is not None
        made._learner = Learner(
            terms.settings, space.fixed_actions, by_action=by_action, averaged=averaged, compiled=terms.compiled
        )
        made._mixture = None if terms.alpha is None else PolicyMixture(terms.alpha)
        made._returned = terms.returned
        return made

    @property
    def learner(self) -> Learner | None:
        return self._learner

    def go_on(self, learner: Learner) -> None:
        """Learn with this learner from now on.

        Parameters
        ----------
        learner
            The learner.

        """
        self._learner = learner

    def check_mixable(self) -> None:
        update = self.settings.update
        if update in SECOND_ORDER:
            raise ConfigurationError(f"{update} learners cannot be averaged: choose adagrad or nag, or sync='exact'")

    @property
    def _own_learner(self) -> Learner:
        if self._learner is None:
            raise ConfigurationError("this policy has fixed weights, or has not begun to learn")
        return self._learner

    def calls(self, driver: FusedDriver, plan: Plan) -> list[KernelCall]:
        learner = self._own_learner
        calls = driver.calls(learner.policy(), plan)
        return [calls.search, *learner.calls(calls.lessons), calls.predict, *calls.evaluate]

    def begin_pass(self) -> None:
        if self._mixture is not None:
            self._mixture.begin(self._own_learner)

    def end_pass(self, rounds: int) -> None:
        if self._mixture is not None:
            self._mixture.end(self._own_learner, rounds)

    @property
    def reference_weight(self) -> float | None:
        return None if self._mixture is None else self._mixture.reference_weight

    def learn(self, batch: Batch, driver: Any) -> None:
        self._own_learner.learn(batch.lessons)

    def copied(self) -> FrozenPolicy:
        return frozen(self.asked)

    def returned(self) -> FrozenPolicy:
        """Searn's mixture, the policy that was kept, or the average or the last one."""
        if self._weights is not None:
            return self._weights
        learner = self._own_learner
        if self._mixture is not None:
            return self._mixture.final(learner)
        if self._kept is not None:
            return self._kept
        if self._returned == "average" and learner.averaged:
            policy = learner.policy(averaged=True)  # has its own copy of the weights
            return policy._replace(shared=copied(policy.shared), single=copied(policy.single))
        return learner.last()

    def keep(self) -> None:
        self._kept = self._own_learner.last()

    def onward(self) -> Policy:
        raise ConfigurationError("a linear policy learns on from its learner's state: see lols.train(..., start=model)")

    # --- what is written down ---

    def describe(self) -> dict[str, Any]:
        return self._own_learner.describe()

    def identity(self) -> dict[str, Any]:
        return asdict(self.settings)

    def report(self) -> dict[str, Any]:
        return self._own_learner.report()

    def state(self) -> dict[str, np.ndarray]:
        tensors = {f"learner.{k}": v for k, v in self._own_learner.state().items()}
        if self._kept is not None:
            tensors |= {"snapshot.stack": self._kept.stack, "snapshot.single": self._kept.single_stack}
        return tensors | (self._mixture.state() if self._mixture is not None else {})

    def load(self, tensors: Mapping[str, np.ndarray]) -> None:
        learner = self._own_learner
        learner.load({k.removeprefix("learner."): v for k, v in tensors.items() if k.startswith("learner.")})
        if self._mixture is not None:
            self._mixture.load(tensors, learner)
        if "snapshot.stack" in tensors:
            # Rows are only ever added, so the rows of the snapshot are the first rows of the learner.
            policy = learner.last()
            stack, single = np.zeros_like(policy.stack), np.zeros_like(policy.single_stack)
            old, old_single = tensors["snapshot.stack"], tensors["snapshot.single"]
            if old.ndim != 3 or old.shape[::2] != stack.shape[::2] or old_single.ndim != 2 or len(old_single) != 1:
                raise LolsError(f"'snapshot' has shapes {old.shape} and {old_single.shape}, which do not fit")
            rows, single_rows = min(old.shape[1], stack.shape[1]), min(old_single.shape[1], single.shape[1])
            stack[:, :rows], single[:, :single_rows] = old[:, :rows], old_single[:, :single_rows]
            self._kept = policy._replace(stack=stack, single_stack=single)
