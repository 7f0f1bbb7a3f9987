"""Kernels on disk: object files that processes share, what happens without them, and how they are compiled."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.datasets.worlds import tagging_references, tagging_space
from lols.engine.predict import predict_kernel
from lols.kernels import ahead, store
from lols.kernels.digest import digest_functions
from lols.kernels.dual import needs
from lols.kernels.kernel import DISABLED, CompilerError, Kernel

# --- object files -----------------------------------------------------------------------------------------------------

PROGRAM = """
import sys
import numpy as np
from lols.kernels.kernel import Kernel, compile_seconds

def squares(values):
    made = 0.0
    for k in range(values.size):
        made += values[k] * values[k]
    return made

assert Kernel(squares)(True, np.arange(4.0)) == 14.0
print(f"compiled={compile_seconds() > 0} numba={'numba' in sys.modules}")
"""


def run(folder: Path, program: str = PROGRAM, **environment: str) -> str:
    given = os.environ | {"LOLS_CACHE": str(folder)} | environment
    found = subprocess.run(
        [sys.executable, "-c", program], env=given, capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode == 0, found.stderr
    return found.stdout.strip()


COLD, WARM = "compiled=True numba=True", "compiled=False numba=False"


def test_a_second_process_needs_no_compiler(tmp_path: Path) -> None:
    assert [run(tmp_path), run(tmp_path)] == [COLD, WARM]


def test_processes_that_compile_the_same_kernel_at_once_do_not_disturb_each_other(tmp_path: Path) -> None:
    given = os.environ | {"LOLS_CACHE": str(tmp_path)}
    started = [
        subprocess.Popen([sys.executable, "-c", PROGRAM], env=given, stdout=subprocess.PIPE, text=True)
        for _ in range(3)
    ]
    said = [process.communicate(timeout=120)[0] for process in started]
    assert all(process.returncode == 0 for process in started) and all("compiled=" in words for words in said)
    files = list((tmp_path / "lols").iterdir())
    assert len(files) == 1 and files[0].suffix == ".o"
    assert run(tmp_path) == WARM


def harmed(whole: bytes) -> dict[str, bytes]:
    """Files of a kernel that cannot be read."""
    return {
        "cut": whole[:-20],
        "changed": whole[:-9] + bytes([whole[-9] ^ 1]) + whole[-8:],
        "other version": whole.replace(b"lols kernel 2", b"lols kernel 1"),
        "empty": b"",
    }


def test_what_cannot_be_read_is_compiled_again(tmp_path: Path) -> None:
    run(tmp_path)
    (file,) = (tmp_path / "lols").iterdir()
    file.write_bytes(harmed(file.read_bytes())["changed"])
    assert [run(tmp_path), run(tmp_path)] == [COLD, WARM]


def warned(folder: Path, **environment: str) -> tuple[str, str]:
    """What the program says, and the one warning that it gives, if any."""
    given = os.environ | {"LOLS_CACHE": str(folder), "NUMBA_CACHE_DIR": str(folder)} | environment
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=given, capture_output=True, text=True, timeout=120, check=False
    )
    assert found.returncode == 0 and found.stderr.count("RuntimeWarning") <= 1, found.stderr
    return found.stdout.strip(), found.stderr.partition("RuntimeWarning: ")[2].partition("\n")[0]


def test_without_a_writable_cache_kernels_are_kept_in_a_private_folder(tmp_path: Path) -> None:
    blocked, temporary = tmp_path / "file", tmp_path / "temporary"
    blocked.write_text("not a folder")
    temporary.mkdir()
    home = {"HOME": str(blocked), "XDG_CACHE_HOME": str(blocked), "TMPDIR": str(temporary)}
    private = temporary / f"lols-{os.getuid()}"
    says = f"{blocked}/lols cannot be written: compiled kernels are kept in {private}; let LOLS_CACHE"
    said, warning = warned(blocked, **home)
    assert said == COLD and warning.startswith(says)
    assert private.stat().st_mode & 0o777 == 0o700 and len(list(private.iterdir())) == 1
    assert warned(blocked, **home) == (WARM, "")
    private.chmod(0o755)  # somebody else may have looked, or worse
    said, warning = warned(blocked, **home)
    assert said == COLD and "kernels are compiled again in every process" in warning


@pytest.mark.parametrize("kind", ["of others", "a link", "not there"])
def test_a_private_folder_is_private_or_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.setattr(
        store.tempfile, "gettempdir", lambda: str(tmp_path / "gone" if kind == "not there" else tmp_path)
    )
    if kind == "of others":
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        (tmp_path / "lols-12345").mkdir(mode=0o700)
    elif kind == "a link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        (tmp_path / f"lols-{os.getuid()}").symlink_to(tmp_path / "elsewhere")
    assert store._private() is None


def test_kernels_that_come_with_an_installation_are_used_though_nothing_can_be_written_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, own = tmp_path / "image", tmp_path / "own"
    for place in (image, own):
        place.mkdir(mode=0o700)
    monkeypatch.setattr(store, "usual", lambda: (image, own))
    monkeypatch.setattr(store, "places", store.places.__wrapped__)
    monkeypatch.setattr(store, "folder", lambda: image)
    store.keep("built", b"code", "x ")
    monkeypatch.setattr(store, "folder", lambda: own)
    monkeypatch.setattr(store, "warn", store.functools.cache(store.warn.__wrapped__))
    assert store.find("built") == (b"code", "x ") and store.holds("built")
    with pytest.warns(RuntimeWarning, match="image cannot be written: compiled kernels are kept in"):
        store.keep("new", b"more", "x ")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        store.keep("newer", b"more", "x ")
    assert sorted(file.name for file in own.iterdir()) == ["new.o", "newer.o"]
    for mode in (0o777, 0o775):  # others may have put machine code there
        image.chmod(mode)
        assert store.find("built") is None and not store.holds("built")


def test_a_folder_that_others_can_exchange_is_not_used(tmp_path: Path) -> None:
    """In a process of its own: whoever may write above the folder may put another one in its place."""
    shared, home = tmp_path / "shared", {"HOME": str(tmp_path), "XDG_CACHE_HOME": "", "TMPDIR": str(tmp_path)}
    shared.mkdir()
    shared.chmod(0o777)
    for mode, says in ((0o777, f"/own/lols is not used, because others may write in {shared}: compiled"), (0o1777, "")):
        shared.chmod(mode)
        warning = warned(shared / "own", **home)[1]
        assert says in warning and bool(warning) == bool(says)


def test_a_link_to_the_cache_is_followed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was looked at is what is used, wherever the link leads later on."""
    (tmp_path / "own").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "own")
    monkeypatch.setenv("LOLS_CACHE", str(tmp_path / "link"))
    assert store.usual.__wrapped__()[0] == tmp_path.resolve() / "own" / "lols"


