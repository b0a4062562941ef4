"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554).

API keys and versions: DescribeUserScramCredentials 50 v0, AlterUserScramCredentials 51 v0.

Rule: users of the broker's own configuration are not described, as those of a Kafka broker's JAAS file are
not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from coordwire.broker.handlers.api_call import ApiCall
from coordwire.broker.security.credentials import SCRAM_MECHANISMS, ScramCredential
from coordwire.enums import ErrorCode
from coordwire.messages import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
)
from coordwire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from coordwire.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsResult,
)

_NUMBERS = {name: number for number, name in SCRAM_MECHANISMS.items()}
_FEWEST, _MOST = 4_096, 16_384
_TWICE = "A user credential cannot be altered twice in the same request"


def describe_users(call: ApiCall) -> DescribeUserScramCredentialsResponse:
    request: DescribeUserScramCredentialsRequest = call.request
    known = call.cluster.scram.upserted()
    times = Counter(user.name for user in request.users or ()) or Counter(known.keys())
    results = []
    for name, count in times.items():
        result = DescribeUserScramCredentialsResult(user=name, error_message=None, credential_infos=[])
        if count > 1:
            result.error_code = int(ErrorCode.DUPLICATE_RESOURCE)
            result.error_message = (
                f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
            )
        elif name not in known:
            result.error_code = int(ErrorCode.RESOURCE_NOT_FOUND)
            result.error_message = f"Attempt to describe a user credential that does not exist: {name}"
        else:
            result.credential_infos = [
                CredentialInfo(mechanism=_NUMBERS[mechanism], iterations=iterations)
                for mechanism, iterations in known[name]
            ]
        results.append(result)
    return DescribeUserScramCredentialsResponse(results=results)


def alter_users(call: ApiCall) -> AlterUserScramCredentialsResponse:
    request: AlterUserScramCredentialsRequest = call.request
    present = call.cluster.scram.upserted()
    users: dict[str, tuple[ErrorCode, str]] = {}
    changes: list[ScramCredentialDeletion | ScramCredentialUpsertion]
    changes = [*request.deletions, *request.upsertions]
    names: set[str] = set()
    for change in changes:
        refusal = _refusal(change, present)
        if change.name in names:
            refusal = ErrorCode.DUPLICATE_RESOURCE, _TWICE
        elif refusal is None:
            names.add(change.name)
        if refusal is not None:
            users.setdefault(change.name, refusal)
    records = [_record(change) for change in changes if change.name not in users]
    if (reason := call.change(records)) is not None:
        users |= dict.fromkeys((record.name for record in records), (ErrorCode.KAFKA_STORAGE_ERROR, reason))
    return AlterUserScramCredentialsResponse(
        results=[
            AlterUserScramCredentialsResult(
                user=user,
                error_code=int(users.get(user, (ErrorCode.NONE, ""))[0]),
                error_message=users.get(user, (ErrorCode.NONE, ""))[1] or None,
            )
            for user in dict.fromkeys(change.name for change in changes)
        ]
    )


def _record(
    change: ScramCredentialDeletion | ScramCredentialUpsertion,
) -> UserScramCredentialRecord | RemoveUserScramCredentialRecord:
    if isinstance(change, ScramCredentialDeletion):
        return RemoveUserScramCredentialRecord(name=change.name, mechanism=change.mechanism)
    credential = ScramCredential.of(
        SCRAM_MECHANISMS[change.mechanism], change.salt, change.salted_password, change.iterations
    )
    return UserScramCredentialRecord(
        name=change.name,
        mechanism=change.mechanism,
        salt=credential.salt,
        stored_key=credential.stored_key,
        server_key=credential.server_key,
        iterations=credential.iterations,
    )


def _refusal(
    change: ScramCredentialDeletion | ScramCredentialUpsertion,
    present: Mapping[str, Sequence[tuple[str, int]]],
) -> tuple[ErrorCode, str] | None:
    """Why Kafka does not make a change; None if it does."""
    if not change.name:
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty"
    mechanism = SCRAM_MECHANISMS.get(change.mechanism)
    if mechanism is None:
        return ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism"
    if isinstance(change, ScramCredentialUpsertion):
        if _FEWEST <= change.iterations <= _MOST:
            return None
        few = "few" if change.iterations < _FEWEST else "many"
        return ErrorCode.UNACCEPTABLE_CREDENTIAL, f"Too {few} iterations"
    if mechanism in dict(present.get(change.name, ())):
        return None
    return ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
