"""What ApiVersions answers: the versions that are offered, and refusals (KIP-511, KIP-1242)."""

from __future__ import annotations

import re
from collections.abc import Iterable

from coordwire.enums import ErrorCode
from coordwire.messages import ApiVersionsRequest, ApiVersionsResponse
from coordwire.messages.api_versions import ApiVersion
from coordwire.versions import ApiKey

_SOFTWARE = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?")
"""What a client may call itself and its version."""

_NAMES_SINCE = 3
"""The version of ApiVersions from which on it does."""

_ANY_NODE = -1


def _names_software(request: ApiVersionsRequest, version: int) -> bool:
    """Whether a request names its client as Kafka asks for; if not, the answer is INVALID_REQUEST."""
    names = request.client_software_name, request.client_software_version
    return version < _NAMES_SINCE or all(map(_SOFTWARE.fullmatch, names))


def versions_refusal(
    request: ApiVersionsRequest, version: int, cluster_id: str | None, node: int
) -> ErrorCode:
    """Why ApiVersions is refused; NONE if it is not. A client may say which node of which cluster it means
    (KIP-1242)."""
    meant = request.cluster_id, request.node_id
    is_half = (request.cluster_id is None) != (request.node_id == _ANY_NODE)
    if not _names_software(request, version) or is_half:
        return ErrorCode.INVALID_REQUEST
    if request.cluster_id is not None and meant != (cluster_id, node):
        return ErrorCode.REBOOTSTRAP_REQUIRED
    return ErrorCode.NONE


def offered_keys(offered: Iterable[tuple[int, int, int]]) -> list[ApiVersion]:
    """APIs with their first and last versions, by number."""
    # librdkafka takes a broker without the oldest Produce for one that cannot compress.
    return [
        ApiVersion(api_key=key, min_version=0 if key == ApiKey.PRODUCE else first, max_version=last)
        for key, first, last in sorted(offered)
    ]


def refused_versions(own: tuple[int, int] | None) -> ApiVersionsResponse:
    """The answer, in version 0, to a version of ApiVersions that is not offered. own: those that are, None to
    leave them out as Kafka before 2.4."""
    keys = []
    if own is not None:
        keys.append(ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=own[0], max_version=own[1]))
    return ApiVersionsResponse(error_code=int(ErrorCode.UNSUPPORTED_VERSION), api_keys=keys)
