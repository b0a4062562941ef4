"""Whole lives of groups: members that join, commit, send heartbeats and leave.

Strategy: steps are drawn as small numbers, and a script turns them into frames; so a conversation shrinks by
its steps, to one member that joins. Rules: at any time the steps are legal: no member leaves an empty group,
and no more than `max_members` are in.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from coordwire.coordinator.refusal import is_blank
from coordwire.messages import find_message
from coordwire.testing.group_scripts import (
    ClassicScript,
    ConsumerScript,
    GroupConversation,
    GroupScript,
    Recorder,
)
from coordwire.testing.hypothesis_import import st
from coordwire.versions import ApiKey

_Draw = Callable[[st.SearchStrategy[Any]], Any]

_SCRIPTS: dict[str, type[GroupScript]] = {"classic": ClassicScript, "consumer": ConsumerScript}
_STEPS = ("heartbeat", "join", "commit", "leave")
_PAUSE_MS, _PAUSES_MS = 900, 30_000
"""Between two steps at most, and all together: no session ends, even if a member is not heard from in any."""

_TOPICS = st.text("abcdefghijklmnopqrstuvwxyz0123456789_-", min_size=1, max_size=10)
_GROUP_IDS = {
    "classic": st.text(min_size=1, max_size=10),
    "consumer": st.text(min_size=1, max_size=10).filter(lambda text: not is_blank(text)),
}
"""Kafka refuses a group of KIP-848 whose name is blank."""

_NAMED: dict[tuple[str, int], range] = {
    ("classic", ApiKey.OFFSET_COMMIT): range(2, 10),
    ("consumer", ApiKey.OFFSET_COMMIT): range(9, 10),
    ("consumer", ApiKey.METADATA): range(10, 14),
}
"""The versions in which a commit has its member and names its topic, and metadata has the topic's id; members
of KIP-848 commit from version 9 on."""


def group_conversations(
    *,
    kinds: Sequence[Literal["classic", "consumer"]] = ("classic", "consumer"),
    max_members: int = 4,
    max_partitions: int = 6,
    max_steps: int = 10,
) -> st.SearchStrategy[GroupConversation]:
    """Valid conversations of a group with its coordinator, from its first member on.

    kinds: "classic" groups, and "consumer" groups of KIP-848. Each API is spoken in one version throughout,
    any that fits. Raises `ValueError` for another kind, and for a bound below 1.
    """
    for kind in kinds:
        if kind not in _SCRIPTS:
            raise ValueError(f"there are no conversations of {kind!r}: expected {', '.join(_SCRIPTS)}")
    if min(max_members, max_partitions, max_steps) < 1 or not kinds:
        raise ValueError("a conversation has at least one kind, member, partition and step")
    pauses = st.integers(0, min(_PAUSE_MS, _PAUSES_MS // max_steps))
    steps = st.tuples(st.sampled_from(_STEPS), st.integers(0, max_members - 1), pauses)

    @st.composite
    def conversation(draw: _Draw) -> GroupConversation:
        cls = _SCRIPTS[draw(st.sampled_from(kinds))]
        versions = {key: draw(_versions(cls.kind, key)) for key in cls.apis}
        group_id: str = draw(_GROUP_IDS[cls.kind])
        topic, partitions = draw(_TOPICS), draw(st.integers(1, max_partitions))
        # Not abstract: `cls` is one of the scripts.
        script = cls(Recorder(versions, topic, partitions), group_id, topic, partitions)
        script.join()
        for name, index, pause in draw(st.lists(steps, max_size=max_steps - 1)):
            script.recorder.wait(pause)
            if name == "join" or not script.size:
                if script.size < max_members:
                    script.join()
            else:
                getattr(script, name)(index)
        return script.conversation()

    return conversation()


def _versions(kind: str, key: int) -> st.SearchStrategy[int]:
    known = find_message(key, "request").versions
    named = _NAMED.get((kind, key), known)
    return st.sampled_from([version for version in known if version in named])
