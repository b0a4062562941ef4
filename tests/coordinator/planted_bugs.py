"""Planted bugs, and who finds them: `python -m tests.coordinator.planted_bugs [NAME...]`.

Strategy: each bug is a change of the text of one module of the coordinator. A process of its own imports the
changed text and looks for something that is not as it should be: in the kept histories, whose answers are
Kafka's; in random histories under all checkers; in seeded simulations with client models under all checkers.
All have a minute of processor time together, each its share. Prints a table. Rules: a
text must be in its module just once, so that a list that no longer fits the code is noticed at once."""

from __future__ import annotations

import argparse
import importlib.abc
import importlib.machinery
import importlib.util
import itertools
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import coordwire

if TYPE_CHECKING:
    from tests.coordinator.recorded_histories import RecordedHistory

_ROOT = Path(__file__).parents[2]
_COORDINATOR = Path(coordwire.__file__).parent / "coordinator"  # as installed, which may be elsewhere
_SECONDS = 60.0
_STEPS = 200
_ENDLESS = 20.0
"""Seconds after which a try, of a second or two, does not end."""


@dataclass(frozen=True, slots=True)
class PlantedBug:
    """A change. module: below `coordwire.coordinator`."""

    name: str
    module: str
    before: str
    after: str

    @property
    def path(self) -> Path:
        return _COORDINATOR / (self.module.replace(".", "/") + ".py")

    def changed(self) -> str:
        text = self.path.read_text()
        if text.count(self.before) != 1:
            raise ValueError(
                f"{self.name}: {self.before!r} is {text.count(self.before)} times in {self.path}"
            )
        return text.replace(self.before, self.after)


