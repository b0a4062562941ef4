"""Groups, members, clients and APIs by name: as a filter gives them, and as entries have them.

A filter gives an exact value, the beginning of one, or a glob.

Rules: a text with `*`, `?` or `[` is a glob; a value that equals it matches as well. Any other text means the
value that equals it; where the input has none, all values that begin with it. A text that ends in `…` or
`...`, as ids are shortened in a timeline, is always a beginning. Case counts.

Strategy: a value may be met long before the one that equals the text. So the first value that only begins
with a text makes its owner look through the whole input for one that equals it (`find`), once; where the
input can be read only once, beginnings match until an equal value comes.

The names of topics by their ids: newer versions of Fetch and of similar requests carry ids only.

Strategy: responses with both, such as Metadata's, are remembered as they are read. Rules: a topic whose name
is unknown is shown by its id as Kafka writes it; beyond a number of topics the oldest is dropped.
"""

from __future__ import annotations

import argparse
import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator
from fnmatch import translate
from typing import Any
from uuid import UUID

from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.named_groups import groups
from coordwire.capture.redaction.entry_secrets import is_fully_decoded
from coordwire.codec import Struct
from coordwire.codec.names import suggestion
from coordwire.codec.primitives import uuid_text
from coordwire.codec.walk import FieldSelection, entity_values
from coordwire.messages.keys import FACTS
from coordwire.versions import ApiKey

HELP = "an exact value, the beginning of one where none equals it, or a glob as 'pay*'"
"""For the help of options."""

_KEY = re.compile(r"-?[0-9]{1,6}")
ELLIPSES = ("…", "...")
Find = Callable[[Collection[str]], Iterable[str]]
"""Gives those of the texts that equal some value of the input."""


class Names:
    """The names that an option selects; false without any. find: see above; None where the input can be read
    only once."""

    def __init__(self, texts: Iterable[str] | None, find: Find | None = None) -> None:
        self.texts = tuple(dict.fromkeys(texts or ()))
        self._find = find
        self._exact = frozenset(self.texts)
        globs = [text for text in self.texts if any(char in text for char in "*?[")]
        plain = [text for text in self.texts if text not in globs]
        self._globs = [re.compile(translate(text)).match for text in globs]
        shortened = [text for text in plain if text.endswith(ELLIPSES)]
        self._beginnings = {text: _beginning(text) for text in shortened}
        self._open = {text: text for text in plain if text and text not in shortened}

    def __bool__(self) -> bool:
        return bool(self.texts)

    def __call__(self, value: object) -> bool:
        """Whether a value is selected."""
        if not isinstance(value, str):
            return False
        if value in self._exact:
            self._open.pop(value, None)
            return True
        if any(match(value) for match in self._globs) or value.startswith(tuple(self._beginnings.values())):
            return True
        if not self._open or not value.startswith(tuple(self._open)):
            return False
        if self._find is not None:
            for text in {*self._find(tuple(self._open))} & set(self._open):
                del self._open[text]
            self._beginnings |= self._open
            self._open = {}
            self._find = None
            return value.startswith(tuple(self._beginnings.values()))
        return True

    def selects_any(self, values: Iterable[object]) -> bool:
        """Whether any of the values is selected. Each is looked at, since a later one may equal a text."""
        matches = False
        for value in values:
            matches |= self(value)
        return matches


def _beginning(text: str) -> str:
    return next(text.removesuffix(end) for end in ELLIPSES if text.endswith(end))


# --- the names in entries ---


def apis(text: str) -> set[int | str]:
    """API names or keys, with commas between them."""
    return {_api_or_call(part.strip()) for part in text.split(",") if part.strip()}


def _api_or_call(text: str) -> int | str:
    """A key, or a name in lower case: of an API, or of what another dialect asks."""
    from coordwire.dialects import find_call

    return text.lower() if find_call(text) else api(text)


def api(text: str) -> int:
    """The key of an API that is given by its name, in any case, or its key."""
    if _KEY.fullmatch(text):
        return int(text)
    names = {facts.name.lower(): key for key, facts in FACTS.items()}
    if text.lower() in names:
        return names[text.lower()]
    hint = suggestion(text, (facts.name for facts in FACTS.values()))
    raise argparse.ArgumentTypeError(f"no API is called {text!r}{hint}")


def entry_groups(entry: FrameEntry) -> Iterator[Any]:
    """The groups that an entry or its request names."""
    return _of_exchange(entry, groups)


def entry_members(entry: FrameEntry, *, shortened: bool = False) -> Iterator[Any]:
    """The members that an entry or its request names; shortened: also as CLIENT/ID."""
    for value in _of_exchange(entry, members):
        yield value
        if shortened and entry.client_id:
            yield f"{entry.client_id}/{value}"


def entry_clients(entry: FrameEntry) -> Iterator[str | None]:
    """The client of an entry."""
    yield entry.client_id


def _of_exchange(entry: FrameEntry, of: Any) -> Iterator[Any]:
    """What `of` finds in an entry's message, and in its request's."""
    yield from of(entry.message)
    if entry.request is not None:
        yield from of(entry.request.message)


def members(message: Struct | None) -> Iterator[Any]:
    """The members that a message names, by member id or as static members."""
    return entity_values(message, "member_id", "instance_id")


# --- topics ---


MOST_TOPICS = 100_000
_TOPIC_IDS = FieldSelection(lambda field: field.type == "uuid" and field.name == "topic_id")
TELLING = frozenset((ApiKey.METADATA, ApiKey.CREATE_TOPICS, ApiKey.DESCRIBE_TOPIC_PARTITIONS))
"""APIs whose responses have names beside ids."""


class TopicNames:
    """The names of topics by their ids, from the entries read so far."""

    def __init__(self) -> None:
        self.names: OrderedDict[UUID, str] = OrderedDict()

    def learn(self, entry: Entry) -> None:
        """Read an entry, which may have names and ids."""
        if (
            not isinstance(entry, FrameEntry)
            or entry.api_key not in TELLING
            or entry.direction != "response"
            or not is_fully_decoded(entry)
        ):
            return
        for topic in getattr(entry.message, "topics", None) or ():
            number = getattr(topic, "topic_id", None)
            if number and topic.name and number.int and self.names.get(number) != topic.name:
                self.names[number] = topic.name
                if len(self.names) > MOST_TOPICS:
                    self.names.popitem(last=False)

    def topics(self, messages: Iterable[Struct]) -> Iterator[str]:
        """The topics that messages are about, by name, or by id where that isn't known; each once."""
        topics: dict[str, None] = {}
        for message in messages:
            for topic in _topics(message, self.names):
                if topic and topic not in topics:
                    topics[topic] = None
                    yield topic


def _topics(message: Struct, names: OrderedDict[UUID, str]) -> Iterator[str]:
    yield from entity_values(message, "topic_name")
    for number in _TOPIC_IDS.values(message):
        if number.int:
            yield names.get(number) or uuid_text(number)
