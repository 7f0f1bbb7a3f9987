"""What needs no extra works without it, and what needs one says which."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

OPTIONAL = ("pyarrow", "sklearn", "scipy", "matplotlib", "torch", "pandas", "polars", "ray")
WITHOUT = f"import sys\nfor name in {OPTIONAL}:\n    sys.modules[name] = None\n"
SENTENCE = "1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tdog\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"


def without(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run Python where none of the optional packages can be imported."""
    return subprocess.run([sys.executable, "-c", WITHOUT + code], cwd=folder, text=True, capture_output=True)


def command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the command line, likewise."""
    return without(f"from lols.cli import main\nsys.argv = {['lols', *words]!r}\nmain()", folder)


def test_a_tagger_needs_no_extra(tmp_path: Path) -> None:
    (tmp_path / "t.conllu").write_text(SENTENCE * 200)  # enough for confidence by isotonic regression
    for words in (
        ("train", "tagger", "t.conllu", "--column", "upos", "-o", "m.lols", "--passes", "1", "--dev", "t.conllu"),
        ("calibrate", "m.lols", "t.conllu", "-o", "m.lols"),
        ("predict", "m.lols", "t.conllu", "-o", "out.conllu"),
        ("evaluate", "m.lols", "t.conllu"),
        ("inspect", "m.lols"),
        ("explain", "m.lols", "t.conllu"),
    ):
        made = command(tmp_path, *words)
        assert made.returncode == 0, (words, made.stderr)


def test_a_classifier_needs_no_extra_for_arrays_and_lists(tmp_path: Path) -> None:
    made = without(
        """
import numpy as np
import lols
X = [[age, colour] for age in range(20, 60) for colour in ("red", "blue")]
y = ["no" if age < 40 else "yes" if colour == "red" else "ask" for age, colour in X]
model = lols.CostSensitiveClassifier(numeric="bins", tree="order", passes=10, progress=False)
try:
    model.predict(X)
except (ValueError, AttributeError) as error:
    print(error)
print(model.fit(X, y).score(X, y) > 0.9, model.n_features_in_, model)
model.save("m.lols")
print(lols.load("m.lols").predict(np.array(X, dtype=object)).tolist() == model.predict(X).tolist())
for wrong in (lambda: model.predict([[1]]), lambda: model.fit(X, y[:3]), lambda: model.fit([1, 2], [0, 1])):
    try:
        wrong()
    except ValueError as error:
        print(error)
print(model._repr_mimebundle_().keys())
model.warm_up()
lols.CostSensitiveClassifier(numeric="bins", tree="order", passes=1).warm_up()
""",
        tmp_path,
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines() == [
        "this CostSensitiveClassifier is not trained yet: call fit first",
        "True 2 CostSensitiveClassifier(numeric='bins', passes=10, progress=False, tree='order')",
        "True",
        "the table has 1 columns, but in training there were 2",
        "y has the shape (3,), but there are 80 rows: give a label for each",
        "the table has 1 dimension: give rows of cells, such as [[1, 'red'], [2, 'blue']]",
        "dict_keys(['text/plain'])",
    ]


def test_what_an_extra_is_needed_for_is_said_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,y\n1,no\n2,yes\n")
    made = command(tmp_path, "train", "classifier", "t.csv", "-o", "m.lols")
    assert made.returncode == 2 and made.stderr.strip().endswith(
        "tables in files need pyarrow: pip install 'lols[tables]'"
    )
    made = without(
        "from lols.engine.states import hashed_matrix as m\nimport numpy as n\nm(n.zeros(1),0,n.ones(1),2)", tmp_path
    )
    assert "features as a matrix need SciPy: pip install 'lols[sklearn]'" in made.stderr


def test_pandas_is_not_imported_for_files(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("a,b,y\n" + "1,u,no\n2,v,yes\n" * 30)
    words = (
        ("train", "classifier", "t.csv", "-o", "m.lols", "--tree", "order", "--numeric", "bins", "--passes", "1"),
        ("predict", "m.lols", "t.csv", "-o", "o.csv"),
        ("evaluate", "m.lols", "t.csv"),
    )
    for each in words:
        code = f"import sys\nfrom lols.cli import main\nsys.argv = {['lols', *each]!r}\n"
        code += "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code\n"
        code += "print([name for name in ('pandas', 'sklearn', 'scipy') if name in sys.modules], file=sys.stderr)"
        made = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, text=True, capture_output=True)
        assert made.returncode == 0 and made.stderr.splitlines()[-1] == "[]", (each, made.stderr)


def test_only_the_named_packages_are_needed() -> None:
    tomllib = pytest.importorskip("tomllib")
    found = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
    names = {line.split(">")[0] for line in found["dependencies"]}
    assert not names & {"pyarrow", "scikit-learn", "scipy", "matplotlib", "torch", "pandas", "polars", "ray"}


def test_what_has_no_extra_says_what_to_install(tmp_path: Path) -> None:
    made = without(
        """
import lols
for make in (lols.io.to_pandas, lols.io.to_polars):
    try:
        make([])
    except lols.LolsError as error:
        print(error)
try:
    costs = [[0, 5], [1, 0]]
    model = lols.CostSensitiveClassifier(numeric="bins", tree="order", passes=1, progress=False, cost_matrix=costs)
    model.fit([[0], [1]] * 20, ["a", "b"] * 20, dev=([[0], [1]] * 20, ["a", "b"] * 20))
except lols.LolsError as error:
    print(error)
""",
        tmp_path,
    )
    assert made.returncode == 0, made.stderr
    assert made.stdout.splitlines() == [
        "to_pandas needs pandas: pip install pandas",
        "to_polars needs polars: pip install polars",
        "the confidence of a classifier with costs needs SciPy: pip install 'lols[sklearn]', or train without "
        "(calibrate=False, --no-calibrate)",
    ]
