"""Plays that many cases share: a request is refused with an error, and the client recovers or gives up."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from coordwire.conformance.client.stage import ClientPlay, ClientStage
from coordwire.conformance.client.wire import WireExchange

ERRORS = "https://kafka.apache.org/protocol#protocol_error_codes"
MOVED = ("NOT_COORDINATOR", "COORDINATOR_NOT_AVAILABLE")
"""Errors after which a client has to look for the coordinator."""

Check = Callable[[ClientStage, WireExchange, WireExchange], None]
"""A check of the request that was refused and of the last that follows."""


def recovers(
    api: str,
    error: str,
    steps: Sequence[str],
    *,
    check: Check | None = None,
    condition: Callable[[Any], bool] = bool,
    protocol: str = "classic",
    **settings: Any,
) -> ClientPlay:
    """A member consumes a record, and another after it has recovered. steps: requests that must follow the
    one that was refused, in their order; condition: which request is refused, the first by default."""

    async def play(stage: ClientStage) -> None:
        stage.fault(f"{api} error={error}", condition)
        stage.write("one")
        consuming = stage.later(stage.consume(2, protocol=protocol, commit=True, **settings))
        await stage.until(
            lambda: any(error in exchange.errors for exchange in stage.sent(api)), f"{api} is sent"
        )
        refused = follows = stage.first(api, error)
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
