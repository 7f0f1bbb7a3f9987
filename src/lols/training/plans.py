"""What follows from the choices of a trainer: the plan of the engine, the settings of the learner, their scale."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.contract.hashing import mix
from lols.contract.space import Reference, SearchSpace
from lols.engine.structures import MIXES, ROLLS, Lessons, Plan
from lols.errors import ConfigurationError
from lols.learners.settings import LearnerSettings
from lols.training.algorithms import Algorithm

if TYPE_CHECKING:
    from lols.training.trainer import Trainer

FAR = 4.0  # the mean cost from which on a task was seen to be learned badly without scaling: see docs/faq.md
TRICKS = ("merge", "reuse", "closed_form", "cache_items", "live", "bound")


def plan_of(
    space: SearchSpace, reference: Reference, chosen: Algorithm, seed: int, tricks: Mapping[str, bool] | None = None
) -> Plan:
    """How the engine searches with an algorithm; without the margins of a learner, no state is passed over."""
    on = dict.fromkeys(TRICKS, True) | dict(tricks or {})
    auto = (chosen.beta == "auto" and "mixture" in (chosen.roll_out, chosen.roll_in)) or chosen.beta_in == "auto"
    return Plan(
        seed=mix(seed, 0x1015),
        roll_in=ROLLS[chosen.roll_in],
        roll_out=ROLLS[chosen.roll_out],
        mix=MIXES[chosen.mix],
        random_ties=chosen.ties == "random",
        random_teacher=reference.random,
        set_valued=reference.free is not None or reference.action is None,
        horizon=chosen.horizon or 0,
        sample_steps=chosen.sample_steps or 0,
        sample_actions=chosen.sample_actions or 0,
        prune=chosen.prune or 0,
        imitate=chosen.imitate,
        compare=bool(auto),
        merge=on["merge"],
        reuse=on["reuse"],
        closed_form=on["closed_form"] and reference.costs is not None,
        cache_items=on["cache_items"],
        live=(space.sizes.live or 0) if on["live"] and space.cost is not None else 0,
    )


def by_margin(trainer: Trainer) -> dict[str, Any]:
    """The part of the plan that follows from the learner's margin."""
    settings = trainer.settings
    passes_over = settings.slack is not None and settings.width >= 0.0  # states, by the order of their costs alone
    bounded = trainer.space.nonnegative and (settings.only_order or passes_over)
    return {
        "bound": trainer.tricks.get("bound", False) and bounded,
        "exact": not settings.only_order,
        "margin": settings.width,
        "slack": np.inf if settings.slack is None else float(settings.slack),
    }


def settings_of(learner: str | LearnerSettings | None, update: str | None, chosen: Algorithm) -> LearnerSettings:
    """The settings of a learner that may be given by name; margin and scale then follow from the first costs."""
    if isinstance(learner, LearnerSettings):
        if update is not None:
            raise ConfigurationError("update has no effect: it is part of the given LearnerSettings")
        made = learner
    else:
        name = learner or "hinge"
        graded = name == "hinge" and update != "perceptron"
        update = update or ("nag" if name == "csoaa" else "adagrad")
        made = LearnerSettings(name, update, margin="auto" if graded else "unit", scale=None)
    if made.slack is not None and chosen.restart:
        raise ConfigurationError(
            f"slack must be None for {chosen.name}: its learner starts anew in every pass, and a different policy "
            "rolls in"
        )
    return made


def costs_above(lessons: Lessons) -> np.ndarray:
    """All costs in lessons that are above 0."""
    slots = np.concatenate([first + np.arange(n) for first, n in zip(lessons.first, lessons.filled, strict=True)])
    costs = lessons.slots.costs[slots]
    above: np.ndarray = costs[np.isfinite(costs) & (costs > 0.0)].astype(np.float64)
    return above


def check_scale(settings: LearnerSettings, lessons: Lessons) -> None:
    """Warn if costs are learned from as they are, although they are large; looks at the first batch."""
    if not settings.by_size or settings.scale != 1.0:
        return
    above = costs_above(lessons)
    scale = settings.unscaled().settled(above, int(lessons.filled.max())).scale if above.size else 1.0
    if scale is not None and scale >= FAR:
        warnings.warn(
            f"{settings.reduction} learns from costs as they are, which are about {scale:.3g}; it learns well from "
            "costs of about 1: divide them by that, or give LearnerSettings(..., scale=None)",
            stacklevel=2,
        )
