"""Record batches and message sets, sound and damaged, from the vectors that the tests of records have.

Rules: answers are those of the kafka-clients that each vector names; a batch stands once, in
tests/data/vectors_batches, and is only given an address and a verdict here.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from conformance.flaws import FLAWS

DATA = Path(__file__).parent.parent / "tests" / "data" / "vectors_batches"

KINDS = {
    "valid|ok": "none",
    "truncate": "batch-truncated",
    "length": "batch-length",
    "flip|crc": "batch-damaged",
    "magic": "batch-magic",
    "attributes|wrong_codec": "batch-attributes",
    "count": "batch-count",
    "body": "batch-body",
    "last_offset|base_|producer_id": "value-changed",
    "": "record-damaged",
}
"""Which flaw a name of the script means, the first that its last part begins with."""


def _lines(name: str) -> Iterator[dict[str, Any]]:
    for line in gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).splitlines():
        yield json.loads(line)


def sound() -> Iterator[dict[str, Any]]:
    """What Kafka's own writers wrote."""
    for one in _lines("batches"):
        name = one.pop("name")
        magic = "mixed" if one["magic"] < 0 else f"v{one['magic']}"
        yield {"id": f"batches/{magic}/{one['codec']}/{name}", **_released(one)}


def hostile() -> Iterator[dict[str, Any]]:
    """Damaged ones, with the verdict on splitting, checking and reading them."""
    for one in _lines("batches_hostile"):
        magic, codec, case = one.pop("name").split("/")
        kind = next(kind for word, kind in KINDS.items() if re.match(word, case))
        case = re.sub(r"[^a-z0-9]+", "-", case.lower().replace("=-", "=minus-")).strip("-")
        yield {
            "id": f"hostile-batches/{magic}/{codec}/{case}", "flaw": kind, "effect": FLAWS[kind].effect,
            "verdict": _verdict(one, kind), **_released(one), "notes": list(FLAWS[kind].reports),
        }  # fmt: skip


def _released(one: dict[str, Any]) -> dict[str, Any]:
    return {("release" if name == "made_by" else name): value for name, value in one.items()}


def _verdict(one: dict[str, Any], kind: str) -> str:
    checks = [batch[check] for batch in one["batches"] for check in ("ensure_valid", "iterate")]
    said = [one["kafka"], *checks]
    if any(words != "OK" for words in said):
        return "invalid"
    return "valid" if kind == "none" else "acceptable"
