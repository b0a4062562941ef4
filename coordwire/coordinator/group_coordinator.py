"""A group coordinator over many partitions of `__consumer_offsets`: a shard for each, one input, one output.

    coordinator = GroupCoordinator(partitions=50)
    coordinator.load(7, records, now=now); coordinator.unload(7, now=now)
    ticket = coordinator.handle(request, version=9, now=now, context=context)
    for effect in coordinator.effects(): ...   Append: for its `partition`; then `appended` or `failed`
                                               StateRequest: to share coordinators; then `persisted`
    coordinator.next_deadline(); coordinator.advance(now)

Strategy: a request goes to the shard of its group. One about several groups is divided among their shards,
and its answer has the parts of all, in the order in which the request first names their partitions.
ListGroups asks every shard that has its partition. A partition that the coordinator does not have answers
NOT_COORDINATOR, so that a server needs no look-up before it hands on a request.
Rules: those of `Shard`; all partitions have one clock, which each call with `now` sets. Partitions do not
wait for each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from functools import lru_cache
from typing import Any, TypeAlias

from coordwire.codec import Message
from coordwire.codec.message import refused_version
from coordwire.coordinator.assignors import Assignors
from coordwire.coordinator.config import CoordinatorConfig, GroupConfig
from coordwire.coordinator.effects import Answer, Effect, Outbox, RequestContext
from coordwire.coordinator.hash_tables import java_hash
from coordwire.coordinator.listener import NO_LISTENER, GroupListener
from coordwire.coordinator.log_entries import LogEntry
from coordwire.coordinator.model.group import GroupModel
from coordwire.coordinator.persister import LatestOffsets
from coordwire.coordinator.shard import Shard, ShardStatus
from coordwire.coordinator.topics import TopicsImage
from coordwire.errors import counted
from coordwire.logs import LogRecord
from coordwire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeRequest,
    StreamsGroupDescribeResponse,
)

_SPLIT: Mapping[type[Message], tuple[str, str, type[Any], str]] = {
    DescribeGroupsRequest: ("groups", "", DescribeGroupsResponse, "groups"),
    ConsumerGroupDescribeRequest: ("group_ids", "", ConsumerGroupDescribeResponse, "groups"),
    ShareGroupDescribeRequest: ("group_ids", "", ShareGroupDescribeResponse, "groups"),
    StreamsGroupDescribeRequest: ("group_ids", "", StreamsGroupDescribeResponse, "groups"),
    DeleteGroupsRequest: ("groups_names", "", DeleteGroupsResponse, "results"),
    DescribeShareGroupOffsetsRequest: ("groups", "group_id", DescribeShareGroupOffsetsResponse, "groups"),
    OffsetFetchRequest: ("groups", "group_id", OffsetFetchResponse, "groups"),
}
"""Requests about several groups: the field that lists them, the field of an element that names its group,
the response, and the field that lists the answers."""

_LEAST_INT32 = -(1 << 31)
_NEVER = 1 << 63


@lru_cache(maxsize=1 << 14)
def partition_of(group_id: str, partitions: int) -> int:
    """The number of the partition that keeps a group, or a transactional id, out of this many."""
    code = java_hash(group_id)
    return (0 if code == _LEAST_INT32 else abs(code)) % partitions


_Merged: TypeAlias = Callable[[list[Any]], Message]
"""Makes one answer of the answers of shards."""


class _Merge:
    """The answer to a divided request. parts: the responses so far, by their place; missing: how many are."""

    __slots__ = ("merged", "missing", "parts", "ticket")

    def __init__(self, ticket: int, count: int, merged: _Merged) -> None:
        self.ticket = ticket
        self.missing = count
        self.parts: list[Any] = [None] * count
        self.merged = merged


class GroupCoordinator:
    """The partitions that one node leads; without any until `load`.

    >>> from coordwire.coordinator import Answer, GroupCoordinator, RequestContext
    >>> from coordwire.messages import ListGroupsRequest
    >>> coordinator = GroupCoordinator(partitions=2)
    >>> coordinator.load(0, [], now=0)
    >>> context = RequestContext(client_id="till-3", client_host="/192.0.2.7", new_id=lambda: "1")
    >>> ticket = coordinator.handle(ListGroupsRequest(), version=4, now=0, context=context)
    >>> [effect.response.groups for effect in coordinator.effects() if isinstance(effect, Answer)]
    [[]]
    >>> coordinator
    <GroupCoordinator: 1 of 2 partitions, 0 groups>
    """

    def __init__(
        self,
        *,
        partitions: int = 50,
        now: int = 0,
        config: CoordinatorConfig | None = None,
        assignors: Assignors | None = None,
        listener: Callable[[int], GroupListener] = lambda partition: NO_LISTENER,
        resolves_in_turns: bool = False,
    ) -> None:
        """partitions: of `__consumer_offsets`, which can't change. listener: makes that of a partition.

        now: the time, in milliseconds. config: timeouts and sizes. assignors: an embedder's own, in addition
        to Kafka's or in place of them, by kind and name. resolves_in_turns: whether the patterns of
        subscriptions are matched with the topics' names in turns of `work`, between which other requests can
        be handled; else within the call that needs it.
        """
        self.partitions = partitions
        self._outbox = Outbox()
        self._now = now
        self._config = config
        self._assignors = assignors
        self._listener = listener
        self._resolves_in_turns = resolves_in_turns
        self.topics = TopicsImage()
        self._group_configs: dict[str, list[GroupConfig]] = {}
        self._shards: dict[int, Shard] = {}
        self._absent = self._new_shard(0)
        self._lagging: dict[Shard, None] = {}
        self._working: dict[Shard, None] = {}
        self._due = _NEVER
        self._merges: dict[int, tuple[_Merge, int]] = {}

    def __repr__(self) -> str:
        active = sum(shard.status is not ShardStatus.ABSENT for shard in self._shards.values())
        groups = counted(len(self.groups), "group")
        return f"<GroupCoordinator: {active} of {counted(self.partitions, 'partition')}, {groups}>"

    # --- which shard ---

    def partition_of(self, group_id: str) -> int:
        """The number of the partition that a group is in."""
        return partition_of(group_id, self.partitions)

    def partitions_of(self, request: Message) -> Sequence[int]:
        """The partitions that a request is about, in the order in which it names them; of ListGroups, all."""
        if isinstance(request, ListGroupsRequest):
            return range(self.partitions)
        groups = _named_groups(request)
        return list(dict.fromkeys(self.partition_of(group_id) for group_id, _ in groups))

    def status(self, partition: int) -> ShardStatus:
        """Whether the coordinator has a partition."""
        shard = self._shards.get(partition)
        return ShardStatus.ABSENT if shard is None else shard.status

    @property
    def groups(self) -> dict[str, GroupModel]:
        """The groups of all partitions as they are now, durable or not: to look at, not to change."""
        return {name: group for shard in self._shards.values() for name, group in shard.groups.items()}

    def _new_shard(self, partition: int) -> Shard:
        shard = Shard(
            now=self._now,
            config=self._config,
            assignors=self._assignors,
            listener=self._listener(partition),
            resolves_in_turns=self._resolves_in_turns,
            partition=partition,
            outbox=self._outbox,
        )
        shard.set_topics(self.topics, now=self._now)
        return shard

    def _shard(self, partition: int) -> Shard:
        shard = self._shards.get(partition)
        if shard is None:
            if not 0 <= partition < self.partitions:
                raise ValueError(f"expected a partition from 0 to {self.partitions - 1}, got {partition}")
            shard = self._shards[partition] = self._new_shard(partition)
            for group_id, configs in self._group_configs.items():
                if self.partition_of(group_id) == partition:
                    for config in configs:
                        shard.set_group_config(group_id, config, now=self._now)
        return shard

    # --- partitions ---

    def begin_loading(self, partition: int) -> None:
        """Refuse requests to a partition as a coordinator that loads it; `load` ends that."""
        self._shard(partition).begin_loading()

    def load(
        self,
        partition: int,
        records: Iterable[LogRecord | LogEntry],
        *,
        end_offset: int | None = None,
        now: int,
    ) -> None:
        """Take a partition with all records of its log; members' sessions begin now.

        Records that are not entries get the offsets from 0 on, outside of transactions. end_offset: of the
        log, where its last records are compacted away. Raises `Malformed` with the offset of a record that
        contradicts earlier ones, or whose value has an unknown version; and what `records` raises.
        """
        shard = self._shard(partition)
        try:
            shard.load(records, end_offset=end_offset, now=self._clock(now))
        finally:
            self._look_at(shard)

    def unload(self, partition: int, *, now: int) -> None:
        """Give up a partition: parked requests and pending writes get NOT_COORDINATOR."""
        shard = self._shards.get(partition, self._absent)
        shard.unload(now=self._clock(now))
        self._look_at(shard)

    def appended(self, partition: int, number: int, *, now: int) -> None:
        """The append with this number is durable, and those before it. Raises `ValueError` for one that was
        never made."""
        shard = self._shard(partition)
        shard.appended(number, now=self._clock(now))
        self._look_at(shard)

    def failed(self, partition: int, number: int, error: int, *, now: int) -> None:
        """The append with this number failed, with a broker's error code; those after it are taken back too.
        Raises `ValueError` for one that was never made."""
        shard = self._shard(partition)
        shard.failed(number, error, now=self._clock(now))
        self._look_at(shard)

    def persisted(
        self,
        partition: int,
        number: int,
        response: Message | None,
        error_code: int = 0,
        *,
        latest_offsets: LatestOffsets | None = None,
        now: int,
    ) -> None:
        """Give the share coordinators' answer to the `StateRequest` with this number.

        response: None where there is none, with the error's code. latest_offsets: of the partitions of a
        summary, an error code and the offset after the last record of each.
        """
        shard = self._shard(partition)
        shard.persisted(number, response, error_code, latest_offsets=latest_offsets, now=self._clock(now))
        self._look_at(shard)

    # --- requests ---

    def handle(self, request: Message, *, version: int, now: int, context: RequestContext) -> int:
        """Take a request, and return the ticket that its `Answer` has.

        Raises `EncodeError` for a version that the request does not have, and `TypeError` for a request that
        no group coordinator takes (`REQUESTS` has those). now: the time, in milliseconds, for all partitions.
        """
        if now > self._now:  # as `_clock`, without its call
            self._now = now
        else:
            now = self._now
        kind = type(request)
        if kind in _SPLIT:
            parts, merged = self._divided(request)
        elif kind is ListGroupsRequest:
            shards = [shard for shard in self._shards.values() if shard.status is not ShardStatus.ABSENT]
            parts, merged = [(shard, request) for shard in shards], _all_listed
        else:
            shard = self._shards.get(self.partition_of(getattr(request, "group_id", "")), self._absent)
            ticket = shard.handle(request, version=version, now=now, context=context)
            if shard.may_be_due_before(self._due) or shard.is_behind or shard.has_work:
                self._look_at(shard)
            return ticket
        if version not in kind.versions:
            raise refused_version(kind, version)
        if not parts:
            return self.answer(merged([]))
        ticket = next(self._outbox.tickets)
        merge = _Merge(ticket, len(parts), merged)
        for place, (shard, part) in enumerate(parts):
            self._merges[shard.handle(part, version=version, now=now, context=context)] = merge, place
            self._look_at(shard)
        return ticket

    def answer(self, response: Message) -> int:
        """Answer a request that no shard needs to see; returns the ticket."""
        ticket = next(self._outbox.tickets)
        self._outbox.effects.append(Answer(ticket, response))
        return ticket

    def _divided(self, request: Any) -> tuple[list[tuple[Shard, Message]], _Merged]:
        """A request about several groups by their shards, and what makes one answer of theirs."""
        field, _, response_type, answers = _SPLIT[type(request)]
        places: dict[int, list[Any]] = {}
        for group_id, element in _named_groups(request):
            places.setdefault(self.partition_of(group_id), []).append(element)
        if len(places) == 1:
            shard = self._shards.get(next(iter(places)), self._absent)
            return [(shard, request)], lambda responses: responses[0]
        parts = []
        for partition, elements in places.items():
            part = copy(request)
            setattr(part, field, elements)
            parts.append((self._shards.get(partition, self._absent), part))

        def merged(responses: list[Any]) -> Message:
            merged = [element for response in responses for element in getattr(response, answers)]
            response: Message = response_type(**{answers: merged})
            return response

        return parts, merged

    def complete_transaction(
        self,
        partition: int,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        coordinator_epoch: int = 0,
        now: int,
    ) -> int:
        """Commit or abort a transaction's offsets in a partition; the ticket that the `TransactionCompleted`
        has."""
        shard = self._shards.get(partition, self._absent)
        ticket = shard.complete_transaction(
            producer_id, producer_epoch, committed=committed, coordinator_epoch=coordinator_epoch,
            now=self._clock(now),
        )  # fmt: skip
        self._look_at(shard)
        return ticket

    # --- effects ---

    def effects(self) -> Iterator[Effect]:
        """The effects of all partitions, each once, in order. After the last one nothing is due."""
        effects = self._outbox.effects
        while True:
            while effects:
                effect: Effect | None = effects.popleft()
                if self._merges and isinstance(effect, Answer):
                    effect = self._merge(effect)
                if effect is not None:
                    yield effect
            if self._lagging:
                shard = next(iter(self._lagging))
                del self._lagging[shard]
                shard.step()
                self._look_at(shard)
            elif self._due <= self._now:
                self._pass_time()
            else:
                return

    def _merge(self, answer: Answer) -> Answer | None:
        """The answer; one of a part only with the last of its parts, as a whole."""
        known = self._merges.pop(answer.ticket, None)
        if known is None:
            return answer
        merge, place = known
        merge.parts[place] = answer.response
        merge.missing -= 1
        return None if merge.missing else Answer(merge.ticket, merge.merged(merge.parts))

    def _look_at(self, shard: Shard) -> None:
        """Note what a shard has to do next."""
        deadline = shard.next_deadline()
        if deadline is not None and deadline < self._due:
            self._due = deadline
        if shard.is_behind:
            self._lagging[shard] = None
        if shard.has_work:
            self._working.setdefault(shard)
        else:
            self._working.pop(shard, None)

    # --- inputs ---

    def next_deadline(self) -> int | None:
        """When `advance` has something to do next, at the earliest: a session may have been renewed."""
        return None if self._due == _NEVER else self._due

    def advance(self, now: int) -> None:
        """Set the time, in milliseconds, and run the timers of all partitions that are due."""
        self._clock(now)
        self._pass_time()

    def _clock(self, now: int) -> int:
        """The time of all partitions from now on."""
        if now > self._now:
            self._now = now
        return self._now

    def _pass_time(self) -> None:
        """Set the time of all shards, and note when the next one has something to do."""
        self._due = _NEVER
        for shard in self._shards.values():
            shard.advance(self._now)
            self._look_at(shard)

    @property
    def has_work(self) -> bool:
        """Whether `work` has something to do."""
        return bool(self._working)

    def work(self, amount: int, *, now: int) -> None:
        """Do a turn of the work of the partition that has waited longest: patterns of subscriptions.

        amount: about so much, one for a character of a pattern or of a name, or for an instruction that a
        pattern tries.
        """
        now = self._clock(now)
        shard = next(iter(self._working), None)
        if shard is not None:
            del self._working[shard]
            shard.work(amount, now=now)
            self._look_at(shard)

    def set_topics(self, topics: TopicsImage, *, now: int) -> None:
        """Set the cluster's topics; the offsets of deleted ones are removed."""
        self.topics, now = topics, self._clock(now)
        for shard in (self._absent, *self._shards.values()):
            shard.set_topics(topics, now=now)
            self._look_at(shard)

    def set_group_config(self, group_id: str, config: GroupConfig | None, *, now: int) -> None:
        """Set the configuration of one group for when it is of this kind; None for those of all groups."""
        now = self._clock(now)
        configs = self._group_configs.pop(group_id, [])
        if config is not None:
            of_other_kinds = [known for known in configs if type(known) is not type(config)]
            self._group_configs[group_id] = [*of_other_kinds, config]
        shard = self._shards.get(self.partition_of(group_id))
        if shard is not None:
            shard.set_group_config(group_id, config, now=now)
            self._look_at(shard)


def _named_groups(request: Any) -> Iterator[tuple[str, Any]]:
    """The groups that a request names, each with the element that names it."""
    split = _SPLIT.get(type(request))
    elements: Sequence[Any] = () if split is None else getattr(request, split[0])
    if split is None or (not elements and isinstance(request, OffsetFetchRequest)):
        yield getattr(request, "group_id", ""), None  # of a version that names one group
        return
    for element in elements:
        yield (getattr(element, split[1]) if split[1] else element), element


def _all_listed(responses: list[Any]) -> ListGroupsResponse:
    """The groups of all partitions, unless one is loading."""
    for response in responses:
        if response.error_code:
            return ListGroupsResponse(error_code=response.error_code)
    return ListGroupsResponse(groups=[group for response in responses for group in response.groups])
