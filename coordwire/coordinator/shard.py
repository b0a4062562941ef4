"""A shard: one partition of `__consumer_offsets` and the groups in it, without socket, clock or randomness.

    ticket = shard.handle(request, version=9, now=now, context=context)
    for effect in shard.effects(): ...         Append: write it, then `appended` or `failed`; Answer: send it
    shard.next_deadline(); shard.advance(now)  time is an input
    while shard.has_work: shard.work(1_000, now=now)      with resolves_in_turns=True: a turn of a search
    shard.load(records, now=now); shard.unload(now=now)   the partition comes and goes

Rules: nothing that a client sends raises. An answer follows after its records are durable, so take the
effects after each call. Each call that depends on time has `now`, in milliseconds; an earlier one than before
counts as the same. Timers that are due then run before the call's own part, as if `advance` preceded it. What
an append's failure would change, further timers and a request, runs when the effects so far were taken. Where
they were not, it runs with the next call. One call at a time: a shard is not for several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from enum import Enum
from functools import partial
from uuid import UUID

from coordwire.codec import Message
from coordwire.coordinator.assignors import Assignors, checked_assignors
from coordwire.coordinator.config import CoordinatorConfig, GroupConfig, ShareGroupConfig, StreamsGroupConfig
from coordwire.coordinator.consumer.patterns import end_resolution
from coordwire.coordinator.effects import Answer, Effect, Outbox, Reply, RequestContext, TransactionCompleted
from coordwire.coordinator.listener import NO_LISTENER, GroupListener
from coordwire.coordinator.log_entries import LogEntry, TransactionMarker
from coordwire.coordinator.model.group import GroupModel
from coordwire.coordinator.offsets.deletion import remove_topics, schedule_expiry
from coordwire.coordinator.persister import PERSISTER_TIMER, LatestOffsets, Persister
from coordwire.coordinator.refusal import OperationRefused, translated
from coordwire.coordinator.replay import replay_entry
from coordwire.coordinator.requests import IMMEDIATE, KINDS, STEADY, refused_request, route
from coordwire.coordinator.state import Outcome, Result, State
from coordwire.coordinator.topics import TopicsImage
from coordwire.coordinator.writes import WRITE_TIMER, IncomingRequest, Writes, nobody_waits
from coordwire.enums import ErrorCode
from coordwire.errors import Malformed, counted
from coordwire.logs import LogRecord


class ShardStatus(Enum):
    """The states of a shard and its partition."""

    ABSENT = "absent"
    LOADING = "loading"
    ACTIVE = "active"


_ERRORS = {
    ShardStatus.ABSENT: ErrorCode.NOT_COORDINATOR,
    ShardStatus.LOADING: ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ShardStatus.ACTIVE: ErrorCode.NONE,
}
"""The errors of requests by status."""


_new = object.__new__


class Shard:
    """The coordinator of one partition; it has none until `load`.

    >>> from coordwire.coordinator import Answer, RequestContext, Shard
    >>> from coordwire.messages import ListGroupsRequest
    >>> shard = Shard()
    >>> shard.load([], now=0)
    >>> context = RequestContext(client_id="till-3", client_host="/192.0.2.7", new_id=lambda: "1")
    >>> ticket = shard.handle(ListGroupsRequest(), version=4, now=0, context=context)
    >>> [effect.response.groups for effect in shard.effects() if isinstance(effect, Answer)]
    [[]]
    >>> shard
    <Shard 0: 0 groups>
    """

    def __init__(
        self,
        *,
        now: int = 0,
        config: CoordinatorConfig | None = None,
        assignors: Assignors | None = None,
        listener: GroupListener = NO_LISTENER,
        resolves_in_turns: bool = False,
        partition: int = 0,
        outbox: Outbox | None = None,
    ) -> None:
        """assignors: an embedder's own, in addition to Kafka's or in place of them, by kind and name.
        listener: takes reports of each change of a group's state; it belongs to this shard alone.
        resolves_in_turns: whether the patterns of subscriptions are matched with the topics' names in turns
        of `work`, between which other requests can be handled; else within the call that needs it.
        partition: its number, which appends have. outbox: shared by the shards of a `GroupCoordinator`.
        """
        self._enter(ShardStatus.ABSENT)
        self._steady = STEADY
        self.partition = partition
        self._outbox = outbox or Outbox()
        self._effects = self._outbox.effects
        self._tickets = self._outbox.tickets
        self._state = State(
            config or CoordinatorConfig(), now, KINDS, assignors=checked_assignors(assignors or {}),
            listener=listener, resolves_in_turns=resolves_in_turns,
        )  # fmt: skip
        self._state.persister = Persister(self._effects.append, partition)
        self._state.submit = self._submit
        self._writes = Writes(self._state, self._effects, 0, partition=partition)
        self._until = now
        self.is_behind = False
        self._queued: Callable[[], None] | None = None

    @property
    def groups(self) -> dict[str, GroupModel]:
        """The groups as they are now, durable or not: to look at, not to change."""
        return dict(self._state.groups.items())

    @property
    def now(self) -> int:
        """The time, in milliseconds: the greatest that was given, or that of the timer that ran last."""
        return self._state.now

    @property
    def topics(self) -> TopicsImage:
        """The cluster's topics, as `set_topics` gave them."""
        return self._state.topics

    def __repr__(self) -> str:
        return f"<Shard {self.partition}: {counted(len(self.groups), 'group')}>"

    def answer(self, response: Message) -> int:
        """Answer a request that the shard does not need to see; returns the ticket."""
        ticket = next(self._tickets)
        self._effects.append(Answer(ticket, response))
        return ticket

    def effects(self) -> Iterator[Effect]:
        """The effects, each once, in order. After the last one nothing is due or waits for its turn."""
        effects = self._effects
        while True:
            while effects:
                yield effects.popleft()
            if self.is_behind:
                self.step()
            else:
                heap = self._state.timers.heap
                if not heap or heap[0][0] > self._state.now:
                    return
                self._run_until(self._state.now)  # what was set without a delay

    def handle(self, request: Message, *, version: int, now: int, context: RequestContext) -> int:
        """Take a request, and return the ticket that its `Answer` has. The request is not changed.

        Raises `EncodeError` for a version that the request does not have, and `TypeError` for a request that
        no group coordinator takes (`REQUESTS` has those).
        """
        try:
            steady = self._steady[type(request)][version]
        except KeyError:
            raise refused_request(type(request), version) from None
        ticket = next(self._tickets)
        if self.is_behind:
            self._finish()
        if now > self._state.now:
            self._run_until(now)
            if self.is_behind:
                # A lambda would put each local of every call into a cell.
                self._queued = partial(self._handle, ticket, request, version, context)
                return ticket
        if steady is not None and not self._writes.pending:
            response = steady(self._state, request, context)
            if response is not None:
                answer = _new(Answer)  # as `Answer(ticket, response)`, which would call Python once more
                answer.ticket, answer.response, answer.topics_to_create = ticket, response, ()
                self._effects.append(answer)
                return ticket
        self._handle(ticket, request, version, context)
        return ticket

    def _handle(self, ticket: int, request: Message, version: int, context: RequestContext) -> None:
        writes = self._writes
        immediate = IMMEDIATE.get(type(request))
        if immediate is None or self._error or writes.pending:
            reply = self._reply(ticket)
            route(IncomingRequest(self._state, writes, self._error, request, version, context, reply))
            return
        state = self._state
        try:
            immediate.validate(state, request, version)
            outcome = immediate.operation(state, request, context)
        except OperationRefused as refusal:
            outcome = immediate.refused(translated(refusal.code), refusal.message)
        if isinstance(outcome, Result):
            result = outcome
            reply = self._reply(ticket)
            call = IncomingRequest(state, writes, 0, request, version, context, reply)
            writes.run(lambda: result, call.completed(immediate.refused))
        else:
            self._effects.append(Answer(ticket, outcome))
            if state.later:
                writes.run(state.later.popleft(), nobody_waits)

    def _reply(self, ticket: int) -> Reply:
        def send(response: Message) -> None:
            self._effects.append(Answer(ticket, response, reply.topics_to_create))

        reply = Reply(send)
        return reply

    def complete_transaction(
        self,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int = 0,
        now: int,
    ) -> int:
        """Commit or abort the offsets of a transaction (WriteTxnMarkers).

        The marker is appended whether the producer has pending offsets here or not; the log checks the
        epochs. Returns the ticket that the `TransactionCompleted` has.
        """
        self._finish_until(now)
        ticket = next(self._tickets)

        def completed(error: int, result: Result) -> None:
            self._effects.append(TransactionCompleted(ticket=ticket, error_code=int(error)))

        if self._error:
            completed(self._error, Result())
        else:
            marker = TransactionMarker(committed, coordinator_epoch)
            self._writes.run(lambda: Result(producer=(producer_id, producer_epoch), marker=marker), completed)
        return ticket

    def persisted(
        self,
        number: int,
        response: Message | None,
        error_code: int = 0,
        *,
        latest_offsets: LatestOffsets | None = None,
        now: int,
    ) -> None:
        """The answer of the share coordinators to the `StateRequest` with this number.

        response: None where there is none, with the error's code. latest_offsets: of the partitions of a
        summary, an error code and the offset after the last record of each.
        """
        self._finish_until(now)
        self._state.persister.answer(number, response, error_code, latest_offsets or {})

    def _submit(
        self, operation: Callable[[State], Outcome], completed: Callable[[int, Result], None]
    ) -> None:
        """Run an operation in the state that there is now."""
        if self._error:
            completed(self._error, Result())
        else:
            self._writes.run(lambda: operation(self._state), completed)

    @property
    def has_work(self) -> bool:
        """Whether `work` has something to do."""
        return bool(self._state.resolutions)

    def work(self, amount: int, *, now: int) -> None:
        """Continue the search for the topics of the patterns of the group that has waited longest.

        amount: of work, about: one for a character of a pattern or of a name, or for an instruction that a
        pattern tries.
        """
        self._finish_until(now)
        resolutions = self._state.resolutions
        group_id = next(iter(resolutions), None)
        if group_id is None:
            return
        resolution = resolutions[group_id]
        resolution.advance(amount)
        if resolution.is_complete:
            self._writes.run(lambda: end_resolution(self._state, resolution), nobody_waits)
        else:
            resolutions[group_id] = resolutions.pop(group_id)

    def _enter(self, status: ShardStatus) -> None:
        self.status = status
        self._error = int(_ERRORS[status])

    # --- the log ---

    def appended(self, number: int, *, now: int) -> None:
        """The append with this number is durable, and those before it.

        An append of an earlier term is ignored. Raises `ValueError` for one that the shard never made.
        """
        self._learn_of(number, now)
        self._writes.appended(number)

    def failed(self, number: int, error: int, *, now: int) -> None:
        """The append with this number failed, with a broker's error code; those after it are taken back too.

        An append of an earlier term is ignored. Raises `ValueError` for one that the shard never made.
        """
        self._learn_of(number, now)
        self._writes.failed(number, error)

    def _learn_of(self, number: int, now: int) -> None:
        """Check the number of an append, and set the time at which its outcome is known.

        While effects are taken, the outcome may be what the next timer waits for: nothing runs before it.
        """
        if not 0 < number <= self._writes.appends:
            raise ValueError(f"expected an append from 1 to {self._writes.appends}, got {number}")
        if now > self._state.now:
            if not self.is_behind:
                self._run_until(now)
            self._state.now = now

    def begin_loading(self) -> None:
        """Refuse requests as a coordinator that loads its partition; `load` ends that."""
        if self.status is ShardStatus.ABSENT:
            self._enter(ShardStatus.LOADING)

    def load(
        self,
        records: Iterable[LogRecord | LogEntry],
        *,
        end_offset: int | None = None,
        now: int,
    ) -> None:
        """Take the partition with all records of its log; members' sessions begin now.

        A shard that has the partition gives it up first, as by `unload`.

        Records that are not entries get the offsets from 0 on, outside of transactions. A transaction that
        the log does not end is open. end_offset: of the log, where its last records are compacted away.

        Raises `Malformed` with the offset of a record that contradicts earlier ones, or whose value has an
        unknown version; and what `records` raises. The shard does not have the partition then, as in Apache
        Kafka.
        """
        self._finish_until(now)
        if self.status is ShardStatus.ACTIVE:
            self.unload(now=now)
        state = self._state = self._new_state()
        state.new_topics_version = state.topics_version
        try:
            count = max(_replay_all(state, records), end_offset or 0)
        except Exception:
            self._state = self._new_state()
            self._enter(ShardStatus.ABSENT)
            raise
        self._writes = Writes(state, self._effects, count, self._writes.appends, self.partition)
        state.snapshots.commit(count)
        self._enter(ShardStatus.ACTIVE)
        for group in state.groups.values():
            state.kind_of(group).resume(state, group)
        schedule_expiry(state)
        state.listener.loaded(state.now)
        state.listener.settle(count, count, state.groups)

    def unload(self, *, now: int) -> None:
        """Give up the partition: parked requests and pending writes get NOT_COORDINATOR."""
        self._finish_until(now)
        if self.status is ShardStatus.ABSENT:
            return
        error = self._error = int(ErrorCode.NOT_COORDINATOR)
        self._writes.fail_all(error)
        for group in self._state.groups.values():
            self._state.kind_of(group).give_up(self._state, group)
        self._state.listener.unloaded(self._state.now)
        self._state = self._new_state()
        self._writes = Writes(self._state, self._effects, 0, self._writes.appends, self.partition)
        self._enter(ShardStatus.ABSENT)

    def _new_state(self) -> State:
        """A state without groups, with the same inputs."""
        old = self._state
        old.listener.reset(old.topics)
        return State(
            old.config, old.now, old.kinds, old.topics, topics_version=old.topics_version,
            new_topics_version=old.new_topics_version, assignors=old.assignors,
            listener=old.listener, resolves_in_turns=old.resolves_in_turns, persister=old.persister,
            submit=old.submit,
        )  # fmt: skip

    # --- inputs ---

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next."""
        return self._state.timers.next_deadline()

    def may_be_due_before(self, time: int) -> bool:
        """Whether a deadline may be before this time; False is certain. Cheaper than `next_deadline`."""
        return self._state.timers.may_be_due(time - 1)

    def deadlines(self) -> dict[str, int]:
        """The deadlines of the timers of groups and their members."""
        deadlines = {}
        for key, due in self._state.timers.deadlines().items():
            if isinstance(key, tuple):
                deadlines["-".join(key)] = due
            elif not key.startswith((WRITE_TIMER, PERSISTER_TIMER)):
                deadlines[key] = due
        return deadlines

    def advance(self, now: int) -> None:
        """Set the time, in milliseconds, and run the timers that are due, each at its own time."""
        self._run_until(now)

    def _run_until(self, now: int) -> None:
        """Run what is due; what depends on an append's outcome is left to `step`."""
        if self.is_behind:
            self._finish()
        now = max(now, self._state.now)
        if self._state.timers.may_be_due(now):
            self._until = now
            self.is_behind = True
            self.step()
        else:
            self._state.now = now

    def step(self) -> None:
        """Run timers up to the first that appends, if any, then the request that waits for them.

        `effects` does this; `is_behind` says whether there is something left to do.
        """
        state = self._state
        while (deadline := state.timers.next_deadline()) is not None and deadline <= self._until:
            state.now = max(state.now, deadline)
            appends = self._writes.appends
            self._writes.run(state.timers.pop(), nobody_waits)
            if self._writes.appends != appends:
                return
        state.now = max(state.now, self._until)
        self.is_behind = False
        queued, self._queued = self._queued, None
        if queued is not None:
            queued()

    def _finish_until(self, now: int) -> None:
        """Run what is due and what waits, without the outcome of the appends before it."""
        if now > self._state.now:
            self._run_until(now)
        self._finish()

    def _finish(self) -> None:
        """Run what waits, without the outcome of the appends before it."""
        while self.is_behind:
            self.step()

    def set_group_config(self, group_id: str, config: GroupConfig | None, *, now: int) -> None:
        """Set the configuration of one group for when it is of this kind; None for those of all groups."""
        self._finish_until(now)
        config_now = self._state.config
        consumer_groups = dict(config_now.consumer_groups)
        streams_groups = dict(config_now.streams_groups)
        share_groups = dict(config_now.share_groups)
        if config is None:
            for known in (consumer_groups, streams_groups, share_groups):
                known.pop(group_id, None)
        elif isinstance(config, StreamsGroupConfig):
            streams_groups[group_id] = config
        elif isinstance(config, ShareGroupConfig):
            share_groups[group_id] = config
        else:
            consumer_groups[group_id] = config
        self._state.config = replace(
            config_now,
            consumer_groups=consumer_groups,
            streams_groups=streams_groups,
            share_groups=share_groups,
        )

    def set_topics(self, topics: TopicsImage, *, now: int) -> None:
        """Set the cluster's topics; the offsets of deleted ones are removed."""
        self._finish_until(now)
        state, known = self._state, self._state.topics
        deleted = known.missing_from(topics)
        state.topics = state.persister.topics = topics
        state.listener.topics_changed(topics)
        state.topics_version = state.topics_version + 1 if topics.version is None else topics.version
        if known.new_in(topics):
            state.new_topics_version = state.topics_version
        changed = known.changed_names(topics)
        for group in state.groups.values():
            kind, former = state.kind_of(group), state.former_topics.get(group.group_id)
            if kind.subscribes_to_any(group, changed) or (former and not former.isdisjoint(changed)):
                kind.refresh(group)
        if deleted and self.status is ShardStatus.ACTIVE:
            self._writes.run(lambda: remove_topics(self._state, deleted), nobody_waits)
            self._writes.run(lambda: self._without_topics({topic.id for topic in deleted}), nobody_waits)

    def _without_topics(self, topics: set[UUID]) -> Result:
        """Remove deleted topics from the groups."""
        state = self._state
        records = [
            state.kind_of(group).without_topics(state, group, topics) for group in state.groups.values()
        ]
        return Result([record for record in records if record is not None])


def _replay_all(state: State, records: Iterable[LogRecord | LogEntry]) -> int:
    """Replay all records, and return the offset after the last one."""
    count = 0
    for entry in records:
        if isinstance(entry, LogRecord):
            entry = LogEntry(offset=count, record=entry)
        try:
            replay_entry(state, entry)
        except OperationRefused:
            kind = type(getattr(entry.record, "key", entry.record)).__name__
            unknown = getattr(entry.record, "unknown", None)
            reason = f"record {entry.offset} ({kind}) {unknown or 'contradicts those before it'}"
            raise Malformed(reason, entry.offset) from None
        state.listener.replayed(entry)
        count = entry.offset + 1
    return count
