"""The sticky assignor of streams groups: tasks stay where they were, and processes are loaded equally.

Strategy: active tasks go to their last owner, then to a member that had a standby of them, while the member
has less than its share; the others go to the process with the least load, and in it to the member with the
fewest tasks. Standby tasks follow in the same way, each replica in another process.

Rules: the order of members, processes and queues is Java's, since ties are broken by it; loads are divided
as Java's doubles are. One task costs the logarithm of the number of processes and members.

Java's PriorityQueue: which of several least elements comes first depends on how it sifts.

Strategy: a binary heap as Java has it. `heapq` sifts in another way, so that its order of equals differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter, itemgetter
from typing import Generic, TypeVar

from coordwire.coordinator.assignors import StreamsGroupSpec
from coordwire.coordinator.hash_tables import HashMap, HashSet
from coordwire.coordinator.model.streams_group import TargetTasks

STICKY = "sticky"
"""The name of the assignor."""

T = TypeVar("T")


class JavaQueue(Generic[T]):
    """Elements by a number. Rules: an element's number changes only while it is out of the queue."""

    def __init__(self, number_of: Callable[[T], float], elements: Iterable[T] = ()) -> None:
        self._number_of = number_of
        self._heap: list[tuple[float, T]] = []
        for element in elements:
            self.add(element)

    def __bool__(self) -> bool:
        return bool(self._heap)

    def add(self, element: T) -> None:
        heap = self._heap
        number = self._number_of(element)
        entry = number, element
        place = len(heap)
        heap.append(entry)
        while place:
            parent = (place - 1) >> 1
            above = heap[parent]
            if number >= above[0]:
                break
            heap[place] = above
            place = parent
        heap[place] = entry

    def poll(self) -> T:
        """Remove the first element, and return it. Raises `IndexError` if there is none."""
        heap = self._heap
        last = heap.pop()
        if not heap:
            return last[1]
        first = heap[0]
        number = last[0]
        size = len(heap)
        half = size >> 1
        place = 0
        while place < half:
            child = 2 * place + 1
            below = heap[child]
            right = child + 1
            if right < size and below[0] > heap[right][0]:
                child, below = right, heap[right]
            if number <= below[0]:
                break
            heap[place] = below
            place = child
        heap[place] = last
        return first[1]


# --- the assignor ---


Task = tuple[str, int]
"""Subtopology and partition."""


def sticky_assignor(spec: StreamsGroupSpec) -> Mapping[str, TargetTasks]:
    """The target of each member, in their order."""
    return _assigned(_Assignment(spec), spec)


def ranking_sticky_assignor(spec: StreamsGroupSpec) -> Mapping[str, TargetTasks]:
    """The same as of Apache Kafka 4.4: members that know a task are ranked by the offsets they report."""
    return _assigned(_RankingAssignment(spec), spec)


def _assigned(assignment: _Assignment, spec: StreamsGroupSpec) -> Mapping[str, TargetTasks]:
    assignment.assign_active()
    if spec.standby_replicas > 0:
        assignment.assign_standby()
    return assignment.targets()


class _Process:
    """A process and its members. members: the number of tasks of each."""

    __slots__ = ("count", "load", "members", "queue", "tasks")

    def __init__(self) -> None:
        self.members: dict[str, list[int]] = {}
        self.tasks: set[Task] = set()
        self.count = 0
        self.load = 0.0
        self.queue: JavaQueue[tuple[str, list[int]]] | None = None

    def has(self, task: Task) -> bool:
        return task in self.tasks

    def add(self, member_id: str, task: Task) -> int:
        """Add a task to a member, and return how many it has now."""
        self.count += 1
        self.tasks.add(task)
        counter = self.members[member_id]
        counter[0] += 1
        self.load = self.count / len(self.members)
        return counter[0]

    def least_loaded(self) -> str:
        """The member with the fewest tasks, to which one is added at once."""
        if len(self.members) == 1:
            return next(iter(self.members))
        if self.queue is None:
            self.queue = JavaQueue(_count_of, HashMap.of(self.members).items())
        entry = self.queue.poll()
        entry[1][0] += 1
        self.queue.add(entry)
        entry[1][0] -= 1
        return entry[0]


def _count_of(entry: tuple[str, list[int]]) -> int:
    return entry[1][0]


