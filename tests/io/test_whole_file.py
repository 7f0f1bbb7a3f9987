"""Files that are there as a whole or not at all, and what killed processes leave of them."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lols.errors import LolsError
from lols.io import whole_file
from lols.io.whole_file import check_output, check_writable, remove, write_whole

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
    lock, swept = whole_file.lock, []

    def late(handle: int, *, wait: bool) -> bool:
        if wait and not swept:
            swept.extend(tmp_path.iterdir())
            swept[0].unlink()
        return lock(handle, wait=wait)

    monkeypatch.setattr(whole_file, "lock", late)
    write_whole(tmp_path / "file", b"whole")
    assert swept and (tmp_path / "file").read_bytes() == b"whole"


def test_what_one_group_may_do_is_not_for_another(tmp_path: Path, monkeypatch: Any) -> None:
    """Where the group of a file cannot be kept, it is not readable for the group that its successor has."""
    path = tmp_path / "model.lols"
    path.write_text("old")
    path.chmod(0o660)
    old = os.stat_result((*path.stat()[:5], path.stat().st_gid + 1, *path.stat()[6:10]))
    monkeypatch.setattr(os, "fchown", refused(errno.EPERM))
    with open(path, "r+b") as file:
        whole_file._take_over(file.fileno(), path, old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="files have no owners")
def test_a_link_of_another_user_is_not_written_through(tmp_path: Path, monkeypatch: Any) -> None:
    """As in /tmp: whose link it is, decides, where all may write and only owners rename."""
    folder, target = tmp_path / "shared", tmp_path / "target"
    folder.mkdir()
    target.write_text("old")
    (folder / "link").symlink_to(target)
    us = os.geteuid()
    for mode, owner, written in ((0o755, us + 1, True), (0o1777, us, True), (0o1777, us + 1, False)):
        folder.chmod(mode)
        look, now = Path.lstat, owner

        def lstat(path: Path, look: Any = look, now: int = now) -> Any:
            return os.stat_result((*look(path)[:4], now, *look(path)[5:10]))

        target.write_text("old")
        with monkeypatch.context() as patched:
            patched.setattr(Path, "lstat", lstat)
            if written:
                write_whole(folder / "link", b"new")
            else:
                with pytest.raises(LolsError, match=r"link: cannot be written: the link is another user's$"):
                    write_whole(folder / "link", b"new")
        assert target.read_text() == ("new" if written else "old") and (folder / "link").is_symlink()


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


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o664, 0o755])
def test_a_file_that_is_overwritten_keeps_its_permissions(tmp_path: Path, mode: int) -> None:
    path, seen = tmp_path / "model.lols", []
    path.write_text("old")
    path.chmod(mode)
    with whole_file.whole_file(path) as file:
        file.write(b"new")
        seen = [stat.S_IMODE(each.stat().st_mode) for each in tmp_path.iterdir()]
    assert seen == [mode, mode]  # while it is written, too
    assert path.read_text() == "new" and stat.S_IMODE(path.stat().st_mode) == mode


@pytest.mark.skipif(not hasattr(os, "getuid") or os.getuid() != 0, reason="only root may give files away")
def test_a_file_that_is_overwritten_keeps_its_owner(tmp_path: Path, monkeypatch: Any) -> None:
    path, change = tmp_path / "model.lols", os.fchown
    path.write_text("old")
    os.chown(path, 1234, 2345)
    write_whole(path, b"new")
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 2345)

    def of_others(handle: int, user: int, group: int) -> None:
        if user != -1:
            raise PermissionError(errno.EPERM, "not root")
        change(handle, user, group)

    monkeypatch.setattr(os, "fchown", of_others)
    write_whole(path, b"newer")
    assert (path.stat().st_uid, path.stat().st_gid) == (os.getuid(), 2345)


def test_a_file_is_written_through_symbolic_links(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    target, link, beside = tmp_path / "store" / "v2.lols", tmp_path / "live.lols", tmp_path / "again.lols"
    link.symlink_to(Path("store", "v2.lols"))
    beside.symlink_to(link)
    for content in (b"first", b"second"):  # the target need not be there yet
        check_output(beside)
        check_writable(beside)
        write_whole(beside, content)
        assert target.read_bytes() == content and link.is_symlink() and beside.is_symlink()
        target.chmod(0o600)
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    (tmp_path / "store" / ".v2.lols.1.2.tmp").write_text("left by a killed process")
    remove(beside)
    assert os.listdir(tmp_path / "store") == ["v2.lols"] and sorted(os.listdir(tmp_path)) == ["live.lols", "store"]


def test_links_that_lead_nowhere_are_errors(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    (tmp_path / "c").symlink_to(Path("no", "file"))
    for call in (lambda path: write_whole(path, b""), check_output):
        with pytest.raises(LolsError, match=r"a: cannot be written: Too many levels of symbolic links"):
            call(tmp_path / "a")
    with pytest.raises(LolsError, match=r"c: there is no folder .*no; make it first"):
        check_output(tmp_path / "c")
    assert sorted(os.listdir(tmp_path)) == ["a", "b", "c"] and (tmp_path / "a").is_symlink()


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="open files have no names")
def test_open_files_and_pipes_by_name_are_written_as_they_are(tmp_path: Path) -> None:
    link = tmp_path / "stdout"  # as /dev/stdout is one
    link.symlink_to("/proc/self/fd/1")
    program = [sys.executable, "-c", f"from lols.io.whole_file import write_whole; write_whole({str(link)!r}, b'all')"]
    assert subprocess.run(program, stdout=subprocess.PIPE, check=True).stdout == b"all"
    with open(tmp_path / "out", "wb") as out:
        subprocess.run(program, stdout=out, check=True)
        assert (tmp_path / "out").stat().st_ino == os.fstat(out.fileno()).st_ino
        write_whole(f"/dev/fd/{out.fileno()}", b"more of it")
    assert (tmp_path / "out").read_bytes() == b"more of it"
    assert sorted(os.listdir(tmp_path)) == ["out", "stdout"] and link.is_symlink()


def test_whether_a_file_can_be_written_is_tried(tmp_path: Path, monkeypatch: Any) -> None:
    check_writable(tmp_path / "new" / "file")
    assert os.listdir(tmp_path / "new") == []
    monkeypatch.setattr(os, "open", refused(errno.EROFS))
    with pytest.raises(LolsError, match="file: cannot be written: Read-only file system"):
        check_writable(tmp_path / "file")
