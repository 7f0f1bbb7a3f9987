"""The paper's theory, computed and shown: Figure 3 and Table 1, Theorem 3 and its gap, and Theorem 4's snakes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np

from lols.datasets.small_spaces import SmallSpace, figure3_space, random_space, tree_space
from lols.datasets.small_worlds import BLIND, ROLL_INS, ROLL_OUTS, WORLDS, SmallWorld, TwoSteps, out_reference
from lols.reproduction import charts
from lols.reproduction.document import (
    TEXTS,
    Chart,
    FigureText,
    Section,
    TextCell,
    TextTable,
    Values,
    figure,
    formatted,
    verdict,
)
from lols.reproduction.theory.runs import train_lols
from lols.reproduction.theory.snakes import descend, hamming_losses, remember, snake, snake_losses
from lols.reproduction.theory.table1 import learned_policy, table_1
from lols.reproduction.theory.theorem3 import run_lols, sides, stay

BETAS = (0.0, 0.25, 0.5, 0.75, 1.0)
GAP_BETAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0)
RUNS = ("expected costs", "sampled costs", "lols.train")
"""What learns in Theorem 3's runs: hedge with expected costs, hedge with sampled ones, the library's own training."""

ROUNDING = 1e-9
STEPS = (3, 4, 5, 6, 7)


class Amounts(NamedTuple):
    """How much is computed."""

    seeds: int  # trainings of each cell of Figure 3
    spaces: int  # random spaces for Theorem 3, each with every β
    rounds: int  # of LOLS in each of them
    gap_spaces: int


AMOUNTS = {True: Amounts(3, 60, 60, 40), False: Amounts(20, 300, 200, 200)}


def run_theory(quick: bool = True, seed: int = 0, *, amounts: Amounts | None = None) -> dict[str, Any]:
    """Compute what the paper's theory says of small spaces, as values that `json` takes.

    When `quick`, there are fewer spaces, rounds and trainings, unless `amounts` says how many, and nothing is compiled.

    >>> result = run_theory(amounts=Amounts(seeds=1, spaces=2, rounds=5, gap_spaces=2))
    >>> [row["updates"] for row in result["snakes"]["rows"]], result["theorem3"]["violations"]
    ([4, 7, 13, 26, 50], 0)
    """
    began, amounts = time.perf_counter(), amounts or AMOUNTS[quick]
    result = {
        "quick": quick,
        "seed": seed,
        "table1": _table_1(),
        "figure3": _figure_3(amounts.seeds, seed),
        "theorem3": _theorem_3(amounts, seed, compiled=not quick),
        "gap": _gap(amounts.gap_spaces, seed),
        "snakes": _snakes(),
    }
    return result | {"seconds": round(time.perf_counter() - began, 1), "claims": _claims(result)}


# --- Figure 3 and Table 1 ---------------------------------------------------------------------------------------------


def _table_1() -> list[dict[str, Any]]:
    ours, printed = table_1(), TEXTS["table1"]["printed"]
    return [
        {"roll_in": i, "roll_out": o, "paper": paper, "ours": ours[i, o], "agrees": paper == ours[i, o]}
        for i in ROLL_INS
        for o, paper in zip(ROLL_OUTS, printed[i], strict=True)
    ]


def _figure_3(seeds: int, seed: int) -> list[dict[str, Any]]:
    return [_cell(world, i, o, range(seed, seed + seeds)) for world in WORLDS for i in ROLL_INS for o in ROLL_OUTS]


def _cell(world: SmallWorld, roll_in: str, roll_out: str, seeds: range) -> dict[str, Any]:
    """What may be learned in a world by a pair of policies, and what is."""
    import lols

    settled = world.zero_regret(roll_in, roll_out)
    learned = []
    for seed in seeds:
        model = lols.train(
            TwoSteps.space, [world], TwoSteps.teacher, learner="csoaa", roll_in=roll_in, roll_out=roll_out,
            ties="random", passes=50, batch_size=1, seed=seed, compiled=False,
        )  # fmt: skip
        learned.append(learned_policy(model, world))
    return {
        "world": world.name,
        "roll_in": roll_in,
        "roll_out": roll_out,
        "reference_loss": float(world.loss(world.reference_policy)),
        "worst_loss": float(world.worst_loss(roll_in, roll_out)),
        "worst_deviation_regret": float(max(world.deviation_regret(policy) for policy in settled)),
        "trained_loss": fmean(float(world.loss(policy)) for policy in learned),
        "trained_deviation_regret": fmean(float(world.deviation_regret(policy)) for policy in learned),
        "without_regret": sum(policy in settled for policy in learned),
        "trainings": len(seeds),
    }


# --- Theorem 3 --------------------------------------------------------------------------------------------------------


def _theorem_3(amounts: Amounts, seed: int, *, compiled: bool) -> dict[str, Any]:
    runs = list(_runs(amounts, seed, compiled))
    by_beta = []
    for beta in BETAS:
        here = [run for run in runs if run["beta"] == beta]
        means = {name: fmean(run[name] for run in here) for name in ("left", "right", *PARTS)}
        tight = sum(run["right"] - run["left"] <= ROUNDING for run in here)
        by_beta.append({"beta": beta, "runs": len(here), "equal": tight, **means})
    return {
        "rounds": amounts.rounds,
        "spaces": amounts.spaces,
        "runs": runs,
        "by_beta": by_beta,
        "violations": sum(run["left"] > run["right"] + ROUNDING for run in runs),
        "negative_deviations": sum(run["to_deviations"] < -ROUNDING for run in runs),
        "two_policies": _two_policies(),
        "no_regret": _no_regret(seed),
    }


PARTS = ("averaging", "limits", "teacher", "regret", "unfit", "gap")
SIDES = ("left", "to_reference", "to_deviations", "right", "right_of_class", *PARTS)


def _runs(amounts: Amounts, seed: int, compiled: bool) -> Iterator[dict[str, Any]]:
    for number in range(amounts.spaces):
        rng = np.random.default_rng((seed, number))
        space, facts = _space(rng)
        by = str(rng.choice(RUNS, p=[0.4, 0.4, 0.2] if compiled else [0.45, 0.45, 0.1]))
        for beta in BETAS:
            if by == RUNS[2]:
                weights = train_lols(space, amounts.rounds, beta, seed=seed + number, compiled=compiled)
            else:
                weights = run_lols(space, amounts.rounds, beta, rng=rng, sampled=by == RUNS[1])
            found = sides(space, weights, beta)._asdict()
            found["right_of_class"] = found["of_class"]
            yield {"space": number, **facts, "by": by, "beta": beta, **{name: found[name] for name in SIDES}}


def _space(rng: np.random.Generator) -> tuple[SmallSpace, dict[str, Any]]:
    """A random space: 1 to 4 steps, 2 or 3 actions, teachers from optimal to random, classes limited or not."""
    steps, actions = int(rng.integers(1, 5)), int(rng.integers(2, 4))
    slips, limited = float(rng.choice([0.0, 0.5, 1.0])), bool(rng.integers(2))
    space = random_space(rng, steps=steps, actions=actions, slips=slips, limited=limited)
    return space, {"steps": steps, "actions": actions, "slips": slips, "limited": limited}


def _two_policies() -> float:
    """The sum over deviations for the average of two policies: one goes left and is ready for it only, one right."""
    space = tree_space(np.array([[0.0, 1.0, 1.0, 0.0]]), np.array([[0, 0, 1]]))
    return sides(space, np.ones(2), beta=0.0, tables=np.array([[0, 0, 0], [1, 1, 1]])).to_deviations


def _no_regret(seed: int, beta: float = 0.5, spaces: int = 24) -> list[dict[str, Any]]:
    """Corollary 1: T (δ_N - δ_class), the learner's cost-sensitive regret, as N grows."""
    rows = []
    for rounds in (10, 100, 1000):
        regrets = []
        for number in range(spaces):
            rng = np.random.default_rng((seed, number))
            space, _ = _space(rng)
            regrets.append(sides(space, run_lols(space, rounds, beta, rng=rng), beta).regret)
        rows.append({"rounds": rounds, "regret": fmean(regrets)})
    return rows


