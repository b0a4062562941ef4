"""Record batches and message sets, sound and damaged, written and read anew by Kafka's classes.

Strategy: a sound vector says what is to be written: the batches' headers and their records, with the times
that a log's append time hides. Kafka's builder writes it (java/Records.java), and Kafka reads what it wrote
(java/Batches.java); damaged bytes are those that are kept, and are read again. Rules: what Kafka writes it
must read whole, with the records that the vector has; one release does both.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Iterable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import tests.interop.broker
from conformance.flaws import FLAWS
from coordwire.records import batches
from tests.interop.batch_cases import Case, sized
from tests.interop.broker import Java
from tests.interop.maven import CURRENT

Vector = dict[str, Any]

KINDS = {
    "valid|ok": "none",
    "truncate": "batch-truncated",
    "length": "batch-length",
    "flip|crc": "batch-damaged",
    "magic": "batch-magic",
    "attributes|wrong-codec": "batch-attributes",
    "count": "batch-count",
    "body": "batch-body",
    "last-offset|base-|producer-id": "value-changed",
    "": "record-damaged",
}
"""Which flaw an address means, the first that its last part begins with."""

CHECKS = ("ensure_valid", "iterate")
GIVEN = (
    "base_offset", "codec", "magic", "max_timestamp", "timestamp_type", "producer_id", "producer_epoch",
    "base_sequence", "transactional", "control", "partition_leader_epoch", "delete_horizon_ms",
    "last_offset",
)  # fmt: skip
"""The fields of a header that its writer chooses."""

_JAVA = Path(tests.interop.broker.__file__).parent / "java"


def written(before: Iterable[Vector]) -> Iterator[Vector]:
    """Sound ones, with what Kafka reads of the bytes that it wrote."""
    vectors = list(before)
    built = iter(_built([case for one in vectors for case in _cases(one)]))
    fields = [b"".join(next(built) for _ in one["batches"]) + _rest(one) for one in vectors]
    for one, field, found in zip(vectors, fields, _read(fields), strict=True):
        assert found["kafka"] == "OK", one["id"]
        records = [record for batch in found["batches"] for record in batch["records"]]
        assert records == one["records"], one["id"]
        assert all(batch[check] == "OK" for batch in found["batches"] for check in CHECKS), one["id"]
        facts = [_header(batch) | {"n_records": len(batch["records"])} for batch in found["batches"]]
        yield {
            "id": one["id"], "magic": one["magic"], "codec": one["codec"], "hex": field.hex(),
            "valid_bytes": found["valid_bytes"], "batches": facts, "records": records, "release": CURRENT,
        }  # fmt: skip


def _rest(one: Vector) -> bytes:
    """What follows the whole batches, as where a Fetch ends within one."""
    return bytes.fromhex(one["hex"])[one["valid_bytes"] :]


def _header(batch: Vector) -> Vector:
    return {name: value for name, value in batch.items() if name not in (*CHECKS, "records")}


def _cases(one: Vector) -> Iterator[Case]:
    for batch, header in zip(batches(bytes.fromhex(one["hex"])), one["batches"], strict=True):
        facts = {name: header[name] for name in GIVEN if header.get(name) is not None}
        yield Case(list(batch.records(create_time=True)), facts)


def _built(cases: list[Case]) -> list[bytes]:
    nothing = sized(b"")  # to be read
    output = _asked("Records.java", [case.asked() + nothing for case in cases])
    return [_answer(output, behind=4) for _ in cases]


def hostile(before: Iterable[Vector]) -> Iterator[Vector]:
    """Damaged ones, with the verdict on splitting, checking and reading them."""
    vectors = list(before)
    for one, found in zip(vectors, _read([bytes.fromhex(one["hex"]) for one in vectors]), strict=True):
        case = one["id"].rsplit("/", 1)[-1]
        kind = next(kind for word, kind in KINDS.items() if re.match(word, case))
        size = {"valid_bytes": found.pop("valid_bytes")} if "valid_bytes" in found else {}
        yield {
            "id": one["id"], "flaw": kind, "effect": FLAWS[kind].effect, "verdict": _verdict(found, kind),
            "hex": one["hex"], **size, **found, "release": CURRENT, "notes": list(FLAWS[kind].reports),
        }  # fmt: skip


def _verdict(found: Vector, kind: str) -> str:
    if any(words != "OK" for words in [found["kafka"], *_checked(found)]):
        return "invalid"
    return "valid" if kind == "none" else "acceptable"


def _checked(found: Vector) -> list[str]:
    return [batch[check] for batch in found["batches"] for check in CHECKS]


def _read(fields: list[bytes]) -> list[Vector]:
    output = _asked("Batches.java", list(map(sized, fields)))
    return [json.loads(_answer(output)) for _ in fields]


def _asked(program: str, cases: list[bytes]) -> BytesIO:
    asked = struct.pack(">i", len(cases)) + b"".join(cases)
    return BytesIO(Java(CURRENT).pipe(asked, str(_JAVA / program)))


def _answer(output: BytesIO, *, behind: int = 0) -> bytes:
    """The next bytes. behind: so many more are passed over."""
    data = output.read(*struct.unpack(">i", output.read(4)))
    output.read(behind)
    return data
