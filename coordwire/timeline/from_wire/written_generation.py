"""The last generation of a classic group that its coordinator has written, as far as frames show it.

Strategy: a coordinator writes a generation once it is steady. After a move another goes on with what was
written, so that later members and subscriptions are lost. Rules: members are the group's own objects, which
change afterwards; their subscriptions and partitions at the time of writing are kept beside them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from coordwire.timeline.members import Member, Owned

__all__ = ["WrittenGeneration"]


class WrittenGeneration:
    """Of one group. generation: its number, None if none was seen."""

    def __init__(self, generation: int | None = None, members: Iterable[Member] = ()) -> None:
        self.generation = generation
        self._members: dict[str, tuple[Member, tuple[str, ...], Owned | None]] = {
            member.member_id: (member, member.topics, member.owned) for member in members
        }

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def replace(self, static: Member, heir: Member) -> None:
        """A static member's place in it is its heir's, which the coordinator writes, too."""
        if self._members.pop(static.member_id, None) is not None:
            self._members[heir.member_id] = heir, heir.topics, heir.owned

    def restored(self, present: Mapping[str, Member]) -> Iterator[Member]:
        """Its members, with what they subscribed to and owned then; those that are present as they are
        there."""
        for name, (member, topics, owned) in self._members.items():
            restored = present.get(name, member)
            restored.topics, restored.owned = topics, owned
            yield restored
