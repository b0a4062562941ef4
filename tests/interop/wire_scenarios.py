"""What is asked of a real broker so that it answers with each coordinator API, in each version it speaks.

Strategy: after as many rounds as the longest API has versions, all have been used. A round plays whole lives,
from the first request to the last: a classic group of two members, a consumer group, a transaction, a share
group, the state that brokers keep for share groups, a streams group. Each life has names of its own, by its
round.

Rules: an API that the release lacks is passed over, and an answer with an error is kept as what it is.
Requests that only prepare something (topics, records, configurations) are recorded too, and it is the
recorder who knows which APIs it keeps.
"""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from coordwire.codec import Message
from coordwire.messages import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from coordwire.messages.consumer_protocol import ConsumerProtocolAssignmentTopicPartition
from coordwire.records import Record, encode_batch
from tests.interop.wire_rounds import Round

ROUNDS = 11
"""As many as the longest of these APIs has versions."""

Values = dict[str, Any]
"""A request or a part of it, by the names of its fields."""

TOPIC = "wire"
PARTITIONS = 2
NOT_YET = {3, 5, 6, 14, 15, 16, 51}
"""Errors of a broker that is still preparing itself: unknown topic, no leader, loading, no coordinator,
concurrent transactions."""

_BATCH_TIME = 1_700_000_000_000
_GROUP_CONFIG = 32
_RENEW = 4


def prepare(play: Round) -> UUID | None:
    """Make the topic and wait for the coordinators; gives the topic's id, None before there were ids."""
    if play.version("CreateTopics") >= 0:
        topic: Values = {"name": TOPIC, "num_partitions": PARTITIONS, "replication_factor": 1}
        play.ask("CreateTopics", topics=[topic], timeout_ms=10_000)
    metadata = play.ask_until(
        lambda answer: (
            len(answer.topics) == 1
            and answer.topics[0].error_code == 0
            and all(partition.error_code == 0 for partition in answer.topics[0].partitions)
        ),
        "Metadata",
        kind="",
        at=play.last("Metadata"),
        topics=[{"name": TOPIC}],
        allow_auto_topic_creation=True,
    )
    for key_type in (0, 1):
        if key_type <= play.last("FindCoordinator"):
            play.ask_until(
                _coordinator_found, "FindCoordinator", kind="", at=play.last("FindCoordinator"), key="any",
                coordinator_keys=["any"], key_type=key_type,
            )  # fmt: skip
    if play.version("ListGroups") >= 0:
        play.ask_until(_no_error, "ListGroups", kind="", at=play.last("ListGroups"))
    topic_id = metadata.topics[0].topic_id
    return topic_id if topic_id.int else None


def _no_error(answer: Any) -> bool:
    return not answer.error_code


def _coordinator_found(answer: Any) -> bool:
    codes = [found.error_code for found in answer.coordinators] or [answer.error_code]
    return codes == [0]


def allocate_ids(play: Round) -> None:
    """What a broker asks its controller, on a link to it, with the epoch of its registration: a small one."""
    for epoch in range(300):
        answer = play.ask("AllocateProducerIds", kind="", at=0, broker_id=1, broker_epoch=epoch)
        if not answer.error_code:
            play.ask("AllocateProducerIds", at=0, broker_id=1, broker_epoch=epoch)
            break
    play.ask("AllocateProducerIds", at=0, broker_id=1, broker_epoch=1 << 40)


def play_round(play: Round, topic_id: UUID | None) -> None:
    """All lives of one round."""
    _find(play, topic_id)
    _classic(play, topic_id)
    _producers(play, topic_id)
    _consumer(play, topic_id)
    if topic_id is not None:
        _share(play, topic_id)
        _share_state(play, topic_id)
    _streams(play)


