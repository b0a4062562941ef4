"""Whatever members and coordinators say to each other, in whatever order, a timeline tells it without an
error: every rebalance that begins ends, no length is below zero, and all events can be pickled."""

from __future__ import annotations

import pickle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from coordwire.capture.entries import FrameEntry
from coordwire.messages import find_message
from coordwire.testing import strategies
from coordwire.timeline.events import RebalanceBegan, RebalanceEnded
from coordwire.timeline.from_wire.timeline import USED_APIS, timeline
from coordwire.timeline.totals import stories
from fuzz._run import main

NAMES = st.sampled_from(["", "a", "b", "c"])
SMALL = ("generation_id", "member_epoch", "generation_id_or_member_epoch")
ERRORS = st.sampled_from([0, 0, 0, 16, 22, 25, 27, 79, 82, 110])


def commit(message: Any, draw: st.DrawFn) -> Any:
    """Make it about one of a few groups and members, so that the frames meet."""
    for name in ("group_id", "member_id", "leader"):
        if isinstance(getattr(message, name, None), str):
            setattr(message, name, draw(NAMES))
    for name in SMALL:
        if hasattr(message, name):
            setattr(message, name, draw(st.integers(-2, 3)))
    if hasattr(message, "error_code"):
        message.error_code = draw(ERRORS)
    return message


@st.composite
def exchange(draw: st.DrawFn) -> list[FrameEntry]:
    key = draw(st.sampled_from(sorted(USED_APIS)))
    asks, answers = find_message(key, "request"), find_message(key, "response")
    version = draw(st.sampled_from(asks.versions))
    time_ns = draw(st.none() | st.integers(0, 1 << 40))
    shared: dict[str, Any] = {
        "capture": "fuzz", "flow": "a:1 > b:2", "body": b"", "api_key": key, "api_version": version,
        "body_version": version, "client_id": "till",
    }  # fmt: skip
    request = FrameEntry(
        number=draw(st.integers(1, 1 << 30)), direction="request", time_ns=time_ns,
        message=commit(draw(strategies.messages(asks, version=version)), draw), **shared,
    )  # fmt: skip
    response = FrameEntry(
        number=request.number + 1, direction="response", time_ns=time_ns, request=request,
        message=commit(draw(strategies.messages(answers, version=version)), draw), **shared,
    )  # fmt: skip
    return [request, response]


FRAMES = st.lists(exchange(), max_size=8).map(lambda pairs: [frame for pair in pairs for frame in pair])


@given(FRAMES.flatmap(st.permutations), st.booleans())
def fuzz(frames: list[FrameEntry], in_order: bool) -> None:
    entries = sorted(frames, key=lambda entry: entry.number) if in_order else frames
    events = list(timeline(entries))
    ended = [event for event in events if isinstance(event, RebalanceEnded)]
    assert sum(isinstance(event, RebalanceBegan) for event in events) == len(ended)
    assert all(event.length_ns is None or event.length_ns >= 0 for event in ended)
    assert pickle.loads(pickle.dumps(events)) == events
    assert set(stories(events)) == {event.group for event in events}


if __name__ == "__main__":
    main(fuzz)
