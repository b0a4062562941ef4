"""Cases: frames, correlation, headers, and versions of APIs."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from coordwire import decode_response, encode_request
from coordwire.client.streams import Stream
from coordwire.conformance.broker.stage import Stage, case
from coordwire.conformance.cases import Broken, code_name
from coordwire.messages import ApiVersionsRequest, MetadataRequest

__all__: list[str] = []

PROTOCOL = "https://kafka.apache.org/protocol"
KIP_511 = "KIP-511"
WAIT = 10.0
"""Seconds for an answer, or for the end of a connection."""

SIZE = struct.Struct(">i")


async def received(stream: Stream, *, least: int = 4) -> bytes:
    """The next frame, without its size. least: bytes of it. Raises `Broken`."""
    try:
        async with asyncio.timeout(WAIT):
            (size,) = SIZE.unpack(await stream.reader.readexactly(4))
            if not least <= size < 10_000_000:
                raise Broken(f"a frame of {size} bytes")
            return await stream.reader.readexactly(size)
    except TimeoutError:
        raise Broken(f"no answer within {WAIT:g} s") from None
    except (asyncio.IncompleteReadError, OSError):
        raise Broken("the broker closed the connection") from None


async def is_closed(stream: Stream, data: bytes) -> None:
    """Send bytes for which the broker must close the connection. Raises `Broken`."""
    stream.writer.write(data)
    try:
        async with asyncio.timeout(WAIT):
            answer = await stream.reader.read(1 << 16)
    except TimeoutError:
        raise Broken(f"the connection is still open after {WAIT:g} s") from None
    except OSError:
        return
    if answer:
        raise Broken(f"the broker answers: {answer[:40].hex()}")


def versions_request(version: int = 0, correlation_id: int = 7, **fields: Any) -> bytes:
    message = ApiVersionsRequest(client_software_name="suite", client_software_version="1")
    return encode_request(message, version=version, correlation_id=correlation_id, **fields)


async def exchanged(stage: Stage, data: bytes) -> bytes:
    stream = await stage.stream()
    stream.writer.write(data)
    return await received(stream)


def correlation(frame: bytes) -> int:
    (number,) = SIZE.unpack_from(frame)
    return int(number)


@case("framing/correlation/1", PROTOCOL, "requests with the ids 0, 2147483647, -1", "the same ids")
async def case_correlation_ids(stage: Stage) -> None:
    """An answer has its request's correlation id, whatever that is."""
    for number in (0, (1 << 31) - 1, -1):
        answer = await exchanged(stage, versions_request(correlation_id=number))
        stage.equal("correlation id", correlation(answer), number)


@case("framing/order/1", PROTOCOL, "five requests at once on a connection", "five answers in their order")
async def case_order(stage: Stage) -> None:
    """A connection's requests are answered in their order."""
    stream = await stage.stream()
    stream.writer.write(b"".join(versions_request(correlation_id=number) for number in range(5)))
    stage.equal("correlation ids", [correlation(await received(stream)) for _ in range(5)], list(range(5)))


@case("framing/split/1", PROTOCOL, "a request byte by byte", "an answer")
async def case_split(stage: Stage) -> None:
    """A frame may come in any pieces."""
    stream = await stage.stream()
    for byte in versions_request(correlation_id=9):
        stream.writer.write(bytes([byte]))
        await stream.writer.drain()
        await asyncio.sleep(0.005)
    stage.equal("correlation id", correlation(await received(stream)), 9)


@case("framing/size/1", PROTOCOL, "a frame of the size -1", "the connection is closed")
async def case_negative_size(stage: Stage) -> None:
    """A negative size ends the connection."""
    await is_closed(await stage.stream(), SIZE.pack(-1))


@case("framing/size/2", PROTOCOL, "the size 2147483647", "the connection is closed, before bytes follow")
async def case_greatest_size(stage: Stage) -> None:
    """A size beyond the broker's limit ends the connection, and is not waited for."""
    await is_closed(await stage.stream(), SIZE.pack((1 << 31) - 1))


@case("framing/size/3", PROTOCOL, "a frame that ends inside its header", "the connection is closed")
async def case_short_header(stage: Stage) -> None:
    """What has no frame header can't be answered."""
    await is_closed(await stage.stream(), SIZE.pack(3) + b"\0\x12\0")


@case("framing/size/4", PROTOCOL, "a frame that ends inside the request", "the connection is closed")
async def case_short_body(stage: Stage) -> None:
    """A request that is cut short ends the connection."""
    frame = encode_request(MetadataRequest(topics=None), version=1, correlation_id=1)
    await is_closed(await stage.stream(), SIZE.pack(len(frame) - 6) + frame[4:-2])


@case("framing/api/1", PROTOCOL, "the API key 32000", "the connection is closed")
async def case_unknown_api(stage: Stage) -> None:
    """A request of no API ends the connection."""
    await is_closed(await stage.stream(), SIZE.pack(10) + struct.pack(">hhih", 32_000, 0, 1, -1))


