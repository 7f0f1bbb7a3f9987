"""Samples of programs are those of a search space with the same features; a kept reference decides."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import lols
from lols.errors import ConfigurationError, ModelFileError
from lols.tasks.registry import read_model
from tests.programs.program_worlds import DATA, TEST, tagging
from tests.programs.test_programs import OPTIONS, SPACE, TEACHERS

FEW = [*TEST, *DATA]
SEARCHES = ({"best_of": 6}, {"best_of": 6, "starts": 3}, {"best_of": 5, "temperature": 4.0, "seed": 7})


@pytest.fixture(scope="module")
def trained():
    options = OPTIONS | {"passes": 1}
    return lols.train(SPACE, DATA, TEACHERS["bad"], **options), lols.train(
        tagging(teach=lambda gold: {"reference": 0}), DATA, **options
    )


@pytest.mark.parametrize("search", SEARCHES)
def test_samples_are_those_of_a_search_space(trained, search):
    space, program = trained
    assert program.losses(FEW, **search).tolist() == space.losses(FEW, **search).tolist()
    assert program.predict(FEW, **search) == space.predict(FEW, **search)
    assert (program.losses(FEW, **search) <= program.losses(FEW)).all()


def test_results_can_be_improved(trained):
    assert trained[1].predict(FEW, improve=lambda x, tags: len(tags)) == [len(x["words"]) for x in FEW]


def test_searches_that_make_no_sense_are_refused(trained):
    mistakes = (
        ({"best_of": 0}, "best_of is 0"),
        ({"best_of": 2, "starts": 3}, "starts is 3"),
        ({"beam": 2}, "beam has"),
    )
    for search, says in mistakes:
        with pytest.raises(ConfigurationError, match=says):
            trained[1].predict(FEW, **search)


def test_a_kept_reference_decides_before_and_after_it_was_in_a_file(trained, tmp_path):
    space, program = trained
    kept = copy.copy(program)
    kept.kept_reference = True
    assert "decides by its reference" in repr(kept)
    kept.save(tmp_path / "m.lols")
    of_space = space.replaced(kept_reference=TEACHERS["bad"])
    for model in (kept, lols.load(tmp_path / "m.lols", program.program)):
        assert model.predict(FEW) == program.reference_outputs(FEW) == space.reference_outputs(FEW, TEACHERS["bad"])
        assert model.losses(FEW).tolist() == program.reference_losses(FEW).tolist()
        for search in SEARCHES:
            best = np.minimum(program.reference_losses(FEW), program.losses(FEW, **search))
            assert model.losses(FEW, **search).tolist() == best.tolist() == of_space.losses(FEW, **search).tolist()
            assert model.predict(FEW, **search) == of_space.predict(FEW, **search)
    with pytest.raises(ConfigurationError, match="a program gives its reference at each call"):
        lols.load(tmp_path / "m.lols", program.program, reference=TEACHERS["bad"])


def test_what_a_kept_reference_of_a_space_does_not_have(trained, tmp_path):
    kept = trained[0].replaced(kept_reference=TEACHERS["bad"])
    assert "decides by its reference" in repr(kept)
    for use in (kept.scores, lambda data: lols.certify(kept, data, TEACHERS["bad"]), kept.learn_one):
        with pytest.raises(ConfigurationError, match="decides by its reference"):
            use(FEW)
    kept.save(tmp_path / "m.lols")
    with pytest.raises(ModelFileError, match=r"decides by the reference .* was given: give it to lols.load"):
        lols.load(tmp_path / "m.lols", SPACE)
    again = lols.load(tmp_path / "m.lols", SPACE, reference=TEACHERS["bad"])
    assert again.predict(FEW) == kept.predict(FEW) and "space_changed" not in again.about
    assert lols.load(tmp_path / "m.lols", SPACE, reference=TEACHERS["optimal"]).about["space_changed"]
    facts = read_model(tmp_path / "m.lols").inspect().as_dict()
    assert facts["decides_by"] == kept.kept_reference.name