def _find(play: Round, topic_id: UUID | None) -> None:
    group, version = play.name("classic"), play.version("FindCoordinator")
    play.ask_until(
        _coordinator_found, "FindCoordinator", key=group, key_type=0, coordinator_keys=[group], kind="group"
    )
    if version >= 1:
        play.ask("FindCoordinator", key=play.name("txn"), key_type=1, coordinator_keys=[play.name("txn")])
        play.ask("FindCoordinator", key="any", key_type=9, coordinator_keys=["any"])
    if version >= 6 and play.number == 6 and play.last("InitializeShareGroupState") >= 0:
        assert topic_id is not None
        keys = [f"{play.name('share')}:{_kafka_uuid(topic_id)}:0"]
        values: Values = {"key_type": 2, "coordinator_keys": keys}
        play.ask_until(_coordinator_found, "FindCoordinator", kind="share", **values)


def _kafka_uuid(value: UUID) -> str:
    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


# --- classic groups -----------------------------------------------------------------------------------------


def _classic(play: Round, topic_id: UUID | None) -> None:
    if play.version("JoinGroup") < 0:
        _offsets(play, play.name("offsets"), topic_id, member_id="", generation=-1, group_instance_id=None)
        return
    group, other = play.name("classic"), play.another_link()
    instance = play.name("instance") if play.version("JoinGroup") >= 5 else None
    subscription = _after_version(ConsumerProtocolSubscription(topics=[TOPIC]))
    joining: Values = {
        "group_id": group, "session_timeout_ms": 30_000, "rebalance_timeout_ms": 30_000, "member_id": "",
        "group_instance_id": instance, "protocol_type": "consumer", "reason": "first",
        "protocols": [{"name": name, "metadata": subscription} for name in ("range", "sticky")],
    }  # fmt: skip
    dynamic = joining | {"group_instance_id": None}
    leader = play.ask("JoinGroup", kind="leader", **joining)
    if leader.error_code:  # a dynamic member has to come back with its id
        joining["member_id"] = leader.member_id
        leader = play.ask("JoinGroup", kind="leader", **joining)
    play.ask("JoinGroup", other, **dynamic | {"protocol_type": "other"})
    play.ask("Heartbeat", **_member(play, joining, leader))
    _sync(play, joining, leader, [leader.member_id])
    play.ask("Heartbeat", **_member(play, joining, leader))
    dynamic["member_id"] = ""
    if play.version("JoinGroup") >= 4:
        dynamic["member_id"] = play.ask("JoinGroup", other, **dynamic).member_id
    play.send("JoinGroup", other, **dynamic)
    time.sleep(0.3)
    play.ask("Heartbeat", **_member(play, joining, leader))
    joining["member_id"] = leader.member_id
    leader = play.ask("JoinGroup", kind="leader of two", **joining)
    follower = other.receive("follower")
    play.send("SyncGroup", other, **_syncing(play, dynamic, follower, []))
    _sync(play, joining, leader, [leader.member_id, follower.member_id])
    other.receive("follower")
    play.ask("SyncGroup", **_syncing(play, joining, leader, []) | {"generation_id": 99})
    play.ask("DescribeGroups", groups=[group], include_authorized_operations=True)
    play.ask("DescribeGroups", groups=[group, "missing"], kind="two groups")
    play.ask("ListGroups", states_filter=[], types_filter=[])
    play.ask("ListGroups", states_filter=["Stable"], types_filter=["classic"], kind="filtered")
    _offsets(
        play, group, topic_id, member_id=leader.member_id, generation=leader.generation_id,
        group_instance_id=joining["group_instance_id"],
    )  # fmt: skip
    play.ask("DeleteGroups", groups_names=[group, "missing"])
    leaving: Values = {"member_id": follower.member_id, "reason": "done"}
    play.ask("LeaveGroup", group_id=group, member_id=follower.member_id, members=[leaving])
    play.ask("LeaveGroup", group_id=group, member_id="nobody", members=[{"member_id": "nobody"}])
    static: Values = {
        "member_id": leader.member_id,
        "group_instance_id": joining["group_instance_id"],
        "reason": None,
    }
    play.ask("LeaveGroup", group_id=group, member_id=leader.member_id, members=[static], kind="static")
    play.ask("OffsetDelete", group_id=group, topics=[{"name": TOPIC, "partitions": [{"partition_index": 0}]}])
    play.ask("OffsetDelete", group_id="missing", topics=[])
    play.ask("DeleteGroups", groups_names=[group])


