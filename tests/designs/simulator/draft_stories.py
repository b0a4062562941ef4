"""What the coordinators of simulated drafts know of their group, beside what a timeline says of the capture.

Strategy: the machines' own methods are watched while a run goes on: registrations and removals, the begin of
each attempt of a rebalance, and its end with what each member owns. A timeline gets the bytes alone. Rules:
the coordinator is the broker that took up a member last; what it knows ends when it crashes or resigns.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from coordwire.capture import Capture
from coordwire.designs.drafts.draft_2_broker import DetailedDesignBroker
from coordwire.designs.drafts.draft_3_broker import NewConsumerBroker
from coordwire.designs.drafts.overview import OverviewBroker
from coordwire.designs.drafts.pinging_coordinator import PingingCoordinator, split_plan
from coordwire.designs.simulator.network import SimulatedNode
from coordwire.designs.simulator.runs import DESIGNS, DesignRun, SimulatedRun, comparable_faults, simulate
from coordwire.designs.simulator.runs.every_design import SESSION_MS
from coordwire.designs.simulator.tap import EPOCH_MS
from coordwire.dialects import find_alternative, find_dialect
from coordwire.timeline.events import GroupEvent, MemberJoined, MemberLeft, RebalanceEnded
from coordwire.timeline.from_wire.timeline import timeline

DESIGNS_WITH_STORIES = tuple(name for name in DESIGNS if name.startswith("draft-"))
"""Those that are spoken in a dialect of the drafts."""

DURATION_MS = 120_000
LATE_MS = 1_500
"""What happened so shortly before the end may show on one side alone."""

ANSWERS = {
    "draft-2-overview": "Draft2RegisterConsumerResponse",
    "draft-3": "Draft3JoinGroupResponse", "draft-3-loaded": "Draft3JoinGroupResponse",
}  # fmt: skip
"""With which a rebalance ends, if any can be sent: a frozen coordinator may have lost all that ask."""

Owners = dict[str, frozenset[tuple[str, int]]]


@dataclass(slots=True)
class Truth:
    """began: of attempts, with the broker; ended: of rebalances, with what each member owned, and the broker:
    one that was frozen may end its own while another coordinates; members: those that are in, by broker;
    changes: who came (True) or went, and when; an overview's consumer whose connection was broken goes once
    more when it is no longer awaited. voided: who went with their coordinator, which shows once there is
    another; loaded: when groups were. now: the world's time, which a frozen machine's is behind."""

    began: list[tuple[int, int]] = field(default_factory=list)
    ended: list[tuple[int, Owners, int]] = field(default_factory=list)
    members: dict[int, set[str]] = field(default_factory=dict)
    broker: int = 0
    changes: list[tuple[int, str, bool]] = field(default_factory=list)
    loaded: list[int] = field(default_factory=list)
    voided: set[tuple[int, str]] = field(default_factory=set)
    now: Callable[[], int] = int

    def comes(self, machine: Any, name: str) -> None:
        self.broker = machine.settings.broker_id
        self.members.setdefault(self.broker, set()).add(name)
        self.changes.append((self.now(), name, True))

    def goes(self, machine: Any, name: str) -> None:
        known = self.members.get(machine.settings.broker_id, set())
        if name in known:
            known.discard(name)
            self.changes.append((self.now(), name, False))

    def is_void(self, number: int) -> bool:
        """A broker knows nothing any more; whether it had members."""
        members = self.members.pop(number, set())
        self.changes += [(self.now(), name, False) for name in members]
        self.voided |= {(self.now(), name) for name in members}
        return bool(members)

    def begins(self, machine: Any) -> None:
        self.began.append((self.now(), machine.settings.broker_id))

    def ends(self, machine: Any, owned: dict[str, Any]) -> None:
        self.ended.append((self.now(), {
            name: frozenset((part.topic, int(part.partition.rpartition("-")[2])) for part in parts)
            for name, parts in owned.items()
        }, machine.settings.broker_id))  # fmt: skip


@contextmanager
def watched(truth: Truth) -> Iterator[None]:
    """Watch the machines of all brokers that are made meanwhile."""
    undo: list[Callable[[], None]] = []

    def around(cls: type, name: str, make: Callable[[Any], Any]) -> None:
        original = cls.__dict__[name]
        setattr(cls, name, make(original))
        undo.append(lambda: setattr(cls, name, original))

    def init(original: Any) -> Any:
        def initialise(self: Any, settings: Any, *arguments: Any, **options: Any) -> None:
            truth.is_void(settings.broker_id)
            original(self, settings, *arguments, **options)

        return initialise

    def register(original: Any) -> Any:
        def registered(self: Any, connection: int, consumer: Any) -> Any:
            group = original(self, connection, consumer)
            truth.comes(self, consumer.consumer_id)
            if isinstance(self, OverviewBroker) and not served(self, group, consumer):
                truth.begins(self)
            return group

        return registered

    def served(broker: Any, group: Any, newest: Any) -> bool:
        return any(
            consumer not in broker._unanswered_registrations and consumer is not newest
            for consumer in group.members.values()
        )

    def remove(original: Any) -> Any:
        def removed(self: Any, consumer: Any) -> None:
            was_known = self.is_known(consumer)
            original(self, consumer)
            if was_known:
                truth.goes(self, consumer.consumer_id)
                if isinstance(self, OverviewBroker):
                    truth.begins(self)

        return removed

    def resigned(original: Any) -> Any:
        def reset(self: Any, office: int) -> None:
            original(self, office)
            if truth.is_void(self.settings.broker_id):
                truth.begins(self)

        return reset

    def broadcast(original: Any) -> Any:
        def sent(self: Any, group: Any, members: Any, messages: Any) -> Any:
            name = type(next(iter(messages.values()))).__name__
            if name != "Draft2StartFetcherRequest":
                truth.begins(self)
            succeeded = yield from original(self, group, members, messages)
            if succeeded and name != "Draft2StopFetcherRequest":
                truth.ends(self, {consumer: parts_of(message) for consumer, message in messages.items()})
            return succeeded

        return sent

    def parts_of(message: Any) -> list[Any]:
        threads = getattr(message, "ownership_info", None)
        return message.assigned_parts if threads is None else [
            part for thread in threads for part in thread.assigned_parts
        ]  # fmt: skip

    def broken(original: Any) -> Any:
        def breaks(self: Any, group: Any) -> None:
            truth.begins(self)
            original(self, group)

        return breaks

    def answer(original: Any) -> Any:
        def answers(self: Any, members: Any, plan: Any, offsets: Any) -> None:
            original(self, members, plan, offsets)
            plans = split_plan(plan)
            truth.ends(self, {
                name: [part for parts in plans.get(name, {}).values() for part in parts] for name in members
            })  # fmt: skip

        return answers

    def wait_is_over(original: Any) -> Any:
        def is_over(self: Any, group: Any) -> None:
            truth.changes += [(truth.now(), name, False) for name in group.awaited - group.members.keys()]
            original(self, group)

        return is_over

    def trigger(original: Any) -> Any:
        def triggers(self: Any, group: Any) -> None:
            if not group.rebalancing:
                truth.begins(self)
            original(self, group)

        return triggers

    def answer_all(original: Any) -> Any:
        def answers(self: Any, group: Any) -> None:
            had = set(truth.members.get(self.settings.broker_id, ()))
            for name in group.members:
                truth.comes(self, name)
            for name in had - group.members.keys():
                truth.goes(self, name)
            if group.members:
                truth.ends(self, self._plan(group))
            original(self, group)

        return answers

    def fail(original: Any) -> Any:
        def fails(self: Any, member: Any) -> None:
            truth.goes(self, member.consumer_id)
            original(self, member)

        return fails

    def close_round(original: Any) -> Any:
        def closes(self: Any, group: Any) -> None:
            for name, member in group.members.items():
                if member.joining is None:
                    truth.goes(self, name)
            original(self, group)

        return closes

    def load(original: Any) -> Any:
        def loads(self: Any, office: int) -> Any:
            yield from original(self, office)
            truth.loaded.append(truth.now())
            for group in self.groups.values():
                for name in group.members:
                    truth.comes(self, name)

        return loads

    try:
        around(PingingCoordinator, "__init__", init)
        around(PingingCoordinator, "register", register)
        around(PingingCoordinator, "remove", remove)
        around(PingingCoordinator, "on_resigned", resigned)
        around(PingingCoordinator, "broadcast", broadcast)
        around(DetailedDesignBroker, "_wait_is_over", wait_is_over)
        around(OverviewBroker, "_break_connections", broken)
        around(OverviewBroker, "_answer", answer)
        around(NewConsumerBroker, "__init__", init)
        around(NewConsumerBroker, "on_resigned", resigned)
        around(NewConsumerBroker, "_trigger", trigger)
        around(NewConsumerBroker, "_answer_all", answer_all)
        around(NewConsumerBroker, "_fail", fail)
        around(NewConsumerBroker, "_close_round", close_round)
        around(NewConsumerBroker, "_load", load)
        yield
    finally:
        for back in reversed(undo):
            back()


@dataclass(slots=True)
class Story:
    """A run, what its coordinators knew, and its timeline. answered: when frames were answers with which
    rebalances end, and to whom, as far as they say it."""

    truth: Truth
    simulated: SimulatedRun
    events: list[GroupEvent]
    answered: dict[int, set[str | None]]
    data: bytes


def crash(truth: Truth, node: SimulatedNode, crashes: Callable[[], None]) -> None:
    """A coordinator's process is gone, with what it knew."""
    broker = int(node.name.rpartition("-")[2])
    if truth.is_void(broker):
        truth.began.append((node.now, broker))
    crashes()


