"""Finding coordinators' segments."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordwire.timeline.from_log.files import LogFile, find_files


def made(folder: Path, *names: str) -> list[str]:
    folder.mkdir(parents=True)
    for name in names:
        (folder / name).write_bytes(b"")
    return [str(folder / name) for name in names]


def test_a_brokers_directory_gives_the_coordinators_partitions_in_order(tmp_path: Path) -> None:
    ten = made(tmp_path / "__consumer_offsets-10", "00000000000000000000.log")
    two = made(tmp_path / "__consumer_offsets-2", "00000000000000000000.log", "00000000000000000400.log")
    made(tmp_path / "orders-0", "00000000000000000000.log")
    (tmp_path / "__consumer_offsets-2" / "00000000000000000000.index").write_bytes(b"")
    txn = made(tmp_path / "disk2" / "__transaction_state-7", "00000000000000000000.log")
    assert list(find_files([tmp_path])) == [
        *(LogFile(path, "consumer_offsets", 2) for path in two),
        LogFile(ten[0], "consumer_offsets", 10),
        LogFile(txn[0], "transaction_state", 7),
    ]


def test_a_partitions_directory_and_a_file_tell_what_they_are(tmp_path: Path) -> None:
    (path,) = made(tmp_path / "__share_group_state-3", "00000000000000000000.log")
    expected = [LogFile(path, "share_group_state", 3)]
    assert list(find_files([tmp_path / "__share_group_state-3"])) == expected
    assert list(find_files([path])) == expected


def test_a_name_may_tell_it_and_else_nothing_does(tmp_path: Path) -> None:
    named, torn, other = made(
        tmp_path / "x", "backup-__consumer_offsets-4.bin", "__transaction_state.log", "a.log"
    )
    assert list(find_files([named, torn, other])) == [
        LogFile(named, "consumer_offsets", 4),
        LogFile(torn, "transaction_state", None),
        LogFile(other, None, None),
    ]
    assert [file.path for file in find_files([tmp_path / "x"])] == [torn, other]


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        list(find_files([tmp_path / "nothing"]))
