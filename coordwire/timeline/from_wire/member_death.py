"""The members that left without a request, and when: inferred, since no frame shows it.

A member whose coordinator receives nothing from it for the session timeout is removed. A classic member says
its timeout in JoinGroup. In groups whose coordinator assigns (KIP-848, share, streams) the timeout is a
setting of the group or the broker. It is taken from, the first that is known:

1. the group's or the broker's configuration, where DescribeConfigs or IncrementalAlterConfigs showed it;
2. what was learned from this group, never from another: a member whose removal showed was silent for that
   long at most, which bounds the timeout from above; a silence that a member survived bounds it from below;
3. Kafka's defaults: nine intervals of heartbeats, which the coordinator's answers state (45 s and 5 s).

Rules: a member counts as gone without other evidence once it was silent for longer than the upper bound; with
evidence (its partitions were given to another member, or the group's epoch rose and nothing else explains it)
after fewer intervals. Its removal is dated to its last heartbeat plus the timeout; of a learned one that is
the bound, rounded down to whole seconds, as timeouts are set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

from coordwire.timeline.events import GroupSetting, Kind
from coordwire.timeline.evidence import Silence
from coordwire.timeline.members import Member

__all__ = ["INTERVALS_OF_A_SESSION", "MS", "KnownTimeouts", "SessionTimeout", "Sessions"]

SECOND = 1_000_000_000
MS = 1_000_000
DEFAULT_INTERVAL_NS = 5 * SECOND
INTERVALS_OF_A_SESSION = 9
"""Of Kafka's defaults, 45 s and 5 s."""

DEFAULT_NS = INTERVALS_OF_A_SESSION * DEFAULT_INTERVAL_NS

INTERVALS_UNTIL_SUSPICIOUS = 3
"""A member that was silent for so many intervals may be the cause of an epoch that nothing else explains."""

INTERVALS_UNTIL_REPLACED = 2
"""A member that was silent for so many, and whose partitions another member has, is gone; one more where the
capture has holes, in which a heartbeat may be missing."""

COARSE_NS = 10 * SECOND
"""Timeouts from here on are set in steps of 5 s, shorter ones in seconds."""

HANDLED_NS = 10_000_000
"""So much earlier than its answer was seen may a request have been handled."""

MOST_CONFIGURED = 10_000
"""So many groups' configurations are remembered."""

MOST_SETTINGS, MOST_DIGITS = 20, 10
"""So many of a group's settings are reported, and digits of their values."""

_CONFIG = "session.timeout.ms"
_BROKER, _GROUP = 4, 32
"""The types of the resources whose configuration holds it."""


class Sessions:
    """The members of a group by the ends of their sessions, the next first. watched: whose are looked at;
    heap: their keys at some time before.

    key: a member's; it never falls, so that a heap of old ones finds the least. Rules: a question costs what
    changed since the last one, and a logarithm each.
    """

    def __init__(self, members: dict[str, Member], key: Callable[[Member], int | None]) -> None:
        self._members = members
        self._key = key
        self.heap: list[tuple[int, str]] = []
        self.watched: set[str] = set()

    def watch(self, member: Member) -> None:
        """A member was seen."""
        if member.member_id not in self.watched:
            key = self._key(member)
            if key is not None:
                self.watched.add(member.member_id)
                heappush(self.heap, (key, member.member_id))

    def may_begin_before(self, time_ns: int) -> bool:
        """Whether the least key may be less than this; mostly it is known not to be."""
        return bool(self.heap) and self.heap[0][0] < time_ns

    def first(self) -> Member | None:
        """The member whose session ends first."""
        heap = self.heap
        while heap:
            known, name = heap[0]
            member = self._members.get(name)
            key = None if member is None or member.parked else self._key(member)
            if member is None or key is None:
                heappop(heap)
                self.watched.discard(name)
            elif key > known:
                heappop(heap)
                heappush(heap, (key, name))
            else:
                return member
        return None


