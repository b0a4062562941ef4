"""A rehearsal for people, within 80 columns: the verdict, a table by release, what was refused, what to do;
and for programs, with times in milliseconds.

Rules: figures are of complete rolls, from the least to the greatest; idle time is the sum over partitions. A
refusal has one order that shows it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from coordwire.capture.printable import Pieces, shown
from coordwire.designs.rehearsal import Rehearsal, ReleaseRehearsal, Roll
from coordwire.timeline.story.wording import count

_WIDTH = 80
_MOST_NAMED = 5
_HEADS = {"change": "change first", "fault": "faults of Apache Kafka", "know": "know"}


def lines(rehearsal: Rehearsal) -> Iterator[Pieces]:
    """The lines of a rehearsal."""
    group = rehearsal.group
    title = f"── {shown(group.group_id)} "
    sizes = [
        count(len(group.members), "member"), count(sum(group.partitions.values()), "partition"),
        shown(group.value.protocol or "no protocol"), f"generation {group.value.generation}",
    ]  # fmt: skip
    facts = ", ".join(sizes) + " "
    yield [(title, "api"), (facts, "note"), ("─" * max(_WIDTH - len(title) - len(facts), 2), "rule")]
    for rehearsed in rehearsal.releases:
        yield from _verdict(rehearsed, rehearsal.possible)
    yield []
    yield from _table(rehearsal.releases)
    yield from _refusals(rehearsal.releases)
    yield from _unsettled(rehearsal.releases)
    yield from _twice(rehearsal.releases)
    yield from _way_back(rehearsal.releases)
    yield from _best(rehearsal.releases)
    for kind, head in _HEADS.items():
        texts = [
            f"{advice.text} ({advice.ticket})" if advice.ticket else advice.text
            for advice in rehearsal.advice if advice.kind == kind
        ]  # fmt: skip
        if texts:
            yield []
            yield [(head, "name")]
        for text in texts:
            yield from _item(text)


def _item(text: str, mark: str = "-", style: str = "plain") -> Iterator[Pieces]:
    wrapped = textwrap.wrap(shown(text), _WIDTH - 4, break_on_hyphens=False) or [""]
    for number, line in enumerate(wrapped):
        yield [(f"{'  ' if number else mark + ' '}", style), (line, "plain")]


# --- the verdict ---


def _verdict(rehearsed: ReleaseRehearsal, possible: int) -> Iterator[Pieces]:
    number = len(rehearsed.upgrades)
    orders = count(number, "order of restarts") if number == 1 else f"{number:,} orders of restarts"
    orders += f" of {possible:,}" if possible > number and possible < 10**9 else ""
    if rehearsed.complete == number:
        mark, style, text = "✓ ", "response", f"the upgrade goes through, in {orders}"
    elif rehearsed.complete:
        mark, style, text = "! ", "odd", f"the upgrade goes through in {rehearsed.complete:,} of {orders}"
    else:
        mark, style, text = "✗ ", "error", f"the upgrade does not go through, in {orders}"
    yield [(mark, style), (f"{rehearsed.release}  {text}", "plain")]


# --- the table ---


_COLUMNS = {"rebalances": 12, "idle": 24, "longest idle": 20, "moved": 10}
"""The table's columns, with their widths."""


def _table(releases: Sequence[ReleaseRehearsal]) -> Iterator[Pieces]:
    yield [(f"{'':14}" + "".join(f"{name:>{width}}" for name, width in _COLUMNS.items()), "note")]
    for rehearsed in releases:
        yield _row(rehearsed.release, "upgrade", rehearsed.upgrades)
        yield _row("", "plain", rehearsed.plain)


def _row(release: str, kind: str, rolls: Iterable[Roll]) -> Pieces:
    complete = [roll for roll in rolls if roll.is_complete]
    cells = [
        _range([roll.rebalances for roll in complete], str),
        _range([roll.idle_ms for roll in complete], _time),
        _range([roll.longest_ms for roll in complete], _time),
        _range([sum(restart.moved for restart in roll.restarts) for roll in complete], str),
    ]
    text = f"{kind:8}" + "".join(
        f"{cell:>{width}}" for cell, width in zip(cells, _COLUMNS.values(), strict=True)
    )
    return [(f"{release:6}", "name"), (text, "plain")]


def _range(values: Sequence[int], text: type[str] | object) -> str:
    if not values:
        return "-"
    least, most = (_time(value) if text is _time else str(value) for value in (min(values), max(values)))
    return least if least == most else f"{least} - {most}"


def _time(milliseconds: int) -> str:
    return f"{milliseconds / 1000:,.1f} s"


# --- what else ---


def _order(names: Sequence[str]) -> str:
    further = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {further:,} more" if further > 0 else "")


