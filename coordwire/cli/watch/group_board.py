"""What is known of each group now: for the screen, and as Prometheus reads it.

Strategy: `GroupStory` sums a group's events up; here is what they have not: the last cause, and the lag as
the ends of partitions move. Rules: a scrape gets the text of the last round, whole; label values are escaped
as the text format demands; partitions of a group are bounded.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from coordwire.timeline.events import GroupEvent, OffsetCommitted, RebalanceBegan, TopicPartition
from coordwire.timeline.totals import GroupStory

__all__ = ["GroupBoard"]

MOST_PARTITIONS = 100_000
_METRICS = {
    "coordwire_group_members": ("gauge", "Members in the group."),
    "coordwire_group_rebalances_total": ("counter", "Rebalances in the log, by cause as far as it shows."),
    "coordwire_group_rebalance_seconds_total": ("counter", "Time of rebalances whose length is known."),
    "coordwire_group_without_consumers_seconds_total": ("counter", "Time with a partition without consumer."),
    "coordwire_group_commits_total": ("counter", "Offsets committed."),
    "coordwire_group_lag": ("gauge", "Records after the committed offset."),
}


@dataclass(slots=True)
class _Row:
    story: GroupStory
    cause: str = ""
    committed: dict[TopicPartition, int] = field(default_factory=dict)
    lag: dict[TopicPartition, int] = field(default_factory=dict)


class GroupBoard:
    """The groups, by their ids."""

    def __init__(self) -> None:
        self._rows: dict[str, _Row] = {}

    def add(self, event: GroupEvent) -> None:
        """Take an event in."""
        row = self._rows.get(event.group)
        if row is None:
            row = self._rows[event.group] = _Row(GroupStory(event.group))
        row.story.add(event)
        if isinstance(event, RebalanceBegan):
            row.cause = str(event.cause)
        elif isinstance(event, OffsetCommitted) and not event.error_code:
            place = TopicPartition(event.topic, event.partition)
            if event.removed:
                row.committed.pop(place, None)
                row.lag.pop(place, None)
            elif len(row.committed) < MOST_PARTITIONS:
                row.committed[place] = event.offset

    def partitions(self) -> set[TopicPartition]:
        """The partitions that groups have committed offsets of."""
        return {place for row in self._rows.values() for place in row.committed}

    def measure(self, ends: dict[TopicPartition, int]) -> None:
        """Compute lags from the ends of partitions."""
        for row in self._rows.values():
            row.lag = {
                place: max(ends[place] - offset, 0)
                for place, offset in row.committed.items()
                if place in ends
            }

    # --- what is shown ---

    HEAD = ("group", "kind", "members", "rebalances", "last cause", "without consumers", "commits", "lag")

    def rows(self) -> Iterator[tuple[str, ...]]:
        """The cells of each group, in the order of their ids."""
        for group, row in sorted(self._rows.items()):
            story = row.story
            yield (
                group, story.kind or "", str(len(story.members)), str(story.rebalances), row.cause,
                f"{story.idle_ns / 1e9:.1f} s" if story.idle_ns else "",
                str(story.commits), str(sum(row.lag.values())) if row.lag else "",
            )  # fmt: skip

    def metrics(self) -> str:
        """All groups in Prometheus' text format, version 0.0.4."""
        lines: list[str] = []
        for name, (kind, text) in _METRICS.items():
            lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
            for group, row in sorted(self._rows.items()):
                lines += [
                    f"{name}{{{_labels([('group', group), *labels])}}} {value}"
                    for labels, value in _samples(name, row)
                ]
        return "\n".join(lines) + "\n"


def _samples(name: str, row: _Row) -> Iterable[tuple[list[tuple[str, str]], float]]:
    story = row.story
    match name.removeprefix("coordwire_group_"):
        case "members":
            return [([], len(story.members))]
        case "rebalances_total":
            causes = sum(story.caused.values(), Counter())
            unexplained = story.rebalances - sum(causes.values())
            samples = [([("cause", str(cause))], float(times)) for cause, times in sorted(causes.items())]
            return (
                [*samples, ([("cause", "")], float(unexplained))]
                if unexplained > 0 or not samples
                else samples
            )
        case "rebalance_seconds_total":
            return [([], story.rebalancing_ns / 1e9)]
        case "without_consumers_seconds_total":
            return [([], story.idle_ns / 1e9)]
        case "commits_total":
            return [([], story.commits)]
    return [
        ([("topic", place.topic), ("partition", str(place.partition))], lag)
        for place, lag in sorted(row.lag.items())
    ]


def _labels(pairs: list[tuple[str, str]]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
