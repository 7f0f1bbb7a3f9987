"""Compiled code is cached between processes and never stale: any edit of anything a function reaches is seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest

import lols
from lols.contract.identity import source_digest
from lols.kernels import digest
from lols.kernels.digest import digest_functions

# --- a task in files, run by other processes --------------------------------------------------------------------------

TASK = """
import lols
import other

FACTOR = 10.0


def start(x, s):
    pass


def actions(x, s, legal):
    if s[0] < 1:
        legal[0] = legal[1] = True


def step(x, s, a):
    s[0] += 1
    s[1] = a


def features(x, s, out):
    lols.emit(out, lols.feature(0, s[0]))


def helper(s):
    return s[1] * 1.0


def make(extra):
    def loss(x, y, s):
        return 1.0 + helper(s) + FACTOR * s[1] + other.shift(s) + extra

    return lols.SearchSpace(
        start=start, actions=actions, step=step, features=features, loss=loss,
        output=lambda x, s: int(s[1]), encode=lambda obj: lols.Example({"n": obj}, {"n": obj}),
        sizes=lols.Sizes(state=2, actions=2, features=1, steps=1),
    )


space = make(1000.0)
teacher = lols.Reference(action=lambda x, y, s: 1)
"""

OTHER = """
def shift(s):
    return s[1] * 100.0
"""

# Follows the teacher, compiled, to its one end state: two small kernels that call the functions of the task.
FOLLOW = """
def follow(space, teacher):
    model = lols.train(space, [0], teacher, passes=1, compiled=False)
    model.compiled = True
    return model.reference_losses([0], teacher)[0]


def report(**answers):
    print(json.dumps(answers | {"compiling": compile_seconds()}))
"""

HEAD = "import importlib, json, sys\nimport lols\nfrom lols.kernels.kernel import compile_seconds\n" + FOLLOW
ASK = HEAD + "import task\nreport(loss=follow(task.space, task.teacher))\n"
TRAIN = (
    HEAD
    + """
import task

model = lols.train(task.space, [0, 1, 2], task.teacher, passes=2, checks=False)
report(answer=model.predict([0]), loss=model.evaluate([0]))
"""
)


class Project:
    """A folder with a task, another module and a cache of its own."""

    def __init__(self, folder: Path):
        self.folder = folder
        self.write("task.py", TASK)
        self.write("other.py", OTHER)
        self.stderr = ""

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def edit(self, name: str, old: str, new: str) -> None:
        text = (self.folder / name).read_text()
        assert text.count(old) == 1
        self.write(name, text.replace(old, new))

    def run(self, program: str = ASK, **environment: str) -> dict[str, Any]:
        self.write("program.py", program)
        # Python's own byte code is stale after two edits of one size within a second; here only ours is tested.
        given = {"LOLS_CACHE": str(self.folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1", **environment}
        run = subprocess.run(
            [sys.executable, "program.py"],
            cwd=self.folder,
            env=os.environ | given,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert run.returncode == 0, run.stderr
        self.stderr = run.stderr
        answer: dict[str, Any] = json.loads(run.stdout)
        return answer


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A project whose task has been compiled once, as it was written."""
    made = Project(tmp_path_factory.mktemp("warm"))
    first = made.run(LOLS_ANNOUNCE="1")
    assert first["loss"] == 1112.0 and first["compiling"] > 0.0
    assert made.stderr.count("lols: compiling the search space") == 1 and made.stderr.count("\n") <= 2
    return made


def test_a_second_process_compiles_nothing_and_says_nothing(warm: Project) -> None:
    again = warm.run(LOLS_ANNOUNCE="1")
    assert (again["loss"], again["compiling"]) == (1112.0, 0.0)
    assert warm.stderr == ""


# Helpers, constants and closures are edited in a running process below.
EDITS = {
    "a function": ("task.py", "return 1.0 + helper", "return 2.0 + helper", 1113.0),
    "a helper in another module": ("other.py", "s[1] * 100.0", "s[1] * 200.0", 1212.0),
    "the teacher": ("task.py", "lambda x, y, s: 1", "lambda x, y, s: 0", 1001.0),
}


@pytest.mark.parametrize("what", EDITS)
def test_after_an_edit_the_new_answer_is_given_and_after_undoing_it_the_old_one_from_the_cache(
    warm: Project, what: str
) -> None:
    name, old, new, answer = EDITS[what]
    warm.edit(name, old, new)
    try:
        edited = warm.run()
        assert edited["loss"] == answer and edited["compiling"] > 0.0
    finally:
        warm.edit(name, new, old)
    assert warm.stderr == ""  # announcements are for terminals, unless asked for


def test_undone_edits_are_found_in_the_cache(warm: Project) -> None:
    undone = warm.run()
    assert (undone["loss"], undone["compiling"]) == (1112.0, 0.0)


