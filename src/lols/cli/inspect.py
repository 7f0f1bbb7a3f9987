"""`lols inspect`: what is in a model file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from lols.cli.base import Json, app, print_json
from lols.cli.console import say
from lols.cli.inspect_classifier import classifier_facts, show_classifier

UNITS = ("bytes", "kB", "MB", "GB")
KINDS = {"tagger": "a tagger", "parser": "a parser", "classifier": "a classifier"}
WHAT = {"tagger": "label", "parser": "action", "classifier": "child"}
SEVERAL = {"tagger": "labels", "parser": "actions", "classifier": "children"}
UNITS_OF = {"tagger": "sentences", "parser": "sentences", "classifier": "rows"}
MOST_TEMPLATES = 24  # that are written out


@app.command()
def inspect(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="A model file.", show_default=False)],
    top: Annotated[int, typer.Option(help="How many features to show for each label or action; 0 for none.")] = 10,
    label: Annotated[
        list[str] | None,
        typer.Option(
            help="Show the features of this label only; may be repeated. Of a parser, an action such as 'Left nsubj', "
            "or a relation; of a classifier, the child of the node that leads to this class.",
            show_default=False,
        ),
    ] = None,
    part: Annotated[
        str | None,
        typer.Option(help="Of a pipeline: parser, or the column of a tagger; parser unless given.", show_default=False),
    ] = None,
    node: Annotated[
        int | None,
        typer.Option(
            help="Of a classifier: the features of this node of the tree; those of the root unless given.",
            show_default=False,
        ),
    ] = None,
    against: Annotated[
        bool, typer.Option("--against", help="Show also the features that speak against each label.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Say what a model file holds: what it was trained on and how, and which features speak for each label.

    A weight is a share in a predicted cost, and the cheapest label is taken: the most negative weights speak for a
    label. Features are kept as hashes; their names are found again from the words that the file holds. A parser has
    actions in place of labels; those that most was learned of are shown. A classifier decides at each node of a tree
    to which child to go; its features are columns' values.
    """
    from lols.tasks.parsing.inspect import inspect_any

    found = inspect_any(model, top=top, labels=label, against=against, part=part, node=node)
    if as_json:
        print_json(found)
        return
    _show_facts(found)
    if found["kind"] == "classifier":
        show_classifier(found)
    if "features_of" in found:
        _show_features(found)
    elif found["kind"] in KINDS and top:
        say.print(
            f"\nsecoc's weights are of sets of {SEVERAL[found['kind']]}: no feature speaks for one of them alone."
        )


def _show_facts(found: dict[str, Any]) -> None:
    own = "program" if found["kind"] == "program" else "search space"
    kind = KINDS.get(found["kind"], f"a model of a {own} of your own")
    if "parts" in found:
        kind = f"a pipeline of {', '.join(found['parts'])}; here its part {found['part']}, {kind}"
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
    if found["features"] is None:
        yield "size", f"{_size(found['bytes'])}: {found['weights']:,} numbers"
    else:
        yield "size", f"{_size(found['bytes'])}: {found['features']:,} features, {found['weights']:,} weights"
    if found["policies"] > 1:
        yield "policies", f"{found['policies']}, one drawn at each decision"
    if found["kind"] == "tagger":
        yield from _tagger_facts(found)
    elif found["kind"] == "parser":
        yield from _parser_facts(found)
    elif found["kind"] == "classifier":
        yield from classifier_facts(found)
    else:
        yield "space", f"{found['space']}: {found['actions']} actions"
    if found["examples"] is not None:
        units = UNITS_OF.get(found["kind"], "examples")
        tokens = f", {found['tokens']:,} tokens" if found["tokens"] is not None else ""
        yield "trained on", f"{found['examples']:,} {units}{tokens}"
    if found.get("fingerprint"):
        yield "fingerprint", f"{found['fingerprint']} (of the training data)"
    if found["passes"] is not None:
        best = f" (the best on the dev data: pass {found['best_pass']})" if found.get("best_pass") else ""
        yield "training", f"{found['passes']} passes{best}, batches of {found['batch_size']}, seed {found['seed']}"
    if found["reference"]:
        yield "teacher", found["reference"]
    if found["learner"] and "policy" in found["learner"]:
        yield "policy", f"of class {found['learner']['policy']}"
    elif found["learner"]:
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
    yield "columns", _columns(found) + (f"; labels in {files['label']}" if files is not None else "")
    yield "vocabulary", f"{found['vocabulary']:,} words"
    if found["clusters"] is not None:
        yield "clusters", f"of {found['clusters']:,} words"


def _parser_facts(found: dict[str, Any]) -> Iterator[tuple[str, str]]:
    how = {"joint": "an arc and its relation at once", "second": "the relation after the arc", "none": "arcs only"}
    yield "relations", f"{len(found['relations'])}: {' '.join(found['relations'])}"
    yield "actions", f"{found['actions']}: {how[found['labelling']]}; {found['roots']} root{_many(found)} of a sentence"
    yield "templates", f"{len(found['templates'])}: {_some(found['templates'])}"
    files = found["files"]
    places = f"; heads in {files['head']}, relations in {files['relation']}" if files is not None else ""
    yield "columns", _columns(found) + places
    yield "vocabulary", f"{found['vocabulary']:,} words"
    facts = found["treebank"]
    lifted = f", {facts['lifted']:,} words lifted" if facts.get("lifted") else ""
    mended = f"; {facts['mended']:,} had several roots" if facts.get("mended") else ""
    yield "treebank", f"{facts.get('nonprojective', 0):,} sentences not projective{lifted}{mended}"


def _many(found: dict[str, Any]) -> str:
    return "s" if found["roots"] == "many" else ""


def _some(templates: list[str]) -> str:
    """Templates, not too many of them."""
    more = f" and {len(templates) - MOST_TEMPLATES} more" if len(templates) > MOST_TEMPLATES else ""
    return ", ".join(templates[:MOST_TEMPLATES]) + more


def _columns(found: dict[str, Any]) -> str:
    """The columns of the input, and where they are in files."""
    files = found["files"]
    places = {} if files is None else {"word": files["word"], **(files["use"] or {})}
    return ", ".join(f"{name} ({places[name]})" if name in places else name for name in found["columns"])


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
    what = WHAT[found["kind"]]
    article = "an" if what == "action" else "a"
    where = f" of node {found['node']}" if what == "child" else ""
    compared = ", compared with the others" if what == "child" else ""
    say.print(f"\nfeatures that speak most for {article} {what}{where}: what each adds to its predicted cost{compared}")
    left = len(found.get("action_names", ())) - len(found["features_of"])
    if left > 0:
        say.print(f"({left} actions are left out: --label names others, by action or relation)")
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
    if what != "child" and any(
        entry["feature"].endswith("?") for sides in found["features_of"].values() for e in sides.values() for entry in e
    ):
        say.print("\n? is a feature whose value is not among the words of the file, such as one of another column")
        if found["unnamed_templates"]:
            say.print(f"or of a template with too many values: {escape(_some(found['unnamed_templates']))}")
