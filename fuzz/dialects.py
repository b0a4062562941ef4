"""Whatever bytes a peer sends in any dialect, in whatever pieces: a connection raises nothing, pieces don't
matter, and what it read can be written again."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordwire import Connection, Role
from coordwire.connection.dialect import Dialect
from coordwire.connection.events import Event, RequestReceived
from coordwire.dialects.connection import ConnectionDialect
from coordwire.dialects.grammar import CALLS, Grammar
from coordwire.frames import PREFIX
from fuzz._run import main
from tests.conversations import CONVERSATIONS, spoken

FRAMES = {
    dialect: [
        data
        for spoken_dialect, lines in CONVERSATIONS.values()
        if spoken_dialect is dialect
        for _, _, data in spoken(dialect, lines)
    ]
    for dialect in CALLS
}
"""What is said in each, by either side."""

FRAMES[Dialect.ZOOKEEPER] = [
    Grammar(Dialect.ZOOKEEPER).encode(call.message(direction)(), version=version)
    for call in CALLS[Dialect.ZOOKEEPER]
    for direction in (("request", "response") if call.response else ("request",))
    for version in call.message(direction).versions
]


@st.composite
def streams(draw: st.DrawFn) -> tuple[Dialect, bytes]:
    """Frames of a conversation, in any order, with some bytes changed; and noise."""
    dialect = draw(st.sampled_from(list(FRAMES)))
    noise = st.binary(max_size=40).map(lambda body: len(body).to_bytes(PREFIX) + body)
    part = st.one_of(st.sampled_from(FRAMES[dialect]), noise, st.binary(max_size=20))
    data = bytearray(b"".join(draw(st.lists(part, max_size=6))))
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, len(data)))
        data[at : at + draw(st.integers(0, 4))] = draw(st.binary(max_size=4))
    return dialect, bytes(data)


def events(
    dialect: Dialect, role: Role, auto_commit: bool | None, strict: bool, pieces: list[bytes]
) -> list[Event]:
    connection = Connection(role, dialect=ConnectionDialect(dialect, auto_commit=auto_commit), strict=strict)
    grammar = Grammar(dialect)
    for call in CALLS[dialect]:  # so that answers have a request
        if call.asker == role.value:
            message = call.message("request")()
            connection.send(message)
            assert grammar.find(message) == (call, "request")
    results: list[Event] = []
    for piece in [*pieces, b""]:
        connection.receive_data(piece)
        results += connection.events()
    return results


def encoded_again(frame: Any) -> bytes:
    """A received frame as it was sent, with what its header says, if it has one of Kafka 0.8."""
    return Grammar(frame.dialect).encode(
        frame.message,
        version=frame.version,
        correlation_id=frame.correlation_id,
        client_id=getattr(frame.header, "client_id", None),
    )


@given(
    streams(), st.integers(1, 9), st.sampled_from(Role), st.sampled_from([None, True, False]), st.booleans()
)
def fuzz(
    stream: tuple[Dialect, bytes], step: int, role: Role, auto_commit: bool | None, strict: bool
) -> None:
    dialect, data = stream
    pieces = [data[at : at + step] for at in range(0, len(data), step)]
    whole = events(dialect, role, auto_commit, strict, [data] if data else [])
    assert repr(whole) == repr(events(dialect, role, auto_commit, strict, pieces))
    for event in whole:
        if isinstance(event, RequestReceived) and strict:
            assert encoded_again(event.frame) in data


if __name__ == "__main__":
    main(fuzz)
