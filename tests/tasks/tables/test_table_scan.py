"""A first look at columns: what they hold and how it is spread, in one piece or in many, against a slow count."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.tasks.tables import scan as table_scan
from lols.tasks.tables.cells import Cells, NoNumber
from lols.tasks.tables.meanings import MISSING, numbers_of
from lols.tasks.tables.scan import CATEGORIES, FEW, POINTS, ColumnScan, quantiles


def untyped(texts: Sequence[str]) -> Cells:
    """Cells as they come from CSV: each text once, in the order in which they come."""
    known: dict[str, int] = {}
    codes = np.array([known.setdefault(text, len(known)) for text in texts], np.int32)
    return Cells(codes=codes, texts=list(known), typed=False)


def typed(texts: Sequence[str | None]) -> Cells:
    known = sorted({text for text in texts if text is not None}) + ["never there"]
    return Cells(codes=np.array([-1 if t is None else known.index(t) for t in texts], np.int32), texts=known)


def cut(values: Sequence[Any], at: Sequence[int]) -> list[Sequence[Any]]:
    bounds = [0, *sorted(min(k, len(values)) for k in at), len(values)]
    return [values[low:high] for low, high in pairwise(bounds) if high > low]


def scanned(pieces: Sequence[Cells], kind: str | None = None, **options: Any) -> ColumnScan:
    scan = ColumnScan("c", kind, **options)
    for piece in pieces:
        scan.look(piece)
    scan.finish()
    return scan


def facts(scan: ColumnScan) -> tuple[Any, ...]:
    return (scan.kind, scan.texts, scan.values.tolist(), scan.weights.tolist(), scan.empty, scan.dropped)


CUTS = st.lists(st.integers(0, 30), max_size=4)
CSV = st.lists(st.sampled_from(["1", "1.0", "2", "-3.5", "inf", "", "NA", "?", "a", "b"]), min_size=1, max_size=30)
ONLY_NUMBERS = st.lists(st.sampled_from(["1", "1.0", "2", "-3.5", "inf", "", "NA"]), min_size=1, max_size=30)


@given(st.one_of(CSV, ONLY_NUMBERS), CUTS, st.sampled_from([MISSING, ("",), ("", "a", "b")]))
def test_texts_are_numbers_if_all_of_them_are(texts: list[str], cuts: list[int], missing: tuple[str, ...]) -> None:
    scan = scanned([untyped(part) for part in cut(texts, cuts)], missing=missing)
    assert facts(scan) == facts(scanned([untyped(texts)], missing=missing))
    counts = Counter(text for text in texts if text not in missing)
    assert scan.dropped == 0
    if numbers_of(list(counts), missing)[1] >= 0:
        assert scan.kind == "category" and scan.texts == counts
        assert scan.categories() == sorted(counts, key=lambda text: (-counts[text], text))
        assert scan.empty == len(texts) - sum(counts.values())
        return
    by_value = Counter(v for v in (float(t) for t in texts if t not in missing) if not math.isnan(v))
    assert scan.kind == "number" and scan.values.tolist() == sorted(by_value)
    assert scan.weights.tolist() == [by_value[value] for value in sorted(by_value)]
    assert scan.empty == len(texts) - sum(by_value.values())


@given(st.lists(st.one_of(st.just(math.nan), st.integers(-3, 3).map(float)), min_size=1, max_size=30), CUTS)
def test_numbers_are_counted(values: list[float], cuts: list[int]) -> None:
    scan = scanned([Cells(numbers=np.array(part)) for part in cut(values, cuts)])
    known = Counter(v for v in values if v == v)
    assert (scan.kind, scan.values.tolist()) == ("number", sorted(known))
    assert scan.weights.tolist() == [known[v] for v in sorted(known)]
    assert scan.empty == len(values) - known.total()
    as_categories = scanned([Cells(numbers=np.array(part)) for part in cut(values, cuts)], "category")
    assert as_categories.texts == {str(int(v)): n for v, n in known.items()}
    assert (as_categories.kind, as_categories.empty) == ("category", scan.empty)


@given(st.lists(st.one_of(st.none(), st.sampled_from(["1", "2", "NA"])), min_size=1, max_size=30), CUTS)
def test_texts_of_a_type_of_texts_are_categories(texts: list[str | None], cuts: list[int]) -> None:
    scan = scanned([typed(part) for part in cut(texts, cuts)])
    known = Counter(t for t in texts if t is not None and t != "NA")
    if any(t is not None for t in texts):
        assert scan.kind == "category" and scan.texts == known
    assert scan.empty == len(texts) - known.total()
    forced = scanned([typed(part) for part in cut(texts, cuts)], "number")
    assert forced.kind == "number" and forced.values.tolist() == sorted(float(t) for t in known)


def test_a_kind_that_is_given_is_kept() -> None:
    assert scanned([untyped(["1", "2"])], "category").categories() == ["1", "2"]
    with pytest.raises(NoNumber, match="column 'c': 'x' is not a number"):
        scanned([untyped(["1", "x"])], "number")


def test_numbers_in_one_file_and_texts_in_another_are_categories() -> None:
    numbers = Cells(numbers=np.array([1.0, 2.0, 2.0, math.nan]))
    for other in (typed(["a", "2", None]), untyped(["a", "2", ""])):
        for order in ((numbers, other), (other, numbers)):
            scan = scanned(order)
            assert (scan.kind, scan.texts, scan.empty) == ("category", {"1": 1, "2": 3, "a": 1}, 2)
    together = scanned([numbers, untyped(["2", "7"])])
    assert (together.values.tolist(), together.weights.tolist(), together.empty) == ([1, 2, 7], [1, 3, 1], 1)


@pytest.mark.parametrize("piece", [100, 5000, 10**6])
def test_the_same_texts_are_numbers_however_they_are_cut(piece: int) -> None:
    few = [str(k) for k in range(FEW - 1)] + ["x", "y"]  # a text among the first so many: categories
    assert scanned([untyped(part) for part in cut(few, range(piece, len(few), piece))]).kind == "category"
    many = [str(k) for k in range(FEW + 1)] + ["x"]  # too many to be categories after all
    with pytest.raises(NoNumber, match="'x' is not a number"):
        scanned([untyped(part) for part in cut(many, range(piece, len(many), piece))])


def test_texts_may_turn_up_late() -> None:
    pieces = [untyped(["1", "2"] * 50) for _ in range(20)] + [untyped(["none of them", "1"])]
    scan = scanned(pieces)
    assert scan.texts == {"1": 1001, "2": 1000, "none of them": 1} and scan.kind == "category"


@pytest.mark.parametrize("typed", [False, True])
@pytest.mark.parametrize("piece", [30_000, 10**6])
def test_no_more_categories_are_told_apart_than_the_most(typed: bool, piece: int) -> None:
    texts = [f"t{k:06}" for k in range(CATEGORIES + 1000)] + ["t000000", f"t{CATEGORIES:06}"]
    scan = ColumnScan("c")
    for part in cut(texts, range(piece, len(texts), piece)):
        scan.look(untyped(part)._replace(typed=typed))
    scan.finish()
    assert (scan.kind, len(scan.texts), scan.dropped) == ("category", CATEGORIES, 1001)
    assert scan.texts["t000000"] == 2 and f"t{CATEGORIES:06}" not in scan.texts


# --- summaries of many values -----------------------------------------------------------------------------------------

SPREADS = {
    "uniform": lambda rng, n: rng.uniform(0, 1, n),
    "sorted": lambda rng, n: np.arange(n, dtype=float),
    "backwards": lambda rng, n: -np.arange(n, dtype=float),
    "heavy tail": lambda rng, n: np.exp(6 * rng.normal(size=n)),
    "half zeros": lambda rng, n: np.where(rng.uniform(size=n) < 0.5, 0.0, rng.normal(size=n)),
}


def rank_error(scan: ColumnScan, values: np.ndarray, count: int) -> float:
    """How far the quantiles of a summary are from where they should be, as a share of all values."""
    ordered = np.sort(values)
    worst = 0.0
    ends = np.cumsum(scan.weights)
    for wanted in np.arange(1, count) / count:
        found = scan.values[min(np.searchsorted(ends, wanted * ends[-1]), scan.values.size - 1)]
        low, high = (np.searchsorted(ordered, found, side) / values.size for side in ("left", "right"))
        worst = max(worst, low - wanted, wanted - high)
    return worst


@pytest.mark.parametrize("spread", SPREADS)
@pytest.mark.parametrize("pieces", [1, 12, 100])
def test_a_summary_of_many_values_does_not_drift(spread: str, pieces: int) -> None:
    values = SPREADS[spread](np.random.default_rng(1), 300_000)
    scan = scanned([Cells(numbers=part) for part in np.array_split(values, pieces)])
    assert scan.values.size <= POINTS and not scan.exact
    assert scan.weights.sum() == values.size and (scan.weights > 0).all()
    assert (np.diff(scan.values) > 0).all()
    assert (scan.values[0], scan.values[-1]) == (values.min(), values.max())
    assert rank_error(scan, values, 64) <= 0.002


def test_numbers_of_texts_are_summarized_like_numbers() -> None:
    texts = [str(k) for k in np.random.default_rng(0).permutation(60_000)]
    scan = scanned([untyped(part) for part in cut(texts, range(7000, 60_000, 7000))])
    assert scan.kind == "number" and scan.texts == {}
    assert rank_error(scan, np.arange(60_000.0), 64) <= 0.002


def test_the_memory_of_a_scan_is_bounded() -> None:
    scan = ColumnScan("c")
    rng = np.random.default_rng(0)
    for _ in range(40):
        scan.look(untyped([f"{value:.6f}" for value in rng.uniform(size=2000)]))
        assert scan.values.size <= POINTS and len(scan.texts) <= FEW


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(1, 5)), min_size=1, max_size=20, unique_by=lambda p: p[0]),
    st.integers(2, 9),
)
def test_quantiles_cut_into_parts_of_equal_weight(pairs: list[tuple[int, int]], count: int) -> None:
    pairs = sorted(pairs)
    whole = [value for value, weight in pairs for _ in range(weight)]
    values, weights = (np.array(column, np.float64) for column in zip(*pairs, strict=True))
    found = {whole[min(int(k * len(whole) / count + 1e-9), len(whole) - 1)] for k in range(1, count)}
    assert quantiles(values, weights, count).tolist() == sorted(found)


def test_a_column_of_nothing() -> None:
    for piece in (untyped(["", "NA"]), Cells(numbers=np.full(2, np.nan))):
        scan = scanned([piece])
        assert (scan.kind, scan.values.size, scan.texts, scan.empty) == ("number", 0, {}, 2)
    assert table_scan.FEW <= table_scan.POINTS  # texts are either all kept, or in an exact summary
