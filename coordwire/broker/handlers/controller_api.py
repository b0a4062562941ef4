"""The controller: features (KIP-584, KIP-778), the quorum, nodes that leave the cluster for good.

API keys and versions: DescribeQuorum 55 v0-2, UpdateFeatures 57 v0-2, UnregisterBroker 64 v0, AddRaftVoter 80
v0-1, RemoveRaftVoter 81 v0, UnregisterController 94 v0.

Rules: the quorum of a KRaft cluster is one node here, the controller, whose voters never change: its
kraft.version is 0. A broker that is unregistered stays, as one that still runs would register again.
UpdateFeatures changes all levels of a request or none; of a feature that is named twice the last update
counts. A level is announced by ApiVersions and has no other effect. metadata.version cannot be lowered: its
newest level has records that older ones do not have.
"""

from __future__ import annotations

from uuid import UUID

from coordwire.broker.cluster.facts import FeatureLevels
from coordwire.broker.handlers.api_call import ApiCall
from coordwire.broker.settings.released_versions import METADATA_VERSION, QUORUM_VERSION
from coordwire.enums import ErrorCode, FeatureUpgradeType
from coordwire.messages import (
    AddRaftVoterRequest,
    AddRaftVoterResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    FeatureLevelRecord,
    RemoveRaftVoterRequest,
    RemoveRaftVoterResponse,
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
    UnregisterControllerRequest,
    UnregisterControllerResponse,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from coordwire.messages.describe_quorum import (
    DescribeQuorumRequestTopicData,
    DescribeQuorumResponsePartitionData,
    DescribeQuorumResponseTopicData,
    Listener,
    Node,
    ReplicaState,
)
from coordwire.messages.update_features import FeatureUpdateKey, UpdatableFeatureResult

# --- features ---


_FAILED = "The update failed for all features since the following feature had an error: "
_TYPES = frozenset(
    {FeatureUpgradeType.UPGRADE, FeatureUpgradeType.SAFE_DOWNGRADE, FeatureUpgradeType.UNSAFE_DOWNGRADE}
)


def update_features(call: ApiCall) -> UpdateFeaturesResponse:
    request: UpdateFeaturesRequest = call.request
    levels, controller = call.cluster.features, call.cluster.controller_id
    updates = {update.feature: update for update in request.feature_updates}
    for update in updates.values():
        reason = _refusal(update, levels, controller)
        if reason is not None:
            return UpdateFeaturesResponse(
                error_code=int(ErrorCode.INVALID_UPDATE_VERSION), error_message=f"{_FAILED}{reason}"
            )
    changed = [
        FeatureLevelRecord(name=name, feature_level=update.max_version_level)
        for name, update in updates.items()
        if update.max_version_level != levels[name] and not request.validate_only
    ]
    if (reason := call.change(changed)) is not None:
        return UpdateFeaturesResponse(error_code=int(ErrorCode.KAFKA_STORAGE_ERROR), error_message=reason)
    response = UpdateFeaturesResponse(error_message=None)
    if call.version < 2:
        response.results = [
            UpdatableFeatureResult(feature=update.feature, error_message="NONE")
            for update in request.feature_updates
        ]
    return response


def _refusal(update: FeatureUpdateKey, levels: FeatureLevels, controller: int) -> str | None:
    """Why a level is not changed; None if it is."""
    name, level, kind = update.feature, update.max_version_level, update.upgrade_type
    prefix = f"Invalid update version {level} for feature {name}."
    if kind not in _TYPES:
        return f"{prefix} The controller does not support the given upgrade type."
    if level < 0:
        return f"{prefix} A feature version cannot be less than 0."
    feature = levels.supported.get(name)
    if feature is None and level == 0:
        return f"{prefix} Feature {name} not found."
    if feature is None:
        return f"{prefix} Local controller {controller} does not support this feature."
    if not feature.first <= level <= feature.newest:
        supported = f"{feature.first}-{feature.newest}"
        return f"{prefix} Local controller {controller} only supports versions {supported}"
    current = levels[name]
    if level > current and kind != FeatureUpgradeType.UPGRADE:
        return f"{prefix} Can't downgrade to a newer version."
    if level > current and name == QUORUM_VERSION:
        return f"{prefix} The voters of this quorum are static."
    if level >= current:
        return None
    if kind == FeatureUpgradeType.UPGRADE:
        return (
            f"{prefix} Can't downgrade the version of this feature without setting the upgrade type to either"
            " safe or unsafe downgrade."
        )
    if name == METADATA_VERSION:
        unsafe = "Unsafe metadata downgrade is not supported in this version."
        lossy = "Refusing to perform the requested downgrade because it might delete metadata information."
        reason = unsafe if kind == FeatureUpgradeType.UNSAFE_DOWNGRADE else lossy
        return f"Unsupported metadata.version downgrade from {current} to {level}. {reason}"
    return None


# --- the quorum ---


_TOPIC = "__cluster_metadata"
_NO_DIRECTORY = UUID(int=0)
_NOT_HOSTED = "This server does not host this topic-partition."


def describe_quorum(call: ApiCall) -> DescribeQuorumResponse:
    request: DescribeQuorumRequest = call.request
    partitions = [
        (topic.topic_name, [partition.partition_index for partition in topic.partitions])
        for topic in request.topics
    ]
    if partitions != [(_TOPIC, [0])]:
        return DescribeQuorumResponse(topics=[_refused(topic) for topic in request.topics])
    cluster, now = call.cluster, call.cluster.clock()
    controller = cluster.nodes[cluster.controller_id]
    end = cluster.logs.metadata_end

    def state(node: int) -> ReplicaState:
        return ReplicaState(
            replica_id=node,
            replica_directory_id=_NO_DIRECTORY,
            log_end_offset=end,
            last_fetch_timestamp=now,
            last_caught_up_timestamp=now,
        )

    data = DescribeQuorumResponsePartitionData(
        partition_index=0,
        error_message=None,
        leader_id=controller.id,
        leader_epoch=1,
        high_watermark=end,
        current_voters=[state(controller.id)],
        observers=[state(node) for node in cluster.nodes if node != controller.id],
    )
    return DescribeQuorumResponse(
        error_message=None,
        topics=[DescribeQuorumResponseTopicData(topic_name=_TOPIC, partitions=[data])],
        nodes=[
            Node(
                node_id=controller.id,
                listeners=[Listener(name="PLAINTEXT", host=controller.host, port=controller.port)],
            )
        ],
    )


def _refused(topic: DescribeQuorumRequestTopicData) -> DescribeQuorumResponseTopicData:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partitions = [
        DescribeQuorumResponsePartitionData(
            partition_index=partition.partition_index, error_code=int(error), error_message=_NOT_HOSTED
        )
        for partition in topic.partitions
    ]
    return DescribeQuorumResponseTopicData(topic_name=topic.topic_name, partitions=partitions)


_LISTENER = "CONTROLLER"


def add_voter(call: ApiCall) -> AddRaftVoterResponse:
    request: AddRaftVoterRequest = call.request
    error, text = _voter_refusal(call, "Add", "adding")
    named = {listener.name for listener in request.listeners}
    if error is ErrorCode.UNSUPPORTED_VERSION and _LISTENER not in named:
        error = ErrorCode.INVALID_REQUEST
        text = (
            f"Add voter request didn't include the endpoint ({_endpoints(request)})"
            f" for the default listener ListenerName({_LISTENER})"
        )
    return AddRaftVoterResponse(error_code=int(error), error_message=text)


def _endpoints(request: AddRaftVoterRequest) -> str:
    """Listeners as Kafka's text has them."""
    texts = [
        f"ListenerName({listener.name})={listener.host}/<unresolved>:{listener.port}"
        for listener in request.listeners
    ]
    return f"Endpoints(endpoints={{{', '.join(texts)}}})"


def remove_voter(call: ApiCall) -> RemoveRaftVoterResponse:
    error, text = _voter_refusal(call, "Remove", "removing")
    return RemoveRaftVoterResponse(error_code=int(error), error_message=text)


def _voter_refusal(call: ApiCall, verb: str, doing: str) -> tuple[ErrorCode, str]:
    """Why the voters are not changed."""
    request: AddRaftVoterRequest | RemoveRaftVoterRequest = call.request
    cluster_id = call.cluster.cluster_id
    if request.cluster_id is not None and request.cluster_id != cluster_id:
        text = f'The given id "{request.cluster_id}" doesn\'t match the cluster id "{cluster_id}"'
        return ErrorCode.INCONSISTENT_CLUSTER_ID, text
    if request.voter_id < 0 or request.voter_directory_id == _NO_DIRECTORY:
        return ErrorCode.INVALID_REQUEST, f"{verb} voter request didn't include a valid voter"
    text = f"Cluster doesn't support {doing} voter because the kraft.version feature is 0"
    return ErrorCode.UNSUPPORTED_VERSION, text


# --- nodes that leave for good ---


def unregister_broker(call: ApiCall) -> UnregisterBrokerResponse:
    request: UnregisterBrokerRequest = call.request
    if request.broker_id in call.cluster.nodes:
        return UnregisterBrokerResponse()
    return UnregisterBrokerResponse(
        error_code=int(ErrorCode.BROKER_ID_NOT_REGISTERED),
        error_message=f"Broker ID {request.broker_id} is not currently registered",
    )


def unregister_controller(call: ApiCall) -> UnregisterControllerResponse:
    request: UnregisterControllerRequest = call.request
    if request.controller_id == call.cluster.controller_id:
        error = ErrorCode.INVALID_REQUEST
        text = "Controller cannot unregister itself while it is active."
    else:
        error = ErrorCode.CONTROLLER_ID_NOT_REGISTERED
        text = f"Controller ID {request.controller_id} is not currently registered."
    return UnregisterControllerResponse(error_code=int(error), error_message=text)
