"""What is kept of the cases in tests/data/corners: Kafka's answers, and why this broker's differ."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.broker.corners.brokers import RELEASE
from tests.broker.corners.runner import Outcome

FOLDER = Path(__file__).parents[2] / "data" / "corners"
_ANSWERS = FOLDER / f"kafka-{RELEASE}.jsonl"
DIFFERENCES = FOLDER / "differences.json"


def kafkas_answers() -> dict[str, list[Outcome]]:
    """By case, what the real broker did."""
    lines = _ANSWERS.read_text(encoding="utf-8").splitlines() if _ANSWERS.exists() else []
    return {line["case"]: line["outcomes"] for line in map(json.loads, lines)}


def keep(answers: Mapping[str, list[Outcome]]) -> None:
    """Write what the real broker did."""
    lines = (
        json.dumps({"case": name, "outcomes": answer}, ensure_ascii=False) for name, answer in answers.items()
    )
    _ANSWERS.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def reasons() -> dict[str, str]:
    """By case, why this broker answers it otherwise."""
    result: dict[str, str] = json.loads(DIFFERENCES.read_text(encoding="utf-8"))
    return result
