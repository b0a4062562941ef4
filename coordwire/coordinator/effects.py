"""What a shard wants done, as values: records to append, answers to send."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from coordwire.codec import Message
from coordwire.logs import LogRecord, encode_log_record

__all__ = ["Answer", "Append", "Effect", "RequestContext"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """Who sends a request.

    client_id: from the request's header; client_host: as Kafka writes it into its records, "/192.0.2.7".
    new_id: gives the random part of a new member id (a UUID's text).
    """

    client_id: str | None
    client_host: str
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Records for the end of the log, as one batch: confirm with `Shard.appended` or `Shard.failed`.

    base_offset: the first record's offset, if the shard has the log to itself.
    producer_id, producer_epoch: of the transaction that the batch is part of; -1 outside of one.
    """

    number: int
    base_offset: int
    records: tuple[LogRecord, ...]
    producer_id: int = -1
    producer_epoch: int = -1

    def encoded(self) -> list[tuple[bytes, bytes | None]]:
        """Each record's key and value; a value of None is a tombstone."""
        pairs = []
        for record in self.records:
            key, value = encode_log_record(record)
            assert key is not None
            pairs.append((key, value))
        return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The response to the request that `Shard.handle` gave this ticket for."""

    ticket: int
    response: Message


Effect: TypeAlias = Append | Answer
