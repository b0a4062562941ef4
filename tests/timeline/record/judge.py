"""What the coordinator's own log says of each group, as facts that a timeline can be held to.

Strategy: one pass over the lines of Kafka's GroupMetadataManager, a pattern each. A classic group's
generation begins with "Preparing to rebalance" and is formed with "Stabilized" or "is now empty"; a modern
one begins with its bumped epoch, and is steady as soon as all members are STABLE in it. Rules: only what
the log says is a fact; a coordinator that restarts goes on where it was. Times are milliseconds since 1970.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

__all__ = ["facts"]

_LINE = re.compile(
    r"\[(\S+ \S+)\] \w+ \[GroupCoordinator id=1 topic=__consumer_offsets partition=\d+\] (.*?) "
    r"\(org\.apache\.kafka\.coordinator\.group\.(?:GroupMetadataManager|classic\.\w+)\)$"
)
_MODERN = re.compile(r"\[GroupId (?P<group>[^\]]+)\](?:\[MemberId (?P<named>[^\]]+)\])? (?P<text>.*)")
_PARTITION = re.compile(r"([\w-]+)-(\d+)(?:@\d+)?")


def _millis(text: str) -> int:
    return round(datetime.fromisoformat(text + "+00:00").timestamp() * 1000)


@dataclass
class _Group:
    """One group. members: those who are in; generations: each as it goes into the facts."""

    kind: str = ""
    members: dict[str, dict[str, Any]] = field(default_factory=dict)
    joined: list[dict[str, Any]] = field(default_factory=list)
    left: list[dict[str, Any]] = field(default_factory=list)
    generations: list[dict[str, Any]] = field(default_factory=list)
    epoch: int = 0
    conversions: list[dict[str, Any]] = field(default_factory=list)
    reasons: list[tuple[int, str]] = field(default_factory=list)

    def because(self, time: int, reason: str) -> None:
        """Something that the next epoch will be for."""
        self.reasons.append((time, reason))

    def join(self, time: int, member: str, how: str, instance: str | None = None) -> None:
        if member in self.members:
            return  # a classic member of a converted group that joins again
        self.members[member] = {"epoch": 0, "state": "", "has": [], "instance": instance}
        self.joined.append({"time": time, "member": member, "how": how})
        self.because(time, f"{how}: {member}")

    def replace(self, time: int, member: str, instance: str) -> None:
        """A static member came back under an id that the log doesn't say."""
        self.leave(time, member, "replaced")
        self.members[f"{instance}-?"] = {}

    def of_instance(self, instance: str | None) -> str:
        result = (
            name for name, member in self.members.items() if instance and member.get("instance") == instance
        )
        return next(result, "")

    def away(self, time: int, member: str) -> None:
        """A static member left for now; it is in until its session is over."""
        self.members[member]["away"] = True
        self.left.append({"time": time, "member": member, "how": "left_for_now"})

    def leave(self, time: int, member: str, how: str) -> None:
        if member not in self.members:
            nameless = (one for one in self.members if one.endswith("-?") and member.startswith(one[:-1]))
            self.members.pop(next(nameless, ""), None)
            self.members[member] = {}
        if self.members.pop(member, None) is not None:
            self.left.append({"time": time, "member": member, "how": how})
            self.because(time, f"{how}: {member}")


def facts(lines: Iterable[str], names: dict[str, str]) -> dict[str, Any]:
    """By group: its kind, who joined and left and how, its generations. names: of topics, by their ids."""
    groups: dict[str, _Group] = {}
    for line in lines:
        match = _LINE.match(line)
        if match:
            _classic(groups, _millis(match[1]), match[2])
            _modern(groups, _millis(match[1]), match[2], names)
    made: dict[str, Any] = {
        name: {
            "kind": group.kind, "joined": group.joined, "left": group.left,
            "generations": group.generations, "conversions": group.conversions,
            "members": sorted(group.members),
        }
        for name, group in sorted(groups.items())
    }  # fmt: skip
    return made


