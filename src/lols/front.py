"""`lols.train` and `lols.load`, for search spaces, tasks and programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from lols.contract.examples import Examples
from lols.contract.space import Reference, SearchSpace
from lols.contract.task import Task, as_space
from lols.contract.threads import Threads
from lols.errors import ConfigurationError, warn
from lols.io.model_file import read_tensors
from lols.programs.program import Program

if TYPE_CHECKING:
    from lols.engines import Engine
    from lols.learners.settings import LearnerSettings
    from lols.training.algorithms import Algorithm
    from lols.training.model import Model
    from lols.training.progress import Progress
    from lols.training.schedules import Schedule


def train(
    space: SearchSpace | Task | type[Task] | Program,
    data: Iterable[Any] | Examples,
    reference: Reference | None = None,
    *,
    algorithm: str | Algorithm = "lols",
    roll_in: str | None = None,
    roll_out: str | None = None,
    beta: float | str | Schedule | None = None,
    beta_in: float | str | Schedule | None = None,
    mix: str | None = None,
    ties: str | None = None,
    returned: str | None = None,
    imitate: bool | None = None,
    restart: bool | None = None,
    alpha: float | None = None,
    horizon: int | None = None,
    sample_steps: int | None = None,
    sample_actions: int | None = None,
    prune: int | None = None,
    learner: str | LearnerSettings | None = None,
    update: str | None = None,
    policy: Any = None,
    passes: int = 5,
    batch_size: int | None = None,
    seed: int = 0,
    threads: Threads = None,
    shuffle: bool = True,
    neighbours: int = 1,
    compiled: bool = True,
    tricks: dict[str, bool] | None = None,
    engine: str | Engine | None = None,
    checks: bool = True,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_every: float = 60.0,
    resume: bool = False,
    progress: bool | Progress | None = None,
    after_pass: Callable[[int, Model], bool | None] | None = None,
    start: Model | None = None,
    held_out: Iterable[Any] | Examples | None = None,
    **unknown: Any,
) -> Any:
    """Train a policy in one call: `Trainer(space, reference, ...).fit(data, ...)`.

    Parameters
    ----------
    space
        The search problem: a `SearchSpace`, a `Task`, or a `Program`.
    data
        Your objects, with their truth if the reference needs it; or `Examples` in columns; or `InPieces` of more than
        memory holds.
    reference
        The teacher, by default the one of the task. A program names its reference itself.
    algorithm
        The name of a preset (lols, aggrevate, dagger, cloning, searn) or an `Algorithm`.
    roll_in
        The policy that visits the states to learn from: reference, mixture or learned. Of this and the next eleven
        options, None is the choice of the algorithm; `Algorithm` says more about each.
    roll_out
        The policy that completes deviations: reference, mixture, learned or none.
    beta
        The probability of the reference in a mixture that rolls out: a number, a schedule or `"auto"`.
    beta_in
        The same in a mixture that rolls in.
    mix
        Where the coin of a mixture is tossed: per state, rollout, example or step; or expected, which averages.
    ties
        Which of equally cheap actions wins: the first, or a random one.
    returned
        The policy that training returns: the average of the weights, the last, or one drawn from all rounds.
    imitate
        Without roll-outs: whether an action costs 1 unless the reference would take it, whatever it adds to the loss.
    restart
        Whether every pass trains a new learner, and the policy is a mixture over passes, as in Searn.
    alpha
        For Searn: how fast the mixture moves away from the reference.
    horizon
        The most steps of a roll-out. Needs a space with `cost`.
    sample_steps
        The most states of an example, drawn at random, at which deviations are tried.
    sample_actions
        The most actions, drawn at random, that are tried at a state.
    prune
        The most actions of a state that the learner rolls out: those of least predicted cost.
    learner
        How costs become weights: hinge (the default), csoaa or secoc; or `LearnerSettings`.
    update
        The online update, if `learner` is a name.
    policy
        A policy to be trained in place of the linear learner: see `lols.policies.OwnPolicy`.
    passes
        Passes over the data.
    batch_size
        How many examples are searched with the same policy, which changes the result; by default a fiftieth of the
        examples, at least 1 and at most 64.
    seed
        The seed of all random numbers.
    threads
        Threads that share a batch; they do not change the result. None or `"auto"`: what is fastest, at most 6.
    shuffle
        Whether each pass visits the examples in another order.
    neighbours
        How many neighbouring examples stay together when they are shuffled.
    compiled
        False runs the same code as plain Python, for debugging; the result is the same.
    tricks
        Optimisations to switch off, for example `{"merge": False}`; they do not change the result.
    engine
        Who does the work: this process, `"processes"`, `"ray"`, or an engine of `lols.engines` with its settings.
    checks
        Whether functions of your own are checked on a few examples first: see `Trainer`.
    checkpoint
        A file to which training is saved as it goes, so that an interrupted one can continue.
    checkpoint_every
        The seconds between two checkpoints.
    resume
        Whether to continue from the checkpoint, if there is one.
    progress
        Whether to show progress: a bar on a terminal, else a line a pass; by default on a terminal only. It is then
        also said how the policy compares with its teacher (`model.report["teacher"]`); that the policy is worse is a
        warning unless `progress` is False.
    after_pass
        Called with the number of the pass and the current model; training stops if it returns True.
    start
        A model of the same task that learns on, in place of a new one: from its state if it has one, else from its
        weights alone, with a copy of its policy if that is not linear. The model itself stays as it is. See
        `Model.partial_fit` for learning one object at a time.
    held_out
        Labelled objects that are not learned from. Policy and teacher are compared on up to 256 of them; without them
        on training examples, which is optimistic.
    unknown
        Anything else is an error that names the alternatives.

    Returns
    -------
    model
        A `Model`, or for a program a model that runs it.

    """
    given = dict(locals())
    from lols.policies.own import as_policy
    from lols.training.comparison import check_held_out, compare_with_reference, say_comparison
    from lols.training.learning_state import start_of, without_state
    from lols.training.sources import InPieces
    from lols.training.trainer import FITTING, OPTIONS, Trainer

    options = unknown | {name: given[name] for name in given if name in OPTIONS}
    fitting: dict[str, Any] = {name: given[name] for name in FITTING} | {"start": None}
    trainer: Trainer
    if isinstance(space, Program):
        from lols.programs.training import check_same_program, program_trainer

        check_same_program(space, start)
        trainer = program_trainer(space, data, reference, **options)
    else:
        before = None if start is None else as_policy(start.policy)
        if before is not None and not before.has_weights:
            if policy is not None:
                raise ConfigurationError("start has no effect: policy is given, and learns on by itself; leave out one")
            onward = before.onward()
            options["policy"], options["batch_size"], start = onward, batch_size or onward.together, None
        trainer = Trainer(space, reference, **options)
    examples: Any = data if isinstance(data, InPieces) else trainer.encoded(data)
    others = None if held_out is None else check_held_out(trainer.encoded(held_out, labelled=False))
    if start is not None:
        fitting["start"] = start_of(start, trainer)
        if start.learning is None:
            warn(without_state("start"))
    model: Any = trainer.fit(examples, **fitting)
    model.learning = trainer.state
    compared = examples if others is None else others
    if isinstance(compared, InPieces):
        return model  # there are no examples at hand to compare with the teacher on
    found = compare_with_reference(trainer, model, compared, held_out=others is not None)
    if found is not None:
        model.report["teacher"] = found.as_dict()
        say_comparison(trainer, found, progress)
    return model


def load(
    path: str | os.PathLike[str],
    space: SearchSpace | Task | type[Task] | Program | None = None,
    *,
    policy: Any = None,
    reference: Reference | None = None,
    threads: Threads = None,
    compiled: bool = True,
) -> Any:
    """Read a model file, which contains data only.

    With a space (or a `Task` or `Program`), returns a model for it. The space must have the number of actions and the
    settings of the one in training; if its functions have changed since, `model.about["space_changed"]` is True.
    Without a space, returns the estimator that wrote the file. If the model was trained with `policy`, an object of the
    same class must be given; its `load` receives the arrays. An estimator needs `policy` only if its network is of your
    own: then `lols.policies.Neural(network=...)` gives the class. A model of `lols.optimise` that decides by its
    `reference` does so again, by that of the task unless another one is given.

    Parameters
    ----------
    path
        A model file.
    space
        For a model of your own task: its space, task or program.
    policy
        For a model with a policy of your own: one of the same kind, whose state is replaced.
    reference
        Who decides if the model is one of `lols.optimise` that kept its heuristic; None for the task's.
    threads
        How many threads predictions use; None for as many as help.
    compiled
        Whether the functions of your task are compiled.

    """
    if space is None:
        from lols.tasks.registry import read_model

        return read_model(path).load(threads=threads, policy=policy)
    if isinstance(space, Program):
        if policy is not None:
            raise ConfigurationError("policy has no effect: programs are trained with the linear learner")
        if reference is not None:
            raise ConfigurationError("reference has no effect: a program gives its reference at each call of predict")
        from lols.programs.model import load_program

        return load_program(path, space, compiled=compiled)
    from lols.training.model import make_model

    how: dict[str, Any] = {"policy": policy, "threads": threads, "compiled": compiled}
    return make_model(path, *read_tensors(path, "model"), as_space(space), reference, **how)
