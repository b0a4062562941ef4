"""The names of the protocol: APIs, records of brokers' own logs, other dialects, headers, data types.

Strategy: APIs by key, records by log and type, dialects by their calls; each of the rest is an entry of its
own. Rules: an entry knows its messages by name, so that listing them imports next to nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from coordwire import messages
from coordwire.codec import Message
from coordwire.dialects import CALLS
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS
from coordwire.messages.record_types import RECORD_TYPES, TOPICS

API = "APIs"
HEADERS = "Headers"
TYPES = "Data types"
_FIRST = (API, HEADERS, TYPES)


@dataclass(frozen=True, slots=True)
class PageEntry:
    """One thing with a name, in its group, and the messages that belong to it.

    api_key: None for all but APIs. number: what the wire calls it, where it does: api key, type id, record
    type; place: that in words.
    """

    name: str
    group: str
    messages: tuple[str, ...]
    api_key: int | None = None
    number: int | None = None
    place: str = ""

    @property
    def classes(self) -> tuple[type[Message], ...]:
        return tuple(map(find_message, self.messages))


@cache
def entries() -> tuple[PageEntry, ...]:
    """All of them, group by group."""
    all_entries = [*_apis(), *_records(), *_calls()]
    listed_names = {name for entry in all_entries for name in entry.messages}
    for name in sorted(set(messages.__all__) - listed_names - {"find_message"}):
        header = find_message(name).direction == "header"
        all_entries.append(PageEntry(name, HEADERS if header else TYPES, (name,)))
    return tuple(
        sorted(
            all_entries, key=lambda entry: _FIRST.index(entry.group) if entry.group in _FIRST else len(_FIRST)
        )
    )


def _apis() -> Iterator[PageEntry]:
    for key, facts in sorted(FACTS.items()):
        names = f"{facts.name}Request", f"{facts.name}Response"
        yield PageEntry(facts.name, API, names, key, key, f"api key {key}")


def _records() -> Iterator[PageEntry]:
    for log, types in RECORD_TYPES.items():
        for number, names in sorted(types.items()):
            parts = tuple(name for name in names if name is not None)
            place = f"record type {number} in {TOPICS[log]}"
            yield PageEntry(names.value, f"Records in {TOPICS[log]}", parts, None, number, place)


def _calls() -> Iterator[PageEntry]:
    yielded: set[str] = set()
    for dialect, calls in CALLS.items():
        for call in calls:
            if call.request in yielded:  # the same message in another framing
                continue
            yielded.add(call.request)
            parts = tuple(name for name in (call.request, call.response) if name is not None)
            suffix = " (reconstructed)" if call.reconstructed else ""
            place = f"type id {call.type_id}{suffix}, asked by the {call.asker}, dialect {dialect}"
            name = call.request.removesuffix("Request")
            yield PageEntry(name, f"Dialect {dialect}", parts, None, call.type_id, place)
