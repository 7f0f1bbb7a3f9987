"""`lols inspect`: what is in a model file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lols.cli.base import Json, app, print_json, say

UNITS = ("bytes", "kB", "MB", "GB")


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)],
    top: Annotated[int, typer.Option(help="How many features to show for each label; 0 for none.")] = 10,
    label: Annotated[
        list[str] | None,
        typer.Option(help="Show the features of this label only; may be repeated.", show_default=False),
    ] = None,
    against: Annotated[
        bool, typer.Option("--against", help="Show also the features that speak against each label.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what a model file holds: what it was trained on and how, and which features speak for each label.

    A weight is a share in a predicted cost, and the cheapest label is taken: the most negative weights speak for a
    label. Features are kept as hashes; their names are found again from the words that the file holds.
    """
    from lols.estimators.tagger_inspect import inspect_file

    found = inspect_file(model, top=top, labels=label, against=against)
    if as_json:
        print_json(found)
        return
    _show_facts(found)
    if "features_of" in found:
        _show_features(found)
    elif found["kind"] == "tagger" and top:
        say.print("\nsecoc's weights are of sets of labels: no feature speaks for one of them alone.")


def _show_facts(found: dict[str, Any]) -> None:
    kind = "a tagger" if found["kind"] == "tagger" else "a model of a search space of your own"
    say.print(f"{escape(found['file'])}: {kind}")
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, value in _facts(found):
        table.add_row(f"  {name}", escape(value))
    say.print(table, soft_wrap=False)
    if found["algorithm_in_words"]:
        say.print("\nalgorithm: " + escape(found["algorithm_in_words"]))


def _facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "written by", f"lols {found['version']}"
    yield "size", f"{_size(found['bytes'])}: {found['features']:,} features, {found['weights']:,} weights"
    if found["policies"] > 1:
        yield "policies", f"{found['policies']}, one drawn at each decision"
    if found["kind"] == "tagger":
        yield from _tagger_facts(found)
    else:
        yield "space", f"{found['space']}: {found['actions']} actions"
    if found["examples"] is not None:
        units = "sentences" if found["kind"] == "tagger" else "examples"
        tokens = f", {found['tokens']:,} tokens" if found["tokens"] is not None else ""
        yield "trained on", f"{found['examples']:,} {units}{tokens}"
    if found.get("fingerprint"):
        yield "fingerprint", f"{found['fingerprint']} (of the training data)"
    if found["passes"] is not None:
        best = f" (the best on the dev data: pass {found['best_pass']})" if found.get("best_pass") else ""
        yield "training", f"{found['passes']} passes{best}, batches of {found['batch_size']}, seed {found['seed']}"
    if found["reference"]:
        yield "teacher", found["reference"]
    if found["learner"]:
        learner = found["learner"]
        rate = "default rate" if learner.get("rate") is None else f"rate {learner['rate']:g}"
        slack = "" if learner.get("slack") is None else f", slack {learner['slack']:g}"
        yield "learner", f"{learner['reduction']}, {learner['update']}, {rate}, {learner['margin']} margin{slack}"


def _tagger_facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "labels", f"{len(found['labels'])}: {' '.join(found['labels'])}"
    scheme, inner = found["scheme"], found["inner_scheme"]
    yield "scheme", "none: plain tags" if scheme is None else scheme + (f", inside {inner}" if inner != scheme else "")
    if found["direction"] == "backward":
        yield "direction", "backward: the last word first, so [-1] is the place to the right of a word"
    yield "loss", found["loss"]
    yield "templates", ", ".join(found["templates"])
    files = found["files"]
    if files is None:
        yield "columns", ", ".join(found["columns"])
    else:
        places = {"word": files["word"], **(files["use"] or {})}
        columns = ", ".join(f"{name} ({places[name]})" if name in places else name for name in found["columns"])
        yield "columns", f"{columns}; labels in {files['label']}"
    yield "vocabulary", f"{found['vocabulary']:,} words"
    if found["clusters"] is not None:
        yield "clusters", f"of {found['clusters']:,} words"


def _size(count: float) -> str:
    """A number of bytes for people.

    >>> _size(900), _size(2_716_824)
    ('900 bytes', '2.7 MB')
    """
    unit = 0
    while count >= 1000 and unit < len(UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:.1f} {UNITS[unit]}" if unit else f"{count} bytes"


def _show_features(found: dict[str, Any]) -> None:
    say.print("\nfeatures that speak most for a label: what each adds to its predicted cost")
    for label, sides in found["features_of"].items():
        table = Table(box=None, pad_edge=False, padding=(0, 2))
        for side in sides:
            table.add_column(justify="right", no_wrap=True)
            table.add_column(f"{side} {escape(label)}", overflow="fold")
        for k in range(max(map(len, sides.values()), default=0)):
            row = []
            for entries in sides.values():
                entry = entries[k] if k < len(entries) else None
                row += [f"{entry['weight']:+.3f}", escape(entry["feature"])] if entry else ["", ""]
            table.add_row(*row)
        say.print()
        say.print(table, soft_wrap=False)
    if any(
        entry["feature"].endswith("?") for sides in found["features_of"].values() for e in sides.values() for entry in e
    ):
        say.print("\n? is a feature whose value is not among the words of the file, such as one of another column")
        if found["unnamed_templates"]:
            say.print(f"or of a template with too many values: {escape(', '.join(found['unnamed_templates']))}")
