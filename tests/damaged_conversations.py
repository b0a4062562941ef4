"""Connections on which secrets travel, damaged in transit or in the capture, and all that is shown of them.

Strategy: `conversation(seed)` puts together exchanges of every message that holds secrets and of some that
hold none, in any version, with one secret. It damages up to three places (bytes changed, inserted, removed,
cut; sizes, keys, versions; segments dropped or in another order), and takes one side or the beginning away.
`outputs` writes what every output shows of it: JSON, tree, line, hex, columns, tables, timelines, notebooks,
`repr` and errors. `PIECES` are the parts of the secret that none of them may show.
"""

from __future__ import annotations

import base64
import io
import json
import random
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from coordwire import notebook
from coordwire.capture.entries import Entry, FrameEntry
from coordwire.capture.reader import Capture
from coordwire.cli.annotated_hex import HexFormat
from coordwire.cli.decode.columns import ColumnsFormat
from coordwire.cli.decode.formats import DecodeJsonFormat
from coordwire.cli.decode.line import LineFormat
from coordwire.cli.decode.tree import TreeFormat
from coordwire.cli.selection.fields import FIELDS
from coordwire.cli.selection.names import TopicNames
from coordwire.cli.timeline.json_lines import TimelineJsonFormat
from coordwire.codec import Message
from coordwire.errors import EncodeError, UnreadableRange
from coordwire.frames import encode_request, encode_response
from coordwire.messages import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ConfigRecord,
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    EnvelopeRequest,
    EnvelopeResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    FetchRequest,
    FetchResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
    UserScramCredentialRecord,
    alter_configs,
    incremental_alter_configs,
)
from coordwire.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from coordwire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreatableTopicConfigs,
    CreatableTopicResult,
)
from coordwire.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from coordwire.messages.describe_delegation_token import DescribedDelegationToken
from coordwire.messages.fetch import FetchableTopicResponse, FetchPartition, FetchTopic, PartitionData
from coordwire.messages.metadata import MetadataResponseBroker
from coordwire.records import Record, encode_batch
from coordwire.tables.columns import ERRORS, FRAMES
from coordwire.tables.readers.captures import bad_of
from coordwire.tables.readers.frame_rows import ErrorRows, FrameRows
from coordwire.timeline.from_wire.timeline import timeline
from tests.capture.build import ACK, FIN, PSH, SYN, packet, pcap

SECRET = b"zQ7-kXv9~Jw2#Yq8Gm"
TEXT = SECRET.decode()
SHORT, SHORT_BASE64 = 4, 6
"""Bytes of the secret in a row that nothing may show, and in base64, where fewer come about by chance."""

PORT = 9092
METADATA_ID = UUID(int=1)

Exchange = tuple[Message, Message]
Draw = random.Random


# --- who says what ---


def _config(kind: Any, draw: Draw) -> Any:
    names = ("ssl.key.password", "sasl.jaas.config", "listener.name.x.scram.sasl.jaas.config", "x.secret")
    return kind(name=draw.choice(names), value=TEXT)


def _plain_config(kind: Any) -> Any:
    return kind(name="retention.ms", value="1")


def _authenticate(draw: Draw) -> Exchange:
    sent = draw.choice((b"\0user\0" + SECRET, b"n,,n=user,r=" + SECRET, b"c=biws,r=1,p=" + SECRET, SECRET))
    answered = draw.choice((b"", SECRET, b"r=" + SECRET + b",s=QSXCR+Q6sek8bf92,i=4096"))
    return SaslAuthenticateRequest(auth_bytes=sent), SaslAuthenticateResponse(auth_bytes=answered)


def _scram(draw: Draw) -> Exchange:
    upsertion = ScramCredentialUpsertion(
        name="user", mechanism=1, iterations=4096, salt=SECRET, salted_password=SECRET
    )
    request = AlterUserScramCredentialsRequest(deletions=[], upsertions=[upsertion] * draw.randrange(1, 3))
    return request, AlterUserScramCredentialsResponse()


