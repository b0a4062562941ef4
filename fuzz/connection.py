"""Whatever bytes a peer sends, in whatever pieces: a connection raises nothing, and pieces don't matter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordwire import Connection, Role
from coordwire.events import Event
from coordwire.messages import ApiVersionsRequest, HeartbeatRequest, SaslHandshakeRequest
from fuzz._run import main
from fuzz.seeds import framed

FRAMES = framed()


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """Captured frames and noise, one behind the other."""
    parts = draw(st.lists(st.one_of(st.sampled_from(FRAMES), st.binary(max_size=40)), min_size=1, max_size=4))
    data = b"".join(parts)
    at = draw(st.integers(0, len(data)))
    return data[:at] + draw(st.binary(max_size=4)) + data[at + draw(st.integers(0, 4)) :]


def events(role: Role, strict: bool, pieces: list[bytes]) -> list[Event]:
    connection = Connection(role, strict=strict)
    if role is Role.CLIENT:
        for message, version in (
            (ApiVersionsRequest(), 3),
            (HeartbeatRequest(), 4),
            (SaslHandshakeRequest(), 0),
        ):
            connection.send(message, version=version)
    found: list[Event] = []
    for piece in [*pieces, b""]:
        connection.receive_data(piece)
        found += connection.events()
    return found


@given(streams(), st.lists(st.integers(1, 50), max_size=8), st.sampled_from(Role), st.booleans())
def fuzz(data: bytes, cuts: list[int], role: Role, strict: bool) -> None:
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(data[at : at + cut])
        at += cut
    pieces = [piece for piece in [*pieces, data[at:]] if piece]
    whole = events(role, strict, [data] if data else [])
    assert repr(whole) == repr(events(role, strict, pieces))


if __name__ == "__main__":
    main(fuzz)
