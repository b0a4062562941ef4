"""`python -m tests.coordinator.stories.faults SEED COUNT [KIND]`: planted faults, and how many it reports.

Strategy: each fault changes one event of a timeline, or one rule of the inference; the comparison of the
history must find a difference then. Prints of each fault in how many histories it was planted, and is found;
in the others its event may be excused. A rule may have nothing to do with most histories. Rules: an event is
changed in the first half of a history, which is compared to its end, and of a member that was answered.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal
from unittest.mock import patch

from coordwire.timeline import timeline
from coordwire.timeline.events import Cause, GroupEvent, MemberJoined, MemberLeft, RebalanceEnded
from coordwire.timeline.from_wire.classic_group import ClassicGroup
from coordwire.timeline.from_wire.migrating_group import ConsumerGroup
from coordwire.timeline.from_wire.modern_group import ModernGroup
from coordwire.timeline.from_wire.reconciliation import Reconciliation
from coordwire.timeline.rebalance import Trigger
from coordwire.timeline.session_clocks import SessionClocks
from tests.coordinator.stories.comparison import KEEPS_GENERATION
from tests.coordinator.stories.scripts import LENGTH, Story, play
from tests.coordinator.stories.world import MS, START

SECOND = 1_000 * MS

Verdict = Literal["found", "excused", "not seen", "not planted"]

Changed = Sequence[GroupEvent]
"""What takes an event's place."""


def _steady(event: GroupEvent) -> bool:
    """A generation that is looked for: a static member that is back forms none."""
    steady = isinstance(event, RebalanceEnded) and event.outcome == "steady"
    return steady and getattr(event, "cause", "") not in KEEPS_GENERATION


def _leaves(*kinds: str) -> Callable[[GroupEvent], bool]:
    return lambda event: isinstance(event, MemberLeft) and event.how in kinds


def _later(event: Any) -> Changed:
    return [replace(event, time_ns=event.time_ns + 3 * SECOND)]


def _other_cause(event: Any) -> Changed:
    cause: Cause = "subscription_changed" if event.cause != "subscription_changed" else "member_left"
    return [replace(event, cause=cause)]


def _fewer_partitions(event: Any) -> Changed:
    first, *further = [share for share in event.assignments if share.partitions]
    without = [share for share in event.assignments if not share.partitions]
    return [replace(event, assignments=(first._replace(partitions=first.partitions[1:]), *further, *without))]


EVENT_FAULTS: dict[str, tuple[Callable[[GroupEvent], bool], Callable[[Any], Changed]]] = {
    "a member is never seen joining": (lambda event: isinstance(event, MemberJoined), lambda event: []),
    "a member that left never goes": (_leaves("left"), lambda event: []),
    "a member that fell silent never goes": (_leaves("session_timeout", "not_rejoined"), lambda event: []),
    "a member that fell silent goes 3 s later": (_leaves("session_timeout", "not_rejoined"), _later),
    "a member that fell silent is said to leave": (
        _leaves("session_timeout"), lambda event: [replace(event, how="left")],
    ),
    "a member that left is said to fall silent": (
        _leaves("left"), lambda event: [replace(event, how="session_timeout")],
    ),
    "a member goes that stays": (
        lambda event: isinstance(event, MemberJoined),
        lambda event: [event, MemberLeft(
            group=event.group, time_ns=(event.time_ns or 0) + 2 * SECOND, source="", number=0, packet=None,
            member_id=event.member_id, client_id=None, instance_id=None, how="left", reason=None,
            inferred=False,
        )],
    ),
    "a generation isn't told": (_steady, lambda event: []),
    "a generation has the next number": (
        _steady, lambda event: [replace(event, generation=event.generation + 1)],
    ),
    "a rebalance has another cause": (_steady, _other_cause),
    "a rebalance begins 20 s too early": (
        _steady, lambda event: [replace(event, began_ns=event.began_ns - 20 * SECOND)],
    ),
    "a rebalance is steady 20 s later": (
        _steady, lambda event: [replace(event, time_ns=event.time_ns + 20 * SECOND)],
    ),
    "a generation is told twice": (
        _steady,
        lambda event: [event, replace(event, time_ns=event.time_ns + SECOND)],
    ),
    "a generation has a member less": (
        lambda event: _steady(event) and len(getattr(event, "members", ())) > 1,
        lambda event: [replace(event, members=event.members[1:])],
    ),
    "a generation's member has a partition less": (
        lambda event: _steady(event) and any(share.partitions for share in getattr(event, "assignments", ())),
        _fewer_partitions,
    ),
}  # fmt: skip
"""By what it does: which events it may change, and to what."""


