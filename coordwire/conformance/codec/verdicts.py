"""The archive's vectors, and an answer of a codec against the vector's: what Apache Kafka said.

Rules: a file is read whole and once, from a folder that was unpacked or as the repository keeps it; what is
not an archive is an `OSError` or a `ValueError`. A vector is judged as the archive's page has it: what is
valid must be read, and give the same bytes; what is invalid must be refused; what is acceptable may be
either, with Kafka's value where it is read. Values are compared in Kafka's JSON, but for records, which that
leaves empty. An answer that shows neither bytes nor value is within the rule only as far as it goes.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from coordwire.conformance.results import CaseVerdict, is_selected

Vector = dict[str, Any]

FAMILIES = ("messages", "hostile", "hostile-large")
"""Files whose vectors a codec of messages is asked, in their order."""


def vectors(folder: Path, patterns: Sequence[str] = ()) -> Iterator[Vector]:
    """The vectors with these addresses. Raises `OSError`; `ValueError` for lines that are none."""
    for family in FAMILIES:
        for line in _content(folder / f"{family}.jsonl").splitlines():
            vector = json.loads(line)
            if not isinstance(vector, dict) or not isinstance(vector.get("id"), str):
                raise ValueError(f"{family}.jsonl has a line that is not a vector")
            if is_selected(vector["id"], patterns):
                yield vector


def _content(path: Path) -> bytes:
    packed = path.with_name(f"{path.name}.xz")
    if packed.exists():
        return lzma.decompress(packed.read_bytes())
    return path.read_bytes()


Judgement = tuple[CaseVerdict, str]
"""A verdict, and its reason."""

RECORDS = ("records", "unalignedRecords")
"""Fields whose bytes Kafka's JSON doesn't have."""

LONGEST = 200


def reading(vector: Vector, answer: dict[str, Any]) -> Judgement:
    """The verdict on what was read."""
    if "lacks" in answer:
        return CaseVerdict.SKIPPED, str(answer["lacks"])[:LONGEST]
    verdict = vector.get("verdict", "valid")
    if "refused" in answer:
        return _refusal(vector, verdict, str(answer["refused"])[:LONGEST])
    if verdict == "invalid":
        return CaseVerdict.FAIL, f"reads what Kafka refuses: {vector['reason'][:LONGEST]}"
    if vector.get("kafka") == "refuses":
        return CaseVerdict.PASS, "reads what Kafka refuses for a limit of its own"
    if verdict == "valid" and answer.get("hex", vector["hex"]) != vector["hex"]:
        return CaseVerdict.FAIL, f"writes other bytes again: {str(answer['hex'])[:LONGEST]}"
    has_value = "json" in answer and "json" in vector
    if has_value and (difference := next(_differences(vector["json"], answer["json"]), None)):
        return CaseVerdict.FAIL, f"reads another value: {difference[:LONGEST]}"
    if has_value and ("hex" in answer or verdict != "valid"):
        return CaseVerdict.STRICT_PASS, ""
    if "hex" in answer or has_value or verdict != "valid":
        return CaseVerdict.PASS, ""
    return CaseVerdict.PARTIAL, "shows neither bytes nor value of what it reads"


def _refusal(vector: Vector, verdict: str, reason: str) -> Judgement:
    if verdict == "valid":
        return CaseVerdict.FAIL, f"refuses what Kafka reads: {reason}"
    if verdict == "invalid" or vector["kafka"] == "refuses":
        return CaseVerdict.STRICT_PASS, ""
    return CaseVerdict.PASS, f"refuses what Kafka reads: {reason}"


def writing(vector: Vector, answer: dict[str, Any]) -> Judgement:
    """The verdict on what was written for the vector's JSON."""
    if "lacks" in answer:
        return CaseVerdict.SKIPPED, str(answer["lacks"])[:LONGEST]
    if "refused" in answer:
        return CaseVerdict.FAIL, f"doesn't write what Kafka writes: {str(answer['refused'])[:LONGEST]}"
    if answer.get("hex") != vector["hex"]:
        return CaseVerdict.FAIL, f"writes other bytes: {str(answer.get('hex'))[:LONGEST]}"
    return CaseVerdict.STRICT_PASS, ""


def together(read: Judgement, written: Judgement) -> Judgement:
    """The verdict on a message that was read and written: the worse; what only one of the two has counts."""
    if CaseVerdict.SKIPPED in (read[0], written[0]):
        return read if written[0] is CaseVerdict.SKIPPED else written
    order = list(CaseVerdict)
    return max(read, written, key=lambda judgement: order.index(judgement[0]))


def _differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Where two values differ: as paths with both."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in expected | actual:
            if name in RECORDS and isinstance(expected.get(name), str):
                continue
            if name not in expected or name not in actual:
                yield f"{path}/{name} is {'missing' if name in expected else 'too much'}"
            else:
                yield from _differences(expected[name], actual[name], f"{path}/{name}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for index, pair in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(*pair, f"{path}/{index}")
    elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
        yield f"{path or '/'} is {actual!r}, not {expected!r}"
