"""What Kafka's own coordinator answers wrongly, as far as random histories show it and ours does not follow.

One fault, with two effects: offsets that are being removed are left out of a fetch of all offsets, too early,
and groups are left out of a list, or listed twice. The cause is in `TimelineHashMap`: `Snapshot.handleRevert`
keeps the snapshot's delta, so that what is removed, brought back because the append failed, and removed again
is entered in the delta twice; `BaseHashTable.baseAddOrReplace` makes room before it looks whether the key is
there, so that the delta's table grows beyond the map's; and `HistoricalIterator` computes the delta's slot
with a shift that is negative then, and looks into its first slot only. What is read as of the last durable
write lacks what is in the others, although the removal is not durable and may fail again; and may have what
the delta has too twice. Shown on these classes alone: of the groups g and h, remove both, revert, remove h,
and the entries as of the snapshot are g, or h and twice g, by the map's initial capacity.

Rules: a difference is this fault only if the request asks for all offsets without `require_stable`, each
offset that Kafka leaves out is durable here and removed by an append that is on its way, and everything else
is equal; or if it asks for groups, the removal of one that is durable here is on its way, and all that Kafka
lists are ours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from coordwire.messages import ListGroupsRequest, ListGroupsResponse, OffsetFetchRequest, OffsetFetchResponse
from tests.coordinator.histories import Outcome, Replayer
from tests.coordinator.settings import settings

__all__ = ["without_known_faults"]


def without_known_faults(seed: int, steps: Sequence[str], ours: Outcome, theirs: Outcome) -> Outcome:
    """Kafka's sorted outcome of the last of these steps, with our answer in place of one with the fault."""
    words = steps[-1].split(" ")
    if words[0] != "request":
        return theirs
    ticket, key, version = int(words[1]), int(words[2]), int(words[3])
    if ours.answers.keys() != theirs.answers.keys() or ticket not in ours.answers:
        return theirs
    if key == ListGroupsRequest.api_key:
        mine, kafkas = (
            ListGroupsResponse.decode(one.answers[ticket], version=version) for one in (ours, theirs)
        )
        excused = _is_faulty_list(mine, kafkas, _replayed(seed, steps[:-1]))
    elif key == OffsetFetchRequest.api_key:
        request = OffsetFetchRequest.decode(bytes.fromhex(words[6]), version=version)
        excused = _is_faulty_fetch(
            request, version, ours.answers[ticket], theirs.answers[ticket], seed, steps
        )
    else:
        return theirs
    return replace(theirs, answers=theirs.answers | {ticket: ours.answers[ticket]}) if excused else theirs


def _replayed(seed: int, steps: Sequence[str]) -> Replayer:
    replayer = Replayer(settings(seed))
    for step in steps:
        replayer.run(step)
    return replayer


def _is_faulty_list(mine: Any, kafkas: Any, replayer: Replayer) -> bool:
    groups = replayer.shard._state.groups
    newest = {group_id for group_id, _ in groups.items()}
    being_removed = any(group_id not in newest for group_id, _ in groups.committed_items())
    alike = replace(kafkas, groups=mine.groups) == mine
    return alike and being_removed and all(group in mine.groups for group in kafkas.groups)


def _is_faulty_fetch(
    request: Any, version: int, ours: bytes, theirs: bytes, seed: int, steps: Sequence[str]
) -> bool:
    if request.require_stable:
        return False
    replayer = _replayed(seed, steps[:-1])
    mine, kafkas = (OffsetFetchResponse.decode(one, version=version) for one in (ours, theirs))
    for asked, of_group, given in _groups(request, mine, kafkas):
        if asked is not None:
            _put_back(of_group.topics, given, replayer, asked)
    return kafkas.encode(version=version) == ours


def _groups(request: Any, mine: Any, kafkas: Any) -> Iterator[tuple[str | None, Any, Any]]:
    """Of each group: its id, if all of its offsets are asked for, our answer, and Kafka's."""
    if not request.groups:
        yield (request.group_id if request.topics is None else None), mine, kafkas
        return
    for asked, of_group, given in zip(request.groups, mine.groups, kafkas.groups, strict=True):
        yield (asked.group_id if asked.topics is None else None), of_group, given


def _put_back(topics: list[Any], given: Any, replayer: Replayer, group_id: str) -> None:
    """Give Kafka's answer what it lacks of ours, as far as that is being removed."""
    store = replayer.shard._state.offsets.groups
    newest, durable = store.get(group_id), store.committed(group_id)
    left = set() if newest is None else {key for key, _ in newest.items()}
    known = set() if durable is None else {key for key, _ in durable.committed_items()}
    removed = known - left
    by_name = {topic.name: topic for topic in given.topics}
    found = []
    for topic in topics:
        theirs = by_name.pop(topic.name, None)
        listed = {} if theirs is None else {one.partition_index: one for one in theirs.partitions}
        partitions = [
            listed.get(one.partition_index, one)
            for one in topic.partitions
            if one.partition_index in listed or (topic.name, one.partition_index) in removed
        ]
        if partitions:
            found.append(replace(topic, partitions=partitions))
    given.topics = [*found, *by_name.values()]
