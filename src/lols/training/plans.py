"""What follows from the choices of a training: the plan of the engine, and the scale of the learner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from lols.contract.space import Reference, SearchSpace
from lols.engine.structures import MIXES, ROLLS, Lessons, Plan
from lols.errors import warn
from lols.kernels.hashing import mix
from lols.learners.settings import LearnerSettings
from lols.training.algorithms import Algorithm

FAR = 4.0  # the mean cost from which on a task was seen to be learned badly without scaling: see docs/faq.md
TRICKS = ("merge", "reuse", "closed_form", "cache_items", "live", "bound")


def plan_of(
    space: SearchSpace,
    reference: Reference,
    chosen: Algorithm,
    settings: LearnerSettings,
    tricks: Mapping[str, bool],
    seed: int,
) -> Plan:
    """How the engine searches."""
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
        merge=tricks["merge"],
        reuse=tricks["reuse"],
        closed_form=tricks["closed_form"] and reference.costs is not None,
        cache_items=tricks["cache_items"],
        live=(space.sizes.live or 0) if tricks["live"] and space.cost is not None else 0,
        **by_margin(space, settings, tricks),
    )


def by_margin(space: SearchSpace, settings: LearnerSettings, tricks: Mapping[str, bool]) -> dict[str, Any]:
    """The part of the plan that follows from the learner's margin."""
    passes_over = settings.slack is not None and settings.width >= 0.0  # states, by the order of their costs alone
    bounded = space.nonnegative and (settings.only_order or passes_over)
    return {
        "bound": tricks.get("bound", False) and bounded,
        "exact": not settings.only_order,
        "margin": settings.width,
        "slack": np.inf if settings.slack is None else float(settings.slack),
    }


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
        warn(
            f"{settings.reduction} learns from costs as they are, which are about {scale:.3g}; it learns well from "
            "costs of about 1: divide them by that, or give LearnerSettings(..., scale=None)"
        )
