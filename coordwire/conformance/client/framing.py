"""Cases: frames, versions and unknown tagged fields: what a broker that is older, newer or broken sends."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from coordwire.conformance.cases import API_KEYS, Lacking
from coordwire.conformance.client.recovery import never_gives
from coordwire.conformance.client.stage import ClientPlay, ClientStage, Report, case
from coordwire.conformance.client.wire import WireExchange, structs_of
from coordwire.messages import ApiVersionsResponse, find_message
from coordwire.messages.api_versions import ApiVersion
from coordwire.records import Record, encode_batch
from coordwire.versions import header_version

KIP_35, KIP_482, KIP_511 = "KIP-35", "KIP-482", "KIP-511"
FRAMES = "https://kafka.apache.org/protocol#protocol_common"
TAG = 9_000
"""A tag that no field has."""

TASKS = ("produce", "consume", "stay", "join", "transact")


async def work(stage: ClientStage, task: str) -> Report:
    """A task that a client must do in whatever case. "join" is a member of a consumer group, "stay" one of a
    classic group that sends heartbeats."""
    if task == "produce":
        report = await stage.produce("one", enable_idempotence=True)
        stage.succeeded(report)
        stage.equal("the log", stage.log(), ["one"])
    elif task == "transact":
        report = await stage.transact("one", offset=3)
        stage.succeeded(report)
        await stage.until(lambda: stage.log(committed=True) == ["one"], "the record is committed")
        await stage.until(lambda: stage.committed() == 3, "the offset is committed")
    elif task == "stay":
        stage.write("one")
        consuming = stage.later(stage.consume(2))
        await stage.until_sent("Heartbeat")
        stage.write("two")
        report = await consuming
        stage.succeeded(report, "one", "two")
    else:
        stage.write("one")
        protocol = "consumer" if task == "join" else "classic"
        report = await stage.consume(1, commit=True, protocol=protocol)
        stage.succeeded(report, "one")
        stage.equal("the committed offset", stage.committed(), 1)
    return report


def _pairs(apis: dict[str, str]) -> list[tuple[str, str]]:
    """APIs with the task in which they are used."""
    return [(api, task) for task, names in apis.items() for api in names.split()]


# --- versions ---


def _limited(limits: dict[str, tuple[int | None, int] | None]) -> Callable[[WireExchange], None]:
    """Offer other versions of some APIs: the first, None for the broker's, and the last; None for none."""
    ranges = {API_KEYS[api]: offered for api, offered in limits.items()}

    def change(exchange: WireExchange) -> None:
        offers = []
        for offered in exchange.response.api_keys:
            limit = ranges.get(offered.api_key, (None, offered.max_version))
            if limit is not None:
                first, offered.max_version = limit
                offered.min_version = offered.min_version if first is None else first
                offers.append(offered)
        exchange.response.api_keys = offers
        exchange.write()

    return change


