"""`lols reproduce`: claims on figures with known answers, cells against training by hand, resuming, bad use."""

from __future__ import annotations

import hashlib
import json
import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lols.errors import LolsError
from lols.reproduction import data, plan
from lols.reproduction.cells import Run, measure
from lols.reproduction.claims import CLAIMS, Figures, Measured, judge_claims
from lols.reproduction.data import generated
from lols.reproduction.paper import PAPER, STRATEGIES, TEACHERS, paper_figure
from lols.reproduction.parts import certify_work
from lols.reproduction.plan import COIN, ROWS, TABLES, Cell, beta_row, cells_of, options_of
from lols.reproduction.run import reproduce
from lols.reproduction.tables import make_table
from tests.cli.command_line import error_line, run

pytestmark = pytest.mark.slow  # the reproduction of the paper, and long runs

TINY = {"table2": (600, 300, 2), "table3": (25, 15, 2), "table4": (25, 15, 2)}
FEW = ("learned/reference", "learned/mixture")


@pytest.fixture
def tiny(monkeypatch):
    """Very little data, and the optimal teacher only, so that little is compiled."""
    monkeypatch.setattr(data, "QUICK", TINY)
    for name in TINY:
        monkeypatch.setitem(plan.TABLES, name, TABLES[name]._replace(teachers=("optimal",)))


# --- the paper ---


