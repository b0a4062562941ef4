"""DescribeAcls, CreateAcls and DeleteAcls; without an authorizer they answer SECURITY_DISABLED.

Rules: a part of an ACL or a filter that is 0 (UNKNOWN) is not a request to a Kafka broker, with or without
an authorizer. An ACL that is there already is made with success.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.broker.handlers.api_call import ApiCall, InvalidRequest
from coordwire.broker.security.authorizer import CLUSTER, Acl, AclFilter, Authorizer
from coordwire.enums import AclOperation, AclPermissionType, AclResourceType, ErrorCode, PatternType
from coordwire.messages import (
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)
from coordwire.messages.create_acls import AclCreation, AclCreationResult
from coordwire.messages.delete_acls import DeleteAclsFilter, DeleteAclsFilterResult, DeleteAclsMatchingAcl
from coordwire.messages.describe_acls import AclDescription, DescribeAclsResource

__all__ = ["create_acls", "delete_acls", "describe_acls"]

_UNKNOWN = 0
_DISABLED = "No Authorizer is configured."
_EITHER = (AclPermissionType.DENY, AclPermissionType.ALLOW)
_KEPT_PATTERNS = (PatternType.LITERAL, PatternType.PREFIXED)


def describe_acls(call: ApiCall) -> DescribeAclsResponse:
    request: DescribeAclsRequest = call.request
    _check_filters([request])
    authorizer = call.cluster.authorizer
    if authorizer is None:
        return DescribeAclsResponse(
            error_code=int(ErrorCode.SECURITY_DISABLED),
            error_message="No Authorizer is configured on the broker",
            resources=[],
        )
    resources: dict[tuple[int, int, str], DescribeAclsResource] = {}
    for acl in authorizer.find(_filter(request)):
        resource = resources.setdefault(
            acl[:3],
            DescribeAclsResource(
                resource_type=acl.resource_type,
                resource_name=acl.name,
                pattern_type=acl.pattern_type,
                acls=[],
            ),
        )
        resource.acls.append(
            AclDescription(
                principal=acl.principal,
                host=acl.host,
                operation=acl.operation,
                permission_type=acl.permission,
            )
        )
    return DescribeAclsResponse(resources=list(resources.values()))


def create_acls(call: ApiCall) -> CreateAclsResponse:
    request: CreateAclsRequest = call.request
    _check_creations(request.creations)
    return CreateAclsResponse(results=[_create(call.cluster.authorizer, one) for one in request.creations])


def _create(authorizer: Authorizer | None, wanted: AclCreation) -> AclCreationResult:
    error, message = ErrorCode.INVALID_REQUEST, _refusal(wanted)
    if authorizer is None:
        error, message = ErrorCode.SECURITY_DISABLED, _DISABLED
    if authorizer is None or message is not None:
        return AclCreationResult(error_code=int(error), error_message=message)
    authorizer.add(
        Acl(
            wanted.resource_type,
            wanted.resource_pattern_type,
            wanted.resource_name,
            wanted.principal,
            wanted.host,
            wanted.operation,
            wanted.permission_type,
        )
    )
    return AclCreationResult(error_message=None)


def _refusal(wanted: AclCreation) -> str | None:
    """Why an ACL is not made; None if it is."""
    if wanted.resource_type == AclResourceType.CLUSTER and wanted.resource_name != CLUSTER:
        return f"The only valid name for the CLUSTER resource is {CLUSTER}"
    if not wanted.resource_name:
        return "Invalid empty resource name"
    kind, operation = AclResourceType(wanted.resource_type), AclOperation(wanted.operation)
    if kind is AclResourceType.ANY or not kind.known:
        return f"Invalid resourceType {_name(kind)}"
    if wanted.resource_pattern_type not in _KEPT_PATTERNS:
        return f"Invalid patternType {_name(PatternType(wanted.resource_pattern_type))}"
    if operation is AclOperation.ANY or not operation.known:
        return f"Invalid operation {_name(operation)}"
    if wanted.permission_type not in _EITHER:
        return f"Invalid permissionType {_name(AclPermissionType(wanted.permission_type))}"
    if ":" not in wanted.principal:
        return (
            f"Could not parse principal from `{wanted.principal}` (no colon is present separating the"
            " principal type from the principal name)"
        )
    return None


def _name(number: AclResourceType | PatternType | AclOperation | AclPermissionType) -> str:
    return number.name if number.known else "UNKNOWN"


def delete_acls(call: ApiCall) -> DeleteAclsResponse:
    request: DeleteAclsRequest = call.request
    _check_filters(request.filters)
    authorizer = call.cluster.authorizer
    if authorizer is None:
        error = int(ErrorCode.SECURITY_DISABLED)
        results = [
            DeleteAclsFilterResult(error_code=error, error_message=_DISABLED, matching_acls=[])
            for _ in request.filters
        ]
        return DeleteAclsResponse(filter_results=results)
    matches = [list(authorizer.find(_filter(one))) for one in request.filters]
    for acl in {acl for part in matches for acl in part}:
        authorizer.remove(acl)
    return DeleteAclsResponse(
        filter_results=[
            DeleteAclsFilterResult(error_message=None, matching_acls=[_matching(acl) for acl in part])
            for part in matches
        ]
    )


def _matching(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def _filter(wanted: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        wanted.resource_type_filter,
        wanted.pattern_type_filter,
        wanted.resource_name_filter,
        wanted.principal_filter,
        wanted.host_filter,
        wanted.operation,
        wanted.permission_type,
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