# --- classic groups ---

_NEW = (
    (re.compile(r"Pending dynamic member with id (?P<m>\S+) joins group (?P<g>\S+) in"), "joined"),
    (
        re.compile(
            r"(?:Static|Dynamic) member with (?:groupInstanceId=\S+ and )?unknown member id joins group "
            r"(?P<g>\S+) in (?:state )?\w+(?: state)?\. Created a new member id (?P<m>\S+) "
            r"(?:for this member and added to the|and added the member to the) group"
        ),
        "joined",
    ),
)
_REPLACED = re.compile(
    r"Static member with groupInstanceId=(?P<i>\S+) and unknown member id joins group (?P<g>\S+) in "
    r"\w+ state\. Replacing previously mapped member (?P<m>\S+) with this groupInstanceId"
)
_FAILED = re.compile(r"Member (?P<m>\S+) in group (?P<g>\S+) has failed, removing it from the group")
_LEFT = re.compile(
    r"\[Group (?P<g>[^\]]+)\] (?:Static|Dynamic)? ?[Mm]ember (?P<m>\S+)(?: with instance id \S+)? "
    r"has left group through"
)
_PREPARING = re.compile(
    r"Preparing to rebalance group (?P<g>\S+) in state \w+ with old generation (?P<n>\d+) "
    r"\(reason: (?P<r>.*)\)\."
)
_STABLE = re.compile(r"Stabilized group (?P<g>\S+) generation (?P<n>\d+) with (?P<m>\d+) members")
_EMPTY = re.compile(r"Group (?P<g>\S+) with generation (?P<n>\d+) is now empty")
_ASSIGNED = re.compile(
    r"Assignment received from leader (?P<m>\S+) for group (?P<g>\S+) for generation (?P<n>\d+)"
)


def _classic(groups: dict[str, _Group], time: int, text: str) -> None:
    for pattern, how in _NEW:
        if match := pattern.match(text):
            groups.setdefault(match["g"], _Group()).join(time, match["m"], how)
            return
    if match := _REPLACED.match(text):
        groups.setdefault(match["g"], _Group()).replace(time, match["m"], match["i"])
    elif match := _FAILED.match(text):
        groups.setdefault(match["g"], _Group()).leave(time, match["m"], "session_timeout")
    elif match := _LEFT.match(text):
        groups.setdefault(match["g"], _Group()).leave(time, match["m"], "left")
    elif match := _PREPARING.match(text):
        group = groups.setdefault(match["g"], _Group())
        group.kind = "classic"
        group.generations.append(
            {"generation": int(match["n"]) + 1, "began": time, "reason": match["r"], "members": None}
        )
    elif match := _STABLE.match(text):
        _formed(groups, match["g"], int(match["n"]), time)["members"] = int(match["m"])
    elif match := _EMPTY.match(text):
        _formed(groups, match["g"], int(match["n"]), time)["members"] = 0
    elif match := _ASSIGNED.match(text):
        for generation in reversed(groups.setdefault(match["g"], _Group()).generations):
            if generation["generation"] == int(match["n"]):
                generation.setdefault("steady", time)
                break


def _formed(groups: dict[str, _Group], name: str, generation: int, time: int) -> dict[str, Any]:
    """The generation that was formed just now; one whose beginning the log hasn't is added."""
    group = groups.setdefault(name, _Group())
    one: dict[str, Any]
    for one in reversed(group.generations):
        if one["generation"] == generation and one["members"] is None:
            one["formed"] = time
            return one
    made = {"generation": generation, "began": time, "formed": time, "reason": "", "members": None}
    group.generations.append(made)
    return made


# --- groups whose coordinator assigns ---

