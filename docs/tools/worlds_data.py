"""The figures behind the pictures of docs/concepts.md: `python docs/tools/worlds_data.py`."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

from lols.datasets.small_spaces import depth_space
from lols.datasets.small_worlds import (
    BLIND,
    IN_REFERENCE,
    REPRESENTATION,
    ROLL_INS,
    ROLL_OUTS,
    SmallWorld,
    out_reference,
)
from lols.reproduction.theory.snakes import hamming_losses

FILE = Path(__file__).parents[1] / "assets" / "worlds-data.js"
WORLDS = {"a": IN_REFERENCE, "b": REPRESENTATION, "c": out_reference(), "d": BLIND}
STEPS = 20  # of β
TRUTH, LEARNED = 0b010, 0b100  # of three words; bit t is 1 if word t is a verb


def number(value: Any) -> float | int:
    """A number as it is printed: whole ones without a point."""
    rounded = round(float(value), 4)
    return int(rounded) if rounded == int(rounded) else rounded


def world_data(world: SmallWorld) -> dict[str, Any]:
    """One world: what it looks like, its policies, and what each strategy shows each of them."""
    policies = world.policies()
    return {
        "features": list(world.features),
        "losses": [number(loss) for loss in world.losses],
        "reference": list(world.reference),
        "referenceLoss": number(world.loss(world.reference_policy)),
        "policies": [
            {
                "first": [number(share) for share in policy],
                "loss": number(world.loss(policy)),
                "saves": number(world.deviation_regret(policy)),
            }
            for policy in policies
        ],
        "strategies": {
            f"{roll_in} {roll_out}": [
                {
                    "regret": number(world.cost_sensitive_regret(policy, roll_in, roll_out)),
                    "seen": [
                        [made.state, number(made.chance), *(number(cost) for cost in made.costs)]
                        for made in world.examples(policy, roll_in, roll_out)
                    ],
                }
                for policy in policies
            ]
            for roll_in in ROLL_INS
            for roll_out in ROLL_OUTS
        },
    }


def beta_data() -> dict[str, Any]:
    """The worst that LOLS may end in, for β from 0 to 1, in the two worlds where β matters."""
    shares = [Fraction(step, STEPS) for step in range(STEPS + 1)]
    worst = {name: [number(WORLDS[name].worst_loss("learned", "mixture", beta)) for beta in shares] for name in "cd"}
    return {"beta": [number(beta) for beta in shares], "worst": worst}


def round_data() -> dict[str, Any]:
    """One round of training on a sentence of three words, each a noun (0) or a verb (1): costs at the states passed."""
    space = depth_space(hamming_losses(TRUTH, 3) * 3, reference=TRUTH)
    tables = space.policies[[TRUTH, LEARNED]]
    exact = space.exact(tables)
    state, steps = 0, []
    for _ in range(3):
        losses = [[number(loss) for loss in row] for row in exact.worths[:, state]]
        steps.append({"state": state, "losses": {"reference": losses[0], "learned": losses[1]}})
        state = int(space.follow[state, tables[1, state]])
    return {
        "follow": space.follow.tolist(),
        "losses": [number(loss) for loss in space.losses],
        "reference": tables[0].tolist(),
        "learned": tables[1].tolist(),
        "steps": steps,
    }


def text() -> str:
    """The file."""
    data = {
        "worlds": {name: world_data(world) for name, world in WORLDS.items()},
        "beta": beta_data(),
        "round": round_data(),
    }
    written = json.dumps(data, separators=(",", ":"))
    return f"// Written by docs/tools/worlds_data.py: do not edit.\nwindow.LOLS_WORLDS = {written};\n"


if __name__ == "__main__":
    FILE.write_text(text(), "utf-8")
    print(f"wrote {FILE.name}, {FILE.stat().st_size} bytes")