def test_the_papers_figures_are_those_of_its_source():
    known = {name: (table.figures, table.best) for name, table in PAPER.items()}
    # Compared with the source once; this holds where the source is not at hand.
    text = json.dumps(known, sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == "907ac26c196ce19a"


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA is not set")
def test_the_papers_figures_once_more_from_the_source_itself():
    sources = list((Path(os.environ["LOLS_DATA"]).parent / "paper").glob("*.tex"))
    if not sources:
        pytest.skip("the paper's source is not beside the data")
    text = re.sub(r"(?<!\\)%.*", "", sources[0].read_text(encoding="utf-8"))
    for name, label in (("table2", "tab:mc"), ("table3", "tab:pos"), ("table4", "tab:dep")):
        part = text[: text.index(rf"\label{{{label}}}")]
        part = part[part.rindex(r"\begin{table}") :]
        body, caption = part.split(r"\end{tabular}")
        found: dict[str, list[str]] = {}
        for line in body.splitlines():
            if (head := re.search(r"Reference is (\w+)", line)) is not None:
                found[head[1]] = []
            elif found and re.search(r"\{\\bf (Reference|Learned)\}", line):
                list(found.values())[-1].extend(line.split("&")[1:])
        assert list(found) == list(PAPER[name].figures)
        searn = re.findall(r"\d+\.\d+", caption[: caption.index(r"\myalg")])
        for (teacher, cells), own in zip(found.items(), searn, strict=True):
            numbers = [float(re.findall(r"\d+\.\d+", cell.replace("green!10", ""))[0]) for cell in cells]
            assert numbers == [paper_figure(name, teacher, row) for row in STRATEGIES]
            assert float(own) == paper_figure(name, teacher, "searn")
            bold = tuple(row for row, cell in zip(STRATEGIES, cells, strict=True) if r"\best" in cell)
            assert bold == PAPER[name].best[teacher]
            green = [row for row, cell in zip(STRATEGIES, cells, strict=True) if "green" in cell]
            assert green == ["learned/mixture"]


# --- claims ---


def a_table(name="table4", learners=("hinge",), errors=0.05, betas=None, coin=None, **teachers):
    """A table of made-up means: for each teacher those of all rows in order."""
    spec = TABLES[name]

    def cell(mean, **more):
        return {"mean": mean, "sd": errors, "se": errors, "values": [mean], **more}

    cells = [
        cell(mean, row=row, teacher=teacher, learner=learner, paper=paper_figure(spec.paper, teacher, row))
        for learner in learners
        for teacher, means in teachers.items()
        for row, mean in zip(ROWS, means, strict=True)
    ]
    sweep = [
        cell(mean, teacher=teacher, learner=learner, beta=beta)
        for learner in learners
        for teacher in teachers
        for beta, mean in (betas or {}).items()
    ]
    return {
        "task": spec.printed.task,
        "paper_name": spec.paper,
        "teachers": list(teachers),
        "learners": list(learners),
        "higher_is_better": spec.printed.metric != "cost",
        "points": spec.printed.scale / 100,
        "cells": cells,
        "beta": {"cells": sweep} if betas else None,
        "coins": [cell(coin, coin="rollout", teacher="optimal", learner=learner) for learner in learners]
        if coin is not None
        else None,
    }


def judged(name, table):
    return {(claim["id"], claim["teacher"]): claim for claim in judge_claims({name: table})}


def test_claims_that_hold():
    # Rows: reference / reference, mixture, learned; learned / reference, mixture, learned; Searn; auto.
    table = a_table(
        optimal=(87.0, 87.5, 86.0, 90.0, 89.9, 88.0, 85.0, 89.8),
        bad=(60.0, 65.0, 66.0, 70.0, 89.0, 88.0, 63.0, 88.9),
        betas={0.0: 88.0, 0.25: 88.8, 0.5: 89.0, 0.75: 88.9, 1.0: 70.0},
    )
    found = judged("table4", table)
    assert {claim["ours"] for claim in found.values()} == {"holds"}
    assert len(found) == 2 + 1 + 1 + 2 + 1 + 2 + 2
    assert found["lols-beats-searn", "bad"]["detail"] == "LOLS vs Searn: 89.00 vs 63.00 (2 se = 0.14)"
    assert found["lols-beats-searn", "bad"]["paper"] == "holds"
    assert found["auto-is-near-the-best", "bad"]["text"] == "not said"
    assert found["beta-does-not-matter", "bad"]["paper"] == "not measured"


def test_claims_that_fail():
    table = a_table(
        optimal=(91.0, 90.0, 88.0, 90.0, 90.5, 88.0, 92.0, 89.0),
        bad=(60.0, 65.0, 66.0, 90.0, 89.0, 88.0, 63.0, 88.9),
        betas={0.0: 88.0, 0.25: 88.0, 0.5: 89.0, 1.0: 70.0},
    )
    found = judged("table4", table)
    fails = {key for key, claim in found.items() if claim["ours"] == "fails"}
    assert fails == {
        ("roll-in-reference-is-bad", "optimal"),  # worse with one roll-out is enough
        ("roll-out-bad-reference-is-bad", "bad"),
        ("lols-is-best", "bad"),
        ("lols-beats-searn", "optimal"),
        ("reference-roll-outs-are-best", "optimal"),
        ("beta-does-not-matter", "optimal"),
        ("beta-does-not-matter", "bad"),
        ("auto-is-near-the-best", "optimal"),
        ("auto-is-near-the-best", "bad"),
    }


def test_small_differences_count_as_none():
    table = a_table(bad=(60.0, 60.1, 60.0, 60.0, 60.1, 60.2, 60.0, 59.9), betas={0.25: 59.0, 0.75: 61.0}, errors=1.0)
    found = judged("table4", table)
    assert found["roll-in-reference-is-bad", "bad"]["ours"] == "no difference"
    assert found["roll-out-bad-reference-is-bad", "bad"]["ours"] == "no difference"
    assert found["lols-beats-searn", "bad"]["ours"] == "no difference"
    assert found["lols-is-best", "bad"]["ours"] == "holds"
    assert found["beta-does-not-matter", "bad"]["ours"] == "holds"


def test_costs_are_better_the_less_they_are():
    table = a_table("table2", optimal=(0.24, 0.24, 0.24, 0.23, 0.229, 0.229, 0.25, 0.2315), errors=0.0001)
    found = judged("table2", table)
    assert found["roll-in-reference-is-bad", "optimal"]["ours"] == "holds"
    assert found["lols-beats-searn", "optimal"]["ours"] == "holds"
    assert found["reference-roll-outs-are-best", "optimal"]["ours"] == "fails"
    assert found["auto-is-near-the-best", "optimal"]["ours"] == "holds"  # 0.25 points behind


def test_what_the_papers_own_tables_say():
    whole = dict.fromkeys(TEACHERS, (90.0,) * len(ROWS))
    found = judged("table3", a_table("table3", **whole, coin=30.0))
    assert found["lols-beats-searn", "optimal"]["paper"] == "fails"  # 94.13 against 94.88
    assert found["reference-roll-outs-are-best", "optimal"]["paper"] == "holds"
    assert found["roll-in-reference-is-bad", "optimal"]["paper"] == "no difference"
    assert found["the-gap-is-closed", "optimal"]["paper"] == "fails"
    assert found["the-gap-is-closed", "optimal"]["ours"] == "holds"
    assert found["the-gap-is-closed", "optimal"]["detail"].endswith("one coin per roll-out: 30.00")
    assert found["lols-is-best", "bad"]["paper"] == "not measured"
    assert found["roll-out-bad-reference-is-bad", "bad"]["text"] == "no difference"
    found = judged("table4", a_table("table4", **whole))
    assert found["roll-in-reference-is-bad", "optimal"]["paper"] == "fails"  # 86.9 against 88.2
    assert found["lols-is-best", "suboptimal"]["paper"] == "holds"
    found = judged("table2", a_table("table2", **whole))
    assert found["roll-out-bad-reference-is-bad", "bad"]["paper"] == "no difference"
    assert judged("table4-ewt", a_table("table4-ewt", **whole))["lols-is-best", "bad"]["paper"] == "not measured"


@given(st.tuples(*[st.floats(0, 100)] * 2), st.tuples(*[st.floats(0, 5)] * 2), st.booleans())
def test_better_is_worse_the_other_way_round(means, errors, higher):
    one, other = (Measured(*pair) for pair in zip(means, errors, strict=True))
    of = Figures({}, higher, 1.0)
    assert of.compared(one, other).sign == -of.compared(other, one).sign
    assert of.compared(one, one).sign == 0


def test_every_claim_has_an_answer_for_what_is_missing():
    for claim in CLAIMS:
        assert claim.judge(Figures({}, True, 1.0)) is None


# --- plan and tables ---


def test_cells_are_planned_once():
    cells = cells_of(TABLES["table3"]._replace(betas=(0.0, 0.5, 0.75, 1.0)), 2)
    assert len(cells) == len(set(cells)) == 2 * 2 * (3 * len(ROWS) - 2 + 3 + 1)
    assert {cell.teacher for cell in cells if cell.row == "learned/learned"} == {"optimal"}
    assert sum(cell.row == COIN for cell in cells) == 4
    assert beta_row(0.1) == "beta=0.1" and options_of("auto")["beta"] == "auto"


def test_means_and_errors_over_seeds():
    place = data.DataPlace(TABLES["table3"], "", "", "upos", "0")
    runs = {
        Cell("table3", row, "optimal", "hinge", seed).key: Run([0.5, value], 1.0, 400, 1.0)
        for row, values in (("searn", (0.8, 0.9)), ("auto", (0.85, 0.85)), ("learned/learned", (0.7, 0.8)))
        for seed, value in enumerate(values)
    }
    made = make_table(place, runs, 2)
    cells = {(cell["row"], cell["teacher"]): cell for cell in made["cells"]}
    assert cells["searn", "optimal"]["mean"] == pytest.approx(85.0)
    assert cells["searn", "optimal"]["sd"] == pytest.approx(50**0.5)
    assert cells["searn", "optimal"]["se"] == pytest.approx(5.0)
    # Two seeds that agree by chance are not taken to be sure.
    assert cells["auto", "optimal"]["sd"] == 0.0
    assert cells["auto", "optimal"]["se"] == pytest.approx((100 / 3) ** 0.5 / 2**0.5)
    assert cells["learned/learned", "bad"]["values"] == cells["learned/learned", "optimal"]["values"]
    assert {cell["teacher"] for cell in made["beta"]["cells"]} == set(TEACHERS)
    assert next(c for c in made["curves"] if c["row"] == "searn")["values"] == pytest.approx([50.0, 85.0])
    alone = make_table(place, runs, 1)
    error = next(cell["se"] for cell in alone["cells"] if cell["row"] == "searn")
    assert error == pytest.approx(100 * (0.8 * 0.2 / 400) ** 0.5)


# --- running ---


def test_cells_are_what_training_by_hand_gives(tiny, tmp_path):
    from lols import CostSensitiveClassifier, Parser, Tagger
    from lols.datasets import grammar
    from lols.io.costs import read_cost_matrix, read_label_map

    places = {place.spec.name: place for place in generated(TINY, tmp_path, quick=True)}
    train, test = grammar.generate(25, data.TRAIN), grammar.generate(15, data.TEST)
    for row in FEW:
        for learner in ("csoaa", "hinge"):
            options = {**options_of(row), "learner": learner, "passes": 2, "seed": 1, "progress": False}
            found = {name: measure(Cell(name, row, "optimal", learner, 1), place) for name, place in places.items()}

            tagger = Tagger(prune=None, **options).fit([s.forms for s in train], [s.upos for s in train])
            accuracy = tagger.evaluate([s.forms for s in test], [s.upos for s in test]).accuracy
            assert found["table3"].values[-1] == accuracy
            assert found["table3"].items == sum(len(s.forms) for s in test)

            words = [[{"word": w, "upos": t} for w, t in zip(s.forms, s.upos, strict=True)] for s in [*train, *test]]
            parser = Parser(prune=None, labelling="none", **options).fit(words[:25], [s.heads for s in train])
            assert found["table4"].values[-1] == parser.evaluate(words[25:], [s.heads for s in test]).uas

            classes, costs = read_cost_matrix("kdd99")
            model = CostSensitiveClassifier(
                classes=classes,
                cost_matrix=costs,
                label_map=read_label_map("kdd99"),
                numeric="bins",
                tree="order",
                **options,
            ).fit_files(places["table2"].train)
            assert found["table2"].values[-1] == model.evaluate_files(places["table2"].test).cost


def test_a_mixture_that_is_all_teacher_or_all_learner_is_a_row_of_its_own(tiny, tmp_path):
    for place in generated(TINY, tmp_path, quick=True):
        for beta in (0.0, 1.0):
            row = beta_row(beta)
            options = [Cell(place.spec.name, name, "optimal", "hinge", 0) for name in (row, f"beta={beta:g}")]
            one, other = (measure(cell, place).values for cell in options)
            assert one == other


def test_results_are_kept_and_taken_up_again(tiny, tmp_path, monkeypatch):
    file, ran = tmp_path / "kept.json", []

    def counted(cell, place):
        ran.append(cell.key)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return measure(cell, place)

    monkeypatch.setattr("lols.reproduction.run.measure", counted)
    few = plan.TABLES["table3"]._replace(rows=FEW, betas=(), coins=False)
    monkeypatch.setitem(plan.TABLES, "table3", few)
    options = {"quick": True, "seeds": 1, "workers": 1, "file": file}
    with pytest.raises(KeyboardInterrupt):
        reproduce("table3", **options)
    assert list(json.loads(file.read_text())["runs"]) == ran[:2]
    first = reproduce("table3", **options, resume=True)
    # Two rows by two learners.
    assert len(ran) == 5 and ran[2] == ran[3]
    again = reproduce("table3", **options, resume=True)
    assert len(ran) == 5
    whole = reproduce("table3", **{**options, "file": None})
    strip = [[{**cell, "seconds": 0} for cell in made["tables"]["table3"]["cells"]] for made in (first, again, whole)]
    assert strip[0] == strip[1] == strip[2] and len(strip[0]) == 4
    monkeypatch.setattr(data, "TRAIN", 5)
    with pytest.raises(LolsError, match="other data"):
        reproduce("table3", **options, resume=True)
    file.write_text("[]")
    with pytest.raises(LolsError, match="no results to go on from"):
        reproduce("table3", **options, resume=True)


# --- certificates ---


def test_certificates_are_what_the_command_says(tiny, tmp_path):
    place = generated(["table4"], tmp_path, quick=True)[0]
    assert certify_work(place, True, "lols reproduce table4 --quick") == []  # the fixture has one teacher only
    (work,) = certify_work(place, False, "lols reproduce table4")
    assert work.name == "certificate: LOLS, optimal teacher" and work.kernel == ("parsing", "optimal")
    found = work.function(*work.arguments)
    (tmp_path / "trained").mkdir()
    model = tmp_path / "trained" / "m.lols"
    options = ("--algorithm", "lols", "--labelling", "none", "--prune", "0", "--passes", place.spec.passes)
    done = run("train", "parser", place.train, *options, "--learner", "hinge", "-o", model)
    assert done.exit_code == 0, done.output
    certified = json.loads(run("certify", model, place.test, "--json").stdout)
    same = {name: value for name, value in found.items() if name not in ("command", "fitted", "notes")}
    assert {name: certified[name] for name in same} == same


# --- the command ---


def test_the_command_prints_tables_claims_and_a_summary(tiny, tmp_path, monkeypatch):
    monkeypatch.setitem(plan.TABLES, "table2", TABLES["table2"]._replace(teachers=("optimal",), betas=()))
    monkeypatch.chdir(tmp_path)
    done = run("reproduce", "table2", "--quick", "--seeds", "2", "--jobs", "1", "--json", "r.json", "--plots", "p")
    assert done.exit_code == 0, done.output
    assert "Table 2: Cost-sensitive classification" in done.output
    assert "LOLS beats Searn" in done.output and "What was seen on small data" in done.output
    assert "less than a minute left" in done.output and "judgements" not in done.output
    assert "Figures: r.json" in done.output and "Pictures: 2 in p" in done.output
    assert sorted(path.name for path in (tmp_path / "p").iterdir()) == ["table2-curves.png", "table2.png"]
    kept = json.loads((tmp_path / "r.json").read_text())
    assert kept["command"] == "lols reproduce table2 --quick --seeds 2"
    assert {cell["row"] for cell in kept["tables"]["table2"]["cells"]} == set(ROWS)
    assert all(len(cell["values"]) == 2 for cell in kept["tables"]["table2"]["cells"])


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["table5"], "unknown part 'table5': choose one of story"),
        (["table2", "--seeds", "0"], "--seeds is 0"),
        (["table2", "--workers", "0"], "--workers is 0"),
        (["table2", "--jobs", "0"], "--workers is 0"),
        (["table2", "--only", "lols"], "--only has no row 'lols': choose from reference/reference"),
        (["table2", "--resume"], "name it with --json"),
        (["table2", "--json", "{here}/no/such/r.json"], "there is no folder"),
        (["table2", "--json", "{here}"], "is a folder"),
        (["table2", "--html", "{here}/no/r.html"], "there is no folder"),
        (["table2", "--plots", "{here}/a-file/p"], "cannot be made a folder"),
        (["table2", "--data", "{here}/none"], "is not a folder"),
        (["table2", "--data", "{here}"], "kdd99-10percent.csv.gz: is not there"),
        (["table3", "--data", "{here}"], "wsj-train.conll.gz: is not there"),
    ],
)
def test_mistakes_are_one_line(arguments, words, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LOLS_CACHE", str(tmp_path / "cache"))
    (tmp_path / "a-file").touch()
    arguments = [argument.format(here=tmp_path) for argument in arguments]
    assert words in error_line(monkeypatch, capsys, "reproduce", *arguments)
