"""A simulated run for people: what happened, line by line, then the figures.

Strategy: lines are made after the run from what was observed, and sorted by time. Rules: what is long is
bounded, and the number of lines that were left out is reported; a group of many members has its counts in
place of their names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from coordwire._quantities import duration
from coordwire.capture.printable import Pieces, shown
from coordwire.designs.simulator.runs import (
    OwnershipRebalance,
    OwnershipSpell,
    RunMeasures,
    RunNote,
    SimulatedRun,
)
from coordwire.timeline.events import TopicPartition
from coordwire.timeline.story.wording import count, ranges

MOST_MEMBERS = 12
"""So many members have a line each."""

MOST_LINES = 200
LONG_MS = 1_000
"""A partition without an owner has a line from here on; rebalances have shorter gaps as a rule."""

MOST_GAPS = 24
"""Lines of that kind, the longest times."""

MOST_WIDTH = 44
"""Characters of a list of partitions; a longer one is a number."""

SOON_MS = 10_000
"""Within this time equal notes become one line."""

_Line = tuple[int, Pieces]

_NOTES = {
    "Elected": ("· ", "{node} is the coordinator", "note"),
    "Resigned": ("· ", "{node} is no longer the coordinator", "odd"),
    "SessionExpired": ("- ", "ZooKeeper ends the session of {text}", "odd"),
    "ConsumerFailed": ("- ", "{node} counts {subject} as dead", "odd"),
    "ConsumerClosed": ("- ", "{node} has lost the connection of {subject}", "odd"),
    "MemberLeft": ("- ", "{node} counts {text}", "odd"),
    "RebalanceAttemptFailed": ("✗ ", "{node}: a rebalance failed, {text}", "error"),
    "ConsumerRebalanceFailedException": ("✗ ", "{node} gives up a rebalance: {text}", "error"),
    "Silence": ("· ", "{node} gets nothing for its session timeout ({text})", "odd"),
    "BrokerUnreachable": ("✗ ", "{node} cannot connect to {text}", "error"),
    "NoBrokerAvailable": ("✗ ", "{node} reaches none of the brokers {text}", "error"),
    "AllKnownBrokersNotAvailable": ("✗ ", "{node} reaches none of the brokers {text}", "error"),
    "RegistrationRefused": ("✗ ", "{node}: a registration was refused, {text}", "error"),
    "NodeExists": ("✗ ", "{node}: the node of {text} is there already", "error"),
}
"""How notes are shown; others with their name and their text."""


def lines(
    simulated: SimulatedRun, members: int, partitions: int, seed: int,
    messages: Iterable[tuple[int, Pieces]] = (),
) -> Iterator[Pieces]:  # fmt: skip
    """The story, and the figures after it. messages: lines of these, with their times."""
    design, measures = simulated.run.design, simulated.measures
    title = f"── {design} "
    sizes = run_sizes(members, partitions, f"seed {seed}", measures.duration_ms)
    yield [(title, "api"), (sizes, "note"), ("─" * max(80 - len(title) - len(sizes), 2), "rule")]
    story = sorted(_story(simulated), key=lambda line: line[0])
    width = max((len(_clock(time)) for time, _ in story), default=0)
    for time, pieces in sorted([*story[:MOST_LINES], *messages], key=lambda line: line[0]):
        yield [(f"   {_clock(time):>{width}}  ", "note"), *pieces]
    if len(story) > MOST_LINES:
        yield [(f"   … and {len(story) - MOST_LINES:,} more lines", "odd")]
    yield []
    rows = list(figures(measures, shares=simulated.run.shares))
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        yield [(f"   {name:<{width}}  ", "name"), (text, "plain")]


def run_sizes(members: int, partitions: int, seeds: str, duration_ms: int) -> str:
    """The sizes of a run, for a title."""
    sizes = f"{count(members, 'consumer')}, {count(partitions, 'partition')}, {seeds}, "
    return f"{sizes}{_length(duration_ms)} "


def _clock(time: int) -> str:
    return f"{time / 1000:,.3f} s"


def _length(time: int) -> str:
    return duration(time / 1000) if time else "0 ms"


# --- the story ---


def _story(simulated: SimulatedRun) -> Iterator[_Line]:
    world = simulated.run.world
    yield from _starts(simulated)
    for time, fault in world.faults:
        text = str(fault).partition(" ")[2]
        yield time, [("! ", "error"), (shown(text), "odd")]
    yield from _note_lines(simulated.run.notes())
    for number, rebalance in enumerate(simulated.measures.rebalances, 1):
        yield rebalance.began, [("⟳ ", "slow"), (f"rebalance {number} begins", "slow")]
        yield from _ended(number, rebalance)
    yield from _spells(simulated)


def _starts(simulated: SimulatedRun) -> Iterator[_Line]:
    starts = sorted(
        (time, name, boots)
        for name, node in simulated.run.world.nodes.items() if name.startswith("consumer-")
        for boots, time in enumerate(node.started_at, 1)
    )  # fmt: skip
    first = [start for start in starts if start[2] == 1]
    if len(first) > MOST_MEMBERS:
        yield first[0][0], [("+ ", "text"), (f"{len(first):,} consumers start", "plain"),
                            (f"  the last at {_clock(first[-1][0])}", "note")]  # fmt: skip
        first = []
    for time, name, boots in [*first, *(start for start in starts if start[2] > 1)]:
        yield time, [("+ ", "text"), (f"{name} {'starts' if boots == 1 else 'starts again'}", "plain")]


def _note_lines(notes: Iterable[RunNote]) -> Iterator[_Line]:
    """Notes; what a process repeats within seconds is one line, as is what many report at one time."""
    rows: list[list[RunNote]] = []
    last: dict[RunNote, list[RunNote]] = {}
    for note in notes:
        timeless = note._replace(time=0)
        row = last.get(timeless)
        if row is None or note.time - row[-1].time > SOON_MS:
            row = last[timeless] = []
            rows.append(row)
        row.append(note)
    together: dict[tuple[int, str], list[list[RunNote]]] = {}
    for row in rows:
        together.setdefault((row[0].time, row[0].name), []).append(row)
    for (time, _), alike in together.items():
        if len(alike) > MOST_MEMBERS:
            first = alike[0][0]
            yield time, [("· ", "note"), (f"{len(alike):,} times at once: ", "odd"), *_of_note(first)]
            continue
        for row in alike:
            suffix = f"  × {len(row):,} until {_clock(row[-1].time)}" if len(row) > 1 else ""
            yield time, [*_of_note(row[0]), (suffix, "note")]


def _of_note(note: RunNote) -> Pieces:
    sign, words, style = _NOTES.get(note.name, ("· ", f"{{node}}: {note.name} {{text}}", "odd"))
    subject = note.subject or note.text
    text = words.format(node=note.node, text=shown(note.text), subject=shown(subject))
    return [(sign, style), (text, style)]


def _ended(number: int, rebalance: OwnershipRebalance) -> Iterator[_Line]:
    if rebalance.ended is None or rebalance.whole_ms is None:
        return
    moved = count(rebalance.moved, "partition")
    took = _length(rebalance.whole_ms)
    yield rebalance.ended, [
        ("✓ ", "response"), (f"rebalance {number} has ended after {took}", "response"),
        (f"  {moved} moved, {count(len(rebalance.owners), 'owner')}", "note"),
    ]  # fmt: skip
    if len(rebalance.owners) <= MOST_MEMBERS and rebalance.moved:
        width = max(map(len, rebalance.owners), default=0)
        for name in sorted(rebalance.owners, key=lambda name: int(name.rpartition("-")[2])):
            yield rebalance.ended, [
                ("  ", "plain"), (name.ljust(width), "flow"),
                (f"  {_in_short(rebalance.owners[name])}", "plain"),
            ]  # fmt: skip


def _spells(simulated: SimulatedRun) -> Iterator[_Line]:
    """Partitions with two owners, and those without one for long, those with the same times together."""
    together: dict[tuple[int, int, tuple[str, ...]], list[OwnershipSpell]] = {}
    shares = simulated.run.shares
    for spell in simulated.observer.spells:
        if (spell.owners and not shares) or (spell.ended - spell.began >= LONG_MS and not spell.owners):
            together.setdefault((spell.began, spell.ended, spell.owners), []).append(spell)
    longest = sorted(together, key=lambda key: (key[0] - key[1], key))
    listed_spells = longest[:MOST_GAPS]
    for began, ended, owners in listed_spells:
        spells = together[began, ended, owners]
        partitions = _in_short(spell.partition for spell in spells)
        lasts = _length(ended - began)
        if owners:
            names = " and ".join(owners)
            yield began, [("✗ ", "error"), (f"{partitions}: read by {names} for {lasts}", "error")]
        else:
            yield began, [("· ", "odd"), (f"{partitions}: read by no consumer for {lasts}", "odd")]
    if len(listed_spells) < len(together):
        unlisted = len(together) - len(listed_spells)
        yield (
            simulated.measures.duration_ms,
            [(f"… and {unlisted:,} more, shorter times with two owners or none", "odd")],
        )


def _in_short(partitions: Iterable[object]) -> str:
    known = [
        TopicPartition(str(partition[1]), int(partition[2]))
        for partition in partitions
        if isinstance(partition, tuple)
    ]
    text = ranges(known)
    return text if len(text) <= MOST_WIDTH else f"{len(known):,} partitions"


# --- the figures ---


def figures(measures: RunMeasures, *, shares: bool) -> Iterator[tuple[str, str]]:
    """The measures as names and texts. shares: as `DesignRun.shares`."""
    yield "shared" if shares else "two owners", f"{measures.duplicated_ms / 1000:,.3f} partition-seconds"
    if measures.assigned_at is None:
        yield "no owner", "not every partition has had an owner"
    else:
        yield "no owner, after the first assignment", f"{measures.orphaned_ms / 1000:,.3f} partition-seconds"
    lengths = measures.wholes_ms
    unfinished = sum(rebalance.ended is None for rebalance in measures.rebalances)
    text = f"{len(measures.rebalances)}"
    if lengths:
        text += f"; after the first assignment {len(lengths)}, {_between(lengths)}"
    if unfinished:
        text += "; the last had not ended"
    yield "rebalances", text
    yield from _deaths(measures)
    if (known := measures.deliveries) is not None:
        yield "records", f"{known.stored:,}; {known.twice:,} delivered twice, {known.never:,} never"
    messages, cost = f"{measures.messages:,}", measures.messages_per_change
    if measures.quiet_messages is not None:
        messages += f"; {measures.quiet_messages:,g} in a quiet session timeout"
    yield "messages", messages
    changes = f"({count(measures.changes, 'change')})"
    if cost is None:
        yield "a membership change costs", f"unknown: the group was not quiet for long enough {changes}"
        return
    text = f"{cost:,.1f} messages"
    if measures.watches:
        text += f", {measures.watches_per_change:,.1f} watches"
    yield "a membership change costs", f"{text} {changes}"


def _deaths(measures: RunMeasures) -> Iterator[tuple[str, str]]:
    deaths = measures.deaths
    if deaths:
        yield "deaths of consumers with partitions", str(len(deaths))
        times = [death.silent for death in deaths]
        yield "  silent until it was detected", _times([death.detected for death in deaths], times)
        yield "  until all had an owner again", _times([death.taken_over for death in deaths], times)
    elections = measures.coordinator_deaths
    if elections:
        yield "deaths of coordinators", str(len(elections))
        yield (
            "  until one was elected",
            _times([death.replaced for death in elections], [death.time for death in elections]),
        )


def _times(ends: list[int | None], begins: list[int]) -> str:
    lengths = [end - begin for begin, end in zip(begins, ends, strict=True) if end is not None]
    never = len(ends) - len(lengths)
    parts = [_between(lengths)] if lengths else []
    if never:
        parts.append(f"{never} not, or not before it was back")
    return "; ".join(parts)


def _between(lengths: list[int]) -> str:
    least, most, mean = (
        _length(value) for value in (min(lengths), max(lengths), sum(lengths) // len(lengths))
    )
    return least if min(lengths) == max(lengths) else f"{least} to {most}, {mean} on average"
