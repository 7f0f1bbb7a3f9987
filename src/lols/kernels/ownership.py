"""Whether somebody else can have written a file or put it there: machine code is loaded and run."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import BinaryIO

WRITABLE = stat.S_IWGRP | stat.S_IWOTH  # for others than the owner
UNREAD = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


def fault(place: Path) -> str | None:
    """Why others can put files into a folder; None if only the user and the system can.

    It and all folders above it must belong to the user or to root, and none else may write in it. Above it others may,
    where only owners rename (the sticky bit), and so may a group that has no other member.
    """
    if not hasattr(os, "getuid"):
        return None
    try:
        real = place.resolve(strict=True)
        for folder in (real, *real.parents):
            status, where = folder.stat(), "it" if folder == real else str(folder)
            if not stat.S_ISDIR(status.st_mode):
                return f"{where} is no folder"
            if status.st_uid not in (os.getuid(), 0):
                return f"{where} belongs to another user"
            safe_for_parents = status.st_mode & stat.S_ISVTX or _only_group(status)
            if status.st_mode & WRITABLE and (folder == real or not safe_for_parents):
                return f"others may write in {where}"
    except (OSError, RuntimeError):  # a chain of links that does not end
        return "it cannot be read"
    return None


def _only_group(status: os.stat_result) -> bool:
    """Whether a folder may be written by its group alone, and this is the user's own or root's, without others."""
    if status.st_mode & stat.S_IWOTH:
        return False
    import grp
    import pwd

    try:
        user, group = pwd.getpwuid(os.getuid()).pw_name, grp.getgrgid(status.st_gid)
    except KeyError:
        return False
    return (group.gr_name == user or status.st_gid == 0) and {*group.gr_mem} <= {user, "root"}


def opened(path: Path) -> BinaryIO | None:
    """A file to be read, if it is there and only the user and the system may write it."""
    try:
        file = open(os.open(path, os.O_RDONLY | UNREAD), "rb")  # noqa: SIM115
    except OSError:
        return None
    status = os.fstat(file.fileno())  # of what will be read, whatever has this name by now
    if stat.S_ISREG(status.st_mode) and _ours(status):
        return file
    file.close()
    return None


def _ours(status: os.stat_result) -> bool:
    return not hasattr(os, "getuid") or (status.st_uid in (os.getuid(), 0) and not status.st_mode & WRITABLE)