def run_history(design: str, seed: int, **options: Any) -> Story:
    """A random history of a design."""
    file, truth = io.BytesIO(), Truth()
    settings: dict[str, Any] = {"members": 2 + seed % 3, "partitions": 2 + seed % 5, "seed": seed}
    settings |= {"duration_ms": DURATION_MS} | options
    if "plan" not in settings:
        settings["plan"] = comparable_faults(
            seed, members=settings["members"], duration_ms=settings["duration_ms"]
        )

    def prepare(run: DesignRun) -> None:
        truth.now = partial(getattr, run.world, "now")
        for name, node in run.world.nodes.items():
            if name.startswith("coordinator-"):
                node.crash = partial(crash, truth, node, node.crash)  # type: ignore[method-assign]

    with watched(truth):
        simulated = simulate(design, pcap=file, prepare=prepare, **settings)
    name = DESIGNS[design]
    capture = Capture(
        io.BytesIO(file.getvalue()), "run", dialect=find_dialect(name), alternative=find_alternative(name)
    )
    answered: dict[int, set[str | None]] = {}

    def entries() -> Iterator[Any]:
        for entry in capture.entries_and_ends():
            message = getattr(entry, "message", None)
            if type(message).__name__ == ANSWERS.get(design):
                answered.setdefault(_ms(entry.time_ns), set()).add(getattr(message, "consumer_id", None))
            yield entry

    events = list(timeline(entries(), ends=True, dialect=find_dialect(name)))
    return Story(truth, simulated, events, answered, file.getvalue())


