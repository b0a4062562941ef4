"""What names say, as Kafka reads them."""

from __future__ import annotations

import pytest

from coordwire.segments.names import FileName, file_name, log_name, topic_partition


@pytest.mark.parametrize(
    ("folder", "wanted"),
    [
        ("orders-0", ("orders", 0)),
        ("a.b-c_d-12", ("a.b-c_d", 12)),
        ("__cluster_metadata-0", ("__cluster_metadata", 0)),
        ("orders-3.0123456789abcdef0123456789abcdef-delete", ("orders", 3)),
        ("or.ders-3-4.0123456789abcdef0123456789abcdef-future", ("or.ders-3", 4)),
        ("a-b-2.x-stray", ("a-b", 2)),
        ("my.topic-delete-7", ("my.topic-delete", 7)),
        ("orders-2147483647", ("orders", 2147483647)),
        ("orders-2147483648", None),
        ("orders", None),
        ("-1", None),
        ("orders-", None),
        ("orders-x", None),
        ("orders-x.y-delete", None),
        ("orders-1-delete", None),
        ("orders-٣", None),
        ("", None),
    ],
)
def test_folders(folder: str, wanted: tuple[str, int] | None) -> None:
    assert topic_partition(folder) == wanted


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("00000000000000000000.log", FileName("log", 0)),
        ("00000000000000004711.timeindex", FileName("timeindex", 4711)),
        ("00000000000000004711.log.deleted", FileName("log", 4711)),
        ("00000000000000004711.index.swap", FileName("index", 4711)),
        ("12.snapshot", FileName("snapshot", 12)),
        ("00000000000000000010-0000000003.checkpoint", FileName("checkpoint", 10, 3)),
        ("00000000000000000010-0000000003.checkpoint.deleted", FileName("checkpoint", 10, 3)),
        ("00000000000000000010-0000000003-123.checkpoint.part", FileName("checkpoint", 10, 3)),
        ("bootstrap.checkpoint", FileName("checkpoint", None)),
        ("9223372036854775808.log", None),
        ("server.log", None),
        ("00000000000000000000.log.gz", None),
        ("leader-epoch-checkpoint", None),
    ],
)
def test_files(name: str, wanted: FileName | None) -> None:
    assert file_name(name) == wanted


def test_names_to_write() -> None:
    assert log_name(4711) == "00000000000000004711.log"
    assert log_name((1 << 63) - 1, "timeindex") == "09223372036854775807.timeindex"
