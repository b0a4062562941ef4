"""How the connections of members ended that went without a word: in recorded captures, and case by case."""

from __future__ import annotations

import dataclasses
import lzma
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path

import pytest

from coordwire.capture import Capture
from coordwire.capture.entries import ConnectionEnd, ConnectionSign, Entry, FrameEntry
from coordwire.timeline import timeline
from coordwire.timeline.events import (
    Assignment,
    MemberEnding,
    MemberJoined,
    MemberLeft,
    RebalanceEnded,
    TopicPartition,
)
from coordwire.timeline.evidence import MemberName, Seen
from coordwire.timeline.from_wire.connection_ends import ConnectionEnds, SharedClients

DATA = Path(__file__).parent.parent / "data" / "stories"
SECOND = 1_000_000_000


def endings(name: str) -> list[MemberEnding]:
    capture = Capture(BytesIO(lzma.decompress((DATA / f"{name}.pcap.xz").read_bytes())), name)
    events = list(timeline(capture.entries_and_ends(), ends=True))
    return [event.ending for event in events if isinstance(event, MemberLeft) and event.ending is not None]


def test_a_killed_process_is_not_a_frozen_one() -> None:
    (killed,) = endings("classic-static")
    assert (killed.how, killed.packets, killed.fetched) == ("closed", (783, 784, 787), True)
    assert killed.ended_ns is not None
    assert killed.heard_ns is not None
    assert killed.heard_packet == 756
    assert 0 < killed.ended_ns - killed.heard_ns < SECOND
    frozen = endings("classic-freezes")
    assert [(one.how, one.ended_ns, one.packets, one.heard_packet) for one in frozen] == [
        ("open", None, (), 232), ("open", None, (), 912),
    ]  # fmt: skip


def test_without_ends_nothing_is_claimed() -> None:
    data = lzma.decompress((DATA / "classic-freezes.pcap.xz").read_bytes())
    events = list(timeline(Capture(BytesIO(data), "x").entries()))
    assert {event.ending for event in events if isinstance(event, MemberLeft)} == {None}


class Script:
    """A group with members that are in since 1 s, each on a connection of its own, and out at 20 s."""

    def __init__(self, *members: str, client: str = "c") -> None:
        self.ends = ConnectionEnds()
        for number, name in enumerate(members):
            flow = self.flow(number)
            self.ends.opens(self.frame(flow, client, 1))
            self.ends.speaks(MemberName("g", name), "classic", flow, Seen(SECOND, "x", 1, 10))
            self.ends.see(
                MemberJoined(
                    group="g", time_ns=SECOND, source="x", number=1, kind="classic", member_id=name,
                    client_id=client, host=flow.partition(" > ")[0],
                )
            )  # fmt: skip

    @staticmethod
    def flow(number: int) -> str:
        return f"[::1]:{1000 + number} > [::1]:9092"

    @staticmethod
    def frame(flow: str, client: str, second: int) -> FrameEntry:
        return FrameEntry(
            capture="x", number=1, flow=flow, time_ns=second * SECOND, direction="request", body=b"",
            client_id=client,
        )  # fmt: skip

    def end(self, flow: str, second: int, sender: str = "client", how: str = "fin") -> None:
        self.ends.ends(
            ConnectionEnd(
                capture="x", flow=flow, time_ns=second * SECOND, sender=sender, kind=how,  # type: ignore[arg-type]
                packet=second,
            )
        )  # fmt: skip

    def assign(self, name: str) -> None:
        self.ends.see(
            RebalanceEnded(
                group="g", time_ns=SECOND, source="x", number=1, kind="classic", outcome="steady",
                cause="unknown", member_id=None, inferred=True, detail="", began_ns=None, joined_ns=None,
                ended_ns=None, length_ns=None, generation_before=None, generation=1, protocol=None,
                leader=None, members=(), last_to_join=None, moved=(),
                assignments=(Assignment(name, (TopicPartition("t", 0),)),),
            )
        )  # fmt: skip

    def out(self, name: str) -> MemberEnding | None:
        event = MemberLeft(
            group="g", time_ns=20 * SECOND, source="x", number=9, member_id=name, client_id="c",
            how="session_timeout", inferred=True,
        )  # fmt: skip
        seen = self.ends.see(event)
        assert isinstance(seen, MemberLeft)
        return seen.ending


@pytest.mark.parametrize(
    ("sender", "how", "expected"),
    [("client", "fin", "closed"), ("broker", "fin", "closed_by_broker"), ("client", "rst", "reset")],
)
def test_the_first_end_says_how(sender: str, how: str, expected: str) -> None:
    script = Script("m")
    script.end(script.flow(0), 5, sender, how)
    script.end(script.flow(0), 6, "client" if sender == "broker" else "broker")
    ending = script.out("m")
    assert ending == MemberEnding(expected, 5 * SECOND, (5,), SECOND, 10, None)  # type: ignore[arg-type]


def test_an_end_after_the_session_is_of_another_time() -> None:
    script = Script("m")
    script.ends.speaks(MemberName("g", "m"), "classic", script.flow(0), Seen(22 * SECOND, "x", 5, 50))
    script.ends.speaks(MemberName("g", "m"), "classic", script.flow(0), Seen(22 * SECOND + 1, "x", 6, 51))
    script.end(script.flow(0), 23)
    assert script.out("m") == MemberEnding("open", None, (), SECOND, 10, None)


