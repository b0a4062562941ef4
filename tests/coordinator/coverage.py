"""What histories reach: error codes by request, record types, transitions of groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from coordwire.codec import Message
from coordwire.coordinator.model.classic_group import ENTERED_FROM, ClassicGroupModel
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.streams_group import StreamsGroupModel
from coordwire.enums import ErrorCode
from coordwire.logs import decode_log_record
from coordwire.messages import find_message
from tests.coordinator.histories import Outcome, Replayer

TRANSITIONS = {(before, after) for after, entered in ENTERED_FROM.items() for before in entered}


class Coverage:
    """Counts of what histories led to."""

    def __init__(self) -> None:
        self.errors: dict[str, Counter[str]] = {}
        self.versions: dict[str, Counter[int]] = {}
        self.records: Counter[str] = Counter()
        self.transitions: Counter[tuple[str, str]] = Counter()
        self.member_states: Counter[tuple[str, str]] = Counter()
        self._states: dict[str, str] = {}
        self._replayer: Replayer | None = None

    def add(self, replayer: Replayer, outcome: Outcome) -> None:
        """Count one step: what came out, and the states that groups are in after it."""
        if replayer is not self._replayer:
            self._replayer, self._states = replayer, {}
        for ticket, data in outcome.answers.items():
            api, version = replayer.requests[ticket]
            response = find_message(api, "response").decode(data, version=version)
            name = type(response).__name__.removesuffix("Response")
            self.versions.setdefault(name, Counter())[version] += 1
            for code in set(_codes(response)):
                self.errors.setdefault(name, Counter())[ErrorCode(code).name] += 1
        for ended in outcome.ended.values():
            self.errors.setdefault("the end of a transaction", Counter())[ended] += 1
        for key, value, producer_id, _, marker in outcome.records:
            if marker:
                self.records["marker"] += 1
                continue
            record = decode_log_record("consumer_offsets", key, value)
            kind = type(record.key).__name__.removesuffix("Key")
            form = "tombstone" if value is None else f"v{record.version}"
            self.records[f"{'transactional ' if producer_id != -1 else ''}{kind} {form}"] += 1
        for group in replayer.shard.groups.values():
            if isinstance(group, ConsumerGroupModel):
                self._add_consumer_group(group)
            elif isinstance(group, StreamsGroupModel):
                self._add_streams_group(group)
            elif isinstance(group, ClassicGroupModel) and (group.previous_state, group.state) in TRANSITIONS:
                self.transitions[group.previous_state.value, group.state.value] += 1

    def _add_consumer_group(self, group: ConsumerGroupModel) -> None:
        """States of a group and its members that follow upon each other from step to step."""
        before = self._states.get(group.group_id, "new")
        now = group.state.value
        self._states[group.group_id] = now
        if before != now:
            self.transitions[before, now] += 1
        for member in group.members.values():
            self.member_states[member.state.name, "classic" if member.classic else "KIP-848"] += 1

    def _add_streams_group(self, group: StreamsGroupModel) -> None:
        before = self._states.get(group.group_id, "new")
        now = group.state.value
        self._states[group.group_id] = now
        if before != now:
            self.transitions[f"streams {before}", now] += 1
        for member in group.members.values():
            self.member_states[member.state.name, "KIP-1071"] += 1

    def lines(self) -> Iterator[str]:
        for name, codes in sorted(self.errors.items()):
            counts = ", ".join(f"{code} {count}" for code, count in codes.most_common())
            versions = sorted(self.versions.get(name, ()))
            range_text = f" v{versions[0]} to v{versions[-1]} ({len(versions)})" if versions else ""
            yield f"{name}{range_text}: {counts}"
        yield "records: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.records.items()))
        passed = sorted(self.transitions.items())
        members = sorted(self.member_states.items())
        yield "members: " + ", ".join(f"{state} ({kind}) {count}" for (state, kind), count in members)
        yield "states: " + ", ".join(f"{before} to {after} {count}" for (before, after), count in passed)


def _codes(value: Any) -> Iterator[int]:
    """Every error code in a response, at any depth."""
    if isinstance(value, list):
        for item in value:
            yield from _codes(item)
    elif isinstance(value, Message) or hasattr(value, "__slots__"):
        for name in getattr(value, "__dataclass_fields__", ()):
            field_value = getattr(value, name)
            if name == "error_code":
                yield int(field_value)
            elif isinstance(field_value, list):
                yield from _codes(field_value)
