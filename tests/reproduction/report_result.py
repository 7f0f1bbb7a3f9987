"""A made-up result of `lols reproduce all`, with every part, for tests of reports and drawings."""

from __future__ import annotations

from statistics import fmean, stdev
from typing import Any

import numpy as np

from lols.reproduction.claims import judge_claims
from lols.reproduction.paper import PAPER, TEACHERS, paper_figure

ROWS = [f"{i}/{o}" for i in ("reference", "learned") for o in ("reference", "mixture", "learned")] + ["searn", "auto"]
TITLES = {
    "table2": ("Cost-sensitive classification", "classification", "cost", "network connections"),
    "table3": ("Part-of-speech tagging", "tagging", "accuracy", "sentences"),
    "table4": ("Dependency parsing", "parsing", "uas", "sentences"),
}
BETAS = [0.0, 0.25, 0.5, 0.75, 1.0]


def made_result(seeds: int = 3, passes: int = 4) -> dict[str, Any]:
    """All parts."""
    tables = {name: made_table(name, seeds, passes) for name in TITLES}
    return {
        "version": "0.1.0",
        "command": "lols reproduce all --quick",
        "quick": True,
        "story": made_story(),
        "seeds": list(range(seeds)),
        "data": {name: table["data"] for name, table in tables.items()},
        "seconds": 123.4,
        "tables": tables,
        "claims": judge_claims(tables),
        "theory": made_theory(),
        "bandit": {"worlds": {"layout": made_world(seeds)}, "regret": made_regret()},
        "certificates": {"tagging, bad teacher": made_certificate()},
    }


def made_table(name: str, seeds: int, passes: int) -> dict[str, Any]:
    """A table near the paper's figures."""
    title, task, metric, data = TITLES[name]
    rng, cost = np.random.default_rng(int(name[-1])), metric == "cost"
    unit = 0.01 if cost else 1.0

    def final(row: str, teacher: str) -> float:
        near = PAPER[name].figures["optimal"].get(row, PAPER[name].figures["optimal"]["learned/reference"])
        printed = paper_figure(name, teacher, row)
        lost = {"optimal": 0.0, "suboptimal": 1.0, "bad": 4.0}[teacher] * (row not in ("learned/learned", "auto"))
        return (near - lost * unit * (-1 if cost else 1)) if printed is None else printed

    def figures(mean: float) -> dict[str, Any]:
        values = [float(mean + rng.normal(0.0, 0.12) * unit) for _ in range(seeds)]
        sd = stdev(values) if seeds > 1 else 0.0
        return {"values": values, "mean": fmean(values), "sd": sd, "se": sd / seeds**0.5, "seconds": 1.5}

    cells, curves, betas = [], [], []
    for teacher in TEACHERS:
        for learner in ("csoaa", "hinge"):
            place = {"teacher": teacher, "learner": learner}
            better = (0.8 if learner == "hinge" else 0.1) * unit * (-1 if cost else 1)
            for row in ROWS:
                found = figures(final(row, teacher) + better)
                cells.append({"row": row, **place, **found, "paper": paper_figure(name, teacher, row)})
                if row in ("learned/reference", "learned/mixture", "learned/learned", "searn", "auto"):
                    lag = [(3.0 * unit / (k + 1) ** 1.5) * (1 if cost else -1) for k in range(passes)]
                    values = [found["mean"] + late - lag[-1] for late in lag]
                    curve = {"passes": list(range(1, passes + 1)), "values": values, "sd": [0.1 * unit] * passes}
                    curves.append({"row": row, **place, **curve})
            for beta in BETAS:
                share = {"optimal": 0.0, "suboptimal": 1.5, "bad": 9.0}[teacher] * beta**6 * unit
                start = final("learned/learned", teacher) + better
                betas.append({"beta": beta, **place, **figures(start + share if cost else start - share)})
    coins = None
    if name == "table3":
        pairs = (("state", 95.1), ("rollout", 94.0))
        coins = [
            {"coin": c, "teacher": "optimal", "learner": of, **figures(mean)}
            for of in ("csoaa", "hinge")
            for c, mean in pairs
        ]
    return {
        "title": title,
        "task": task,
        "metric": metric,
        "unit": "cost" if cost else "percent",
        "higher_is_better": not cost,
        "points": unit,
        "paper_table": int(name[-1]),
        "paper_name": name,
        "data": f"generated: {data}, 800, tested on 500",
        "passes": passes,
        "teachers": list(TEACHERS),
        "learners": ["csoaa", "hinge"],
        "rows": ROWS,
        "cells": cells,
        "curves": curves,
        "beta": {"teachers": list(TEACHERS), "betas": BETAS, "cells": betas},
        "coins": coins,
        "command": f"lols reproduce {name} --quick",
    }


def made_story() -> dict[str, Any]:
    """What `run_story` gives, on one map of four houses."""
    return {
        "houses": [[0.0, 0.0], [1.0, 1.0], [1.0, 0.0], [0.0, 1.0]],
        "teacher": [0, 1, 2, 3], "learned": [0, 2, 1, 3], "shown_lengths": [4.83, 4.0],
        "maps": [1, 10], "lengths": [[5.0, 5.2], [4.1, 4.3]], "teacher_length": 4.6, "gain": 0.4, "gain_error": 0.023,
        "new_maps": 50,
    }  # fmt: skip


