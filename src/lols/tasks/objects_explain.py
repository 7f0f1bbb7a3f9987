"""How an `ObjectEstimator` decides about one object: its steps, and what deviations from them cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lols.tasks.explain import ExampleReport, follow, roll_out_text

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True)
class ActionCosts:
    """An action that was legal at a step; `loss` and `cost` are None where they are not known."""

    action: str
    predicted: float
    loss: float | None
    cost: float | None
    taken: bool


@dataclass(frozen=True)
class ObjectReport(ExampleReport):
    """The steps of one example, each with its actions by predicted cost."""

    output: str
    loss: float | None
    roll_out: str | None
    beta: float | None
    steps: tuple[tuple[ActionCosts, ...], ...]

    def values(self) -> dict[str, Any]:
        """The explanation as plain values."""
        steps = [[asdict(action) for action in step] for step in self.steps]
        found = {"output": self.output, "loss": self.loss, "roll_out": self.roll_out, "beta": self.beta}
        return found | {"steps": steps}

    def show(self, console: Console) -> None:
        """Print a line for each action of each step."""
        from lols.tasks.show import show_legend, step_table, styled, write

        loss = "" if self.loss is None else f", loss {self.loss:g}"
        about = [f"predicted {self.output} by {self.model}{loss}"]
        for line in [self.heading, *about, *roll_out_text(self.roll_out, self.beta, "an action")]:
            write(console, line)
        table = step_table(["#", "", "action"], self.roll_out)
        for k, step in enumerate(self.steps, 1):
            for n, each in enumerate(step):
                costly = each.taken and each.cost is not None and each.cost > 1e-6
                style = "bold red" if costly else "bold" if each.taken else "dim"
                row: list[Any] = [str(k) if n == 0 else "", styled("→" if each.taken else "", style)]
                row += [styled(each.action, style), f"{each.predicted:.2f}"]
                row += [] if each.loss is None else [f"{each.loss:.3g}"]
                row += [] if each.cost is None else [f"{each.cost:+.3g}"]
                table.add_row(*row)
        write(console)
        write(console, table, soft_wrap=False)
        show_legend(console, "action", self.roll_out, "of the whole example")


def explain_object(estimator: Any, file: str, objects: Sequence[Any], number: int) -> ObjectReport:
    """Follow the model through one labelled object, and evaluate its deviations."""
    model = estimator.model_
    examples = model.labelled([objects[number - 1]], model.space.teacher)
    path = follow(estimator, examples, examples)
    steps = tuple(
        tuple(ActionCosts(estimator.action_name(a), *numbers) for a, numbers in path.actions(step))
        for step in range(path.taken.size)
    )
    output = str(model.run(examples).output(0))
    head = (estimator.named, file, estimator.VERBS.one, number, len(objects))
    return ObjectReport(*head, output, path.loss, path.roll_out, path.beta, steps)
