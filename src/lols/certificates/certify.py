"""`lols.certify`: measure a trained policy against its teacher and against its own one-step deviations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lols.certificates.advice import ByMargin, Regrets, advise
from lols.certificates.certificate import Certificate, Theorem
from lols.certificates.deviations import Deviations, OwnDeviations, collect_deviations
from lols.certificates.fitting import Crossed, crossed, own_ways
from lols.certificates.intervals import RESAMPLES, estimates
from lols.certificates.places import by_decision, by_step
from lols.certificates.training import Training, training_of
from lols.contract.choosing import drawn, some
from lols.contract.examples import Examples
from lols.contract.frames import as_objects
from lols.contract.space import Reference
from lols.contract.task import as_teacher
from lols.contract.threads import Threads
from lols.engine.drivers.fused import FusedDriver
from lols.engine.structures import following
from lols.errors import ConfigurationError, LolsError
from lols.learners.settings import LearnerSettings
from lols.tasks.base import BaseEstimator
from lols.tasks.case import Case
from lols.tasks.problem import Naming
from lols.training.model import Model
from lols.training.progress import Progress

LIMIT = 2000
FEWEST = 12  # examples; each half of them is split again for fitting
TOP = 10


def certify(
    model: Any,
    objects: Iterable[Any] | Examples | tuple[Any, ...],
    reference: Reference | str | None = None,
    *,
    limit: int | None = LIMIT,
    seed: int = 0,
    names: Sequence[str] | Callable[[int], str] | None = None,
    top: int = TOP,
    resamples: int = RESAMPLES,
    threads: Threads = None,
    progress: bool | None = None,
) -> Certificate:
    """Measure a policy by Theorem 3 of the paper, and say what limits it.

    Parameters
    ----------
    model
        A `lols.Model`, with a linear policy or one of its own; or a trained `Tagger`, `Parser` or
        `CostSensitiveClassifier`.
    objects
        Labelled objects for the space's `encode`, or `Examples`; for an estimator a pair of inputs and truths, as for
        its `fit`. Give data that training did not see.
    reference
        The teacher, by default the task's own; for an estimator, the name of one of its teachers.
    limit
        The largest number of examples to use, drawn by the seed; None for all. Every action of every state is tried.
    seed
        The seed of the examples that are drawn, of the bootstrap and of the fits.
    names
        Names of the actions in `by_decision`; by default their numbers.
    top
        The number of decisions in `by_decision`.
    resamples
        The number of bootstrap samples for the intervals.
    threads
        The number of threads for the roll-outs; it does not change the result.
    progress
        Whether to show a progress bar; by default on a terminal only.

    Examples
    --------
    Figure 3(c) of the paper: with roll-outs by the teacher, the policy never learns that the other action leads to a
    better end, because the teacher would spoil it.

    >>> import lols
    >>> from lols.datasets.small_worlds import out_reference, TwoSteps
    >>> world = out_reference()
    >>> model = lols.train(TwoSteps.space, [world] * 20, TwoSteps.teacher, roll_out="reference", compiled=False)
    >>> certificate = lols.certify(model, [world] * 20, TwoSteps.teacher, names=["first", "second"])
    >>> certificate.verdict
    'the teacher is the bottleneck'

    """
    if isinstance(model, Model):
        model.check_policy_decides("regret")
        if isinstance(reference, str):
            raise ConfigurationError("reference is a name, but the model is of your own space: give a lols.Reference")
        case = _case(model, objects, as_teacher(reference, model.space), limit, seed, names)
    else:
        if not isinstance(model, BaseEstimator):
            raise ConfigurationError(f"{type(model).__name__}: certify a lols.Model, or a trained estimator of lols")
        if isinstance(reference, Reference) or names is not None:
            raise ConfigurationError("an estimator has its own teachers and action names: name one of its teachers")
        case = model.case(objects, reference, limit=check_limit(limit), seed=seed)
    return certify_case(case, seed=seed, top=top, resamples=resamples, threads=threads, progress=progress)


def check_limit(limit: int | None) -> int | None:
    """A limit that leaves enough examples."""
    if limit is not None and limit < FEWEST:
        raise ConfigurationError(f"limit is {limit}: a certificate needs at least {FEWEST} examples")
    return limit


def _case(
    model: Model,
    objects: Iterable[Any] | Examples,
    reference: Reference,
    limit: int | None,
    seed: int,
    names: Sequence[str] | Callable[[int], str] | None,
) -> Case:
    """The case of a user-defined space."""
    check_limit(limit)
    if isinstance(objects, Examples):
        of = len(objects)
        examples = some(objects, drawn(of, limit, seed)) if limit is not None and of > limit else objects
    else:
        listed = list(as_objects(objects))
        of = len(listed)
        examples = model.labelled([listed[k] for k in drawn(of, limit, seed).tolist()], reference)
    if names is None or callable(names):
        name: Callable[[int], str] = str if names is None else names
    elif model.space.fixed_actions is None:
        raise ConfigurationError("names is a list, and how many actions there are depends on x: give a function")
    elif len(names) != model.space.action_count:
        raise ConfigurationError(f"names has {len(names)} entries; the space has {model.space.action_count} actions")
    else:
        name = list(names).__getitem__
    naming, taught_by = Naming(lambda _, action: name(action)), str(model.about.get("reference") or "")
    return Case(model, examples, reference, naming, of, reference.name, taught_by=taught_by)


def certify_case(
    case: Case,
    *,
    seed: int = 0,
    top: int = TOP,
    resamples: int = RESAMPLES,
    threads: Threads = None,
    progress: bool | None = None,
) -> Certificate:
    """The certificate of a case."""
    model, examples = case.model, case.examples
    _check(case, resamples)
    training = training_of(model)
    follow = following(model.plan.seed, False)
    separate = _separate(training)
    with (
        model.driver(examples, case.reference, threads=threads) as driver,
        Progress(progress, (2 + (separate is not None)) * int(examples.steps.sum()), "certifying", "steps") as bar,
    ):
        reference_loss = driver.losses(driver.follow_teacher(follow, model.policy), model.policy)
        each: dict[str, Any] = {"seed": seed, "bar": bar}
        own = collect_deviations(model, driver, case.reference, training.deviating("learned", "learned"), **each)
        taken, loss = _followed(model, driver, own)
        whole = int(examples.steps.sum())
        by_reference = collect_deviations(
            model, driver, case.reference, training.deviating("learned", "reference"), **each, done=whole
        )
        _check_same(own, by_reference)
        shown = None
        if separate is not None:
            chosen = training.deviating(*separate)
            shares: dict[str, Any] = {"beta": training.beta or 0.0, "beta_in": training.beta_in}
            shown = collect_deviations(model, driver, case.reference, chosen, **each, **shares, done=2 * whole)
        bar.say("fitting")
        hindsight, reference_regrets = own.regrets(taken), by_reference.regrets(taken)
        better = own.choices(model.policy, best=True)
        fit = crossed(own, taken, model.policy, training, seed)
        in_class = hindsight - own.regrets(fit.actions(own, taken))
        trained, trained_taken = _trained(own, by_reference, shown, taken, model, training)

        def fit_of(training: Training) -> Crossed:
            return crossed(trained, trained_taken, model.policy, training, seed)

        trained_fit = fit_of(training)
        trained_hindsight = trained.regrets(trained_taken)
        trained_gain = trained_hindsight - trained.regrets(trained_fit.actions(trained, trained_taken))
        retrained = hindsight - own.regrets(trained_fit.actions(own, taken))
        others = [
            (other.settings.margin, hindsight - own.regrets(fit_of(other).actions(own, taken)) - retrained)
            for other in _other_margins(trained, training, int(examples.steps.max()))
        ]
    sums = [own.by_example(values) for values in (hindsight, in_class, reference_regrets)]
    columns = [loss, reference_loss, loss - reference_loss, *sums[:2]]
    columns += [trained.by_example(values) for values in (trained_hindsight, trained_gain)]
    columns.append(own.by_example(retrained))
    beta = training.beta
    if beta is not None:
        columns.append(beta * (loss - reference_loss) + (1.0 - beta) * sums[1])
        columns.append(beta * sums[2] + (1.0 - beta) * sums[0])
    margin, gain = max(others, key=lambda other: float(other[1].sum()), default=("", np.zeros_like(hindsight)))
    columns.append(own.by_example(gain))
    means = estimates(columns, seed, resamples)
    regrets = Regrets(means[3], means[4]), Regrets(means[5], means[6])
    return Certificate(
        examples=len(examples),
        of=case.of,
        decisions=taken.size,
        reference=case.teacher or case.reference.name,
        algorithm=training.algorithm.name,
        roll_in=training.algorithm.roll_in,
        roll_out=training.algorithm.roll_out,
        loss=means[0],
        teacher_loss=means[1],
        regret_to_teacher=means[2],
        hindsight=means[3],
        in_class=means[4],
        retrained=means[7],
        training=regrets[1],
        theorem=None if beta is None else Theorem(beta, means[8], means[9]),
        by_step=by_step(own, hindsight, in_class, seed, resamples),
        by_decision=by_decision(own, taken, better, hindsight, in_class, case.naming, top, seed, resamples),
        advice=advise(
            means[0],
            means[1],
            regrets[0],
            means[7],
            training,
            len(examples) // 2,
            ByMargin(margin, means[-1]) if others else None,
        ),
        fitted=fit.fits,
        notes=(*case.all_notes, *training.notes, *_notes(model)),
    )


def _followed(model: Model, driver: FusedDriver, own: Deviations) -> tuple[np.ndarray, np.ndarray]:
    """The actions of the policy on all examples, and its losses.

    Those of a network are the ones of its roll-ins: if it is asked for other states together, rounding may decide.
    """
    if isinstance(own, OwnDeviations):
        return own.taken, own.losses
    predictions = driver.predict(model.policy, following(model.plan.seed, False))
    return predictions.all_actions(), driver.losses(predictions, model.policy)


def _check_same(own: Deviations, by_reference: Deviations) -> None:
    """Raise an error if a policy went to other states when it was followed again."""
    if not (isinstance(own, OwnDeviations) and isinstance(by_reference, OwnDeviations)):
        return
    if not np.array_equal(own.taken, by_reference.taken):
        raise LolsError("the policy decides differently if it is asked again: its costs must depend on the state alone")


def _notes(model: Model) -> tuple[str, ...]:
    """What cannot be known of a policy that is not linear."""
    if model.decides.has_weights or own_ways(model.policy, LearnerSettings("hinge", "adagrad")):
        return ()
    kind = model.decides.name
    return (f"{kind} has no method `onward`, so that no other policy of its class was fitted: regret in class is 0.",)


def _check(case: Case, resamples: int) -> None:
    policy = case.model.decides
    policies = policy.components
    if policy.random:
        drawn_from = f"draws one of {policies} policies" if policies > 1 else "draws its actions at random"
        raise ConfigurationError(
            f"the policy {drawn_from} at every state, as searn's do, so that a deviation has no fixed cost: certify a "
            "model of another algorithm"
        )
    if len(case.examples) < FEWEST:
        raise LolsError(f"there are {len(case.examples)} examples: a certificate needs at least {FEWEST}")
    if resamples < 1:
        raise ConfigurationError(f"resamples is {resamples}; it must be at least 1")


def _other_margins(deviations: Deviations, training: Training, steps: int) -> list[Training]:
    """The same training with margins that take account of costs, if such costs ask for that."""
    settings, costs = training.settings, deviations.costs
    if not training.linear:
        return []
    above = costs[np.isfinite(costs) & (costs > 0.0)].astype(np.float64)
    if settings.reduction != "hinge" or settings.update == "perceptron" or above.size == 0:
        return []
    asked = LearnerSettings("hinge", settings.update, margin="auto", scale=None).settled(above, steps)
    if asked.margin == "unit":  # costs count mistakes
        return []
    others = {"cost", "weighted"} - {settings.margin}
    given: Any = {"scale": asked.scale, "slack": None}
    return [replace(training, settings=replace(settings, margin=margin, **given)) for margin in sorted(others)]


def _separate(training: Training) -> tuple[str, str] | None:
    """Roll-in and roll-out of training, if its costs cannot be computed from those of teacher and learner."""
    into = "reference" if training.beta_in == 1.0 else "learned" if training.beta_in == 0.0 else "mixture"
    if into == "learned" and training.beta is not None:
        return None
    out = "none" if training.beta is None else training.algorithm.roll_out
    return into, out


def _trained(
    own: Deviations,
    by_reference: Deviations,
    shown: Deviations | None,
    taken: np.ndarray,
    model: Model,
    training: Training,
) -> tuple[Deviations, np.ndarray]:
    """The states and costs of training under this policy, and its actions there."""
    if shown is not None:
        return shown, shown.choices(model.policy)
    beta = training.beta
    if beta in (0.0, 1.0):
        return (own, taken) if beta == 0.0 else (by_reference, taken)
    assert beta is not None
    # As 32-bit floats, a small β is 0, and 0 times the cost of an illegal action is NaN.
    costs = beta * by_reference.costs.astype(np.float64) + (1.0 - beta) * own.costs.astype(np.float64)
    return own.with_costs(costs), taken
