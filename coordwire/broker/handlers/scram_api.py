"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554).

Rules: users of the broker's own configuration are not described, as those of a Kafka broker's JAAS file are
not; what clients make lives as long as the broker.
"""

from __future__ import annotations

from collections import Counter

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.broker.scram_credentials import ScramCredential
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from coordwire.messages.alter_user_scram_credentials import AlterUserScramCredentialsResult
from coordwire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResult,
)

__all__ = ["alter_users", "describe_users"]

_MECHANISMS = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
_NUMBERS = {name: number for number, name in _MECHANISMS.items()}
_FEWEST, _MOST = 4_096, 16_384


def describe_users(call: ApiCall) -> DescribeUserScramCredentialsResponse:
    request: DescribeUserScramCredentialsRequest = call.request
    known = call.cluster.scram.upserted()
    times = Counter(user.name for user in request.users or ()) or Counter(known.keys())
    results = []
    for name, count in times.items():
        result = DescribeUserScramCredentialsResult(user=name, error_message=None, credential_infos=[])
        if count > 1:
            result.error_code = int(ErrorCode.DUPLICATE_RESOURCE)
            result.error_message = f"Cannot describe SCRAM credentials for the same user twice: {name}"
        elif name not in known:
            result.error_code = int(ErrorCode.RESOURCE_NOT_FOUND)
            result.error_message = f"Attempt to describe a user credential that does not exist: {name}"
        else:
            result.credential_infos = [
                CredentialInfo(mechanism=_NUMBERS[mechanism], iterations=iterations)
                for mechanism, iterations in known[name]
            ]
        results.append(result)
    return DescribeUserScramCredentialsResponse(error_message=None, results=results)


def alter_users(call: ApiCall) -> AlterUserScramCredentialsResponse:
    request: AlterUserScramCredentialsRequest = call.request
    users: dict[str, tuple[ErrorCode, str]] = {}
    asked = [(gone.name, gone.mechanism) for gone in request.deletions]
    asked += [(one.name, one.mechanism) for one in request.upsertions]
    for (user, mechanism), count in Counter(asked).items():
        if count > 1:
            users[user] = ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice"
        elif not user:
            users[user] = ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
        elif mechanism not in _MECHANISMS:
            users[user] = ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    for one in request.upsertions:
        if one.name not in users and not _FEWEST <= one.iterations <= _MOST:
            few = "few" if one.iterations < _FEWEST else "many"
            users[one.name] = ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Too {few} iterations"
    scram = call.cluster.scram
    for gone in request.deletions:
        name = _MECHANISMS.get(gone.mechanism, "")
        if gone.name not in users and not scram.is_upserted(gone.name, name):
            message = "Attempt to delete a user credential that does not exist"
            users[gone.name] = ErrorCode.RESOURCE_NOT_FOUND, message
    for gone in request.deletions:
        if gone.name not in users:
            scram.delete(gone.name, _MECHANISMS[gone.mechanism])
    for one in request.upsertions:
        if one.name not in users:
            credential = ScramCredential(one.salt, one.salted_password, one.iterations)
            scram.upsert(one.name, _MECHANISMS[one.mechanism], credential)
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user,
                error_code=int(users.get(user, (ErrorCode.NONE, ""))[0]),
                error_message=users.get(user, (ErrorCode.NONE, ""))[1] or None,
            )
            for user in dict.fromkeys(user for user, _ in asked)
        ]
    )
