"""D1 to D4, D7 and D8, as far as they are about what a coordinator of drafts 1 and 2 does in which order.

Rules: these need what the coordinator has sent and written (`Sent`, `Written`), which runs of the simulator
have; on other histories they find nothing. A run has one group.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from coordwire.designs.drafts.actions import Disconnect, Noted
from coordwire.messages.draft_1 import (
    Draft1PingRequest,
    Draft1RegisterRequest,
    Draft1StartRequest,
    Draft1StartResponse,
    Draft1StopRequest,
)
from coordwire.messages.draft_2 import (
    Draft2PingRequest,
    Draft2RegisterConsumerRequest,
    Draft2RegisterConsumerResponse,
    Draft2StartFetcherRequest,
    Draft2StartFetcherResponse,
    Draft2StopFetcherRequest,
    Draft2StopFetcherResponse,
)
from tests.designs.drafts.cluster import Elected, Entry, Sent, Written

_PINGS = (Draft1PingRequest, Draft2PingRequest)
_STOPS = (Draft1StopRequest, Draft2StopFetcherRequest)
_STARTS = (Draft1StartRequest, Draft2StartFetcherRequest)
_REGISTRATIONS = (Draft1RegisterRequest, Draft2RegisterConsumerRequest)


def _sent(entry: Entry) -> Any:
    """The message that leaves with this entry."""
    return entry.what.message if isinstance(entry.what, Sent) else None


def _note(entry: Entry) -> str:
    return entry.what.name if isinstance(entry.what, Noted) else ""


def d1_a_new_coordinator_waits(world: Any) -> Iterator[str]:
    """Draft 2: nobody is stopped and started before all that own something have registered again, or the
    longest session timeout is over."""
    if world.draft != 2:
        return
    least = world.broker_settings.get("min_session_timeout_ms", 1_000)
    waiting: dict[str, tuple[int, set[str], int]] = {}
    for entry in world.history:
        message = _sent(entry)
        if isinstance(entry.what, Elected):
            waiting[entry.name] = entry.time, set(entry.what.owners), least
        elif isinstance(message, Draft2RegisterConsumerResponse) and not message.error_code:
            if entry.name in waiting:
                since, owners, longest = waiting[entry.name]
                session = world.configs[entry.peer].session_timeout_ms
                waiting[entry.name] = since, owners - {entry.peer}, max(longest, session)
        elif isinstance(message, Draft2StopFetcherRequest) and entry.name in waiting:
            since, owners, longest = waiting.pop(entry.name)
            if owners and entry.time - since < longest:
                yield (
                    f"D1: {entry.name} rebalances {entry.time - since} ms after its election without {owners}"
                )


@dataclass(slots=True)
class _Round:
    """One rebalance: who was stopped and started, and who has answered. pending: offsets that were reported
    in it, and are not written yet."""

    stopped: set[str] = field(default_factory=set)
    stop_answers: set[str] = field(default_factory=set)
    started: set[str] = field(default_factory=set)
    start_answers: set[str] = field(default_factory=set)
    pending: dict[tuple[str, str], int] = field(default_factory=dict)


def d2_d3_steps_are_in_order(world: Any) -> Iterator[str]:
    """Stop to all; in draft 2 wait for all and commit; Start to all, with the offsets; wait; then write who
    owns what. A rebalance begins when the one before it has ended."""
    rounds: dict[str, _Round] = {}
    unanswered: dict[tuple[str, str], int] = {}  # Starts on a connection, which are answered in order
    for entry in world.history:
        message = _sent(entry)
        answered = rounds.get(entry.peer)
        if isinstance(message, _STOPS):
            current = rounds.setdefault(entry.name, _Round())
            if current.started:
                yield f"D2: {entry.name} stops {entry.peer} at {entry.time}, though a rebalance is not over"
            current.stopped.add(entry.peer)
        elif isinstance(message, _STARTS):
            current = rounds.setdefault(entry.name, _Round())
            if entry.peer not in current.stopped:
                yield f"D3: {entry.name} starts {entry.peer} at {entry.time} without a Stop"
            if world.draft == 2 and current.stopped != current.stop_answers:
                yield f"D3: {entry.name} starts {entry.peer} at {entry.time}, before all have stopped"
            if world.draft == 2 and current.pending:
                yield (
                    f"D3: {entry.name} starts {entry.peer} at {entry.time}, "
                    f"without committing {current.pending}"
                )
            current.started.add(entry.peer)
            unanswered[entry.name, entry.peer] = unanswered.get((entry.name, entry.peer), 0) + 1
        elif isinstance(entry.what, _REGISTRATIONS):
            unanswered.pop((entry.peer, entry.name), None)
        elif isinstance(entry.what, Draft2StopFetcherResponse) and answered is not None:
            answered.stop_answers.add(entry.name)
            answered.pending |= {
                (part.topic or "", part.partition or ""): part.offset for part in entry.what.offset_info
            }
        elif isinstance(entry.what, Draft1StartResponse | Draft2StartFetcherResponse):
            remaining = unanswered[entry.peer, entry.name] = unanswered.get((entry.peer, entry.name), 0) - 1
            if answered is not None and not remaining:
                answered.start_answers.add(entry.name)
        elif isinstance(entry.what, Written) and entry.name in rounds:
            yield from _written(entry, rounds)
        elif _note(entry) in ("RebalanceAttemptFailed", "Resigned", "Elected"):
            rounds.pop(entry.name, None)


def _written(one: Entry, rounds: dict[str, _Round]) -> Iterator[str]:
    """A coordinator writes an offset, or who owns a partition, which ends its rebalance."""
    current, parts = rounds[one.name], one.what.path.split("/")
    if parts[3:4] == ["offsets"]:
        current.pending.pop((parts[-2], parts[-1]), None)
    elif parts[3:4] == ["owners"] and len(parts) == 6:
        if current.started != current.stopped or current.started - current.start_answers:
            yield f"D3: {one.name} writes owners at {one.time} before all have started"
        del rounds[one.name]


def d3_committed_offsets_do_not_fall(world: Any) -> Iterator[str]:
    """Draft 2: who is started goes on where the one before it has stopped, or has reported last."""
    if world.draft != 2:
        return
    last: dict[str, int] = {}
    for entry in world.history:
        if isinstance(entry.what, Written) and "/offsets/" in entry.what.path:
            offset = int(entry.what.data or b"0")
            if offset < last.get(entry.what.path, 0):
                yield f"D3: {entry.what.path} falls from {last[entry.what.path]} to {offset} at {entry.time}"
            last[entry.what.path] = offset


def _answers_late(world: Any) -> bool:
    """Whether a consumer is pinged before its registration is answered: draft 2 by its section 2."""
    return bool(getattr(world, "overview", False)) or (
        hasattr(world, "run") and getattr(world.run, "design", "") == "draft-2-overview"
    )


def d4_who_has_failed_is_left_alone(world: Any) -> Iterator[str]:
    """A consumer that has failed is asked nothing more; pings are at least their interval apart."""
    gone: set[tuple[str, str]] = set()
    pinged: dict[tuple[str, str], int] = {}
    for entry in world.history:
        message, pair = _sent(entry), (entry.name, entry.peer)
        if _note(entry) in ("ConsumerFailed", "ConsumerClosed"):
            name = entry.what.text.partition("/")[2]
            gone.add((entry.name, name))
            pinged.pop((entry.name, name), None)
        elif isinstance(message, Draft2RegisterConsumerResponse):
            gone.discard(pair)
            pinged.pop(pair, None)
        elif isinstance(entry.what, Draft1RegisterRequest) or (
            isinstance(entry.what, Draft2RegisterConsumerRequest) and _answers_late(world)
        ):
            gone.discard((entry.peer, entry.name))
            pinged.pop((entry.peer, entry.name), None)
        elif isinstance(message, (*_PINGS, *_STOPS, *_STARTS)) and pair in gone:
            yield (
                f"D4: {entry.name} sends {entry.peer} "
                f"{type(message).__name__} at {entry.time}, after its failure"
            )
        if isinstance(message, _PINGS):
            config = world.configs[entry.peer]
            interval = config.ping_interval_ms if world.draft == 1 else config.session_timeout_ms // 3
            if entry.time - pinged.get(pair, -interval) < interval:
                yield f"D4: {entry.name} pings {entry.peer} again after {entry.time - pinged[pair]} ms"
            pinged[pair] = entry.time


def d7_the_consumer_closes(world: Any) -> Iterator[str]:
    """A registration that is refused is answered, and the coordinator does not close the connection."""
    refused: dict[tuple[str, str], int] = {}
    for entry in world.history:
        message = _sent(entry)
        if isinstance(message, Draft2RegisterConsumerResponse) and message.error_code:
            refused[entry.name, entry.peer] = entry.time
        elif isinstance(entry.what, Disconnect) and refused.get((entry.name, entry.peer)) == entry.time:
            yield (
                f"D7: {entry.name} closes the connection of {entry.peer} at "
                f"{entry.time}, which it has refused"
            )


def d8_attempts_back_off(world: Any) -> Iterator[str]:
    """Draft 2: after an attempt that failed nobody is stopped before the backoff is over."""
    if world.draft != 2:
        return
    backoff = world.broker_settings.get("rebalance_backoff_ms", 2_000)
    failed: dict[str, int] = {}
    for entry in world.history:
        if _note(entry) == "RebalanceAttemptFailed":
            failed[entry.name] = entry.time
        elif _note(entry) in ("ConsumerRebalanceFailedException", "Resigned", "Elected"):
            failed.pop(entry.name, None)
        elif isinstance(_sent(entry), Draft2StopFetcherRequest) and entry.name in failed:
            since = entry.time - failed.pop(entry.name)
            if since < backoff:
                yield f"D8: {entry.name} retries {since} ms after an attempt that failed, at {entry.time}"


ORDER = (
    d1_a_new_coordinator_waits, d2_d3_steps_are_in_order, d3_committed_offsets_do_not_fall,
    d4_who_has_failed_is_left_alone, d7_the_consumer_closes, d8_attempts_back_off,
)  # fmt: skip
