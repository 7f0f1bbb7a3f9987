"""Public data sets: found, checked, fetched into a cache, and what is said where that fails; made data."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from lols.datasets import intrusion
from lols.errors import ConfigurationError, LolsError
from lols.io.costs import read_cost_matrix, read_label_map
from lols.reproduction import data
from lols.reproduction.data import SOURCES, Source, cache_folder, download, find, public
from lols.reproduction.plan import TABLES

CONTENT = b"one,normal.\ntwo,smurf.\n"


@pytest.fixture
def known(tmp_path, monkeypatch):
    """A data set that lives in a folder, and an empty cache."""
    monkeypatch.setenv("LOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "home").mkdir()
    origin = tmp_path / "home" / "small"
    origin.write_bytes(CONTENT)
    source = Source(
        "small.csv.gz", "a small set", "none", "https://example.org/", hashlib.sha256(CONTENT).hexdigest(),
        origin.as_uri(),
    )  # fmt: skip
    monkeypatch.setitem(data.SOURCES, source.file, source)
    return source


def test_a_file_is_found_packed_or_not(known, tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    (folder / "small.csv").write_bytes(CONTENT)
    assert find("small.csv.gz", folder) == folder / "small.csv"
    (folder / "small.csv.gz").write_bytes(gzip.compress(CONTENT, 1))
    assert find("small.csv.gz", folder) == folder / "small.csv.gz"


def test_another_content_is_refused(known, tmp_path):
    (tmp_path / "small.csv").write_bytes(CONTENT + b"three,back.\n")
    with pytest.raises(LolsError, match=r"small\.csv: is not a small set: the SHA-256 .* https://example\.org/"):
        find("small.csv.gz", tmp_path)
    (tmp_path / "small.csv").unlink()
    (tmp_path / "small.csv.gz").write_bytes(gzip.compress(CONTENT)[:-9])
    with pytest.raises(LolsError, match="cannot be read"):
        find("small.csv.gz", tmp_path)


def test_what_is_missing_is_named_with_its_home(known, tmp_path):
    with pytest.raises(LolsError, match=r"small\.csv\.gz: is not there .*--download.*https://example\.org/"):
        find("small.csv.gz", tmp_path)
    with pytest.raises(LolsError, match=r"wsj-train\.conll\.gz: is not there .*nltk.*prepare_corpora\.py nltk"):
        find("wsj-train.conll.gz", tmp_path)


def test_a_download_is_checked_and_kept(known, tmp_path):
    path = find("small.csv.gz", tmp_path / "data", fetch=True)
    assert path == tmp_path / "cache" / "small.csv.gz"
    assert gzip.decompress(path.read_bytes()) == CONTENT
    (tmp_path / "home" / "small").unlink()
    assert find("small.csv.gz", None) == path  # from the cache
    assert os.listdir(tmp_path / "cache") == ["small.csv.gz"]


def test_a_packed_download_stays_as_it_is(known, tmp_path):
    packed = gzip.compress(CONTENT, 3)
    (tmp_path / "home" / "small").write_bytes(packed)
    assert download(known).read_bytes() == packed


def test_a_download_that_fails_leaves_nothing(known, tmp_path):
    (tmp_path / "home" / "small").write_bytes(b"something else")
    with pytest.raises(LolsError, match="is not a small set"):
        download(known)
    (tmp_path / "home" / "small").unlink()
    with pytest.raises(LolsError, match=r"cannot be fetched .*without a network, put this file at .*small\.csv\.gz"):
        download(known)
    with pytest.raises(LolsError, match="cannot be downloaded as it is; make it from"):
        download(SOURCES["craft-test.conllu.gz"])
    assert os.listdir(tmp_path / "cache") == []


def test_a_cache_that_cannot_be_written(known, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LOLS_CACHE", str(tmp_path / "file"))
    with pytest.raises(LolsError, match="let LOLS_CACHE name another"):
        download(known)


def test_where_the_cache_is(monkeypatch):
    monkeypatch.delenv("LOLS_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    monkeypatch.setattr(data.sys, "platform", "linux")
    assert cache_folder() == Path("/somewhere/lols")
    monkeypatch.setattr(data.sys, "platform", "darwin")
    assert cache_folder().parts[-3:] == ("Library", "Caches", "lols")


def test_every_file_of_a_table_has_a_source():
    assert {file for spec in TABLES.values() for file in spec.files} <= set(SOURCES)
    assert all(source.home.startswith("http") for source in SOURCES.values())
    assert all(len(source.sha256) == 64 or source.file.startswith("ptb-") for source in SOURCES.values())
    assert all(source.address or source.made for source in SOURCES.values())


def test_a_corpus_of_ones_own_is_run_if_it_is_there(known, tmp_path, monkeypatch):
    for spec in TABLES.values():
        if not spec.name.endswith("-ptb"):
            for file in spec.files:
                monkeypatch.setitem(data.SOURCES, file, SOURCES[file]._replace(sha256=known.sha256))
                (tmp_path / file.removesuffix(".gz")).write_bytes(CONTENT)
    assert [place.spec.name for place in public(["table4"], tmp_path)] == ["table4", "table4-ewt"]
    for file in TABLES["table4-ptb"].files:
        (tmp_path / file).write_bytes(gzip.compress(b"any content"))
    assert [place.spec.name for place in public(["table4"], tmp_path)] == ["table4", "table4-ewt", "table4-ptb"]


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA is not set")
def test_the_real_files_have_the_checksums():
    for name in ("wsj-train.conll.gz", "wsj-test.conll.gz", "ewt-test.conllu.gz"):
        assert find(name, os.environ["LOLS_DATA"]).name == name


# --- made connections ---


def test_connections_are_repeatable_and_uneven():
    made = intrusion.generate(4000, seed=3)
    assert made == intrusion.generate(4000, seed=3)
    assert made != intrusion.generate(4000, seed=4)
    classes = read_label_map("kdd99")
    counts = Counter(classes[name] for name in made.names)
    order = ["dos", "normal", "probe", "r2l", "u2r"]
    assert [name for name, _ in counts.most_common()] == order
    assert counts["u2r"] < 20 < 2500 < counts["dos"]
    later = Counter(classes[name] for name in intrusion.generate(4000, seed=3, test=True).names)
    assert later["r2l"] > 5 * counts["r2l"]
    assert set(intrusion.generate(4000, seed=3, test=True).names) - set(made.names) >= {"snmpgetattack", "mailbomb"}


def test_connections_as_a_file(tmp_path):
    made = intrusion.generate(20, seed=1)
    intrusion.write_csv(tmp_path / "a.csv", made)
    lines = (tmp_path / "a.csv").read_text().splitlines()
    assert lines[0].split(",") == [*intrusion.COLUMNS, "attack"]
    assert [line.split(",")[-1] for line in lines[1:]] == made.names
    with pytest.raises(LolsError, match="cannot be written"):
        intrusion.write_csv(tmp_path / "none" / "a.csv", made)
    with pytest.raises(ConfigurationError, match="at least 0"):
        intrusion.generate(-1)
    assert intrusion.generate(0).names == []


def test_saying_always_the_same_costs_more_than_the_contests_figures():
    classes, costs = read_cost_matrix("kdd99")
    number = {name: k for k, name in enumerate(classes)}
    true = [number[read_label_map("kdd99")[name]] for name in intrusion.generate(3000, 0, test=True).names]
    assert min(np.mean(costs[true, k]) for k in range(5)) > 0.45
