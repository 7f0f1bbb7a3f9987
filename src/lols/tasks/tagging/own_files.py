"""A tagger in pass mode, whose workers read their own files: see `lols.tasks.tokens.own_files`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from lols.contract.examples import Examples
from lols.engines import ExampleFiles
from lols.tasks.search import Judges
from lols.tasks.tagging.clusters import with_clusters
from lols.tasks.tagging.files import TaggedFile, read_files, settle, tagged
from lols.tasks.tagging.held_out import HeldOut
from lols.tasks.tagging.options import FileColumns
from lols.tasks.tagging.outside import outside_words
from lols.tasks.tagging.spans import detect_scheme, detect_scheme_columns
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.own_files import FileScan, different, never, scanned, total_of
from lols.tasks.verbs import Say
from lols.training.clock import Clock


class TaggedReader(NamedTuple):
    """Reads labelled files on a worker."""

    columns: FileColumns
    clusters: Any
    task: TaggingTask | None = None  # once it is known

    def read(self, paths: Sequence[str]) -> TaggedFile:
        """The files."""
        data = tagged(read_files(paths, self.columns)[0], self.columns)
        if data.corpus.tokens:
            data.check_labels()
        return replace(data, corpus=with_clusters(data.corpus, self.clusters))

    def scan(self, path: str) -> FileScan:
        """What is to be known of a file: its labels, the scheme that they are written in, and how many are O."""
        data = self.read([path])
        scheme = detect_scheme_columns(data.numbers, data.corpus.offsets, data.names) if data.corpus.tokens else None
        outside = outside_words(data.numbers, data.names)
        return FileScan.of(data.corpus, data.corpus.fingerprint(data.numbers), (data.names, scheme, outside))

    def examples(self, paths: Sequence[str]) -> Examples:
        """The examples of files."""
        data = self.read(paths)
        assert self.task is not None
        return self.task.examples(data.corpus, self.task.number(data.names)[data.numbers])


def fit_own_files(
    tagger: Any, paths: Sequence[str], columns: FileColumns, dev: str | None, say: Say, checkpoint: Any, resume: bool
) -> Any:
    """Train a tagger on files that its workers read."""
    clock = Clock()
    places = settle(paths[0], columns)
    reader = TaggedReader(places, tagger.clusters)
    scans = scanned(tagger, reader.scan, paths)
    whole, names = total_of(scans), different(scan.labels[0] for scan in scans)
    scheme = tagger.scheme
    if scheme == "auto":
        scheme, seen = detect_scheme(names), {scan.labels[1] for scan in scans} - {None}
        scheme = "iob1" if scheme == "bio" and seen == {"iob1"} else scheme
    outside = sum(scan.labels[2] for scan in scans) / max(whole.tokens, 1)
    held_files = tagged(read_files([dev], places)[0], places) if dev else None
    reading = clock.working()
    say(f"{whole.sentences:,} sentences, {whole.tokens:,} tokens, {len(names)} labels in {len(paths)} files")
    task = TaggingTask(sorted(names), **tagger._task_options(tuple(whole.strings), scheme, outside))
    held = None
    if held_files is not None:
        held_files.check_labels()
        held = HeldOut(task, *tagger._held_corpus(task, held_files.corpus, held_files.labels))
    data = ExampleFiles(list(paths), reader._replace(task=task).examples, whole.sentences, whole.tokens)
    judges = Judges(never, None if held is None else held.judged)
    tagger._train(task, lambda: data, held, judges, checkpoint=checkpoint, resume=resume)
    tagger.columns_ = places
    tagger._stream = tagger._model = None
    tagger.note_values(whole.strings, anew=True)
    tagger._tokens, tagger.fingerprint_ = whole.tokens, whole.fingerprint
    tagger.model_.about["tokens"] = whole.tokens
    facts = {"labels": len(task.labels), "scheme": task.scheme, "seconds_reading": reading}
    tagger.training_facts_ = {"tokens": whole.tokens, "sentences": whole.sentences} | facts
    return tagger
