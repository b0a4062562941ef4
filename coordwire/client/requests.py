"""One request and its answer, without I/O: looked up, split, sent, sent again where the cluster has moved.

Strategy: `perform` is a generator. It yields `Deliver`, for which the driver gives an answer or a
`ClientError` for each delivery, and `Pause`. `async_client.py` and `sync_client.py` are the drivers; tests
are a third. Rules: tries are bounded; a part that modifies something is sent again only where no broker can
have done it: not after a connection that ended, nor where one element of its answer succeeded; an answer
with an error that no look-up can mend is the answer.

A request goes in the newest version that the broker and coordwire have and that can carry what it sets. A
topic's name without its id takes a version that has names, though newer versions may ignore them.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from uuid import UUID

from coordwire.client.cluster import KnownCluster
from coordwire.client.errors import (
    BrokerUnreachable,
    ClientError,
    DeadlineExceeded,
    RequestFailed,
    VersionUnavailable,
    joined,
)
from coordwire.client.routing import (
    AnyBroker,
    Controller,
    CoordinatorOf,
    EveryBroker,
    LeaderOf,
    NamedNode,
    Place,
    Target,
    merged,
    modifies,
    restricted,
    targets,
)
from coordwire.client.settings import Address, ClientSettings
from coordwire.codec import Message, Response
from coordwire.codec.walk import entity_places
from coordwire.enums import CoordinatorType, ErrorCode
from coordwire.errors import NotInVersion
from coordwire.messages import (
    DescribeClusterRequest,
    DescribeClusterResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.keys import FACTS
from coordwire.messages.metadata import MetadataRequestTopic
from coordwire.versions import VersionRange, api_name, known_versions

_LONGEST_PAUSE_MS = 1_000
_CONTROLLERS = 2
"""The endpoint type of DescribeCluster that asks for controllers (KIP-919)."""

_MOVED = {
    AnyBroker: {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS},  # InitProducerId, until it has a block of ids
    Controller: {ErrorCode.NOT_CONTROLLER},
    CoordinatorOf: {
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    },
    LeaderOf: {
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    },
}
"""The codes after which a target is looked up, if there is a look-up, and asked again."""

_KEY_TYPES = {
    "group": CoordinatorType.GROUP,
    "transaction": CoordinatorType.TRANSACTION,
    "share": CoordinatorType.SHARE,
}


class Delivery(NamedTuple):
    """A request for a node. address: None for any broker. version: None for the newest that it has."""

    address: Address | None
    message: Message
    version: int | None = None


class Delivered(NamedTuple):
    """The answer to a delivery, and the version of both."""

    answer: Response
    version: int


class Deliver(NamedTuple):
    """Send requests at the same time; give a `Delivered` or a `ClientError` for each."""

    deliveries: list[Delivery]


class Pause(NamedTuple):
    """Wait."""

    ms: int


class NodeAnswer(NamedTuple):
    """The answer of a node; node_id None where any was asked. version: of the request and its answer."""

    node_id: int | None
    answer: Response
    version: int


Steps = Generator["Deliver | Pause", Any, list[NodeAnswer]]


@dataclass(slots=True)
class LastTry:
    """What a request tried last, for the error that ends it."""

    reason: str = ""

    def deadline_exceeded(self, message: Message, limit_ms: int) -> DeadlineExceeded:
        """The error for a request whose time is over."""
        last = f"; last: {self.reason}" if self.reason else ""
        return DeadlineExceeded(f"no answer to {type(message).__name__} within {limit_ms} ms{last}")


class _Part(NamedTuple):
    """Elements of a request with one target."""

    target: Target
    places: list[Place]


def perform(
    request: Message,
    cluster: KnownCluster,
    settings: ClientSettings,
    *,
    to: int | str | None = None,
    version: int | None = None,
    last_try: LastTry | None = None,
) -> Steps:
    """Send a request where it belongs; the answers of the nodes that it went to.

    to: a node's id, "any", "every", "controller", "leader" or "coordinator" instead of what the schema has.
    version: instead of the newest that a broker and coordwire have.

    Raises `ClientError`.
    """
    last_try = last_try or LastTry()
    parts = _parts(request, to, settings)
    answers: list[NodeAnswer] = []
    failure: ClientError | None = None
    for attempt in range(settings.retries + 1):
        if attempt:
            yield Pause(min(settings.retry_backoff_ms << (attempt - 1), _LONGEST_PAUSE_MS))
        failure = yield from _look_up(cluster, settings, [part.target for part in parts])
        parts = _spread(parts, cluster)
        if failure is None:
            failure = _unknown(cluster, [part.target for part in parts])
        if failure is not None:
            last_try.reason = failure.reason
            continue
        is_last = attempt == settings.retries
        parts, failure = yield from _send(request, parts, cluster, version, answers, is_last)
        if failure is not None:
            last_try.reason = failure.reason
        if not parts:
            return answers
    assert failure is not None
    failure.reword(f"{failure.reason} (attempts: {settings.retries + 1})")
    raise failure


def _parts(request: Message, to: int | str | None, settings: ClientSettings) -> list[_Part]:
    if isinstance(to, int):
        return [_Part(NamedNode(to), [()])]
    if to == "every":
        return [_Part(EveryBroker(), [()])]
    if settings.is_controller and to is None:
        return [_Part(Controller(), [()])]
    by_target: dict[Target, list[Place]] = {}
    for place, target in targets(request, to).items():
        by_target.setdefault(target, []).append(place)
    return [_Part(target, places) for target, places in by_target.items()]


def _spread(parts: list[_Part], cluster: KnownCluster) -> list[_Part]:
    """The parts, with one for each node where every broker answers."""
    if not cluster.nodes:
        return parts
    spread: list[_Part] = []
    for part in parts:
        if isinstance(part.target, EveryBroker):
            spread += [_Part(NamedNode(node_id), part.places) for node_id in sorted(cluster.nodes)]
        else:
            spread.append(part)
    return spread


def _send(
    request: Message,
    parts: list[_Part],
    cluster: KnownCluster,
    version: int | None,
    answers: list[NodeAnswer],
    is_last: bool,
) -> Generator[Deliver, Any, tuple[list[_Part], ClientError | None]]:
    """Send the parts, those of one node together; what is to be sent again, and why."""
    by_node: dict[int | None, list[_Part]] = {}
    for part in parts:
        by_node.setdefault(cluster.node_of(part.target), []).append(part)
    deliveries = [
        Delivery(
            None if node_id is None else cluster.nodes[node_id],
            restricted(request, [place for part in group for place in part.places]),
            version,
        )
        for node_id, group in by_node.items()
    ]
    results: Sequence[Delivered | ClientError] = yield Deliver(deliveries)
    unfinished: list[_Part] = []
    failure: ClientError | None = None
    for (node_id, group), result in zip(by_node.items(), results, strict=True):
        if isinstance(result, ClientError):
            if not isinstance(result, BrokerUnreachable) or (result.sent and modifies(request)):
                raise result
            failure = result
        elif not is_last and (code := _moved(request, node_id, group, result.answer)):
            node = "the broker" if node_id is None else f"node {node_id}"
            failure = RequestFailed(f"{node} answers {ErrorCode(code).name}", code)
        else:
            answers.append(NodeAnswer(node_id, *result))
            continue
        cluster.drop(part.target for part in group)
        unfinished += group
    return unfinished, failure


def _moved(request: Message, node_id: int | None, group: list[_Part], answer: Response) -> int:
    """The code with which a node refuses to be the one that answers; 0 where it does not, or where something
    was done. node_id: None where any was asked: for want of a look-up's answer, there is no other one."""
    if node_id is None:
        group = [part for part in group if isinstance(part.target, AnyBroker)]
    places = entity_places(answer, "error_code")
    codes = [place.value for place in places if place.field.name == "error_code"]
    moved = {int(code) for part in group for code in _MOVED.get(type(part.target), ())}
    refusal = next((code for code in codes if code in moved), 0)
    if refusal and modifies(request) and not all(code in moved for code in codes):
        return 0
    return refusal


