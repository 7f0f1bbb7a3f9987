"""What is in a model file: how it was made and what it holds, for every kind of model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.engine.table import features_by_row, is_fixed
from lols.errors import ConfigurationError, LolsError, ModelFileError, shown
from lols.tasks.verbs import Verbs, some_of
from lols.training.algorithms import Algorithm

if TYPE_CHECKING:
    from rich.console import Console

UNITS = ("bytes", "kB", "MB", "GB")
MOST_TEMPLATES = 24  # that are written out
# Facts that are shown, and of which kind they are.
COUNTS = ("passes", "passes_done", "batch_size", "seed", "examples", "tokens", "best_pass")
FACTS = {"reference": str} | dict.fromkeys(COUNTS, int)
LEARNER = {"reduction": str, "update": str, "margin": str, "rate": Real, "slack": Real}
Sides = dict[str, list[dict[str, Any]]]  # features for and against


# --- plain values -----------------------------------------------------------------------------------------------------


def describe_file(
    path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], own: Sequence[str] = ()
) -> dict[str, Any]:
    """What is written in a file, without its weights; `own` names facts of the task that are given as they are."""
    try:
        about, task = header["about"], header["task"] or {}
        algorithm = stored_algorithm(about)
        return {
            "file": os.fspath(path),
            "kind": task.get("name", "model"),
            "version": header["version"],
            "bytes": os.path.getsize(path),
            "space": header["space"]["name"],
            "actions": header["space"]["actions"],
            **_sizes(header, tensors),
            "algorithm": about.get("algorithm"),
            "algorithm_in_words": algorithm.explain() if algorithm is not None else None,
            "learner": _learner(about.get("learner")),
            **{name: _plain(name, about.get(name), kind) for name, kind in FACTS.items()},
            "decides_by": str(header["kept_reference"]["name"]) if header.get("kept_reference") else None,
            "optimised": _optimised(about.get("optimised")),
            "confidence": _confidence(header.get("calibration")),
            "learner_state": isinstance(header.get("learning"), dict),
            **{name: task[name] for name in own},
        }
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path}: the header is damaged ({type(error).__name__}: {error})") from error


def _optimised(facts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What `lols.optimise` chose, and how long it took."""
    if facts is None:
        return None
    return {"strategy": str(facts["strategy"] or "none"), "seconds": float(facts["seconds"])}


def _plain(name: str, value: Any, kind: type) -> Any:
    """A fact of a file, if it is of its kind or None."""
    if value is not None and (not isinstance(value, kind) or isinstance(value, bool)):
        raise ValueError(f"'{name}' is {shown(value)}")
    return value


def _learner(stored: Any) -> Any:
    """The settings of a learner, or the class of a policy of the user's own."""
    if stored is None or "policy" in stored:
        return stored
    for name, kind in LEARNER.items():
        if _plain(name, stored.get(name), kind) is None and kind is str:
            raise ValueError(f"the learner has no '{name}'")
    return stored


