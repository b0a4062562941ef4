"""A real broker's coordinator logs, read as Kafka's own tool reads them, and the stories that they tell."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from coordwire.cli.embedded_json import embedded
from coordwire.codec import Message
from coordwire.jsonform import to_json
from coordwire.timeline.events import MemberJoined, OffsetCommitted, RebalanceEnded
from coordwire.timeline.from_log.compaction import latest
from coordwire.timeline.from_log.coordinator_log import CoordinatorRecord, LogItem, Marker, read_file
from coordwire.timeline.from_log.events import log_timeline, topic_names
from coordwire.timeline.from_log.files import find_files
from coordwire.timeline.totals import GroupStory, stories
from tests.broker_sample import broker_sample
from tests.cli.conftest import Run

_RECORD = re.compile(r"\| offset: (\d+) \w+: (-?\d+) .*? headerKeys: \[\] ?(.*)")
_MARKER = re.compile(r"endTxnMarker: (\w+) coordinatorEpoch: (-?\d+)")


@pytest.fixture(scope="module")
def data() -> Path:
    return broker_sample() / "data"


def items(data: Path, log: str) -> list[LogItem]:
    return [item for file in find_files([data]) if file.log == log for item in read_file(file)]


def told(path: str) -> dict[int, tuple[int, str]]:
    """What the tool says of each offset: the time, and key and value."""
    text = Path(f"{path}.decoded.txt").read_text()
    result = filter(None, map(_RECORD.match, text.splitlines()))
    return {int(match[1]): (int(match[2]), match[3]) for match in result}


def part(name: str, text: str) -> Any:
    """The JSON after "key: " or "payload: "; None for a tombstone."""
    start = text.find(f"{name}: ")
    if start < 0 or (name == "payload" and text.endswith("<DELETE>")):
        return None
    return json.JSONDecoder().raw_decode(text, start + len(name) + 2)[0]


def opened(value: Message, version: int) -> Any:
    """Kafka's JSON form with the consumers' bytes opened, as the tool prints a group."""
    form: Any = to_json(value, version=version)
    for path, content in embedded(value, show_secrets=True).items():
        result = re.fullmatch(r"members\[(\d+)\]\.(\w+)", path)
        assert result is not None
        form["members"][int(result[1])][result[2]] = content["value"]
    return form


def test_every_record_is_what_kafkas_tool_says(data: Path) -> None:
    counts: Counter[str] = Counter()
    for file in find_files([data]):
        expected = told(file.path)
        results = list(read_file(file))
        for item in results:
            assert isinstance(item, CoordinatorRecord | Marker)
            time_ms, text = expected.pop(item.log_offset)
            assert item.timestamp_ms == time_ms
            counts[item.log] += 1
            if isinstance(item, Marker):
                counts[item.kind] += 1
                if match := _MARKER.match(text):
                    assert (item.kind, item.coordinator_epoch) == (match[1].lower(), int(match[2]))
                continue
            assert item.unknown is None
            key, value = part("key", text), part("payload", text)
            if item.log == "metadata":
                assert item.key is None
            else:
                assert isinstance(item.key, Message)
                assert (int(key["type"]), key["data"]) == (item.type, to_json(item.key, version=0))
            counts["tombstones"] += item.tombstone
            if value is None:
                assert item.value is None
            else:
                assert isinstance(item.value, Message)
                assert item.version is not None
                assert int(value["version"]) == item.version
                assert value["data"] == opened(item.value, item.version)
        assert expected == {}
    assert min(
        counts[name] for name in ("consumer_offsets", "transaction_state", "share_group_state", "metadata")
    )
    assert min(counts[name] for name in ("commit", "abort", "leader_change", "tombstones")) > 0


def test_a_group_lies_open_in_the_json_lines(data: Path, run: Run) -> None:
    lines = run("offsets", "--format=json", "--group", "orders-classic", data).forms
    group = next(line for line in lines if line["kind"] == "GroupMetadata" and line["members"])
    assert (group["generation"], group["protocol"], group["protocolType"]) == (2, "range", "consumer")
    first, second = group["members"]
    assert first["memberId"] == group["leader"]
    assert (first["groupInstanceId"], first["clientId"]) == ("till-1", "till-1")
    assert first["topics"] == ["codec-none", "several.segments"]
    assert first["assignment"] == [
        {"topic": "codec-none", "partitions": [0]},
        {"topic": "several.segments", "partitions": [0]},
    ]
    assert second["assignment"] == [{"topic": "several.segments", "partitions": [1]}]


def test_what_stands_at_the_end(data: Path) -> None:
    latest_offsets = latest(items(data, "consumer_offsets"))
    commits = {
        (record.group, record.topic, record.partition): getattr(record.value, "offset", None)
        for record in latest_offsets.records
        if record.kind == "OffsetCommit"
    }
    assert commits[("exactly-once", "several.segments", 0)] == 2
    assert not any(group == "orders-classic" for group, _, _ in commits)  # its offsets were deleted
    assert latest_offsets.pending == []


def test_the_log_tells_the_groups_stories(data: Path) -> None:
    names = topic_names(items(data, "metadata"))
    events = list(log_timeline(items(data, "consumer_offsets"), names))
    result = stories(events)
    kinds = {group: story.kind for group, story in result.items()}
    assert kinds["orders-classic"] == "classic"
    assert kinds["orders-new"] == "consumer"
    assert kinds["shared"] == "share"
    assert kinds["counting"] == "streams"
    assert result["exactly-once"].commits == 1
    classic = next(
        event for event in events if isinstance(event, RebalanceEnded) and event.group == "orders-classic"
    )
    assert (classic.generation, classic.protocol, classic.outcome) == (2, "range", "steady")
    assert classic.length_ns is None
    assert sum(len(assignment.partitions) for assignment in classic.assignments) == 3
    new = next(event for event in events if isinstance(event, RebalanceEnded) and event.group == "orders-new")
    assert {partition.topic for share in new.assignments for partition in share.partitions} == {
        "codec-zstd",
        "several.segments",
    }
    static = [event for event in events if isinstance(event, MemberJoined) and event.instance_id]
    assert [one.instance_id for one in static] == ["till-1"]
    assert any(isinstance(event, OffsetCommitted) and event.removed for event in events)
    assert all(isinstance(story, GroupStory) for story in result.values())
