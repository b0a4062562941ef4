"""What a group's events amount to: whose coming and going was that of a process."""

from __future__ import annotations

from collections import Counter
from typing import Literal

import pytest

from coordwire.timeline.events import Cause, ErrorMet, HowEnded, MemberEnding, MemberJoined, MemberLeft
from coordwire.timeline.story.incidents import incidents
from coordwire.timeline.story.member_numbers import MemberNumbers
from coordwire.timeline.story.wording import verdict
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


@pytest.mark.parametrize("comes_as", ["c-1", "c-2"])
def test_who_asks_once_it_is_out_was_not_restarted(comes_as: str) -> None:
    """Its process has another connection, on which it sends the id of the member that it was."""
    story = GroupStory("g")
    ending = MemberEnding("closed", 2, (), 1, None, None)
    story.add(joins(1, "c-1", "10.0.0.1:50000"))
    out = MemberLeft(
        group="g", time_ns=3, source=SOURCE, number=2, member_id="c-1", client_id="c",
        how="session_timeout", inferred=True, ending=ending,
    )  # fmt: skip
    refused = ErrorMet(
        group="g", time_ns=3, source=SOURCE, number=2, api="JoinGroup", error_code=25, member_id="c-1",
        client_id="c",
    )  # fmt: skip
    for event in (refused, out) if comes_as == "c-2" else (out,):
        story.add(event)
    story.add(joins(4, comes_as, "10.0.0.1:50001"))
    assert story.restarted == set()


@pytest.mark.parametrize(
    ("cause", "words"),
    [("assignment_changed", "2 clients and the coordinator"), ("unknown", "2 clients and others")],
)
def test_the_coordinator_is_no_client(cause: Cause, words: str) -> None:
    story = GroupStory("g", rebalances=5)
    joined: Cause = "new_member"
    story.caused = {"a": Counter({joined: 2}), "b": Counter({joined: 2}), None: Counter({cause: 1})}
    assert f"caused by {words}" in verdict(story)
    del story.caused[None]
    assert "caused by 2 clients" in verdict(story)


@pytest.mark.parametrize(
    ("kind", "deed"), [("consumer", "ended without leaving"), ("classic", "closed or was killed (static)")]
)
def test_a_static_member_closes_without_a_word_in_a_classic_group_only(
    kind: Literal["consumer", "classic"], deed: str
) -> None:
    """One of KIP-848 says so, with epoch -2."""
    events = [
        MemberJoined(
            group="g", time_ns=1, source=SOURCE, number=1, kind=kind, member_id="m", client_id="c", host=None,
            instance_id="i",
        ),
        MemberLeft(
            group="g", time_ns=2, source=SOURCE, number=2, member_id="m", client_id="c", instance_id="i",
            how="session_timeout", inferred=True, ending=MemberEnding("closed", 1, (), 1, None, None),
        ),
    ]  # fmt: skip
    (incident,) = incidents(events, events, [], MemberNumbers.of(events))
    assert deed in incident.lines[0]
