"""What a capture may hold, all of its connections together: counted, and under a limit on memory."""

from __future__ import annotations

import gc
import io
import struct
import subprocess
import sys
import textwrap
from collections.abc import Iterable, Iterator
from itertools import chain

import pytest

from coordwire import encode_request, encode_response, limits
from coordwire.capture import client_search, connections, conversation
from coordwire.capture.connections import Connections, Summary
from coordwire.capture.conversation import Conversation
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.flows import Chunk, Flow, Gap, NetworkAddress, Opened
from coordwire.capture.formats.pcap import read_packets
from coordwire.capture.framing import FrameBody
from coordwire.capture.pending_requests import REDUCED, AwaitedRequest, PendingRequests
from coordwire.capture.reader import Capture
from coordwire.capture.rotation import rejoined
from coordwire.capture.tcp.link import read_segments
from coordwire.capture.tcp.reassembly import HELD, PIECE, WINDOW, FlowTable, reassemble
from coordwire.codec import Message
from coordwire.errors import UnreadableRange
from coordwire.messages import (
    HeartbeatRequest,
    HeartbeatResponse,
    ProduceRequest,
    ProduceResponse,
)
from coordwire.timeline.events import Unanswered
from coordwire.timeline.from_wire.timeline import timeline
from tests.capture.streams import read_streams

from . import build

BROKER = NetworkAddress("10.0.0.2", 9092)


def heartbeat(number: int, member: str = "m") -> bytes:
    message = HeartbeatRequest(group_id="g", generation_id=1, member_id=member)
    return encode_request(message, version=4, correlation_id=number, client_id="c")


def answer(number: int, message: Message | None = None, version: int = 4) -> bytes:
    return encode_response(message or HeartbeatResponse(), version=version, correlation_id=number)


def produce(number: int, acks: int) -> bytes:
    return encode_request(ProduceRequest(acks=acks), version=9, correlation_id=number, client_id="c")


def frames(data: bytes, waiting: PendingRequests | None = None) -> list[FrameEntry]:
    capture = Capture(io.BytesIO(data), "test", input="frames")
    if waiting is not None:
        capture.waiting = waiting
    return [entry for entry in capture.entries() if isinstance(entry, FrameEntry)]


# --- requests that wait


def test_what_waits_is_within_the_budget() -> None:
    waiting = PendingRequests(50 * REDUCED)
    for number in range(1000):
        size = number * 7919 % 5000
        entry = frames(heartbeat(number, "m" * size))[0]
        waiting.add(AwaitedRequest(entry, lambda _: None))
        assert waiting.cost <= waiting.budget
    assert waiting.reduced
    assert waiting.forgotten == 1000 - len(waiting)


def test_the_dearest_are_reduced_first() -> None:
    waiting = PendingRequests(20_000)
    asked = [
        AwaitedRequest(frames(heartbeat(n, "m" * size))[0], lambda _: None)
        for n, size in enumerate([50, 9000, 50])
    ]
    for one in asked:
        waiting.add(one)
    waiting.add(AwaitedRequest(frames(heartbeat(3, "m" * 9000))[0], lambda _: None))
    assert [bool(one.entry.released) for one in asked] == [False, True, False]
    assert waiting.forgotten == 0


def test_the_answer_of_a_reduced_request_has_what_is_left() -> None:
    large = heartbeat(1, "m" * 9000)
    first, response = frames(large + answer(1), PendingRequests(2 * REDUCED))
    assert isinstance(first.message, HeartbeatRequest)  # what was given out isn't changed
    assert first.body
    assert response.error is None
    assert response.message == HeartbeatResponse()
    assert response.client_id == "c"
    request = response.request
    assert request is not None
    assert (request.message, request.header, request.body) == (None, None, b"")
    assert (request.number, request.size, request.released) == (1, first.size, first.size)
    assert (request.api_key, request.correlation_id) == (first.api_key, 1)


def test_what_nobody_answers_keeps_nothing() -> None:
    data = produce(1, 0) + answer(1, ProduceResponse(), 9) + produce(2, 1) + answer(2, ProduceResponse(), 9)
    _, first, asked, second = frames(data)
    assert first.request is not None
    assert first.request.released == first.request.size > 0
    assert second.request is asked


