"""ListGroups and DeleteGroups: groups of all kinds.

A list shows groups as of the last durable write. A deletion waits for pending appends first, which decide
whether a group is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordwire.codec import Message
from coordwire.coordinator.hash_tables import HashSet
from coordwire.coordinator.records import offset_tombstone
from coordwire.coordinator.refusal import translated
from coordwire.coordinator.state import Result, State
from coordwire.coordinator.writes import Handler, IncomingRequest
from coordwire.enums import ErrorCode
from coordwire.logs import LogRecord
from coordwire.messages import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
)
from coordwire.messages.delete_groups import DeletableGroupResult
from coordwire.messages.delete_share_group_state import DeleteStateResult


def _list(call: IncomingRequest) -> None:
    if call.error == ErrorCode.NOT_COORDINATOR:
        call.reply.send(ListGroupsResponse())
    elif call.error:
        call.reply.send(ListGroupsResponse(error_code=call.error))
    else:
        call.reply.send(_list_groups(call.state, call.request))


def _delete_groups(call: IncomingRequest) -> None:
    names = list(dict.fromkeys(call.request.groups_names))
    refused: list[DeletableGroupResult] = []

    def on_error(error: int) -> DeleteGroupsResponse:
        return DeleteGroupsResponse(
            results=refused + [DeletableGroupResult(group_id=name, error_code=error) for name in names]
        )

    if call.error or not names:
        call.reply.send(on_error(call.error))
        return

    def refuse(name: str, error: int) -> None:
        names.remove(name)
        refused.append(DeletableGroupResult(group_id=name, error_code=error))

    requests: dict[str, Message] = {}

    def prepare() -> Result:
        records: list[LogRecord] = []
        state = call.state
        for name in list(names):
            group = state.groups.get(name)
            if group is None:
                continue
            kind = state.kind_of(group)
            error = kind.deletion_error(group)
            request = None if error else kind.deletion_request(state, group, records)
            if error:
                refuse(name, error)
            elif request is not None:
                requests[name] = request
        return Result(records)

    def delete() -> None:
        if names:
            state = call.state
            state.submit(lambda current: _delete(current, names, refused), call.completed(worded))
        else:
            call.reply.send(on_error(0))

    def worded(error: int, message: str | None) -> DeleteGroupsResponse:
        return on_error(error)

    def settled(error: int, _: Result) -> None:
        if error:
            names[:] = dict.fromkeys(call.request.groups_names)
            refused.clear()
            call.reply.send(on_error(translated(error)))
            return
        waiting = dict(requests)

        def persisted(name: str, answer: Any, error: int) -> None:
            request: Any = waiting.pop(name)
            if answer is None:  # an error of each partition that was asked for
                failures = [error for topic in request.topics if topic.partitions]
            else:
                failures = list(map(_first_error, answer.results))
            failures = list(filter(None, failures))
            if failures:
                refuse(name, failures[-1])
            if not waiting:
                delete()

        for name in HashSet.of([*requests, *(result.group_id for result in refused)]):
            if name not in requests:
                continue
            call.state.persister.call(
                requests[name],
                lambda answer, error, _, name=name: persisted(name, answer, error),  # type: ignore[misc]
            )
        if not requests:
            delete()

    call.writes.run(prepare, settled)


def _first_error(topic: DeleteStateResult) -> int:
    """The first error of a topic's partitions; 0 without one."""
    return next((partition.error_code for partition in topic.partitions if partition.error_code), 0)


def _list_groups(state: State, request: ListGroupsRequest) -> ListGroupsResponse:
    """List groups in one of the states and of one of the types, in upper or lower case; without any, all."""
    states = {name.lower().strip() for name in request.states_filter}
    types = {name.lower() for name in request.types_filter}
    response = ListGroupsResponse()
    for _, group in state.groups.committed_items():
        kind = state.kind_of(group)
        if types and kind.name not in types:
            continue
        entry = kind.list_entry(group)
        if not states or kind.state_filter(entry.group_state) in states:
            response.groups.append(entry)
    return response


def _delete(state: State, group_ids: list[str], refused: list[DeletableGroupResult]) -> Result:
    """Delete empty groups with their offsets. refused: the results of other groups."""
    response = DeleteGroupsResponse(results=list(refused))
    records: list[LogRecord] = []
    for group_id in group_ids:
        group = state.groups.get(group_id)
        error = 0
        if group is None or group.is_dead:
            error = int(ErrorCode.GROUP_ID_NOT_FOUND)
        elif not group.is_empty:
            error = int(ErrorCode.NON_EMPTY_GROUP)
        else:
            offsets = state.offsets.groups.get(group_id)
            keys = [*([] if offsets is None else offsets), *state.pending_offsets.of_group(group_id)]
            keys = list(dict.fromkeys(keys))
            records += [offset_tombstone(group_id, topic, partition) for topic, partition in keys]
            records += state.kind_of(group).tombstones(state, group)
        response.results.append(DeletableGroupResult(group_id=group_id, error_code=error))
    return Result(records, response)


HANDLERS: Mapping[type[Message], Handler] = {
    ListGroupsRequest: _list,
    DeleteGroupsRequest: _delete_groups,
}
