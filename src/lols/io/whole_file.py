"""Write a file as a whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from lols.errors import LolsError

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

MOST_LINKS = 40  # that are followed, as by Linux


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """Write a file under a temporary name and rename it, so that an interruption leaves the old file or the new one.

    >>> import tempfile; path = tempfile.mkdtemp() + "/file.txt"
    >>> write_whole(path, b"content")
    >>> Path(path).read_bytes(), os.listdir(Path(path).parent)
    (b'content', ['file.txt'])
    """
    with whole_file(path) as file:
        file.write(content)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn the errors of writing a file into one line that names it."""
    try:
        yield
    except OSError as error:
        raise LolsError(f"{path}: cannot be written: {error.strerror or error}") from error


@contextlib.contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to be written as a whole: it has its name when all is written, and is not there after an error.

    A file that is overwritten keeps its permissions and, where that is allowed, its owner; of a symbolic link, the file
    is written to which it leads. What is no plain file, such as /dev/null, is written as it is. Temporary files that
    processes left when they were killed while they wrote this file are deleted.
    """
    path = Path(path)
    with _writing(path):
        if path.is_dir():
            raise IsADirectoryError(21, "it is a folder")
        path = _followed(path)
        if _special(path):
            with open(path, "wb") as special:
                yield special
            return
        _sweep(path)
        temporary, file = _temporary(path)
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                if fcntl is not None:
                    os.replace(temporary, path)  # while it is locked, so that nobody sweeps it
            if fcntl is None:
                os.replace(temporary, path)
        finally:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)


def check_writable(path: str | os.PathLike[str]) -> None:
    """Raise an error if a file cannot be written, found out by writing a temporary one beside it."""
    path = Path(path)
    with _writing(path):
        path = _followed(path)
        if _special(path):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary, file = _temporary(path)
        try:
            with file:
                file.write(b"?")
        finally:
            temporary.unlink(missing_ok=True)


def check_output(path: str | os.PathLike[str], *read: str | os.PathLike[str] | None) -> None:
    """Raise an error, before the work, if a file cannot be written where the user wants it; no folder is made.

    The files that are `read` must stay.
    """
    path = Path(path)
    with _writing(path):
        if path.exists() and any(each and os.path.exists(each) and path.samefile(each) for each in read):
            raise LolsError(f"{path}: is one of the files that are read; give the output another name")
        if path.is_dir():
            raise LolsError(f"{path}: is a folder; name a file in it")
        folder = _followed(path).parent
        if not folder.is_dir():
            raise LolsError(f"{path}: there is no folder {folder}; make it first")
    check_writable(path)


def remove(path: Path) -> None:
    """Delete a file, if it is there, and the temporary ones that killed processes left of it."""
    written = _followed(path)
    path.unlink(missing_ok=True)
    _sweep(written)


def _followed(path: Path) -> Path:
    """The file to which a symbolic link leads; the path itself if it is none."""
    for _ in range(MOST_LINKS):
        # in /proc are open files, to which /dev/stdout leads: what they were opened as is only a name
        if not path.is_symlink() or path.parent.resolve().is_relative_to("/proc"):
            return path
        _check_link(path)
        path = path.parent / os.readlink(path)
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _check_link(path: Path) -> None:
    """Refuse a link that another user has put into a folder where all may write, as Linux does for who opens it."""
    folder = path.parent.stat()
    for_all = folder.st_mode & stat.S_ISVTX and folder.st_mode & stat.S_IWOTH
    if for_all and hasattr(os, "geteuid") and path.lstat().st_uid not in (os.geteuid(), folder.st_uid):
        raise PermissionError(errno.EACCES, "the link is another user's")


def _special(path: Path) -> bool:
    """Whether a file cannot be replaced by another: a device, a pipe, an open file of this process."""
    return path.exists() and (path.is_symlink() or not path.is_file())


def _temporary(path: Path) -> tuple[Path, BinaryIO]:
    """A new temporary file beside this one, with its permissions, locked as long as it is open."""
    while True:
        # Not by `tempfile`, so that the file has the permissions of any new file.
        temporary = path.with_name(f".{path.name}.{os.getpid()}.{time.monotonic_ns()}.tmp")
        old = None
        with contextlib.suppress(FileNotFoundError):
            old = path.stat()
        handle = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666 if old is None else 0o600)
        file = open(handle, "wb")  # noqa: SIM115
        if old is not None:
            _take_over(handle, temporary, old)
        lock(file.fileno(), wait=True)
        if os.fstat(file.fileno()).st_nlink:
            return temporary, file
        file.close()  # swept by another process before it was locked


def _take_over(handle: int, temporary: Path, old: os.stat_result) -> None:
    """Give a file the permissions of another, and its owner and group if that is allowed."""
    if hasattr(os, "fchown"):
        for owner in ((old.st_uid, old.st_gid), (-1, old.st_gid)):
            with contextlib.suppress(OSError):
                os.fchown(handle, *owner)
                break
    mode = stat.S_IMODE(old.st_mode) & 0o777
    if os.fstat(handle).st_gid != old.st_gid:
        mode &= ~stat.S_IRWXG  # what one group may do is not for another
    with contextlib.suppress(OSError):  # on a file system without permissions
        os.chmod(temporary, mode)


def lock(handle: int, *, wait: bool) -> bool:
    """Lock a file or a folder as long as it is open; False if another process has it, or if there are no locks."""
    if fcntl is None:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError:  # locked, or on a file system without locks
        return False
    return True


def _sweep(path: Path) -> None:
    """Delete the temporary files of this file that no process is writing: those are not locked."""
    ours = re.compile(rf"\.{re.escape(path.name)}\.\d+\.\d+\.tmp")
    with contextlib.suppress(OSError):
        for name in [name for name in os.listdir(path.parent) if ours.fullmatch(name)]:
            with contextlib.suppress(OSError), open(path.parent / name, "rb") as file:
                if lock(file.fileno(), wait=False):
                    os.unlink(path.parent / name)