def _renew(draw: Draw) -> Exchange:
    period = draw.choice((-1, 1, 86_400_000))
    if draw.random() < 0.5:
        return RenewDelegationTokenRequest(
            hmac=SECRET, renew_period_ms=period
        ), RenewDelegationTokenResponse()
    expire = ExpireDelegationTokenRequest(hmac=SECRET, expiry_time_period_ms=period)
    return expire, ExpireDelegationTokenResponse()


def _create_token(draw: Draw) -> Exchange:
    return CreateDelegationTokenRequest(), CreateDelegationTokenResponse(hmac=SECRET, token_id="token-1")


def _describe_token(draw: Draw) -> Exchange:
    token = DescribedDelegationToken(token_id="token-1", hmac=SECRET)
    return DescribeDelegationTokenRequest(), DescribeDelegationTokenResponse(tokens=[token] * 2)


def _envelope(draw: Draw) -> Exchange:
    asked, version, told = _message(draw, _SECRETS[:6])
    inner = encode_request(asked, version=version, correlation_id=5, client_id="admin")[4:]
    request = EnvelopeRequest(
        request_data=inner, request_principal=draw.choice((None, b"p")), client_host_address=b"\1\2\3\4"
    )
    return request, EnvelopeResponse(
        response_data=encode_response(told, version=version, correlation_id=5)[4:]
    )


def _increment(draw: Draw) -> Exchange:
    kind = incremental_alter_configs.AlterableConfig
    resource = incremental_alter_configs.AlterConfigsResource(
        resource_type=4, resource_name="0", configs=[_plain_config(kind), _config(kind, draw)]
    )
    return IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse()


def _alter(draw: Draw) -> Exchange:
    resource = alter_configs.AlterConfigsResource(
        resource_type=4, resource_name="0", configs=[_config(alter_configs.AlterableConfig, draw)]
    )
    return AlterConfigsRequest(resources=[resource]), AlterConfigsResponse()


def _create(draw: Draw) -> Exchange:
    topic = CreatableTopic(
        name="orders", configs=[_config(CreatableTopicConfig, draw), _plain_config(CreatableTopicConfig)]
    )
    result = CreatableTopicResult(name="orders", configs=[_config(CreatableTopicConfigs, draw)])
    return CreateTopicsRequest(topics=[topic]), CreateTopicsResponse(topics=[result])


def _describe(draw: Draw) -> Exchange:
    config = _config(DescribeConfigsResourceResult, draw)
    config.synonyms = [DescribeConfigsSynonym(name=config.name, value=TEXT, source=1)]
    sensitive = DescribeConfigsResourceResult(name="other.setting", value=TEXT, is_sensitive=True)
    result = DescribeConfigsResult(resource_type=2, resource_name="orders", configs=[config, sensitive])
    return DescribeConfigsRequest(), DescribeConfigsResponse(results=[result])


def _metadata_log(draw: Draw) -> Exchange:
    credential = UserScramCredentialRecord(name="u", salt=SECRET, stored_key=SECRET, server_key=SECRET)
    config = ConfigRecord(resource_type=4, resource_name="0", name="ssl.key.password", value=TEXT)
    values = [b"\1\x0b\0" + credential.encode(version=0), b"\1\4\0" + config.encode(version=0)]
    records = encode_batch([Record(value=value) for value in values], base_offset=0)
    name = "__cluster_metadata"
    topic = FetchTopic(topic=name, topic_id=METADATA_ID, partitions=[FetchPartition(partition=0)])
    part = PartitionData(partition_index=0, records=records)
    response = FetchableTopicResponse(topic=name, topic_id=METADATA_ID, partitions=[part])
    return FetchRequest(topics=[topic]), FetchResponse(responses=[response])


_SECRETS: list[Callable[[Draw], Exchange]] = [
    _authenticate, _scram, _renew, _create_token, _describe_token, _increment, _alter, _create, _describe,
    _metadata_log, _envelope,
]  # fmt: skip


