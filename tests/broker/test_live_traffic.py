"""A broker's traffic as a capture, written while it happens."""

from __future__ import annotations

import io
from typing import Any

from coordwire import Connection
from coordwire.broker.harness.traffic import LiveTraffic
from coordwire.capture import Capture, FrameEntry
from coordwire.messages import HeartbeatRequest


class Kept(io.BytesIO):
    """It keeps its bytes when it is closed."""

    def close(self) -> None:
        pass


class Gone(io.RawIOBase):
    """A pipe without a reader."""

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        raise BrokenPipeError


def frames(data: bytes) -> list[str]:
    entries = Capture(io.BytesIO(data), "live", ports={9092}).entries()
    return [entry.message.group_id for entry in entries if isinstance(entry, FrameEntry)]  # type: ignore[union-attr]


def heartbeat(group: str) -> bytes:
    return Connection("client").send(HeartbeatRequest(group_id=group, member_id="m"), version=4)


def test_what_was_sent_is_in_the_capture() -> None:
    out = Kept()
    ended: list[int] = []
    live = LiveTraffic(out, then=lambda: ended.append(1))
    numbers = [live.opened(("127.0.0.1", 5000 + at), ("127.0.0.1", 9092)) for at in range(2)]
    live.add(numbers[0], heartbeat("a")[:9], to_client=False)
    live.add(numbers[1], heartbeat("b"), to_client=False)
    live.add(numbers[0], heartbeat("a")[9:], to_client=False)
    live.close()
    assert sorted(frames(out.getvalue())) == ["a", "b"]
    assert (live.lost, ended) == (0, [1])


def test_a_connection_that_lost_a_piece_is_written_no_more() -> None:
    out = Kept()
    live = LiveTraffic(out, most=100)
    numbers = [live.opened(("127.0.0.1", 5000 + at), ("127.0.0.1", 9092)) for at in range(2)]
    live.add(numbers[0], bytes(101), to_client=False)
    live.add(numbers[0], heartbeat("a"), to_client=False)
    live.add(numbers[1], heartbeat("b"), to_client=False)
    live.close()
    assert frames(out.getvalue()) == ["b"]
    assert live.lost == 1


def test_a_reader_that_has_gone_ends_the_writing_only() -> None:
    live = LiveTraffic(Gone())  # type: ignore[arg-type]
    number = live.opened(("127.0.0.1", 5000), ("127.0.0.1", 9092))
    for _ in range(3):
        live.add(number, heartbeat("a"), to_client=False)
    live.close()
    assert isinstance(live.failure, BrokenPipeError)