def _confidence(fitted: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """What confidence was fitted to."""
    return None if fitted is None else {"source": str(fitted["source"]), "decisions": int(fitted["decisions"])}


def _sizes(header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """How much the policy holds; one of the user's own has arrays of any kind."""
    if header.get("policy") is not None:
        numbers = sum(array.size for name, array in tensors.items() if name.startswith("policy."))
        return {"features": None, "weights": int(numbers), "policies": 1}
    return {
        "features": int(tensors["shared.features"].size + tensors["single.features"].size),
        "weights": int(tensors["shared.values"].size + tensors["single.values"].size),
        "policies": int(tensors["chances"].size),
    }


def stored_algorithm(about: Mapping[str, Any]) -> Algorithm | None:
    """The algorithm that a model was trained with, from the plain values in its file; None if it is none of ours.

    >>> from lols import algorithm
    >>> made = algorithm("lols", beta="linear:1:0")
    >>> stored_algorithm({"algorithm": made.described()}) == made
    True
    """
    stored = about.get("algorithm")
    try:
        return Algorithm(**stored) if isinstance(stored, dict) else None
    except (TypeError, ValueError, LolsError):
        return None


def speaking(
    ids: np.ndarray,
    weights: Mapping[str, np.ndarray],
    top: int,
    against: bool,
    find_names: Callable[[np.ndarray], Callable[[int], str]],
) -> dict[str, Sides]:
    """The strongest features of each label: those that lower its predicted cost most, and those that raise it most.

    `ids` are those of the features, and `weights` what they add to the cost of each label; `find_names` is given the
    ids of the features that are listed, and returns what names them.
    """
    picked: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for label, own in weights.items():
        picked[label] = {"for": strongest(ids, own, top)}
        if against:
            picked[label]["against"] = [(i, -w) for i, w in strongest(ids, -own, top)]
    listed = {i for sides in picked.values() for pairs in sides.values() for i, _ in pairs}
    name_of = find_names(np.array(sorted(listed), np.int64))
    return {
        label: {
            side: [{"feature": name_of(i), "weight": w, "id": str(i)} for i, w in pairs]
            for side, pairs in sides.items()
        }
        for label, sides in picked.items()
    }


def speaking_columns(
    policy: Any, columns: Mapping[str, int], top: int, against: bool, find_names: Callable[[np.ndarray], Any]
) -> tuple[dict[str, Sides], list[str]]:
    """The strongest features of some columns of a policy's weights, and the templates whose features have no names.

    `find_names` is given ids of features, and returns their `lols.tasks.tokens.feature_names.Names`.
    """
    if is_fixed(policy.shared):
        return {}, []  # features share rows there
    ids = features_by_row(policy.shared, policy.stack.shape[1])
    shares = np.diff(policy.chances, prepend=0.0).astype(np.float32)
    weights = {name: shares @ policy.stack[:, :, column] for name, column in columns.items()}
    unnamed: list[str] = []

    def find(wanted: np.ndarray) -> Callable[[int], str]:
        names = find_names(wanted)
        unnamed.extend(names.unnamed)
        name_of: Callable[[int], str] = names.of
        return name_of

    return speaking(ids, weights, top, against, find), unnamed


def strongest(ids: np.ndarray, weights: np.ndarray, top: int) -> list[tuple[int, float]]:
    """The most negative weights and their features, the strongest first; the lower id where they are equal."""
    below = np.flatnonzero(weights < 0)
    if below.size > top:
        least = np.partition(weights[below], top - 1)[top - 1]
        below = below[weights[below] <= least]
    order = np.lexsort((ids[below], weights[below]))[:top]
    return [(int(ids[k]), float(weights[k])) for k in below[order]]


# --- text -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Inspection:
    """What is in a model file; each kind of model adds to what is shown of a search space of the user's own."""

    values: dict[str, Any]
    verbs: Verbs | None = None  # of the estimator, if one wrote the file
    top: int = 0  # features that were asked for

    WHAT, SEVERAL = "action", "actions"  # what features speak for

    def as_dict(self) -> dict[str, Any]:
        """The plain values."""
        return self.values

    def described(self) -> str:
        """What kind of model it is."""
        if self.verbs is not None:
            return self.verbs.described
        own = "program" if self.values["kind"] == "program" else "search space"
        return f"a model of a {own} of your own"

    def facts(self) -> Iterator[tuple[str, str]]:
        """What is special to the kind of model."""
        count = self.values["actions"]
        actions = "as many actions as an example has" if count is None else f"{count} actions"
        yield "space", f"{self.values['space']}: {actions}"
        if "task" in self.values:
            changed = "has changed since" if self.values["task"]["changed"] else "as in training"
            yield "task", f"{self.values['task']['name']}: {changed}"

    def show_more(self, console: Console) -> None:
        """What comes between the facts and the features."""

    def show(self, console: Console) -> None:
        """Print facts, algorithm and features."""
        from lols.tasks.show import plain_table, write

        kind = self.described()
        if "parts" in self.values:
            kind = f"a pipeline of {', '.join(self.values['parts'])}; here its part {self.values['part']}, {kind}"
        write(console, f"{self.values['file']}: {kind}")
        table = plain_table(show_header=False, padding=(0, 2))
        table.add_column(no_wrap=True)
        table.add_column(overflow="fold")
        for name, value in self._all_facts():
            table.add_row(f"  {name}", value)
        write(console, table, soft_wrap=False)
        if self.values["algorithm_in_words"]:
            write(console, "\nalgorithm: " + self.values["algorithm_in_words"])
        self.show_more(console)
        if "features_of" in self.values:
            self._show_features(console)
        elif self.top:
            write(console, f"\nsecoc's weights are of sets of {self.SEVERAL}: no feature speaks for one of them alone.")

    def _all_facts(self) -> Iterator[tuple[str, str]]:
        found = self.values
        yield "written by", f"lols {found['version']}"
        if found["features"] is None:
            yield "size", f"{size_text(found['bytes'])}: {found['weights']:,} numbers"
        else:
            yield "size", f"{size_text(found['bytes'])}: {found['features']:,} features, {found['weights']:,} weights"
        if found["policies"] > 1:
            yield "policies", f"{found['policies']}, one drawn at each decision"
        yield from self.facts()
        if found["examples"] is not None:
            tokens = f", {found['tokens']:,} tokens" if found["tokens"] is not None else ""
            units = "examples" if self.verbs is None else self.verbs.unit
            yield "trained on", f"{found['examples']:,} {units}{tokens}"
        if found.get("fingerprint"):
            yield "fingerprint", f"{found['fingerprint']} (of the training data)"
        if found["passes"] is not None:
            yield "training", f"{passes_text(found)}, batches of {found['batch_size']}, seed {found['seed']}"
        if found["reference"]:
            yield "teacher", found["reference"]
        if found["decides_by"] is not None:
            yield "decides by", f"its reference, {found['decides_by']}: no policy was better"
        if found["optimised"] is not None:
            yield "optimised", "strategy: {strategy}; {seconds:.0f} s".format(**found["optimised"])
        learner = found["learner"]
        if learner and "policy" in learner:
            yield "policy", f"of class {learner['policy']}"
        elif learner:
            rate = "default rate" if learner.get("rate") is None else f"rate {learner['rate']:g}"
            slack = "" if learner.get("slack") is None else f", slack {learner['slack']:g}"
            yield "learner", f"{learner['reduction']}, {learner['update']}, {rate}, {learner['margin']} margin{slack}"
        if found["learner_state"]:
            yield "state", "that of the learner, so that training can go on exactly"
        if found["confidence"]:
            yield "confidence", "fitted to {decisions:,} decisions on {source}".format(**found["confidence"])

    def feature_heading(self) -> str:
        """What the lists of features are of."""
        article = "an" if self.WHAT[0] in "aeiou" else "a"
        return f"features that speak most for {article} {self.WHAT}: what each adds to its predicted cost"

    def _show_features(self, console: Console) -> None:
        from lols.tasks.show import plain_table, write

        features: dict[str, Sides] = self.values["features_of"]
        write(console, f"\n{self.feature_heading()}")
        left = len(self.values.get("action_names", ())) - len(features)
        if left > 0:
            write(console, f"({left} actions are left out: --label names others, by action or relation)")
        for label, sides in features.items():
            table = plain_table(padding=(0, 2))
            for side in sides:
                table.add_column(justify="right", no_wrap=True)
                table.add_column(f"{side} {label}", overflow="fold")
            for k in range(max(map(len, sides.values()), default=0)):
                row = []
                for entries in sides.values():
                    entry = entries[k] if k < len(entries) else None
                    row += [f"{entry['weight']:+.3f}", entry["feature"]] if entry else ["", ""]
                table.add_row(*row)
            write(console)
            write(console, table, soft_wrap=False)
        unnamed = self.values.get("unnamed_templates")
        listed = (entry for sides in features.values() for entries in sides.values() for entry in entries)
        if unnamed is not None and any(entry["feature"].endswith("?") for entry in listed):
            write(console, "\n? is a feature whose value is not among the words of the file, such as one of a column")
            if unnamed:
                more = some_of(unnamed, MOST_TEMPLATES)
                write(console, f"or of a template with too many values: {more}")


def inspect_own(
    path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, np.ndarray], **options: Any
) -> Inspection:
    """What is in the model file of a search space or a program of the user's own."""
    for name in options:
        raise ConfigurationError(f"--{name} has no effect: {path} is a model of a space of your own")
    return Inspection(describe_file(path, header, tensors))


def passes_text(facts: Mapping[str, Any]) -> str:
    """How many passes there were, and the weights of which are kept.

    >>> passes_text({"passes": 30, "passes_done": 7, "best_pass": 5}), passes_text({"passes": 1})
    ('7 of 30 passes, the best on held-out data kept: pass 5', '1 pass')
    """
    planned, done, best = (facts.get(name) for name in ("passes", "passes_done", "best_pass"))
    if done is None and best is not None:  # older files do not say where patience ended
        return f"at most {planned} passes, the best on held-out data kept: pass {best}"
    text = f"{planned} pass{'' if planned == 1 else 'es'}"
    text = text if done in (None, planned) else f"{done} of {text}"
    return text if best is None else f"{text}, the best on held-out data kept: pass {best}"


def size_text(count: float) -> str:
    """A number of bytes for people.

    >>> size_text(900), size_text(2_716_824)
    ('900 bytes', '2.7 MB')
    """
    unit = 0
    while count >= 1000 and unit < len(UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.1f} {UNITS[unit]}" if unit else f"{count} bytes"


def column_text(values: Mapping[str, Any]) -> str:
    """The columns that templates can name, and where they are in files."""
    files = values["files"]
    places = {} if files is None else {"word": files["word"], **(files["use"] or {})}
    return ", ".join(f"{name} ({places[name]})" if name in places else name for name in values["columns"])
