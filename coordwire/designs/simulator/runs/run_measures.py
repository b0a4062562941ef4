"""The figures of a run, the same for each design: messages, and changes of the ownership of partitions.

Times are milliseconds; those of partitions are sums over partitions. A frozen consumer reads nothing and is
not an owner while it is frozen; when it goes on, it is one again until it has learned otherwise: `Ownership`
has it so. Partitions without an owner count once all have had one.

Messages are counted by a tap, beside that of the capture, in stretches of one session timeout, in which each
ping and heartbeat comes as often as in any other; the count of the median stretch is the cost of a quiet
group. An operation of ZooKeeper is a message, and so is its outcome, though the simulation sends several
together; events, which watches send, are counted beside too.

A rebalance is seen from outside, in the same way for each design: it begins with the first partition that a
running consumer takes or gives up, and ends with the last one before every partition is read and nothing
changes for a second; a crash or a freeze after that belongs to the next one. A death is the crash of a
consumer that reads partitions. Two owners of a partition are measured apart: they do not make a rebalance
longer.

Rules: what a crash takes away was given up by no process and begins no rebalance; nothing here is written
into the world, so that a run is the same with and without.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from statistics import median
from typing import NamedTuple

from coordwire.designs.simulator.drafts import ZOOKEEPER_PORT
from coordwire.designs.simulator.drafts.zookeeper_node import operation_count
from coordwire.designs.simulator.message_flow import Deliveries
from coordwire.designs.simulator.ownership import OwnershipChange
from coordwire.designs.simulator.runs.every_design import DesignRun, RunNote
from coordwire.designs.simulator.tap import TapRecord
from coordwire.designs.simulator.world import World
from coordwire.errors import counted

QUIET_MS = 1_000
"""Between two rebalances, at least."""


@dataclass(slots=True)
class OwnershipRebalance:
    """ended: None if it had not ended with the run. moved: how many partitions have another owner than
    before. owners: the partitions of each consumer at its end, frozen ones left out. since: when what it
    mends began, at most `began`: a partition lost its owner, a consumer fell silent, or an owner started."""

    began: int
    ended: int | None = None
    moved: int = 0
    owners: dict[str, tuple[Hashable, ...]] = field(default_factory=dict)
    since: int = 0

    @property
    def whole_ms(self) -> int | None:
        """From `since` on."""
        return None if self.ended is None else self.ended - self.since

    @property
    def length_ms(self) -> int | None:
        return None if self.ended is None else self.ended - self.began


@dataclass(slots=True)
class Death:
    """partitions: how many lost their only owner. detected: when the consumer counted as gone, None if it
    never did, or not before it died again. taken_over: when each of its partitions had an owner again.
    silent: since when nothing came from it, as it may have been frozen or cut off before it crashed."""

    time: int
    node: str
    silent: int
    partitions: int = 0
    detected: int | None = None
    taken_over: int | None = None


class OwnershipSpell(NamedTuple):
    """A time in which a partition had two owners or more, or none (`owners` is empty then)."""

    began: int
    ended: int
    partition: Hashable
    owners: tuple[str, ...]


class RunObserver:
    """Sees all changes of a world's ownership. took: called with each node that takes a partition.

    >>> from coordwire.designs.simulator import World
    >>> from coordwire.designs.simulator.runs import RunObserver, add_design
    >>> world = World(seed=1)
    >>> design = add_design(world, "consumer", members=2, partitions=4)
    >>> observer = RunObserver(world)
    >>> world.run(30_000)
    True
    >>> observer.finish()
    >>> observer
    <RunObserver: 2 rebalances, 0 deaths>
    >>> [len(rebalance.owners) for rebalance in observer.rebalances]
    [1, 2]
    """

    def __init__(self, world: World, took: Callable[[str], None] | None = None) -> None:
        self.rebalances: list[OwnershipRebalance] = []
        self.deaths: list[Death] = []
        self.spells: list[OwnershipSpell] = []
        self._world = world
        self._took = took
        self._current: OwnershipRebalance | None = None
        self._settled_at: int | None = None
        self._owned: dict[str, dict[Hashable, None]] = {}
        self._frozen: set[str] = set()
        self._before: dict[Hashable, str] = {}
        self._lost: dict[Hashable, list[Death]] = {}
        self._remaining: dict[int, int] = {}
        self._open: dict[Hashable, tuple[int, tuple[str, ...]]] = {}
        world.ownership.observe = self._changed

    def __repr__(self) -> str:
        deaths = counted(len(self.deaths), "death")
        return f"<RunObserver: {counted(len(self.rebalances), 'rebalance')}, {deaths}>"

    def finish(self) -> None:
        """The run is over."""
        self._close()
        if self._current is not None:
            self.rebalances.append(self._current)
            self._current = None
        for partition, (began, owners) in self._open.items():
            self._spell(began, partition, owners)
        self._open.clear()

    # --- inside ---

    def _changed(
        self, owner: str, partition: Hashable, change: OwnershipChange, before: int, after: int
    ) -> None:
        world = self._world
        now, by_itself = world.now, change in ("take", "release") and world.nodes[owner].is_up
        if not by_itself or (self._settled_at is not None and now - self._settled_at >= QUIET_MS):
            self._close()
        if change == "release" and not world.nodes[owner].is_up and before == 1 and not after:
            self._lose(owner, partition)
        if change == "take":
            self._owned.setdefault(owner, {})[partition] = None
            if self._took is not None:
                self._took(owner)
        elif change == "release":
            self._owned[owner].pop(partition, None)
        elif change == "suspend":
            self._frozen.add(owner)
        elif change == "resume":
            self._frozen.discard(owner)
        if by_itself and self._current is None:
            self._current = OwnershipRebalance(now)
        if before != after:
            self._count(partition, before, after)
        self._settled_at = now if world.ownership.is_whole else None

    def _close(self) -> None:
        """End the rebalance, if every partition has its owner."""
        current = self._current
        if current is None or self._settled_at is None:
            return
        current.ended = self._settled_at
        current.owners = {
            name: tuple(owned) for name, owned in self._owned.items() if owned and name not in self._frozen
        }
        after = {partition: name for name, owned in current.owners.items() for partition in owned}
        current.moved = sum(self._before.get(partition) != name for partition, name in after.items())
        self._before = after
        self.rebalances.append(current)
        self._current = None

    def _lose(self, owner: str, partition: Hashable) -> None:
        now = self._world.now
        if not self.deaths or self.deaths[-1].time != now or self.deaths[-1].node != owner:
            self.deaths.append(Death(now, owner, now))
            self._remaining[len(self.deaths) - 1] = 0
        death = self.deaths[-1]
        death.partitions += 1
        self._remaining[len(self.deaths) - 1] += 1
        self._lost.setdefault(partition, []).append(death)

    def _count(self, partition: Hashable, before: int, after: int) -> None:
        now = self._world.now
        if after == 1 and not before:
            for death in self._lost.pop(partition, ()):
                number = next(index for index, candidate in enumerate(self.deaths) if candidate is death)
                self._remaining[number] -= 1
                if not self._remaining[number]:
                    death.taken_over = now
        if partition in self._open:
            self._spell(self._open[partition][0], partition, self._open.pop(partition)[1])
        if after > 1:
            self._open[partition] = now, tuple(sorted(self._world.ownership.readers(partition)))
        elif not after and self._world.ownership.assigned_at is not None:
            self._open[partition] = now, ()

    def _spell(self, began: int, partition: Hashable, owners: tuple[str, ...]) -> None:
        if self._world.now > began:
            self.spells.append(OwnershipSpell(began, self._world.now, partition, owners))


_ZOOKEEPER = f":{ZOOKEEPER_PORT}"
_WATCH, _ASK, _REPLY = b'["event"', b'["ask"', b'["reply"'


class TrafficCount:
    """A tap. messages, watches: all of them; watch_times: when each watch fired; stretches: messages in each
    stretch of the time."""

    def __init__(self, stretch_ms: int) -> None:
        self.messages = 0
        self.watches = 0
        self.watch_times: list[int] = []
        self.stretches: dict[int, int] = {}
        self._stretch_ms = stretch_ms

    def __call__(self, record: TapRecord) -> None:
        if record.kind != "data":
            return
        number = 1
        if record.server.endswith(_ZOOKEEPER):
            if record.data.startswith((_ASK, _REPLY)):
                number = operation_count(record.data)
            elif record.data.startswith(_WATCH):
                self.watches += 1
                self.watch_times.append(record.time)
        self.messages += number
        stretch = record.time // self._stretch_ms
        self.stretches[stretch] = self.stretches.get(stretch, 0) + number

    def between(self, begin: int, end: int) -> int:
        """Messages from one time to another, both of them multiples of a stretch."""
        numbers = range(begin // self._stretch_ms, end // self._stretch_ms)
        return sum(self.stretches.get(number, 0) for number in numbers)

    def is_mostly_quiet(self, until: int, changes: Iterable[int]) -> bool:
        """Whether `quiet` is that of a quiet stretch: more than half of them have no change."""
        stretches = until // self._stretch_ms
        busy = {time // self._stretch_ms for time in changes}
        return 2 * sum(number < stretches for number in busy) < stretches

    def quiet(self, until: int) -> float:
        """Messages in a quiet stretch: the median of those before a time."""
        stretches = until // self._stretch_ms
        return median(self.stretches.get(number, 0) for number in range(stretches)) if stretches else 0.0

    def beyond(self, until: int) -> float:
        """Messages beyond those of a group that is quiet all the time."""
        quiet, stretches = self.quiet(until), until // self._stretch_ms
        return sum(max(self.stretches.get(number, 0) - quiet, 0) for number in range(stretches))


# --- measures ---


_LAST_MS = 10_000
"""Messages that are stored in the last part of a run may be on their way."""


@dataclass(frozen=True, slots=True)
class CoordinatorDeath:
    """A coordinator crashed while it was the one. replaced: when another, or the same again, was elected."""

    time: int
    node: str
    replaced: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasures:
    """assigned_at: when every partition had had an owner, None for never. changes: consumers that started,
    crashed or left. quiet_messages: of a stretch of one session timeout; beyond_quiet: all messages beyond
    that, both None unless more than half of the stretches are without a change: the run is too short then, or
    has too many changes. watches: that ZooKeeper fired. deliveries: of the messages that were stored ten
    seconds before the end or earlier; None for a run without messages, and for share groups, whose members
    acquire records, which is not simulated."""

    duration_ms: int
    assigned_at: int | None
    duplicated_ms: int
    orphaned_ms: int
    rebalances: tuple[OwnershipRebalance, ...]
    deaths: tuple[Death, ...]
    coordinator_deaths: tuple[CoordinatorDeath, ...]
    changes: int
    messages: int
    quiet_messages: float | None
    beyond_quiet: float | None
    watches: int
    deliveries: Deliveries | None

    @property
    def messages_per_change(self) -> float | None:
        """What a membership change costs beyond a quiet group's messages; None where that is not known."""
        if self.beyond_quiet is None or not self.changes:
            return None
        return self.beyond_quiet / self.changes

    @property
    def watches_per_change(self) -> float:
        return self.watches / self.changes if self.changes else 0.0

    @property
    def lengths_ms(self) -> list[int]:
        """Of the rebalances that ended, after the first assignment."""
        return [length for rebalance in self._later if (length := rebalance.length_ms) is not None]

    @property
    def wholes_ms(self) -> list[int]:
        """The same from what each of them mends."""
        return [length for rebalance in self._later if (length := rebalance.whole_ms) is not None]

    @property
    def _later(self) -> list[OwnershipRebalance]:
        first = self.assigned_at
        return [known for known in self.rebalances if first is not None and known.began > first]