_B = PlantedBug
BUGS = [
    # classic groups
    _B(
        "followers are given the members",
        "classic.rebalance",
        "members=group.joined_members() if group.is_leader(member.member_id) else [],",
        "members=group.joined_members(),",
    ),
    _B("a generation is left out", "model.classic_group", "self.generation += 1", "self.generation += 2"),
    _B("a parked member expires", "model.classic_group", "return not self.new and (", "return False and ("),
    _B(
        "a heartbeat is answered 0 in a rebalance",
        "classic.requests",
        "_REBALANCE_IN_PROGRESS if entered is _PREPARING else 0",
        "0",
    ),
    _B(
        "a heartbeat of an old generation counts",
        "classic.requests",
        "if request.generation_id != group.generation:\n        raise",
        "if request.generation_id > group.generation:\n        raise",
    ),
    _B(
        "a sync of an old generation counts",
        "classic.requests",
        "if request.generation_id != group.generation:\n        return",
        "if request.generation_id > group.generation:\n        return",
    ),
    _B(
        "a replaced static member is not fenced",
        "model.classic_group",
        "            if existing != member_id:",
        "            if existing != member_id and not member_id:",
    ),
    _B(
        "an id that was given out never ends",
        "classic.requests",
        "        keep_pending_alive(state, group, member_id, request.session_timeout_ms)\n",
        "",
    ),
    _B(
        "who did not join stays a member",
        "classic.rebalance",
        "    for member in absent:",
        "    for member in absent[1:]:",
    ),
    _B(
        "one member too many", "classic.requests", "group.parked_joins < limit", "group.parked_joins <= limit"
    ),
    _B(
        "an absent leader stays the leader",
        "model.classic_group",
        "if self.members[self.leader].parked_join is None:",
        "if self.leader not in self.members:",
    ),
    _B(
        "the protocol with the fewest votes wins",
        "model.classic_group",
        "return max(votes, key",
        "return min(votes, key",
    ),
    _B(
        "a failed sync leaves the others waiting",
        "classic.requests",
        "            refuse_parked_syncs(state, group, translated(error))\n",
        "",
    ),
    _B(
        "a static leader assigns again",
        "classic.requests",
        "skip_assignment=leads",
        "skip_assignment=False",
    ),
    _B(
        "a static member's failed return leaves its new time-out",
        "classic.requests",
        "            group.update(member, *previous, None)\n",
        "",
    ),
    _B(
        "a static member's failed return leaves it without a session",
        "classic.requests",
        "            keep_alive(state, group, old)\n            reply",
        "            reply",
    ),
    _B(
        "a static member's failed return keeps its new id",
        "classic.requests",
        "            old = group.replace_static(instance_id, new_id, old_id)\n",
        "            old = member\n",
    ),
    _B(
        "an offset's retention starts with its commit",
        "classic.kind",
        "return committed.committed_at if group.state_since is None else group.state_since",
        "return committed.committed_at",
    ),
    _B(
        "the session of a steady member is not renewed",
        "classic.requests",
        "        or not state.timers.renew((SESSION_TIMER, group_id, member_id), "
        "state.now + member.session_timeout_ms)\n",
        "",
    ),
    _B(
        "a steady heartbeat of an old generation counts",
        "classic.requests",
        "        or request.generation_id != group.generation\n",
        "",
    ),
    _B(
        "a member that is not settled gets no news",
        "consumer.heartbeat",
        "        or not group.is_settled(member, state.now)\n",
        "",
    ),
    _B(
        "a session is not renewed by a heartbeat",
        "classic.requests",
        "    keep_alive(state, group, member)\n    return HeartbeatResponse",
        "    return HeartbeatResponse",
    ),
    _B(
        "a late sync has no limit",
        "classic.rebalance",
        "    _limit_sync(state, group)\n    return NOTHING",
        "    return NOTHING",
    ),
    # consumer groups
    _B(
        "a partition is free when its revocation is sent",
        "model.consumer_group",
        "            self._claim(new.revoking, new.epoch)\n",
        "",
    ),
    _B(
        "a smaller epoch is accepted",
        "consumer.members",
        "if member.epoch > epoch == member.previous_epoch and _is_part(reported, member):",
        "if member.epoch > epoch:",
    ),
    _B(
        "a greater epoch is accepted",
        "consumer.members",
        "if epoch in (0, member.epoch):",
        "if epoch == 0 or epoch >= member.epoch:",
    ),
    _B(
        "a heartbeat without partitions gives them up",
        "consumer.reconciliation",
        "        if self._reported is None:\n            return True",
        "        if self._reported is None:\n            return False",
    ),
    _B(
        "a partition is taken that another has",
        "consumer.reconciliation",
        "elif partition not in own and not self._group.is_free(topic, partition):",
        "elif False:",
    ),
    _B(
        "a target is computed at once, always",
        "consumer.target",
        "return not group.assigned_at or not interval or state.now >= group.assigned_at + interval",
        "return True",
    ),
    _B(
        "a member leaves in the same epoch",
        "consumer.sessions",
        "epoch_record(group_id, group.epoch + 1, ",
        "epoch_record(group_id, group.epoch, ",
    ),
    _B("a full request gets no assignment", "consumer.heartbeat", " or has_all_fields or ", " or "),
    _B(
        "a living static member is replaced",
        "consumer.members",
        "old.classic is None and old.epoch != LEFT_FOR_NOW",
        "old.classic is None and old.epoch < LEFT_FOR_NOW",
    ),
    _B(
        "a consumer's session is not renewed",
        "consumer.heartbeat",
        "    keep_alive(state, group_id, member_id, config.session_timeout_ms)\n",
        "",
    ),
    _B(
        "a revocation has no limit",
        "consumer.reconciliation",
        "            sessions.limit_revocation(state, group.group_id, step)\n",
        "            pass\n",
    ),
    _B(
        "the range assignor drops the remainder",
        "assignors.range_assignor",
        "end = start + least + (index < extra)",
        "end = start + least",
    ),
    _B(
        "a pattern stays whose last members leave at once",
        "consumer.sessions",
        "if group.patterns.get(regex) == count]",
        "if group.patterns.get(regex) == 1]",
    ),
    _B(
        "members that leave at once raise the epoch each",
        "consumer.sessions",
        "group.epoch + 1, group_hash(",
        "group.epoch + len(members), group_hash(",
    ),
    _B(
        "a member that leaves twice at once is removed twice",
        "consumer.classic_members",
        "remove_members(state, group, list(leaving.values()), response",
        "remove_members(state, group, [*leaving.values()] * 2, response",
    ),
    # rules that few histories show
    _B(
        "a consumer group has one member too many",
        "consumer.members",
        "if len(group.members) >= limit and member_id",
        "if len(group.members) > limit and member_id",
    ),
    _B(
        "patterns are resolved again at once",
        "consumer.patterns",
        "if state.now <= last.timestamp + _MIN_INTERVAL_MS:",
        "if state.now < last.timestamp:",
    ),
    _B(
        "patterns do not find new topics",
        "consumer.patterns",
        "        or last.version < state.new_topics_version\n",
        "",
    ),
    _B(
        "a dropped pattern is recorded",
        "consumer.patterns",
        "        if regex not in group.patterns:\n            continue\n",
        "",
    ),
    _B(
        "the initial delay is not extended in steps",
        "classic.rebalance",
        "longer = min(state.config.initial_rebalance_delay_ms, remaining_ms)",
        "longer = remaining_ms",
    ),
    _B(
        "a commit's own retention is ignored",
        "offsets.commit",
        "expires_at = -1 if retention == _NO_RETENTION else _as_long(now + retention)",
        "expires_at = -1",
    ),
    _B(
        "an offset of a subscribed topic is deleted",
        "offsets.deletion",
        "error = int(ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC) if group.is_subscribed(topic.name) else 0",
        "error = 0",
    ),
    _B(
        "a commit of a later epoch is stored",
        "consumer.kind",
        "        if epoch > member.epoch:\n            raise _stale(member)\n",
        "",
    ),
    _B(
        "a commit from before the partition was owned is stored",
        "consumer.kind",
        "if since is None or epoch < since:",
        "if since is None:",
    ),
    _B(
        "an old commit of a KIP-848 member is stored",
        "epoch_groups",
        " and commit.version < _KNOWS_STALE_EPOCHS:",
        " and commit.version < 0:",
    ),
    _B(
        "a transaction's older offset replaces a newer one",
        "replay",
        "if known is None or offset.log_offset > known.log_offset:",
        "if True:",
    ),
    _B(
        "a group with members is deleted",
        "admin",
        "        elif not group.is_empty:",
        "        elif not group.is_empty and False:",
    ),
    _B(
        "topics that grow do not raise the epoch",
        "consumer.target",
        "if changed or metadata_hash != group.metadata_hash:",
        "if changed:",
    ),
    _B(
        "a custom assignor's group is upgraded",
        "consumer.upgrade",
        "            if custom:\n",
        "            if custom and not member.assignment:\n",
    ),
    _B(
        "a fetch of another epoch is answered",
        "consumer.kind",
        "        if member is not None and member.epoch != epoch:\n            raise _stale(member)\n",
        "",
    ),
    _B(
        "a member that is ahead may leave for another's id",
        "model.members",
        "    if member.member_id != member_id:",
        "    if member.member_id != member_id and member.classic is not None:",
    ),
    _B(
        "a tombstone leaves pending offsets",
        "replay",
        "        state.pending_offsets.remove(group_id, topic, partition)\n        return",
        "        return",
    ),
    # the log
    _B(
        "a revert takes back the last append alone",
        "snapshots",
        "        while self._changed[-1][0] > epoch:\n",
        "        while self._changed[-1][0] > epoch and not changed:\n",
    ),
    _B("a computed key goes after others", "hash_tables", "        self._first[key] = None\n", ""),
    _B(
        "a copy has the room of a new table",
        "hash_tables",
        "cls(int(size / 0.75 + 1.0) if size else _MIN_CAPACITY)",
        "cls()",
    ),
    _B("the oldest key of a slot is first", "snapshots", "    keys.reverse()\n", ""),
    _B("a failed append is not reverted", "writes", "        self._state.snapshots.revert(base)\n", ""),
    _B(
        "an answer leaves before its append",
        "writes",
        "        self._waiting.append((self._written, waiting))\n",
        "        self._end(waiting, 0)\n        return\n",
    ),
    _B(
        "a steady heartbeat does not wait for appends on their way",
        "shard",
        "        if steady is not None and not self._writes.pending:",
        "        if steady is not None:",
    ),
    _B(
        "old timers fire after an unload",
        "shard",
        "        return State(\n",
        "        return _with_timers(old)(\n",
    ),
    _B(
        "a commit of an old generation is stored",
        "classic.kind",
        "            if commit.generation != group.generation:",
        "            if commit.generation > group.generation:",
    ),
    _B(
        "an offset of a subscribed topic expires",
        "offsets.deletion",
        "is_needed = group.is_subscribed(topic) or ",
        "is_needed = ",
    ),
    _B(
        "an offset with a pending transaction expires",
        "offsets.deletion",
        " or pending.is_open(group.group_id, topic, partition)",
        "",
    ),
    _B(
        "an aborted transaction is committed",
        "replay",
        "if ended is None or not committed:",
        "if ended is None:",
    ),
    _B(
        "an unstable offset is read as stable",
        "offsets.fetch",
        "    if unstable:\n",
        "    if unstable and index < 0:\n",
    ),
    _B(
        "a shard serves while it loads",
        "shard",
        "        self._error = int(_ERRORS[status])",
        "        self._error = 0 if status is ShardStatus.LOADING else int(_ERRORS[status])",
    ),
    _B(
        "offsets of a deleted topic stay",
        "shard",
        "        if deleted and self.status is",
        "        if not deleted and self.status is",
    ),
    # streams groups
    _B(
        "a standby has no place of its own",
        "streams.sticky_assignor",
        "            if not process.has(task):\n",
        "            if True:\n",
    ),
    _B(
        "a task leaves its last owner",
        "streams.sticky_assignor",
        "        tasks = [task for task in tasks if not self._stays(task, self._last_active.get(task))]\n",
        "",
    ),
    _B(
        "a member gets more than its share",
        "streams.sticky_assignor",
        "self._count(member_id) >= self._active_share.tasks_per_member",
        "self._count(member_id) > self._active_share.tasks_per_member",
    ),
    _B(
        "a task is taken that another process has",
        "streams.reconciliation",
        "return self._group.active_owners.get(task) is not None or self._stands_by(task)",
        "return self._stands_by(task)",
    ),
    _B(
        "a process has a task in two roles",
        "streams.reconciliation",
        "return self._group.active_owners.get(task) == self._process_id or self._stands_by(task)",
        "return False",
    ),
    _B(
        "tasks are free when their revocation is sent",
        "streams.reconciliation",
        "if reported is None or reported.has_any(member.revoking):",
        "if False:",
    ),
    _B(
        "a member that gave up tasks stays in its epoch",
        "streams.reconciliation",
        "return _towards(rules, group, member, member.epoch + 1, epoch, target, reported)",
        "return _towards(rules, group, member, member.epoch, epoch, target, reported)",
    ),
    _B(
        "a topology may change",
        "streams.heartbeat",
        "if known.epoch <= topology.epoch and known != topology:",
        "if known.epoch < topology.epoch and known != topology:",
    ),
    _B(
        "the first target does not wait",
        "streams.reconciliation",
        "    if state.timers.is_set(initial_delay_key(group.group_id)):",
        "    if False:",
    ),
    _B(
        "a target is computed at once, for streams too",
        "streams.reconciliation",
        "return not group.assigned_at or not interval or state.now >= group.assigned_at + interval",
        "return True",
    ),
    _B(
        "new topics go unnoticed",
        "streams.kind",
        "return group.subscribes_to_any(names)",
        "return False",
    ),
    _B(
        "a change of the standby tasks' number goes unnoticed",
        "streams.heartbeat",
        "        or configs != facts.assignment_configs\n",
        "",
    ),
    _B(
        "a changelog topic has too few partitions",
        "streams.configuration",
        "return max(map(self.of, topics), default=None)",
        "return min(map(self.of, topics), default=None)",
    ),
    _B(
        "topics that are read together differ",
        "streams.configuration",
        "    if len(distinct) == 1:",
        "    if distinct:",
    ),
    _B(
        "the endpoints' epoch stays",
        "streams.heartbeat",
        "        group.endpoint_epoch += 1\n",
        "        pass\n",
    ),
    _B(
        "the wish to shut down is forgotten",
        "model.streams_group",
        "if self.shutdown_member is None:",
        "if False:",
    ),
    _B(
        "a streams member's session is not renewed",
        "streams.sessions",
        "if not state.timers.renew((SESSION_TIMER, group_id, member_id), state.now + timeout_ms):",
        "if False:",
    ),
    _B(
        "a streams member's revocation has no limit",
        "streams.heartbeat",
        "            sessions.limit_revocation(state, group.group_id, step)\n",
        "            pass\n",
    ),
    _B(
        "a commit of an older epoch counts for any task",
        "streams.kind",
        "if since is None or epoch < since:",
        "if since is None:",
    ),
    _B(
        "a lost answer fences a streams member",
        "streams.members",
        "if member.epoch > epoch == member.previous_epoch and _is_part(request, member):",
        "if False:",
    ),
]

