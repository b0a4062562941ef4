"""The requests about offsets, of groups of any kind."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.codec import Message
from coordwire.coordinator.offsets.commit import (
    commit,
    commit_transactional,
    refused_commit,
    refused_transactional,
)
from coordwire.coordinator.offsets.deletion import delete_offsets
from coordwire.coordinator.offsets.fetch import (
    fetch,
    fetch_response,
    refused_fetch,
    requested_groups,
)
from coordwire.coordinator.refusal import translated_for_fetch
from coordwire.coordinator.state import Result
from coordwire.coordinator.writes import Handler, IncomingRequest
from coordwire.enums import ErrorCode
from coordwire.messages import (
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from coordwire.messages.offset_fetch import OffsetFetchResponseGroup

_INVALID_GROUP_ID = int(ErrorCode.INVALID_GROUP_ID)


def _commit(call: IncomingRequest) -> None:
    request: OffsetCommitRequest = call.request
    call.write(
        lambda: commit(call.state, request, call.version), lambda error: refused_commit(request, error)
    )


def _commit_transactional(call: IncomingRequest) -> None:
    request: TxnOffsetCommitRequest = call.request
    if not request.group_id:
        call.reply.send(refused_transactional(request, _INVALID_GROUP_ID))
        return
    call.write(
        lambda: commit_transactional(call.state, request, call.version),
        lambda error: refused_transactional(request, error),
    )


def _fetch(call: IncomingRequest) -> None:
    request, version = call.request, call.version
    groups = requested_groups(request, version)
    fetched: list[OffsetFetchResponseGroup] = []
    if not request.require_stable:
        for requested in groups:
            if call.error:
                fetched.append(refused_fetch(requested, call.error, version))
            else:
                fetched.append(fetch(call.state, requested, version, stable=False))
        call.reply.send(fetch_response(fetched, version))
        return

    def operation() -> Result:
        fetched.extend(fetch(call.state, requested, version, stable=True) for requested in groups)
        response = fetch_response(fetched, version)
        if all(group.error_code for group in fetched):
            call.reply.send(response)  # refusals, or nothing, need no durable state
        return Result(response=response)

    def failed(error: int) -> Message:
        # A group that was refused did not wait, and keeps its own error.
        refusals = {number: group for number, group in enumerate(fetched) if group.error_code}
        return fetch_response(
            [
                refusals.get(number) or refused_fetch(requested, error, version)
                for number, requested in enumerate(groups)
            ],
            version,
        )

    call.write(operation, failed, translated_for_fetch)


def _delete_offsets(call: IncomingRequest) -> None:
    request: OffsetDeleteRequest = call.request
    if not request.group_id:
        call.reply.send(OffsetDeleteResponse(error_code=_INVALID_GROUP_ID))
        return
    call.write(
        lambda: delete_offsets(call.state, request),
        lambda error: OffsetDeleteResponse(error_code=error),
    )


HANDLERS: Mapping[type[Message], Handler] = {
    OffsetCommitRequest: _commit,
    TxnOffsetCommitRequest: _commit_transactional,
    OffsetFetchRequest: _fetch,
    OffsetDeleteRequest: _delete_offsets,
}