def test_edits_in_a_running_process_are_seen(warm: Project) -> None:
    answers = warm.run(
        HEAD
        + """
import other
import task

first = follow(task.space, task.teacher)
path = other.__file__
text = open(path).read()
open(path, "w").write(text.replace("100.0", "300.0"))
importlib.reload(other)
reloaded = follow(task.space, task.teacher)
open(path, "w").write(text)
importlib.reload(other)
restored = follow(task.space, task.teacher)
task.FACTOR = 70.0
constant = follow(task.space, task.teacher)
task.helper = lambda s: s[1] * 5.0
redefined = follow(task.space, task.teacher)
one, two = task.make(2000.0), task.make(3000.0)
closures = [follow(space, task.teacher) for space in (one, two, one)]
report(
    first=first, reloaded=reloaded, restored=restored, constant=constant, redefined=redefined, closures=closures
)
"""
    )
    del answers["compiling"]
    assert answers == {
        "first": 1112.0,
        "reloaded": 1312.0,
        "restored": 1112.0,
        "constant": 1172.0,
        "redefined": 1176.0,
        "closures": [2176.0, 3176.0, 2176.0],
    }


def test_a_script_of_its_own_is_cached_and_never_stale_too(warm: Project) -> None:
    script = HEAD + TASK + "report(loss=follow(space, teacher))\n"
    # The functions are the same, wherever they stand: what was compiled for the module serves the script.
    assert warm.run(script)["loss"] == 1112.0
    again = warm.run(script)
    assert (again["loss"], again["compiling"]) == (1112.0, 0.0)
    edited = warm.run(script.replace("FACTOR = 10.0", "FACTOR = 30.0"))
    assert edited["loss"] == 1132.0 and edited["compiling"] > 0.0


@pytest.mark.slow
def test_training_and_prediction_are_cached_and_never_stale(project: Project) -> None:
    project.edit("task.py", "return 1.0 + helper", "return (2.0 if s[1] == 0 else 0.0) - helper")
    project.edit("task.py", "FACTOR = 10.0", "FACTOR = 0.0")
    project.edit("task.py", "make(1000.0)", "make(1.0)")
    project.edit("other.py", "100.0", "0.0")
    first = project.run(TRAIN, LOLS_ANNOUNCE="1")
    assert (first["answer"], first["loss"]) == ([1], 0.0) and first["compiling"] > 0.0
    assert "lols: compiling" in project.stderr
    again = project.run(TRAIN, LOLS_ANNOUNCE="1")
    assert again == {"answer": [1], "loss": 0.0, "compiling": 0.0} and project.stderr == ""
    project.edit("other.py", "s[1] * 0.0", "s[1] * 9.0")
    edited = project.run(TRAIN)
    assert (edited["answer"], edited["loss"]) == ([0], 3.0)


# --- what a digest covers ---------------------------------------------------------------------------------------------


def digest_of(source: str, **names: Any) -> str:
    """The digest of the function `f` that a source text defines."""
    module = types.ModuleType("written_by_a_user")
    vars(module).update(names)
    exec(source, vars(module))
    return digest_functions({"f": module.f})


def module_of(name: str, source: str, **names: Any) -> types.ModuleType:
    module = types.ModuleType(name)
    vars(module).update(names)
    exec(source, vars(module))
    return module


SAME = {
    "the same text": ("def f(s): return s[0] + 1", "def f(s): return s[0] + 1"),
    "another place": ("def f(s): return s[0] + 1", "\n\n\ndef f(s): return s[0] + 1"),
    "a global that is not used": ("A = 1\ndef f(s): return s[0]", "A = 2\ndef f(s): return s[0]"),
}


@pytest.mark.parametrize("what", SAME)
def test_what_does_not_matter_does_not_change_the_digest(what: str) -> None:
    one, other = SAME[what]
    assert digest_of(one) == digest_of(other)