def _refusals(releases: Sequence[ReleaseRehearsal]) -> Iterator[Pieces]:
    """Each refusal once, with the releases and how many orders it comes in."""
    places: dict[tuple[str, str], list[str]] = {}
    example: dict[tuple[str, str], str] = {}
    for rehearsed in releases:
        for key, refusals in rehearsed.refusals.items():
            places.setdefault(key, []).append(
                f"{rehearsed.release} in {len(refusals):,} of {len(rehearsed.upgrades):,} orders"
            )
            roll, refusal = refusals[0]
            example.setdefault(key, f"{refusal.member}, restarted as number {len(roll.restarts)}")
    if places:
        yield []
        yield [("refused", "name")]
    for (error, text), listing in places.items():
        yield from _item(f"{error}: {', '.join(listing)}; first {example[error, text]}.", "✗", "error")
        if text:
            yield from _item(text, " ")


def _unsettled(releases: Sequence[ReleaseRehearsal]) -> Iterator[Pieces]:
    for rehearsed in releases:
        rolls = [roll for roll in rehearsed.upgrades if not roll.settles and not roll.refusals]
        if rolls:
            restart = next(restart for restart in rolls[0].restarts if restart.settled_ms is None)
            share = f"{len(rolls):,} of {len(rehearsed.upgrades):,} orders"
            text = f"{rehearsed.release}: the group does not settle in {share}; "
            text += f"first after {restart.member}, in the order {_order(rolls[0].order)}."
            yield []
            yield from _item(text, "✗", "error")


def _twice(releases: Sequence[ReleaseRehearsal]) -> Iterator[Pieces]:
    for rehearsed in releases:
        rolls = [roll for roll in rehearsed.upgrades if roll.twice_ms]
        if rolls:
            most = max(rolls, key=lambda roll: roll.twice_ms)
            text = f"{rehearsed.release}: partitions have two readers in {len(rolls):,} of "
            text += f"{len(rehearsed.upgrades):,} orders, for {_time(most.twice_ms)} in sum in the order "
            yield []
            yield from _item(f"{text}{_order(most.order)}.", "✗", "error")


def _way_back(releases: Sequence[ReleaseRehearsal]) -> Iterator[Pieces]:
    """What becomes of the group when the first member goes back, and when all do."""
    texts: dict[str, list[str]] = {}
    for rehearsed in releases:
        for members, rolls in (("the first member", rehearsed.setbacks), ("all members", rehearsed.back)):
            if rolls:
                texts.setdefault(f"{members} back: {_return(rolls)}", []).append(rehearsed.release)
    if texts:
        yield []
        yield [("the way back", "name")]
    for text, names in texts.items():
        yield from _item(f"{', '.join(names)}: {text}.")


def _return(rolls: Sequence[Roll]) -> str:
    refusals = [refusal for roll in rolls for refusal in roll.refusals]
    if refusals:
        return f"refused with {refusals[0].error} ({refusals[0].member})"
    falls = sum(roll.restarts[-1].kind == "classic" for roll in rolls)
    if falls == len(rolls):
        return "the group falls back to classic"
    if falls:
        return f"the group falls back to classic in {falls:,} of {len(rolls):,} orders"
    return "the group stays a consumer group, with classic members"


def _best(releases: Sequence[ReleaseRehearsal]) -> Iterator[Pieces]:
    """The best order of the newest release, where orders differ."""
    best = releases[-1].best
    if best is None or len({roll.idle_ms for roll in releases[-1].upgrades}) == 1:
        return
    yield []
    yield [("least idle", "name")]
    yield from _item(f"{_order(best.order)} ({_time(best.idle_ms)}, {count(best.rebalances, 'rebalance')})")


def form(rehearsal: Rehearsal) -> dict[str, Any]:
    """The JSON object of a rehearsal."""
    group = rehearsal.group
    return {
        "group": group.group_id,
        "protocol_type": group.value.protocol_type,
        "protocol": group.value.protocol,
        "generation": group.value.generation,
        "since": group.since or None,
        "partitions": dict(group.partitions),
        "members": [
            {
                "name": member.name,
                "member_id": member.record.member_id,
                "instance_id": member.record.group_instance_id,
                "client_id": member.record.client_id,
                "session_timeout_ms": member.record.session_timeout,
                "rebalance_timeout_ms": member.record.rebalance_timeout,
                "topics": list(member.topics),
                "owned": [list(partition) for partition in member.owned],
                "problem": member.problem or None,
            }
            for member in group.members
        ],
        "orders": rehearsal.possible,
        "succeeds": rehearsal.succeeds,
        "releases": [
            {
                "release": release.release,
                "complete": release.complete,
                "best": None if release.best is None else list(release.best.order),
                "upgrades": _rolls(release.upgrades),
                "plain": _rolls(release.plain),
                "setbacks": _rolls(release.setbacks),
                "back": _rolls(release.back),
            }
            for release in rehearsal.releases
        ],
        "advice": [asdict(advice) | {"ticket": advice.ticket or None} for advice in rehearsal.advice],
    }


def _rolls(rolls: Iterable[Roll]) -> list[dict[str, Any]]:
    return [
        {
            "order": list(roll.order),
            "complete": roll.is_complete,
            "rebalances": roll.rebalances,
            "idle_ms": roll.idle_ms,
            "longest_ms": roll.longest_ms,
            "twice_ms": roll.twice_ms,
            "fallbacks": roll.fallbacks,
            "restarts": [asdict(restart) for restart in roll.restarts],
        }
        for roll in rolls
    ]
