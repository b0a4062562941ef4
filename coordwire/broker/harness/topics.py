"""Topics that tests make, by the request that a client would send, so that Kafka's rules hold for them."""

from __future__ import annotations

from collections.abc import Mapping

from coordwire.broker.cluster.cluster_state import ClusterState
from coordwire.broker.handlers import ApiCall
from coordwire.broker.handlers.topics_api import create_topics
from coordwire.broker.settings.settings import TOPIC_SETTINGS
from coordwire.codec.names import suggestion
from coordwire.enums import ErrorCode
from coordwire.messages import CreateTopicsRequest
from coordwire.messages.create_topics import CreatableTopic, CreatableTopicConfig

__all__ = ["make_topic"]

_DEFAULT = -1
_VERSION = 7


def make_topic(
    cluster: ClusterState,
    name: str,
    partitions: int = _DEFAULT,
    replication_factor: int = _DEFAULT,
    settings: Mapping[str, object] | None = None,
) -> None:
    """Make a topic; -1 for the broker's defaults. settings: Kafka's, with underscores for dots.

    Raises `ValueError` for what a Kafka broker refuses.
    """
    own = [
        CreatableTopicConfig(name=_setting_name(label), value=_setting_value(value))
        for label, value in (settings or {}).items()
    ]
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        assignments=[],
        configs=own,
    )
    request = CreateTopicsRequest(topics=[topic])
    call = ApiCall(cluster, cluster.controller_id, request, _VERSION, "test", "/127.0.0.1")
    (result,) = create_topics(call).topics
    if result.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
        raise ValueError(f"expected a new topic, got {name!r}, which is there")
    if result.error_code:
        raise ValueError(f"{ErrorCode(result.error_code).name}: {result.error_message}")


def _setting_name(label: str) -> str:
    name = label.replace("_", ".")
    if name not in TOPIC_SETTINGS:
        known = [element.replace(".", "_") for element in TOPIC_SETTINGS]
        raise ValueError(f"expected a setting of a topic, got {label!r}{suggestion(label, known)}")
    return name


def _setting_value(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