class _Share:
    """The most tasks that each member may get, so that all are placed; it shrinks as members are full."""

    def __init__(self, tasks: int, members: int) -> None:
        self._tasks = tasks
        self._members = members
        self.tasks_per_member = 0
        self._compute()

    def _compute(self) -> None:
        self.tasks_per_member = -(-self._tasks // self._members) if self._members else 0

    def reached(self, count: int) -> None:
        """A member has this many now."""
        if count == self.tasks_per_member:
            self._members -= 1
            self._tasks -= count
            self._compute()


class _Assignment:
    def __init__(self, spec: StreamsGroupSpec) -> None:
        members, subtopologies, standby_replicas = spec.members, spec.subtopologies, spec.standby_replicas
        self._replicas = standby_replicas
        self._parts = subtopologies
        self._members = members
        active = sum(part.tasks for part in subtopologies.values())
        stateful = sum(part.tasks for part in subtopologies.values() if part.changelogs)
        self._active_share = _Share(active, len(members))
        self._total_share = _Share(active + stateful * standby_replicas, len(members))
        self._processes: HashMap[str, _Process] = HashMap(len(members))
        self._last_active: dict[Task, str] = {}
        self._process_of: dict[str, _Process] = {}
        self._active: dict[str, list[Task]] = {member_id: [] for member_id in members}
        self._standby: dict[str, list[Task]] = {member_id: [] for member_id in members}
        for member_id, member in members.items():
            process = self._process(member.process_id)
            process.members[member_id] = [0]
            self._process_of[member_id] = process
            for part_id, partitions in member.target.active.items():
                self._last_active.update(
                    dict.fromkeys(((part_id, number) for number in partitions), member_id)
                )
        self._last_standby = self._members_with_standbys()
        self._ordered = self._processes.values()

    def _process(self, process_id: str) -> _Process:
        process = self._processes.get(process_id)
        if process is None:
            process = self._processes[process_id] = _Process()
        return process

    def _members_with_standbys(self) -> dict[Task, list[str]]:
        """The members that know a task, in the order of preference."""
        known: dict[Task, list[str]] = {}
        for member_id, member in self._members.items():
            for part_id, partitions in member.target.standby.items():
                for number in partitions:
                    known.setdefault((part_id, number), []).append(member_id)
        return known

    def _place(self, member_id: str, task: Task, *, active: bool) -> None:
        count = self._process_of[member_id].add(member_id, task)
        (self._active if active else self._standby)[member_id].append(task)
        if active:
            self._active_share.reached(count)
        self._total_share.reached(count)

    def _count(self, member_id: str) -> int:
        return self._process_of[member_id].members[member_id][0]

    def _tasks(self, *, stateful: bool) -> list[Task]:
        return [
            (part_id, number)
            for part_id, part in self._parts.items()
            if part.changelogs or not stateful
            for number in range(part.tasks)
        ]

    # --- active tasks ---

    def assign_active(self) -> None:
        tasks = sorted(self._tasks(stateful=False), key=_by_partition)
        tasks = [task for task in tasks if not self._stays(task, self._last_active.get(task))]
        tasks = [task for task in tasks if not self._stays(task, self._least_loaded(task, None))]
        tasks.sort()
        queue = JavaQueue(_load_of, self._ordered)
        for task in tasks:
            process = queue.poll()
            self._place(process.least_loaded(), task, active=True)
            queue.add(process)

    def _stays(self, task: Task, member_id: str | None) -> bool:
        """Give a task to a member that knows it, if the member has less than its share."""
        if member_id is None or self._count(member_id) >= self._active_share.tasks_per_member:
            return False
        self._place(member_id, task, active=True)
        self._process_of[member_id].queue = None
        return True

    def _least_loaded(self, task: Task, unless_at: Task | None) -> str | None:
        """Of the members that had a standby of a task, the one with the least load.

        unless_at: a task that the process must not have; as in Apache Kafka only that of the first of the
        members is asked in the end.
        """
        members = self._last_standby.get(task)
        if not members:
            return None
        candidate = members[0]
        first = self._process_of[candidate]
        load, count = first.load, self._count(candidate)
        for member_id in members[1:]:
            process = self._process_of[member_id]
            if process.load < load and (unless_at is None or not process.has(unless_at)):
                own = self._count(member_id)
                if own < count:
                    candidate, load, count = member_id, process.load, own
        return None if unless_at is not None and first.has(unless_at) else candidate

    # --- standby tasks ---

    def assign_standby(self) -> None:
        unplaced: list[tuple[Task, int]] = []
        for task in sorted(self._tasks(stateful=True), key=_by_partition, reverse=True):
            for placed in range(self._replicas):
                if not self._stands_by(task):
                    unplaced.append((task, self._replicas - placed))
                    break
        unplaced.sort(key=itemgetter(0), reverse=True)
        queue = JavaQueue(_load_of, self._ordered)
        for task, replicas in unplaced:
            for _ in range(replicas):
                if not self._place_standby(queue, task):
                    break

    def _stands_by(self, task: Task) -> bool:
        """Give a standby of a task to a member that knows it."""
        share = self._total_share
        last = self._last_active.get(task)
        if last is None or self._process_of[last].has(task) or self._count(last) >= share.tasks_per_member:
            last = self._least_loaded(task, task)
            if last is None or self._count(last) >= share.tasks_per_member:
                return False
        self._place(last, task, active=False)
        self._process_of[last].queue = None
        return True

    def _place_standby(self, queue: JavaQueue[_Process], task: Task) -> bool:
        """Give a standby to the process with the least load that does not have the task."""
        polled = []
        placed = False
        while queue and not placed:
            process = queue.poll()
            polled.append(process)
            if not process.has(task):
                self._place(process.least_loaded(), task, active=False)
                placed = True
        for process in reversed(polled):
            queue.add(process)
        return placed

    # --- the result ---

    def targets(self) -> dict[str, TargetTasks]:
        return {
            member_id: TargetTasks(
                self._compact(self._active[member_id]), self._compact(self._standby[member_id])
            )
            for member_id in self._members
        }

    def _compact(self, tasks: list[Task]) -> dict[str, frozenset[int]]:
        """A member's tasks by subtopology, in the order of Java's tables."""
        parts: dict[str, list[int]] = {}
        for part_id, partition in tasks:
            parts.setdefault(part_id, []).append(partition)
        ordered: Iterable[str] = parts
        if len(parts) > 1:
            ordered = self._in_order(part_id for part_id, _ in HashSet.of(tasks))
        return {part_id: frozenset(parts[part_id]) for part_id in ordered}

    @staticmethod
    def _in_order(parts: Iterable[str]) -> Iterable[str]:
        return HashMap.copy_of(HashMap.of((part_id, 0) for part_id in parts))


class _RankingAssignment(_Assignment):
    """Rules: members with a standby come first, then those with the highest offset."""

    def _process(self, process_id: str) -> _Process:
        return self._processes.find_or_add(process_id, _Process)

    @staticmethod
    def _in_order(parts: Iterable[str]) -> Iterable[str]:
        table: HashMap[str, int] = HashMap()
        for part_id in parts:
            table.find_or_add(part_id, int)
        return HashMap.of(HashMap.copy_of(table).items())

    def _members_with_standbys(self) -> dict[Task, list[str]]:
        known: dict[Task, list[tuple[bool, int, str]]] = {}
        for member_id, member in self._members.items():
            standby = {(part_id, number) for part_id, ids in member.target.standby.items() for number in ids}
            for task in [*standby, *(task for task in member.task_offsets if task not in standby)]:
                rank = task not in standby, -member.task_offsets.get(task, 0)
                known.setdefault(task, []).append((*rank, member_id))
        return {
            task: [entry[2] for entry in sorted(ranked, key=itemgetter(0, 1))]
            for task, ranked in known.items()
        }

    def _least_loaded(self, task: Task, unless_at: Task | None) -> str | None:
        candidate, load, count = None, 0.0, 0
        for member_id in self._last_standby.get(task, ()):
            process = self._process_of[member_id]
            if unless_at is not None and process.has(unless_at):
                continue
            own = self._count(member_id)
            if candidate is None or (process.load < load and own < count):
                candidate, load, count = member_id, process.load, own
        return candidate


_load_of = attrgetter("load")


def _by_partition(task: Task) -> tuple[int, str]:
    return task[1], task[0]