def _others(draw: Draw) -> Exchange:
    broker = MetadataResponseBroker(node_id=1, host="host-1", port=9092)
    return draw.choice(
        (
            (HeartbeatRequest(group_id="group", member_id="member"), HeartbeatResponse()),
            (MetadataRequest(), MetadataResponse(brokers=[broker], cluster_id="cluster")),
            (ApiVersionsRequest(), ApiVersionsResponse()),
            (FindCoordinatorRequest(key="group"), FindCoordinatorResponse(host="host-1", port=9092)),
            (JoinGroupRequest(group_id="group"), JoinGroupResponse(member_id="member")),
            (OffsetCommitRequest(group_id="group"), OffsetCommitResponse()),
        )
    )


def _message(draw: Draw, kinds: Sequence[Callable[[Draw], Exchange]]) -> tuple[Message, int, Message]:
    """A request in one of its versions, and its answer."""
    while True:
        asked, told = draw.choice(kinds)(draw)
        version = draw.choice(type(asked).versions)
        try:
            asked.encode(version=version)
            told.encode(version=version)
        except EncodeError:  # a field is not in this version
            continue
        return asked, version, told


Frames = list[tuple[bool, bytearray]]
"""Frames with their prefixes, and whether each goes to the client."""


def damaged_frames(draw: Draw, damages: int | None = None) -> Frames:
    """The frames of a connection. damages: how many places are damaged, by default 0 to 3."""
    frames = _frames(draw)
    for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3, 3)) if damages is None else damages):
        if frames:
            _damage(draw, frames)
    return frames


def _frames(draw: Draw) -> Frames:
    first = draw.choice((0, 1, 7, 1000, draw.randrange(1 << 31)))
    client = draw.choice(("c", "admin-1", None, "rdkafka"))
    frames: Frames = []
    if draw.random() < 0.15:
        frames += [
            (False, _asked(SaslHandshakeRequest(mechanism="PLAIN"), 0, first, client)),
            (True, _told(SaslHandshakeResponse(mechanisms=["PLAIN"]), 0, first)),
            (False, _framed(b"\0user\0" + SECRET)),
            (True, _framed(draw.choice((b"", SECRET)))),
        ]
    pending: list[tuple[Message, int, int]] = []
    for number in range(draw.randrange(1, 6)):
        asked, version, told = _message(draw, _SECRETS if draw.random() < 0.6 else [_others])
        serial = (first + 1 + number) & 0x7FFF_FFFF
        frames.append((False, _asked(asked, version, serial, client)))
        pending.append((told, version, serial))
        while pending and draw.random() < 0.7:
            frames.append((True, _told(*pending.pop(0))))
    return [*frames, *((True, _told(*each)) for each in pending)]


def _asked(message: Message, version: int, serial: int, client: str | None) -> bytearray:
    return bytearray(encode_request(message, version=version, correlation_id=serial, client_id=client))


def _told(message: Message, version: int, serial: int) -> bytearray:
    return bytearray(encode_response(message, version=version, correlation_id=serial))


def _framed(body: bytes) -> bytearray:
    return bytearray(struct.pack(">i", len(body)) + body)


# --- damage ---


def _damage(draw: Draw, frames: Frames) -> None:
    """Damage one place."""
    number = draw.randrange(len(frames))
    back, frame = frames[number]
    size = len(frame)
    if size < 8:
        return
    at = draw.randrange(4, size)
    match draw.choice(
        (
            "byte", "bit", "byte", "bit", "head", "insert", "remove", "cut", "size", "size kept", "key",
            "version", "count", "drop", "swap",
        )
    ):  # fmt: skip
        case "byte":
            frame[at] = draw.randrange(256)
        case "bit":
            frame[at] ^= 1 << draw.randrange(8)
        case "head":
            frame[draw.randrange(min(size, 24))] ^= 1 << draw.randrange(8)
        case "insert":
            frame[at:at] = draw.randbytes(draw.randrange(1, 9))
        case "remove":
            del frame[at : at + draw.randrange(1, 40)]
        case "cut":
            del frame[at:]
        case "size":
            frame[:4] = struct.pack(">i", max(size - 4 + draw.randrange(-40, 41), 0))
        case "size kept":  # bytes go, and the size is that of what is left
            del frame[at : at + draw.randrange(1, 40)]
            frame[:4] = struct.pack(">i", len(frame) - 4)
        case "key" if not back:
            frame[4:6] = struct.pack(">h", draw.randrange(95))
        case "version" if not back:
            frame[6:8] = struct.pack(">h", draw.randrange(18))
        case "count":
            frame[at] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
        case "drop":
            del frames[number]
        case "swap":
            other = draw.randrange(len(frames))
            frames[number], frames[other] = frames[other], frames[number]