def found_by_event(name: str, story: Story) -> Verdict:
    """What becomes of this fault in a history's comparison."""
    may_change, change = EVENT_FAULTS[name]
    reported = list(timeline(story.world.entries))
    compared = story.compare(reported)
    answered = compared.answered
    middle = range((START + LENGTH // 10) * MS, (START + LENGTH // 2) * MS)
    places = [
        number for number, event in enumerate(reported)
        if may_change(event) and (event.time_ns or 0) in middle
        and getattr(event, "member_id", None) in {*answered, None, ""}
    ]  # fmt: skip
    if not places or not compared.is_whole:
        return "not planted"
    place = random.Random(story.seed).choice(places)
    changed = story.compare([*reported[:place], *change(reported[place]), *reported[place + 1 :]])
    if next(iter(changed.differences()), None) is not None:
        return "found"
    list(compared.differences())
    return "excused" if changed.excused != compared.excused else "not seen"


def _differs(story: Story, reported: Sequence[GroupEvent]) -> bool:
    return next(iter(story.compare(reported).differences()), None) is not None


# --- rules ---


def _do_nothing(*args: Any, **named: Any) -> None:
    return None


def _unknown(*args: Any, **named: Any) -> Trigger:
    return Trigger("unknown", inferred=True)


RULE_FAULTS: dict[str, tuple[object, str, Any]] = {
    "causes of JoinGroups are forgotten": (
        sys.modules["coordwire.timeline.from_wire.classic_group"], "of_join", _unknown,
    ),
    "causes of first heartbeats are forgotten": (
        sys.modules["coordwire.timeline.from_wire.modern_group"], "of_first_heartbeat", _unknown,
    ),
    "a classic member that is unknown stays": (ClassicGroup, "_unknown", _do_nothing),
    "members that a generation doesn't list stay": (ClassicGroup, "_drop_missing", _do_nothing),
    "sessions of KIP-848 never end": (ModernGroup, "over", _do_nothing),
    "a move leaves sessions as they run": (SessionClocks, "unavailable", _do_nothing),
    "timers are not replayed": (ClassicGroup, "_departures", lambda *args: {}),
    "a group that converts keeps who is out": (ClassicGroup, "over_by", _do_nothing),
    "a member that leaves isn't taken out": (ConsumerGroup, "_leaves", _do_nothing),
    "a session that ends begins nothing": (ModernGroup, "departed", _do_nothing),
    "partitions without an owner don't count": (
        Reconciliation, "is_complete", property(lambda self: self.even_since is not None),
    ),
    "members needn't report what they took up": (
        Reconciliation, "is_confirmed", property(lambda self: True),
    ),
    "a streams group's target that is due doesn't count": (
        sys.modules["coordwire.timeline.from_wire.modern_group"], "_is_delayed", lambda message: False,
    ),
    "standby tasks don't count": (ModernGroup, "gives_standby", _do_nothing),
    "standby tasks that are given up need no owner": (Reconciliation, "free", _do_nothing),
}  # fmt: skip
"""By what it does: where a name is that gets another value."""


@contextmanager
def _planted(name: str) -> Iterator[None]:
    owner, attribute, value = RULE_FAULTS[name]
    with patch.object(owner, attribute, value):
        yield


def found_by_rule(name: str, story: Story) -> bool:
    """Whether the comparison finds this fault in a history, which it may have nothing to do with."""
    with _planted(name):
        return _differs(story, list(timeline(story.world.entries)))


def main(first: int, count: int, kind: str | None = None) -> int:
    events: Counter[tuple[str, Verdict]] = Counter()
    rules: Counter[str] = Counter()
    for seed in range(first, first + count):
        story = play(seed, kind)
        events.update((name, found_by_event(name, story)) for name in EVENT_FAULTS)
        rules.update(name for name in RULE_FAULTS if found_by_rule(name, story))
    for name in EVENT_FAULTS:
        counts = [events[name, outcome] for outcome in ("found", "excused", "not seen")]
        print(f"{counts[0]:5} of {sum(counts):5}, {counts[1]:4} excused, {counts[2]:4} not seen: {name}")
    for name in RULE_FAULTS:
        print(f"{rules[name]:5} of {count:5} histories: {name}")
    missed = [name for name in EVENT_FAULTS if not events[name, "found"]]
    missed += [name for name in RULE_FAULTS if not rules[name]]
    planted = len(EVENT_FAULTS) + len(RULE_FAULTS)
    print(f"{planted - len(missed)} of {planted} faults are found")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
