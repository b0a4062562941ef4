"""A run over a broker: the cases that are selected and that its versions allow, a few at a time.

Rules: a case has a time limit, and its own stage; results come in the cases' order. A broker that can't be
reached in the beginning ends the run.
"""

from __future__ import annotations

import asyncio
import secrets
import struct
import time
from collections.abc import AsyncIterator, Sequence

from coordwire.client import ClientError, ClientSettings
from coordwire.conformance.broker import (
    authentication,
    classic_groups,
    classic_members,
    classic_rules,
    consumer_groups,
    consumer_members,
    frames,
    framing,
    group_lists,
    offset_rules,
    offsets,
    partitions,
    producers,
    records,
    share_groups,
    share_records,
    streams_groups,
    topics,
    transaction_rules,
    transactions,
)
from coordwire.conformance.broker.stage import CASES, BrokerCase, Stage
from coordwire.conformance.cases import Broken, Lacking
from coordwire.conformance.results import CaseResult, CaseVerdict, is_selected
from coordwire.errors import CoordwireError

SUBJECTS = (
    framing,
    classic_groups,
    classic_rules,
    consumer_groups,
    offsets,
    share_groups,
    share_records,
    streams_groups,
    transactions,
    classic_members,
    group_lists,
    consumer_members,
    offset_rules,
    transaction_rules,
    records,
    producers,
    partitions,
    topics,
    frames,
    authentication,
)
"""The modules that have cases."""

LIMIT = 60.0
"""Seconds for a case."""

TOGETHER = 4
"""Cases that run at the same time."""


def selected(patterns: Sequence[str]) -> list[BrokerCase]:
    """The cases with these addresses, in the order of `SUBJECTS`."""
    order = [module.__name__ for module in SUBJECTS]
    cases = sorted(CASES, key=lambda case: order.index(case.play.__module__))
    return [case for case in cases if is_selected(case.address, patterns)]


async def judged(settings: ClientSettings, cases: Sequence[BrokerCase]) -> AsyncIterator[CaseResult]:
    """The result of each case. Raises `ClientError` where the broker can't be reached."""
    prefix = f"conformance-{secrets.token_hex(4)}"
    async with Stage(settings, prefix) as stage:
        versions = await stage.versions()
        await _warm_up(stage)
    turns = asyncio.Semaphore(TOGETHER)

    async def result(case: BrokerCase, number: int) -> CaseResult:
        async with turns:
            return await _result(case, settings, f"{prefix}-{number}", versions)

    tasks = [asyncio.ensure_future(result(case, number)) for number, case in enumerate(cases)]
    try:
        for task in tasks:
            yield await task
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _warm_up(stage: Stage) -> None:
    """Let a new cluster make the logs of its coordinators."""
    for key_type in (0, 1):
        for _ in range(100):
            answer = await stage.ask("FindCoordinator", key=stage.prefix, key_type=key_type, at=3)
            if not answer.error_code:
                break
            await asyncio.sleep(0.1)


async def _result(
    case: BrokerCase, settings: ClientSettings, prefix: str, versions: dict[str, tuple[int, int]]
) -> CaseResult:
    start = time.perf_counter()
    verdict, reason = await _verdict(case, settings, prefix, versions)
    seconds = time.perf_counter() - start
    return CaseResult(case.address, verdict, reason, seconds, recommended=case.recommended)


async def _verdict(
    case: BrokerCase, settings: ClientSettings, prefix: str, versions: dict[str, tuple[int, int]]
) -> tuple[CaseVerdict, str]:
    for need in case.needs:
        api, _, version = need.partition(" ")
        if versions.get(api, (0, -1))[1] < int(version or 0):
            return CaseVerdict.SKIPPED, f"the broker lacks {need}"
    try:
        async with asyncio.timeout(LIMIT), Stage(settings, prefix) as stage:
            await case.play(stage)
    except Lacking as error:
        return CaseVerdict.SKIPPED, error.reason
    except Broken as error:
        return CaseVerdict.FAIL, error.reason
    except TimeoutError:
        return CaseVerdict.FAIL, f"not done within {LIMIT:g} s"
    except (ClientError, CoordwireError) as error:
        return CaseVerdict.FAIL, f"{type(error).__name__}: {error.reason}"
    except OSError as error:
        return CaseVerdict.FAIL, f"the connection ended: {error.strerror or error}"
    except (AttributeError, IndexError, KeyError, TypeError, ValueError, struct.error) as error:
        return CaseVerdict.FAIL, f"an answer of another form: {error!r}"
    if stage.differences:
        return CaseVerdict.PASS, "; ".join(stage.differences)
    return CaseVerdict.STRICT_PASS, ""
