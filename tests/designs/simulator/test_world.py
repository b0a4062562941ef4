"""The clock, the network and its faults, with processes that only note what they get."""

from __future__ import annotations

import io
from collections.abc import Callable

import pytest

from coordwire.capture import Capture
from coordwire.connection import Connection
from coordwire.connection.events import Event, RequestReceived, ResponseReceived
from coordwire.designs.simulator import (
    Link,
    PcapWriter,
    PlannedFault,
    Process,
    SimulatedNode,
    TapRecords,
    World,
    parse_faults,
    random_faults,
    written_faults,
)
from coordwire.errors import Malformed
from coordwire.messages import HeartbeatRequest, HeartbeatResponse


class Notes(Process):
    """Notes what happens. before: called with it at its start."""

    def __init__(self, notes: list[str], begin: Callable[[Notes], None] | None = None) -> None:
        self.notes = notes
        self.begin = begin
        self.links: list[Link] = []

    def note(self, text: str) -> None:
        self.notes.append(f"{self.node.now} {self.node.name} {text}")

    def start(self, node: SimulatedNode) -> None:
        super().start(node)
        if self.begin is not None:
            self.begin(self)

    def on_accept(self, link: Link) -> None:
        self.links.append(link)
        self.note(f"accepts {link.peer}")

    def on_open(self, link: Link) -> None:
        self.links.append(link)
        self.note("is connected")

    def on_bytes(self, link: Link, data: bytes) -> None:
        self.note(f"reads {data.decode()}")

    def on_close(self, link: Link) -> None:
        self.note("lost the link")

    def on_timer(self, key: str) -> None:
        self.note(f"timer {key}")

    def on_fault(self, kind: str, words: tuple[str, ...]) -> None:
        self.note(f"fault {kind} {' '.join(words)}")


class Two:
    """A client that connects at once, and a server; every message takes 10 ms."""

    def __init__(self, plan: str = "") -> None:
        self.notes: list[str] = []
        self.world = World(seed=1, latency=(10, 10))
        self.server = self.world.add("server", lambda: Notes(self.notes))
        self.client = self.world.add(
            "client", lambda: Notes(self.notes, lambda notes: self._connect(notes.node))
        )
        self.world.plan(parse_faults(plan))

    def _connect(self, node: SimulatedNode) -> None:
        node.connect("server")

    def process(self, node: SimulatedNode) -> Notes:
        assert isinstance(node.process, Notes)
        return node.process

    def at(self, time: int, action: Callable[[], None]) -> None:
        self.world.clock.at(time, action)

    def says(self, time: int, node: SimulatedNode, text: str) -> None:
        self.at(time, lambda: self.process(node).links[-1].send(text.encode()))


def test_bytes_arrive_after_the_latency_and_in_order() -> None:
    two = Two()
    two.says(100, two.client, "a")
    two.says(100, two.client, "b")
    two.says(105, two.server, "c")
    two.at(106, lambda: two.process(two.client).links[0].close())
    two.says(107, two.server, "d")
    two.world.run(200)
    assert two.notes == [
        "10 server accepts client", "20 client is connected", "110 server reads a", "110 server reads b",
        "116 server lost the link",
    ]  # fmt: skip


def test_what_is_sent_in_a_cut_arrives_after_it() -> None:
    two = Two("100ms cut client ser* for 1s")
    two.says(200, two.client, "a")
    two.at(300, lambda: two.process(two.client).links[0].close())
    two.world.run(5_000)
    assert two.notes[2:] == ["1110 server reads a", "1110 server lost the link"]


def test_a_dropped_link_loses_what_is_on_its_way_and_both_sides_notice() -> None:
    two = Two("105ms drop client server")
    two.says(100, two.client, "a")
    two.world.run(200)
    assert two.notes[2:] == ["105 server lost the link", "105 client lost the link"]


def test_a_crash_forgets_memory_and_timers_and_keeps_the_disk() -> None:
    two = Two("100ms crash client for 1s")

    def prepare() -> None:
        two.client.disk["kept"] = 1
        two.client.set_timer("t", 500)

    two.at(50, prepare)
    two.world.run(5_000)
    assert two.notes[2:] == [
        "110 server lost the link", "1110 server accepts client", "1120 client is connected",
    ]  # fmt: skip
    assert two.client.disk == {"kept": 1}
    assert two.client.boots == 2


def test_a_frozen_process_gets_everything_later_in_order() -> None:
    two = Two("100ms freeze server for 1s; 300ms expire server now")
    two.at(50, lambda: two.server.set_timer("t", 200))
    two.says(150, two.client, "a")
    two.world.run(5_000)
    assert two.notes[2:] == ["1100 server reads a", "1100 server timer t", "1100 server fault expire now"]


def test_nobody_connects_to_what_is_down_or_cut_off() -> None:
    two = Two("0ms crash server for 10s; 20s cut client server for 20s")
    two.at(25_000, lambda: two._connect(two.client))
    two.at(31_000, lambda: two._connect(two.client))
    two.world.run(60_000)
    assert two.notes == [
        "20 client lost the link",
        "35010 client lost the link",
        "41010 client lost the link",
    ]


