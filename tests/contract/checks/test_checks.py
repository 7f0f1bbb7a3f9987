"""The checks of a search space: a correct one has no findings, and findings are reported in one line each."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import pytest

import lols
from lols import Example, Reference, SpaceError
from lols.contract.checks import Finding, assert_space, check_space
from lols.datasets.worlds import tagging_data, tagging_references
from tests.contract.checks.spaces import DATA, GOOD, RICH, TEACHER, assert_found, sized
from tests.engine.random_space import VARIANTS, random_data

# --- clean ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("teacher", ["optimal", "suboptimal", "bad"])
def test_a_clean_space_has_no_findings(teacher):
    reference = tagging_references()[teacher]
    assert check_space(GOOD, DATA, reference) == []
    assert check_space(GOOD, tagging_data(2, labels=3), reference, rollouts=3, seed=5) == []


def test_a_clean_space_with_items_and_action_features_has_no_findings():
    assert check_space(RICH, DATA, TEACHER) == []


@pytest.mark.parametrize("variant", VARIANTS.values(), ids=list(VARIANTS))
def test_random_graphs_have_no_findings(variant):
    data = random_data(1, variant, count=2, exact=False, offset=1.5)
    assert check_space(variant.space, data, variant.reference) == []


def test_a_clean_space_without_cost_and_key_has_no_findings():
    assert check_space(replace(GOOD, cost=None, key=None), DATA, TEACHER) == []


def test_encoded_examples_and_unlabelled_ones_can_be_checked():
    assert check_space(GOOD, lols.Examples(GOOD, DATA), TEACHER) == []
    unlabelled = [{"words": [1, 2, 3]}]
    assert check_space(GOOD, unlabelled) == []
    assert_found(GOOD, "encode", "truth", "labelled", reference=TEACHER, data=unlabelled)
    rules = Reference(action=lambda x, y, s: 0, needs_truth=False)
    assert check_space(GOOD, unlabelled, rules) == []


def test_numbers_are_as_wide_as_in_compiled_code():
    # in 32 bits this key would overflow, and merge states
    assert check_space(replace(GOOD, key=lambda x, s: (s[0] * 2**20 + s[1] + 1) * 2**20 + s[2] + 1), DATA) == []


def test_the_checks_do_not_import_numba():
    code = (
        "import sys, lols, lols.datasets.worlds as w; "
        "assert not lols.checks.check_space(w.tagging_space(labels=2), [{'words': [1, 2], 'tags': [0, 0]}]); "
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# --- findings ---------------------------------------------------------------------------------------------------------


def test_a_finding_is_one_line():
    assert str(Finding("key", 2, 3, "is wrong: mend it")) == "`key`, example 2, step 3: is wrong: mend it"
    assert str(Finding("encode", None, None, "fails")) == "`encode`: fails"


def test_the_same_seed_gives_the_same_findings():
    broken = sized(replace(GOOD, key=lambda x, s: s[0]), features=3, live=1)
    assert check_space(broken, DATA, TEACHER, seed=3) == check_space(broken, DATA, TEACHER, seed=3)


def test_assert_space_raises_all_findings_in_words():
    assert_space(GOOD, DATA, TEACHER)
    with pytest.raises(SpaceError) as raised:
        assert_space(sized(replace(GOOD, loss=lambda x, y, s: -1.0), features=3), DATA)
    assert "`features`" in str(raised.value)
    assert "`loss`" in str(raised.value)


def test_a_failing_encode_is_found():
    assert_found(replace(GOOD, encode=lambda obj: Example({"words": obj["text"]})), "encode", "example 0", "text")
