"""The context of a request, its reply, and the effects of a shard: appends, answers, ended transactions.

A request may leave out its client's id; a record may not. Apache Kafka lets a client without one join, names
the member "null-…", and fails when it writes a record that needs the client's id.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from itertools import count
from typing import TypeAlias

from coordwire._dataclasses import dataclass
from coordwire.codec import Message
from coordwire.coordinator.log_entries import TransactionMarker
from coordwire.coordinator.persister import StateRequest
from coordwire.coordinator.refusal import OperationRefused
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord, encode_log_record
from coordwire.records import Record, encode_batch

log = logging.getLogger("coordwire.coordinator")


def encoded_pairs(records: Iterable[LogRecord]) -> list[tuple[bytes, bytes | None]]:
    """The key and the value of records of a coordinator's log; a value of None is a tombstone."""
    pairs = []
    for record in records:
        key, value = encode_log_record(record)
        assert key is not None
        pairs.append((key, value))
    return pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestContext:
    """The sender of a request.

    client_id: from the request's header; client_host: as Kafka writes it into its records, "/192.0.2.7".
    new_id: gives the random part of a new member id (a UUID's text).
    """

    client_id: str | None
    client_host: str
    new_id: Callable[[], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Append:
    """Records for the end of the log, as one batch: confirm with `Shard.appended` or `Shard.failed`.

    With a marker it is a control batch of that one record, and there are no others.

    base_offset: the first record's offset, if the shard has the log to itself.
    producer_id, producer_epoch: of the transaction that the batch is part of or that its marker ends; -1
    outside of one. partition: the number of the shard's.
    """

    number: int
    base_offset: int
    records: tuple[LogRecord, ...]
    producer_id: int = -1
    producer_epoch: int = -1
    marker: TransactionMarker | None = None
    partition: int = 0

    @property
    def end_offset(self) -> int:
        """The offset after the last record's."""
        return self.base_offset + (len(self.records) if self.marker is None else 1)

    def encoded(self) -> list[tuple[bytes, bytes | None]]:
        """Each record's key and value; a value of None is a tombstone."""
        return encoded_pairs(self.records) if self.marker is None else [self.marker.encoded()]

    def batch(self, *, timestamp: int, base_offset: int | None = None) -> bytes:
        """The record batch to append, without compression, transactional or a control batch where it is one.

        timestamp: of all records, in milliseconds. base_offset: the append's own by default.
        """
        return encode_batch(
            [Record(timestamp=timestamp, key=key, value=value) for key, value in self.encoded()],
            base_offset=self.base_offset if base_offset is None else base_offset,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            transactional=self.producer_id >= 0,
            control=self.marker is not None,
        )


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """A topic that a streams application needs for itself. replication_factor: 0 for the broker's default."""

    name: str
    partitions: int
    replication_factor: int
    configs: Mapping[str, str]


@dataclass(slots=True)
class Answer:
    """The response to the request that `Shard.handle` gave this ticket for.

    topics_to_create: the internal topics that a streams group lacks. Who sends the answer creates them if the
    sender of the request may; the group's next heartbeats find them.

    It is not frozen as other effects are: freezing would double the cost of a heartbeat.
    """

    ticket: int
    response: Message
    topics_to_create: tuple[InternalTopic, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionCompleted:
    """The marker of this ticket of `Shard.complete_transaction` is durable, or could not be written."""

    ticket: int
    error_code: int


Effect: TypeAlias = Append | Answer | TransactionCompleted | StateRequest


class Outbox:
    """The effects of one shard or several, in order, and the numbers of their tickets, from 1 on."""

    __slots__ = ("effects", "tickets")

    def __init__(self) -> None:
        self.effects: deque[Effect] = deque()
        self.tickets = count(1)


class Reply:
    """The one answer to a request; the first that is sent counts."""

    __slots__ = ("_send", "sent", "topics_to_create")

    def __init__(self, send: Callable[[Message], None]) -> None:
        self._send = send
        self.sent = False
        self.topics_to_create: tuple[InternalTopic, ...] = ()

    def send(self, response: Message) -> None:
        if not self.sent:
            self.sent = True
            self._send(response)


class _Missing(str):
    """A text that is distinct from any client's id by its type."""

    __slots__ = ()


NO_CLIENT_ID = _Missing("null")
"""The id of a client without one. Compare with `is`: a client may call itself "null"."""


def new_id(context: RequestContext) -> str:
    """The random part of a new member id; a failure of the source is answered like one of the coordinator."""
    try:
        return context.new_id()
    except Exception as error:
        log.error("a new member id could not be made: %s", error)
        raise OperationRefused(ErrorCode.UNKNOWN_SERVER_ERROR) from error


def client_id_of(context: RequestContext) -> str:
    return NO_CLIENT_ID if context.client_id is None else context.client_id
