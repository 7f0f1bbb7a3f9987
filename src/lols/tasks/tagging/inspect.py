"""What a model file is, as plain values: how it was made, what is in it, and what a tagger's features speak for."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lols.engine.table import features_by_row, is_fixed
from lols.errors import LolsError, ModelFileError
from lols.io.model_file import read_tensors
from lols.tasks.tagging.clusters import CLUSTER
from lols.tasks.tokens.corpus import WORD
from lols.tasks.tokens.feature_names import Names, find_names
from lols.training.algorithms import Algorithm

__all__ = ["describe_file", "inspect_file", "speaking_features", "stored_algorithm"]


def inspect_file(
    path: str | os.PathLike[str], *, top: int = 10, labels: Sequence[str] | None = None, against: bool = False
) -> dict[str, Any]:
    """All that `lols inspect` says of a model file; `top` 0 leaves out the features.

    >>> import tempfile; from lols import Tagger
    >>> path = tempfile.mkdtemp() + "/small.lols"
    >>> sentences = [["he", "was", "singing"], ["he", "was", "here"]]
    >>> tagger = Tagger(templates=["suffix3"], seed=4).fit(sentences, [["P", "V", "G"], ["P", "V", "A"]])
    >>> tagger.save(path)
    >>> found = inspect_file(path, top=1)
    >>> found["kind"], found["labels"], found["seed"], found["tokens"], found["vocabulary"]
    ('tagger', ['A', 'G', 'P', 'V'], 4, 6, 4)
    >>> found["features_of"]["G"]["for"][0]["feature"]
    'suffix3 = ing'
    """
    if top < 0:
        raise LolsError(f"--top is {top}: give 0 or more")
    return inspect_contents(path, *read_tensors(path, "model"), top=top, labels=labels, against=against)


def inspect_contents(
    path: str | os.PathLike[str],
    header: Mapping[str, Any],
    tensors: Mapping[str, np.ndarray],
    *,
    top: int,
    labels: Sequence[str] | None,
    against: bool,
) -> dict[str, Any]:
    """The same of a header and arrays that were read already."""
    try:
        made = describe_file(path, header, tensors)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"{path}: the header is damaged ({type(error).__name__}: {error})") from error
    if made["kind"] != "tagger":
        if labels:
            raise LolsError(f"{path}: a model of a space of your own has no labels: leave out --label")
        return made
    from lols.tasks.tagging.estimator import Tagger

    tagger = Tagger.from_file(path, header, tensors)
    _check_labels(labels or (), tagger.task_.inner_labels)
    if top and not tagger.model_.policy.thresholds:
        chosen = list(labels or tagger.task_.inner_labels)
        made["features_of"], names = speaking_features(tagger, chosen, top, against=against)
        made["unnamed_templates"] = names.unnamed
    return made


def _sizes(header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """How much the policy holds; one of the user's own has arrays, of whatever they may be."""
    if header.get("policy") is not None:
        numbers = sum(array.size for name, array in tensors.items() if name.startswith("policy."))
        return {"features": None, "weights": int(numbers), "policies": 1}
    return {
        "features": int(tensors["shared.features"].size + tensors["single.features"].size),
        "weights": int(tensors["shared.values"].size + tensors["single.values"].size),
        "policies": int(tensors["chances"].size),
    }


def describe_file(
    path: str | os.PathLike[str], header: Mapping[str, Any], tensors: Mapping[str, np.ndarray]
) -> dict[str, Any]:
    """What is written in a file, without its weights."""
    about, task = header["about"], header["task"] or {}
    algorithm = stored_algorithm(about)
    made = {
        "file": os.fspath(path),
        "kind": task.get("name", "model"),
        "version": header["version"],
        "bytes": os.path.getsize(path),
        "space": header["space"]["name"],
        "actions": header["space"]["actions"],
        **_sizes(header, tensors),
        "algorithm": about.get("algorithm"),
        "algorithm_in_words": algorithm.explain() if algorithm is not None else None,
        "learner": about.get("learner"),
        **{
            name: about.get(name)
            for name in ("reference", "passes", "batch_size", "seed", "examples", "tokens", "best_pass")
        },
    }
    if made["kind"] == "tagger":
        for name in ("labels", "scheme", "inner_scheme", "direction", "loss", "templates", "columns"):
            made[name] = task[name]
        made |= {name: task[name] for name in ("files", "fingerprint", "temperature")}
        made["vocabulary"] = int(tensors["task.vocabulary_end"].size)
        made["clusters"] = int(tensors["task.clusters_end"].size) if "task.clusters_end" in tensors else None
    return made


def stored_algorithm(about: Mapping[str, Any]) -> Algorithm | None:
    """The algorithm that a model was trained with, from the plain values in its file; None if it is none of ours.

    >>> from lols import algorithm; from lols.training.run import plain
    >>> made = algorithm("lols", beta="linear:1:0")
    >>> stored_algorithm({"algorithm": plain(made)}) == made
    True
    """
    stored = about.get("algorithm")
    try:
        return Algorithm(**stored) if isinstance(stored, dict) else None
    except (TypeError, ValueError, LolsError):
        return None


def speaking_features(
    tagger: Any, labels: Sequence[str], top: int, *, against: bool = False
) -> tuple[dict[str, dict[str, list[dict[str, Any]]]], Names]:
    """The strongest features of each label: those that lower its predicted cost most, and those that raise it most."""
    policy = tagger.model_.policy
    if is_fixed(policy.shared):
        return {}, Names({}, [])  # features share rows there
    ids = features_by_row(policy.shared, policy.stack.shape[1])
    shares = np.diff(policy.chances, prepend=0.0).astype(np.float32)
    picked: dict[str, dict[str, list[tuple[int, float]]]] = {}
    for label in labels:
        weights = shares @ policy.stack[:, :, tagger.task_.inner_labels.index(label)]
        picked[label] = {"for": strongest(ids, weights, top)}
        if against:
            picked[label]["against"] = [(i, -w) for i, w in strongest(ids, -weights, top)]
    wanted = {i for sides in picked.values() for pairs in sides.values() for i, _ in pairs}
    names = find_names(tagger.task_, known_strings(tagger), np.array(sorted(wanted), np.int64))
    made = {
        label: {
            side: [{"feature": names.of(i), "weight": w, "id": str(i)} for i, w in pairs]
            for side, pairs in sides.items()
        }
        for label, sides in picked.items()
    }
    return made, names


def known_strings(tagger: Any) -> dict[str, list[str]]:
    """The strings that a tagger's columns are known to hold; none for a column that had too many to be kept."""
    made: dict[str, list[str]] = {name: [] for name in tagger.task_.columns}
    made |= {name: list(values) for name, values in tagger.column_values_.items()}
    made[WORD] = tagger.vocabulary_
    if tagger.clusters is not None:
        made[CLUSTER] = list(dict.fromkeys([*tagger.clusters.values(), ""]))
    return made


def strongest(ids: np.ndarray, weights: np.ndarray, top: int) -> list[tuple[int, float]]:
    """The most negative weights and their features, the strongest first; the lower id where they are equal."""
    below = np.flatnonzero(weights < 0)
    if below.size > top:
        least = np.partition(weights[below], top - 1)[top - 1]
        below = below[weights[below] <= least]
    order = np.lexsort((ids[below], weights[below]))[:top]
    return [(int(ids[k]), float(weights[k])) for k in below[order]]


def _check_labels(labels: Sequence[str], known: Sequence[str]) -> None:
    for label in labels:
        if label not in known:
            raise LolsError(f"there is no label '{label}' in this model: choose from {', '.join(known)}")
