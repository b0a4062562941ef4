"""One incident of a group, and the parts of its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from coordwire.capture.printable import shown
from coordwire.timeline.events import Idle, TopicPartition
from coordwire.timeline.story.wording import duration, ranges

__all__ = ["Incident", "gap_text", "packets_text"]


@dataclass(slots=True)
class Incident:
    """One. time_ns: when it began; lines: what it was, and what it cost; cost_ns: for how long partitions had
    no consumer, or the group no coordinator or no assignment."""

    time_ns: int
    lines: list[str]
    cost_ns: int = 0


def gap_text(gaps: Iterable[Idle]) -> tuple[int, list[str]]:
    """How long the longest of gaps is, and which partitions had one that is not much shorter."""
    longest: dict[TopicPartition, int] = {}
    for gap in gaps:
        partition = TopicPartition(gap.topic, gap.partition)
        longest[partition] = max(longest.get(partition, 0), gap.until_ns - gap.since_ns)
    if not longest:
        return 0, []
    longest_ns = max(longest.values())
    long = [partition for partition, length_ns in longest.items() if 2 * length_ns >= longest_ns]
    text = f"{shown(ranges(long))} had no consumer for up to {duration(longest_ns)}"
    if len(longest) > len(long):
        least_ns = max(longest[partition] for partition in longest.keys() - set(long))
        text += f", {len(longest) - len(long):,} more for {duration(least_ns)} or less"
    return longest_ns, [text]


def packets_text(packets: Iterable[int | None], word: str = "packet") -> str:
    known = [str(packet) for packet in packets if packet is not None]
    plural = "s" if word.endswith("packet") and len(known) > 1 else ""
    excess = f" and {len(known) - 4} more" if len(known) > 4 else ""
    return f" ({word}{plural} {', '.join(known[:4])}{excess})" if known else ""