def differences(story: Story) -> list[str]:
    """Where the timeline says something else than the coordinators knew."""
    return [*_ends(story), *_members(story), *_departures(story)]


def _ms(time_ns: int | None) -> int:
    return (time_ns or 0) // 1_000_000 - EPOCH_MS


def _is_near(story: Story, time: int, known: int, most: int = 50) -> bool:
    """Whether a time of the timeline is a coordinator's. What reaches one that is frozen it learns later; one
    that loads a group begins its sessions then, which no frame of the draft shows."""
    if any(at <= known <= at + SESSION_MS + most for at in story.truth.loaded):
        most = SESSION_MS
    if abs(time - known) <= most:
        return True
    return any(
        all(begin <= at <= begin + (fault.duration or 0) + most for at in (time, known))
        for begin, fault in story.simulated.run.world.faults
        if fault.kind == "freeze" and fault.targets[0].startswith("coordinator")
    )


def _is_frozen(story: Story, time: int) -> bool:
    """Whether a coordinator was: it takes an answer for late that came in time."""
    return any(
        at <= time <= at + (fault.duration or 0)
        for at, fault in story.simulated.run.world.faults
        if fault.kind == "freeze" and fault.targets[0].startswith("coordinator")
    )


def _after_trouble(story: Story, time: int) -> bool:
    """Whether a fault of a coordinator was shortly before, or a load: a loaded consumer's session may end
    though nothing of it has been seen since."""
    faults = [
        at for at, fault in story.simulated.run.world.faults
        if any("coordinator" in target for target in fault.targets)
    ]  # fmt: skip
    return any(at - 1_000 <= time <= at + 20_000 for at in faults) or any(
        at <= time <= at + SESSION_MS + LATE_MS for at in story.truth.loaded
    )


