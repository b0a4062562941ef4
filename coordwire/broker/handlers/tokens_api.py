"""Delegation tokens (KIP-48), as a Kafka broker answers that has no secret key for them.

API keys and versions: CreateDelegationToken 38 v1-3, RenewDelegationToken 39 v1-2, ExpireDelegationToken 40
v1-2, DescribeDelegationToken 41 v1-3.

Rules: only a client that has authenticated may ask, and learns that tokens are off; who asks for another's
token needs CREATE_TOKENS for that user.
"""

from __future__ import annotations

from coordwire.broker.handlers.api_call import ANONYMOUS, ApiCall
from coordwire.enums import AclOperation, AclResourceType, ErrorCode
from coordwire.messages import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenResponse,
)

_USER = "User"
_NEVER = -1
"""The times of a token that a broker has refused by itself."""


def _refusal(call: ApiCall) -> tuple[ErrorCode, int]:
    """The error, and the times of a token beside it."""
    if call.user == ANONYMOUS:
        return ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, _NEVER
    return ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED, 0


def create_token(call: ApiCall) -> CreateDelegationTokenResponse:
    request: CreateDelegationTokenRequest = call.request
    owner_type, owner = _USER, call.user
    if request.owner_principal_name:
        owner_type, owner = request.owner_principal_type or "", request.owner_principal_name
    error, times = _refusal(call)
    if error is ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED:
        if not _may_create(call, owner_type, owner):
            error, times = ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED, _NEVER
        elif any(renewer.principal_type != _USER for renewer in request.renewers):
            error, times = ErrorCode.INVALID_PRINCIPAL_TYPE, _NEVER
    return CreateDelegationTokenResponse(
        error_code=int(error),
        principal_type=owner_type,
        principal_name=owner,
        token_requester_principal_type=_USER,
        token_requester_principal_name=call.user,
        issue_timestamp_ms=times,
        expiry_timestamp_ms=times,
        max_timestamp_ms=times,
    )


def _may_create(call: ApiCall, owner_type: str, owner: str) -> bool:
    is_own = (owner_type, owner) == (_USER, call.user)
    return is_own or call.allows(AclOperation.CREATE_TOKENS, AclResourceType.USER, f"{owner_type}:{owner}")


def renew_token(call: ApiCall) -> RenewDelegationTokenResponse:
    error, time = _refusal(call)
    return RenewDelegationTokenResponse(error_code=int(error), expiry_timestamp_ms=time)


def expire_token(call: ApiCall) -> ExpireDelegationTokenResponse:
    error, time = _refusal(call)
    return ExpireDelegationTokenResponse(error_code=int(error), expiry_timestamp_ms=time)


def describe_tokens(call: ApiCall) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=int(_refusal(call)[0]), tokens=[])