_HELPERS = {
    "old timers fire after an unload": """

def _with_timers(old):
    from functools import partial
    return partial(State, timers=old.timers)
"""
}
"""What a change needs beside its text."""


class Planter(importlib.abc.MetaPathFinder):
    """Gives one module its changed text."""

    def __init__(self, bug: PlantedBug) -> None:
        self._name = f"coordwire.coordinator.{bug.module}"
        self._bug = bug

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != self._name:
            return None
        loader = _Changed(fullname, str(self._bug.path))
        loader.bug = self._bug
        return importlib.util.spec_from_loader(fullname, loader, origin=str(self._bug.path))


class _Changed(importlib.machinery.SourceFileLoader):
    bug: PlantedBug

    def get_code(self, fullname: str) -> object:  # type: ignore[override]
        text = self.bug.changed() + _HELPERS.get(self.bug.name, "")
        return compile(text, self.get_filename(fullname), "exec")


# --- finders: each gives what a try found, or None, and goes on ---


def _by_histories() -> Iterator[str | None]:
    """A kept history that comes out differently than Kafka made it. The newest reach the most."""
    from tests.coordinator.archived_histories import archived
    from tests.coordinator.recorded_histories import read_histories

    return differing([*archived("rules"), *_from_both_ends(list(read_histories()))])


