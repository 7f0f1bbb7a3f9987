"""One sentence of advice, by fixed rules on the numbers of a certificate. The first rule that holds applies.

| rule | holds if | verdict |
|---|---|---|
| 1 | the hindsight regret, at the upper end of its interval, is at most 5 % of the loss | locally optimal |
| 2 | the in-class regret is substantial, and the teacher had no part in training | more passes |
| 3 | the in-class regret is substantial, and policies fitted on the costs of training avoid half of it | more passes |
| 4 | the in-class regret is substantial | the teacher |
| 5 | otherwise | the features |
| 6, after 1 | policies fitted on the costs of training avoid substantially more with another margin | the margin |

An in-class regret is *substantial* if its whole interval is above 0 and it is at least 5 % of the hindsight regret.
"""

from __future__ import annotations

from dataclasses import dataclass

from lols.certificates.intervals import Estimate
from lols.certificates.training import Training

SMALL = 0.05
HALF = 0.5
LOCALLY_OPTIMAL = "locally optimal"
PASSES = "more passes would help"
REFERENCE = "the teacher is the bottleneck"
FEATURES = "the features are the bottleneck"
MARGIN = "the margin stands in the way"
VERDICTS = (LOCALLY_OPTIMAL, PASSES, REFERENCE, FEATURES, MARGIN)


@dataclass(frozen=True)
class Regrets:
    """Regret to one-step deviations: with hindsight, and within the class of policies."""

    hindsight: Estimate
    in_class: Estimate

    @property
    def substantial(self) -> bool:
        """Whether some policy of the class is better with confidence, and by more than a little."""
        return self.in_class.positive and self.in_class.value >= SMALL * self.hindsight.value


@dataclass(frozen=True)
class ByMargin:
    """Another margin, and what policies that are fitted with it avoid beyond those with the margin of training."""

    margin: str
    gain: Estimate


@dataclass(frozen=True)
class Advice:
    """What limits the policy, by which rule, and what to do about it."""

    rule: int
    verdict: str
    sentence: str


def advise(
    loss: Estimate,
    reference: Estimate,
    own: Regrets,
    retrained: Estimate,
    training: Training,
    fitted: int,
    by_margin: ByMargin | None = None,
) -> Advice:
    """Apply the rules.

    `own` are the regrets under roll-outs by the policy itself; `retrained` is the part of them that policies avoid
    which are fitted on the costs of training; `reference` is the loss of the teacher; `fitted` is the number of
    examples that policies of the same class were fitted on; `by_margin` is what those with another margin avoid beyond
    `retrained`, if that was tried.

    >>> from lols.training.algorithms import LOLS
    >>> from lols.learners.settings import LearnerSettings
    >>> how = Training(LOLS, 0.5, 0.0, LearnerSettings("hinge", "adagrad"), True, 5)
    >>> much, none = Estimate(0.5, 0.4, 0.6), Estimate(0.0, 0.0, 0.0)
    >>> advise(Estimate(1.0, 0.9, 1.1), none, Regrets(much, none), none, how, 100).verdict
    'the features are the bottleneck'
    """
    rule = _rule(loss, own, retrained, training, by_margin)
    share = own.in_class.value / own.hindsight.value if own.hindsight.value > 0.0 else 0.0
    gain = f"{own.in_class.value:.3g} of a hindsight regret of {own.hindsight.value:.3g} ({100 * share:.0f} %)"
    if rule == 1:
        rest = "its loss is 0" if loss.value == 0.0 else "to lower it further, several decisions must change at once"
        words = f"changing any single decision with hindsight would hardly improve it; {rest}."
        return Advice(rule, LOCALLY_OPTIMAL, f"Locally optimal: {words}")
    if rule == 6 and by_margin is not None:
        words = f"fitted with margin={by_margin.margin!r} on the costs of training, a policy avoids"
        words += f" {by_margin.gain.value:.3g} more of a hindsight regret of {own.hindsight.value:.3g}"
        fix = f"train with margin={by_margin.margin!r} (now {training.settings.margin!r})"
        return Advice(rule, MARGIN, f"The margin stands in the way: {words}; {fix}.")
    if rule in (2, 3):
        words = f"a policy of the same class, fitted on {fitted:,} other examples, avoids {gain}"
        return Advice(rule, PASSES, f"More passes would help: {words}; train longer, or on more data like this.")
    if rule == 4:
        words = f"a policy of the same class avoids {gain}, which the costs of its training do not show"
        return Advice(rule, REFERENCE, f"The teacher is the bottleneck: {words}; {_way_out(training, reference)}.")
    words = (
        f"with hindsight, changing single decisions would save {own.hindsight.value:.3g}, but no policy of the same "
        f"class, fitted on {fitted:,} other examples, did much better"
    )
    fix = "add features" if training.linear else "let the network see more, or learn from more data"
    return Advice(rule, FEATURES, f"The features are the bottleneck: {words}; {fix}.")


def _rule(loss: Estimate, own: Regrets, retrained: Estimate, training: Training, by_margin: ByMargin | None) -> int:
    if own.hindsight.high <= SMALL * loss.value:
        return 1
    if by_margin is not None and Regrets(own.hindsight, by_margin.gain).substantial:
        return 6
    if not own.substantial:
        return 5
    if not training.uses_reference:
        return 2
    return 3 if retrained.positive and retrained.value >= HALF * own.in_class.value else 4


def _way_out(training: Training, reference: Estimate) -> str:
    """How to depend less on the teacher."""
    ways = []
    if training.beta_in > 0.0:
        ways.append("roll in with the learned policy")
    if training.beta is None or training.beta == 1.0:
        ways.append("roll out with a mixture (lols)")
    elif training.beta > 0.0:
        ways.append(f"lower β (now {training.beta:.2g})")
    return " and ".join(ways) + (", or find a better teacher" if reference.value > 0.0 else "")