def measure(run: DesignRun, observer: RunObserver, traffic: TrafficCount) -> RunMeasures:
    """The figures of a run that is over."""
    world, notes = run.world, run.notes()
    _find_detections(observer.deaths, notes)
    for death in observer.deaths:
        death.silent = _silent_since(world, death.node, death.time)
    _find_begins(world, observer, notes)
    ownership, messages = world.ownership, world.messages
    quiet = traffic.is_mostly_quiet(world.now, _change_times(world))
    return RunMeasures(
        duration_ms=world.now, assigned_at=ownership.assigned_at, duplicated_ms=ownership.duplicated_ms,
        orphaned_ms=ownership.orphaned_later_ms, rebalances=tuple(observer.rebalances),
        deaths=tuple(observer.deaths), coordinator_deaths=tuple(_coordinators(world, notes)),
        changes=_changes(world), messages=traffic.messages, watches=traffic.watches,
        quiet_messages=traffic.quiet(world.now) if quiet else None,
        beyond_quiet=traffic.beyond(world.now) if quiet else None,
        deliveries=None if messages is None or run.shares else messages.deliveries(world.now - _LAST_MS),
    )  # fmt: skip


def _find_detections(deaths: list[Death], notes: list[RunNote]) -> None:
    """Who was counted as gone after its death, and before it died again."""
    times: dict[str, list[int]] = {}
    for note in notes:
        if note.subject:
            times.setdefault(note.subject, []).append(note.time)
    for number, death in enumerate(deaths):
        next_death = next((later.time for later in deaths[number + 1 :] if later.node == death.node), None)
        death.detected = next(
            (
                time for time in times.get(death.node, ())
                if time >= death.time and (next_death is None or time < next_death)
            ),
            None,
        )  # fmt: skip


