"""`coordwire watch`: the events of a live cluster's groups are those of its log files."""

from __future__ import annotations

import json
import time
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from itertools import accumulate
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.broker import Broker, BrokerConfig
from coordwire.broker.harness.traffic import LiveTraffic
from coordwire.cli.__main__ import main
from coordwire.cli.watch import group_board, open_follower
from coordwire.cli.watch.group_board import GroupBoard, MetricsServer
from coordwire.cli.watch.problems import Problems, ProblemSubject
from coordwire.cli.watch.record_times import MOST_REQUESTS, RecordTimes
from coordwire.client import SyncClient, connect_sync, settings_of
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    OffsetCommitRequest,
    ProduceRequest,
    SyncGroupRequest,
)
from coordwire.messages.consumer_protocol import ConsumerProtocolSubscription
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.offset_commit import OffsetCommitRequestPartition, OffsetCommitRequestTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.messages.sync_group import SyncGroupRequestAssignment
from coordwire.records import Record, encode_batch
from coordwire.tap import Tap
from coordwire.timeline.events import (
    Cause,
    ClusterFound,
    MemberJoined,
    MemberLeft,
    RebalanceBegan,
    TopicPartition,
)
from coordwire.timeline.from_log.events import log_timeline

KINDS = {"rebalanceBegan", "rebalanceEnded", "memberLeft", "memberJoined", "offsetCommitted"}


def join(kafka: SyncClient, group: str) -> tuple[str, int]:
    """A member of a classic group, which is alone in it; its id and the generation."""
    metadata = b"\0\0" + ConsumerProtocolSubscription(topics=["orders"]).encode(version=0)
    request = JoinGroupRequest(
        group_id=group, session_timeout_ms=30_000, rebalance_timeout_ms=30_000, protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=metadata)],
    )  # fmt: skip
    request.member_id = kafka.request(request).member_id
    joined = kafka.request(request)
    assert joined.error_code == 0
    kafka.request(
        SyncGroupRequest(
            group_id=group, generation_id=joined.generation_id, member_id=joined.member_id,
            protocol_type="consumer", protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")],
        )
    )  # fmt: skip
    return joined.member_id, joined.generation_id


def commit(kafka: SyncClient, group: str, member: str, generation: int, offset: int) -> None:
    partitions = [OffsetCommitRequestPartition(partition_index=1, committed_offset=offset)]
    kafka.request(
        OffsetCommitRequest(
            group_id=group, member_id=member, generation_id_or_member_epoch=generation,
            topics=[OffsetCommitRequestTopic(name="orders", partitions=partitions)],
        )
    )  # fmt: skip


def history(bootstrap: str) -> None:
    """Groups that come, commit and go."""
    with connect_sync(bootstrap) as kafka:
        for group in ("payments", "billing", "audit"):
            member, generation = join(kafka, group)
            commit(kafka, group, member, generation, 7)
        kafka.request(LeaveGroupRequest(group_id="audit", members=[MemberIdentity(member_id=member)]))
        kafka.request(
            ConsumerGroupHeartbeatRequest(
                group_id="modern", member_id="m1", member_epoch=0, rebalance_timeout_ms=5_000,
                subscribed_topic_names=["orders"], topic_partitions=[],
            )
        )  # fmt: skip


def events(out: str) -> list[dict[str, Any]]:
    forms = [json.loads(line) for line in out.splitlines()]
    for form in forms:
        for name in ("source", "number"):  # a live log has no files
            form.pop(name, None)
    return sorted(forms, key=json.dumps)


def test_the_events_are_those_of_the_log_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = BrokerConfig(offsets_partitions=4)
    with Broker.in_thread(topics={"orders": 3}, nodes=2, data=tmp_path, config=config) as broker:
        history(broker.bootstrap)
        assert main(["watch", broker.bootstrap, "--rounds", "3", "--format", "json"]) == 0
        watched = capsys.readouterr().out
    folders = [str(path) for path in sorted(tmp_path.rglob("__consumer_offsets-*")) if path.is_dir()]
    main(["timeline", *folders, "--format", "json"])
    from_files = capsys.readouterr().out
    assert {event["event"] for event in events(watched)} >= KINDS | {"lagMeasured"}
    watched = "".join(line for line in watched.splitlines(True) if '"lagMeasured"' not in line)
    # The newer protocols have topics by ids, whose names the live cluster gives and these files do not.
    assert [event for event in events(watched) if event["group"] != "modern"] == [
        event for event in events(from_files) if event["group"] != "modern"
    ]
    assert any(event["group"] == "modern" for event in events(watched))


