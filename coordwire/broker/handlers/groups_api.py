"""All that the group coordinators answer: the request goes to them, and the answer comes from them."""

from __future__ import annotations

from functools import partial
from typing import Any

from coordwire.broker.handlers.api_call import ApiCall

__all__ = ["groups"]

_OPERATIONS = sum(1 << operation for operation in (3, 6, 8, 10, 11))
"""Read, Delete, Describe, DescribeConfigs, AlterConfigs: what a client may do to a group."""


def groups(call: ApiCall) -> None:
    coordinators = call.cluster.groups
    context = coordinators.context_of(call.client_id, call.client_host)
    done = call.reply
    if getattr(call.request, "include_authorized_operations", False):
        done = partial(_with_operations, call)
    coordinators.handle(call.node, call.request, call.version, context, done)


def _with_operations(call: ApiCall, response: Any) -> None:
    for group in response.groups:
        if not group.error_code:
            group.authorized_operations = _OPERATIONS
    call.reply(response)