def whole_answer(answers: list[NodeAnswer], to: int | str | None) -> Response:
    """One answer of those of several nodes. to: as `perform` had it."""
    responses = [answer.answer for answer in answers]
    facts = FACTS[responses[0].api_key or 0]
    return merged(responses, distinct=to != "every" and facts.answered_by != "every broker")


# --- look-ups ---


def _look_up(
    cluster: KnownCluster, settings: ClientSettings, expected: list[Target]
) -> Generator[Deliver, Any, ClientError | None]:
    """Ask for what is not known of these targets; the error of a look-up that no broker answered."""
    unknown = [target for target in expected if not cluster.is_known(target)]
    coordinators = [target for target in unknown if isinstance(target, CoordinatorOf)]
    if len(coordinators) < len(unknown):
        leaders = [target for target in unknown if isinstance(target, LeaderOf)]
        topics = {target.topic for target in leaders}
        (result,) = yield Deliver([Delivery(None, _metadata_request(topics, settings))])
        if isinstance(result, BrokerUnreachable):
            return result
        if isinstance(result, ClientError):
            raise result
        if isinstance(result.answer, MetadataResponse):
            cluster.add_metadata(result.answer, leaders)
        else:
            assert isinstance(result.answer, DescribeClusterResponse)
            cluster.add_cluster(result.answer)
    for kind in _KEY_TYPES:
        keys = list(dict.fromkeys(target.key for target in coordinators if target.kind == kind))
        if keys and (failure := (yield from _find_coordinators(cluster, kind, keys))) is not None:
            return failure
    return None


