"""Who can have put files into a folder: owners and permissions of it and of all folders above it."""

from __future__ import annotations

import grp
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lols.kernels.ownership import fault, opened

pytestmark = pytest.mark.skipif(not hasattr(os, "getuid"), reason="files have no owners")
US, OTHER, GROUP, FAMILY = 1001, 1002, 1001, 500
HERE = "others may write in it"


@pytest.fixture
def seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Folders /.../above/cache that look as if they had these owners, groups and modes."""
    cache = tmp_path / "above" / "cache"
    cache.mkdir(parents=True)
    changed: dict[Path, dict[str, int]] = {}
    look = Path.stat

    def stat(path: Path, **how: Any) -> Any:
        found = look(path, **how)
        said = {"st_uid": 0, "st_gid": 0, "st_mode": 0o40755} | changed.get(path, {})
        return SimpleNamespace(**said) if path == cache or path in cache.parents else found

    import pwd

    names = {
        0: SimpleNamespace(gr_name="root", gr_mem=["root"]),
        GROUP: SimpleNamespace(gr_name="ada", gr_mem=[]),
        FAMILY: SimpleNamespace(gr_name="family", gr_mem=["eve"]),
    }
    monkeypatch.setattr(Path, "stat", stat)
    monkeypatch.setattr(os, "getuid", lambda: US)
    monkeypatch.setattr(pwd, "getpwuid", lambda user: SimpleNamespace(pw_name="ada"))
    monkeypatch.setattr(grp, "getgrgid", names.__getitem__)

    def fault_of(**folders: tuple[int, int, int]) -> str | None:
        changed.clear()
        for name, (user, group, mode) in folders.items():
            path = cache if name == "cache" else cache.parent
            changed[path] = {"st_uid": user, "st_gid": group, "st_mode": 0o40000 | mode}
        found = fault(cache)
        return found and found.replace(str(cache.parent), "above")

    return fault_of


@pytest.mark.parametrize("mode", [0o700, 0o755, 0o500])
def test_folders_of_the_user_and_of_root_are_taken(seen: Any, mode: int) -> None:
    assert seen() is None  # all are of root
    assert seen(cache=(US, GROUP, mode)) is None
    assert seen(cache=(US, GROUP, mode), above=(US, GROUP, mode)) is None


@pytest.mark.parametrize("mode", [0o770, 0o775, 0o702, 0o777, 0o1777])
def test_a_folder_in_which_others_may_write_is_not(seen: Any, mode: int) -> None:
    assert seen(cache=(US, GROUP, mode)) == seen(cache=(0, 0, mode)) == HERE


def test_a_folder_of_another_user_is_not(seen: Any) -> None:
    assert seen(cache=(OTHER, GROUP, 0o755)) == "it belongs to another user"
    assert seen(above=(OTHER, GROUP, 0o755)) == "above belongs to another user"


def test_a_folder_that_others_can_exchange_is_not(seen: Any) -> None:
    for mode in (0o777, 0o757):
        assert seen(cache=(US, GROUP, 0o700), above=(0, 0, mode)) == "others may write in above"
    assert seen(above=(US, FAMILY, 0o775)) == "others may write in above"
    assert seen(above=(US, 501, 0o775)) == "others may write in above"  # a group without a name
    assert seen(above=(US, FAMILY, 0o1775)) is None  # only owners rename
    assert seen(above=(0, 0, 0o1777)) is None  # as /tmp
    assert seen(above=(US, GROUP, 0o775)) is None  # the user's own group
    assert seen(above=(0, 0, 0o775)) is None  # the system's
    grp.getgrgid(0).gr_mem.append("eve")
    assert seen(above=(0, 0, 0o775)) == "others may write in above"


def test_links_are_followed_and_what_is_no_folder_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    (tmp_path / "shared" / "cache").mkdir(mode=0o700)
    (tmp_path / "link").symlink_to(tmp_path / "shared" / "cache")
    assert fault(tmp_path / "link") == f"others may write in {tmp_path}/shared"
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_text("")
    assert fault(tmp_path / "loop") == fault(tmp_path / "none") == "it cannot be read"
    assert fault(tmp_path / "file") == "it is no folder"


def test_only_plain_files_are_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "file").write_bytes(b"content")
    (tmp_path / "link").symlink_to("file")
    assert [opened(tmp_path / name) for name in ("pipe", "link", "none", ".")] == [None] * 4
    file = opened(tmp_path / "file")
    assert file is not None
    with file:
        assert file.read() == b"content"
