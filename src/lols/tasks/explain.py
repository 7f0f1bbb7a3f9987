"""How one example is decided: what explanations of all tasks record, and how they are printed and drawn.

This is Figure 2 of the paper for an example of the user's: roll-in by the model, one-step deviations, roll-outs,
losses. The costs are those of the engine that trains. A task says what its states and actions are called, and draws
its output.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self

import numpy as np

from lols.contract.examples import Examples
from lols.contract.space import Reference
from lols.errors import ConfigurationError
from lols.io.whole_file import write_whole
from lols.tasks.inspect import stored_algorithm
from lols.training.algorithms import LOLS, ROLL_OUTS, Algorithm
from lols.training.confidence import step_scores
from lols.training.deviation_costs import costs_along, last_shares, states_along
from lols.training.model import Model

if TYPE_CHECKING:
    from rich.console import Console

DRAWN = "Searn draws a policy at every decision, so that no deviation has a cost of its own."
WIDE = 100  # characters of a line in a file or a pipe
ADDED = 26  # characters of a line about what a decision adds
TINY = 1e-6  # costs that differ by no more are equal
TEMPLATE = Path(__file__).parent / "templates" / "explanation.html.j2"


# --- records ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ActionCosts:
    """An action that was legal.

    `predicted` is its cost as the model predicts it, and `probability` that of being the best one, if the model is
    calibrated. `loss` is that of the whole example when the roll-out has completed it, and `cost` how much more that is
    than with the best action here; both are None where they are not known. `right` says whether it is known to be
    right: the true label, or what the reference finds best.
    """

    action: str
    predicted: float
    probability: float | None
    loss: float | None
    cost: float | None
    taken: bool
    right: bool


class Reason(NamedTuple):
    """A feature, and by how much it made the action that was taken seem cheaper than the others, on average."""

    feature: str
    push: float


@dataclass(frozen=True)
class ExplainedDecision:
    """A step: its number from 1 on, what the task says of the state, and all legal actions by predicted cost.

    `reference` is the action of the reference, or the true one, if that is known. `wrong` says whether another action
    is known to have been better. The most important reasons come first; most tasks give none.
    """

    number: int
    state: Mapping[str, Any]
    actions: tuple[ActionCosts, ...]
    reference: str | None = None
    wrong: bool = False
    reasons: tuple[Reason, ...] = ()

    @property
    def taken(self) -> ActionCosts:
        """What was done."""
        return next(each for each in self.actions if each.taken)

    def shown(self, top: int | None) -> list[ActionCosts]:
        """The `top` actions of the least predicted cost, the one taken, and the reference's if none is right."""
        if top is None:
            return list(self.actions)
        chosen = {k for k, each in enumerate(self.actions) if k < top or each.taken}
        if not any(self.actions[k].right for k in chosen):
            chosen |= {k for k, each in enumerate(self.actions) if each.action == self.reference}
        return [self.actions[k] for k in sorted(chosen)]

    def others(self, top: int | None) -> list[ActionCosts]:
        """The actions that are not shown."""
        shown = self.shown(top)
        return [each for each in self.actions if each not in shown]

    def compared(self, action: ActionCosts) -> str:
        """How an action compares with the one taken, as the class of its mark on a page."""
        if action.taken:
            return "taken costly" if self.wrong else "taken"
        if action.cost is None or self.taken.cost is None or abs(action.cost - self.taken.cost) <= TINY:
            return ""
        return "better" if action.cost < self.taken.cost else "worse"

    def as_dict(self, top: int | None) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        return {
            "number": self.number,
            "state": dict(self.state),
            "taken": self.taken.action,
            "reference": self.reference,
            "wrong": self.wrong,
            "actions": [asdict(each) for each in self.shown(top)],
            "more_actions": len(self.others(top)),
            "reasons": [each._asdict() for each in self.reasons],
        }


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """How an example is decided, one decision after the other; a task's own says what things are called.

    `loss` is that of the path taken, `reference` the name of the teacher, and `roll_out` who completed the deviations,
    None if no costs are known.
    """

    decisions: tuple[ExplainedDecision, ...]
    output: Any
    reference: str | None = None
    loss: float | None = None
    roll_out: str | None = None
    beta: float | None = None
    notes: tuple[str, ...] = ()

    ACTION: ClassVar[str] = "action"  # what an action is called
    RIGHT: ClassVar[str] = "as good as any to the teacher ({reference})"
    LOSS: ClassVar[str] = "of the whole example"
    SIGNS: ClassVar[Mapping[str, str]] = {}  # further signs, and what they mean

    def about(self, model: str) -> list[str]:
        """What the reader must know of the numbers."""
        return [f"predicted {self.output} by {model}{self.loss_text()}", *self.roll_out_text()]

    def cells(self, decision: ExplainedDecision) -> Mapping[str, Sequence[str]]:
        """What identifies a state, by column: words that are shown side by side."""
        return {}

    def added(self, decision: ExplainedDecision) -> Sequence[str]:
        """What a decision is about, or adds to the output, as lines below its state."""
        return ()

    def row(self, decision: ExplainedDecision) -> list[Any]:
        """The cells of a state as they are printed."""
        return [" ".join(words) for words in self.cells(decision).values()]

    def show_output(self, console: Console) -> None:
        """Print the output, where that takes more than a line."""

    def drawing(self) -> str:
        """The output as HTML or SVG."""
        return ""

    def drawing_signs(self) -> list[tuple[str, str, str]]:
        """What is in the drawing: class, text and meaning of each sign."""
        return []

    def old_values(self, top: int | None) -> dict[str, Any]:
        """The values that `--json` printed before 0.3 under names of the task's own; 0.4 will leave them out."""
        return {}

    def as_dict(self, top: int | None = None) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        values = {name: getattr(self, name) for name in ("output", "loss", "roll_out", "beta", "reference")}
        values["notes"] = list(self.notes)
        return values | {"decisions": [each.as_dict(top) for each in self.decisions]} | self.old_values(top)

    def loss_text(self) -> str:
        """The loss, if it is known."""
        return "" if self.loss is None else f", loss {self.loss:g}"

    def roll_out_text(self) -> list[str]:
        """Who completes deviations, as a line, if anybody does."""
        if self.roll_out is None:
            return []
        article = "an" if self.ACTION[0] in "aeiou" else "a"
        who = {
            "learned": "by the learned policy",
            "reference": "by the reference",
            "none": f"not at all: a cost is what {article} {self.ACTION} adds to the loss by itself",
            "mixture": f"by the reference and by the learned policy, costs averaged (β = {self.beta or 0:g})",
        }
        return [f"Deviations are completed {who[self.roll_out]}."]

    def numbers(self) -> list[str]:
        """Which numbers of the actions are known besides the predicted costs."""
        one = next((each.actions[0] for each in self.decisions), None)
        return [name for name in ("probability", "loss", "cost") if getattr(one, name, None) is not None]

    def right_text(self) -> str:
        """What is marked as right; empty if nothing is."""
        right = any(each.right for decision in self.decisions for each in decision.actions)
        return self.RIGHT.format(reference=self.reference) if right else ""


