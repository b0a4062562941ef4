"""Hypothesis strategies: messages of any version, frames, records, conversations, and hostile bytes.

    from hypothesis import given
    from coordwire.messages import JoinGroupRequest
    from coordwire.testing import strategies

    @given(strategies.messages(JoinGroupRequest, version=9))
    def test_my_coordinator_answers(request): ...

    message_strategies.py       messages, requests, structs, frames; hostile bytes: valid encodings, mutated
    record_strategies.py        records, record batches and sets, records of brokers' own logs; hostile sets
    conversation_strategies.py  whole lives of groups; group_scripts.py: the members that hold them

Rules: values are valid, unless the strategy's name says otherwise; most are small, one of five is large; they
are drawn fast, and shrink to the smallest that shows a fault. The coordinator, which conversations are held
with, is imported by the first of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from coordwire._lazy import exports
from coordwire.testing.message_strategies import (
    Versioned,
    frames,
    hostile_bytes,
    hostile_frames,
    messages,
    requests,
    structs,
    versioned,
    versions_of,
)
from coordwire.testing.record_strategies import (
    hostile_record_sets,
    log_records,
    record_batches,
    record_sets,
    records,
)

if TYPE_CHECKING:
    from coordwire.testing.conversation_strategies import group_conversations
    from coordwire.testing.group_scripts import ConversationCommit, ConversationFrame, GroupConversation

_LAZY = {
    "ConversationCommit": ".group_scripts",
    "ConversationFrame": ".group_scripts",
    "GroupConversation": ".group_scripts",
    "group_conversations": ".conversation_strategies",
}

__all__ = [
    "ConversationCommit",
    "ConversationFrame",
    "GroupConversation",
    "Versioned",
    "frames",
    "group_conversations",
    "hostile_bytes",
    "hostile_frames",
    "hostile_record_sets",
    "log_records",
    "messages",
    "record_batches",
    "record_sets",
    "records",
    "requests",
    "structs",
    "versioned",
    "versions_of",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
