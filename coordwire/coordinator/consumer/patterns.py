"""Patterns that members subscribe to: validated when they are new, resolved to topics after the heartbeat.

Strategy: all patterns of a group are resolved together, so that they lead to one rebalance: when one is new,
when topics were created, and after a while; never twice within 10 seconds. A resolution runs outside of the
state machine, as in Kafka's executor: it reads the topics as they were when it began, and only its end is an
operation. A pattern must match a topic's whole name.
"""

from __future__ import annotations

from enum import Enum

from coordwire.coordinator.consumer.sessions import find_consumer
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel, ConsumerMember, Subscribers
from coordwire.coordinator.model.patterns import Resolution, ResolvedPattern
from coordwire.coordinator.records import epoch_record, pattern_record, pattern_tombstone
from coordwire.coordinator.refusal import OperationRefused
from coordwire.coordinator.state import NOTHING, Result, State
from coordwire.coordinator.topics import group_hash
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.patterns import InvalidPattern, RegularExpression

_MIN_INTERVAL_MS = 10_000


class PatternChange(Enum):
    """The change of a member's pattern. resolved: its topics are known already."""

    NONE = "none"
    UPDATED = "updated"
    RESOLVED = "updated and resolved"


def update_pattern(
    state: State,
    group: ConsumerGroupModel,
    old: ConsumerMember,
    new: ConsumerMember,
    records: list[LogRecord],
) -> PatternChange:
    """Compare a member's patterns, and begin a resolution of the group's if it is due."""
    change, is_new = PatternChange.NONE, False
    if old.regex != new.regex:
        change = PatternChange.UPDATED
        if old.regex and group.patterns.get(old.regex) == 1:
            records.append(pattern_tombstone(group.group_id, old.regex))
        if new.regex:
            if new.regex not in group.patterns:
                _validate(new.regex)
                is_new = True
            elif new.regex in group.resolved:
                change = PatternChange.RESOLVED
        elif old.regex:
            change = PatternChange.RESOLVED
    if is_new or group.patterns:
        counts = dict(group.patterns.items())
        for regex, by in ((old.regex, -1), (new.regex, 1)):
            if regex and (by > 0 or regex in counts):
                counts[regex] = counts.get(regex, 0) + by
        patterns = [regex for regex, count in counts.items() if count > 0]
        if resolution_is_due(state, group, len(patterns), is_new=is_new):
            names, version = state.topics.names, state.topics_version
            resolution = Resolution(group.group_id, patterns, names, version=version, now=state.now)
            state.resolutions[group.group_id] = resolution
            if not state.resolves_in_turns:
                state.later.append(lambda: end_resolution(state, resolution))
    return change


def _validate(regex: str) -> None:
    try:
        RegularExpression(regex)
    except InvalidPattern as error:
        raise OperationRefused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error.description}.",
        ) from None


def resolution_is_due(state: State, group: ConsumerGroupModel, patterns: int, *, is_new: bool) -> bool:
    """Whether a resolution of the group's patterns is due. patterns: their number."""
    if group.group_id in state.resolutions:
        return False
    last = group.last_resolved
    if last is None:
        return patterns > 0
    if state.now <= last.timestamp + _MIN_INTERVAL_MS:
        return False
    return patterns > 0 and (
        is_new
        or patterns != len(group.resolved)
        or last.version < state.new_topics_version
        or state.now > last.timestamp + state.config.regex_refresh_interval_ms
    )


def end_resolution(state: State, resolution: Resolution) -> Result:
    """Complete a resolution, and record the topics of the group's patterns."""
    while not resolution.is_complete:
        resolution.advance()
    state.resolutions.pop(resolution.group_id, None)
    return _record_topics(state, resolution.group_id, resolution.resolved)


def _record_topics(state: State, group_id: str, resolved: dict[str, ResolvedPattern]) -> Result:
    """Record the patterns' topics; raise the epoch if they or their metadata changed."""
    group = find_consumer(state, group_id)
    if group is None:
        return NOTHING
    records = []
    changed = False
    topics = dict(group.topics.items())
    for regex, resolution in resolved.items():
        if regex not in group.patterns:
            continue
        known = group.resolved.get(regex)
        before = () if known is None else known.topics
        if before != resolution.topics:
            changed = True
            for name in before:
                _count(topics, name, -1)
            for name in resolution.topics:
                _count(topics, name, 1)
        records.append(pattern_record(group_id, regex, resolution))
    metadata_hash = group_hash(state.topics, topics)
    if changed or metadata_hash != group.metadata_hash:
        epoch = group.epoch + 1
        records.append(epoch_record(group_id, epoch, metadata_hash))
        group.refresh.complete(state.now, epoch)
    return Result(records)


def _count(topics: dict[str, Subscribers], name: str, by: int) -> None:
    by_name, by_regex = topics.get(name, Subscribers())
    if by_regex + by <= 0 and not by_name:
        topics.pop(name, None)
    else:
        topics[name] = Subscribers(by_name, by_regex + by)
