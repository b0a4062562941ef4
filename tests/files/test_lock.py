"""Locks on open files: one holder, many where they share, none where there is no flock."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

import pytest

from coordwire.files.lock import lock


def test_one_file_has_one_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    path.touch()
    with open(path) as first, open(path) as second:
        assert lock(first.fileno()) is True
        assert lock(second.fileno()) is False
        assert lock(second.fileno(), fcntl.LOCK_SH | fcntl.LOCK_NB) is False
    with open(path) as first, open(path) as second:
        assert lock(first.fileno(), fcntl.LOCK_SH) is True
        assert lock(second.fileno(), fcntl.LOCK_SH) is True


@pytest.mark.parametrize("number", [errno.ENOTSUP, errno.ENOLCK, errno.EIO])
def test_a_file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def refuse(descriptor: int, operation: int) -> None:
        raise OSError(number, "refused")

    monkeypatch.setattr(fcntl, "flock", refuse)
    with open(tmp_path / "lock", "w") as file:
        if number == errno.EIO:
            with pytest.raises(OSError, match="refused"):
                lock(file.fileno())
        else:
            assert lock(file.fileno()) is None
