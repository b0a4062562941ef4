"""A run over a client: the cases that are selected, a few at a time, each by a process of its own.

Rules: a process plays one case after another; one that ends or hangs fails its case alone, and is started
again. A case has a time limit; results come in the cases' order. A client that can't be started ends the run.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence

from coordwire.conformance.cases import Broken, Lacking
from coordwire.conformance.client import (
    classic_groups,
    consumer_groups,
    framing,
    offsets,
    records,
    transactions,
)
from coordwire.conformance.client.stage import CASES, ClientCase, ClientStage, ClientUnderTest
from coordwire.conformance.process import ProcessDied
from coordwire.conformance.results import CaseResult, CaseVerdict, is_selected
from coordwire.errors import CoordwireError

SUBJECTS = (classic_groups, consumer_groups, framing, offsets, records, transactions)
"""The modules that have cases."""

LIMIT = 60.0
"""Seconds for a case."""


def selected(patterns: Sequence[str]) -> list[ClientCase]:
    """The cases with these addresses, in their order."""
    return sorted((case for case in CASES if is_selected(case.address, patterns)), key=_place)


def _place(case: ClientCase) -> tuple[str, int]:
    folder, _, number = case.address.rpartition("/")
    return folder, int(number)


async def judged(
    clients: Sequence[ClientUnderTest], cases: Sequence[ClientCase]
) -> AsyncIterator[CaseResult]:
    """The result of each case. clients: each plays one case at a time."""
    idle: asyncio.Queue[ClientUnderTest] = asyncio.Queue()
    for client in clients:
        idle.put_nowait(client)

    async def result(case: ClientCase) -> CaseResult:
        client = await idle.get()
        try:
            return await _result(case, client)
        finally:
            idle.put_nowait(client)

    tasks = [asyncio.ensure_future(result(case)) for case in cases]
    try:
        for task in tasks:
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _result(case: ClientCase, client: ClientUnderTest) -> CaseResult:
    start = time.perf_counter()
    verdict, reason = await _verdict(case, client)
    seconds, output = time.perf_counter() - start, await client.output()
    if verdict is not CaseVerdict.FAIL:
        output = ""
    return CaseResult(case.address, verdict, reason, seconds, case.recommended, output)


async def _verdict(case: ClientCase, client: ClientUnderTest) -> tuple[CaseVerdict, str]:
    try:
        async with asyncio.timeout(LIMIT), ClientStage(client, case) as stage:
            await case.play(stage)
    except Lacking as error:
        return CaseVerdict.SKIPPED, error.reason
    except (Broken, ProcessDied) as error:
        return CaseVerdict.FAIL, error.reason
    except TimeoutError:
        return CaseVerdict.FAIL, f"not done within {LIMIT:g} s"
    except CoordwireError as error:
        return CaseVerdict.FAIL, f"{type(error).__name__}: {error.reason}"
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        return CaseVerdict.FAIL, f"a request of another form: {error!r}"
    return CaseVerdict.PASS, ""
