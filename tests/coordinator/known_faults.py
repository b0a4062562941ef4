"""What Kafka's own coordinator answers wrongly, as far as random histories show it and ours does not follow.

One fault: offsets that are being removed are left out of a fetch of all offsets, too early. The cause is in
`TimelineHashMap`: `Snapshot.handleRevert` keeps the snapshot's delta, so that what is removed, brought back
because the append failed, and removed again is entered in the delta twice; `BaseHashTable.baseAddOrReplace`
makes room before it looks whether the key is there, so that the delta's table grows beyond the map's own; and
`HistoricalIterator` computes the delta's slot with a shift that is negative then, and looks into its first
slot only. A fetch as of the last durable write misses what is in the others, although the removal is not
durable and may fail again.

Rules: a difference is this fault only if the request asks for all offsets without `require_stable`, each
offset that Kafka leaves out is durable here and removed by an append that is on its way, and everything else
is equal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from coordwire.messages import OffsetFetchRequest, OffsetFetchResponse
from tests.coordinator.histories import Outcome, Replayer
from tests.coordinator.settings import settings

__all__ = ["without_known_faults"]


def without_known_faults(seed: int, steps: Sequence[str], ours: Outcome, theirs: Outcome) -> Outcome:
    """Kafka's sorted outcome of the last of these steps, with our answer in place of one with the fault."""
    words = steps[-1].split(" ")
    if words[0] != "request" or int(words[2]) != OffsetFetchRequest.api_key:
        return theirs
    ticket, version = int(words[1]), int(words[3])
    if ours.answers.keys() != theirs.answers.keys() or ticket not in ours.answers:
        return theirs
    request = OffsetFetchRequest.decode(bytes.fromhex(words[6]), version=version)
    if request.require_stable:
        return theirs
    replayer = Replayer(settings(seed))
    for step in steps[:-1]:
        replayer.run(step)
    mine, kafkas = (
        OffsetFetchResponse.decode(one.answers[ticket], version=version) for one in (ours, theirs)
    )
    for asked, of_group, given in _groups(request, mine, kafkas):
        if asked is not None:
            _put_back(of_group.topics, given, replayer, asked)
    if kafkas.encode(version=version) != ours.answers[ticket]:
        return theirs
    return replace(theirs, answers=theirs.answers | {ticket: ours.answers[ticket]})


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