def _from_both_ends(histories: Sequence[RecordedHistory]) -> Iterator[RecordedHistory]:
    both_ends = itertools.chain.from_iterable(zip(histories, reversed(histories), strict=True))
    return itertools.islice(both_ends, len(histories))


def differing(histories: Iterable[RecordedHistory]) -> Iterator[str | None]:
    """The first step of each history that differs."""
    from tests.coordinator.histories import Replayer
    from tests.coordinator.recorded_histories import checksum
    from tests.coordinator.settings import settings

    for seed, steps, release in histories:
        replayer, place = Replayer(settings(seed, release)), None
        for number, (expected, step) in enumerate(steps):
            try:
                outcome = replayer.run(step)
            except Exception as error:
                place = f"history {seed}, step {number}: {type(error).__name__}"
                break
            if checksum(outcome.sorted(replayer.requests)) != expected:
                place = f"history {seed}, step {number}"
                break
        yield place


def _by_streams_histories() -> Iterator[str | None]:
    """A kept history with streams groups that comes out differently than Kafka made it."""
    from tests.coordinator.recorded_histories import STREAMS, read_histories

    return differing(_from_both_ends(list(read_histories(STREAMS))))


def _by_random_histories() -> Iterator[str | None]:
    """An invariant that does not hold in a random history: one of offsets and one of all in turn."""
    from tests.coordinator.checked_histories import offsets_history, watched
    from tests.coordinator.generator import Generator, history

    for number in itertools.count():
        grow: Callable[[int, int], Generator] = history if number % 2 else offsets_history
        seed = number // 2
        try:
            _, violation = watched(seed, grow(seed, _STEPS).steps)
        except Exception as error:
            yield f"seed {seed}: {type(error).__name__}"
        else:
            yield None if violation is None else f"{violation.name}, seed {seed}"


