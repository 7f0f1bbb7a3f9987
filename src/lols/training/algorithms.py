"""Algorithms as presets of one schematic: roll in, deviate, roll out, learn. Adding one is an entry in `PRESETS`."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from lols.contract.whole_numbers import check_whole
from lols.errors import ConfigurationError, short
from lols.training.schedules import Constant, LinearSchedule, Schedule, schedule

ROLL_INS = ("reference", "learned", "mixture")
ROLL_OUTS = ("reference", "mixture", "learned", "none")
MIXES = ("state", "rollout", "example", "expected", "step")


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    """One choice of roll-in, deviations, roll-out and learning.

    Parameters
    ----------
    name
        What it is called.
    cites
        The publication it comes from.
    roll_in
        The policy that visits the states to learn from: `"reference"`, `"learned"`, or `"mixture"`, drawn at each step.
    roll_out
        The policy that completes deviations: `"reference"`, `"mixture"`, `"learned"`, `"none"`: immediate costs only.
    beta
        Probability of the reference in a mixture roll-out: a number, a schedule, or `"auto"`: the estimated
        probability that the teacher completes searches better than the learner.
    beta_in
        The same for a mixture roll-in; by default equal to `beta`.
    mix
        Where the coin is tossed: once per `"state"`, shared by its deviations; per `"rollout"` (Algorithm 1 as
        printed); per `"example"`; at every `"step"` of a roll-out (Searn); or not at all: `"expected"` averages both
        roll-outs.
    ties
        `"first"` or `"random"`.
    returned
        The policy that training returns: the `"average"` of the weights, the `"last"`, or one `"drawn"` uniformly from
        all rounds.
    imitate
        Without roll-outs: whether an action costs 1 unless the reference would take it, even if the space has `cost`.
    restart
        Whether every pass trains a new learner, and the policy is a mixture over passes (Searn).
    alpha
        For Searn: how fast the mixture moves away from the reference; by default the learned part is one half midway.
    horizon
        The most steps of a roll-out; None for no limit. Needs a space with `cost`.
    sample_steps
        The most states of an example, drawn at random, at which deviations are tried; None for all.
    sample_actions
        The most actions, drawn at random, that are tried at a state; None for all.
    prune
        The most actions of a state that the learner rolls out: those of least predicted cost, besides the one that the
        roll-in took and the teacher's; None for all. If the teacher alone rolls out, all actions are rolled out.

    """

    name: str
    cites: str = ""
    roll_in: str = "learned"
    roll_out: str = "mixture"
    beta: float | str | Schedule = 0.5
    beta_in: float | str | Schedule | None = None
    mix: str = "state"
    ties: str = "first"
    returned: str = "average"
    imitate: bool = False
    restart: bool = False
    alpha: float | None = None
    horizon: int | None = None
    sample_steps: int | None = None
    sample_actions: int | None = None
    prune: int | None = None

    def described(self) -> dict[str, Any]:
        """Plain values, for model files."""
        return {k: v if v is None or isinstance(v, bool | int | float) else str(v) for k, v in vars(self).items()}

    def __post_init__(self) -> None:
        for name, allowed in (
            ("roll_in", ROLL_INS),
            ("roll_out", ROLL_OUTS),
            ("mix", MIXES),
            ("ties", ("first", "random")),
            ("returned", ("average", "last", "drawn")),
        ):
            if getattr(self, name) not in allowed:
                raise ConfigurationError(f"{name} is '{getattr(self, name)}': choose one of {', '.join(allowed)}")
        for name in ("horizon", "sample_steps", "sample_actions", "prune"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name), otherwise=", or None for all")
        if self.sample_actions == 1:
            raise ConfigurationError("sample_actions is 1; a comparison needs at least 2")
        if self.alpha is not None and not 0.0 < self.alpha < 1.0:
            raise ConfigurationError(f"alpha is {self.alpha}; it must be between 0 and 1")
        if self.beta != "auto":
            schedule(self.beta)
        if self.beta_in is not None and self.beta_in != "auto":
            schedule(self.beta_in)

    def exactly(self, roll_in: str, roll_out: str, **choices: Any) -> Algorithm:
        """The same with this roll-in and roll-out, without sampling, pruning and avoidable randomness.

        Parameters
        ----------
        roll_in
            Which policy leads to the states.
        roll_out
            Which policy completes the deviations.
        **choices
            Further choices to replace.

        Examples
        --------
        >>> PRESETS["searn"].exactly("learned", "none").mix
        'expected'

        """
        exact: dict[str, Any] = {"mix": "expected", "ties": "first", "restart": False, "alpha": None, "horizon": None}
        exact |= {"sample_steps": None, "sample_actions": None, "prune": None}
        imitate = self.imitate and roll_out == "none"
        return replace(self, roll_in=roll_in, roll_out=roll_out, imitate=imitate, **exact, **choices)

    def explain(self) -> str:
        """A description in words.

        >>> print(algorithm("dagger").explain())
        dagger (Ross, Gordon & Bagnell 2011)
          roll in    with a mixture: the reference with probability β_in, else the learned policy, drawn at each step
          β_in       linear:1:0
          deviate    at every step, to every legal action
          roll out   not at all: an action costs 1 unless the reference would take it
          ties       the first action wins
          return     the average of the weights over all rounds
        """
        lines = [("roll in", _ROLL_IN_WORDS[self.roll_in])]
        if self.roll_in == "mixture":
            lines.append(("β_in", _beta_words(self.beta if self.beta_in is None else self.beta_in, self)))
        steps = "every step" if self.sample_steps is None else f"{self.sample_steps} random steps"
        moves = "every legal action" if self.sample_actions is None else f"{self.sample_actions} actions"
        if self.prune is not None and self.roll_out in ("mixture", "learned"):
            moves += f"; the learner rolls out the {self.prune} actions it prefers and the teacher's"
        lines += [
            ("deviate", f"at {steps}, to {moves}"),
            ("roll out", _ROLL_OUT_WORDS["imitate" if self.imitate else self.roll_out]),
        ]
        if self.horizon is not None and self.roll_out != "none":
            lines.append(("horizon", f"a roll-out stops after {self.horizon} steps; what comes later costs nothing"))
        if self.roll_out == "mixture":
            lines += [("β", _beta_words(self.beta, self)), ("coin", _MIX_WORDS[self.mix])]
        if self.restart:
            lines.append(("learner", "a new one for every pass, trained from scratch"))
        lines.append(("ties", "the first action wins" if self.ties == "first" else "a random action wins"))
        returned = "a mixture over the passes' policies, one drawn at each state" if self.restart else ""
        lines.append(("return", returned or _RETURNED_WORDS[self.returned]))
        title = self.name + (f" ({self.cites})" if self.cites else "")
        return "\n".join([title, *(f"  {name:<10} {words}" for name, words in lines)])


_ROLL_IN_WORDS = {
    "reference": "with the reference",
    "learned": "with the learned policy",
    "mixture": "with a mixture: the reference with probability β_in, else the learned policy, drawn at each step",
}
_ROLL_OUT_WORDS = {
    "reference": "with the reference",
    "learned": "with the learned policy",
    "mixture": "with a mixture: the reference with probability β, else the learned policy",
    "none": "not at all: an action costs what it adds to the loss, or 1 unless the reference would take it",
    "imitate": "not at all: an action costs 1 unless the reference would take it",
}
_MIX_WORDS = {
    "state": "one per state, shared by all its deviations",
    "rollout": "one per roll-out, as Algorithm 1 is printed",
    "example": "one per example",
    "step": "one at every step of every roll-out",
    "expected": "none: both roll-outs are done, and their costs averaged",
}
_RETURNED_WORDS = {
    "average": "the average of the weights over all rounds",
    "last": "the policy of the last round",
    "drawn": "the policy of one round, drawn uniformly from all",
}


def _beta_words(beta: Any, of: Algorithm) -> str:
    if of.restart:
        rate = "α such that it is one half midway" if of.alpha is None else f"α = {of.alpha:g}"
        return f"(1 - α)^t after t rounds, {rate}"
    if beta == "auto":
        return "estimated probability that the teacher beats the learner from here"
    return str(schedule(beta))


LOLS = Algorithm(name="lols", cites="Chang et al. 2015, Algorithm 1")

PRESETS: dict[str, Algorithm] = {
    "lols": LOLS,
    "aggrevate": Algorithm(name="aggrevate", cites="Ross & Bagnell 2014", roll_out="reference"),
    "dagger": Algorithm(
        name="dagger",
        cites="Ross, Gordon & Bagnell 2011",
        roll_in="mixture",
        roll_out="none",
        imitate=True,
        beta_in=LinearSchedule(1.0, 0.0),
    ),
    "cloning": Algorithm(
        name="cloning", cites="behavioural cloning", roll_in="reference", roll_out="none", imitate=True
    ),
    "searn": Algorithm(
        name="searn",
        cites="Daumé III, Langford & Marcu 2009",
        roll_in="mixture",
        roll_out="mixture",
        mix="step",
        restart=True,
    ),
}


def algorithm(name: str | Algorithm = "lols", **options: Any) -> Algorithm:
    """A preset with some of its choices replaced by options that are not None; a contradiction is an error.

    Parameters
    ----------
    name
        The name of a preset, or an `Algorithm`.
    **options
        Choices to replace, by their names in `Algorithm`.

    Examples
    --------
    >>> algorithm("lols", beta=0.2).beta
    0.2
    >>> algorithm("aggrevate", beta=0.2)
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: beta has no effect: roll_out is 'reference', not 'mixture'

    """
    if not isinstance(name, Algorithm) and (not isinstance(name, str) or name not in PRESETS):
        raise ConfigurationError(f"unknown algorithm '{short(name)}': choose one of {', '.join(PRESETS)}")
    base = PRESETS[name] if isinstance(name, str) else name
    check_names(options)
    changes = {key: value for key, value in options.items() if value is not None}
    resolved = replace(base, **changes)
    _check_contradictions(resolved, changes)
    return resolved


def check_names(options: Iterable[str], others: Sequence[str] = ()) -> None:
    """Raise an error that names the alternatives if an option is neither the algorithm's nor one of `others`.

    >>> check_names(["roll_inn"])
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: unknown option 'roll_inn': did you mean roll_in?
    """
    known = [*(f.name for f in fields(Algorithm) if f.name not in ("name", "cites")), *others]
    unknown = sorted(set(options) - {*known, "name", "cites"})
    if not unknown:
        return
    from lols.learners.settings import LearnerSettings

    close = difflib.get_close_matches(unknown[0], known, 1)
    if unknown[0] in (f.name for f in fields(LearnerSettings)):
        meant = f"it is the learner's: learner=lols.LearnerSettings({unknown[0]}=...)"
    else:
        meant = f"did you mean {close[0]}?" if close else f"choose from {', '.join(known)}"
    raise ConfigurationError(f"unknown option '{unknown[0]}': {meant}")


def _check_contradictions(of: Algorithm, changes: dict[str, Any]) -> None:
    mixture_out, mixture_in = of.roll_out == "mixture", of.roll_in == "mixture"
    fades = mixture_out or (mixture_in and of.beta_in is None)
    for option, fits, why in (
        ("beta", fades and not of.restart, f"roll_out is '{of.roll_out}', not 'mixture'"),
        ("mix", mixture_out, f"roll_out is '{of.roll_out}', not 'mixture'"),
        ("beta_in", mixture_in and not of.restart, f"roll_in is '{of.roll_in}', not 'mixture'"),
        ("alpha", of.restart, "only searn has it"),
        ("horizon", of.roll_out != "none", "there are no roll-outs"),
        ("prune", of.roll_out in ("mixture", "learned"), "the learner rolls nothing out"),
        ("returned", not of.restart, "searn returns its mixture"),
    ):
        if option in changes and not fits:
            reason = "searn's β follows from alpha" if option.startswith("beta") and of.restart else why
            raise ConfigurationError(f"{option} has no effect: {reason}")
    if of.imitate and of.roll_out != "none":
        raise ConfigurationError(f"{of.name} imitates: roll_out must be 'none', or choose lols or aggrevate")
    if of.restart and (not mixture_out or of.mix != "step"):
        raise ConfigurationError("searn draws a policy at every step: roll_out must be 'mixture' and mix 'step'")
    if of.roll_out == "none" and mixture_in and "auto" in (of.beta_in, of.beta if of.beta_in is None else None):
        raise ConfigurationError("beta='auto' compares completions by teacher and learner: it needs roll-outs")
    if of.mix == "step" and not of.restart and mixture_out and of.beta == "auto":
        raise ConfigurationError("beta='auto' needs one coin per roll-out: choose another mix than 'step'")


def explain(name: str | Algorithm = "lols", **options: Any) -> str:
    """A preset with these options, described in words.

    Parameters
    ----------
    name
        The name of a preset, or an `Algorithm`.
    **options
        Choices to replace, by their names in `Algorithm`.

    Examples
    --------
    >>> print(explain("lols", beta="auto").splitlines()[4])
      β          estimated probability that the teacher beats the learner from here

    """
    return algorithm(name, **options).explain()


def searn_alpha(of: Algorithm, total_rounds: int) -> float:
    """Searn's α: as given, or such that (1 - α)^t is one half midway."""
    return of.alpha if of.alpha is not None else 1.0 - 0.5 ** (2.0 / max(total_rounds, 2))


def schedules(of: Algorithm) -> tuple[Schedule | None, Schedule | None]:
    """The schedules of roll-out and roll-in; None for `"auto"`."""
    if of.restart:
        return Constant(1.0), Constant(1.0)
    out = None if of.beta == "auto" else schedule(of.beta)
    beta_in = of.beta if of.beta_in is None else of.beta_in
    return out, None if beta_in == "auto" else schedule(beta_in)
