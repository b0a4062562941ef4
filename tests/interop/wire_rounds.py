"""A round at a real broker: one version of each API, and the connections on which it is used.

Strategy: round n uses the n-th version of an API that the release has, or its last one. A request is given
once, with the fields of all versions; `build` leaves out those that a version lacks.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from coordwire.codec import Message, Struct
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS

WAIT = 15
"""Seconds for what a broker does in the background: topics, coordinators, shares' first offsets."""

KEYS = {facts.name: key for key, facts in FACTS.items()}

Kind = str | Callable[[Any], str] | None
"""What a request and its answer are called, or by what the answer has; None: by its error."""


class Link(Protocol):
    """A connection to the broker."""

    def send(self, message: Message, version: int) -> None:
        """Send a request, without waiting."""

    def receive(self, kind: Kind = None) -> Any:
        """The answer to the oldest request that has none. kind: what the recorder calls the pair."""

    def close(self) -> None:
        """End it."""


class Round:
    """One round at one broker. versions: the first and last of each API; open_link: connects once more."""

    def __init__(
        self, number: int, versions: Mapping[int, tuple[int, int]], open_link: Callable[[], Link]
    ) -> None:
        self.number = number
        self._versions = versions
        self._open = open_link
        self.link = open_link()
        self._links = [self.link]

    def another_link(self) -> Link:
        link = self._open()
        self._links.append(link)
        return link

    def close(self) -> None:
        for link in self._links:
            link.close()

    def version(self, api: str) -> int:
        """Which version this round uses; -1 where the release has none."""
        return self.version_at(self._versions, api, self.number)

    @staticmethod
    def version_at(versions: Mapping[int, tuple[int, int]], api: str, number: int) -> int:
        """The same of any release and round."""
        first, last = versions.get(KEYS[api], (-1, -1))
        return min(first + number, last)

    def first(self, api: str) -> int:
        """The oldest version that the release has; -1 where it has none."""
        return self._versions.get(KEYS[api], (-1, -1))[0]

    def last(self, api: str) -> int:
        """The newest version that the release has; -1 where it has none."""
        return self._versions.get(KEYS[api], (-1, -1))[1]

    def name(self, kind: str) -> str:
        return f"{kind}-{self.number}"

    def send(self, api: str, link: Link | None = None, **values: Any) -> None:
        version = self.version(api)
        (link or self.link).send(build(find_message(KEYS[api], "request"), values, version), version)

    def ask(
        self, api: str, link: Link | None = None, kind: Kind = None, at: int | None = None, **values: Any
    ) -> Any:
        """One request and its answer; None where the release lacks the API. at: another version."""
        version = self.version(api) if at is None else at
        if version < 0:
            return None
        link = link or self.link
        link.send(build(find_message(KEYS[api], "request"), values, version), version)
        return link.receive(kind)

    def ask_until(self, good: Callable[[Any], bool], api: str, kind: Kind = None, **values: Any) -> Any:
        """The first good answer, which alone is recorded; the last one where none came in time."""
        deadline = time.monotonic() + WAIT
        while True:
            answer = self.ask(api, kind="", **values)
            if answer is None or good(answer) or time.monotonic() > deadline:
                break
            time.sleep(0.1)
        return self.ask(api, kind=kind, **values) if kind != "" else answer


def build(cls: type[Struct], values: Mapping[str, Any], version: int) -> Any:
    """A message from plain values, without what the version lacks. Raises `TypeError` for unknown names."""
    fields = {field.name: field for field in cls._layout_.fields}
    result = cls()
    for name, value in values.items():
        if name not in fields:
            raise TypeError(f"{cls.__name__} has no field {name!r}")
        field = fields[name]
        if not field.exists(version):
            continue
        if field.struct is not None and value is not None:
            struct = field.struct
            value = (
                [build(struct, element, version) for element in value]
                if field.array
                else build(struct, value, version)
            )
        setattr(result, name, value)
    return result
