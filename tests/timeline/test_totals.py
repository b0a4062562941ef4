"""What a group's events amount to: whose coming and going was that of a process."""

from __future__ import annotations

import pytest

from coordwire.timeline.events import HowEnded, MemberEnding, MemberJoined, MemberLeft
from coordwire.timeline.totals import GroupStory

SOURCE = "capture.pcap"


def joins(number: int, member_id: str, host: str) -> MemberJoined:
    return MemberJoined(
        group="g", time_ns=number, source=SOURCE, number=number, kind="classic", member_id=member_id,
        client_id="c", host=host,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("how", "restarted"), [(None, set()), ("open", set()), ("closed", {"c"}), ("reset", {"c"})]
)
def test_a_client_has_restarted_only_if_its_connections_ended(
    how: HowEnded | None, restarted: set[str]
) -> None:
    """how: of its connections; None for a member that left by itself, whose process may live on."""
    ending = None if how is None else MemberEnding(how, None, (), None, None, None)
    story = GroupStory("g")
    story.add(joins(1, "c-1", "10.0.0.1:50000"))
    story.add(
        MemberLeft(
            group="g", time_ns=2, source=SOURCE, number=2, member_id="c-1", client_id="c",
            how="left" if how is None else "session_timeout", inferred=how is not None, ending=ending,
        )
    )  # fmt: skip
    story.add(joins(3, "c-2", "10.0.0.1:50001"))
    assert story.restarted == restarted
