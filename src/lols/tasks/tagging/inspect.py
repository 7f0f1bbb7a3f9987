"""What a tagger's model file is, as plain values, and which features speak for each label."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lols.engine.table import features_by_row, is_fixed
from lols.errors import LolsError
from lols.tasks.inspect import Inspection, Sides, column_text, describe_file, speaking
from lols.tasks.tagging.clusters import CLUSTER
from lols.tasks.tagging.options import VERBS, TaggerInspectOptions
from lols.tasks.tokens.corpus import WORD
from lols.tasks.tokens.feature_names import Names, find_names

__all__ = ["TaggerInspection", "inspect_tagger", "speaking_features"]

OWN = ("labels", "scheme", "inner_scheme", "direction", "loss", "templates", "columns", "files", "fingerprint")


def inspect_tagger(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    tagger: Any,
    asked: TaggerInspectOptions,
) -> TaggerInspection:
    """What is in the file of a tagger."""
    values = describe_file(path, header, tensors, (*OWN, "temperature"))
    values["vocabulary"] = len(tagger.vocabulary_)
    values["clusters"] = None if tagger.clusters is None else len(tagger.clusters)
    known = tagger.task_.inner_labels
    for label in asked.label or ():
        if label not in known:
            raise LolsError(f"there is no label '{label}' in this model: choose from {', '.join(known)}")
    if asked.top and not tagger.model_.policy.thresholds:
        found, names = speaking_features(tagger, list(asked.label or known), asked.top, against=asked.against)
        values |= {"features_of": found, "unnamed_templates": names.unnamed}
    return TaggerInspection(values, VERBS, asked.top)


def speaking_features(
    tagger: Any, labels: Sequence[str], top: int, *, against: bool = False
) -> tuple[dict[str, Sides], Names]:
    """The strongest features of each label, and the names of features."""
    policy = tagger.model_.policy
    names = Names({}, [])
    if is_fixed(policy.shared):
        return {}, names  # features share rows there
    ids = features_by_row(policy.shared, policy.stack.shape[1])
    shares = np.diff(policy.chances, prepend=0.0).astype(np.float32)
    weights = {label: shares @ policy.stack[:, :, tagger.task_.inner_labels.index(label)] for label in labels}

    def find(wanted: np.ndarray) -> Any:
        nonlocal names
        names = find_names(tagger.task_, known_strings(tagger), wanted)
        return names.of

    return speaking(ids, weights, top, against, find), names


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