# --- the gap ----------------------------------------------------------------------------------------------------------


def _gap(spaces: int, seed: int) -> dict[str, Any]:
    """By β: the largest gap of a policy without regret, in worlds that show it, and in spaces with all policies."""
    worlds = []
    for world in (BLIND, out_reference()):
        for beta in (k / 30 for k in range(31)):
            found = stay(figure3_space(world), beta)
            assert found is not None  # in these worlds there is always one
            worlds.append({"world": world.name, "beta": beta, **found._asdict()})
    drawn = [
        random_space(
            np.random.default_rng((seed, number)), steps=2 + number % 3, actions=2 + number // 3 % 2,
            slips=(0.5, 1.0)[number // 6 % 2], limited=False,
        )
        for number in range(spaces)
    ]  # fmt: skip
    rows = []
    for beta in GAP_BETAS:
        stays = [found for found in (stay(space, beta) for space in drawn) if found is not None]
        rows.append({
            "beta": beta,
            "spaces": len(stays),
            "above_zero": sum(found.gap > ROUNDING for found in stays),
            "mean": fmean(found.gap for found in stays),
            "largest": max(found.gap for found in stays),
            "worse_than_reference": sum(found.worst > found.reference + ROUNDING for found in stays),
        })  # fmt: skip
    return {"worlds": worlds, "spaces": rows}


# --- Theorem 4 --------------------------------------------------------------------------------------------------------


def _snakes() -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    for steps in STEPS:
        path = snake(steps)
        losses, hamming = snake_losses(path, steps), hamming_losses(0, steps)  # by symmetry, one target stands for all
        rows.append({
            "steps": steps,
            "policies": 1 << steps,
            "updates": len(descend(losses, path[0])) - 1,
            "updates_algorithm1": len(descend(losses, path[0], together=True)) - 1,
            "remembering_rounds": float(sum(rounds for _, rounds in remember(losses, path[0]))),
            "hamming_updates": max(len(descend(hamming, start)) - 1 for start in range(1 << steps)),
            "path": [f"{policy:0{steps}b}" for policy in path],
        })  # fmt: skip
    # Updates as scale times base to the power of T: a straight line through their logarithms.
    slope, height = np.polyfit(np.array(STEPS, np.float64), np.log([float(row["updates"]) for row in rows]), 1)
    return {"rows": rows, "fit": {"base": float(np.exp(slope)), "scale": float(np.exp(height))}}


# --- claims -----------------------------------------------------------------------------------------------------------


def _claims(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What the paper says, whether it holds here, and our words."""
    cells = {(cell["world"][:3], cell["roll_in"], cell["roll_out"]): cell for cell in result["figure3"]}
    a, b = cells["(a)", "reference", "reference"], cells["(b)", "reference", "mixture"]
    c = cells["(c)", "learned", "reference"]
    three, snakes = result["theorem3"], result["snakes"]
    half = next(row for row in result["gap"]["spaces"] if row["beta"] == 0.5)
    agree = sum(row["agrees"] for row in result["table1"])
    updates = [row["updates"] for row in snakes["rows"]]
    holds = {
        "Theorem 1": a["worst_loss"] > a["reference_loss"] and b["worst_loss"] > b["reference_loss"],
        "Theorem 2": c["worst_deviation_regret"] > 0,
        "Table 1": agree == 6,
        "Theorem 3": three["violations"] == 0,
        "Section 3.2, remark 1": three["negative_deviations"] == 0 and three["two_policies"] >= 0.0,
        "Section 3.2, the gap": half["above_zero"] > 0,
        "Theorem 4": updates == [4, 7, 13, 26, 50],
        "Theorem 4, Hamming loss": all(row["hamming_updates"] <= row["steps"] for row in snakes["rows"]),
    }
    values = {
        "a": a, "b": b, "c": c, "three": three, "half": half, "agree": agree, "fit": snakes["fit"],
        "runs": len(three["runs"]), "equal": sum(row["equal"] for row in three["by_beta"]),
        "updates": ", ".join(map(str, updates)),
    }  # fmt: skip
    return [
        {"where": where, "paper": said["paper"], "holds": bool(holds[where]), "ours": said["ours"].format(**values)}
        for said in TEXTS["theory_claims"]["claims"]
        for where in [said["where"]]
    ]


# --- as a section -----------------------------------------------------------------------------------------------------


def theory_section(theory: Values, command: str) -> Section:
    """All parts of the theory that were computed."""
    parts: dict[str, Callable[..., FigureText]] = {
        "table1": _show_table_1, "figure3": _show_figure_3, "theorem3": _show_theorem_3, "gap": _show_gap,
        "snakes": _show_snakes, "claims": _show_claims,
    }  # fmt: skip
    figures = [describe(theory[name]) for name, describe in parts.items() if theory.get(name)]
    return Section("The theory, computed", (), [made._replace(command=command) for made in figures])


def _show_table_1(cells: Sequence[Values]) -> FigureText:
    rows: dict[str, list[TextCell | str]] = {}
    for cell in cells:
        mark = "good" if cell["ours"] == "good" else "bad"
        note = "" if cell["agrees"] else f"the paper: {cell['paper']}"
        rows.setdefault(cell["roll_in"], [cell["roll_in"]]).append(TextCell(cell["ours"], note, mark=mark))
    table = TextTable(("roll-in", *(f"roll-out: {out}" for out in ROLL_OUTS)), list(rows.values()), words=4)
    return figure("table1", [table], agree=sum(bool(cell["agrees"]) for cell in cells), cells=len(cells))


def _show_figure_3(cells: Sequence[Values]) -> FigureText:
    rows: dict[tuple[str, str], list[TextCell | str]] = {}
    for cell in cells:
        teacher = f"{cell['reference_loss']:g}"
        row = rows.setdefault((cell["world"], cell["roll_in"]), [cell["world"], cell["roll_in"], teacher])
        worse, improvable = cell["worst_loss"] > cell["reference_loss"], cell["worst_deviation_regret"] > 0
        sign, mark = ("✗", "bad") if worse else ("≈", "level") if improvable else ("✓", "good")
        row.append(TextCell(f"{sign} {cell['worst_loss']:g} → {cell['trained_loss']:.3g}", mark=mark))
    settled, trained = (sum(cell[name] for cell in cells) for name in ("without_regret", "trainings"))
    columns = ("world", "roll-in", "teacher's loss", *(f"roll-out: {out}" for out in ROLL_OUTS))
    return figure("figure3", [TextTable(columns, list(rows.values()), words=6)], settled=settled, trained=trained)


def _show_theorem_3(theorem: Values) -> FigureText:
    falls = ", ".join(f"{row['regret']:.4f} after {row['rounds']:,} rounds" for row in theorem["no_regret"])
    table = formatted(TEXTS["theorem3"]["columns"], theorem["by_beta"])
    chart = Chart("theory-theorem3", "Both sides of Theorem 3, run by run", partial(charts.tightness, theorem))
    return figure("theorem3", [table], chart, count=len(theorem["runs"]), falls=falls, **theorem)


def _show_gap(gap: Values) -> FigureText:
    worlds = list(dict.fromkeys(row["world"] for row in gap["worlds"]))
    exact = {(row["beta"], f"world{worlds.index(row['world'])}"): row["gap"] for row in gap["worlds"]}
    columns = {"β": "{beta:g}", **{name: f"{{world{k}:.2f}}" for k, name in enumerate(worlds)}}
    rows = [
        row | {world: value for (beta, world), value in exact.items() if beta == row["beta"]} for row in gap["spaces"]
    ]
    chart = Chart("theory-gap", "The gap by β", partial(charts.gap_curves, gap))
    return figure("gap", [formatted(columns | TEXTS["gap"]["columns"], rows)], chart)


def _show_snakes(snakes: Values) -> FigureText:
    rounds = [row["remembering_rounds"] for row in snakes["rows"]]
    texts = [f"{number:,.0f}" if number < 1e6 else f"{number:.1e}" for number in rounds]
    rows = [row | {"remembering": text} for row, text in zip(snakes["rows"], texts)]
    chart = Chart("theory-snakes", "Updates to a local optimum by T", partial(charts.snake_growth, snakes))
    return figure("snakes", [formatted(TEXTS["snakes"]["columns"], rows)], chart, **snakes["fit"])


def _show_claims(claims: Sequence[Values]) -> FigureText:
    rows = [[c["where"], c["paper"], verdict("holds" if c["holds"] else "fails"), c["ours"]] for c in claims]
    return figure(
        "theory_claims", [TextTable(("where", "what the paper says", "", "what comes out here"), rows, words=4)]
    )
