"""A parser in pass mode, whose workers read their own treebanks: see `lols.tasks.tokens.own_files`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Examples
from lols.engines import ExampleFiles
from lols.errors import LolsError
from lols.tasks.estimator import Judges
from lols.tasks.format import never, scanned
from lols.tasks.parsing.files import USUAL, Treebank, read_treebank, treebank
from lols.tasks.parsing.input import punctuation
from lols.tasks.parsing.options import ParserColumns
from lols.tasks.parsing.projective import lift
from lols.tasks.parsing.task import ParsingTask
from lols.tasks.parsing.treebank import ARROW, OFTEN, ROOT, SELDOM, Prepared, Trees, taught, with_roots
from lols.tasks.parsing.trees import check_trees
from lols.tasks.tokens.own_files import FileScan, total_of
from lols.tasks.verbs import Say
from lols.training.clock import Clock

RIGHT, LEFT, TOP = "right", "left", "top"


class Counted(NamedTuple):
    """How often words of a file have a relation, by where their head is and how they were lifted."""

    words: Counter[tuple[str, str, str]]  # relation, that of the head it was lifted from, side
    several: int  # sentences with several roots
    nonprojective: int
    mended: int


def counted(data: Treebank, roots: str) -> Counted:
    """The counts of a treebank in which sentences may have one root, or many."""
    offsets = data.corpus.offsets
    several = int((check_trees(data.heads, offsets).roots > 1).sum())
    heads, numbers, names, mended = with_roots(roots, *data.trees, offsets)
    lifted = lift(heads, numbers, offsets)
    moved = np.flatnonzero(lifted.origin >= 0)
    own = np.arange(heads.size) - np.repeat(offsets[:-1], np.diff(offsets))
    side = np.where(lifted.heads < 0, 0, np.where(lifted.heads < own, 1, 2))
    origin = np.where(lifted.origin >= 0, lifted.origin, len(names))
    keys = (numbers * (len(names) + 1) + origin) * 3 + side
    words: Counter[tuple[str, str, str]] = Counter()
    for key, often in zip(*np.unique(keys, return_counts=True), strict=True):
        relation, rest = divmod(int(key), 3 * (len(names) + 1))
        words[names[relation], [*names, ""][rest // 3], (TOP, RIGHT, LEFT)[rest % 3]] += int(often)
    crossed = np.unique(np.searchsorted(offsets, moved, side="right"))
    return Counted(words, several, crossed.size, mended.size)


def agreed(counts: Sequence[Counted], tokens: int, roots: str) -> Prepared:
    """What `prepare` would say of all files together, but for the trees."""
    words: Counter[tuple[str, str, str]] = Counter()
    for each in counts:
        words.update(each.words)
    ways: Counter[str] = Counter()
    tops: Counter[str] = Counter()
    for (relation, origin, side), often in words.items():
        ways[f"{relation}{ARROW}{origin}"] += often if origin else 0
        tops[relation] += often if side == TOP else 0
    root = max(tops, key=lambda name: tops[name]) if +tops else ROOT
    used: set[str] = {root}
    sides: dict[str, set[str]] = {RIGHT: set(), LEFT: set(), TOP: set()}
    rare = 0
    for (relation, origin, side), often in words.items():
        way = f"{relation}{ARROW}{origin}"
        kept = origin and ways[way] > tokens // SELDOM
        rare += often if origin and not kept else 0
        sides[side].add(way if kept else relation)
    names = sorted(used.union(*sides.values()))
    place = {name: k for k, name in enumerate(names)}
    right, left = (sorted(place[name] for name in sides[side]) for side in (RIGHT, LEFT))
    return Prepared(
        Trees(np.zeros(0, np.int64), np.zeros(0, np.int64)),
        names,
        place[root],
        right or left or [place[root]],
        left,
        roots,
        sum(each.nonprojective for each in counts),
        sum(ways.values()),
        rare,
        np.zeros(0, np.int64),
    )


class TreebankReader(NamedTuple):
    """Reads treebanks on a worker."""

    columns: ParserColumns
    roots: str
    punctuation: bool
    task: ParsingTask | None = None  # once it is known

    def read(self, paths: Sequence[str]) -> Treebank:
        """The files."""
        return treebank(read_treebank(paths, self.columns), self.columns)

    def scan(self, path: str) -> FileScan:
        """What is to be known of a file: its columns, and its relations, as they would be with one root and many."""
        data = self.read([path])
        found = {roots: counted(data, roots) for roots in ("one", "many") if self.roots in ("auto", roots)}
        fingerprint = data.corpus.fingerprint(data.heads, data.numbers)
        return FileScan.of(data.corpus, fingerprint, (dict(data.columns.use or {}), found))

    def examples(self, paths: Sequence[str]) -> Examples:
        """The examples of files."""
        data, task = self.read(paths), self.task
        assert task is not None
        trees = taught(task, *data.trees, data.corpus.offsets).trees
        weights = None if self.punctuation else (~punctuation(data.corpus)).astype(np.float64)
        return task.examples(data.corpus, trees, weights)


def fit_own_files(
    parser: Any, paths: Sequence[str], columns: ParserColumns, dev: str | None, say: Say, checkpoint: Any, resume: bool
) -> Any:
    """Train a parser on treebanks that its workers read."""
    clock = Clock()
    reader = TreebankReader(columns, parser.roots, parser.punctuation)
    scans = scanned(parser, reader.scan, paths)
    if columns.use is None:
        filled = {name for scan in scans for name in scan.labels[0]}
        columns = replace(columns, use={name: name for name in USUAL if name in filled})
    whole = total_of(scans)
    roots = parser.roots
    if roots == "auto":
        several = sum(next(iter(scan.labels[1].values())).several for scan in scans)
        roots = "many" if several > OFTEN * whole.sentences else "one"
    counts = [scan.labels[1][roots] for scan in scans]
    prepared = agreed(counts, whole.tokens, roots)
    held = treebank(read_treebank([dev], columns), columns) if dev else None
    reading = clock.working()
    say(f"{whole.sentences:,} sentences, {whole.tokens:,} tokens in {len(paths)} files")
    names = ("word", *(columns.use or {}))
    task = parser._task(SimpleNamespace(columns=dict.fromkeys(names)), prepared)
    made = reader._replace(columns=columns, task=task)
    data = ExampleFiles(list(paths), made.examples, whole.sentences, 2 * whole.tokens)
    dev_data = None if held is None else (held.corpus, *held.trees)
    if held is not None and not held.corpus.tokens:
        raise LolsError("there are no dev sentences to choose on: give some, or no dev data")
    score = None if held is None else parser.scorer(task, dev_data)
    judges = Judges(never, None if held is None else partial(parser.judged_by, task, dev_data))
    parser._train(task, lambda: data, score, judges, checkpoint=checkpoint, resume=resume)
    parser.columns_, parser._stream, parser._model = columns, None, None
    parser.prepared_ = {name: int(getattr(prepared, name)) for name in ("nonprojective", "lifted", "rare")}
    parser.prepared_ |= {"mended": sum(each.mended for each in counts)}
    parser.mended_ = np.zeros(0, np.int64)
    parser.note_values({name: whole.strings.get(name, []) for name in names}, anew=True)
    parser.fingerprint_ = whole.fingerprint
    parser.model_.about |= {"tokens": whole.tokens, "treebank": parser.prepared_}
    sizes = {"relations": len(task.plain), "actions": len(task.actions), "seconds_reading": reading}
    parser.training_facts_ = {"tokens": whole.tokens, "sentences": whole.sentences} | sizes | parser.prepared_
    return parser
