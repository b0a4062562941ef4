"""`Exchange`: the messages between clients and broker, typed, for assertions.

    join = kafka.exchange.one(JoinGroupRequest, client_id="a")
    assert [protocol.name for protocol in join.protocols] == ["range"]

Rules: `one` fails with a list of the other messages. A response belongs to the client that sent the request.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from coordwire.broker.harness.traffic import Traffic
from coordwire.codec import Message

if TYPE_CHECKING:
    from coordwire.capture import FrameEntry

__all__ = ["Exchange"]

M = TypeVar("M", bound=Message)


class Exchange:
    """The messages of a broker's connections so far."""

    def __init__(self, traffic: Traffic) -> None:
        self._traffic = traffic

    def all(
        self,
        message: type[M],
        *,
        client_id: str | None = None,
        when: Callable[[M], Any] | None = None,
        **fields: Any,
    ) -> list[M]:
        """The requests or responses of a class, in their order. fields: values that they have; when: a
        predicate."""
        return [
            match
            for _, match in self._matches(message, client_id)
            if all(getattr(match, name) == value for name, value in fields.items())
            and (when is None or when(match))
        ]

    def one(
        self,
        message: type[M],
        *,
        client_id: str | None = None,
        when: Callable[[M], Any] | None = None,
        **fields: Any,
    ) -> M:
        """The only one of them; `AssertionError` if there are none or more."""
        messages = self.all(message, client_id=client_id, when=when, **fields)
        if len(messages) != 1:
            raise AssertionError(
                f"expected 1 {message.__name__}, got {len(messages)}; {self._summary(client_id)}"
            )
        return messages[0]

    def entries(self) -> Iterator[FrameEntry]:
        """The frames, as `coordwire.capture` gives them, with times, versions and addresses."""
        return self._traffic.entries()

    def _matches(self, message: type[M], client_id: str | None) -> Iterator[tuple[FrameEntry, M]]:
        for entry in self._traffic.entries():
            if isinstance(entry.message, message) and client_id in (None, _client(entry)):
                yield entry, entry.message

    def _summary(self, client_id: str | None) -> str:
        counts: Counter[str] = Counter()
        for entry in self._traffic.entries():
            if entry.message is not None and entry.direction == "request":
                client = _client(entry)
                counts[f"{type(entry.message).__name__} of {client or 'a client without id'}"] += 1
        summary = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing"
        full = f"; {self._traffic.dropped} bytes were not kept" if self._traffic.dropped else ""
        return f"there were: {summary}{full}"


def _client(entry: FrameEntry) -> str | None:
    request_entry = entry.request if entry.direction == "response" else entry
    return None if request_entry is None else request_entry.client_id