@dataclass(slots=True)
class KnownTimeouts:
    """The session timeouts that configurations state, of all groups in some captures."""

    _of_brokers: dict[str, int] = field(default_factory=dict)
    _of_groups: dict[tuple[str, str], int] = field(default_factory=dict)

    changes: int = 0
    """How many configurations were seen so far."""

    def configured(self, group: str, kind: Kind) -> int | None:
        """The timeout that the configuration says, in nanoseconds."""
        name = f"{kind}.{_CONFIG}"
        ms = self._of_groups.get((group, name), self._of_brokers.get(f"group.{name}"))
        return None if ms is None else ms * MS

    def described(self, message: Any) -> None:
        """DescribeConfigs, answered."""
        for result in message.results:
            if result.error_code == 0:
                self._learn(result.resource_type, result.resource_name, result.configs)

    def altered(self, request: Any, message: Any) -> Iterator[tuple[str, tuple[GroupSetting, ...]]]:
        """AlterConfigs or IncrementalAlterConfigs, answered: of which groups, and what each has since."""
        refused = {
            (response.resource_type, response.resource_name)
            for response in message.responses
            if response.error_code
        }
        for response in request.resources:
            if (response.resource_type, response.resource_name) in refused or request.validate_only:
                continue
            self._learn(response.resource_type, response.resource_name, response.configs)
            if response.resource_type == _GROUP:
                configs = response.configs[:MOST_SETTINGS]
                yield (
                    response.resource_name,
                    tuple(GroupSetting(config.name, _number(config.value)) for config in configs),
                )

    def _learn(self, resource_type: int, name: str, configs: Any) -> None:
        for config in configs or ():
            value = _number(config.value)
            if not config.name.endswith(_CONFIG) or len(self._of_groups) >= MOST_CONFIGURED:
                continue
            if value is None:
                self.changes += self._of_groups.pop((name, config.name), None) is not None
                continue
            self.changes += 1
            if resource_type == _GROUP:
                self._of_groups[name, config.name] = int(value)
            elif resource_type == _BROKER and config.name.startswith("group."):
                self._of_brokers.setdefault(config.name, int(value))


def _number(value: str | None) -> str | None:
    """A setting's value, if it is a number of up to 10 digits."""
    text = value or ""
    return text if text.isascii() and text.isdecimal() and len(text) <= MOST_DIGITS else None


class SessionTimeout:
    """The session timeout of one group, as far as it is known. interval_ns: between heartbeats; survived_ns:
    the longest silence after which a member was still in."""

    def __init__(self, group: str, kind: Kind, known: KnownTimeouts) -> None:
        self._group, self._kind, self._known = group, kind, known
        self.interval_ns = DEFAULT_INTERVAL_NS
        self.survived_ns = 0
        self._ended_ns: int | None = None  # the shortest silence after which one was out
        self._refuted = 0
        self._changes = 0
        self._configured_ns: int | None = None

    def heartbeat_interval(self, ms: int) -> None:
        """What an answer asks for."""
        if ms > 0:
            self.interval_ns = ms * MS

    def survived(self, silence: Silence) -> None:
        """A member was silent for so long and is still in."""
        if silence.of.group == self._group:
            self.survived_ns = max(self.survived_ns, silence.length_ns)
            if self._ended_ns is not None and self._ended_ns <= self.survived_ns:
                self._ended_ns = None  # what seemed to be a removal wasn't one

    def refutes_absence(self, silence_ns: int) -> bool:
        """Whether a member that was silent for so long and is still in shows that the coordinator was away,
        and not that the timeout is longer than was learned: the first time it does."""
        if not self.is_known or silence_ns <= self.most_ns:
            return False
        self._refuted += 1
        return self._refuted == 1 or self._configured is not None

    def ended(self, silence: Silence) -> None:
        """A member was silent for so long, and something showed that it is out."""
        length_ns, ended_ns = silence.length_ns, self._ended_ns
        if silence.of.group != self._group or length_ns <= self.survived_ns:
            return
        if ended_ns is None or length_ns < ended_ns:
            self._ended_ns = length_ns

    @property
    def is_known(self) -> bool:
        return self._ended_ns is not None or self._configured is not None

    @property
    def _configured(self) -> int | None:
        known = self._known
        if self._changes != known.changes:
            self._changes, self._configured_ns = known.changes, known.configured(self._group, self._kind)
        return self._configured_ns

    @property
    def _default_ns(self) -> int:
        return max(INTERVALS_OF_A_SESSION * self.interval_ns, self.survived_ns)

    @property
    def most_ns(self) -> int:
        """After this silence a member is out."""
        return self._configured or self._ended_ns or self._default_ns

    @property
    def most_at_end_ns(self) -> int:
        """The same where the group wasn't seen to go on: short intervals are no evidence then."""
        return self.most_ns if self.is_known else max(self.most_ns, DEFAULT_NS)

    @property
    def likely_ns(self) -> int:
        """What the timeout is likely to be."""
        if self._configured:
            return self._configured
        ended_ns = self._ended_ns
        if ended_ns is None:
            return self._default_ns
        step = SECOND if ended_ns < COARSE_NS else 5 * SECOND
        rounded = (ended_ns + HANDLED_NS) // step * step
        return rounded if rounded > self.survived_ns else ended_ns

    def explains(self, silence_ns: int) -> bool:
        """Whether the end of a session that was silent for so long may be why a group's epoch rose."""
        if self.is_known or self.interval_ns == DEFAULT_INTERVAL_NS:  # then the timeout is likely to be, too
            return silence_ns > self.likely_ns
        return silence_ns > INTERVALS_UNTIL_SUSPICIOUS * self.interval_ns

    def is_replaced(self, silence_ns: int, *, has_holes: bool) -> bool:
        """Whether a member whose partitions another has was silent for long enough to be out."""
        return silence_ns > (INTERVALS_UNTIL_REPLACED + has_holes) * self.interval_ns