def _after_version(embedded: Message) -> bytes:
    """As consumers write it. 4.0.0 ends no rebalance in which it can't read a subscription."""
    version = 1
    return version.to_bytes(2) + embedded.encode(version=version)


def _member(play: Round, joined: Mapping[str, Any], answer: Any) -> dict[str, Any]:
    return {
        "group_id": joined["group_id"], "generation_id": answer.generation_id, "member_id": answer.member_id,
        "group_instance_id": joined["group_instance_id"],
    }  # fmt: skip


def _syncing(play: Round, joined: Mapping[str, Any], answer: Any, members: list[str]) -> dict[str, Any]:
    assignments = [
        {
            "member_id": member,
            "assignment": _after_version(
                ConsumerProtocolAssignment(
                    assigned_partitions=[
                        ConsumerProtocolAssignmentTopicPartition(topic=TOPIC, partitions=[partition])
                    ]
                )
            ),
        }
        for partition, member in enumerate(members)
    ]
    return _member(play, joined, answer) | {
        "protocol_type": "consumer", "protocol_name": answer.protocol_name, "assignments": assignments,
    }  # fmt: skip


def _sync(play: Round, joined: Mapping[str, Any], answer: Any, members: list[str]) -> Any:
    return play.ask("SyncGroup", kind="leader", **_syncing(play, joined, answer, members))


def _offsets(
    play: Round,
    group: str,
    topic_id: UUID | None,
    *,
    member_id: str,
    generation: int,
    group_instance_id: str | None,
) -> None:
    """Commit and fetch offsets."""
    partitions = [
        {
            "partition_index": partition, "committed_offset": 40 + partition, "committed_leader_epoch": 0,
            "commit_timestamp": _BATCH_TIME, "committed_metadata": "so far",
        }
        for partition in range(PARTITIONS)
    ]  # fmt: skip
    topic: Values = {"name": TOPIC, "topic_id": topic_id, "partitions": partitions}
    missing = topic | {"name": "missing", "topic_id": UUID(int=7)}
    commit: Values = {
        "group_id": group, "generation_id_or_member_epoch": generation, "member_id": member_id,
        "group_instance_id": group_instance_id, "retention_time_ms": -1,
    }  # fmt: skip
    play.ask("OffsetCommit", topics=[topic], **commit)
    play.ask("OffsetCommit", topics=[topic, missing], kind="missing topic", **commit)
    play.ask("OffsetCommit", topics=[topic], **commit | {"generation_id_or_member_epoch": 98})
    asked: Values = {"name": TOPIC, "topic_id": topic_id, "partition_indexes": [0, 1]}
    fetching: Values = {"group_id": group, "member_id": None, "member_epoch": -1, "topics": [asked]}
    flat: Values = {"group_id": group, "topics": [{"name": TOPIC, "partition_indexes": [0, 1]}]}
    play.ask("OffsetFetch", **flat, groups=[fetching], require_stable=True)
    version = play.version("OffsetFetch")
    if version >= 2:
        play.ask("OffsetFetch", **flat | {"topics": None}, groups=[fetching | {"topics": None}], kind="all")
    unknown: Values = {"group_id": "missing", "topics": [{"name": "missing", "partition_indexes": [3]}]}
    asked = {"name": "missing", "topic_id": UUID(int=7), "partition_indexes": [3]}
    both = [fetching, fetching | {"group_id": "missing", "topics": [asked]}]
    play.ask("OffsetFetch", **unknown, groups=both, kind="missing topic")