def _silent_since(world: World, node: str, until: int) -> int:
    """When the fault began that kept a consumer from its coordinator until then."""
    servers = [name for name in world.nodes if not name.startswith("consumer-")]
    since = until
    for time, fault in world.faults:
        if time > until or fault.duration is None or time + fault.duration < until:
            continue
        first, second = fault.targets[0], fault.targets[-1]
        is_frozen = fault.kind == "freeze" and fnmatchcase(node, first)
        is_cut = fault.kind == "cut" and any(
            fnmatchcase(node, one_end) and all(fnmatchcase(name, other_end) for name in servers)
            for one_end, other_end in ((first, second), (second, first))
        )
        if is_frozen or is_cut:
            since = min(since, time)
    return since


def _find_begins(world: World, observer: RunObserver, notes: list[RunNote]) -> None:
    """When what each rebalance mends began. Everything is looked at once, by its time."""
    losses = deque(sorted((spell.ended, spell.began) for spell in observer.spells if not spell.owners))
    departures = deque(sorted((note.time, note.subject) for note in notes if note.subject))
    previous: set[str] = set()
    before = 0
    for rebalance in observer.rebalances:
        until = world.now if rebalance.ended is None else rebalance.ended
        begins = [rebalance.began]
        while losses and losses[0][0] <= until:
            ended, began = losses.popleft()
            begins += [began] if ended >= rebalance.began else []
        while departures and departures[0][0] <= rebalance.began:
            time, subject = departures.popleft()
            begins += [_silent_since(world, subject, time)] if time > before else []
        for name in rebalance.owners.keys() - previous:
            starts = world.nodes[name].started_at
            begins += [time for time in starts if before <= time <= rebalance.began][-1:]
        rebalance.since = max(min(begins), min(before, rebalance.began))
        previous, before = set(rebalance.owners), until


