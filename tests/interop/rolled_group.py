"""Upgrades that are really done: members of classic groups restart one by one on a real broker.

Strategy: one JVM has all members (java/RollingMembers.java) and prints what each has and loses. Groups roll
side by side, each at its own pace: the next member restarts once all partitions have a reader and nothing has
changed for a while. The log of the groups' coordinator is copied before the first restart and after the last.
"""

from __future__ import annotations

import shutil
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from coordwire.messages import CreateTopicsRequest
from coordwire.messages.create_topics import CreatableTopic
from tests.interop.broker import Broker, BrokerError, Java, ask

SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "offsets.topic.replication.factor": "1",
    "log.cleaner.dedupe.buffer.size": "8388608",
}
_SOURCE = Path(__file__).parent / "java" / "RollingMembers.java"
_INDEXES = shutil.ignore_patterns("*.index", "*.timeindex", "*.lock", "*.tmp", "*.deleted")
_QUIET_MS, _PATIENCE_S = 6_000, 90
"""So long nothing changes in a group that has settled; and so long it may take."""


@dataclass(frozen=True, slots=True)
class RealGroup:
    """topics: with their partitions. members: names with instance ids, "-" for none. assignor: a class, "-"
    for the client's default. goes_back: whether its members get the classic protocol again after the
    upgrade, the last one first."""

    group_id: str
    topics: dict[str, int]
    members: dict[str, str]
    assignor: str = "-"
    goes_back: bool = False

    @property
    def steps(self) -> list[tuple[str, str]]:
        """Members with their next protocols, in the order of restarts."""
        upgrade = [(name, "consumer") for name in self.members]
        back = [(name, "classic") for name in reversed(self.members)]
        return [*upgrade, *(back if self.goes_back else [])]


@dataclass(slots=True)
class RealRoll:
    """What happened. idle_ms: of each partition, from the first restart on. failures: what clients' errors
    said. final: the partitions of each member in the end. settles: whether the group settled each time."""

    idle_ms: dict[str, int] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)
    final: dict[str, set[str]] = field(default_factory=dict)
    settles: bool = True


class _Members:
    """The JVM of all members. events: time, member, verb, the rest."""

    def __init__(self, java: Java, address: str, errors: Path) -> None:
        with errors.open("ab") as stream:
            self._jvm = subprocess.Popen(
                java.command("RollingMembers", address),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stream, text=True,
            )  # fmt: skip
        self.events: list[tuple[int, str, str, str]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._jvm.stdout is not None
        for line in self._jvm.stdout:
            stamp, name, verb, *rest = line.rstrip("\n").split(" ", 3)
            self.events.append((int(stamp), name, verb, "".join(rest)))

    def say(self, *words: str) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.write(" ".join(words) + "\n")
        self._jvm.stdin.flush()

    def close(self) -> None:
        assert self._jvm.stdin is not None
        self._jvm.stdin.close()
        try:
            self._jvm.wait(60)
        except subprocess.TimeoutExpired:
            self._jvm.kill()
            self._jvm.wait()


def roll_really(
    release: str, folder: Path, groups: Sequence[RealGroup], *, away_s: float, settings: dict[str, str]
) -> tuple[Path, Path, list[RealRoll]]:
    """Roll the groups on a broker of a release: copies of its folder from before and after, and what happened
    to each. Raises `Unavailable`, `BrokerError`."""
    java = Java(release)
    java.compile(_SOURCE, folder)
    logs, before, after = (folder / name for name in ("logs", "before", "after"))
    rolls = [RealRoll() for _ in groups]
    with Broker(java, logs, SETTINGS | settings) as broker:
        topics = [
            CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for group in groups for name, count in group.topics.items()
        ]  # fmt: skip
        ask(broker.port, CreateTopicsRequest(topics=topics, timeout_ms=30_000), version=7)
        members = _Members(java, broker.address, folder / "members.log")
        try:
            for group in groups:
                for name in group.members:
                    _start(members, group, name, "classic")
                    time.sleep(0.5)
            for group in groups:
                if not _settled(members, group):
                    raise BrokerError(f"{group.group_id} did not settle: {members.events[-20:]}")
            shutil.copytree(logs, before, ignore=_INDEXES)
            rolling = [
                threading.Thread(target=_roll, args=(members, group, roll, away_s))
                for group, roll in zip(groups, rolls, strict=True)
            ]
            for thread in rolling:
                thread.start()
            for thread in rolling:
                thread.join()
            shutil.copytree(logs, after, ignore=_INDEXES)
        finally:
            members.close()
    return before, after, rolls


def _start(members: _Members, group: RealGroup, name: str, protocol: str) -> None:
    topics = ",".join(group.topics)
    instance, assignor = group.members[name], group.assignor
    members.say("start", name, group.group_id, protocol, instance, assignor, topics)


def _roll(members: _Members, group: RealGroup, roll: RealRoll, away_s: float) -> None:
    begin_ms = int(time.time() * 1000)
    for name, protocol in group.steps:
        members.say("stop", name)
        time.sleep(away_s)
        _start(members, group, name, protocol)
        roll.settles = _settled(members, group) and roll.settles
        roll.failures = [
            text for _, member, verb, text in members.events if verb == "fails" and member in group.members
        ]
        if roll.failures or not roll.settles:
            break
    end_ms = int(time.time() * 1000)
    owners, idle = _replayed(members, group, begin_ms, end_ms)
    roll.idle_ms = idle
    roll.final = {name: {place for place, owner in owners.items() if owner == name} for name in group.members}


def _events(members: _Members, group: RealGroup) -> Iterator[tuple[int, str, str, list[str]]]:
    for stamp, name, verb, rest in list(members.events):
        if name in group.members:
            yield stamp, name, verb, rest.split(" ") if verb in ("has", "loses") else []


def _replayed(
    members: _Members, group: RealGroup, begin_ms: int, end_ms: int
) -> tuple[dict[str, str], dict[str, int]]:
    """The owners now, and for how long each partition had none within two times."""
    places = [f"{name}-{number}" for name, count in group.topics.items() for number in range(count)]
    owners: dict[str, str] = {}
    since = dict.fromkeys(places, begin_ms)
    idle = dict.fromkeys(places, 0)
    for stamp, name, verb, named in _events(members, group):
        if verb == "has":
            for place in named:
                if place not in owners:
                    idle[place] += max(stamp - max(since[place], begin_ms), 0)
                owners[place] = name
        else:
            owned = [place for place, owner in owners.items() if owner == name]
            for place in named if verb == "loses" else owned if verb == "ends" else []:
                if owners.get(place) == name:
                    del owners[place]
                    since[place] = stamp
    for place in places:
        if place not in owners:
            idle[place] += max(end_ms - max(since[place], begin_ms), 0)
    return owners, idle


def _settled(members: _Members, group: RealGroup) -> bool:
    """Whether the group settled before too long, or a client failed."""
    deadline = time.monotonic() + _PATIENCE_S
    while time.monotonic() < deadline:
        time.sleep(0.25)
        events = list(_events(members, group))
        if any(verb == "fails" for _, _, verb, _ in events):
            return True
        now_ms = int(time.time() * 1000)
        owners, _ = _replayed(members, group, now_ms, now_ms)
        if len(owners) == sum(group.topics.values()) and now_ms - events[-1][0] > _QUIET_MS:
            return True
    return False