# --- reports ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExampleReport:
    """The explanation of one example of a file, as plain values, as text, and as a page."""

    model: str
    file: str
    one: str  # what an example is called
    number: int
    count: int | None  # of examples in the file, if that is known
    explanation: Explanation
    top: int | None = None  # how many actions are shown; None for all
    html: str | None = None  # the file that the page is written to

    @property
    def heading(self) -> str:
        """Which example it is."""
        of = "" if self.count is None else f" of {self.count:,}"
        return f"{self.one.capitalize()} {self.number:,}{of} in {self.file}"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` prints them."""
        counts = {self.one: self.number} | ({} if self.count is None else {f"{self.one}s": self.count})
        return {"file": self.file, **counts, **self.explanation.as_dict(self.top)}

    def show(self, console: Console) -> None:
        """Print the output, and a line for each action that is shown of each decision."""
        from lols.tasks.show import at_least, write

        explanation = self.explanation
        for line in filter(None, [self.heading, *explanation.about(self.model), *explanation.notes]):
            write(console, line)
        explanation.show_output(console)
        reasons = any(each.reasons for each in explanation.decisions)
        for decisions in [[each] for each in explanation.decisions] if reasons else [explanation.decisions]:
            write(console)
            write(at_least(console, WIDE), _table(explanation, decisions, self.top), soft_wrap=False)
            for each in decisions if reasons else ():
                write(console, "  because " + "   ".join(f"{push:+.3f} {feature}" for feature, push in each.reasons))
        write(console)
        for line in _legend(explanation):
            write(console, line)
        if self.html is not None:
            write(console, f"\n{self.html} written")

    def page(self) -> str:
        """One HTML page that needs nothing else: the output, and every decision with its deviations."""
        return page(self.explanation, heading=self.heading, about=self.explanation.about(self.model), top=self.top)

    def written(self) -> Self:
        """The same, with its page written if one was asked for."""
        if self.html is not None:
            write_whole(self.html, self.page().encode())
        return self

    def _repr_html_(self) -> str:
        """The page as a frame in a notebook: its styles stay inside, and nothing in it is executed."""
        return f'<iframe sandbox srcdoc="{html.escape(self.page())}" style="width:100%;height:620px;border:0"></iframe>'


# --- text -------------------------------------------------------------------------------------------------------------


def _table(explanation: Explanation, decisions: Sequence[ExplainedDecision], top: int | None) -> Any:
    """Some decisions: state, actions, predicted costs, and probabilities, losses and costs as far as they are known."""
    from lols.tasks.show import plain_table, styled

    table, known = plain_table(padding=(0, 2, 0, 0)), explanation.numbers()
    states = [name for each in decisions[:1] for name in explanation.cells(each)]
    for name in ["#", *states, "", explanation.ACTION]:
        wide: Any = {"overflow": "fold", "max_width": 30} if name == "word" else {"no_wrap": True}
        table.add_column(name, justify="right" if name in ("#", "stack") else "left", **wide)
    for name in ["predicted", *known]:
        table.add_column(name, justify="right", no_wrap=True)
    nothing: list[Any] = []
    for each in decisions:
        rows: list[list[Any]] = []
        for action in each.shown(top):
            style = ("bold red" if each.wrong else "bold") if action.taken else "green" if action.right else "dim"
            names = "→" if action.taken else "", action.action + (" ✓" if action.right else "")
            rows.append([*(styled(name, style) for name in names), *_numbers(action, known)])
        others = each.others(top)
        if others:
            least = [f"≥ {number}" if number else "" for number in _numbers(least_of(others), known)]
            rows.append(["", *(styled(text, "dim") for text in (f"+ {len(others)} more", *least))])
        heads: list[list[Any]] = [[str(each.number), *explanation.row(each)]]
        heads += [["", styled(cut(line, ADDED), "dim")] for line in explanation.added(each)]
        for head, row in zip_longest(heads, rows, fillvalue=nothing):
            table.add_row(*head, *[""] * (1 + len(states) - len(head)), *row)
    return table


def _numbers(action: ActionCosts, known: Sequence[str]) -> list[str]:
    from lols.tasks.pages import number

    texts: dict[str, Any] = {"probability": "{:.2f}".format, "loss": number, "cost": partial(number, signed=True)}
    values = {name: getattr(action, name) for name in known}
    return [f"{action.predicted:.2f}", *("" if v is None else texts[name](v) for name, v in values.items())]


def least_of(actions: Sequence[ActionCosts]) -> ActionCosts:
    """The first of some actions, with the least of their losses and costs."""

    def least(values: list[float | None]) -> float | None:
        return min((v for v in values if v is not None), default=None)

    loss, cost = least([each.loss for each in actions]), least([each.cost for each in actions])
    return replace(actions[0], probability=None, loss=loss, cost=cost)


def cut(text: str, most: int) -> str:
    """The beginning of a text, if it has more than so many characters.

    >>> cut("the dog barks", 8)
    'the dog…'
    """
    return text if len(text) <= most else text[: most - 1] + "…"


def _legend(explanation: Explanation) -> Iterator[str]:
    """What the marks and numbers of a table of decisions mean."""
    one, known, right = explanation.ACTION, explanation.numbers(), explanation.right_text()
    yield f"→ the {one} taken{right and ', ✓ ' + right}; predicted: its cost as the model predicts it"
    yield from (f"{sign}: {meaning}" for sign, meaning in explanation.SIGNS.items())
    meanings = {
        "probability": f"that the {one} is the best one",
        "loss": f"{explanation.LOSS}, with that {one} here and the rest as said above",
        "cost": f"how much more than with the best {one} here",
    }
    yield from (f"{name}: {meanings[name]}" for name in known)
    if any(each.reasons for each in explanation.decisions):
        yield f"because: + lowered the predicted cost of the {one} taken against the others, - raised it"


# --- pages ------------------------------------------------------------------------------------------------------------


def page(explanation: Explanation, *, heading: str, about: Sequence[str] = (), top: int | None = None) -> str:
    """The whole page: a heading, lines about it, the output, and every decision with its deviations.

    >>> action = ActionCosts("<N>", -0.5, None, 1.0, 1.0, taken=True, right=False)
    >>> decisions = (ExplainedDecision(1, {}, (action,)),)
    >>> text = page(Explanation(decisions=decisions, output=""), heading="Sentence 1")
    >>> "&lt;N&gt;" in text, "<N>" in text, "http://" in text
    (True, False, False)
    """
    from markupsafe import Markup

    from lols.tasks.pages import render

    return render(
        TEMPLATE,
        heading=heading,
        about=[*about, *explanation.notes],
        explanation=explanation,
        top=top,
        drawing=Markup(explanation.drawing()),  # which is escaped already
        signs=_signs(explanation),
        title=partial(_title, explanation),
        least_of=least_of,
    )


def _signs(explanation: Explanation) -> list[tuple[str, str, str]]:
    """What is on the page of decisions: class, text and meaning of each sign."""
    known, right = explanation.numbers(), explanation.right_text()
    signs = [("strong", sign, meaning) for sign, meaning in explanation.SIGNS.items()]
    signs.append(("move taken", "taken", "what the model did"))
    if "cost" in known:
        signs.append(("move taken costly", "taken", "though something else was better"))
        signs.append(("move better", "better", "than what was taken"))
    signs += [("", "✓", right)] if right else []
    signs.append(("soft", "−1.23", "predicted cost"))
    if "loss" in known:
        signs.append(("strong", "┄ 2", "the roll-out, and the loss at its end"))
    elif "cost" in known:
        signs.append(("strong", "+1", f"how much more than with the best {explanation.ACTION} here"))
    return signs


def _title(explanation: Explanation, action: ActionCosts) -> str:
    """Everything about an action, for a tooltip."""
    lines = [
        f"{action.action}{', taken' if action.taken else ''}{', ' + explanation.right_text() if action.right else ''}"
    ]
    lines.append(f"predicted cost {action.predicted:.3f}")
    if action.probability is not None:
        lines.append(f"probability {action.probability:.3f}")
    if action.loss is not None:
        lines.append(f"loss {action.loss:.6g} after the roll-out")
    if action.cost is not None:
        lines.append(f"costs {action.cost:.6g} more than the best {explanation.ACTION} here")
    return "\n".join(lines)


# --- costs ------------------------------------------------------------------------------------------------------------


class FollowedPath(NamedTuple):
    """The path that a model takes through one example, and what deviations from it cost, if that is known."""

    taken: np.ndarray
    predicted: np.ndarray  # [step, action]: the predicted costs, infinite where illegal
    probabilities: np.ndarray | None = None  # [step, action]; None if the model is not calibrated
    costs: np.ndarray | None = None  # [step, action], relative to the best action of the step; infinite where illegal
    losses: np.ndarray | None = None  # of the whole example; None if nothing was rolled out
    loss: float | None = None
    roll_out: str | None = None  # who completed the deviations
    beta: float | None = None  # the reference's share, if it was a mixture

    def actions(
        self, step: int, name: Callable[[int], str], right: Container[int | None] = ()
    ) -> tuple[ActionCosts, ...]:
        """The legal actions of a step by predicted cost."""
        taken = int(self.taken[step])

        def at(table: np.ndarray | None, a: int) -> float | None:
            return None if table is None else float(table[step, a])

        return tuple(
            ActionCosts(
                action=name(a),
                predicted=float(self.predicted[step, a]),
                probability=at(self.probabilities, a),
                loss=at(self.losses, a),
                cost=at(self.costs, a),
                taken=a == taken,
                right=a in right,
            )
            for a in np.argsort(self.predicted[step], kind="stable").tolist()
            if np.isfinite(self.predicted[step, a])
        )

    def facts(self) -> dict[str, Any]:
        """What an `Explanation` says of the whole path."""
        return {name: getattr(self, name) for name in ("loss", "roll_out", "beta")}


def follow(
    estimator: Any,
    examples: Examples,
    labelled: Examples | None = None,
    *,
    roll_out: str | None = None,
    beta: Any = None,
    compiled: bool = True,
) -> FollowedPath:
    """Follow an estimator through one example; with the same, `labelled`, evaluate the deviations from its path.

    They have no cost of their own where one of several policies is drawn at every decision.
    """
    model = estimator._fitted
    (scores,) = step_scores(model, examples)
    path = FollowedPath(scores.taken, scores.costs, scores.probabilities)
    if labelled is None or draws_policies(model) or not path.taken.size:
        return path
    chosen, share = explained_roll_out(model, roll_out, beta)
    reference, seed = estimator.task_.reference(estimator.reference), estimator.seed
    costs = costs_along(model, reference, labelled, path.taken, chosen, share, seed=seed, compiled=compiled)
    mixed = share if chosen.roll_out == "mixture" else None
    return FollowedPath(*path[:3], *costs, chosen.roll_out, mixed)


def explained_roll_out(model: Model, roll_out: str | None, beta: Any) -> tuple[Algorithm, float]:
    """The algorithm with another roll-in and nothing left to chance, and the reference's share in a mixture."""
    stored = stored_algorithm(model.about) or LOLS
    chosen = roll_out or ("learned" if stored.restart else stored.roll_out)  # searn ends with its own policies
    if chosen not in ROLL_OUTS:
        raise ConfigurationError(f"roll_out is '{chosen}': choose one of {', '.join(ROLL_OUTS)}")
    if beta is not None and chosen != "mixture":
        raise ConfigurationError(f"beta has no effect: roll_out is '{chosen}', not 'mixture'")
    algorithm = (stored if beta is None else replace(stored, beta=beta)).exactly("learned", chosen)
    return algorithm, last_shares(algorithm, model.about)[0]


def draws_policies(model: Model) -> bool:
    """Whether one of several policies is drawn at every decision, as Searn does."""
    return model.decides.components > 1


def right_actions(reference: Reference, examples: Examples, taken: np.ndarray) -> list[list[int]]:
    """For each step of a path the actions that the reference finds best; it takes the first. None if it draws."""
    space, (x, y), best = examples.space, examples.example(0), list[list[int]]()
    for _, state in zip(taken, states_along(space, examples, taken), strict=False):
        legal, costs = np.zeros(examples.most_actions, bool), np.zeros(examples.most_actions)
        if reference.random:
            best.append([])
        elif reference.action is not None:
            best.append([int(reference.action(x, y, state))])
        elif reference.costs is not None:
            space.actions(x, state, legal)
            reference.costs(x, y, state, costs)
            best.append(np.flatnonzero(legal & (costs == costs[legal].min())).tolist())
        else:
            reference.free(x, y, state, legal)  # type: ignore[misc]
            best.append(np.flatnonzero(legal).tolist())
    return best


# --- objects ----------------------------------------------------------------------------------------------------------


def explain_object(estimator: Any, objects: Sequence[Any], number: int) -> Explanation:
    """Follow an `ObjectEstimator` through one of some labelled objects, counted from 1."""
    model, reference = estimator.model_, estimator.task_.reference(estimator.reference)
    examples = model.labelled([objects[number - 1]], model.space.teacher)
    path, decisions = follow(estimator, examples, examples), []
    for step, right in enumerate(right_actions(reference, examples, path.taken)):
        actions, taken = path.actions(step, estimator.action_name, right), path.taken[step]
        costly = path.costs is not None and bool(path.costs[step, taken] > TINY)
        decisions.append(
            ExplainedDecision(step + 1, {}, actions, estimator.action_name(right[0]) if right else None, costly)
        )
    output = str(model.run(examples).output(0))
    notes = (DRAWN,) if draws_policies(model) else ()
    return ObjectExplanation(
        decisions=tuple(decisions), output=output, reference=reference.name, notes=notes, **path.facts()
    )


class ObjectExplanation(Explanation):
    """How an object of the user's is decided about."""

    def old_values(self, top: int | None) -> dict[str, Any]:
        """The actions of all decisions."""
        names = ("action", "predicted", "loss", "cost", "taken")
        return {
            "steps": [[{name: getattr(a, name) for name in names} for a in each.actions] for each in self.decisions]
        }