@dataclass(frozen=True, slots=True)
class Conversation:
    """A capture of one connection. input: its format; strict, lazy, ports: how to read it."""

    data: bytes
    input: str
    strict: bool
    lazy: bool
    ports: tuple[int, ...]

    def entries(self) -> Iterator[Entry]:
        if not self.data:
            return
        format: Any = self.input
        capture = Capture(
            io.BytesIO(self.data), "capture", input=format, strict=self.strict, lazy=self.lazy,
            ports=self.ports,
        )  # fmt: skip
        yield from capture.entries()


def conversation(seed: int, *, damages: int | None = None) -> Conversation:
    """damages: as for `damaged_frames`."""
    draw = random.Random(seed)
    frames = damaged_frames(draw, damages)
    kept = draw.choice(("both", "both", "both", "answers", "requests", "middle", "inside"))
    match kept:
        case "answers" | "requests":
            frames = [frame for frame in frames if frame[0] == (kept == "answers")]
        case "middle" if frames:
            frames = frames[draw.randrange(len(frames)) :]
        case "inside" if frames:
            del frames[0][1][: draw.randrange(len(frames[0][1]))]
    input = draw.choice(("pcap", "pcap", "pcap", "frames", "hex"))
    match input:
        case "pcap":
            data = _pcap(draw, frames, opened=kept in ("both", "requests") and draw.random() < 0.7)
        case "frames":
            data = b"".join(frame for _, frame in frames)
        case _:
            data = "\n\n".join(frame.hex() for _, frame in frames).encode()
    return Conversation(data, input, draw.random() < 0.3, draw.random() < 0.5, draw.choice(((), (), (PORT,))))


def _pcap(draw: Draw, frames: Frames, *, opened: bool) -> bytes:
    """The frames in segments, perhaps of several frames or of a part of one; perhaps not all in order."""
    packets = []
    at = {False: 1000, True: 5000}
    if opened:
        packets += [
            packet(seq=999, flags=SYN),
            packet(back=True, seq=4999, ack=1000, flags=SYN | ACK),
        ]
    step = draw.choice((0, 0, 0, draw.randrange(20, 90)))
    for back, frame in frames:
        data = bytes(frame)
        size = step or max(len(data), 1)
        for start in range(0, len(data), size):
            part = data[start : start + size]
            packets.append(packet(part, back=back, seq=at[back], ack=at[not back], flags=PSH | ACK))
            at[back] += len(part)
    first = 2 if opened else 0
    if len(packets) > first + 1 and draw.random() < 0.15:
        del packets[draw.randrange(first, len(packets))]
    if len(packets) > first + 1 and draw.random() < 0.15:
        one, other = (draw.randrange(first, len(packets)) for _ in range(2))
        packets[one], packets[other] = packets[other], packets[one]
    if draw.random() < 0.5:
        packets.append(packet(seq=at[False], ack=at[True], flags=FIN | ACK))
    return pcap(packets)


# --- what is shown ---

_COLUMNS = f"{','.join(FIELDS)},header,body,raw,errors,deviations,request.body"
_FRAME_NAMES, _ERROR_NAMES = ([column.name for column in columns] for columns in (FRAMES, ERRORS))
OUTPUTS = ("json", "deep", "tree", "hex", "line", "columns", "tables", "timeline", "notebook", "repr")


def outputs(
    found: Conversation, *, show_secrets: bool = False, some: Sequence[str] = OUTPUTS
) -> Iterator[tuple[str, str]]:
    """Each output's name, and what it writes."""
    for name in some:
        written = io.StringIO()
        with redirect_stdout(written), redirect_stderr(written):
            _WRITERS[name](list(found.entries()), show_secrets)
        yield name, written.getvalue()


