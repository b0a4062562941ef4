"""A group's node in ZooKeeper, from which a new coordinator of draft 3 learns its members.

Source: later revisions of the new consumer's page. One (38572008 to 38572009) keeps "the group config and
partition ownership metadata in ZK as a json object", updated when a rebalance is complete and read at a
failover; another (40510090 to 40510091) has the new coordinator load it before it takes pings. None gives
the node's path or keys: these are ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.designs.zookeeper import Registration
from coordwire.designs.zookeeper.checks import built, int32, json_object, list_of, string
from coordwire.errors import Malformed

__all__ = ["GroupMetadata", "KnownMember"]


@dataclass(frozen=True, slots=True)
class KnownMember:
    """A member as the node has it. session_ms: its session timeout."""

    session_ms: int
    topics: frozenset[str]
    owned: tuple[DraftPartition, ...]


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A generation of a group: its members by their ids."""

    generation: int
    members: Mapping[str, KnownMember]

    @staticmethod
    def path(group_id: str) -> str:
        """Raises `EncodeError` for a group id that cannot be in a path."""
        return Registration.path(group_id, "0").rpartition("/ids/")[0] + "/metadata"

    def build(self) -> bytes:
        return built({"version": 1, "generation": self.generation, "members": {
            name: {
                "session_timeout": member.session_ms, "subscribing": sorted(member.topics),
                "owned": [list(partition) for partition in member.owned],
            }
            for name, member in self.members.items()
        }})  # fmt: skip

    @classmethod
    def parse(cls, data: bytes) -> GroupMetadata:
        """Raises `DecodeError`."""
        form = json_object(data, "a GroupMetadata node")
        members = form.get("members")
        if not isinstance(members, dict):
            raise Malformed("expected an object", 0, "members")
        return cls(
            int32(form.get("generation"), "generation"),
            {name: _member(value, f"members.{name}") for name, value in members.items()},
        )


def _member(value: Any, path: str) -> KnownMember:
    if not isinstance(value, dict):
        raise Malformed("expected an object", 0, path)
    session_ms = int32(value.get("session_timeout"), f"{path}.session_timeout")
    topics = list_of(string)(value.get("subscribing"), f"{path}.subscribing")
    owned = list_of(list_of(string))(value.get("owned"), f"{path}.owned")
    if session_ms <= 0 or any(len(pair) != 2 for pair in owned):
        raise Malformed("expected a session timeout above 0, and pairs of a topic and a partition", 0, path)
    return KnownMember(session_ms, frozenset(topics), tuple(DraftPartition(*pair) for pair in owned))