@pytest.mark.parametrize(("begun", "ended", "is_told"), [(20, 0, False), (19, 0, True), (20, 1, True)])
def test_of_captures_without_any_end_nothing_is_claimed(begun: int, ended: int, is_told: bool) -> None:
    script = Script("m", "n")
    script.ends.begun_count = begun
    for _ in range(ended):
        script.end(script.flow(1), 2)
    expected = MemberEnding("open", None, (), SECOND, 10, None)
    assert script.out("m") == (expected if is_told else None)


def test_connections_begin_with_the_answer_to_api_versions() -> None:
    """Frames of many connections in a capture of one, in which a member falls silent."""
    path = DATA / "classic-freezes.pcap.xz"
    capture = Capture(BytesIO(lzma.decompress(path.read_bytes())), "x")
    events = list(capture.entries_and_ends())
    first = next(
        entry for entry in events if isinstance(entry, FrameEntry) and entry.api_name == "ApiVersions"
    )
    answer = next(entry for entry in events if isinstance(entry, FrameEntry) and entry.request is first)
    without_ends = [entry for entry in events if not isinstance(entry, ConnectionEnd)]
    own = len({entry.flow for entry in events if isinstance(entry, FrameEntry) and entry.request is None})
    assert own < 15

    def endings_after(flows: Iterable[str]) -> set[str | None]:
        begun: list[Entry | ConnectionSign] = []
        for flow in flows:
            asked = dataclasses.replace(first, flow=flow)
            begun += [asked, dataclasses.replace(answer, request=asked)]
        lefts = [event for event in timeline([*begun, *without_ends], ends=True) if type(event) is MemberLeft]
        return {event.ending and event.ending.how for event in lefts if event.inferred}

    assert endings_after(f"[::1]:{port} > [::1]:9092" for port in range(20)) == {None}
    assert endings_after(["[::1]:1 > [::1]:9092"] * 20) == {"open"}  # one that asks again and again


def test_a_connection_on_the_same_ports_is_another() -> None:
    script = Script("m")
    script.end(script.flow(0), 5)
    script.ends.opens(script.frame(script.flow(0), "c", 6))
    script.ends.speaks(MemberName("g", "m"), "classic", script.flow(0), Seen(6 * SECOND, "x", 5, 50))
    ending = script.out("m")
    assert ending is not None
    assert ending.how == "open"


def test_other_connections_count_only_where_they_can_be_of_no_other_member() -> None:
    alone, shared = Script("m"), Script("m", "n")
    for script in (alone, shared):
        fetching = script.flow(7)
        script.assign("m")
        script.ends.fetches(script.frame(fetching, "c", 3))
        script.end(fetching, 4)
        script.end(script.flow(0), 5)
    assert alone.out("m") == MemberEnding("closed", 5 * SECOND, (4, 5), SECOND, 10, True)
    assert shared.out("m") == MemberEnding("closed", 5 * SECOND, (5,), SECOND, 10, None)


def test_a_member_that_never_fetched() -> None:
    script = Script("m")
    script.ends.fetches(script.frame(script.flow(7), "c", 0))  # before it was in
    script.assign("m")
    ending = script.out("m")
    assert ending is not None
    assert ending.fetched is False


def test_a_request_from_before_the_end_may_be_looked_at_after_it() -> None:
    script = Script("m")
    fetching = script.flow(7)
    script.assign("m")
    script.ends.fetches(script.frame(fetching, "c", 3))
    script.end(fetching, 4)
    script.end(script.flow(0), 5)
    script.ends.opens(script.frame(fetching, "c", 3))
    assert script.out("m") == MemberEnding("closed", 5 * SECOND, (4, 5), SECOND, 10, True)


def test_an_answer_that_comes_after_the_end_opens_nothing() -> None:
    (killed,) = endings("classic-causes")
    assert (killed.how, killed.packets, killed.fetched) == ("closed", (674, 675, 676), True)


def test_an_ending_is_no_evidence_for_a_member_of_the_same_id_in_another_group() -> None:
    script = Script("m")
    other = "[::1]:2000 > [::1]:9092"
    script.ends.opens(script.frame(other, "c", 2))
    script.ends.speaks(MemberName("h", "m"), "classic", other, Seen(2 * SECOND, "x", 2, 20))
    script.end(other, 5)
    end = script.ends.end_of(MemberName("h", "m"))
    assert end is not None
    assert end.time_ns == 5 * SECOND
    assert script.ends.end_of(MemberName("g", "m")) is None
    assert script.out("m") == MemberEnding("open", None, (), SECOND, 10, None)


def test_packets_are_cited_of_the_capture_that_shows_the_departure() -> None:
    script = Script("m")
    script.end(script.flow(0), 5)
    event = MemberLeft(
        group="g", time_ns=20 * SECOND, source="y", number=9, packet=3, member_id="m", client_id="c",
        how="session_timeout", inferred=True,
    )  # fmt: skip
    seen = script.ends.see(event)
    assert isinstance(seen, MemberLeft)
    assert seen.ending == MemberEnding("closed", 5 * SECOND, (), SECOND, None, None)


def test_a_client_is_a_members_own_where_no_other_has_had_it_since() -> None:
    clients, client = SharedClients(), ("10.0.0.1", "c")
    member, other = MemberName("g", "a"), MemberName("h", "b")
    clients.joins(other, client)
    clients.leaves(other)
    clients.joins(member, client)
    assert clients.is_alone(member)
    clients.joins(other, client)
    assert not clients.is_alone(member)
    assert not clients.is_alone(other)
    clients.leaves(other)
    assert not clients.is_alone(member)
