"""Logs in the folders of the implementation page, section 5.4."""

from __future__ import annotations

from pathlib import Path

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.log_folders import folder_name, folder_partition, log_files
from coordwire.segments import Segment
from coordwire.segments.names import topic_partition


def test_a_log_of_partitions_is_folders_of_files_named_by_their_offsets(tmp_path: Path) -> None:
    for number, names in {
        10: ("00000000000",),
        0: ("00000000000", "00001000000"),
        2: ("00000000000",),
    }.items():
        folder = tmp_path / folder_name(DraftPartition("my_topic", str(number)))
        folder.mkdir()
        for name in names:
            (folder / f"{name}.kafka").write_bytes(b"")
        (folder / "notes.txt").write_bytes(b"")
    for other in ("my_topic-0", "my_topic", "_1", "my_topic_01"):
        (tmp_path / other).mkdir()
    (tmp_path / "backup_2").write_bytes(b"")  # a file
    logs = list(log_files(tmp_path))
    assert [
        (partition, [path.relative_to(tmp_path).as_posix() for path in paths]) for partition, paths in logs
    ] == [
        (("my_topic", "0"), ["my_topic_0/00000000000.kafka", "my_topic_0/00001000000.kafka"]),
        (("my_topic", "2"), ["my_topic_2/00000000000.kafka"]),
        (("my_topic", "10"), ["my_topic_10/00000000000.kafka"]),
    ]
    with Segment(logs[0][1][1]) as segment:
        assert segment.base_offset == 1_000_000


def test_a_partitions_files_come_in_the_order_of_their_offsets(tmp_path: Path) -> None:
    """Whatever order the folder has them in."""
    offsets = [(number * 37) % 101 for number in range(101)]
    folder = tmp_path / folder_name(DraftPartition("my_topic", "0"))
    folder.mkdir()
    for offset in offsets:
        (folder / f"{offset:011}.kafka").write_bytes(b"")
    ((_, paths),) = log_files(tmp_path)
    assert [int(path.stem) for path in paths] == list(range(101))


def test_only_this_design_has_such_folders() -> None:
    """A folder beside a Kafka broker's logs is not a partition for its underline."""
    assert folder_partition("backup_2") == ("backup", "2")
    assert folder_partition("My_Topic_0") == ("My_Topic", "0")
    assert topic_partition("backup_2") is None
    assert folder_partition("my_topic_2147483648") is None
    assert folder_partition("my_topic-0") is None
