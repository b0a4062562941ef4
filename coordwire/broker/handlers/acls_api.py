"""DescribeAcls, CreateAcls and DeleteAcls of a broker without an authorizer: SECURITY_DISABLED.

Rules: a part of a rule or a filter that is 0 (UNKNOWN) is not a request to a Kafka broker, with or without
an authorizer.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.broker.handlers.api_call import ApiCall, InvalidRequest
from coordwire.enums import ErrorCode
from coordwire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from coordwire.messages.create_acls import AclCreation, AclCreationResult
from coordwire.messages.delete_acls import DeleteAclsFilter, DeleteAclsFilterResult

__all__ = ["create_acls", "delete_acls", "describe_acls"]

_UNKNOWN = 0
_DISABLED = "No Authorizer is configured."


def describe_acls(call: ApiCall) -> DescribeAclsResponse:
    request: DescribeAclsRequest = call.request
    _check_filters([request])
    return DescribeAclsResponse(
        error_code=int(ErrorCode.SECURITY_DISABLED),
        error_message="No Authorizer is configured on the broker",
        resources=[],
    )


def create_acls(call: ApiCall) -> CreateAclsResponse:
    request: CreateAclsRequest = call.request
    _check_creations(request.creations)
    return CreateAclsResponse(
        results=[
            AclCreationResult(error_code=int(ErrorCode.SECURITY_DISABLED), error_message=_DISABLED)
            for _ in request.creations
        ]
    )


def delete_acls(call: ApiCall) -> DeleteAclsResponse:
    request: DeleteAclsRequest = call.request
    _check_filters(request.filters)
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(
                error_code=int(ErrorCode.SECURITY_DISABLED), error_message=_DISABLED, matching_acls=[]
            )
            for _ in request.filters
        ]
    )


def _check_creations(creations: Iterable[AclCreation]) -> None:
    for one in creations:
        parts = (one.resource_type, one.resource_pattern_type, one.operation, one.permission_type)
        if _UNKNOWN in parts:
            raise InvalidRequest(f"an ACL has unknown parts: {one}")


def _check_filters(filters: Iterable[DescribeAclsRequest | DeleteAclsFilter]) -> None:
    for one in filters:
        parts = (one.resource_type_filter, one.pattern_type_filter, one.operation, one.permission_type)
        if _UNKNOWN in parts:
            raise InvalidRequest(f"a filter of ACLs has unknown parts: {one}")