def _formatted(make: Callable[[bool], Any]) -> Callable[[list[Entry], bool], None]:
    def write(entries: list[Entry], show_secrets: bool) -> None:
        format = make(show_secrets)
        for entry in entries:
            format.write(entry, 6)
        format.finish()

    return write


def _lines(make: Callable[[bool, TopicNames], Any]) -> Callable[[list[Entry], bool], None]:
    def write(entries: list[Entry], show_secrets: bool) -> None:
        names = TopicNames()
        format = make(show_secrets, names)
        for entry in entries:
            names.learn(entry)
            format.write(entry, 6)
        format.finish()

    return write


def _tables(entries: list[Entry], show_secrets: bool) -> None:
    frames, errors = (
        FrameRows(_FRAME_NAMES, show_secrets=show_secrets),
        ErrorRows(_ERROR_NAMES, show_secrets=show_secrets),
    )
    for entry in entries:
        if isinstance(entry, UnreadableRange):
            bad = bad_of(entry, "capture", show_secrets=show_secrets)
            print(bad, _plain(bad.data), repr(bad))
        else:
            print([_plain(value) for value in frames.row(entry)])
            print([_plain(value) for row in errors.rows([entry]) for value in row])


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _timeline(entries: list[Entry], show_secrets: bool) -> None:
    format = TimelineJsonFormat()
    for event in timeline(entries):
        format.write(event)
        print(event)


def _notebook(entries: list[Entry], show_secrets: bool) -> None:
    for entry in entries:
        for text in notebook.mimebundle(entry).values():
            print(text)
    for text in notebook.show(entries)._repr_mimebundle_().values():
        print(text)


def _repr(entries: list[Entry], show_secrets: bool) -> None:
    for entry in entries:
        print(repr(entry), str(entry), [entry])
        if isinstance(entry, FrameEntry):
            print(repr(entry.error), str(entry.error), repr(entry.deviations))


_WRITERS: dict[str, Callable[[list[Entry], bool], None]] = {
    "json": _formatted(lambda shown: DecodeJsonFormat(show_secrets=shown, deep=False)),
    "deep": _formatted(lambda shown: DecodeJsonFormat(show_secrets=shown, deep=True)),
    "tree": _formatted(lambda shown: TreeFormat(show_secrets=shown, deep=True)),
    "hex": _formatted(lambda shown: HexFormat(show_secrets=shown)),
    "line": _lines(lambda shown, names: LineFormat(show_secrets=shown, names=names)),
    "columns": _lines(
        lambda shown, names: ColumnsFormat(_COLUMNS, comma=True, show_secrets=shown, names=names)
    ),
    "tables": _tables,
    "timeline": _timeline,
    "notebook": _notebook,
    "repr": _repr,
}


def _pieces() -> list[str]:
    """Parts of the secret, as text, hex and base64."""
    short = [SECRET[at : at + SHORT] for at in range(len(SECRET) - SHORT + 1)]
    results = [piece.decode() for piece in short]
    results += [piece.hex() for piece in short]
    results += [piece.hex(" ") for piece in short]
    for at in range(len(SECRET) - SHORT_BASE64 + 1):
        piece = SECRET[at : at + SHORT_BASE64]
        for before in range(3):  # characters that have bits of this piece only
            text = base64.b64encode(bytes(before) + piece).decode()
            first, last = -(-8 * before // 6), 8 * (before + SHORT_BASE64) // 6
            results += [
                text[first:last],
                base64.urlsafe_b64encode(bytes(before) + piece).decode()[first:last],
            ]
    return list(dict.fromkeys(results))


PIECES = _pieces()


def leaked(found: Conversation, some: Sequence[str] = OUTPUTS) -> str | None:
    """Where a part of the secret is shown; None if it is nowhere."""
    for name, written in outputs(found, some=some):
        for piece in PIECES:
            at = written.find(piece)
            if at >= 0:
                return f"{name}: {json.dumps(piece)} in {written[max(at - 300, 0) : at + 100]}"
    return None
