"""The histories of the conformance archive, as the tests of the coordinator read histories.

Rules: what Kafka made of each step is in the archive in full; the checksum is computed from it here, so that
one reader serves all.
"""

from __future__ import annotations

import functools
import json
import lzma
from pathlib import Path
from typing import Any

from conformance.steps import outcome_of, text
from tests.coordinator.recorded_histories import RecordedHistory, checksum

_FILE = Path(__file__).parents[2] / "conformance" / "data" / "histories.jsonl.xz"


@functools.cache
def archived(kind: str) -> tuple[RecordedHistory, ...]:
    """Those of a kind, rules, changes or random, in the order of the archive."""
    start = f'{{"id":"histories/{kind}/'.encode()
    lines = [line for line in lzma.decompress(_FILE.read_bytes()).splitlines() if line.startswith(start)]
    return tuple(_with_sums(json.loads(line)) for line in lines)


def _with_sums(vector: dict[str, Any]) -> RecordedHistory:
    requests: dict[int, tuple[int, int]] = {}
    steps = []
    for step in vector["steps"]:
        if step["op"] == "request":
            requests[step["ticket"]] = step["api_key"], step["version"]
        steps.append((checksum(outcome_of(step, requests).sorted(requests)), text(step)))
    return RecordedHistory(vector["seed"], steps, vector["release"])