@case("framing/api/2", PROTOCOL, "Metadata in version 32000", "the connection is closed")
async def case_unknown_version(stage: Stage) -> None:
    """A request in a version that the broker lacks ends the connection, but for ApiVersions."""
    await is_closed(await stage.stream(), SIZE.pack(10) + struct.pack(">hhih", 3, 32_000, 1, -1))


@case("framing/others/1", PROTOCOL, "garbage on one connection, a request on another", "an answer")
async def case_other_connections(stage: Stage) -> None:
    """What ends one connection leaves the others alone."""
    stream = await stage.stream()
    await is_closed(await stage.stream(), SIZE.pack(-1))
    stream.writer.write(versions_request())
    await received(stream)


@case("framing/header/1", PROTOCOL, "a client id that is null, one of 200 characters", "answers")
async def case_client_ids(stage: Stage) -> None:
    """A client id may be null, and needs no form."""
    for client_id in (None, "ü" * 100):
        answer = await exchanged(stage, versions_request(client_id=client_id))
        stage.equal("error", code_name(struct.unpack_from(">h", answer, 4)[0]), "NONE")


@case(
    "framing/header/2",
    "KIP-482",
    "unknown tagged fields in the header and in the request",
    "an answer",
    needs="ApiVersions 3",
)
async def case_unknown_tags(stage: Stage) -> None:
    """Tagged fields that a broker doesn't know are ignored."""
    message = ApiVersionsRequest(client_software_name="suite", client_software_version="1")
    message.tags = {9_999: b"\1\2"}
    data = encode_request(message, version=3, correlation_id=7, header_tags={9_998: b"\3"})
    answer = await exchanged(stage, data)
    stage.equal("error", code_name(struct.unpack_from(">h", answer, 4)[0]), "NONE")


@case("versions/answer/1", KIP_511, "ApiVersions 0", "each API once, with versions in order")
async def case_versions(stage: Stage) -> None:
    """The list has each API once, with a last version that is not before the first, and ApiVersions."""
    answer: Any = decode_response(
        await framed(stage, versions_request()), request_class=ApiVersionsRequest, version=0
    ).message
    stage.error("ApiVersions", answer.error_code, "NONE")
    keys = [item.api_key for item in answer.api_keys]
    stage.equal("keys that are there twice", sorted(keys), sorted(set(keys)))
    stage.true(18 in keys, "ApiVersions is not among the APIs")
    wrong = [item.api_key for item in answer.api_keys if not 0 <= item.min_version <= item.max_version]
    stage.equal("APIs whose last version is before the first", wrong, [])


async def framed(stage: Stage, data: bytes) -> bytes:
    answer = await exchanged(stage, data)
    return SIZE.pack(len(answer)) + answer


@case("versions/answer/2", KIP_511, "ApiVersions in each version that is offered", "the same list in each")
async def case_each_version(stage: Stage) -> None:
    """Every version that is offered is answered, with the same APIs, but for those whose first version is of
    later clients."""
    _, last = (await stage.versions())["ApiVersions"]
    lists = []
    for version in range(min(last, 4) + 1):
        data = await framed(stage, versions_request(version))
        answer: Any = decode_response(data, request_class=ApiVersionsRequest, version=version).message
        stage.error(f"ApiVersions {version}", answer.error_code, "NONE")
        lists.append({item.api_key for item in answer.api_keys})
    stage.equal("APIs that not all versions have", lists[0] ^ lists[-1], set())


@case(
    "versions/answer/3", KIP_511, "ApiVersions 32000", "UNSUPPORTED_VERSION in version 0, with the versions"
)
async def case_newer_client(stage: Stage) -> None:
    """A newer client learns from an answer in version 0 which version of ApiVersions it may use."""
    data = SIZE.pack(11) + struct.pack(">hhihb", 18, 32_000, 5, -1, 0)
    answer: Any = decode_response(
        await framed(stage, data), request_class=ApiVersionsRequest, version=0
    ).message
    stage.error("ApiVersions", answer.error_code, "UNSUPPORTED_VERSION")
    stage.true(any(item.api_key == 18 for item in answer.api_keys), "ApiVersions is not among the APIs")


@case("versions/answer/4", KIP_511, "ApiVersions 3", "a header without tagged fields", needs="ApiVersions 3")
async def case_header_version(stage: Stage) -> None:
    """The answer's header is of version 0 in all versions, since a client may not know which came."""
    answer = await exchanged(stage, versions_request(3))
    stage.equal("bytes after the correlation id", answer[4:6].hex(), "0000")
    stage.true(answer[6] > 1, "no APIs after the error code, as if tagged fields came before it")


@case(
    "versions/client/1",
    KIP_511,
    "ApiVersions 3 with the name 'a b!'",
    "INVALID_REQUEST",
    needs="ApiVersions 3",
)
async def case_software_name(stage: Stage) -> None:
    """A client's name has letters, digits, dots and hyphens."""
    message = ApiVersionsRequest(client_software_name="a b!", client_software_version="1")
    answer = await exchanged(stage, encode_request(message, version=3, correlation_id=1))
    stage.error("ApiVersions", struct.unpack_from(">h", answer, 4)[0], "INVALID_REQUEST")