@pytest.mark.parametrize("harm", ["writable for its group", "writable for all", "of another user", "a link"])
def test_a_file_that_others_may_have_written_is_not_loaded(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, harm: str
) -> None:
    name = stored(shelf, 1)
    path = shelf / f"{name}.o"
    assert store.find(name) is not None and store.holds(name)
    if harm == "of another user":
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        monkeypatch.setattr(os, "fstat", of_user(54321))
    elif harm == "a link":
        path.rename(shelf / "elsewhere")
        path.symlink_to(shelf / "elsewhere")
    else:
        path.chmod(0o620 if "group" in harm else 0o606)
    assert store.find(name) is None and not store.holds(name)


def of_user(number: int) -> Any:
    look = os.fstat

    def seen(handle: int) -> os.stat_result:
        status = list(look(handle))
        status[4] = number
        return os.stat_result(status)

    return seen


def test_missing_folders_are_made_for_the_user_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOLS_CACHE", "")
    monkeypatch.setattr(store, "usual", lambda: (tmp_path / "a" / "b" / "lols",))
    mask = os.umask(0)
    try:
        assert store.folder.__wrapped__() == tmp_path / "a" / "b" / "lols"
    finally:
        os.umask(mask)
    assert {place.stat().st_mode & 0o777 for place in (tmp_path / "a", tmp_path / "a" / "b")} == {0o700}


def test_another_version_or_processor_has_other_files(monkeypatch: pytest.MonkeyPatch) -> None:
    here = store.name_of("kernel")
    monkeypatch.setattr(store, "machine", lambda: "another version, another processor")
    assert store.name_of("kernel") != here


# What a module holds, and what Numba brings along, must be there in a process that does not compile, too.
LARGE = """
import math, sys
import numpy as np
from lols.kernels.kernel import Kernel, compile_seconds

TABLE = np.arange(300_000.0)

def look(at):
    return TABLE[at]

def gamma(at):
    return math.gamma(at)

print(Kernel(look)(True, 299_999), compile_seconds() > 0)
seconds = compile_seconds()
print(Kernel(gamma)(True, 5.0), compile_seconds() > seconds)
"""