# --- transactions -------------------------------------------------------------------------------------------


def _producers(play: Round, topic_id: UUID | None) -> None:
    if play.version("InitProducerId") < 0:
        return
    idempotent: Values = {"transactional_id": None, "transaction_timeout_ms": 0}
    play.ask_until(_no_error, "InitProducerId", **idempotent)
    txn, group = play.name("txn"), play.name("txn-group")
    opening: Values = {
        "transactional_id": txn, "transaction_timeout_ms": 60_000, "producer_id": -1, "producer_epoch": -1,
    }  # fmt: skip
    opened = play.ask_until(_no_error, "InitProducerId", kind="transactional", **opening)
    ids: Values = {"producer_id": opened.producer_id, "producer_epoch": opened.producer_epoch}
    topics = [{"name": TOPIC, "partitions": [0, 1]}]
    adding: Values = {"transactional_id": txn, **ids, "topics": topics}
    flat: Values = {f"v3_and_below_{name}": value for name, value in adding.items()}
    play.ask("AddPartitionsToTxn", transactions=[adding], **flat)
    missing = adding | {"topics": [{"name": "missing", "partitions": [0]}]}
    flat = {f"v3_and_below_{name}": value for name, value in missing.items()}
    play.ask("AddPartitionsToTxn", transactions=[adding | {"verify_only": True}, missing], **flat)
    _produce(play, ids | {"base_sequence": 0, "transactional": True}, txn)
    play.ask("AddOffsetsToTxn", transactional_id=txn, group_id=group, **ids)
    play.ask("AddOffsetsToTxn", transactional_id="missing", group_id=group, **ids)
    _transactional_offsets(play, txn, group, ids, topic_id)
    play.ask("DescribeTransactions", transactional_ids=[txn])
    play.ask("DescribeTransactions", transactional_ids=[txn, "missing"])
    play.ask("ListTransactions", state_filters=[], producer_id_filters=[], duration_filter=-1)
    play.ask(
        "ListTransactions", state_filters=["Ongoing", "Unheard"], producer_id_filters=[ids["producer_id"]],
        duration_filter=0, transactional_id_pattern="txn-.*", kind="filtered",
    )  # fmt: skip
    play.ask("DescribeProducers", topics=[{"name": TOPIC, "partition_indexes": [0]}])
    play.ask("DescribeProducers", topics=[{"name": "missing", "partition_indexes": [0]}])
    ending: Values = {"transactional_id": txn, **ids, "committed": True}
    ended = play.ask("EndTxn", **ending)
    play.ask("EndTxn", **ending | {"producer_epoch": 77})
    if play.version("InitProducerId") >= 3:
        play.ask("InitProducerId", **opening | {"producer_id": 1 << 40, "producer_epoch": 3})
    if play.version("InitProducerId") >= 6:
        prepared = opening | {
            "enable2_pc": True,
            "keep_prepared_txn": True,
            "transactional_id": play.name("prepared"),
        }
        play.ask("InitProducerId", kind="two-phase", **prepared)
    _markers(play, ids | {"producer_epoch": max(ended.producer_epoch, ids["producer_epoch"])})


def _produce(play: Round, of: Mapping[str, Any], transactional_id: str | None, count: int = 3) -> None:
    """Write records to partition 0: by the newest version that has names and no transactions of its own."""
    records = [Record(key=b"k", value=b"%d" % n, timestamp=_BATCH_TIME) for n in range(count)]
    batch = encode_batch(records, base_offset=0, **of)
    topic: Values = {"name": TOPIC, "partition_data": [{"index": 0, "records": batch}]}
    play.ask(
        "Produce", at=min(play.last("Produce"), 9), transactional_id=transactional_id, acks=-1,
        timeout_ms=10_000, topic_data=[topic],
    )  # fmt: skip


