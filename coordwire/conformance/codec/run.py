"""A run over a codec: each vector is asked, judged, and its memory compared with the archive's rule.

Rules: a codec that can't be started ends the run; one that ends or hangs at a vector fails that alone.
Memory is what the process's peaks show, so that `SLACK` is added to the rule: runtimes allocate ahead of
their needs. What a vector says of one input counts for all of a request.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterable
from typing import Any

from coordwire.conformance.codec.verdicts import Judgement, Vector, reading, together, writing
from coordwire.conformance.process import AskedProcess, ProcessDied
from coordwire.conformance.results import CaseResult, CaseVerdict

SLACK = 256 << 20
"""Bytes beyond the rule that a peak may grow by at a request."""


async def judged(codec: AskedProcess, vectors: Iterable[Vector]) -> AsyncIterator[CaseResult]:
    """The result of each vector. Raises `OSError` where the codec can't be started."""
    for vector in vectors:
        start = time.perf_counter()
        output = ""
        try:
            verdict, reason = await _judgement(codec, vector)
        except ProcessDied as error:
            verdict, reason = CaseVerdict.FAIL, error.reason
        if verdict is CaseVerdict.FAIL:
            output = await codec.output()
        yield CaseResult(vector["id"], verdict, reason, time.perf_counter() - start, output=output)


async def _judgement(codec: AskedProcess, vector: Vector) -> Judgement:
    read = reading(vector, await codec.ask(_request(vector, "read", "hex")))
    if vector["id"].startswith("messages/") and "unknown_tags" not in vector:
        read = together(read, writing(vector, await codec.ask(_request(vector, "write", "json"))))
    growth = codec.growth()
    if "most_allocated" in vector and growth > vector["most_allocated"] + SLACK:
        limit = f"the rule is {vector['most_allocated']:,} bytes"
        return (
            CaseVerdict.FAIL,
            f"allocates {growth >> 20:,} MB for {len(vector['hex']) // 2:,} bytes; {limit}",
        )
    return read


def _request(vector: Vector, do: str, content: str) -> dict[str, Any]:
    names = ("api_key", "api", "direction", "version", content)
    return {"do": do} | {name: vector[name] for name in names}
