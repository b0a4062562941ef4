"""Partitions without a consumer: as told, and as the clients had them.

Strategy: each client says when it has which partitions, and its death is known. What is told to be idle must
not be what a living client had meanwhile, but for the time between two of its requests; a partition whose
owner died, and that another took up after seconds, must be told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from coordwire.timeline.events import GroupEvent, Idle, MemberJoined, MemberLeft, RebalanceEnded
from tests.coordinator.stories.causes import Difference
from tests.coordinator.stories.events import MS
from tests.timeline.histories.script import END, History

__all__ = ["gap_differences"]

SLACK_MS = 1_500
"""A callback takes so long at most, and is not seen; as long may a heartbeat be away."""

NEAR_MS = 20
"""A client sends its request within so long after it gave up its partitions for it."""

LONG_MS = 3_000
"""Gaps that are looked for."""


class _Had(NamedTuple):
    """One client had a partition, in milliseconds; dies: whether it died then."""

    client: str
    since: int
    until: int
    dies: bool


def gap_differences(history: History, told: Sequence[GroupEvent]) -> Iterator[Difference]:
    had = _had(history)
    gaps: dict[tuple[str, int], list[Idle]] = defaultdict(list)
    for event in told:
        if isinstance(event, RebalanceEnded):
            for gap in event.idle:
                gaps[gap.topic, gap.partition].append(gap)
    for partition, idle in gaps.items():
        for gap in idle:
            yield from _overlaps(history, partition, gap, had[partition])
    joint = {partition: _joint(idle) for partition, idle in gaps.items()}
    for partition, spans in had.items():
        for since, until, client in _deaths(spans):
            if until - since < LONG_MS or until > END - LONG_MS or _is_cut(history, partition, since, until):
                continue
            if history.world.deaths[client].how == "open" and not _is_out(history, client):
                continue  # a machine that is gone is silent, as others may be, until its session is over
            early = min([until, *(one for _, one, two in history.frozen if one < until <= two + SLACK_MS)])
            late = since  # a machine that was gone while the coordinator stalled was still answered
            if history.world.deaths[client].how == "open":
                stalls = history.world.stalls
                late = max([since, *(one.until for one in stalls if one.since <= since < one.until)])
            if not any(
                gap.since_ns <= (late + SLACK_MS) * MS
                and early - SLACK_MS <= gap.until_ns / MS <= until + SLACK_MS
                for gap in (*gaps[partition], *joint.get(partition, ()))
            ):
                name = f"{partition[0]}-{partition[1]}"
                near = [f"{_at(gap.since_ns // MS)}-{_at(gap.until_ns // MS)}" for gap in gaps[partition]]
                text = f"{name} of {client} from {_at(since)} to {_at(until)}; told {near}"
                yield Difference("gap", text)


def _joint(idle: Sequence[Idle]) -> list[Idle]:
    """Gaps between which a client had a partition for less than a callback may take are one."""
    joint: list[Idle] = []
    for gap in sorted(idle, key=lambda gap: gap.since_ns):
        if joint and gap.since_ns - joint[-1].until_ns <= SLACK_MS * MS:
            joint[-1] = joint[-1]._replace(until_ns=max(gap.until_ns, joint[-1].until_ns))
        else:
            joint.append(gap)
    return joint


def _had(history: History) -> dict[tuple[str, int], list[_Had]]:
    """Which member had each partition when, until its coordinator took it out: what a client believes to have
    that does not know of it yet is without a consumer, as the group goes."""
    spans: dict[tuple[str, int], list[_Had]] = defaultdict(list)
    open_spans: dict[tuple[str, tuple[str, int]], tuple[int, str]] = {}
    world = history.world
    out: dict[str, list[int]] = defaultdict(list)
    moved: dict[str, list[tuple[int, bool]]] = defaultdict(list)  # when each came and went
    for event in world.events:
        if isinstance(event, MemberJoined | MemberLeft):
            is_out = isinstance(event, MemberLeft)
            moved[event.member_id].append(((event.time_ns or 0) // MS, is_out))
            if is_out:
                out[event.member_id].append((event.time_ns or 0) // MS)

    def close(client: str, partition: tuple[str, int], until: int, *, dies: bool) -> None:
        since, member_id = open_spans.pop((client, partition))
        before = [is_out for time, is_out in moved[member_id] if time <= since]
        if before and before[-1]:
            return
        outs = [time for time in out[member_id] if since <= time < until]
        spans[partition].append(_Had(client, since, min([until, *outs]), dies and not outs))

    for time, client, member_id, partitions in world.owned:
        death = world.deaths.get(client)
        for name, partition in [key for key in open_spans if key[0] == client and key[1] not in partitions]:
            close(name, partition, time, dies=death is not None and death.time == time)
        for partition in partitions:
            open_spans.setdefault((client, partition), (time, member_id))
    for client, partition in list(open_spans):
        close(client, partition, END, dies=False)
    for rows in spans.values():
        rows.sort(key=lambda row: row.since)
    return spans


def _overlaps(
    history: History, partition: tuple[str, int], gap: Idle, spans: Sequence[_Had]
) -> Iterator[Difference]:
    for span in spans:
        since, until = max(span.since, gap.since_ns // MS), min(span.until, gap.until_ns // MS)
        frozen = [
            (max(one, since), min(two, until)) for name, one, two in history.frozen if name == span.client
        ]
        frozen = [(one, two) for one, two in frozen if one < two]
        both = until - since - sum(two - one for one, two in frozen)
        if both <= SLACK_MS:
            continue
        ends = [one for one, _ in frozen]
        ends += [span.until] if not span.dies or _is_unseen(history, span) else []
        if any(_last_request(history, span.client, end + NEAR_MS) <= since + SLACK_MS for end in ends):
            continue  # its last request is the last sign of it
        name = f"{partition[0]}-{partition[1]}"
        told = f"{_at(gap.since_ns // MS)} to {_at(gap.until_ns // MS)}"
        text = f"{name} told from {told}; {span.client} had it {_at(span.since)} to {_at(span.until)}"
        yield Difference("gap falsely", text)


def _is_unseen(history: History, span: _Had) -> bool:
    """Whether no FIN shows a death: the machine was gone, or the broker had ended the connection before."""
    sent = _last_request(history, span.client, span.until)
    return history.world.deaths[span.client].how == "open" or any(
        sent <= kill.since <= span.until for kill in history.world.kills
    )


def _is_out(history: History, client: str) -> bool:
    """Whether the coordinator took out what a client was, while a capture may show it."""
    names = {
        member_id for _, name, member_id, partitions in history.world.owned if name == client if partitions
    }
    last_ns = history.world.entries[-1].time_ns or 0
    left = (event for event in history.world.events if isinstance(event, MemberLeft))
    return any(event.member_id in names and (event.time_ns or 0) < last_ns for event in left)


def _last_request(history: History, client: str, until: int) -> int:
    """When a client last sent a request about its group, in milliseconds."""
    return max((time for time in history.requests.get(client, ()) if time <= until), default=0)


def _deaths(spans: Sequence[_Had]) -> Iterator[tuple[int, int, str]]:
    """From when until when nobody had a partition after its owner's death, and whose it was."""
    for span in spans:
        if not span.dies:
            continue
        if any(one.since <= span.until < one.until for one in spans if one is not span):
            continue  # another has it, too
        later = [one.since for one in spans if one.since > span.until]
        if later:
            yield span.until, min(later), span.client


def _is_cut(history: History, partition: tuple[str, int], since: int, until: int) -> bool:
    """Whether the topic or the group was another one before the gap ended."""
    anew = [time for time, name, _ in history.world.lives if name == partition[0]]
    return any(since <= time <= until for time in (*anew, *(time for time, _ in history.deleted)))


def _at(time: int) -> str:
    return f"{time / 1_000 % 10_000:.3f}"