def _coordinators(world: World, notes: list[RunNote]) -> Iterable[CoordinatorDeath]:
    elected = [(note.time, note.node) for note in notes if note.name == "Elected"]
    for time, fault in world.faults:
        if fault.kind != "crash":
            continue
        acting = next((node for at, node in reversed(elected) if at <= time), "")
        if acting and fnmatchcase(acting, fault.targets[0]):
            replaced = next((at for at, _ in elected if at > time), None)
            yield CoordinatorDeath(time, acting, replaced)


def _change_times(world: World) -> Iterable[int]:
    """When consumers started, crashed or left."""
    consumers = [node for name, node in world.nodes.items() if name.startswith("consumer-")]
    for node in consumers:
        yield from node.started_at
    for time, fault in world.faults:
        if fault.kind in ("crash", "leave") and any(
            fnmatchcase(node.name, fault.targets[0]) for node in consumers
        ):
            yield time


def _changes(world: World) -> int:
    consumers = [node for name, node in world.nodes.items() if name.startswith("consumer-")]
    boots, up = sum(node.boots for node in consumers), sum(node.is_up for node in consumers)
    leaves = [fault for _, fault in world.faults if fault.kind == "leave"]
    leaving = sum(fnmatchcase(node.name, fault.targets[0]) for fault in leaves for node in consumers)
    return boots + (boots - up) + leaving