DIFFERENT = {
    "a literal": ("def f(s): return s[0] + 1", "def f(s): return s[0] + 2"),
    "the type of a literal": ("def f(s): return s[0] * 1", "def f(s): return s[0] * 1.0"),
    "an operator": ("def f(s): return s[0] + 1", "def f(s): return s[0] - 1"),
    "which name is read": ("A = 1\nB = 2\ndef f(s): return A", "A = 1\nB = 2\ndef f(s): return B"),
    "a constant": ("A = 1\ndef f(s): return A", "A = 2\ndef f(s): return A"),
    "a constant in a tuple": ("A = (1, (2, 3))\ndef f(s): return A[1][1]", "A = (1, (2, 4))\ndef f(s): return A[1][1]"),
    "a default": ("def g(s, k=1): return k\ndef f(s): return g(s)", "def g(s, k=2): return k\ndef f(s): return g(s)"),
    "a helper's helper": (
        "def h(s): return 1\ndef g(s): return h(s)\ndef f(s): return g(s)",
        "def h(s): return 2\ndef g(s): return h(s)\ndef f(s): return g(s)",
    ),
    "an inner function": (
        "def f(s):\n    def g(k): return k + 1\n    return g(s[0])",
        "def f(s):\n    def g(k): return k + 2\n    return g(s[0])",
    ),
    "a recursive function": (
        "def f(s): return 1 if s == 0 else f(s - 1)",
        "def f(s): return 2 if s == 0 else f(s - 1)",
    ),
    "a closure": (
        "def make(k):\n    def f(s): return k\n    return f\nf = make(1)",
        "def make(k):\n    def f(s): return k\n    return f\nf = make(2)",
    ),
    "an array": (
        "import numpy\nA = numpy.arange(5000)\ndef f(s): return A[s[0]]",
        "import numpy\nA = numpy.arange(5000)\nA[2500] = 7\ndef f(s): return A[s[0]]",
    ),
    "an alias": (
        "def g(s): return 1\ndef h(s): return 2\npick = g\ndef f(s): return g(s) + h(s) + pick(s)",
        "def g(s): return 1\ndef h(s): return 2\npick = h\ndef f(s): return g(s) + h(s) + pick(s)",
    ),
    "a member of an enumeration": (
        "import enum\nclass Tag(enum.IntEnum):\n    NOUN = 1\ndef f(s): return Tag.NOUN",
        "import enum\nclass Tag(enum.IntEnum):\n    NOUN = 2\ndef f(s): return Tag.NOUN",
    ),
    "what is swapped": (
        "def g(s): return 1\ndef h(s): return 2\ndef f(s): return g(s) - h(s)",
        "def h(s): return 1\ndef g(s): return 2\ndef f(s): return g(s) - h(s)",
    ),
}


@pytest.mark.parametrize("what", DIFFERENT)
def test_what_matters_changes_the_digest(what: str) -> None:
    one, other = DIFFERENT[what]
    assert digest_of(one) != digest_of(other)


@pytest.mark.parametrize(
    ("one", "other"), [("A = 1", "A = 2"), ("def g(s): return 1", "def g(s): return 2"), ("A = 1", "A = 1.0")]
)
def test_what_is_reached_through_a_module_or_a_package_changes_the_digest(one: str, other: str) -> None:
    read = "M.A" if one.startswith("A") else "M.g(s)"
    flat, nested = f"def f(s): return {read}", f"def f(s): return {read.replace('M', 'P.M')}"

    def digests(source: str) -> list[str]:
        inner = module_of("inner", source)
        return [digest_of(flat, M=inner), digest_of(nested, P=module_of("package", "", M=inner))]

    assert all(a != b for a, b in zip(digests(one), digests(other), strict=True))


def test_a_compiled_helper_counts_as_the_function_it_was_made_from() -> None:
    source = "import numba\n@numba.njit\ndef g(s): return {}\ndef f(s): return g(s)"
    assert digest_of(source.format(1)) == digest_of(source.format(1)) != digest_of(source.format(2))


def test_a_digest_does_not_depend_on_the_process() -> None:
    program = "from lols.kernels.digest import digest_functions\nA = (1, 2.5)\ndef g(s): return A[0]\n"
    program += "def f(s): return g(s) if s[0] in (1, 2) else 0\nprint(digest_functions({'f': f}))"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_every_source_of_this_package_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    read, edited = Path.read_bytes, set[str]()
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * (path.name in edited))
    before = digest._library_digest.__wrapped__()
    for name in ("as_in_python", "backend", "digest", "dual", "hashing", "kernel", "layout", "pipeline", "value_types"):
        edited.add(f"{name}.py")
        assert before != (before := digest._library_digest.__wrapped__()), name


@pytest.mark.parametrize("name", ["features", "state"])
def test_sources_that_compiled_forms_are_made_of_count(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of modules above this package, which it does not know."""
    state = lols.State(t=int)
    function = {"features": lols.emit, "state": state.wrapped({"start": lambda x, s: None})["start"]}[name]
    before, other = digest_functions({"f": function}), digest_functions({"f": lols.mix})
    known = digest._digest_of_file
    monkeypatch.setattr(digest, "_digest_of_file", lambda of: b"edited" if of == f"lols.contract.{name}" else known(of))
    assert digest_functions({"f": function}) != before
    assert digest_functions({"f": lols.mix}) == other


# --- whether functions changed since training -------------------------------------------------------------------------


def test_a_new_version_of_the_library_does_not_change_the_digest_of_a_space(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("task")
    exec("import lols\nfrom lols import emit\ndef f(x, s, out): emit(out, lols.feature(0, s[0]))", vars(module))
    before = source_digest({"features": module.f})
    monkeypatch.setattr(lols, "__version__", "9.9")
    assert source_digest({"features": module.f}) == before
    assert source_digest({"features": lambda x, s, out: None}) != before


def test_globals_that_are_named_like_attributes_do_not_count():
    def made(**others: int) -> str:
        names: dict[str, object] = {"__name__": "script", "STEP": 1, **others}
        exec("def step(x, s, a):\n    s.size[0] += STEP + a\n", names)
        return digest_functions({"step": names["step"]})

    assert made() == made(size=3) == made(size=4)  # such as the variable of a loop around `lols.train`
    assert made() != made(STEP=2)