def test_large_arrays_of_a_module_and_functions_of_numba_are_there_in_the_next_process(tmp_path: Path) -> None:
    """An array whose address is in the code is looked for again in each process, so that the code is made again."""
    assert run(tmp_path, LARGE) == "299999.0 True\n24.0 True"
    assert run(tmp_path, LARGE) == "299999.0 True\n24.0 False"


def test_how_a_function_is_compiled_is_part_of_its_digest() -> None:
    def plain(search):
        return search

    def marked(search):
        return search

    before = digest_functions({"f": plain})
    assert digest_functions({"f": needs("space", "key", 1)(marked)}) not in (before, digest_functions({"f": plain}))


@pytest.mark.parametrize(("named", "modes"), [(True, (0o755, 0o644)), (False, (0o700, 0o600))])
def test_others_may_read_the_cache_that_is_named(tmp_path, monkeypatch, named, modes) -> None:
    monkeypatch.setenv("LOLS_CACHE", str(tmp_path) if named else "")
    monkeypatch.setattr(store, "usual", lambda: (tmp_path / "lols",))
    monkeypatch.setattr(store, "folder", store.folder.__wrapped__)
    store.keep("built", b"code", "x ")
    found = (tmp_path / "lols", tmp_path / "lols" / "built.o")
    assert tuple(path.stat().st_mode & 0o777 for path in found) == modes


# --- the size of the folder -------------------------------------------------------------------------------------------


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "usual", lambda: (tmp_path,))
    monkeypatch.setattr(store, "folder", lambda: tmp_path)
    monkeypatch.setattr(store, "places", lambda: (tmp_path,))
    return tmp_path


def stored(shelf: Path, number: int, age: float = 0.0) -> str:
    """Store a kernel of about 1,000 bytes that was last used some seconds ago."""
    name = store.name_of(str(number))
    store.keep(name, bytes(1000), "x ")
    used = time.time() - age
    os.utime(shelf / f"{name}.o", (used, used))
    return name


@pytest.mark.parametrize("harm", ["cut", "changed", "other version", "empty"])
def test_what_cannot_be_read_is_not_found(shelf: Path, harm: str) -> None:
    name = stored(shelf, 1)
    file = shelf / f"{name}.o"
    whole = file.read_bytes()
    file.write_bytes(harmed(whole)[harm])
    assert file.read_bytes() != whole and store.find(name) is None