def _by_simulations() -> Iterator[str | None]:
    """An invariant that does not hold in a simulation."""
    from tests.coordinator.invariants import Violation
    from tests.coordinator.simulation import Simulation

    for seed in itertools.count():
        try:
            Simulation(seed).run()
        except Violation as violation:
            yield f"{violation.name}, seed {seed}"
        except Exception as error:
            yield f"seed {seed}: {type(error).__name__}"
        else:
            yield None


FINDERS: dict[str, Callable[[], Iterator[str | None]]] = {
    "kept histories": _by_histories,
    "streams histories": _by_streams_histories,
    "random histories": _by_random_histories,
    "simulations": _by_simulations,
}


class _DoesNotEnd(Exception):
    """A try took much longer than any should."""


def _end(*_: object) -> None:
    raise _DoesNotEnd


def _run(bug: PlantedBug, limit: float, finder: str | None) -> int:
    """In the process with the changed text: the finder that finds it, what, and the time that all took."""
    sys.meta_path.insert(0, Planter(bug))
    signal.signal(signal.SIGPROF, _end)
    finders = {name: find() for name, find in FINDERS.items() if finder in (None, name)}
    used = dict.fromkeys(finders, 0.0)
    while used and sum(used.values()) < limit:
        name = min(used, key=used.__getitem__)  # each has its turn when it had the least time
        began = time.process_time()
        signal.setitimer(signal.ITIMER_PROF, _ENDLESS)
        try:
            place = next(finders[name])
        except StopIteration:
            del used[name]
            continue
        used[name] += time.process_time() - began
        if place is not None:
            print(f"{name}\t{place}\t{sum(used.values()):.1f}")
            return 0
    return 0


