"""Cases: producing and consuming: leaders, errors of partitions, throttling, idempotent and lost batches."""

from __future__ import annotations

from typing import Any

from coordwire.conformance.cases import Lacking
from coordwire.conformance.client.recovery import ERRORS, has_records, never_gives, pairs_of
from coordwire.conformance.client.stage import GROUP, TOPIC, ClientPlay, ClientStage, case
from coordwire.conformance.client.wire import WireExchange
from coordwire.records import Record, batches, encode_batch

KIP_98, KIP_219, KIP_227, KIP_320 = "KIP-98", "KIP-219", "KIP-227", "KIP-320"
PRODUCE = "https://kafka.apache.org/protocol#The_Messages_Produce"
FETCH = "https://kafka.apache.org/protocol#The_Messages_Fetch"
# --- producing ---


def _produced(exchange: WireExchange) -> list[Any]:
    """The batches of a request."""
    return [
        batch
        for topic in exchange.request.topic_data
        for part in topic.partition_data
        for batch in batches(part.records or b"")
    ]


def _sends_again(error: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.fault(f"Produce error={error}")
        report = await stage.produce("one")
        refused = stage.first("Produce", error)
        following = stage.first("Produce", after=refused)
        stage.succeeded(report)
        stage.equal("acknowledged records", report.sent, 1)
        stage.equal("the log", stage.log(), ["one"])
        first, resent = _produced(refused)[0], _produced(following)[0]
        stage.equal("the sequence", resent.base_sequence, first.base_sequence)

    return play


def _reports(error: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.fault(f"Produce error={error} times=all")
        report = await stage.produce("one")
        refused = [exchange for exchange in stage.sent("Produce") if error in exchange.errors]
        stage.true(bool(refused), "no Produce is sent")
        stage.failed(report)
        stage.equal("requests", len(refused), 1)

    return play


RETRIED = (
    "NOT_LEADER_OR_FOLLOWER",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "LEADER_NOT_AVAILABLE",
    "NOT_ENOUGH_REPLICAS",
    "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
    "REQUEST_TIMED_OUT",
    "KAFKA_STORAGE_ERROR",
)
REPORTED = (
    "MESSAGE_TOO_LARGE",
    "TOPIC_AUTHORIZATION_FAILED",
    "INVALID_RECORD",
    "INVALID_REQUIRED_ACKS",
    "UNSUPPORTED_FOR_MESSAGE_FORMAT",
    "POLICY_VIOLATION",
)

for number, error in enumerate(RETRIED, 1):
    case(
        f"produce/retriable/{number}",
        ERRORS,
        f"{error}, once",
        "the same batch again",
        rule="A batch that is refused with a retriable error is sent again, with the same sequence.",
    )(_sends_again(error))

for number, error in enumerate(REPORTED, 1):
    case(
        f"produce/fatal/{number}",
        ERRORS,
        f"{error} to each Produce",
        "an error for the application",
        rule="A record that is refused for good is reported, and not sent again.",
    )(_reports(error))


@case("produce/idempotence/1", KIP_98, "a producer that is idempotent", "its id, epoch and sequences from 0")
async def case_sequences(stage: ClientStage) -> None:
    """An idempotent producer asks for an id, and numbers each partition's records without gaps from 0."""
    report = await stage.produce(*map(str, range(40)), enable_idempotence=True, batch_size=200)
    stage.succeeded(report)
    producer = stage.first("InitProducerId").response
    expected = 0
    for batch in [batch for exchange in stage.sent("Produce") for batch in _produced(exchange)]:
        stage.equal(
            "the producer",
            (batch.producer_id, batch.producer_epoch),
            (producer.producer_id, producer.producer_epoch),
        )
        stage.equal("the sequence", batch.base_sequence, expected)
        expected += batch.last_offset - batch.base_offset + 1
    stage.equal("the log", stage.log(), [str(number) for number in range(40)])


@case("produce/idempotence/2", KIP_98, "an answer is lost with its connection", "the same batch again")
async def case_lost_answer(stage: ClientStage) -> None:
    """A batch whose answer was lost is sent again as the same, so that the log has it once."""
    stage.fault("Produce after disconnect")
    report = await stage.produce("one", "two", enable_idempotence=True)
    stage.succeeded(report)
    stage.true(len(stage.sent("Produce")) > 1, "Produce is not sent again")
    stage.equal("the log", stage.log(), ["one", "two"])


@case("produce/idempotence/3", KIP_98, "DUPLICATE_SEQUENCE_NUMBER", "no error for the application")
async def case_duplicate(stage: ClientStage) -> None:
    """A batch that the broker has already counts as written."""
    stage.fault("Produce after error=DUPLICATE_SEQUENCE_NUMBER")
    report = await stage.produce("one", enable_idempotence=True)
    stage.first("Produce", "DUPLICATE_SEQUENCE_NUMBER")
    stage.succeeded(report)
    stage.equal("the log", stage.log(), ["one"])


@case(
    "produce/idempotence/4",
    KIP_98,
    "InitProducerId: COORDINATOR_LOAD_IN_PROGRESS, once",
    "InitProducerId again",
)
async def case_init_again(stage: ClientStage) -> None:
    """A producer asks again for an id after a retriable error."""
    stage.fault("InitProducerId error=COORDINATOR_LOAD_IN_PROGRESS")
    report = await stage.produce("one", enable_idempotence=True)
    stage.first("InitProducerId", after=stage.first("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS"))
    stage.succeeded(report)
    stage.equal("the log", stage.log(), ["one"])


@case(
    "produce/idempotence/5",
    KIP_98,
    "the second of several batches is refused once",
    "the records in their order",
)
async def case_order(stage: ClientStage) -> None:
    """A retry changes neither the order of an idempotent producer's records nor their number."""
    stage.fault("Produce error=NOT_ENOUGH_REPLICAS nth=2")
    values = [str(number) for number in range(60)]
    stage.succeeded(await stage.produce(*values, enable_idempotence=True, batch_size=200))
    stage.equal("the log", stage.log(), values)


@case("produce/acks/1", PRODUCE, "a producer with acks=all", "-1 in Produce")
async def case_acks(stage: ClientStage) -> None:
    """Who awaits all replicas says so."""
    stage.succeeded(await stage.produce("one"))
    stage.equal("acks", {exchange.request.acks for exchange in stage.sent("Produce")}, {-1})


# --- leaders ---


@case("leaders/produce/1", PRODUCE, "three nodes", "Produce to the partition's leader", nodes=3)
async def case_to_the_leader(stage: ClientStage) -> None:
    """Records go to the leader that Metadata names."""
    stage.broker.moves.leader(TOPIC, 0, to=3)
    stage.succeeded(await stage.produce("one"))
    stage.equal("nodes", {exchange.node for exchange in stage.sent("Produce")}, {3})


@case(
    "leaders/produce/2",
    PRODUCE,
    "the leader moves between two tasks' records",
    "Produce to the new one",
    nodes=3,
)
async def case_new_leader(stage: ClientStage) -> None:
    """A producer that is refused by the former leader finds the new one."""
    stage.broker.moves.leader(TOPIC, 0, to=2)

    def move(exchange: WireExchange) -> None:
        stage.broker.moves.leader(TOPIC, 0, to=3)

    stage.wire.rule("Metadata", move, condition=lambda exchange: bool(exchange.response.topics))
    stage.succeeded(await stage.produce("one"))
    refused = stage.first("Produce", "NOT_LEADER_OR_FOLLOWER")
    stage.equal("the node that refuses", refused.node, 2)
    stage.equal("the node of the last Produce", stage.sent("Produce")[-1].node, 3)
    stage.equal("the log", stage.log(), ["one"])


@case("leaders/fetch/1", FETCH, "the leader moves", "Fetch to the new one", nodes=3)
async def case_fetch_moves(stage: ClientStage) -> None:
    """A consumer goes on at the new leader, where it was."""
    stage.broker.moves.leader(TOPIC, 0, to=2)
    stage.write("one")
    consuming = stage.later(stage.consume(2))
    fetched = await stage.until_sent("Fetch")
    stage.equal("the node", fetched.node, 2)
    stage.broker.moves.leader(TOPIC, 0, to=3)
    await stage.until(
        lambda: any(exchange.node == 3 for exchange in stage.sent("Fetch")), "Fetch goes to the new leader"
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")


@case(
    "leaders/fetch/2",
    FETCH,
    "the leader goes down",
    "Fetch to the new one",
    nodes=3,
    config={"default_replication_factor": 3},
)
async def case_leader_down(stage: ClientStage) -> None:
    """A consumer whose leader is gone finds the next."""
    coordinator = stage.broker.moves.coordinator_of(group=GROUP)
    leader = coordinator % 3 + 1
    stage.broker.moves.leader(TOPIC, 0, to=leader)
    stage.write("one")
    consuming = stage.later(stage.consume(2))
    await stage.until_sent("Fetch")
    await stage.broker.moves.stop_node(leader)
    await stage.until(
        lambda: any(exchange.node != leader for exchange in stage.sent("Fetch")),
        "Fetch goes to the new leader",
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")


@case(
    "leaders/bootstrap/1",
    "https://kafka.apache.org/documentation/#producerconfigs_bootstrap.servers",
    "the first node is down",
    "the next bootstrap address",
    nodes=2,
    config={"default_replication_factor": 2},
)
async def case_bootstrap(stage: ClientStage) -> None:
    """One bootstrap server that is down keeps no client from the others."""
    await stage.broker.moves.stop_node(1)
    stage.succeeded(await stage.produce("one"))
    stage.equal("the log", stage.log(), ["one"])


# --- fetching ---


def _fetches_on(api: str, error: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.fault(f"{api} error={error}", lambda request: bool(request.topics))
        stage.write("one")
        consuming = stage.later(stage.consume(2))
        await stage.until(
            lambda: any(error in exchange.errors for exchange in stage.sent(api)), f"{api} is sent"
        )
        refused = stage.first(api, error)
        await stage.until_sent(api, refused)
        stage.write("two")
        stage.succeeded(await consuming, "one", "two")

    return play


FETCHES = {
    "Fetch": "NOT_LEADER_OR_FOLLOWER UNKNOWN_TOPIC_OR_PARTITION FENCED_LEADER_EPOCH UNKNOWN_LEADER_EPOCH "
    "OFFSET_NOT_AVAILABLE KAFKA_STORAGE_ERROR",
    "ListOffsets": "NOT_LEADER_OR_FOLLOWER LEADER_NOT_AVAILABLE OFFSET_NOT_AVAILABLE UNKNOWN_LEADER_EPOCH",
    "Metadata": "LEADER_NOT_AVAILABLE UNKNOWN_TOPIC_OR_PARTITION",
}
"""The errors of each API after which a consumer goes on."""

for number, (api, error) in enumerate(pairs_of(FETCHES), 1):
    case(
        f"fetch/recovery/{number}",
        KIP_320 if "EPOCH" in error else ERRORS,
        f"{api}: {error}, once",
        f"{api} again",
        rule="A consumer that is refused with a retriable error goes on where it was.",
    )(_fetches_on(api, error))


def _new_session(error: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.fault(f"Fetch error={error} at=request", lambda request: request.session_epoch > 0)
        stage.write("one")
        consuming = stage.later(stage.consume(2))
        await stage.until(lambda: len(stage.sent("Fetch")) > 3, "Fetch is sent")
        if not any(error in exchange.errors for exchange in stage.sent("Fetch")):
            raise Lacking("the client has no fetch sessions")
        refused = stage.first("Fetch", error)
        following = await stage.until_sent("Fetch", refused)
        stage.true(following.request.session_epoch in (0, -1), "the next Fetch begins no new session")
        stage.true(bool(following.request.topics), "the next Fetch names no partitions")
        stage.write("two")
        stage.succeeded(await consuming, "one", "two")

    return play


for number, error in enumerate(("FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"), 1):
    case(
        f"fetch/session/{number}",
        KIP_227,
        f"{error} to a Fetch of a session",
        "a whole Fetch, with the epoch 0",
        rule="A consumer whose session is lost begins a new one, with all its partitions.",
    )(_new_session(error))


@case(
    "fetch/reset/1",
    ERRORS,
    "OFFSET_OUT_OF_RANGE, with the policy earliest",
    "ListOffsets, and Fetch from there",
)
async def case_reset_earliest(stage: ClientStage) -> None:
    """A consumer whose offset is not in the log begins where its policy says."""
    stage.write("one")
    stage.succeeded(await stage.consume(1, commit=True), "one")
    stage.broker.moves.truncate(TOPIC, 0, 0)
    stage.write("zero")
    before = len(stage.sent("ListOffsets"))
    stage.fault("Fetch error=OFFSET_OUT_OF_RANGE")
    stage.succeeded(await stage.consume(1), "zero")
    stage.true(len(stage.sent("ListOffsets")) > before, "ListOffsets is not sent")


@case("fetch/reset/2", ERRORS, "OFFSET_OUT_OF_RANGE, with the policy none", "an error for the application")
async def case_reset_none(stage: ClientStage) -> None:
    """A consumer that may not begin elsewhere says so."""
    stage.write("one")
    stage.succeeded(await stage.consume(1, commit=True), "one")
    stage.fault("Fetch error=OFFSET_OUT_OF_RANGE times=all")
    report = await stage.consume(1, auto_offset_reset="none")
    stage.first("Fetch", "OFFSET_OUT_OF_RANGE")
    stage.failed(report)


@case(
    "fetch/reset/3",
    "https://kafka.apache.org/protocol#The_Messages_ListOffsets",
    "no committed offset, with the policy latest",
    "ListOffsets for -1",
)
async def case_reset_latest(stage: ClientStage) -> None:
    """A new group with the policy latest gets what is written from then on."""
    stage.write("one")
    consuming = stage.later(stage.consume(1, auto_offset_reset="latest"))
    await stage.until_sent("Fetch")
    stage.write("two")
    stage.succeeded(await consuming, "two")


@case("fetch/large/1", "KIP-74", "a record larger than the client's limits", "the record")
async def case_large(stage: ClientStage) -> None:
    """A record that is larger than what the client asks for arrives: the first batch always does."""
    stage.write("x" * 700_000)
    stage.write("end")
    report = await stage.consume(2, fetch_max_bytes=50_000, max_partition_fetch_bytes=20_000)
    stage.succeeded(report)
    stage.equal("the lengths of values", [len(str(value)) for value in report.values], [700_000, 3])


@case("fetch/gaps/1", FETCH, "a log with gaps between offsets", "all records, and the offset after the last")
async def case_gaps(stage: ClientStage) -> None:
    """Offsets that are not there, as after compaction, do not hold a consumer up."""
    stage.write("one")

    def move(exchange: WireExchange) -> None:
        for part in exchange.response.responses[0].partitions if exchange.response.responses else []:
            if part.records:
                records = [
                    Record(timestamp=1, key=None, value=b"one", headers=()),
                    Record(timestamp=1, key=None, value=b"two", headers=()),
                ]
                part.records = encode_batch(records[:1], base_offset=0) + encode_batch(
                    records[1:], base_offset=7
                )
                part.high_watermark = part.last_stable_offset = 8
        exchange.write()

    stage.wire.rule("Fetch", move, condition=lambda exchange: has_records(exchange.response))
    report = await stage.consume(2, commit=True)
    stage.succeeded(report, "one", "two")
    stage.equal("the committed offset", stage.committed(), 8)


@case("fetch/checksum/1", FETCH, "a batch whose checksum is wrong", "none of its records")
async def case_checksum(stage: ClientStage) -> None:
    """Records of a damaged batch do not reach the application."""
    stage.write("one")

    def damage(exchange: WireExchange) -> None:
        for topic in exchange.response.responses:
            for part in topic.partitions:
                if part.records:
                    part.records = bytes(part.records).replace(b"one", b"two")
        exchange.write()

    await never_gives(stage, damage, "two", check_crcs=True)


# --- throttling ---


async def _beating(stage: ClientStage) -> None:
    """A member that commits, and sends a heartbeat after the throttled answer."""
    consuming = stage.later(stage.consume(2, commit=True))
    await stage.until(lambda: _throttled(stage) is not None, "the request is sent")
    await stage.until_sent("Heartbeat", _throttled(stage))
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")


async def _producing(stage: ClientStage) -> None:
    """Records in batches, of which one is unanswered at a time."""
    alone = {"max_in_flight_requests_per_connection": 1}
    stage.succeeded(await stage.produce(*map(str, range(60)), batch_size=200, **alone))


def _throttled(stage: ClientStage) -> WireExchange | None:
    answered = (exchange for exchange in stage.wire.exchanges if exchange.response is not None)
    return next(
        (exchange for exchange in answered if getattr(exchange.response, "throttle_time_ms", 0)), None
    )


def _waits(api: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.fault(f"{api} throttle=1500ms")
        stage.write("one")
        await (_producing if api == "Produce" else _beating)(stage)
        throttled = _throttled(stage)
        if throttled is None or throttled.answered is None:
            raise Lacking(f"the client sends no {api} of a version with a throttle time")
        gaps = sorted(
            exchange.sent - throttled.answered
            for exchange in stage.wire.exchanges
            if exchange.connection == throttled.connection and exchange.sent >= throttled.answered
        )
        if not gaps:
            raise Lacking(f"the client sends nothing on its connection after {api}")
        early = [gap for gap in gaps if gap < 1.35][1:]  # one may have been on its way
        last = f"{max(early, default=0):.2f} s"
        stage.true(not early, f"requests until {last} after an answer that asks to wait 1.5 s")

    return play


for number, api in enumerate(
    ("Produce", "JoinGroup", "SyncGroup", "Heartbeat", "OffsetFetch", "OffsetCommit"), 1
):
    case(
        f"throttle/wait/{number}",
        KIP_219,
        f"{api}: a throttle time of 1.5 s",
        "no request on this connection for 1.5 s, but one that was on its way",
        rule="A client that has to wait sends nothing on that connection before.",
    )(_waits(api))
