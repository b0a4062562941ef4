"""What names say, as Kafka reads them."""

from __future__ import annotations

import pytest

from coordwire.segments.names import (
    FileName,
    file_name,
    file_state,
    kafka_07_offset,
    live_path,
    log_name,
    topic_partition,
)
from coordwire.segments.remote_storage import RemoteName, RemotePlace, remote_name, remote_place


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


LOG = "00000000000000000000.log"
MOVED = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize(
    ("path", "state", "live"),
    [
        (f"/d/orders-0/{LOG}", "live", f"/d/orders-0/{LOG}"),
        (f"/d/orders-0/{LOG}.deleted", "deleted", f"/d/orders-0/{LOG}"),
        (f"/d/orders-0/{LOG}.cleaned", "cleaned", f"/d/orders-0/{LOG}"),
        (f"s3://b/orders-0/{LOG}.swap", "swap", f"s3://b/orders-0/{LOG}"),
        (f"/d/orders-0.{MOVED}-delete/{LOG}", "deleted", f"/d/orders-0/{LOG}"),
        (f"/d/orders-0.{MOVED}-future/{LOG}", "future", f"/d/orders-0/{LOG}"),
        (f"orders-0.{MOVED}-stray/{LOG}", "stray", f"orders-0/{LOG}"),
        (f"orders-0.{MOVED}-future/{LOG}.deleted", "deleted", f"orders-0/{LOG}"),
        ("orders-0/00000000000000000010-0000000003.checkpoint", "checkpoint", None),
        ("00000000000000000010-0000000003.checkpoint.deleted", "checkpoint", None),
        (LOG, "live", LOG),
        (f"/d/orders-0/{LOG}.gz", None, None),
        (f"/d/x-1.{MOVED}-delete/notes.deleted", None, None),
        ("", None, None),
    ],
)
def test_states_and_the_path_of_a_live_file(path: str, state: str | None, live: str | None) -> None:
    assert file_state(path) == state
    assert live_path(path) == (path if live is None else live)


ID, SEGMENT = "MWJ6FHTfRYy67jzwZdeqSQ", "tqimKeZwStOEOwRzT3L5oQ"


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        (f"00000000000000001234-{SEGMENT}.log", RemoteName("log", SEGMENT, 1234)),
        (f"1234-{SEGMENT}.log", RemoteName("log", SEGMENT, 1234)),
        (f"{SEGMENT}.log", RemoteName("log", SEGMENT, None)),
        (f"00000000000000001234-{SEGMENT}.rsm-manifest", RemoteName("index", SEGMENT, 1234)),
        (f"00000000000000001234-{SEGMENT}.indexes", RemoteName("index", SEGMENT, 1234)),
        (f"0-{SEGMENT}.leader_epoch_checkpoint", RemoteName("index", SEGMENT, 0)),
        (f"0-{SEGMENT[:-1]}R.log", None),  # not what 16 bytes give
        (f"0-{SEGMENT[1:]}.log", None),
        (f"9223372036854775808-{SEGMENT}.log", None),
        (f"0-{SEGMENT}.log.deleted", None),
        (LOG, None),
    ],
)
def test_files_in_remote_storage(name: str, wanted: RemoteName | None) -> None:
    assert remote_name(name) == wanted


@pytest.mark.parametrize(
    ("folder", "wanted"),
    [
        (f"some/prefix/or-ders.1-{ID}/7", RemotePlace("or-ders.1", 7, ID)),
        (f"s3://b/orders-{ID}/0", RemotePlace("orders", 0, ID)),
        (f"/tier/or-ders-3-{ID}", RemotePlace("or-ders", 3, ID)),
        (f"orders-3-{ID[:20]}-A", RemotePlace("orders", 3, f"{ID[:20]}-A")),
        (f"/tier/{ID}/3", RemotePlace(None, 3, ID)),
        (f"/tier/orders-{ID}/2147483648", None),
        (f"/tier/orders-{ID}/x", None),
        (f"/tier/orders-{ID}", None),
        (f"/tier/no topic-{ID}/0", None),
        ("orders-0", None),
        ("", None),
    ],
)
def test_folders_in_remote_storage(folder: str, wanted: RemotePlace | None) -> None:
    assert remote_place(folder) == wanted


def test_names_to_write() -> None:
    assert log_name(4711) == "00000000000000004711.log"
    assert log_name((1 << 63) - 1, "timeindex") == "09223372036854775807.timeindex"


def test_files_of_kafka_07() -> None:
    """ "So the first file created will be 00000000000.kafka", and the name is an integer."""
    names = ("00000000000.kafka", "00000001000.kafka", "00000000000000001000.kafka", "7.kafka")
    assert [kafka_07_offset(name) for name in names] == [0, 1000, 1000, 7]
    others = ("a.kafka", "0.log", "-1.kafka", "9223372036854775808.kafka", "0.kafka.deleted", "")
    assert [kafka_07_offset(name) for name in others] == [None] * len(others)


def test_a_log_is_named_with_its_first_offset() -> None:
    assert log_name(0) == "00000000000000000000.log"
    assert log_name(4711, "timeindex") == "00000000000000004711.timeindex"
