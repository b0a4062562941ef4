"""Failures that are a client's own: a service can neither cause nor mend them.

Strategy: each is known by what only it leaves: the client's own error and where it is from, or what went over
its connections.
Rules: none counts for versions of the client in which it was not seen, so that the list ends with its causes;
`tests/testing/simulation/test_findings.py` repeats them. A failure of the service is never taken for one
because it has the same checker.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from traceback import walk_tb
from typing import NamedTuple

from coordwire.broker.harness import Traffic
from coordwire.enums import ErrorCode
from coordwire.messages import (
    ListOffsetsResponse,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TxnOffsetCommitRequest,
)
from coordwire.messages.offset_fetch import OffsetFetchRequestTopic, OffsetFetchRequestTopics
from coordwire.testing.simulation.checkers import Violation

__all__ = ["client_fault"]

_COMMITS = OffsetCommitRequest, TxnOffsetCommitRequest
_WAITS = "caught_up", "NoProgress"
_NAMED = re.compile(r"(?<!\S)(\S+-\d+) up to ")
"""The partitions that such a failure names."""

_REFUSALS = 20
"""In a row, without a look at the metadata; there are ten a second."""

_STILL_NS = 5_000_000_000


class _ClientFault(NamedTuple):
    """package, last: with which it was seen, and up to which version; text: what it is."""

    package: str
    last: tuple[int, int]
    text: str
    has_caused: Callable[[BaseException, Traffic | None], bool]


def _has_misread_offsets(failure: BaseException, traffic: Traffic | None) -> bool:
    """Whether the process with the last commit was answered by an error when it last asked for the offset of
    the partition that the failure names."""
    if traffic is None or not isinstance(failure, Violation) or failure.checker != "FallingOffset":
        return False
    errors: dict[tuple[str, str], bool] = {}
    process = ""
    for entry in traffic.entries():
        if isinstance(entry.message, _COMMITS):
            process = _process(entry.flow)
        elif isinstance(entry.message, OffsetFetchResponse) and entry.request is not None:
            is_error = any(_error_codes(entry.message))
            owner = _process(entry.request.flow)
            errors |= {(owner, partition): is_error for partition in _partitions_of(entry.request.message)}
    return any(
        is_error and owner == process and f" of {partition}, after " in str(failure)
        for (owner, partition), is_error in errors.items()
    )


def _asks_an_old_leader(failure: BaseException, traffic: Traffic | None) -> bool:
    """Whether at the end processes ask nodes for the offsets of the partitions that the failure names, again
    and again, though each answer is that the node does not lead it, and ask nothing for metadata."""
    if traffic is None or not isinstance(failure, Violation) or failure.checker not in _WAITS:
        return False
    refusals: dict[str, Counter[str]] = {}
    last: dict[str, int] = {}
    now = 0
    for entry in traffic.entries():
        now = entry.time_ns or now
        if entry.request is None:
            continue
        of_process = refusals.setdefault(_process(entry.request.flow), Counter())
        if isinstance(entry.message, MetadataResponse):
            of_process.clear()
        elif isinstance(entry.message, ListOffsetsResponse):
            for topic in entry.message.topics:
                for answer in topic.partitions:
                    partition = f"{topic.name}-{answer.partition_index}"
                    is_refused = answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                    of_process[partition] = of_process[partition] + 1 if is_refused else 0
                    last[partition] = now
    stuck = {
        partition
        for of_process in refusals.values()
        for partition, count in of_process.items()
        if count >= _REFUSALS and now - last[partition] < _STILL_NS
    }
    named = _NAMED.findall(str(failure))
    return bool(named) and stuck.issuperset(named)


def _partitions_of(request: object) -> Iterator[str]:
    """The partitions that an OffsetFetch names."""
    if isinstance(request, OffsetFetchRequest):
        topics: list[OffsetFetchRequestTopic | OffsetFetchRequestTopics] = [*(request.topics or ())]
        topics += [topic for group in request.groups for topic in group.topics or ()]
        yield from (f"{topic.name}-{index}" for topic in topics for index in topic.partition_indexes)


def _error_codes(response: OffsetFetchResponse) -> Iterator[int]:
    """The errors that are those of a whole group."""
    yield response.error_code
    for group in response.groups:
        yield group.error_code


def _process(flow: str) -> str:
    """The address of the process that has sent something."""
    return flow.partition(":")[0]


def _has_asserted_as_it_was_fenced(failure: BaseException, traffic: Traffic | None) -> bool:
    """Whether the end of `async with producer.transaction()` has asked for what a fenced producer can't do.

    A service that does so by itself is not excused.
    """
    return (
        isinstance(failure, AssertionError)
        and str(failure).startswith("Invalid state transition TransactionState.FATAL_ERROR")
        and any(
            frame.f_code.co_qualname == "TransactionContext.__aexit__"
            and frame.f_globals.get("__name__") == "aiokafka.producer.producer"
            for frame, _ in walk_tb(failure.__traceback__)
        )
    )


_MISREAD = "takes an OffsetFetch with an error for one without offsets"
_OLD_LEADER = (
    "asks a node that leads no more, as long as its metadata last: metadata_max_age_ms=10_000 avoids it"
)
_FENCED = "ends a transaction by an assertion where it is fenced"

_CLIENT_FAULTS = (
    _ClientFault("aiokafka", (0, 14), _MISREAD, _has_misread_offsets),
    _ClientFault("aiokafka", (0, 14), _OLD_LEADER, _asks_an_old_leader),
    _ClientFault("aiokafka", (0, 14), _FENCED, _has_asserted_as_it_was_fenced),
)


def client_fault(failure: BaseException, traffic: Traffic | None) -> str:
    """What a client has done to cause a failure, which has its traceback yet, or nothing. traffic: all of
    the run."""
    for fault in _CLIENT_FAULTS:
        if _is_used(fault.package, fault.last) and fault.has_caused(failure, traffic):
            return f"{fault.package} {fault.text}"
    return ""


def _is_used(package: str, last: tuple[int, int]) -> bool:
    """Whether a package is loaded, of no later version."""
    if package not in sys.modules:
        return False
    try:
        numbers = re.findall(r"\d+", version(package))[:2]
    except PackageNotFoundError:
        return False
    return tuple(map(int, numbers)) <= last
