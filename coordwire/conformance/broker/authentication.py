"""Cases: SASL, on connections that say who they are by themselves: handshakes, wrong passwords, sessions.

Strategy: a connection with TLS where the settings have it, that has asked for versions and nothing else; the
mechanism and the credentials are those of the settings. Rules: a listener without SASL skips them; so does
a mechanism without a password where a wrong one is asked for.
"""

from __future__ import annotations

import asyncio
import struct
from dataclasses import replace
from typing import Any

from coordwire import decode_response, encode_request
from coordwire.client.authentication import BlockingCall, Plain, Sasl, Scram
from coordwire.client.streams import Stream, run_call
from coordwire.codec import Request
from coordwire.conformance.broker.framing import SIZE, WAIT, correlation, is_closed, received
from coordwire.conformance.broker.stage import Stage, case
from coordwire.conformance.cases import Broken, Lacking, message_of
from coordwire.messages import (
    ApiVersionsRequest,
    ListGroupsRequest,
    MetadataRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

__all__: list[str] = []

KIP_35, KIP_43, KIP_152, KIP_368, KIP_511 = "KIP-35", "KIP-43", "KIP-152", "KIP-368", "KIP-511"
HANDSHAKE, AUTHENTICATE = "SaslHandshake 1", "SaslAuthenticate 0"
LONGEST_SESSION_MS = 20_000
"""That is waited for."""

LONGEST_ANSWER = 1 << 16
"""Bytes, of what a broker sends before it ends a connection."""

SOONEST = 1.2
"""Seconds after which a client may authenticate again; Kafka wants one."""

UNKNOWN_VERSION = SIZE.pack(11) + struct.pack(">hhihx", 18, 127, 2, -1)
"""A request for versions in one that no broker has, with a header of version 2."""

METADATA = encode_request(MetadataRequest(topics=[]), version=1, correlation_id=3)


def _sasl(stage: Stage) -> Sasl:
    if stage.settings.sasl is None:
        raise Lacking("the connection has no SASL")
    return stage.settings.sasl


def _credentials(stage: Stage) -> Plain | Scram:
    sasl = _sasl(stage)
    if not isinstance(sasl, Plain | Scram):
        raise Lacking(f"{sasl.mechanism} has no password")
    return sasl


async def _opened(stage: Stage) -> Stream:
    """A connection that has asked for versions and nothing else."""
    _sasl(stage)
    return await stage.stream(authenticates=False)


async def _response(stream: Stream, request_class: type[Request[Any]], version: int, **values: Any) -> Any:
    message = message_of(request_class, values)
    stream.writer.write(encode_request(message, version=version, correlation_id=1))
    answer = await received(stream)
    data = SIZE.pack(len(answer)) + answer
    return decode_response(data, request_class=request_class, version=version).message


async def _shaken(stage: Stage, stream: Stream, mechanism: str, version: int = 1) -> None:
    answer = await _response(stream, SaslHandshakeRequest, version, mechanism=mechanism)
    stage.error("SaslHandshake", answer.error_code, "NONE")


async def _exchanged(stream: Stream, sasl: Sasl, version: int) -> Any:
    """The broker's last answer to the tokens of a mechanism, or that with an error."""
    tokens = sasl.tokens()
    step = next(tokens)
    while True:
        if isinstance(step, BlockingCall):
            step = tokens.send(await run_call(step))
            continue
        answer = await _response(stream, SaslAuthenticateRequest, version, auth_bytes=step)
        if answer.error_code:
            return answer
        try:
            step = tokens.send(answer.auth_bytes)
        except StopIteration:
            return answer


async def _authenticated(stage: Stage, stream: Stream) -> int:
    """Authenticate; the milliseconds of the session."""
    sasl = _credentials(stage)
    await _shaken(stage, stream, sasl.mechanism)
    _, last = (await stage.versions())["SaslAuthenticate"]
    answer = await _exchanged(stream, sasl, min(last, 1))
    stage.error("SaslAuthenticate", answer.error_code, "NONE")
    return int(getattr(answer, "session_lifetime_ms", 0))


async def _refused(stage: Stage, stream: Stream, sasl: Sasl) -> str:
    """Check that credentials are refused; the text that the broker has for it."""
    await _shaken(stage, stream, sasl.mechanism)
    answer = await _exchanged(stream, sasl, 0)
    stage.error("SaslAuthenticate", answer.error_code, "SASL_AUTHENTICATION_FAILED")
    return str(answer.error_message)


async def _answers(stage: Stage, stream: Stream) -> None:
    stream.writer.write(METADATA)
    stage.equal("correlation id", correlation(await received(stream)), 3)


# --- before authentication ---


@case("sasl/before/1", KIP_43, "Metadata on a new connection", "the connection is closed", needs=HANDSHAKE)
async def case_request_first(stage: Stage) -> None:
    """Who has not proven its name gets no answer."""
    await is_closed(await _opened(stage), METADATA)


@case("sasl/before/2", KIP_152, "SaslAuthenticate first", "the connection is closed", needs=AUTHENTICATE)
async def case_authenticate_first(stage: Stage) -> None:
    """A mechanism is chosen before it is used."""
    message = SaslAuthenticateRequest(auth_bytes=b"\0u\0p")
    await is_closed(await _opened(stage), encode_request(message, version=0, correlation_id=1))


@case(
    "sasl/before/3", KIP_43, "SaslHandshake, then ListGroups", "ILLEGAL_SASL_STATE, and the connection ends",
    needs=HANDSHAKE,
)  # fmt: skip
async def case_request_between(stage: Stage) -> None:
    """Between the choice of a mechanism and its end no other request is carried out."""
    stream = await _opened(stage)
    await _shaken(stage, stream, _sasl(stage).mechanism)
    stream.writer.write(encode_request(ListGroupsRequest(), version=0, correlation_id=1))
    answer = b""
    try:
        async with asyncio.timeout(WAIT):
            while part := await stream.reader.read(LONGEST_ANSWER):
                answer += part
                stage.true(len(answer) <= LONGEST_ANSWER, f"an answer of more than {LONGEST_ANSWER:,} bytes")
    except TimeoutError:
        raise Broken(f"the connection is still open after {WAIT:g} s") from None
    except OSError:
        answer = b""
    if answer:
        stage.error("ListGroups", struct.unpack_from(">h", answer, 8)[0], "ILLEGAL_SASL_STATE")
    else:
        stage.differences.append("no answer, where Kafka answers ILLEGAL_SASL_STATE")


@case(
    "sasl/before/4", KIP_35, "ApiVersions, then SaslHandshake", "versions, and the handshake", needs=HANDSHAKE
)
async def case_versions_first(stage: Stage) -> None:
    """A client may ask for versions before it authenticates, and then choose a mechanism."""
    name = _sasl(stage).mechanism
    stream = await stage.silent_stream()
    await _lists_handshakes(stage, stream)
    await _shaken(stage, stream, name)


@case(
    "sasl/before/5", KIP_511, "ApiVersions 127, then ApiVersions 0", "UNSUPPORTED_VERSION, then versions",
    needs=HANDSHAKE,
)  # fmt: skip
async def case_unknown_versions_first(stage: Stage) -> None:
    """A version that the broker lacks is refused in the form of version 0, and the client may ask again."""
    _sasl(stage)
    stream = await stage.silent_stream()
    stream.writer.write(UNKNOWN_VERSION)
    answer = await received(stream)
    stage.equal("correlation id", correlation(answer), 2)
    stage.error("ApiVersions 127", struct.unpack_from(">h", answer, 4)[0], "UNSUPPORTED_VERSION")
    await _lists_handshakes(stage, stream)


async def _lists_handshakes(stage: Stage, stream: Stream) -> None:
    answer = await _response(stream, ApiVersionsRequest, 0)
    stage.error("ApiVersions", answer.error_code, "NONE")
    api_keys = {version.api_key for version in answer.api_keys}
    stage.true(SaslHandshakeRequest.api_key in api_keys, "SaslHandshake is not among the versions")


# --- handshakes ---


@case("sasl/handshake/1", KIP_43, "SaslHandshake", "NONE, and the mechanism among others", needs=HANDSHAKE)
async def case_mechanism(stage: Stage) -> None:
    """The answer names the mechanisms that are enabled."""
    stream, name = await _opened(stage), _sasl(stage).mechanism
    answer = await _response(stream, SaslHandshakeRequest, 1, mechanism=name)
    stage.error("SaslHandshake", answer.error_code, "NONE")
    stage.true(name in answer.mechanisms, f"{name} is not among the mechanisms")


@case(
    "sasl/handshake/2",
    KIP_43,
    "SaslHandshake for the mechanism DICE",
    "UNSUPPORTED_SASL_MECHANISM, with those that there are",
    needs=HANDSHAKE,
)
async def case_unknown_mechanism(stage: Stage) -> None:
    """A mechanism that is not enabled is refused with the names of those that are; the connection ends."""
    stream = await _opened(stage)
    answer = await _response(stream, SaslHandshakeRequest, 1, mechanism="DICE")
    stage.error("SaslHandshake", answer.error_code, "UNSUPPORTED_SASL_MECHANISM")
    stage.true(_sasl(stage).mechanism in answer.mechanisms, "the mechanisms are not named")
    await is_closed(stream, METADATA)


@case(
    "sasl/handshake/3", KIP_43, "SaslHandshake 0, and tokens without requests", "tokens, then answers",
    needs="SaslHandshake",
)  # fmt: skip
async def case_bare_tokens(stage: Stage) -> None:
    """After the older handshake tokens have no header."""
    await stage.needs("SaslHandshake", 0)
    stream, sasl = await _opened(stage), _credentials(stage)
    await _shaken(stage, stream, sasl.mechanism, version=0)
    tokens = sasl.tokens()
    step = next(tokens)
    while True:
        if isinstance(step, BlockingCall):
            step = tokens.send(await run_call(step))
            continue
        stream.writer.write(SIZE.pack(len(step)) + step)
        try:
            step = tokens.send(await received(stream, least=0))
        except StopIteration:
            break
    await _answers(stage, stream)


# --- credentials ---


@case("sasl/password/1", KIP_152, "the right password", "NONE, then answers", needs=AUTHENTICATE)
async def case_right(stage: Stage) -> None:
    """Who has proven its name is answered."""
    stream = await _opened(stage)
    await _authenticated(stage, stream)
    await _answers(stage, stream)


@case(
    "sasl/password/2", KIP_152, "a wrong password", "SASL_AUTHENTICATION_FAILED, and the connection ends",
    needs=AUTHENTICATE,
)  # fmt: skip
async def case_wrong(stage: Stage) -> None:
    """A wrong password is refused with an error, so that a client doesn't try again, and then closed."""
    stream = await _opened(stage)
    await _refused(stage, stream, replace(_credentials(stage), password="wrong"))
    await is_closed(stream, METADATA)


@case(
    "sasl/password/3", KIP_152, "a user that there is not", "SASL_AUTHENTICATION_FAILED, as for a password",
    needs=AUTHENTICATE,
)  # fmt: skip
async def case_unknown_user(stage: Stage) -> None:
    """An error doesn't show which users there are."""
    sasl = _credentials(stage)
    known = await _refused(stage, await _opened(stage), replace(sasl, password="wrong"))
    unknown = await _refused(stage, await _opened(stage), replace(sasl, user=f"{stage.prefix}-user"))
    stage.equal("the text", unknown, known)


@case(
    "sasl/password/4", KIP_152, "a token that is none", "SASL_AUTHENTICATION_FAILED, and the connection ends",
    needs=AUTHENTICATE,
)  # fmt: skip
async def case_garbage(stage: Stage) -> None:
    """What the mechanism can't read is refused as wrong credentials are."""
    stream = await _opened(stage)
    await _shaken(stage, stream, _credentials(stage).mechanism)
    answer = await _response(stream, SaslAuthenticateRequest, 0, auth_bytes=b"\xff\xfe\1")
    stage.error("SaslAuthenticate", answer.error_code, "SASL_AUTHENTICATION_FAILED")
    await is_closed(stream, METADATA)


@case("sasl/password/5", KIP_152, "a wrong password beside a right one", "answers", needs=AUTHENTICATE)
async def case_others(stage: Stage) -> None:
    """A refused client leaves the others alone."""
    stream = await _opened(stage)
    await _authenticated(stage, stream)
    refused = await _opened(stage)
    await _refused(stage, refused, replace(_credentials(stage), password="wrong"))
    await is_closed(refused, METADATA)
    await _answers(stage, stream)


# --- sessions ---


async def _session(stage: Stage, *, longest: int | None = None) -> tuple[Stream, int]:
    """An authenticated connection and the milliseconds of its session."""
    stream = await _opened(stage)
    lifetime = await _authenticated(stage, stream)
    if not lifetime:
        raise Lacking("sessions don't end")
    if longest is not None and lifetime > longest:
        raise Lacking(f"sessions last {lifetime / 1000:g} s")
    return stream, lifetime


@case(
    "sasl/again/1", KIP_368, "SaslHandshake and SaslAuthenticate again", "NONE, then answers",
    needs="SaslAuthenticate 1",
)  # fmt: skip
async def case_again(stage: Stage) -> None:
    """Where sessions end a client authenticates again on its connection, which goes on."""
    stream, _ = await _session(stage)
    await asyncio.sleep(SOONEST)
    stage.true(await _authenticated(stage, stream) > 0, "the new session doesn't end")
    await _answers(stage, stream)


@case(
    "sasl/again/2", KIP_368, "another password, again", "SASL_AUTHENTICATION_FAILED, and the connection ends",
    needs="SaslAuthenticate 1",
)  # fmt: skip
async def case_again_wrong(stage: Stage) -> None:
    """Who can't prove its name again loses the connection."""
    stream, _ = await _session(stage)
    await asyncio.sleep(SOONEST)
    await _refused(stage, stream, replace(_credentials(stage), password="wrong"))
    await is_closed(stream, METADATA)


@case(
    "sasl/again/3", KIP_368, "a request after the session's end", "the connection is closed",
    needs="SaslAuthenticate 1",
)  # fmt: skip
async def case_expired(stage: Stage) -> None:
    """A session that has ended is answered no more."""
    stream, lifetime = await _session(stage, longest=LONGEST_SESSION_MS)
    await asyncio.sleep(lifetime / 1000 + 0.2)
    await is_closed(stream, METADATA)


@case(
    "sasl/again/4", KIP_368, "SaslHandshake again, where sessions don't end", "ILLEGAL_SASL_STATE",
    needs=HANDSHAKE,
)  # fmt: skip
async def case_never_again(stage: Stage) -> None:
    """Where sessions don't end a second handshake is an error, and the connection goes on."""
    stream = await _opened(stage)
    if await _authenticated(stage, stream):
        raise Lacking("sessions end")
    answer = await _response(stream, SaslHandshakeRequest, 1, mechanism=_sasl(stage).mechanism)
    stage.error("SaslHandshake", answer.error_code, "ILLEGAL_SASL_STATE")
    await _answers(stage, stream)