def _ends(story: Story) -> Iterator[str]:
    truth, last = story.truth, story.simulated.run.world.now - LATE_MS
    ended = [event for event in story.events if isinstance(event, RebalanceEnded)]
    steady = [event for event in ended if event.outcome == "steady" and _ms(event.ended_ns) <= last]
    must_show = story.simulated.run.design in ANSWERS
    unseen = {end: at for end, _, at in truth.ended if must_show and end not in story.answered}
    known = [end for end in truth.ended if end[0] <= last and end[0] not in unseen]
    times = [time for time, _, _ in known]
    late = [
        event for event in steady
        if _is_frozen(story, _ms(event.ended_ns))
        and not any(_is_near(story, _ms(event.ended_ns), time) for time in times)
    ]  # fmt: skip
    steady = [event for event in steady if event not in late]
    if len(steady) != len(known):
        yield f"{len(steady)} rebalances ended, not {len(known)}"
    before, is_loaded = 0, story.simulated.run.design == "draft-3-loaded"
    numbered = story.simulated.run.design != "draft-2-overview"  # so a generation without answers is missed
    own: dict[int, int] = {}
    voids = {at for at, _ in truth.voided}
    for event, (time, owners, broker) in zip(steady, known, strict=False):
        if not _is_near(story, _ms(event.ended_ns), time):
            yield f"a rebalance ended at {_ms(event.ended_ns)}, not at {time}"
            return
        began = _ms(event.began_ns)
        for end, at in unseen.items():
            if numbered and before < end < time:
                before = own[at] = end
        begins = [
            begin for begin, at in truth.began
            if before - 50 <= begin or (at == broker and own.get(broker, 0) <= begin)
        ]  # fmt: skip
        is_void = any(at <= began <= time for at in begins if at in voids)  # whenever a consumer learns of it
        if not is_void and not any(_is_near(story, began, begin) for begin in begins):
            near = [begin for begin in begins if begin <= time]
            yield f"a rebalance began at {began}, not at one of {near}"
        assigned = {
            row.member_id: frozenset(
                (name.topic.partition("/")[0], name.partition) for name in row.partitions
            )
            for row in event.assignments
            if row.partitions
        }
        if numbered and must_show:  # a frozen coordinator answers those who are gone
            owners = {name: parts for name, parts in owners.items() if name in story.answered[time]}
        if assigned != {name: parts for name, parts in owners.items() if parts}:
            yield f"at {time} the owners are {assigned}, not {owners}"
        explained = max([before, *(_ms(one.ended_ns) for one in late if _ms(one.ended_ns) <= began)])
        changed = any(explained < at <= time for at, _, _ in truth.changes)
        if event.cause == "unknown" and changed and not (is_loaded and _after_trouble(story, time)):
            yield f"at {time} the cause is not shown"
        before = own[broker] = time
    unfinished = [event for event in ended if event.outcome == "unfinished"]
    is_open = any(begin > (known[-1][0] if known else 0) for begin, _ in truth.began)
    if unfinished and not is_open and _ms(unfinished[0].began_ns) <= last:
        yield f"a rebalance that began at {_ms(unfinished[0].began_ns)} is not over"


def _members(story: Story) -> Iterator[str]:
    truth, last = story.truth, story.simulated.run.world.now - LATE_MS
    within: dict[str, bool] = {}
    for event in sorted(story.events, key=lambda event: event.time_ns or 0):
        if isinstance(event, (MemberJoined, MemberLeft)):
            within[event.member_id] = isinstance(event, MemberJoined)
    members = {name for name, is_in in within.items() if is_in}
    last_joined = max((time for time, _, is_in in truth.changes if is_in), default=0)
    unseen = {name for time, name in truth.voided if time > last_joined}  # nobody coordinates since
    recent = {name for time, name, _ in truth.changes if time > last} | unseen
    known = truth.members.get(truth.broker, set())
    if wrong := (members ^ known) - recent:
        yield f"in at the end are {sorted(members)}, not {sorted(known)} ({sorted(wrong)})"


def _departures(story: Story) -> Iterator[str]:
    """Whoever is out at the end, and when that was so."""
    truth, world = story.truth, story.simulated.run.world
    times: dict[str, list[int]] = {}
    for time, name, is_in in truth.changes:
        if is_in:
            times.setdefault(name, [])
        else:
            times.setdefault(name, []).append(time)
    known = truth.members.get(truth.broker, set())
    removed_at = {
        event.member_id: _ms(event.time_ns) for event in story.events if isinstance(event, MemberLeft)
    }
    is_first = story.simulated.run.design == "draft-1"
    for name, removals in times.items():
        if name in known or name not in removed_at or (removals[-1], name) in truth.voided:
            continue
        if removals[-1] > world.now - LATE_MS:
            continue
        if any(at <= removals[-1] <= at + SESSION_MS + 50 for at in truth.loaded[1:]):
            continue  # one that it has loaded, and never heard of
        for time in removals:
            most = 15_000 if _after_trouble(story, time) else 2_100 if is_first else 100
            if _is_near(story, removed_at[name], time, most):
                break
        else:
            yield f"{name} is out at {removed_at[name]}, not at {removals[-1]}"
