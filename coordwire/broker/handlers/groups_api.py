"""All that the group coordinators answer: the request goes to them, and the answer comes from them."""

from __future__ import annotations

from coordwire.broker.handlers.api_call import ApiCall

__all__ = ["groups"]


def groups(call: ApiCall) -> None:
    coordinators = call.cluster.groups
    context = coordinators.context_of(call.client_id, call.client_host)
    coordinators.handle(call.node, call.request, call.version, context, call.reply)