def _metadata_request(topics: Iterable[str | UUID], settings: ClientSettings) -> Message:
    if settings.is_controller:
        return DescribeClusterRequest(endpoint_type=_CONTROLLERS)
    return MetadataRequest(
        topics=[
            MetadataRequestTopic(name=topic)
            if isinstance(topic, str)
            else MetadataRequestTopic(topic_id=topic, name=None)
            for topic in topics
        ],
        allow_auto_topic_creation=False,
    )


def _find_coordinators(
    cluster: KnownCluster, kind: str, keys: list[str]
) -> Generator[Deliver, Any, ClientError | None]:
    """Ask for coordinators: for all at once, or one by one where the broker has no version for that."""
    key_type = int(_KEY_TYPES[kind])
    request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
    (result,) = yield Deliver([Delivery(None, request)])
    results, requested = [result], [keys]
    if isinstance(result, VersionUnavailable):
        requested = [[key] for key in keys]
        results = yield Deliver(
            [Delivery(None, FindCoordinatorRequest(key=key, key_type=key_type)) for key in keys]
        )
    for result_keys, result in zip(requested, results, strict=True):
        if isinstance(result, BrokerUnreachable):
            return result
        if isinstance(result, ClientError):
            raise result
        assert isinstance(result.answer, FindCoordinatorResponse)
        cluster.add_coordinators(kind, result_keys, result.answer)
    return None


def _unknown(cluster: KnownCluster, expected: list[Target]) -> RequestFailed | None:
    """The error for the first target that is not known after a look-up. Raises it where asking again would
    not help."""
    for target in expected:
        if cluster.is_known(target):
            continue
        match target:
            case CoordinatorOf(kind, key):
                code = cluster.errors.get(target, int(ErrorCode.COORDINATOR_NOT_AVAILABLE))
                failure = RequestFailed(f"no coordinator of {kind} {key!r} is known: {_meaning(code)}", code)
                if not ErrorCode(code).retriable:
                    raise failure
                return failure
            case LeaderOf(topic, partition):
                return RequestFailed(
                    f"partition {topic}-{partition} has no leader", int(ErrorCode.LEADER_NOT_AVAILABLE)
                )
            case NamedNode(node_id):
                nodes = joined(list(map(str, sorted(cluster.nodes))), ", ")
                raise RequestFailed(f"expected a node of the cluster ({nodes}), got {node_id}")
        return RequestFailed("no controller is known", int(ErrorCode.NOT_CONTROLLER))
    return None


def _meaning(code: int) -> str:
    return f"{ErrorCode(code).name}: {ErrorCode(code).description}"


_TOPIC_IDS = 12
"""The first version of Metadata in which a broker takes topics by their ids: before, it refuses these fields,
which 10 and 11 have (Kafka's KafkaApis.handleTopicMetadataRequest)."""

_NONE = VersionRange(0, -1)
_NO_ID = UUID(int=0)


class Fit(NamedTuple):
    """A version that can carry a request, and the bytes that its message has there."""

    version: int
    size_bytes: int


def fit_version(message: Message, offered: Mapping[int, VersionRange], version: int | None) -> Fit:
    """The version in which a request goes to a broker. offered: the broker's, by api key. version: None for
    the newest that fits.

    Raises `VersionUnavailable`, or `EncodeError` for a value that no version takes.
    """
    key = message.api_key
    assert key is not None
    name, known, had = api_name(key), known_versions(key), offered.get(key, _NONE)
    if not had:
        raise VersionUnavailable(f"the broker does not have {name}")
    common = had & known
    if version is not None:
        common &= VersionRange(version, version)
    if not common:
        expected = "" if version is None else f"; expected one of these, got {version}"
        raise VersionUnavailable(f"the broker has {name} {had}, coordwire has {known}{expected}")
    refusal: NotInVersion | None = None
    if _has_ids_alone(message):
        common &= VersionRange(_TOPIC_IDS, common.last)
        if not common:
            raise VersionUnavailable(
                f"the broker has {name} {had}, and topics by their ids from {_TOPIC_IDS} on"
            )
    last = common.last if version is not None else _last_with_names(message, common.last)
    for candidate in reversed(range(common.first, last + 1)):
        try:
            return Fit(candidate, len(message.encode(version=candidate)))
        except NotInVersion as error:
            refusal = refusal or error
    reason = refusal or "its topics have names and no ids"
    raise VersionUnavailable(f"no version of {name} in {common} can carry the request: {reason}")


def _has_ids_alone(message: Message) -> bool:
    return isinstance(message, MetadataRequest) and any(
        topic.name is None or topic.topic_id != _NO_ID for topic in message.topics or ()
    )


def _last_with_names(message: Message, last: int) -> int:
    """The newest version, up to `last`, that has the names of all topics that have no id."""
    for place in entity_places(message, "topic_name"):
        if place.value and place.field.last < last and getattr(place.owner, "topic_id", _NO_ID) == _NO_ID:
            last = place.field.last
    return last
