"""Folders in memory that processes share: those of owners that were killed are removed, and no others."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lols.engines import Processes
from lols.engines.processes import MEMORY, PREFIX

pytestmark = pytest.mark.skipif(not os.access(MEMORY, os.W_OK), reason="there is no /dev/shm")

RUN = """
import sys
from lols.engines import Processes

workers = Processes(workers=1).start()
shared = workers.share(list(range(1000)))
assert list(workers.map(len, ["ab"])) == [2]
print(shared.path, flush=True)
sys.stdin.read()
workers.close()
"""


@contextlib.contextmanager
def running() -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run in a process of its own, and what it shares."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", RUN], text=True, **pipes) as process:  # type: ignore[call-overload]
        try:
            yield process, Path(process.stdout.readline().strip())
        finally:
            process.kill()


def test_what_a_killed_run_leaves_is_removed_at_the_next_start() -> None:
    with running() as (killed, left), running() as (living, kept):
        assert left.is_file() and kept.is_file()
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        assert left.is_file()
        with Processes(workers=1).start():
            assert not left.parent.exists()
            assert kept.is_file()
        living.communicate("")  # it comes to its end
        assert living.returncode == 0 and not kept.parent.exists()


def test_only_what_this_user_has_left_is_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lols.engines.processes.MEMORY", tmp_path)
    for name in (f"{PREFIX}left", "lols-other", "elsewhere"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "0").touch()
    (tmp_path / f"{PREFIX}link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / f"{PREFIX}file").touch()
    kept = {"lols-other", "elsewhere", f"{PREFIX}link", f"{PREFIX}file"}
    with monkeypatch.context() as another:
        another.setattr(os, "geteuid", lambda: os.getuid() + 1)
        Processes(workers=1).start().close()
    assert {each.name for each in tmp_path.iterdir()} == {*kept, f"{PREFIX}left"}
    Processes(workers=1).start().close()
    assert {each.name for each in tmp_path.iterdir()} == kept
    assert (tmp_path / "elsewhere" / "0").is_file()


def test_the_child_of_a_fork_leaves_the_folder_to_its_parent() -> None:
    with Processes(workers=1).start() as workers:
        child = os.fork()
        if child == 0:
            workers._remove()
            os._exit(0)
        os.waitpid(child, 0)
        assert workers._folder.is_dir()
    assert not workers._folder.exists()
