"""A batch to be built, as java/Records.java is asked for it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Any

from coordwire.records import Record, encode_batch
from coordwire.records.compression import CODECS


@dataclass
class Case:
    """A batch: its records, and what `encode_batch` is given of it."""

    records: list[Record]
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def data(self) -> bytes:
        return encode_batch(self.records, **self.facts)

    def encoded(self) -> bytes:
        """As Records.java wants it."""
        return self.asked() + sized(self.data)

    def asked(self) -> bytes:
        """The same without a batch to read."""
        fact = self.facts.get
        numbers = struct.pack(
            ">bb?qqqhi??iqq",
            fact("magic", 2), CODECS.index(fact("codec", "none")), fact("timestamp_type") == "LogAppendTime",
            fact("base_offset"), fact("max_timestamp", -1), fact("producer_id", -1),
            fact("producer_epoch", -1),
            fact("base_sequence", -1), fact("transactional", False), fact("control", False),
            fact("partition_leader_epoch", -1), fact("delete_horizon_ms", -1), fact("last_offset", -1),
        )  # fmt: skip
        return numbers + written(self.records)


def sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def written(records: list[Record]) -> bytes:
    parts = [struct.pack(">i", len(records))]
    for record in records:
        parts += (struct.pack(">qq", record.offset, record.timestamp), sized(record.key), sized(record.value))
        parts.append(struct.pack(">i", len(record.headers)))
        for name, value in record.headers:
            parts += (sized(name.encode()), sized(value))
    return b"".join(parts)