def test_forgotten_requests_are_reported_by_their_answers() -> None:
    first = 0x7F000000  # not an api key
    data = b"".join(heartbeat(first + number) for number in range(5))
    waiting = PendingRequests(3 * REDUCED)
    orphan = frames(data + answer(first), waiting)[-1]
    assert waiting.forgotten == 2
    assert orphan.error is not None
    assert "no request of this correlation id was seen" in orphan.error.reason
    assert "the 2 oldest of too many" in orphan.error.reason


def test_requests_under_one_number_are_forgotten_in_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those that came after the order was first looked at."""
    monkeypatch.setattr(conversation, "LATEST", 3)
    data = [heartbeat(1), heartbeat(2), heartbeat(1), heartbeat(3), heartbeat(1), heartbeat(4)]
    result = frames(b"".join([*data, answer(1), answer(3), answer(4), answer(2)]))
    numbers = [entry.request and entry.request.number for entry in result[len(data) :]]
    assert numbers == [5, 4, 6, None]


def test_the_order_names_none_that_was_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "LATEST", 3)
    data = [*(heartbeat(n) for n in range(1, 5)), answer(2), heartbeat(5), heartbeat(6)]  # 1 and 3 go
    result = frames(b"".join([*data, answer(4), answer(5), answer(6), answer(3)]))
    assert [entry.error is None for entry in result[len(data) :]] == [True, True, True, False]


def waiting_requests() -> set[int]:
    """The identities of all that there are in this process."""
    return {id(instance) for instance in gc.get_objects() if type(instance) is AwaitedRequest}


def test_what_waits_no_longer_is_not_kept() -> None:
    """Neither in a cycle that only the collector finds, nor among those that may be reduced."""
    waiting = PendingRequests(20 * REDUCED)
    kept = []
    for number in range(500):
        request = AwaitedRequest(frames(heartbeat(number, "m" * 50))[0], lambda _: None)
        waiting.add(request)
        waiting.remove(request)
        del request
        waiting.add(AwaitedRequest(frames(heartbeat(number, "m" * 500))[0], lambda _: None))
        kept.append(waiting.place_count)
    assert waiting.reduced
    assert max(kept) <= 4 * 20 + 65
    del waiting

    gc.collect()
    gc.disable()
    try:
        before = waiting_requests()  # other tests may keep entries
        frames(heartbeat(1) + answer(1))
        assert waiting_requests() == before
    finally:
        gc.enable()


def test_what_was_answered_is_not_kept_to_be_reduced() -> None:
    waiting = PendingRequests(4 * REDUCED)
    for number in range(500):
        request = AwaitedRequest(
            frames(heartbeat(number, "m" * 9000 if number < 2 else "m"))[0], lambda _: None
        )
        waiting.add(request)
        waiting.remove(request)
    assert waiting.reduced == 2
    assert waiting.place_count <= 65


def test_one_way_requests_count_neither_as_reduced_nor_as_forgotten() -> None:
    waiting = PendingRequests(4 * REDUCED)
    for number in range(6):
        waiting.add(AwaitedRequest(frames(produce(number, 0))[0], lambda _: None))
    assert len(waiting) == 4
    assert (waiting.reduced, waiting.forgotten) == (0, 0)


def test_a_closed_connection_waits_for_nothing() -> None:
    waiting = PendingRequests()
    talk = Conversation("test", lambda: 1, waiting=waiting)
    for data in (heartbeat(1), heartbeat(1), heartbeat(2)):
        talk.request(FrameBody(data[4:], 0, None), "")
    assert (len(waiting), waiting.cost > 0) == (3, True)
    talk.close()
    assert (len(waiting), waiting.cost) == (0, 0)
    assert not talk.expects(answer(1)[4:])


def test_a_number_used_again_is_not_forgotten_for_the_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest is forgotten, and nothing else: not a newer request under a number that was answered."""
    monkeypatch.setattr(conversation, "LATEST", 3)
    data = [heartbeat(1), heartbeat(2), answer(2), heartbeat(2), heartbeat(3), heartbeat(4)]
    result = frames(b"".join([*data, answer(2), answer(3), answer(4), answer(1)]))
    assert [entry.error is None for entry in result] == [True] * 9 + [False]


