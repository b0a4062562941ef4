"""Traffic of several clusters: a group of the same name in each is another one, and its cluster is named."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import copy
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from coordwire.capture.entries import FrameEntry
from coordwire.cli.__main__ import main
from coordwire.cli.timeline.inputs import TimelineInputs
from coordwire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.describe_cluster import DescribeClusterBroker
from coordwire.messages.find_coordinator import Coordinator
from coordwire.messages.metadata import MetadataResponseBroker, MetadataResponseTopic
from coordwire.tables.columns import TABLES
from coordwire.tables.readers.group_rows import event_rows
from coordwire.tables.report.group_section import _in_first_clusters
from coordwire.timeline.event_json import event_json, read_event
from coordwire.timeline.events import ClusterFound, GroupEvent, LagMeasured, MemberJoined
from coordwire.timeline.from_wire.timeline import Timeline, timeline
from coordwire.timeline.story import story_lines
from coordwire.timeline.totals import stories
from tests.timeline.script import START, Script, only
from tests.timeline.test_timeline import commit, end

Tell = Callable[[Script, str, str | None], None]


def metadata(script: Script, client: str, cluster: str | None, *nodes: str, topic_id: int = 0) -> None:
    """Metadata, answered with these nodes, else the broker that is asked."""
    brokers = []
    for number, address in enumerate(nodes or (script.broker,)):
        host, _, port = address.rpartition(":")
        brokers.append(MetadataResponseBroker(node_id=number, host=host, port=int(port)))
    topics = [MetadataResponseTopic(name="t", topic_id=UUID(int=topic_id))] if topic_id else []
    answer = MetadataResponse(brokers=brokers, cluster_id=cluster, topics=topics)
    script.answer(script.ask(MetadataRequest(), client), answer)


def described(script: Script, client: str, cluster: str | None) -> None:
    host, _, port = script.broker.rpartition(":")
    brokers = [DescribeClusterBroker(broker_id=1, host=host, port=int(port))]
    answer = DescribeClusterResponse(cluster_id=cluster or "", brokers=brokers)
    script.answer(script.ask(DescribeClusterRequest(), client), answer)


def group_of(script: Script, client: str, committed: int, end_offset: int) -> None:
    script.steady(client)
    commit(script, committed)
    end(script, end_offset)
    script.now += 2


def lags(events: list[GroupEvent]) -> set[tuple[str | None, int]]:
    return {(event.cluster, event.lag) for event in only(events, LagMeasured)}


def both(script: Script, tell: Tell, first: str | None = "one", second: str | None = "two") -> None:
    """The group g in two clusters, whose members commit and whose partitions end elsewhere."""
    script.broker = "a:9092"
    tell(script, "a", first)
    group_of(script, "a", 80, 100)
    script.broker = "b:9092"
    tell(script, "b", second)
    group_of(script, "b", 3, 7)
    script.broker = "a:9092"
    commit(script, 90)


@pytest.mark.parametrize("tell", [metadata, described])
def test_clusters_are_told_apart_by_their_ids(tell: Tell) -> None:
    script = Script()
    both(script, tell)
    events = script.events()
    assert lags(events) == {(None, 20), ("two", 4), ("one", 10)}
    found = stories(events)
    assert {key: list(story.lag.values()) for key, story in found.items()} == {
        ("g", "one"): [10],
        ("g", "two"): [4],
    }
    lines = "\n".join(story_lines(events))
    assert "── g in cluster one · classic group" in lines
    assert "── g in cluster two · classic group" in lines
    assert lines.count("a second cluster shows at 22:13:22.0: what came before is taken for this one's") == 1


def test_one_cluster_is_not_named() -> None:
    script = Script()
    both(script, metadata, "one", "one")
    events = script.events()
    assert {event.cluster for event in events} == {None}
    assert not only(events, ClusterFound)
    assert not any('"cluster"' in event_json(event) for event in events)
    assert "a second cluster" not in "".join(story_lines(events))


def test_without_ids_nodes_tell_clusters_apart() -> None:
    script = Script()
    both(script, metadata, None, None)
    assert list(stories(script.events())) == [("g", "a:9092"), ("g", "b:9092")]


def test_nodes_that_one_answer_lists_are_one_cluster() -> None:
    script = Script()
    script.broker = "a:9092"
    metadata(script, "a", None, "a:9092", "b:9092")
    script.broker = "b:9092"
    metadata(script, "b", None, "b:9092", "c:9092")
    group_of(script, "b", 3, 7)
    assert {event.cluster for event in script.events()} == {None}


def test_a_coordinator_that_was_found_is_of_the_cluster() -> None:
    """And so is what is asked there, though no Metadata names it."""
    script = Script()
    script.broker = "a:9092"
    metadata(script, "x", "one")
    script.broker = "b:9092"
    metadata(script, "y", "two")
    answer = FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=7, host="c", port=9092)])
    script.answer(script.ask(FindCoordinatorRequest(coordinator_keys=["g"]), "y"), answer)
    script.broker = "c:9092"
    script.steady("z")
    (joined,) = only(script.events(), MemberJoined)
    assert joined.cluster == "two"


def test_a_client_goes_on_in_the_cluster_that_it_asks() -> None:
    """Where nodes are listed by names, and connections have addresses."""
    script = Script()
    for client, broker, cluster in (("x", "10.0.0.1:9092", "one"), ("y", "10.0.1.1:9092", "two")):
        script.broker = broker
        metadata(script, client, cluster, f"kafka.{cluster}:9092")
    script.broker = "10.0.1.2:9092"
    script.steady("y")
    (joined,) = only(script.events(), MemberJoined)
    assert joined.cluster == "two"


def test_equal_addresses_in_two_captures_are_two_brokers() -> None:
    one, two = Script(capture="one.pcap"), Script(capture="two.pcap")
    metadata(one, "a", "one")
    metadata(two, "a", "two")
    group_of(one, "a", 80, 100)
    group_of(two, "a", 3, 7)
    entries = sorted([*one.entries, *two.entries], key=lambda entry: entry.time_ns or 0)
    assert lags(list(timeline(entries))) == {("one", 20), ("two", 4)}


def test_topics_of_one_name_with_two_ids_at_the_same_time_are_in_two_clusters() -> None:
    one, two = Script(capture="one.pcap"), Script(capture="two.pcap")
    two.now = 1
    for _ in range(3):
        metadata(one, "a", None, topic_id=1)
        metadata(two, "a", None, topic_id=2)
        one.now += 10
        two.now += 10
    group_of(one, "a", 80, 100)
    group_of(two, "a", 3, 7)
    entries = sorted([*one.entries, *two.entries], key=lambda entry: entry.time_ns or 0)
    found = lags(list(timeline(entries)))
    assert found == {("broker:9092", 20), ("broker:9092 in two.pcap", 4)}


@pytest.mark.parametrize("ids", [(1, 2, 2), (1, 1, 2), (2, 1, 1)])
def test_a_topic_that_is_made_anew_is_in_the_same_cluster(ids: tuple[int, ...]) -> None:
    one, two = Script(capture="one.pcap"), Script(capture="two.pcap")
    two.now = 1
    for number in ids:
        metadata(one, "a", None, topic_id=number)
        metadata(two, "a", None, topic_id=number)
        one.now += 10
        two.now += 10
    entries = sorted([*one.entries, *two.entries], key=lambda entry: entry.time_ns or 0)
    story = Timeline()
    story.feed_all(entries)
    assert not story._clusters.several


def test_clusters_that_were_looked_up_are_named_from_the_beginning() -> None:
    script = Script()
    both(script, metadata)
    story = Timeline()
    assert story.look_ahead(script.entries)
    events = [*story.feed_all(script.entries), *story.finish()]
    assert lags(events) == {("one", 20), ("two", 4), ("one", 10)}
    assert not only(events, ClusterFound)


def test_a_batch_is_split_at_the_answer_that_tells_of_a_second_cluster() -> None:
    script = Script()
    both(script, metadata)
    story = Timeline()
    assert [*story.feed_all(script.entries), *story.finish()] == script.events()


def test_a_cluster_is_in_the_json_of_an_event() -> None:
    event = ClusterFound(group="", time_ns=START, source="s", number=1, cluster="one")
    assert json.loads(event_json(event))["cluster"] == "one"
    assert read_event(event_json(event)) == event


def test_clusters_beyond_a_bound_are_the_first() -> None:
    script = Script()
    for number in range(300):
        script.broker = f"b{number}:9092"
        metadata(script, f"c{number}", f"cluster {number}")
    story = Timeline()
    story.feed_all(script.entries)
    assert len(story._clusters.every) == 100


# --- whole captures ---

CAPTURES = Path(__file__).parent.parent / "data" / "captures"
FOLDER = ("confluent__rdmock__group-range.pcap", "kpy__tansu__group-range.pcap")


def test_captures_of_two_clusters_in_a_folder_are_two_stories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = []
    for name in FOLDER:
        copy(CAPTURES / name, tmp_path)
        main(["timeline", "--format", "json", "--summary", str(CAPTURES / name)])
        alone += [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    main(["timeline", "--format", "json", "--summary", str(tmp_path)])
    together = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [form["cluster"] for form in together] == ["mockCluster155a73496938", "tansu_cluster"]
    for form, single in zip(together, alone, strict=True):
        for key in ("cluster", "inputFirst", "inputLast"):
            form.pop(key, None)
            single.pop(key, None)
        assert form == single


def test_a_report_has_a_story_for_each_cluster_of_a_capture() -> None:
    events = {("g", "a.pcap", None): [1], ("g", "a.pcap", "one"): [2], ("g", "a.pcap", "two"): [3]}
    assert _in_first_clusters(events, {"a.pcap": "one"}) == {
        ("g", "a.pcap", "one"): [1, 2],
        ("g", "a.pcap", "two"): [3],
    }


def test_rows_of_tables_have_their_cluster() -> None:
    script = Script()
    both(script, metadata)
    for event in only(script.events(), LagMeasured):
        columns = [column.name for column in TABLES["lag"]]
        row = event_rows(LagMeasured, columns, "capture")(event)
        assert dict(zip(columns, row, strict=True))["cluster_id"] == event.cluster


def test_what_is_read_ahead_is_bounded() -> None:
    """However large the frames are: they are held until the first event."""
    drawn = 0

    def batches() -> Iterator[list[FrameEntry]]:
        nonlocal drawn
        for number in range(100):
            drawn += 1
            yield [
                FrameEntry(
                    capture="c", number=number, flow="a:1 > b:2", time_ns=number, direction="request",
                    body=bytes(1 << 20),
                )
            ]  # fmt: skip

    ahead: Any = TimelineInputs._looked_ahead
    every = ahead(SimpleNamespace(_captures=[("c", ("c",))]), Timeline(), batches())
    first = next(every)
    assert drawn == 16
    assert [entry.number for batch in [first, *every] for entry in batch] == list(range(100))
