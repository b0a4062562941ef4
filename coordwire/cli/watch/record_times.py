"""When the records at committed offsets were written: a group's lag in time.

Strategy: ListOffsets gives the first record that is not older than a given time; a search, which doubles the
age and then halves the interval, finds the time of one record. All partitions are searched together, so that
a request has one time for each. Rules: a time that is known is not searched for again; the requests of one
look are bounded, and a search that needs more continues at the next; a time is exact where an answer names
the record, else too early by at most a second or a hundredth of the record's age. Timestamps are expected to
rise with offsets, as they do where brokers or one producer set them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from coordwire.timeline.events import TopicPartition

MOST_REQUESTS = 20
"""In one look."""

_FIRST_AGE_MS = 1_000
_PRECISION_MS = 1_000
_AGE_PARTS = 100

ListOffsets = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, tuple[int, int]]]
"""Gives for times in ms the offset and timestamp of the first record that is not older, -1 for none."""

Position = tuple[TopicPartition, int]


@dataclass(slots=True)
class _Search:
    """The time of a record: at least `low` (None: not known yet), below `high`. now: when the search began;
    age: of the time that is asked for until `low` is known."""

    now: int
    high: int
    low: int | None = None
    age: int = _FIRST_AGE_MS
    is_over: bool = False

    @property
    def time(self) -> int:
        """The time to ask for next."""
        if self.low is None:
            return max(self.now - self.age, 0)
        return (self.low + self.high) // 2

    def answered(self, own: int, offset: int, timestamp: int) -> None:
        """Narrow the interval by the first record that is not older than `time`. own: the record's offset."""
        time = self.time
        if offset == own:
            self.low, self.is_over = timestamp, True
        elif 0 <= offset < own:
            self.low = min(max(time, timestamp), self.high - 1)
        else:
            self.high = time
            self.age *= 4
            self.is_over = time == 0  # the record has been deleted, or has no time
        if self.low is not None:
            precision = max(_PRECISION_MS, (self.now - self.low) // _AGE_PARTS)
            self.is_over |= self.high - self.low <= precision


class RecordTimes:
    """The times of records, by partition and offset. list_offsets: asks the cluster."""

    def __init__(self, list_offsets: ListOffsets) -> None:
        self._list_offsets = list_offsets
        self._known: dict[Position, int | None] = {}
        self._searches: dict[Position, _Search] = {}

    def time_ms(self, partition: TopicPartition, offset: int) -> int | None:
        """The record's time in ms since 1970 UTC; None while it is not known, and if it is deleted."""
        return self._known.get((partition, offset))

    def look(self, positions: Iterable[Position], now_ms: int) -> None:
        """Search for the times of these records, and keep no others. Raises what `list_offsets` raises."""
        records = set(positions)
        self._known = {place: time for place, time in self._known.items() if place in records}
        self._searches = {place: search for place, search in self._searches.items() if place in records}
        for place in records - self._known.keys() - self._searches.keys():
            self._searches[place] = _Search(now_ms, now_ms + 1)
        for _ in range(MOST_REQUESTS):
            if not self._ask():
                break

    def _ask(self) -> bool:
        """Ask for one time of each partition that is searched; whether anything was answered."""
        places = {place[0]: place for place in self._searches}
        if not places:
            return False
        answers = self._list_offsets(
            {partition: self._searches[place].time for partition, place in places.items()}
        )
        for partition, (offset, timestamp) in answers.items():
            place = places[partition]
            search = self._searches[place]
            search.answered(place[1], offset, timestamp)
            if search.is_over:
                self._known[place] = search.low
                del self._searches[place]
        return bool(answers)
