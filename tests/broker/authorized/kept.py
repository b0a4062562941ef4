"""Kafka's answers, kept in tests/data/authorized."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.broker.corners.brokers import RELEASE

_FILE = Path(__file__).parents[2] / "data" / "authorized" / f"kafka-{RELEASE}.jsonl"


def kept() -> dict[str, list[Any]]:
    """By the set of ACLs, what the real broker answered."""
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return {line["acls"]: line["answers"] for line in map(json.loads, lines)}


def keep(found: dict[str, list[Any]]) -> None:
    """Write what the real broker answered."""
    lines = (json.dumps({"acls": name, "answers": answers}) for name, answers in found.items())
    _FILE.parent.mkdir(exist_ok=True)
    _FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
