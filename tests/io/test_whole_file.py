"""Files that are there as a whole or not at all, and what killed processes leave of them."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lols.errors import LolsError
from lols.io import whole_file
from lols.io.whole_file import check_writable, remove, write_whole

# Begins to write a file, says so, and waits to be killed.
WRITER = """
import sys, time
from lols.io.whole_file import whole_file
with whole_file(sys.argv[1]) as file:
    file.write(b"half")
    file.flush()
    print("writing", flush=True)
    time.sleep(60)
"""


def writer(path: Path) -> subprocess.Popen[str]:
    started = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True)
    assert started.stdout is not None and started.stdout.readline() == "writing\n"
    return started


@pytest.mark.skipif(whole_file.fcntl is None, reason="there are no locks")
def test_what_a_killed_process_left_is_swept_and_what_a_running_one_writes_is_not(tmp_path: Path) -> None:
    path = tmp_path / "model.lols"
    others = [".model.lols.1.tmp", ".model.lols.best.1.2.tmp", "model.lols.1.2.tmp", ".other.lols.1.2.tmp"]
    for name in others:
        (tmp_path / name).write_text("not ours")
    killed, running = writer(path), writer(path)
    try:
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        left = {name for name in os.listdir(tmp_path) if name not in others}
        assert len(left) == 2
        write_whole(path, b"whole")
        assert path.read_bytes() == b"whole"
        (kept,) = {name for name in os.listdir(tmp_path) if name not in (*others, "model.lols")}
        assert f".{running.pid}." in kept
    finally:
        running.kill()
        running.wait()
    remove(path)
    assert sorted(os.listdir(tmp_path)) == sorted(others)


@pytest.mark.skipif(whole_file.fcntl is None, reason="there are no locks")
def test_a_file_that_is_swept_before_it_is_locked_is_made_again(tmp_path: Path, monkeypatch: Any) -> None:
    lock, swept = whole_file._lock, []

    def late(handle: int, *, wait: bool) -> bool:
        if wait and not swept:
            swept.extend(tmp_path.iterdir())
            swept[0].unlink()
        return lock(handle, wait=wait)

    monkeypatch.setattr(whole_file, "_lock", late)
    write_whole(tmp_path / "file", b"whole")
    assert swept and (tmp_path / "file").read_bytes() == b"whole"


def refused(number: int) -> Any:
    def fails(*_: Any, **__: Any) -> Any:
        raise OSError(number, os.strerror(number))

    return fails


@pytest.mark.parametrize(
    ("call", "number"), [("open", errno.EROFS), ("open", errno.EACCES), ("fsync", errno.ENOSPC), ("replace", errno.EIO)]
)
def test_an_error_of_the_disk_leaves_the_old_file(tmp_path: Path, monkeypatch: Any, call: str, number: int) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    monkeypatch.setattr(os, call, refused(number))
    with pytest.raises(LolsError, match=f"file: cannot be written: {os.strerror(number)}"):
        write_whole(path, b"new")
    monkeypatch.undo()
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["file"]


def test_what_is_no_plain_file_is_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_whole(pipe, b"content")
    assert os.read(reader, 100) == b"content" and pipe.is_fifo()
    os.close(reader)
    with pytest.raises(LolsError, match="/dev/full: cannot be written: No space left"):
        write_whole("/dev/full", b"content")


def test_whether_a_file_can_be_written_is_tried(tmp_path: Path, monkeypatch: Any) -> None:
    check_writable(tmp_path / "new" / "file")
    assert os.listdir(tmp_path / "new") == []
    monkeypatch.setattr(os, "open", refused(errno.EROFS))
    with pytest.raises(LolsError, match="file: cannot be written: Read-only file system"):
        check_writable(tmp_path / "file")