def _transactional_offsets(
    play: Round, txn: str, group: str, ids: Mapping[str, int], topic_id: UUID | None
) -> None:
    partition: Values = {
        "partition_index": 0, "committed_offset": 7, "committed_leader_epoch": 0, "committed_metadata": "txn",
    }  # fmt: skip
    topic: Values = {"name": TOPIC, "topic_id": topic_id, "partitions": [partition]}
    commit: Values = {
        "transactional_id": txn, "group_id": group, "generation_id_or_member_epoch": -1, "member_id": "",
        "group_instance_id": None, "topics": [topic], **ids,
    }  # fmt: skip
    play.ask_until(_no_error_yet, "TxnOffsetCommit", **commit)
    play.ask("TxnOffsetCommit", **commit | {"generation_id_or_member_epoch": 5, "member_id": "nobody"})


def _no_error_yet(answer: Any) -> bool:
    """Whether the broker is done with preparing what was asked for."""
    return all(part.error_code not in NOT_YET for topic in answer.topics for part in topic.partitions)


def _markers(play: Round, ids: Mapping[str, int]) -> None:
    marker: Values = {
        **ids, "transaction_result": False, "coordinator_epoch": 0, "transaction_version": 1,
        "topics": [{"name": TOPIC, "partition_indexes": [1]}],
    }  # fmt: skip
    play.ask("WriteTxnMarkers", markers=[marker])
    play.ask(
        "WriteTxnMarkers",
        markers=[marker, marker | {"producer_id": 1 << 41, "transaction_result": True}],
        kind="two",
    )
    missing = [*marker["topics"], {"name": "missing", "partition_indexes": [0]}]  # alone, it gets no answer
    play.ask("WriteTxnMarkers", markers=[marker | {"topics": missing}])


# --- consumer groups ----------------------------------------------------------------------------------------


def _consumer(play: Round, topic_id: UUID | None) -> None:
    if play.version("ConsumerGroupHeartbeat") < 0 or play.number > 1:
        return
    group = play.name("consumer")
    joining: Values = {
        "group_id": group, "member_epoch": 0, "instance_id": play.name("instance"), "rack_id": "rack",
        "rebalance_timeout_ms": 30_000, "subscribed_topic_names": [TOPIC], "server_assignor": "uniform",
        "topic_partitions": [], "member_id": "" if play.number == 0 else "b3n5yyIsTzWnQmfRd4eyTA",
    }  # fmt: skip
    member = play.ask("ConsumerGroupHeartbeat", kind="first", **joining)
    if member.error_code:  # with ZooKeeper the API is there, and the coordinator is not
        play.ask("ConsumerGroupDescribe", group_ids=[group])
        return
    second = joining | {
        "instance_id": None, "subscribed_topic_regex": "wir.*",
        "member_id": "" if play.number == 0 else "second",
        "subscribed_topic_names": [TOPIC] if play.number == 0 else None,
    }  # fmt: skip
    other = play.ask("ConsumerGroupHeartbeat", kind="second", **second)
    owned = [{"topic_id": topic_id, "partitions": [0, 1]}]
    steady: Values = {
        "group_id": group, "member_id": member.member_id, "member_epoch": member.member_epoch,
        "instance_id": joining["instance_id"], "topic_partitions": owned,
        "rebalance_timeout_ms": -1,
    }  # fmt: skip
    play.ask("ConsumerGroupHeartbeat", **steady)
    held = [{"topic_id": topic_id, "partitions": [0]}]
    play.ask("ConsumerGroupHeartbeat", **steady | {"topic_partitions": held})
    play.ask("ConsumerGroupHeartbeat", **steady | {"member_id": "nobody", "instance_id": None})
    play.ask("ConsumerGroupDescribe", group_ids=[group], include_authorized_operations=True)
    play.ask("ConsumerGroupDescribe", group_ids=[group, "missing"])
    for epoch, kind in ((member.member_epoch, "consumer group"), (member.member_epoch + 9, None)):
        partition: Values = {"partition_index": 0, "committed_offset": 3, "committed_metadata": ""}
        topic: Values = {"name": TOPIC, "topic_id": topic_id, "partitions": [partition]}
        play.ask(
            "OffsetCommit", group_id=group, generation_id_or_member_epoch=epoch, member_id=member.member_id,
            topics=[topic], kind=kind, at=min(9 + play.number, play.last("OffsetCommit")),
        )  # fmt: skip
        asked: Values = {"name": TOPIC, "topic_id": topic_id, "partition_indexes": [0]}
        fetching: Values = {
            "group_id": group, "member_id": member.member_id, "member_epoch": epoch, "topics": [asked],
        }  # fmt: skip
        play.ask(
            "OffsetFetch", groups=[fetching], kind=kind, at=min(9 + play.number, play.last("OffsetFetch"))
        )
    leaving: Values = {"group_id": group, "member_id": other.member_id, "member_epoch": -1}
    play.ask("ConsumerGroupHeartbeat", kind="leaving", **leaving)


