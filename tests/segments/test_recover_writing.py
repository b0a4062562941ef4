"""What `recover` writes: new files only, whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from coordwire.files import staged
from coordwire.segments import recover

from .build import write
from .recovering import DATA, saved


@pytest.mark.parametrize(
    "kind", ["log", "index", "timeindex", "txnindex", "log.quarantine", "log.quarantine.jsonl"]
)
def test_nothing_is_overwritten(tmp_path: Path, kind: str) -> None:
    path = write(tmp_path, DATA + b"junk")
    out = tmp_path / "out"
    out.mkdir()
    taken = out / f"{path.stem}.{kind}"
    taken.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        list(recover([path], out))
    assert list(out.iterdir()) == [taken]
    assert taken.read_bytes() == b"precious"


def test_not_into_its_own_folder(tmp_path: Path) -> None:
    path = write(tmp_path, DATA)
    with pytest.raises(FileExistsError):
        list(recover([path], path.parent))
    assert list(path.parent.iterdir()) == [path]


def test_two_of_one_name(tmp_path: Path) -> None:
    paths = [write(tmp_path, DATA), write(tmp_path, DATA, name="orders-1")]
    with pytest.raises(ValueError, match="two segments"):
        list(recover(paths, tmp_path / "out"))


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, DATA + b"junk")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        list(recover([path], tmp_path / "out"))
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
@pytest.mark.parametrize("unnamed", [True, False])
@pytest.mark.parametrize("call", ["fsync", "link"])
@pytest.mark.parametrize("after", range(7))
def test_whatever_stops_it_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    unnamed: bool,
    call: str,
    after: int,
) -> None:
    """Neither parts nor some of the files; and an error of the system names the file that it is about."""
    if not unnamed:
        monkeypatch.setattr(staged, "_UNNAMED", 0)
    path = write(tmp_path, DATA + b"junk")
    whole = getattr(os, call)
    remaining = after

    def stopped(*arguments: Any, **options: Any) -> None:
        nonlocal remaining
        if not remaining:
            raise error
        remaining -= 1
        whole(*arguments, **options)

    monkeypatch.setattr(os, call, stopped)
    out = tmp_path / "out"
    if after >= 5 + (call == "fsync"):
        assert len(next(iter(recover([path], out))).files) == 5
        return
    with pytest.raises(type(error)) as raised:
        list(recover([path], out))
    assert list(out.iterdir()) == []
    if isinstance(raised.value, OSError):
        assert raised.value.filename is not None
        assert not raised.value.filename.endswith(".part")
        assert raised.value.filename2 is None
    monkeypatch.undo()
    assert next(iter(recover([path], out))).batches == 12


@pytest.mark.parametrize("links", [True, False])
@pytest.mark.parametrize("kind", ["log", "index", "log.quarantine"])
def test_no_link_is_followed_or_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool, kind: str
) -> None:
    """Not even one that leads nowhere, and not when it comes while the copy is made."""
    path = write(tmp_path, DATA + b"junk")
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    taken = out / f"{path.stem}.{kind}"
    taken.symlink_to(elsewhere)
    with pytest.raises(FileExistsError):
        list(recover([path], out))
    monkeypatch.setattr("coordwire.segments.recovery._refuse", lambda *_: None)
    if not links:
        monkeypatch.setattr(os, "link", refuse_links)
    with pytest.raises(FileExistsError) as raised:
        list(recover([path], out))
    assert raised.value.filename == str(taken)
    assert list(out.iterdir()) == [taken]
    assert taken.is_symlink()
    assert not elsewhere.exists()


def refuse_links(*_: object, **__: object) -> None:
    raise PermissionError(1, "Operation not permitted")


def test_a_file_system_without_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", refuse_links)
    saved([write(tmp_path, DATA + b"junk")], tmp_path / "out")


def test_the_copys_mode_is_the_users(tmp_path: Path) -> None:
    path = write(tmp_path, DATA)
    (one,) = saved([path], tmp_path / "out")
    assert one.log.stat().st_mode == path.stat().st_mode