def test_the_least_recently_used_kernels_are_deleted(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [stored(shelf, k, age=1000.0 - k) for k in range(5)]
    assert store.find(names[0]) is not None  # from now on the most recently used one
    monkeypatch.setattr(store, "MOST_BYTES", 4000)
    newest = stored(shelf, 5)
    assert [store.holds(name) for name in (*names, newest)] == [True, False, False, False, True, True]


def test_files_that_killed_processes_left_are_deleted_and_files_of_others_are_not(shelf: Path) -> None:
    name = store.name_of("left")
    left, recent, other = (shelf / file for file in (f"{name}.abcd_123", f"{name}.abcd_456", "notes.o"))
    for file in (left, recent, other):
        file.write_bytes(b"...")
    for file in (left, other):
        os.utime(file, (0, 0))
    stored(shelf, 1)
    assert [file.exists() for file in (left, recent, other)] == [False, True, True]


def test_processes_that_tidy_up_at_once_do_not_disturb_each_other(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MOST_BYTES", 5000)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: stored_by_somebody(shelf, k), range(80)))
    assert 1 <= len(list(shelf.glob("*.o"))) <= 8 and not [f for f in shelf.iterdir() if f.suffix != ".o"]


def stored_by_somebody(shelf: Path, number: int) -> None:
    name = store.name_of(str(number))
    store.keep(name, bytes(1000), "x ")
    assert store.find(name) in (None, (bytes(1000), "x "))


# --- errors of the compiler and the loader ----------------------------------------------------------------------------


def no_memory(*_: object, **__: object) -> int:
    raise OSError("Cannot allocate memory")


def broken(*_: object) -> tuple[bytes, str]:
    raise RuntimeError("LLVM ERROR: out of registers")


def first(values):
    return values[0]


@pytest.mark.skipif(DISABLED, reason="nothing is compiled")
def test_an_error_of_the_loader_is_named(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "load", no_memory)
    with pytest.raises(CompilerError, match="kernel `first` could not be compiled or loaded: OSError: Cannot a"):
        Kernel(first)(True, np.arange(3))


@pytest.mark.skipif(DISABLED, reason="nothing is compiled")
def test_a_stored_kernel_that_cannot_be_loaded_is_compiled_again(shelf: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert Kernel(first)(True, np.arange(3, 6)) == 3
    load, calls = store.load, []

    def fails_once(*arguments: Any, **options: Any) -> int:
        calls.append(arguments)
        return no_memory() if len(calls) == 1 else load(*arguments, **options)

    monkeypatch.setattr(store, "load", fails_once)
    assert Kernel(first)(True, np.arange(3, 6)) == 3 and len(calls) == 2


@pytest.mark.skipif(DISABLED, reason="nothing is compiled")
@pytest.mark.parametrize(
    ("part", "fails", "says"),
    [
        ("load", no_memory, "OSError: Cannot allocate memory"),
        (
            "compile",
            broken,
            "RuntimeError: LLVM ERROR: out of registers",
        ),
    ],
)
def test_an_error_of_the_compiler_is_not_blamed_on_the_space(
    shelf: Path, monkeypatch: pytest.MonkeyPatch, part: str, fails: Any, says: str
) -> None:
    from lols.kernels import backend

    space, data = tagging_space(labels=3), [{"words": [4, 5], "tags": [0, 2]}]
    model = lols.train(space, data, tagging_references()["optimal"], compiled=False)
    model.compiled = True
    monkeypatch.setattr(predict_kernel, "_loaded", {})
    if part == "load":
        monkeypatch.setattr(store, "load", fails)
    else:
        monkeypatch.setattr(backend, "compile_kernel", fails)
    with pytest.raises(CompilerError, match=f"kernel `predict` could not be compiled or loaded: {says}"):
        model.predict(data)


# --- the compiler -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT", "0") == "1", reason="nothing is compiled")
def test_this_version_of_numba_compiles_kernels_in_one_pass() -> None:
    from lols.kernels import backend

    assert backend.PIPELINE is not None, (
        "kernels/pipeline.py uses what this version of Numba has changed: kernels still work, but take several "
        "times as long to compile"
    )


# Trains as plain Python, and predicts compiled: one kernel of middle size.
PREDICT = """
import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space

data = tagging_data(20, labels=3, words=30)
model = lols.train(tagging_space(labels=3), data, tagging_references()["optimal"], seed=1, compiled=False)
model.compiled = True
print(model.predict(data))
"""


@pytest.mark.slow
def test_numbas_own_compiler_gives_the_same_results(tmp_path: Path) -> None:
    assert run(tmp_path, PREDICT) == run(tmp_path, PREDICT, LOLS_PLAIN_COMPILER="1") != "[]"


# Two kernels at once, of which another process compiles the second.
BESIDE = """
import numpy as np
from lols.kernels.ahead import compile_ahead
from lols.kernels.kernel import Kernel

def sums(values):
    made = 0.0
    for k in range(values.size):
        made += values[k]
    return made

def products(values):
    made = 1.0
    for k in range(values.size):
        made *= values[k]
    return made

values, kernels = np.arange(1.0, 5.0), [Kernel(sums), Kernel(products)]
compile_ahead([(kernel, (values,)) for kernel in kernels])
assert [kernel.has(kernel.layout_of(values)) for kernel in kernels] == [AHEAD, False]
print([kernel(True, values) for kernel in kernels])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="there are no such processes")
def test_a_process_beside_this_one_compiles_the_others(tmp_path: Path) -> None:
    for on in ("1", "0"):
        program = BESIDE.replace("AHEAD", str(on == "1" and len(os.sched_getaffinity(0)) > 1))
        assert run(tmp_path / on, program, LOLS_COMPILE_AHEAD=on) == "[10.0, 24.0]"
        assert len(list((tmp_path / on / "lols").glob("*.o"))) == 2


def test_a_process_beside_this_one_that_dies_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    process = os.fork()
    if process == 0:
        os._exit(1)
    monkeypatch.setitem(ahead._UNDER_WAY, "no such kernel", process)
    assert ahead.wait_for("no such kernel") is None
