"""What a tagger's model file is, as plain values, and which features speak for each label."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from lols.errors import LolsError
from lols.tasks.inspect import Inspection, Sides, column_text, speaking_columns
from lols.tasks.tagging.clusters import CLUSTER
from lols.tasks.tagging.options import VERBS, TaggerInspectOptions
from lols.tasks.tokens.corpus import WORD
from lols.tasks.tokens.feature_names import find_names


def inspect_tagger(tagger: Any, values: dict[str, Any], asked: TaggerInspectOptions) -> TaggerInspection:
    """What is in the file of a tagger."""
    values["vocabulary"] = len(tagger.vocabulary_)
    values["clusters"] = None if tagger.clusters is None else len(tagger.clusters)
    known = tagger.task_.inner_labels
    for label in asked.label or ():
        if label not in known:
            raise LolsError(f"there is no label '{label}' in this model: choose from {', '.join(known)}")
    if asked.top and not tagger.model_.policy.thresholds:
        found, unnamed = speaking_features(tagger, list(asked.label or known), asked.top, against=asked.against)
        values |= {"features_of": found, "unnamed_templates": unnamed}
    return TaggerInspection(values, VERBS, asked.top)


def speaking_features(
    tagger: Any, labels: Sequence[str], top: int, *, against: bool = False
) -> tuple[dict[str, Sides], list[str]]:
    """The strongest features of each label, and the templates whose features cannot be named."""
    columns = {label: tagger.task_.inner_labels.index(label) for label in labels}
    strings = known_strings(tagger)
    policy = tagger.model_.policy
    return speaking_columns(policy, columns, top, against, lambda wanted: find_names(tagger.task_, strings, wanted))


def known_strings(tagger: Any) -> dict[str, list[str]]:
    """The strings that a tagger's columns are known to hold; none for a column that had too many to be kept."""
    strings: dict[str, list[str]] = {name: [] for name in tagger.task_.columns}
    strings |= {name: list(values) for name, values in tagger.column_values_.items()}
    strings[WORD] = tagger.vocabulary_
    if tagger.clusters is not None:
        strings[CLUSTER] = list(dict.fromkeys([*tagger.clusters.values(), ""]))
    return strings


class TaggerInspection(Inspection):
    """What is in a tagger's file."""

    WHAT, SEVERAL = "label", "labels"

    def facts(self) -> Iterator[tuple[str, str]]:
        """Labels, spans, templates and vocabulary."""
        found = self.values
        yield "labels", f"{len(found['labels'])}: {' '.join(found['labels'])}"
        scheme, inner = found["scheme"], found["inner_scheme"]
        inside = f", inside {inner}" if inner != scheme else ""
        yield "scheme", "none: plain tags" if scheme is None else f"{scheme}{inside}"
        if found["direction"] == "backward":
            yield "direction", "backward: the last word first, so [-1] is the place to the right of a word"
        yield "loss", found["loss"]
        yield "templates", ", ".join(found["templates"])
        labels = f"; labels in {found['files']['label']}" if found["files"] is not None else ""
        yield "columns", column_text(found) + labels
        yield "vocabulary", f"{found['vocabulary']:,} words"
        if found["clusters"] is not None:
            yield "clusters", f"of {found['clusters']:,} words"