_CONVERTED = re.compile(r"Converted the \w+ group to a (?P<k>\w+) group")
_JOINS = re.compile(
    r"(?:Static m|M)ember(?: (?P<m>\S+))?(?: with instance id (?P<i>\S+))? joins the (?P<k>\w+) group"
)
_RETURNS = re.compile(
    r"Static member with instance id (?P<i>\S+) re-joins the (?P<k>\w+) group.* "
    r"Created a new member (?P<m>\S+) to replace the existing member (?P<old>\S+)\."
)
_GONE = re.compile(
    r"(?:Streams |Static |Dynamic )?[Mm]ember ?(?P<m>\S*)(?: with instance id (?P<i>\S+))? "
    r"(?P<how>fenced from the group because|temporarily left the|left the|has left group through)"
)
_BUMPED = re.compile(r"Bumped (?:streams )?group epoch to (?P<n>\d+)")
_TARGET = re.compile(r"Computed a new target assignment for epoch (?P<n>\d+)")
_STATE = re.compile(
    r"Member(?: (?P<m>\S+)|'s) new assignment state: epoch=(?P<n>-?\d+), previousEpoch=-?\d+, "
    r"state=(?P<s>\w+), (?:assignedPartitions=\[(?P<p>[^\]]*)\]|assignedTasks=\(active=\[(?P<t>[^\]]*)\])"
)


def _modern(groups: dict[str, _Group], time: int, text: str, names: dict[str, str]) -> None:
    result = _MODERN.match(text)
    if not result:
        return
    group, text, named = groups.setdefault(result["group"], _Group()), result["text"], result["named"]
    if match := _CONVERTED.match(text):
        group.kind, group.reasons = match["k"], []
        group.epoch = max([group.epoch, *(generation["generation"] for generation in group.generations)])
        group.conversions.append({"time": time, "to": match["k"]})
    elif match := _JOINS.match(text):
        group.kind = match["k"]
        group.join(time, match["m"] or named, "static" if match["i"] else "joined", match["i"])
    elif match := _RETURNS.match(text):
        group.leave(time, match["old"], "replaced")
        group.join(time, match["m"], "static", match["i"])
    elif match := _GONE.match(text):
        member = match["m"] or group.of_instance(match["i"]) or named
        if match["how"].startswith("temporarily"):
            group.away(time, member)
        else:
            expired = "session expired" in text
            fenced = "session_timeout" if expired else "rebalance_timeout"
            group.leave(time, member, fenced if match["how"].startswith("fenced") else "left")
        _settle(group, time)
    elif match := (_BUMPED.match(text) or _TARGET.match(text)):
        epoch = int(match["n"])
        if epoch > group.epoch:
            group.epoch = epoch
            began = group.reasons[0][0] if group.reasons else time
            reason = "; ".join(text for _, text in group.reasons)
            group.generations.append({"generation": epoch, "began": began, "reason": reason})
            group.reasons = []
        _settle(group, time)
    elif match := _STATE.match(text):
        member = group.members.setdefault(match["m"] or named, {})
        member["away"] = False
        listed = _PARTITION.findall(match["p"] if match["p"] is not None else match["t"] or "")
        member.update(
            epoch=int(match["n"]), state=match["s"],
            has=sorted([names.get(topic, topic), int(number)] for topic, number in listed),
        )  # fmt: skip
        _settle(group, time)
    elif "updated its subscribed" in text:
        group.because(time, text)


def _settle(group: _Group, time: int) -> None:
    """Whether all members are where the group is; the first time that they are is the fact."""
    if not group.generations or group.kind == "classic":
        return
    last = group.generations[-1]
    if "steady" in last or last["generation"] != group.epoch:
        return
    members = {name: member for name, member in group.members.items() if not member.get("away")}
    if all(
        member.get("epoch") == group.epoch and member.get("state") == "STABLE" for member in members.values()
    ):
        last["steady"] = time
        last["members"] = len(members)
        last["assignments"] = {name: members[name]["has"] for name in sorted(members)}