# --- share groups -------------------------------------------------------------------------------------------


def _share(play: Round, topic_id: UUID) -> None:
    if play.version("ShareGroupHeartbeat") < 0 or play.number > 2:
        return
    group = play.name("share")
    config: Values = {"name": "share.auto.offset.reset", "config_operation": 0, "value": "earliest"}
    resource: Values = {"resource_type": _GROUP_CONFIG, "resource_name": group, "configs": [config]}
    play.ask("IncrementalAlterConfigs", resources=[resource])
    _produce(play, {}, None, count=10)
    member_id = "b3n5yyIsTzWnQmfRd4eyTB"
    joining: Values = {
        "group_id": group, "member_id": member_id, "member_epoch": 0, "rack_id": "rack",
        "subscribed_topic_names": [TOPIC],
    }  # fmt: skip
    joined = play.ask("ShareGroupHeartbeat", kind="first", **joining)
    steady: Values = {"group_id": group, "member_id": joined.member_id}
    for _ in range(50):
        joined = play.ask("ShareGroupHeartbeat", kind="", member_epoch=joined.member_epoch, **steady)
        if joined.assignment is not None and joined.assignment.topic_partitions:
            break
        time.sleep(0.1)
    play.ask("ShareGroupHeartbeat", member_epoch=joined.member_epoch, **steady)
    play.ask("ShareGroupHeartbeat", member_epoch=5, **steady | {"member_id": "nobody"})
    play.ask("ShareGroupDescribe", group_ids=[group], include_authorized_operations=True)
    play.ask("ShareGroupDescribe", group_ids=[group, "missing"])
    _share_session(play, group, joined.member_id, topic_id)
    topics = [{"topic_name": TOPIC, "partitions": [0]}]
    described = [{"group_id": group, "topics": topics}]
    play.ask("DescribeShareGroupOffsets", groups=described)
    play.ask("DescribeShareGroupOffsets", groups=[{"group_id": group, "topics": None}], kind="all topics")
    play.ask("DescribeShareGroupOffsets", groups=[*described, {"group_id": "missing", "topics": topics}])
    start = [{"topic_name": TOPIC, "partitions": [{"partition_index": 0, "start_offset": 2}]}]
    play.ask("AlterShareGroupOffsets", group_id=group, topics=start)
    play.ask("DeleteShareGroupOffsets", group_id=group, topics=[{"topic_name": TOPIC}])
    play.ask("ShareGroupHeartbeat", kind="leaving", member_epoch=-1, **steady)
    missing = [{"topic_name": "missing", "partitions": [{"partition_index": 0, "start_offset": 2}]}]
    play.ask("AlterShareGroupOffsets", group_id=group, topics=start)
    play.ask("AlterShareGroupOffsets", group_id=group, topics=start + missing, kind="empty group")
    removed = [{"topic_name": TOPIC}, {"topic_name": "missing"}]
    play.ask("DeleteShareGroupOffsets", group_id=group, topics=removed[:1])
    play.ask("DeleteShareGroupOffsets", group_id=group, topics=removed, kind="empty group")
    play.ask("DeleteShareGroupOffsets", group_id="missing", topics=removed)