def find_planted(
    bug: PlantedBug, limit: float = _SECONDS, finder: str | None = None
) -> tuple[str, str, float] | None:
    """The finder that found it, what, and the seconds that all took. finder: only this one."""
    command = [
        sys.executable,
        "-m",
        "tests.coordinator.planted_bugs",
        "--inside",
        bug.name,
        "--seconds",
        str(limit),
    ]
    if finder is not None:
        command += ["--finder", finder]
    output = subprocess.run(command, cwd=_ROOT, check=True, capture_output=True, text=True).stdout
    if not output:
        return None
    name, place, seconds = output.rstrip("\n").split("\t")
    return name, place, float(seconds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="of bugs; all without any")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=_SECONDS, help="of processor time for all finders")
    parser.add_argument("--finder", choices=list(FINDERS))
    options = parser.parse_args()
    if options.inside:
        return _run(next(bug for bug in BUGS if bug.name == options.inside), options.seconds, options.finder)
    missed = 0
    print("| planted bug | finder | found | seconds |\n|---|---|---|---:|", flush=True)
    for bug in BUGS:
        if options.names and bug.name not in options.names:
            continue
        finding = find_planted(bug, options.seconds, options.finder)
        missed += finding is None
        name, place, seconds = finding or ("", "not found", options.seconds)
        print(f"| {bug.name} | {name} | {place} | {seconds:.1f} |", flush=True)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
