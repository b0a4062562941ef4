"""DescribeAcls, CreateAcls and DeleteAcls; without an authorizer they answer SECURITY_DISABLED.

API keys and versions: DescribeAcls 29 v1-3, CreateAcls 30 v1-3, DeleteAcls 31 v1-3.

Rules: a part of an ACL or a filter that is 0 (UNKNOWN) is not a request to a Kafka broker, with or without
an authorizer. An ACL that is there already is made with success.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordwire.broker.cluster.fact_records import acl_of
from coordwire.broker.handlers.api_call import ApiCall, InvalidRequest
from coordwire.broker.security.authorizer import Acl, AclFilter, Authorizer
from coordwire.coordinator.apis.guards import CLUSTER
from coordwire.enums import AclOperation, AclPermissionType, AclResourceType, ErrorCode, PatternType
from coordwire.messages import (
    AccessControlEntryRecord,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
    RemoveAccessControlEntryRecord,
)
from coordwire.messages.create_acls import AclCreation, AclCreationResult
from coordwire.messages.delete_acls import DeleteAclsFilter, DeleteAclsFilterResult, DeleteAclsMatchingAcl
from coordwire.messages.describe_acls import AclDescription, DescribeAclsResource

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
    return CreateAclsResponse(results=[_create(call, creation) for creation in request.creations])


def _create(call: ApiCall, creation: AclCreation) -> AclCreationResult:
    authorizer = call.cluster.authorizer
    error, message = ErrorCode.INVALID_REQUEST, _refusal(creation)
    if authorizer is None:
        error, message = ErrorCode.SECURITY_DISABLED, _DISABLED
    elif message is None:
        error, message = ErrorCode.KAFKA_STORAGE_ERROR, _add(call, authorizer, creation)
    if message is not None:
        return AclCreationResult(error_code=int(error), error_message=message)
    return AclCreationResult(error_message=None)


def _add(call: ApiCall, authorizer: Authorizer, creation: AclCreation) -> str | None:
    """Add an ACL unless it is there; why that failed, None if it did not."""
    record = AccessControlEntryRecord(
        id=call.cluster.new_uuid(),
        resource_type=creation.resource_type,
        resource_name=creation.resource_name,
        pattern_type=creation.resource_pattern_type,
        principal=creation.principal,
        host=creation.host,
        operation=creation.operation,
        permission_type=creation.permission_type,
    )
    return None if authorizer.id_of(acl_of(record)) is not None else call.change([record])


def _refusal(creation: AclCreation) -> str | None:
    """Why an ACL is not made; None if it is."""
    if creation.resource_type == AclResourceType.CLUSTER and creation.resource_name != CLUSTER:
        return f"The only valid name for the CLUSTER resource is {CLUSTER}"
    if not creation.resource_name:
        return "Invalid empty resource name"
    kind, operation = AclResourceType(creation.resource_type), AclOperation(creation.operation)
    if kind is AclResourceType.ANY or not kind.known:
        return f"Invalid resourceType {_name(kind)}"
    if creation.resource_pattern_type not in _KEPT_PATTERNS:
        return f"Invalid patternType {_name(PatternType(creation.resource_pattern_type))}"
    if operation is AclOperation.ANY or not operation.known:
        return f"Invalid operation {_name(operation)}"
    if creation.permission_type not in _EITHER:
        return f"Invalid permissionType {_name(AclPermissionType(creation.permission_type))}"
    if ":" not in creation.principal:
        return (
            f"Could not parse principal from `{creation.principal}` (no colon is present separating the"
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
    matches = [list(authorizer.find(_filter(acl_filter))) for acl_filter in request.filters]
    removed = {acl: authorizer.id_of(acl) for part in matches for acl in part}
    reason = call.change([RemoveAccessControlEntryRecord(id=acl_id) for acl_id in removed.values() if acl_id])
    if reason is not None:
        error = int(ErrorCode.KAFKA_STORAGE_ERROR)
        results = [
            DeleteAclsFilterResult(error_code=error, error_message=reason, matching_acls=[]) for _ in matches
        ]
        return DeleteAclsResponse(filter_results=results)
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


def _filter(request: DescribeAclsRequest | DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        request.resource_type_filter,
        request.pattern_type_filter,
        request.resource_name_filter,
        request.principal_filter,
        request.host_filter,
        request.operation,
        request.permission_type,
    )


def _check_creations(creations: Iterable[AclCreation]) -> None:
    for creation in creations:
        parts = (
            creation.resource_type,
            creation.resource_pattern_type,
            creation.operation,
            creation.permission_type,
        )
        if _UNKNOWN in parts:
            raise InvalidRequest(f"an ACL has unknown parts: {creation}")


def _check_filters(filters: Iterable[DescribeAclsRequest | DeleteAclsFilter]) -> None:
    for acl_filter in filters:
        parts = (
            acl_filter.resource_type_filter,
            acl_filter.pattern_type_filter,
            acl_filter.operation,
            acl_filter.permission_type,
        )
        if _UNKNOWN in parts:
            raise InvalidRequest(f"a filter of ACLs has unknown parts: {acl_filter}")