def _within(api: str, last: int, task: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        stage.wire.rule("ApiVersions", _limited({api: (None, last)}), times=None)
        await work(stage, task)
        versions = {exchange.version for exchange in stage.sent(api)}
        if not versions:
            raise Lacking(f"the client works without {api} {last}")
        stage.true(max(versions) <= last, f"{api} {max(versions)}, where the broker has {last} at most")

    return play


OLDER = [
    ("Metadata", 11, "produce"), ("Produce", 8, "produce"), ("InitProducerId", 1, "produce"),
    ("Fetch", 11, "consume"), ("ListOffsets", 5, "consume"), ("FindCoordinator", 3, "consume"),
    ("JoinGroup", 5, "consume"), ("SyncGroup", 3, "consume"), ("Heartbeat", 3, "stay"),
    ("OffsetFetch", 5, "consume"), ("OffsetCommit", 7, "consume"), ("LeaveGroup", 2, "consume"),
    ("ConsumerGroupHeartbeat", 0, "join"), ("OffsetCommit", 9, "join"), ("OffsetFetch", 9, "join"),
    ("AddPartitionsToTxn", 2, "transact"), ("EndTxn", 2, "transact"), ("TxnOffsetCommit", 3, "transact"),
]  # fmt: skip
"""APIs with the last version of a broker that is older."""

for number, (api, last, task) in enumerate(OLDER, 1):
    case(
        f"versions/older/{number}",
        KIP_35,
        f"{api} up to version {last}",
        "no newer version, and the work is done",
        rule="A client speaks the versions that the broker names, and works with an older one.",
        as_of="3.9" if "Txn" in api else None,
    )(_within(api, last, task))


def _refused(keys: list[ApiVersion]) -> Callable[[WireExchange], None]:
    def change(exchange: WireExchange) -> None:
        exchange.response = ApiVersionsResponse(error_code=35, api_keys=keys)
        exchange.write(version=0)

    return change


@case("versions/refused/1", KIP_511, "ApiVersions: UNSUPPORTED_VERSION, with 0 to 2", "ApiVersions 2 at most")
async def case_fallback(stage: ClientStage) -> None:
    """A client whose ApiVersions is too new asks again in a version that the answer names."""
    keys = [ApiVersion(api_key=18, min_version=0, max_version=2)]
    stage.wire.rule(
        "ApiVersions", _refused(keys), times=None, condition=lambda exchange: exchange.version > 2
    )
    await work(stage, "produce")
    stage.true(
        any(exchange.version <= 2 for exchange in stage.sent("ApiVersions")), "ApiVersions is not asked again"
    )


@case("versions/refused/2", KIP_35, "ApiVersions: UNSUPPORTED_VERSION, without versions", "ApiVersions 0")
async def case_fallback_to_0(stage: ClientStage) -> None:
    """A client that gets no versions asks again in version 0."""
    stage.wire.rule("ApiVersions", _refused([]), times=None, condition=lambda exchange: exchange.version > 0)
    await work(stage, "produce")
    stage.true(
        any(exchange.version == 0 for exchange in stage.sent("ApiVersions")), "ApiVersions 0 is not asked"
    )


@case("versions/newer/1", KIP_35, "its APIs up to version 32767", "the client's own newest versions")
async def case_newer_broker(stage: ClientStage) -> None:
    """A broker that is newer gets the versions that the client has."""

    def newest(exchange: WireExchange) -> None:
        for offered in exchange.response.api_keys:
            if find_message(offered.api_key, "request").versions[-1] == offered.max_version:
                offered.max_version = 32_767
        exchange.write()

    stage.wire.rule("ApiVersions", newest, times=None)
    await work(stage, "produce")


@case("versions/newer/2", KIP_35, "APIs that no client knows", "the work is done")
async def case_unknown_apis(stage: ClientStage) -> None:
    """APIs that a client does not know are none of its business."""

    def extend(exchange: WireExchange) -> None:
        keys = [ApiVersion(api_key=key, min_version=0, max_version=3) for key in (999, 1_000, 32_767)]
        exchange.response.api_keys = [*keys, *exchange.response.api_keys]
        exchange.write()

    stage.wire.rule("ApiVersions", extend, times=None)
    await work(stage, "produce")


@case(
    "versions/none/1", KIP_35, "Produce from version 1000 on", "no Produce, and an error for the application"
)
async def case_no_common_version(stage: ClientStage) -> None:
    """Where there is no version in common, a client sends none."""
    stage.wire.rule("ApiVersions", _limited({"Produce": (1_000, 1_001)}), times=None)
    report = await stage.produce("one")
    stage.failed(report)
    stage.equal("Produce requests", len(stage.sent("Produce")), 0)


@case(
    "versions/none/2",
    KIP_35,
    "no ConsumerGroupHeartbeat",
    "none is sent, and an error for the application, or the work is done by a classic group",
)
async def case_no_api(stage: ClientStage) -> None:
    """An API that the broker lacks is not used."""
    stage.wire.rule("ApiVersions", _limited({"ConsumerGroupHeartbeat": None}), times=None)
    stage.write("one")
    report = await stage.consume(1, protocol="consumer")
    if list(report.values) != ["one"]:
        stage.failed(report)
    stage.equal("heartbeats", len(stage.sent("ConsumerGroupHeartbeat")), 0)


@case("versions/connections/1", KIP_35, "fewer versions after the connection has ended", "these versions")
async def case_downgraded(stage: ClientStage) -> None:
    """Versions are those of a connection: after a new one, of the broker that is there now."""
    limited: dict[str, tuple[int | None, int] | None] = {"Fetch": (None, 11), "OffsetCommit": (None, 7)}
    stage.write("one")
    consuming = stage.later(stage.consume(2, commit=True))
    fetched = await stage.until_sent("Fetch")
    stage.wire.rule("ApiVersions", _limited(limited), times=None)
    stage.fault("Fetch disconnect")
    await stage.until(
        lambda: any(
            exchange.connection > fetched.connection and exchange.api == "Fetch"
            for exchange in stage.wire.exchanges
        ),
        "Fetch on a new connection",
    )
    stage.write("two")
    stage.succeeded(await consuming, "one", "two")
    late = [exchange.version for exchange in stage.sent("Fetch") if exchange.connection > fetched.connection]
    stage.true(max(late) <= 11, f"Fetch {max(late)} on the new connection")


# --- tagged fields ---


def _tag(exchange: WireExchange) -> None:
    """Give every struct of an answer a tagged field that the client does not know."""
    for value in structs_of(exchange.response):
        tagged: Any = value
        tagged.tags = {**(tagged.tags or {}), TAG: b"unknown"}
    exchange.write()


def _is_flexible(exchange: WireExchange) -> bool:
    return header_version(exchange.api_key, exchange.version, "request") >= 2


def _knows_no(api: str, task: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        rule = stage.wire.rule(api, _tag, times=None, condition=_is_flexible)
        await work(stage, task)
        if not rule.hits:
            raise Lacking(f"the client sends no {api} of a version with tagged fields")

    return play


TAGGED = {
    "produce": "ApiVersions Metadata Produce InitProducerId",
    "consume": "Fetch ListOffsets FindCoordinator JoinGroup SyncGroup OffsetFetch OffsetCommit LeaveGroup",
    "join": "ConsumerGroupHeartbeat",
    "transact": "EndTxn TxnOffsetCommit",
    "stay": "Heartbeat",
}

for number, (api, task) in enumerate(_pairs(TAGGED), 1):
    case(
        f"framing/tags/{number}",
        KIP_482,
        f"{api}: a tagged field 9000 after every struct",
        "the work is done",
        rule="Tagged fields that a client does not know are passed over.",
    )(_knows_no(api, task))


@case("framing/tags/17", KIP_482, "a tagged field in the header of every answer", "the work is done")
async def case_header_tags(stage: ClientStage) -> None:
    """A header's tagged fields are passed over as well."""

    def tag(exchange: WireExchange) -> None:
        exchange.write({TAG: b"unknown"})

    def has_tags(exchange: WireExchange) -> bool:
        return exchange.api != "ApiVersions" and _is_flexible(exchange)

    stage.wire.rule("", tag, times=None, condition=has_tags)
    await work(stage, "produce")


# --- frames ---


def _in_pieces(task: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        def split(exchange: WireExchange) -> None:
            exchange.pieces = 1

        stage.wire.rule("", split, times=None)
        await work(stage, task)

    return play


for number, task in enumerate(TASKS, 1):
    case(
        f"framing/pieces/{number}",
        FRAMES,
        "every answer a byte at a time",
        "the work is done",
        rule="An answer may come in pieces of any size.",
    )(_in_pieces(task))


def _cut(api: str, task: str) -> ClientPlay:
    async def play(stage: ClientStage) -> None:
        def half(exchange: WireExchange) -> None:
            exchange.frame = exchange.frame[: len(exchange.frame) // 2]
            exchange.ends = True

        rule = stage.wire.rule(api, half)
        await work(stage, task)
        stage.equal("answers that were cut", rule.hits, 1)
        stage.true(len(stage.sent(api)) > 1, f"{api} is not sent again")

    return play


CUT = {
    "produce": "ApiVersions Metadata InitProducerId Produce",
    "consume": "FindCoordinator JoinGroup SyncGroup OffsetFetch ListOffsets Fetch OffsetCommit",
    "join": "ConsumerGroupHeartbeat",
    "transact": "EndTxn",
}
for number, (api, task) in enumerate(_pairs(CUT), 1):
    case(
        f"framing/cut/{number}",
        FRAMES,
        f"the connection ends in the middle of the first {api} answer",
        f"{api} again, on a new connection",
        rule="A connection that ends in the middle of an answer is made again, and so is the request.",
        recommended=api in ("ApiVersions", "Metadata"),  # a client may give up its only bootstrap address
    )(_cut(api, task))


@case("framing/size/1", FRAMES, "an answer with a negative size", "a new connection")
async def case_negative_size(stage: ClientStage) -> None:
    """What no frame can be ends the connection, and not the client."""

    def negative(exchange: WireExchange) -> None:
        exchange.frame = struct.pack(">i", -1) + exchange.frame[4:]

    rule = stage.wire.rule("Produce", negative)
    await work(stage, "produce")
    stage.equal("answers that were changed", rule.hits, 1)
    connection = stage.sent("Produce")[0].connection
    stage.equal("who ended the connection", stage.wire.ended.get(connection), "client")


@case(
    "framing/correlation/1", FRAMES, "a Fetch answer with an id that was not asked for", "none of its records"
)
async def case_wrong_correlation(stage: ClientStage) -> None:
    """What comes with an id that no request has is not taken for an answer."""
    stage.write("one")

    def misdirect(exchange: WireExchange) -> None:
        for topic in exchange.response.responses:
            for part in topic.partitions:
                record = Record(timestamp=1, key=None, value=b"two", headers=())
                part.records = encode_batch([record], base_offset=0)
        exchange.write()
        number = struct.pack(">i", exchange.correlation_id + 7_777)
        exchange.frame = exchange.frame[:4] + number + exchange.frame[8:]

    await never_gives(stage, misdirect, "two")


@case("framing/correlation/2", FRAMES, "whatever is asked", "another id for each request of a connection")
async def case_own_correlations(stage: ClientStage) -> None:
    """Requests that are unanswered on one connection have different ids."""
    await work(stage, "produce")
    ids = [(exchange.connection, exchange.correlation_id) for exchange in stage.wire.exchanges]
    stage.equal("ids", len(set(ids)), len(ids))