@pytest.mark.parametrize("ids", [[1, 2, 3, 4, 5], [1, 1, 1, 1, 1], [1, 2, 1, 2, 1]])
def test_the_latest_are_remembered(ids: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "LATEST", 3)
    numbers = iter(range(1, 100))
    talk = Conversation("test", lambda: next(numbers))
    asked = [talk.request(FrameBody(heartbeat(n)[4:], 0, None), "") for n in ids]
    answered = [talk.response(FrameBody(answer(n)[4:], 0, None), "").request for n in ids]
    assert [one for one in answered if one is not None] == asked[2:] or ids == [1, 2, 3, 4, 5]
    assert sum(one is None for one in answered) == 2
    assert len(talk.waiting) == 0
    assert talk.waiting.cost == 0


def test_a_connection_that_ends_waits_no_longer() -> None:
    packets = [
        build.packet(seq=99, flags=build.SYN),
        build.packet(heartbeat(1), seq=100),
        build.packet(seq=100 + len(heartbeat(1)), flags=build.FIN | build.ACK),
    ]
    capture = Capture(io.BytesIO(build.pcap(packets)), "test")
    assert len(list(capture.entries())) == 1
    assert (len(capture.waiting), capture.waiting.cost) == (0, 0)


def test_captures_that_go_on_wait_within_the_budget() -> None:
    entries = frames(b"".join(heartbeat(n, "m" * 100) for n in range(5)))
    for entry in entries:
        entry.flow = "a > b"
    assert list(rejoined(entries)) == entries


def test_a_story_says_that_it_lacks_the_request() -> None:
    result = frames(heartbeat(1, "m" * 9000) + answer(1), PendingRequests(2 * REDUCED))
    (event,) = timeline(result)
    assert isinstance(event, Unanswered)
    assert event.unreadable


# --- connections

FLOWS = [Flow(NetworkAddress("10.0.0.1", 1000 + n), BROKER, n) for n in range(20)]


def entries(events: Iterable[Opened | Chunk | Gap]) -> Iterator[Entry]:
    summary = Summary()
    reader = Connections("test", summary, lambda: (Conversation("test", summary.next_frame),))
    return chain.from_iterable(reader.batches(events, []))  # type: ignore[arg-type]


def chunk(flow: Flow, data: bytes) -> Chunk:
    return Chunk(flow, 1, 0, data)


def test_undecided_connections_are_given_up_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_search, "UNDECIDED", 10_000)
    monkeypatch.setattr(connections, "UNDECIDED", 10_000)
    junk = [chunk(flow, b"\xff" * 1000) for flow in FLOWS]
    results = list(entries([*junk, *(chunk(flow, heartbeat(1)) for flow in FLOWS)]))
    abandoned = [
        entry for entry in results if isinstance(entry, UnreadableRange) and "abandoned" in entry.reason
    ]
    assert [entry.flow for entry in abandoned] == [str(flow) for flow in FLOWS[: len(abandoned)]]
    assert all(entry.length == 1000 for entry in abandoned)
    read = [entry.flow for entry in results if isinstance(entry, FrameEntry)]
    assert read == [str(flow) for flow in FLOWS[len(abandoned) :]]
    assert 0 < len(read) < len(FLOWS)


def test_pieces_of_an_undecided_connection_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_search, "PIECES", 10)
    flow = FLOWS[0]
    lost = [Gap(flow, 1, 0, 1, "lost")] * 11
    assert list(entries([*lost, chunk(flow, heartbeat(1))])) == []
    assert len(list(entries([*lost[:9], chunk(flow, heartbeat(1))]))) > 0


def opened(flow: Flow) -> Opened:
    return Opened(flow, 1, BROKER)


def test_frames_that_have_begun_are_abandoned_oldest_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "OPEN_FRAMES", 5000)
    begun = struct.pack(">i", 4000) + heartbeat(1)[4:] + bytes(1000)
    events = [event for flow in FLOWS[:10] for event in (opened(flow), chunk(flow, begun))]
    with limits(frame=4500):
        results = list(entries(events))
    assert [entry.flow for entry in results] == [str(flow) for flow in FLOWS[: len(results)]]
    assert all(isinstance(entry, UnreadableRange) and entry.length == len(begun) for entry in results)
    assert len(results) == 10 - 5000 // len(begun)


