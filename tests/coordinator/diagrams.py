"""`python -m tests.coordinator.diagrams` draws the state diagrams of the coordinator's page from the tables.

Each is a Mermaid block between two comments that name it; the rest of the page is as it was.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import TypeVar

from coordwire.coordinator.model.classic_group import CLASSIC_TRANSITIONS, GroupState
from coordwire.coordinator.model.consumer_group import ConsumerGroupState, MemberState

S = TypeVar("S", bound=Enum)

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "coordinator.md"


CONSUMER_TRANSITIONS: Mapping[tuple[ConsumerGroupState, ConsumerGroupState], str] = {
    (ConsumerGroupState.EMPTY, ConsumerGroupState.ASSIGNING): "a member joins: the group's epoch rises",
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.RECONCILING): "a target is computed",
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.STABLE): "a target is computed that members have",
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.STABLE): "the last member has come to it",
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.ASSIGNING): "the group's epoch rises",
    (ConsumerGroupState.STABLE, ConsumerGroupState.ASSIGNING): "the group's epoch rises",
    (ConsumerGroupState.STABLE, ConsumerGroupState.RECONCILING): "a static member leaves for now (-2)",
    (ConsumerGroupState.ASSIGNING, ConsumerGroupState.EMPTY): "the last member leaves",
    (ConsumerGroupState.RECONCILING, ConsumerGroupState.EMPTY): "the last member leaves",
    (ConsumerGroupState.STABLE, ConsumerGroupState.EMPTY): "the last member leaves",
}
"""The causes of changes of a group's state; one heartbeat may take a group several steps."""

MEMBER_TRANSITIONS: Mapping[tuple[MemberState, MemberState], str] = {
    (MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS): "its new target lacks what it owns",
    (MemberState.STABLE, MemberState.UNRELEASED_PARTITIONS): "others own what its new target has",
    (
        MemberState.UNREVOKED_PARTITIONS,
        MemberState.UNRELEASED_PARTITIONS,
    ): "it gave up, while others have not",
    (MemberState.UNREVOKED_PARTITIONS, MemberState.STABLE): "it gave up, and all of its target is free",
    (MemberState.UNRELEASED_PARTITIONS, MemberState.STABLE): "the last partition is free",
    (
        MemberState.UNRELEASED_PARTITIONS,
        MemberState.UNREVOKED_PARTITIONS,
    ): "a newer target lacks what it owns",
}
"""The causes of changes of a member's state."""


def _name(state: Enum) -> str:
    """As its group's description says it; members' states have numbers, and names of their own."""
    return state.value if isinstance(state.value, str) else state.name


def _diagram(transitions: Mapping[tuple[S, S], str]) -> str:
    lines = ["```mermaid", "stateDiagram-v2"]
    for (before, after), reason in transitions.items():
        if after is not GroupState.DEAD:
            lines.append(f"    {_name(before)} --> {_name(after)}: {reason}")
    return "\n".join([*lines, "```"])


DIAGRAMS: Mapping[str, str] = {
    "classic": _diagram(CLASSIC_TRANSITIONS),
    "consumer": _diagram(CONSUMER_TRANSITIONS),
    "member": _diagram(MEMBER_TRANSITIONS),
}


def with_diagrams(page: str) -> str:
    """The page with its diagrams as the code has them. Raises `ValueError` where it has no place for one."""
    for name, diagram in DIAGRAMS.items():
        place = re.compile(rf"(<!-- diagram {name} -->\n).*?(<!-- end -->)", re.DOTALL)
        page, count = place.subn(lambda match, diagram=diagram: f"{match[1]}{diagram}\n{match[2]}", page)  # type: ignore[misc]
        if count != 1:
            raise ValueError(f"expected one place for the diagram {name}, found {count}")
    return page


if __name__ == "__main__":
    PAGE.write_text(with_diagrams(PAGE.read_text()))