def test_one_group_on_a_screen(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("rich")
    monkeypatch.delattr(GroupBoard, "metrics")  # without --metrics no sums are made for it
    with Broker.in_thread(topics={"orders": 3}) as broker:
        history(broker.bootstrap)
        status = main(
            ["watch", broker.bootstrap, "--rounds", "2", "--format", "screen", "--group", "payments"]
        )
    out = capsys.readouterr().out
    assert status == 0
    assert "payments" in out
    assert "billing" not in out
    assert "inferred" in out


def test_a_cluster_without_groups_and_no_cluster(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker.in_thread() as broker:
        status = main(["watch", broker.bootstrap, "--rounds", "1", "--format", "json"])
    (line,) = capsys.readouterr().out.splitlines()
    problem = json.loads(line)
    assert (problem["event"], problem["kind"], problem["topic"]) == (
        "problemBegan", "log", "__consumer_offsets",
    )  # fmt: skip
    assert problem["reason"].startswith("UNKNOWN_TOPIC_OR_PARTITION")
    assert status == 0
    assert main(["watch", "127.0.0.1:1"]) == 2
    assert main(["watch", "127.0.0.1:1", "--metrics", "x"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_prometheus_gets_the_sums() -> None:
    with Broker.in_thread(topics={"orders": 3}) as broker:
        history(broker.bootstrap)
        board, problems = GroupBoard(), Problems(now_ns=lambda: 5_000_000_000)
        names: OrderedDict[str, str] = OrderedDict()
        with open_follower(settings_of({}, bootstrap=broker.bootstrap), names, problems) as follower:
            for event in log_timeline(follower.items(lambda: False), names):
                board.add(event)
            assert board.partitions() == {TopicPartition("orders", 1)}
            follower.measure(board.partitions())  # which has the leader looked up
            for event in log_timeline(follower.items(lambda: False), names):
                board.add(event)
            ends = follower.measure(board.partitions())
    problems.begin(ProblemSubject("log", "__consumer_offsets", 3), 'no "leader"')
    board.measure({place: end + 9 for place, end in ends.items()})
    assert board.unread() == {(TopicPartition("orders", 1), 7)}
    times = RecordTimes(lambda wanted: dict.fromkeys(wanted, (7, 5000)))
    times.look(board.unread(), 7_500)
    board.date(times, 7_500)
    server = MetricsServer("127.0.0.1", 0)
    try:
        server.text = board.metrics(problems)
        with urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=10) as response:
            assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            lines = response.read().decode().splitlines()
        with pytest.raises(HTTPError):
            urlopen(f"http://127.0.0.1:{server.port}/other", timeout=10)
    finally:
        server.close()
    assert 'coordwire_group_members{group="payments"} 1' in lines
    assert 'coordwire_group_members{group="audit"} 0' in lines
    assert 'coordwire_group_commits_total{group="payments"} 1' in lines
    assert 'coordwire_group_committed_offset{group="payments",topic="orders",partition="1"} 7' in lines
    assert 'coordwire_group_lag{group="payments",topic="orders",partition="1"} 2' in lines
    assert 'coordwire_group_lag_seconds{group="payments",topic="orders",partition="1"} 2.5' in lines
    assert any(line.startswith('coordwire_group_rebalances_total{group="payments",cause="') for line in lines)
    assert 'coordwire_watch_problems{kind="log"} 1' in lines
    assert 'coordwire_watch_problems{kind="broker"} 0' in lines
    assert (
        'coordwire_watch_problem_since_seconds{kind="log",topic="__consumer_offsets",partition="3",'
        'reason="no \\"leader\\""} 5.0' in lines
    )
    for line in lines:
        assert line.startswith("# ") or line.rpartition(" ")[2].replace(".", "").isdecimal()


def test_label_values_are_escaped() -> None:
    from coordwire.timeline.events import OffsetCommitted

    board = GroupBoard()
    board.add(
        OffsetCommitted(
            group='a"\\\n', time_ns=1, source="", number=1, member_id=None, client_id=None, generation=-1,
            topic="t", partition=0, offset=3, leader_epoch=-1, metadata=None,
        )
    )  # fmt: skip
    assert board.partitions() == {TopicPartition("t", 0)}
    assert 'coordwire_group_members{group="a\\"\\\\\\n"} 0' in board.metrics()


@given(
    gaps=st.lists(st.one_of(st.just(0), st.integers(0, 5_000), st.integers(0, 10**9)), max_size=40),
    start=st.integers(0, 3),
    age=st.integers(0, 10**8),
    data=st.data(),
)
def test_the_time_of_a_record_is_found(gaps: list[int], start: int, age: int, data: st.DataObject) -> None:
    """Against the list of all times: exact where a record's own time is listed, else a little too early."""
    times = list(accumulate(gaps, initial=1_700_000_000_000))
    now, requests, place = times[-1] + age, 0, TopicPartition("t", 0)

    def listed(wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, tuple[int, int]]:
        nonlocal requests
        requests += 1
        first = bisect_left(times, wanted[place], start if start < len(times) else 0)
        return {place: (first, times[first]) if first < len(times) else (-1, -1)}

    offset = data.draw(st.integers(0, len(times) - 1))
    record_times = RecordTimes(listed)
    for _ in range(5):
        record_times.look({(place, offset)}, now)
    time = record_times.time_ms(place, offset)
    if offset < start < len(times):
        assert time is None
    else:
        assert time is not None
        assert 0 <= times[offset] - time <= max(1_000, (now - time) // 100)
    before = requests
    record_times.look({(place, offset)}, now)
    assert requests == before <= 5 * MOST_REQUESTS


def test_lag_is_in_time_too(capsys: pytest.CaptureFixture[str]) -> None:
    now = time.time_ns() // 1_000_000
    with Broker.in_thread(topics={"orders": 3}) as broker, connect_sync(broker.bootstrap) as kafka:
        records = [Record(value=b"v", timestamp=now - 3_600_000 + 1_000 * number) for number in range(100)]
        partition = PartitionProduceData(index=1, records=encode_batch(records, base_offset=0))
        topic = TopicProduceData(name="orders", partition_data=[partition])
        kafka.request(ProduceRequest(acks=-1, timeout_ms=9_000, topic_data=[topic]))
        commit(kafka, "payments", "", -1, 60)
        commit(kafka, "billing", "", -1, 100)
        assert main(["watch", broker.bootstrap, "--rounds", "2", "--format", "json"]) == 0
    forms = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    lags = {form["group"]: form for form in forms if form["event"] == "lagMeasured"}
    assert lags["billing"]["lag"] == lags["billing"]["lagMs"] == 0
    assert lags["payments"]["lag"] == 40
    written = now - 3_600_000 + 60_000
    read = int(datetime.fromisoformat(lags["payments"]["time"]).timestamp() * 1_000)
    assert 0 <= lags["payments"]["lagMs"] - (read - written) <= 36_000


def test_a_tap_beside_it_has_the_causes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "tapped.pcapng"
    with Broker.in_thread(topics={"orders": 3}) as broker:
        recording = LiveTraffic(path.open("wb"), pcapng=True)
        with Tap.in_thread(broker.bootstrap, traffic=recording) as tap:
            history(tap.bootstrap)
        recording.close()
        words = ["watch", broker.bootstrap, "--rounds", "4", "--tap", str(path)]
        assert main([*words, "--format", "json"]) == 0
    forms = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    ended = [form for form in forms if form["event"] == "rebalanceEnded" and form["kind"] == "classic"]
    causes = {
        (form["group"], form["source"] == str(path)): (form["cause"], form["inferred"]) for form in ended
    }
    for group in ("payments", "billing", "audit"):
        assert causes[group, True] == ("first_member", False)
        assert causes[group, False] == ("first_member", True)
    assert {form["event"] for form in forms if form.get("source") == str(path)} <= {
        "rebalanceBegan", "rebalanceEnded", "rebalanceCost", "errorMet", "unanswered",
    }  # fmt: skip


def joins(member_id: str, time_ns: int, instance_id: str | None = None) -> MemberJoined:
    return MemberJoined(
        group="g", time_ns=time_ns, source="log", number=1, kind="classic", member_id=member_id,
        client_id="c", host=None, instance_id=instance_id,
    )  # fmt: skip


def test_a_member_keeps_its_number_when_the_first_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(group_board, "MOST_MEMBERS", 2)
    board = GroupBoard()
    for number in range(4):
        board.add(joins(f"m{number}", number, "static" if number in (0, 3) else None))
    assert next(board.views()).members == ("#3 (c)", "#4 (c)", "m1")


def test_who_leaves_is_seen_beside_a_tap() -> None:
    """A tap has not all of a group's traffic; who is in the log says."""
    board = GroupBoard()
    board.add(joins("m1", 1))
    board.add_tapped(joins("m2", 2))
    board.add(joins("m2", 2))
    assert next(board.views()).members == ("#1 (c)", "#2 (c)")
    board.add(
        MemberLeft(
            group="g", time_ns=3, source="log", number=2, member_id="m1", client_id="c", how="left",
            inferred=False,
        )
    )  # fmt: skip
    assert next(board.views()).members == ("#2 (c)",)


def test_causes_are_those_of_the_tap_from_its_first_event_on() -> None:
    board = GroupBoard()

    def began(source: str, cause: Cause, *, inferred: bool) -> RebalanceBegan:
        return RebalanceBegan(
            group="g", time_ns=1, source=source, number=1, kind="classic", cause=cause, member_id="m",
            inferred=inferred,
        )  # fmt: skip

    board.add(began("log", "new_member", inferred=True))
    assert next(board.views()).cause == "last rebalance 00:00:00.0: presumably m joins (from the log)"
    board.add_tapped(began("tap", "session_timeout", inferred=False))
    board.add(began("log", "member_left", inferred=True))
    words = "m was silent for longer than its session timeout (seen by the tap)"
    assert next(board.views()).cause == f"last rebalance 00:00:00.0: {words}"
    assert 'coordwire_group_tapped_rebalances_total{group="g",cause=""} 1.0' in board.metrics()


def foreign(cluster: str | None, member: str, client: str = "c") -> MemberJoined:
    return replace(joins(member, 1), cluster=cluster, client_id=client)


def test_a_tap_of_two_clusters_has_rows_for_both() -> None:
    """The second one shows itself after some events of the first, which is the log's."""
    board = GroupBoard()
    board.cluster = "own"
    board.add(joins("m1", 1))
    board.add_tapped(foreign(None, "m1"))
    found = ClusterFound(group="", time_ns=2, source="tap", number=2, cluster="own")
    board.add_tapped(found)
    board.add_tapped(foreign("own", "m1"))
    board.add_tapped(foreign("other", "m9", "d"))
    assert [(view.group, view.members) for view in board.views()] == [
        ("g in cluster own", ("#1 (c)",)),
        ("g in cluster other", ("#1 (d)",)),
    ]
    board.measure({})
    assert 'coordwire_group_members{group="g"} 1' in board.metrics()
    assert 'coordwire_group_members{group="g",cluster="other"} 1' in board.metrics()
    assert 'coordwire_group_rebalances_total{group="g",cluster="other"' not in board.metrics()


def test_what_a_tap_showed_first_may_be_of_another_cluster_than_the_log() -> None:
    board = GroupBoard()
    board.cluster = "own"
    board.add(joins("m1", 1))
    board.add_tapped(foreign(None, "m9", "d"))
    board.add_tapped(ClusterFound(group="", time_ns=2, source="tap", number=2, cluster="other"))
    assert [(view.group, len(view.members)) for view in board.views()] == [
        ("g in cluster own", 1),
        ("g in cluster other", 1),
    ]


def test_what_is_not_a_capture_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "text"
    path.write_text("nothing that was captured\n" * 400)
    with Broker.in_thread(topics={"orders": 3}) as broker:
        history(broker.bootstrap)
        assert (
            main(["watch", broker.bootstrap, "--rounds", "200", "--format", "json", "--tap", str(path)]) == 2
        )
        assert main(["watch", broker.bootstrap, "--tap", str(tmp_path / "none")]) == 2
    assert capsys.readouterr().err.count("--tap") == 2
