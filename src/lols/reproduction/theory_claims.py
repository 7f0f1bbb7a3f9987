"""What the paper's theory says, claim by claim, and whether it holds in what was computed."""

from __future__ import annotations

from typing import Any

__all__ = ["theory_claims"]


def theory_claims(result: dict[str, Any]) -> list[dict[str, Any]]:
    """What the paper says, whether it holds here, and our words."""
    cells = {(cell["world"][:3], cell["roll_in"], cell["roll_out"]): cell for cell in result["figure3"]}
    a, b = cells["(a)", "reference", "reference"], cells["(b)", "reference", "mixture"]
    c = cells["(c)", "learned", "reference"]
    three, gap, snakes = result["theorem3"], result["gap"], result["snakes"]
    runs, half = len(three["runs"]), next(row for row in gap["spaces"] if row["beta"] == 0.5)
    updates = [row["updates"] for row in snakes["rows"]]
    equal = sum(row["equal"] for row in three["by_beta"])
    agree = sum(row["agrees"] for row in result["table1"])
    return [
        _claim(
            "Theorem 1", "rolling in with the reference: no cost-sensitive regret, yet far from the reference",
            a["worst_loss"] > a["reference_loss"] and b["worst_loss"] > b["reference_loss"],
            f"a loss of {a['worst_loss']:g} in (a), {b['worst_loss']:g} in (b), where the reference has 0; training "
            f"ends with {a['trained_loss']:g} and {b['trained_loss']:g}",
        ),
        _claim(
            "Theorem 2", "rolling out with the reference: no regret, yet arbitrarily worse than a one-step deviation",
            c["worst_deviation_regret"] > 0,
            f"worse by {c['worst_deviation_regret']:g} in (c), where losses are about 1; more if losses are scaled",
        ),
        _claim("Table 1", "one cell of six is good: LOLS", agree == 6, f"{agree} of 6 cells come out as printed"),
        _claim(
            "Theorem 3", "left side at most T δ_N", three["violations"] == 0,
            f"{three['violations']} violations in {runs:,} runs; equal in {equal:,}",
        ),
        _claim(
            "Section 3.2, remark 1", "the sum over one-step deviations is never negative",
            three["negative_deviations"] == 0 and three["two_policies"] >= 0.0,
            f"{three['two_policies']:g} for the average of two policies that go different ways: no one change need suit"
            f" all that were averaged; in runs of LOLS negative in {three['negative_deviations']:,} of {runs:,}",
        ),
        _claim(
            "Section 3.2, the gap", "for 0 < β < 1 it does not always vanish, whatever the class",
            half["above_zero"] > 0,
            f"at β = 0.5 it can stay in {half['above_zero']} of {half['spaces']} random spaces, up to "
            f"{half['largest']:.2f}",
        ),
        _claim(
            "Theorem 4", "descent can take Ω(2^T) updates", updates == [4, 7, 13, 26, 50],
            f"{', '.join(map(str, updates))} updates for T = 3 to 7: {snakes['fit']['scale']:.2f} x "
            f"{snakes['fit']['base']:.2f}^T",
        ),
        _claim(
            "Theorem 4, Hamming loss", "the construction does not apply to it",
            all(row["hamming_updates"] <= row["steps"] for row in snakes["rows"]), "at most T updates from any start",
        ),
    ]  # fmt: skip


def _claim(where: str, paper: str, holds: bool, ours: str) -> dict[str, Any]:
    return {"where": where, "paper": paper, "holds": bool(holds), "ours": ours}