def made_theory() -> dict[str, Any]:
    """What `run_theory` gives, with few runs."""
    rng = np.random.default_rng(3)
    betas, outs, ins = (0.0, 0.5, 1.0), ("reference", "mixture", "learned"), ("reference", "learned")
    runs = []
    for beta in betas:
        for k in range(8):
            right = float(rng.uniform(0.1, 1.0))
            runs.append({"space": k, "beta": beta, "right": right, "left": right * float(rng.uniform(-0.3, 1.0))})
    parts = {"averaging": 0.2, "limits": 0.1, "teacher": 0.3, "equal": 1, "runs": 8, "left": 0.1, "right": 0.7}
    parts |= {"regret": 0.4, "unfit": 0.2, "gap": 0.1}
    world = {"reference_loss": 0.0, "worst_loss": 1.0, "worst_deviation_regret": 0.5, "trained_loss": 0.625}
    world |= {"without_regret": 3, "trainings": 3}
    steps = [(3, 4), (4, 7), (5, 13), (6, 26), (7, 50)]
    return {
        "table1": [
            {"roll_in": i, "roll_out": o, "paper": "inconsistent", "ours": "good", "agrees": o != "learned"}
            for i in ins
            for o in outs
        ],
        "figure3": [{"world": "(a) a world", "roll_in": i, "roll_out": o, **world} for i in ins for o in outs],
        "theorem3": {
            "spaces": 8,
            "rounds": 60,
            "runs": runs,
            "violations": 0,
            "by_beta": [{"beta": beta, **parts} for beta in betas],
            "no_regret": [{"rounds": 10, "regret": 0.125}, {"rounds": 100, "regret": 0.0375}],
        },
        "gap": {
            "worlds": [{"world": w, "beta": b, "gap": b if b < 0.3 else 0.0} for w in ("(b)", "(c)") for b in betas],
            "spaces": [
                {"beta": b, "spaces": 40, "above_zero": 12, "mean": 0.01 * b, "largest": 0.4, "worse_than_reference": 4}
                for b in betas
            ],
        },
        "snakes": {
            "fit": {"base": 1.88, "scale": 0.6},
            "rows": [
                {"steps": t, "policies": 2**t, "updates": n, "updates_algorithm1": n, "remembering_rounds": 30.0,
                 "hamming_updates": t}
                for t, n in steps
            ],
        },
        "claims": [{"where": "Theorem 4", "paper": "descent can take 2^T", "holds": True, "ours": "4, 7, 13, 26, 50"}],
    }  # fmt: skip


def made_world(seeds: int) -> dict[str, Any]:
    """What `lols.bandit.worlds.outcome.summarise` gives."""
    ends = list(range(200, 4001, 200))
    loss = [0.72 - 0.13 * (1 - 1.3 ** (-k)) for k in range(len(ends))]
    return {
        "world": "layout",
        "rounds": 4000,
        "seeds": list(range(seeds)),
        "curve": {"rounds": ends, "loss": loss, "loss_interval": [0.012] * len(ends)},
        "random_loss": 0.81,
        "reference_loss": 0.684,
        "held_out_random_loss": 0.8123,
        "held_out_reference_loss": 0.6821,
        "policy_loss": 0.5932,
        "full_information_loss": 0.5711,
        "optimum_loss": None,
        "final_loss": 0.604,
        "gap_closed": 0.801,
        "intervals": {"policy_loss": 0.0041, "gap_closed": 0.05},
        "command": "lols bandit simulate layout --rounds 4000",
    }


def made_regret() -> dict[str, Any]:
    """What `lols.reproduction.parts.regret_curve` gives."""
    rounds = [300, 1000, 3000]
    values = [[2.0 * n**-0.4 * (1 + 0.1 * k) for k in (-1, 0, 1)] for n in rounds]
    slope = {"value": -0.4, "height": 2.0, "low": -0.45, "high": -0.35}
    return {"rounds": rounds, "seeds": [0, 1, 2], "values": values, "slope": slope, "bound": -1 / 3}


def made_certificate() -> dict[str, Any]:
    """What `lols certify --json` prints."""

    def around(value: float) -> dict[str, float]:
        return {"value": value, "low": 0.7 * value, "high": 1.4 * value}

    steps = [
        {"step": str(k + 1), "decisions": 90, "hindsight": around(0.04 / (k + 1)), "in_class": around(0.011 / (k + 1))}
        for k in range(6)
    ]
    pairs = [("NOUN", "VERB"), ("ADJ", "NOUN"), ("ADP", "SCONJ")]
    decisions = [
        {"taken": a, "better": b, "decisions": 9, "hindsight": around(0.03 / k), "in_class": around(0.01 / k)}
        for k, (a, b) in enumerate(pairs, 1)
    ]
    return {
        "examples": 500,
        "loss": around(0.1234),
        "teacher_loss": around(0.5678),
        "regret_to_teacher": {"value": -0.4444, "low": -0.5, "high": -0.4},
        "deviation_regret_hindsight": around(0.0987),
        "deviation_regret_in_class": around(0.0321),
        "by_step": steps,
        "by_decision": decisions,
        "verdict": "more passes would help",
        "advice": "More passes would help: a policy of the same class takes away 0.03.",
        "command": "lols certify model.lols test.conllu",
    }