def test_early_answers_of_all_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "EARLY", 200)
    events: list[Opened | Chunk | Gap] = []
    for flow in FLOWS:
        events += [opened(flow), chunk(flow, heartbeat(1)), chunk(flow.reverse, answer(7) + answer(8))]
    results = [entry for entry in entries(events) if isinstance(entry, FrameEntry)]
    early = sum(entry.direction == "response" for entry in results)
    held = 2 * len(FLOWS) - early
    assert held == 200 // (len(answer(7)) - 4)


def test_segments_of_all_flows_are_abandoned_longest_first() -> None:
    packets = []
    for flow in FLOWS[:6]:
        source = flow.source.address, flow.source.port
        for inner in (
            build.tcp(seq=99, flags=build.SYN, source=source),
            build.tcp(b"x" * 100, seq=200, source=source),
        ):
            packets.append(build.ethernet(build.ipv4(inner, source)))
    segments = read_segments(read_packets(io.BytesIO(build.pcap(packets))))
    results = [
        event for event in reassemble(segments, FlowTable(budget=4 * (PIECE + 100))) if isinstance(event, Gap)
    ]
    full = [event.flow.source for event in results if "too much data waits" in event.reason]
    assert full == [flow.source for flow in FLOWS[:2]]


def test_what_is_held_and_given_out_counts_no_more() -> None:
    """Holes that are filled leave room, however many there were."""
    packets = [build.packet(seq=99, flags=build.SYN)]
    for number in range(200):
        packets += [
            build.packet(b"y" * 50, seq=150 + 100 * number),
            build.packet(b"x" * 50, seq=100 + 100 * number),
        ]
    assert not [event for event in read_streams(io.BytesIO(build.pcap(packets))) if isinstance(event, Gap)]
    for window, held in ((1000, HELD), (WINDOW, 1000)):
        segments = read_segments(read_packets(io.BytesIO(build.pcap(packets))))
        events = reassemble(segments, FlowTable(window=window, budget=held))
        assert not [event for event in events if isinstance(event, Gap)]


# --- under a limit

ATTACKS = {
    "requests without answers": """
        m = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=[
            PartitionProduceData(index=0, records=bytes(200_000))])])
        f = coordwire.encode_request(m, version=9, correlation_id=1, client_id="c")
        parts = (f[:8] + i.to_bytes(4, "big") + f[12:] for i in range(2000))
        """,
    "requests that are larger decoded": """
        m = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="", partitions=[]) for _ in range(2000)])
        f = coordwire.encode_request(m, version=2, correlation_id=1, client_id="c")
        parts = (f[:8] + i.to_bytes(4, "big") + f[12:] for i in range(1500))
        """,
    "a dump of many lines": """
        kind = "hex"
        parts = (b"".join(b"%08x: 00\\n" % (i * 10_000 + n) for n in range(10_000)) for i in range(100))
        """,
}


SCRIPT = """
import gc, io, resource, sys
import coordwire
from coordwire.capture.reader import Capture
from coordwire.messages import *
from coordwire.messages.delete_records import *
from coordwire.messages.produce import *

class Parts(io.RawIOBase):
    rest = b""
    def read(self, size=-1):
        if not self.rest:
            self.rest = next(parts, b"")
        part, self.rest = self.rest[:size], self.rest[size:]
        return part

kind = "frames"
ATTACK
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
found = 0
for _ in Capture(Parts(), "x", input=kind).entries():
    found += 1
    if sys.implementation.name == "pypy" and found % 50 == 0:
        gc.collect()  # PyPy's collector frees large objects late: here the bound is of what lives
print(found)
"""


@pytest.mark.slow
@pytest.mark.parametrize("attack", ATTACKS)
def test_memory_is_bounded(attack: str) -> None:
    """200 MB of address space, beyond what an interpreter takes that has everything imported."""
    script = SCRIPT.replace("ATTACK", textwrap.dedent(ATTACKS[attack]))
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr[-2000:]
    assert int(result.stdout) >= 1
