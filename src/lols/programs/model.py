"""A trained program: runs with the learned policy, and is saved and loaded like any model."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from lols.contract.frames import as_objects
from lols.engine.policy import draw_component
from lols.engine.sampling import check_samples, draw_action, levels_of, start_action
from lols.engine.structures import COMPONENT, TIE, FrozenPolicy, Plan
from lols.errors import ConfigurationError, ModelFileError, SpaceError
from lols.io.model_file import PICKLED, from_bytes, read_tensors, to_bytes, write_tensors
from lols.kernels.hashing import mix
from lols.programs.choices import ActionChoices
from lols.programs.parts import parts_of
from lols.programs.program import Program
from lols.programs.rolling import Following, FollowingTeacher
from lols.programs.scorer import Scorer
from lols.training.learning_state import LearningState, StoredState
from lols.training.model import Model, make_model


class Sampling(Following):
    """Runs a program with the learned policy, greedily first, and then with draws from it."""

    def samples(
        self, x: Any, number: int, best_of: int, starts: int, temperature: float, seed: int
    ) -> Iterator[tuple[Any, float]]:
        """Result and loss of each sample for an object."""
        self._stakes: list[float] = []
        key = mix(mix(seed, TIE), number)
        for sample, level in enumerate(levels_of(best_of, starts)):
            if sample == starts:
                temperature *= sum(self._stakes) / max(len(self._stakes), 1)  # at stake in a step, by the greedy sample
            self._sample, self._starts, self._temperature = sample, starts, temperature * level
            self._own = mix(key, sample)
            yield self.result(x, number, truth=True, seed=seed)

    def _decide(self, at: int, features: Any, legal: Any, reference: Any, costs: Any, key: Any) -> Any:
        scorer = self._scorer
        self._check_steps(at)
        allowed = self._choices.legal(legal)
        stream = mix(self._own, at)
        component = draw_component(scorer.policy.chances, mix(stream, COMPONENT))
        seen = scorer.encode(features() if callable(features) else features)
        a = scorer.choose(seen, allowed, component, mix(stream, TIE))
        if self._sample == 0:
            if len(allowed.actions) > 1:
                least, second = np.partition(scorer.costs[allowed.actions].astype(np.float64), 1)[:2].tolist()
                self._stakes.append(second - least)
        elif at == 0 and self._sample < self._starts:
            a = start_action(scorer.costs, allowed.mask, self._sample)
        elif self._temperature > 0.0:
            a = draw_action(scorer.costs, allowed.mask, self._temperature, stream)
        return self._names[a]


def best_sample(samples: Iterator[tuple[Any, float]]) -> tuple[Any, float]:
    """The result of least loss, the first of several."""
    best: tuple[Any, float] = (None, math.inf)
    for number, found in enumerate(samples):
        if number == 0 or found[1] < best[1]:
            best = found
    return best


class ProgramModel:
    """A policy for a program.

    Parameters
    ----------
    program
        The program.
    policy, plan
        The weights, and how to follow them.
    about
        Algorithm, learner, seed and other facts, kept in the model file.
    report
        Figures of the training: progressive loss per pass, seconds, memory.
    learning
        What `lols.train(..., start=model)` goes on from; without it, from the weights alone.
    kept_reference
        Whether the program's reference decides in place of the policy, because `lols.optimise` found no policy that is
        better. With samples, each result is the one of less loss, the reference's or the best sample.

    """

    def __init__(
        self,
        program: Program,
        policy: FrozenPolicy,
        plan: Plan,
        about: dict[str, Any] | None = None,
        report: dict[str, Any] | None = None,
        *,
        compiled: bool = True,
        learning: LearningState | StoredState | None = None,
        kept_reference: bool = False,
    ):
        self.program, self.policy, self.plan, self.compiled = program, policy, plan, compiled
        self.learning, self.kept_reference = learning, kept_reference
        self.about, self.report = about or {}, report or {}
        self._idle: list[tuple[ActionChoices, Scorer]] = []  # what calls have used, one at a time, and remember

    def __repr__(self) -> str:
        decides = ", decides by its reference" if self.kept_reference else ""
        among = "candidates" if self.program.actions is None else f"{self.program.actions} actions"
        return f"ProgramModel({self.program.name}, {among}{decides})"

    def predict(
        self,
        objects: Iterable[Any],
        *,
        best_of: int = 1,
        starts: int = 1,
        beam: int = 1,
        temperature: float = 1.0,
        seed: int = 0,
        improve: Callable[[Any, Any], Any] | None = None,
    ) -> list[Any]:
        """The program's results for some objects.

        Parameters
        ----------
        objects
            What is to be predicted.
        best_of
            More than 1 draws as many samples from the policy for each object, and keeps the one of least loss. The
            program runs once for each, with `search.truth`: its loss must be computable without labels. The first
            sample is the greedy prediction, so the result is never worse.
        starts
            How many of these samples are greedy, each after another first action, the most promising ones first.
        beam
            1: a program goes one way at a time, so that there is no beam search.
        temperature
            Scales how far samples stray from the greedy prediction.
        seed
            Of the samples.
        improve
            `improve(object, result)` returns a better result, or the same one: a local search, for example.

        """
        given = list(as_objects(objects))
        search = {"starts": starts, "beam": beam, "temperature": temperature, "seed": seed}
        results = [result for result, _ in self._searched(given, best_of, search, truth=False)]
        return results if improve is None else [improve(*pair) for pair in zip(given, results, strict=True)]

    def predict_one(self, obj: Any, **options: Any) -> Any:
        """The program's result for one object, with the options of `predict`."""
        return self.predict([obj], **options)[0]

    def losses(
        self,
        objects: Iterable[Any],
        *,
        best_of: int = 1,
        starts: int = 1,
        beam: int = 1,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> np.ndarray:
        """The loss of the policy on each object; the objects must have their truth. The options are as in `predict`."""
        search = {"starts": starts, "beam": beam, "temperature": temperature, "seed": seed}
        return _losses(self._searched(objects, best_of, search, truth=True))

    def evaluate(self, objects: Iterable[Any]) -> float:
        """The mean loss of the policy on objects with their truth."""
        return float(self.losses(objects).mean())

    def reference_losses(self, objects: Iterable[Any]) -> np.ndarray:
        """The loss of the program's reference on each object, to compare the policy with."""
        return _losses(self._follow(FollowingTeacher, objects, truth=True))

    def reference_outputs(self, objects: Iterable[Any]) -> list[Any]:
        """The program's result for each object if its reference decides."""
        return [result for result, _ in self._follow(FollowingTeacher, objects, truth=False)]

    def reference_needs_truth(self, objects: Iterable[Any]) -> bool:
        """Whether the program's reference cannot answer for each object when the truth is not available."""
        try:
            self._follow(FollowingTeacher, objects, truth=False)
        except Exception:  # of the program, whatever it is, where `reference_losses` has none
            return True
        return False

    def most_actions(self, objects: Iterable[Any]) -> int:
        """The number of actions; or the most candidates of a decision if the reference decides."""
        if self.program.actions is not None:
            return self.program.actions
        choices, scorer = parts_of(self.program, self.compiled)
        scorer.follow(self.policy, bool(self.plan.random_ties))
        following = FollowingTeacher(self.program, choices, scorer)
        for n, x in enumerate(objects):
            following.result(x, n, truth=True, seed=self.plan.seed)
        return choices.most

    def _searched(
        self, objects: Iterable[Any], best_of: int, search: dict[str, Any], *, truth: bool
    ) -> list[tuple[Any, float]]:
        """Result and loss for each object: of what decides, or the best of a search."""
        if search.pop("beam") != 1:
            raise ConfigurationError("beam has no effect: a program goes one way at a time; best_of=64 draws samples")
        decides = FollowingTeacher if self.kept_reference else Following
        if best_of == 1 and search["starts"] == 1:
            return self._follow(decides, objects, truth=truth)
        check_samples(best_of, search["starts"], search["temperature"])
        given = list(as_objects(objects))
        with self._runner(Sampling) as sampling:
            found = [best_sample(sampling.samples(x, n, best_of, **search)) for n, x in enumerate(given)]
        if self.kept_reference:
            kept = self._follow(FollowingTeacher, given, truth=True)
            found = [min(pair, key=lambda each: each[1]) for pair in zip(kept, found, strict=True)]
        return found

    def _follow(self, kind: type[Following], objects: Iterable[Any], *, truth: bool) -> list[tuple[Any, float]]:
        """Result and loss of the program for each object."""
        with self._runner(kind) as search:
            return [search.result(x, n, truth=truth, seed=self.plan.seed) for n, x in enumerate(as_objects(objects))]

    @contextlib.contextmanager
    def _runner(self, kind: type[Any]) -> Iterator[Any]:
        """Who runs the program, with choices and a scorer that no other call uses: threads may predict together."""
        try:
            parts = self._idle.pop()
        except IndexError:
            parts = parts_of(self.program, self.compiled)
            parts[1].follow(self.policy, bool(self.plan.random_ties))
        yield kind(self.program, *parts)
        self._idle.append(parts)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: the program by the name of its function, the policy as the content of a model file."""
        return {
            "program": self.program,
            "file": to_bytes("model", *self._contents()),
            "report": self.report,
            "compiled": self.compiled,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        content, how = from_bytes(state["file"], "model"), {"compiled": state["compiled"]}
        vars(self).update(vars(_made(PICKLED, *content, state["program"], **how)) | {"report": state["report"]})

    def save(self, path: str | os.PathLike[str], *, keep_state: bool = False) -> None:
        """Write the model file, atomically. It holds weights and facts, not the program.

        With `keep_state` it has the learner's state as well, so that learning goes on exactly.
        """
        write_tensors(path, "model", *self._contents(keep_state=keep_state))

    def _contents(self, *, keep_state: bool = False) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        kept = self.program.teacher if self.kept_reference else None
        model = Model(
            self.program.space, self.policy, self.plan, self.about, learning=self.learning, kept_reference=kept
        )
        task = {"name": "program", "labels": plain_labels(self.program.labels)}
        return model.contents(task, keep_state=keep_state)


def load_program(path: str | os.PathLike[str], program: Program, *, compiled: bool = True) -> ProgramModel:
    """Read a model file for a program; if its code has changed since, `about["program_changed"]` says so."""
    return _made(path, *read_tensors(path, "model"), program, compiled=compiled)


def _made(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    program: Program,
    *,
    compiled: bool,
) -> ProgramModel:
    task: Mapping[str, Any] = header.get("task") or {}
    if task.get("name") != "program":
        raise ModelFileError(f"{path}: not of a program; `lols inspect` says what it is")
    model = make_model(path, header, tensors, program.space, program.teacher, compiled=compiled)
    if task.get("labels") != plain_labels(program.labels):
        raise ModelFileError(f"{path}: trained with other labels, or in another order; load it with the same ones")
    about = {name: fact for name, fact in model.about.items() if name != "space_changed"}
    if about.get("program") not in (program.source, program.digest):
        about["program_changed"] = True
    more: Any = {"learning": model.learning, "kept_reference": model.kept_reference is not None}
    return ProgramModel(program, model.policy, model.plan, about, compiled=compiled, **more)


def _losses(found: list[tuple[Any, float]]) -> np.ndarray:
    if not found:
        raise SpaceError("there are no examples: give at least one")
    return np.array([loss for _, loss in found], np.float64)


def plain_labels(labels: list[Any] | None) -> list[Any] | None:
    """Labels as values of JSON."""
    if labels is None:
        return None
    return [label if isinstance(label, str | int | float | None) else repr(label) for label in labels]
