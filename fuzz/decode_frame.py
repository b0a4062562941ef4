"""Either a frame decodes, and encodes to bytes that decode to the same, or a DecodeError says where; never
any other error, and never another verdict from the interpreter."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from coordwire.codec.interpreter.decoder import Mark
from coordwire.errors import CoordwireError, DecodeError
from coordwire.frames import RequestFrame, read_request, read_response
from coordwire.messages.keys import FACTS
from fuzz._run import main
from fuzz.seeds import bodies, mutated

FRAMES = st.sampled_from(bodies()).flatmap(mutated)
KINDS = st.sampled_from(
    sorted((key, version) for key, facts in FACTS.items() for version in range(facts.last + 1))
)


@given(st.one_of(FRAMES, FRAMES, st.binary(max_size=64)), KINDS)
def fuzz(body: bytes, kind: tuple[int, int]) -> None:
    for strict in (True, False):
        for direction in ("request", "response"):
            check(body, direction, kind, strict)


def check(body: bytes, direction: str, kind: tuple[int, int], strict: bool) -> None:
    def read(marks: list[Mark] | None = None) -> object:
        if direction == "request":
            return read_request(body, strict=strict, marks=marks)
        return read_response(body, *kind, strict=strict, marks=marks)

    try:
        frame = read()
    except DecodeError as error:
        assert 0 <= error.position <= len(body), error
        assert error.reason
        try:
            read([])
        except DecodeError as again:
            assert (again.reason, again.position, again.path) == (error.reason, error.position, error.path)
        else:
            raise AssertionError(f"only the fast path refuses: {error}") from error
        return
    assert repr(read([])) == repr(frame)
    if isinstance(frame, RequestFrame):
        try:
            wire = frame.message.encode(version=frame.api_version)
        except CoordwireError as error:
            raise AssertionError(f"decoded, but can't be encoded: {error}") from error
        assert (
            type(frame.message).decode(wire, version=frame.api_version).encode(version=frame.api_version)
            == wire
        )


if __name__ == "__main__":
    main(fuzz)
