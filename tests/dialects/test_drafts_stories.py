"""What the drafts' coordinators take for answered, and for gone."""

from __future__ import annotations

import pytest

from coordwire.dialects import ConnectionDialect
from coordwire.messages import Draft2PingRequest
from coordwire.timeline.events import GroupEvent, MemberLeft, RebalanceEnded
from coordwire.timeline.from_wire.timeline import timeline
from tests.dialects.test_drafts_growth import MS, Script
from tests.timeline.script import only

TIMEOUT_MS = 3_000


def events(script: Script) -> list[GroupEvent]:
    return list(timeline(script.entries, ends=True, dialect=ConnectionDialect(script.dialect)))


@pytest.mark.parametrize(("waits_ms", "ended"), [(1_900, 2), (2_100, 1)])
def test_a_start_that_is_answered_after_two_thirds_of_the_timeout_is_a_failed_attempt(
    waits_ms: int, ended: int
) -> None:
    script = Script("draft-2")
    script.accepts("c", session_timeout_ms=TIMEOUT_MS)
    for wait_ms in (waits_ms, 0):
        script.stops("c")
        answer = script.starts("c", 0)
        script.now += wait_ms * MS
        answer()
    rebalances = only(events(script), RebalanceEnded)
    assert [event.outcome for event in rebalances] == ["steady"] * ended
    assert rebalances[-1].ended_ns == script.now


@pytest.mark.parametrize(("waits_ms", "how"), [(2_000, "session_timeout"), (500, "removed")])
def test_a_consumer_whose_connection_ends_after_a_ping_in_vain_is_out_at_once(
    waits_ms: int, how: str
) -> None:
    script = Script("draft-2")
    for name in ("c", "silent"):
        script.accepts(name, session_timeout_ms=TIMEOUT_MS)
    script.rebalances(["c", "silent"])
    script.ask("silent", Draft2PingRequest(consumer_id="silent"))
    script.now += waits_ms * MS
    script.end("silent")
    ended_ns = script.now
    script.now += 5 * MS
    script.rebalances(["c"])
    (left,) = only(events(script), MemberLeft)
    assert (left.member_id, left.how, left.time_ns) == ("silent", how, ended_ns)
    assert left.ending is not None
    assert left.ending.how == "closed_by_broker"