def _share_session(play: Round, group: str, member_id: str, topic_id: UUID) -> None:
    """Open a session, acquire records, acknowledge them in all ways, close it."""
    member: Values = {"group_id": group, "member_id": member_id}
    partition: Values = {"partition_index": 0, "partition_max_bytes": 1 << 20}
    opening: Values = {
        **member, "share_session_epoch": 0, "max_wait_ms": 500, "min_bytes": 1, "max_bytes": 1 << 20,
        "max_records": 10, "batch_size": 10, "topics": [{"topic_id": topic_id, "partitions": [partition]}],
    }  # fmt: skip
    epoch, fetched = 1, play.ask("ShareFetch", kind="opening", **opening)
    for _ in range(40):
        if fetched.responses and fetched.responses[0].partitions[0].acquired_records:
            break
        again = opening | {"share_session_epoch": epoch, "topics": []}
        fetched, epoch = play.ask("ShareFetch", kind=_acquired, **again), epoch + 1
    batches = [
        {"first_offset": first, "last_offset": first, "acknowledge_types": [how]}
        for first, how in enumerate((1, 2))
    ]
    acknowledged = [
        {"topic_id": topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": batches}]}
    ]
    play.ask("ShareAcknowledge", share_session_epoch=epoch, topics=acknowledged, **member)
    epoch += 1
    if play.version("ShareAcknowledge") >= 2:
        renewed = [{"first_offset": 2, "last_offset": 2, "acknowledge_types": [_RENEW]}]
        topics = [
            {"topic_id": topic_id, "partitions": [{"partition_index": 0, "acknowledgement_batches": renewed}]}
        ]
        play.ask(
            "ShareAcknowledge", share_session_epoch=epoch, topics=topics, is_renew_ack=True, kind="renewed",
            **member,
        )  # fmt: skip
        epoch += 1
    play.ask("ShareAcknowledge", share_session_epoch=epoch, topics=acknowledged, **member)
    epoch += 1
    forgotten = [{"topic_id": topic_id, "partitions": [0]}]
    forgetting = opening | {"share_session_epoch": epoch, "topics": [], "forgotten_topics_data": forgotten}
    play.ask("ShareFetch", kind="forgetting", **forgetting)
    play.ask("ShareFetch", **opening | {"share_session_epoch": 77})
    play.ask("ShareAcknowledge", share_session_epoch=77, topics=acknowledged, **member)
    play.ask("ShareAcknowledge", share_session_epoch=-1, topics=[], kind="closing", **member)


def _acquired(answer: Any) -> str:
    found = [part.acquired_records for topic in answer.responses for part in topic.partitions]
    return "acquired" if any(found) else "nothing"


def _share_state(play: Round, topic_id: UUID) -> None:
    if play.version("InitializeShareGroupState") < 0 or play.number > 1:
        return
    group = play.name("state")

    def ask(action: str, kind: str | None = None, of: str = group, **values: Any) -> Any:
        partitions = [{"partition": 0, **values}]
        topics = [{"topic_id": topic_id, "partitions": partitions}]
        api = f"{action}ShareGroupState" if action != "Summarize" else "ReadShareGroupStateSummary"
        return play.ask(api, kind=kind, group_id=of, topics=topics)

    batches = [
        {"first_offset": 5, "last_offset": 6, "delivery_state": 2, "delivery_count": 1},
        {"first_offset": 7, "last_offset": 7, "delivery_state": 0, "delivery_count": 2},
    ]
    ask("Initialize", state_epoch=1, start_offset=0)
    ask("Initialize", state_epoch=0, start_offset=0)
    writing: Values = {"state_epoch": 1, "leader_epoch": 0, "start_offset": 5, "delivery_complete_count": 2}
    ask("Write", state_batches=batches, **writing)
    ask("Write", state_batches=[], **writing | {"state_epoch": 0})
    ask("Read", leader_epoch=0)
    ask("Read", of="missing", leader_epoch=0, kind="missing group")
    ask("Summarize", leader_epoch=0)
    ask("Summarize", of="missing", leader_epoch=0, kind="missing group")
    ask("Delete")
    ask("Delete", of="missing", kind="missing group")


# --- streams groups -----------------------------------------------------------------------------------------


def _streams(play: Round) -> None:
    if play.version("StreamsGroupHeartbeat") < 0 or play.number > 1:
        return
    group = play.name("streams")
    changelog: Values = {
        "name": f"{group}-store-changelog", "partitions": 0, "replication_factor": 1,
        "topic_configs": [{"key": "cleanup.policy", "value": "compact"}],
    }  # fmt: skip
    subtopology: Values = {
        "subtopology_id": "0",
        "source_topics": [TOPIC],
        "state_changelog_topics": [changelog],
    }
    joining: Values = {
        "group_id": group, "member_id": "b3n5yyIsTzWnQmfRd4eyTC", "member_epoch": 0,
        "rebalance_timeout_ms": 30_000,
        "endpoint_information_epoch": 0, "instance_id": None, "rack_id": None, "process_id": "process",
        "topology": {"epoch": 1, "subtopologies": [subtopology]}, "active_tasks": [], "standby_tasks": [],
        "warmup_tasks": [], "user_endpoint": {"host": "localhost", "port": 1234},
        "client_tags": [{"key": "zone", "value": "a"}],
    }  # fmt: skip
    joined = play.ask("StreamsGroupHeartbeat", kind="first", **joining)
    if joined.error_code:
        return
    steady: Values = {
        "group_id": group, "member_id": joining["member_id"], "rebalance_timeout_ms": -1,
        "endpoint_information_epoch": 0,
        "task_offsets": [{"subtopology_id": "0", "partition": 0, "offset": 4}],
    }  # fmt: skip
    for _ in range(50):
        joined = play.ask(
            "StreamsGroupHeartbeat", kind=lambda answer: "tasks" if answer.active_tasks else "none yet",
            member_epoch=joined.member_epoch, **steady,
        )  # fmt: skip
        if joined.active_tasks:
            break
        time.sleep(0.2)
    owned: Values = {
        "active_tasks": [{"subtopology_id": "0", "partitions": [0, 1]}], "standby_tasks": [],
        "warmup_tasks": [],
    }  # fmt: skip
    play.ask("StreamsGroupHeartbeat", member_epoch=joined.member_epoch, **steady, **owned)
    play.ask("StreamsGroupHeartbeat", member_epoch=9, **steady | {"member_id": "nobody"})
    node: Values = {
        "name": "source", "node_type": 0, "source_topics": [TOPIC], "stores": [], "successors": ["process"],
    }  # fmt: skip
    inner: Values = {"name": "process", "node_type": 1, "stores": ["store"], "successors": []}
    description: Values = {
        "subtopologies": [{"subtopology_id": "0", "nodes": [node, inner]}],
        "global_stores": [],
    }
    play.ask(
        "StreamsGroupTopologyDescriptionUpdate", group_id=group, member_id=joining["member_id"],
        topology_epoch=1, topology_description=description,
    )  # fmt: skip
    describing: Values = {"include_authorized_operations": True, "include_topology_description": True}
    play.ask("StreamsGroupDescribe", group_ids=[group], **describing)
    play.ask("StreamsGroupDescribe", group_ids=[group, "missing"], **describing)
    play.ask("StreamsGroupHeartbeat", kind="leaving", member_epoch=-1, **steady | {"task_offsets": None})
