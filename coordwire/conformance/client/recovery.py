"""Plays that many cases share: a request is refused with an error, and the client recovers or gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from coordwire.conformance.client.stage import ClientPlay, ClientStage
from coordwire.conformance.client.wire import WireExchange

ERRORS = "https://kafka.apache.org/protocol#protocol_error_codes"
MOVED = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
"""Errors after which a client has to look for the coordinator."""

Check = Callable[[ClientStage, WireExchange, WireExchange], None]
"""A check of the request that was refused and of the last that follows."""


def pairs_of(errors: dict[str, str]) -> list[tuple[str, str]]:
    """APIs with each of their errors."""
    return [(api, error) for api, names in errors.items() for error in names.split()]


def recovers(
    api: str,
    error: str,
    steps: Sequence[str],
    *,
    check: Check | None = None,
    condition: Callable[[Any], bool] = bool,
    is_forgotten: bool = False,
    protocol: str = "classic",
    **settings: Any,
) -> ClientPlay:
    """A member consumes a record, and another after it has recovered. steps: requests that must follow the
    one that was refused, in their order; condition: which request is refused, the first by default;
    is_forgotten: whether the coordinator doesn't know the member's id afterwards, as after a loss."""

    async def play(stage: ClientStage) -> None:
        stage.fault(f"{api} error={error}", condition)
        if is_forgotten:

            def is_lost(request: Any) -> bool:
                refused = (exchange for exchange in stage.sent(api) if error in exchange.errors)
                return request.member_id in [exchange.request.member_id for exchange in refused]

            stage.fault("JoinGroup error=UNKNOWN_MEMBER_ID times=all", is_lost)
        stage.write("one")
        consuming = stage.later(stage.consume(2, protocol=protocol, commit=True, **settings))
        await stage.until(
            lambda: any(error in exchange.errors for exchange in stage.sent(api)), f"{api} is sent"
        )
        refused = follows = stage.first(api, error)
        if is_forgotten:
            lost = {"member_id": refused.request.member_id}
            await stage.ask_group("LeaveGroup", 4, members=[lost])
        for step in steps:
            follows = await stage.until_sent(step, follows)
        stage.write("two")
        stage.succeeded(await consuming, "one", "two")
        stage.equal("the committed offset", stage.committed(), 2)
        if check is not None:
            check(stage, refused, follows)

    return play


def gives_up(
    api: str, error: str, *, protocol: str = "classic", most: int = 1, **settings: Any
) -> ClientPlay:
    """A member reports an error that is not retriable. most: how often it may ask."""

    async def play(stage: ClientStage) -> None:
        stage.fault(f"{api} error={error} times=all")
        stage.write("one")
        report = await stage.consume(2, protocol=protocol, commit=True, **settings)
        refused = [exchange for exchange in stage.sent(api) if error in exchange.errors]
        stage.true(bool(refused), f"no {api} is sent")
        stage.failed(report)
        stage.true(len(refused) <= most, f"{len(refused)} times {api}, each of them refused with {error}")

    return play


def has_records(response: Any) -> bool:
    """Whether an answer to Fetch has records."""
    return any(part.records for topic in response.responses for part in topic.partitions)


async def never_gives(
    stage: ClientStage, change: Callable[[WireExchange], None], value: str, **settings: Any
) -> None:
    """A member that gets false answers for a second gives no record of theirs to its application."""
    rule = stage.wire.rule(
        "Fetch", change, times=None, condition=lambda exchange: has_records(exchange.response)
    )
    consuming = stage.later(stage.consume(1, **settings))
    await stage.until(lambda: rule.hits > 0, "Fetch is sent")
    await asyncio.sleep(1)
    rule.times = rule.hits
    report = await consuming
    stage.true(value not in report.values, f"consumed {value!r}")