def test_a_slow_path_takes_longer() -> None:
    two = Two("50ms slow client * 200ms for 1s")
    two.says(100, two.client, "a")
    two.says(2_000, two.client, "b")
    two.world.run(3_000)
    assert two.notes[2:] == ["310 server reads a", "2010 server reads b"]


def test_a_timer_set_anew_replaces_the_one_before() -> None:
    two = Two()

    def set_timers() -> None:
        for at in (500, 300, 900, 400):
            two.client.set_timer("t", at)
        two.client.set_timer("u", 450)
        two.client.cancel_timer("u")

    two.at(100, set_timers)
    two.world.run(2_000)
    assert two.notes[2:] == ["400 client timer t"]


def test_steps_bound_a_run() -> None:
    two = Two()
    assert not two.world.run(1_000, steps=3)
    assert two.world.steps == 3
    assert two.world.run(1_000)


# --- messages and captures ---


class Server(Process):
    def on_accept(self, link: Link) -> None:
        link.connection = Connection("server")

    def on_event(self, link: Link, event: Event) -> None:
        if isinstance(event, RequestReceived):
            link.send_message(HeartbeatResponse(error_code=27), request=event)


class Client(Process):
    answers: int = 0

    def start(self, node: SimulatedNode) -> None:
        super().start(node)
        self.link = node.connect("server", connection=Connection("client", client_id="till"))

    def on_open(self, link: Link) -> None:
        self.node.set_timer("beat", self.node.now)

    def on_timer(self, key: str) -> None:
        beat = HeartbeatRequest(group_id="g", generation_id=1, member_id="m")
        self.link.send_message(beat, version=4)
        self.node.set_timer(key, self.node.now + 100)

    def on_event(self, link: Link, event: Event) -> None:
        assert isinstance(event, ResponseReceived)
        self.answers += 1


def run_heartbeats(seed: int) -> tuple[bytes, TapRecords, int]:
    file, records = io.BytesIO(), TapRecords()
    write = PcapWriter(file)

    def tap(record: object) -> None:
        write(record)  # type: ignore[arg-type]
        records.append(record)  # type: ignore[arg-type]

    world = World(seed=seed, tap=tap)
    world.add("server", Server)
    client = world.add("client", Client)
    world.plan(parse_faults("400ms drop client server"))
    world.run(1_000)
    assert isinstance(client.process, Client)
    return file.getvalue(), records, client.process.answers


def test_a_run_is_the_same_for_the_same_seed_and_can_be_read_as_a_capture() -> None:
    pcap, records, answers = run_heartbeats(3)
    assert run_heartbeats(3)[0] == pcap
    assert run_heartbeats(4)[0] != pcap
    assert answers == 4
    entries = list(Capture(io.BytesIO(pcap), "run.pcap").entries())
    bodies = [getattr(entry, "message", None) for entry in entries]
    assert [type(body).__name__ for body in bodies] == ["HeartbeatRequest", "HeartbeatResponse"] * 4
    kinds = [record.kind for record in records]
    assert (kinds[0], kinds.count("data"), kinds[-1]) == ("open", 8, "close")


# --- plans ---

PLAN = """10s crash coordinator-1 for 5s
15s crash consumer-2
20s freeze consumer-2 for 1m
30s cut consumer-1 coordinator-* for 1500ms
40s drop consumer-* coordinator-1
50s slow consumer-1 * 200ms for 10s
1h expire consumer-3
"""


def test_a_plan_is_text_and_back() -> None:
    plan = parse_faults(PLAN + "\n# nothing\n")
    assert written_faults(plan) == PLAN
    assert plan[0] == PlannedFault(10_000, "crash", ("coordinator-1",), duration=5_000)
    assert parse_faults(PLAN.replace("\n", ";")) == plan


def test_random_plans_are_text_and_back() -> None:
    for seed in range(50):
        plan = random_faults(seed, members=5)
        assert parse_faults(written_faults(plan)) == plan
    assert random_faults(1, members=5) == random_faults(1, members=5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("soon crash a", "expected a time such as 10s or 250ms, got 'soon'"),
        ("10s crash", "expected TIME KIND TARGET in '10s crash'"),
        ("10s cut a for 5s", "expected 2 targets of cut, got 1"),
        ("10s cut a b", "expected 'for' and a duration after cut"),
        ("10s crash a for ever", "expected a duration such as 10s after 'for', got 'ever'"),
        ("10s slow a b for 5s", "expected a latency such as 200ms after slow and its targets"),
        ("10s drop a b for 5s", "expected no duration after drop"),
        ("10s crash a b", "expected no more after crash and its target"),
        ("9" * 400 + "s crash a", "expected a time such as 10s or 250ms, got '999"),
        ("10s crash a for " + "9" * 400 + "h", "expected a duration such as 10s after 'for', got '999"),
        ("٣s crash a", "expected a time such as 10s or 250ms, got '٣s'"),
    ],
)
def test_what_is_not_a_plan_is_refused(text: str, reason: str) -> None:
    with pytest.raises(Malformed, match="line 2: " + reason):
        parse_faults("\n" + text)
