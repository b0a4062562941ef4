"""What Jupyter shows: escaped, without secrets, of a bounded size, and only when it is asked for."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire import (
    ApiKey,
    _display,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
    find_message,
)
from coordwire.capture import Capture
from coordwire.capture.entries import FrameEntry
from coordwire.codec import Struct
from coordwire.errors import Malformed, UnreadableRange
from coordwire.messages import (
    AlterConfigsRequest,
    AlterUserScramCredentialsRequest,
    ConfigRecord,
    ConsumerProtocolSubscription,
    FetchResponse,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    MetadataResponse,
    SaslAuthenticateRequest,
)
from coordwire.messages.alter_configs import AlterableConfig, AlterConfigsResource
from coordwire.messages.alter_user_scram_credentials import ScramCredentialUpsertion
from coordwire.messages.fetch import FetchableTopicResponse, PartitionData
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.notebook import html, mimebundle, show, text, tree
from coordwire.testing import strategies
from coordwire.timeline import RebalanceBegan, timeline
from coordwire.timeline.events import Assignment, GroupEvent, Moved, RebalanceEnded, TopicPartition

CAPTURES = Path(__file__).parents[1] / "data" / "captures"
EVIL = "</td></style><script>alert(1)</script>\"'><img src=x onerror=alert(1)>\x1b[31m\u202e\0&amp;"
TAGS = {
    "div", "style", "table", "thead", "tbody", "tr", "th", "td", "b", "p", "details", "summary", "h3", "h4",
    "svg", "text", "tspan", "rect", "line", "title",
}  # fmt: skip
ATTRIBUTES = {
    "open", "title", "role", "aria-label", "style", "font-size", "fill", "x", "y", "text-anchor", "opacity",
    "x1", "x2", "y1", "y2", "stroke", "stroke-width", "width", "height",
}  # fmt: skip
CLASSES = {"coordwire", "note", "scroll", "short", "long", "number"}
MOST = 150_000
"""Characters that anything may take."""


class Checked(HTMLParser):
    """Refuses tags and attributes that we don't write; `text` is what a reader sees."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []
        assert all(char.isprintable() for char in page)
        assert len(page) < MOST

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        for name, value in attributes:
            assert value in CLASSES if name == "class" else name in ATTRIBUTES
        self._open.append(tag)

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data


def checked(value: object) -> str:
    """What is shown of a value, once both renderings were found harmless."""
    bundle = mimebundle(value)
    assert bundle["text/html"] == html(value)
    assert bundle["text/plain"] == text(value)
    assert all(char.isprintable() or char == "\n" for char in bundle["text/plain"])
    assert len(bundle["text/plain"]) < MOST
    return Checked(bundle["text/html"]).text + bundle["text/plain"]


def with_evil(cls: Any, depth: int = 0) -> Any:
    """A message or struct with hostile texts wherever there may be texts, and bytes that are one."""
    value = cls()
    for field in cls._layout_.fields:
        item: Any = None
        if field.struct is not None:
            item = with_evil(field.struct, depth + 1) if depth < 4 else None
        elif field.type == "string":
            item = EVIL
        elif field.type not in ("bool", "uuid", "float64") and "int" not in field.type:
            item = EVIL.encode()
        if item is not None:
            setattr(value, field.name, [item, item] if field.array else item)
    return value


def test_hostile_texts_in_every_message() -> None:
    values = 0
    for key in ApiKey:
        for direction in ("request", "response"):
            message = checked(with_evil(find_message(key, direction)))
            values += "<script>" in message  # as text
    assert values > 100


def test_hostile_texts_in_events_and_entries() -> None:
    for event in (
        RebalanceBegan(group=EVIL, time_ns=1, source=EVIL, number=1, kind="classic", cause="unknown",
                       member_id=EVIL, inferred=True, detail=EVIL),
        rebalance(EVIL),
    ):  # fmt: skip
        assert "<script>" in checked(event)
        assert "<script>" in checked(show([event]))
    unreadable = UnreadableRange(position=1, length=2, reason=EVIL, data=b"secret", flow=EVIL)
    assert "<script>" in checked(show([unreadable, *entries("kpy__rdmock__apiversions-fallback.pcap")]))
    assert "secret" not in checked(unreadable) + checked(show([unreadable]))


def rebalance(name: str, members: int = 2) -> RebalanceEnded:
    owned = tuple(TopicPartition(name, number) for number in range(members))
    return RebalanceEnded(
        group=name, time_ns=2, source=name, number=1, kind="classic", outcome="steady", cause="new_member",
        member_id=name, inferred=False, detail=name, began_ns=1, joined_ns=1, ended_ns=2, length_ns=1_500_000,
        generation_before=1, generation=2, protocol=name, leader=name, members=(name,) * members,
        last_to_join=name, assignments=(Assignment(name, owned),) * members,
        moved=(Moved(name, 0, None, name),) * members,
    )  # fmt: skip


def entries(name: str) -> list[Any]:
    with (CAPTURES / name).open("rb") as stream:
        return list(Capture(stream, name).entries())


# --- secrets ---

PASSWORD = "hunter2hunter2"
SALTED = b"\x13\x37salted-password"


def scram() -> AlterUserScramCredentialsRequest:
    item = ScramCredentialUpsertion(
        name="alice", mechanism=1, iterations=4096, salt=SALTED, salted_password=SALTED
    )
    return AlterUserScramCredentialsRequest(upsertions=[item])


def configs() -> AlterConfigsRequest:
    config = AlterableConfig(name="ssl.keystore.password", value=PASSWORD)
    plain = AlterableConfig(name="retention.ms", value="3600000")
    return AlterConfigsRequest(resources=[AlterConfigsResource(configs=[config, plain])])


@pytest.mark.parametrize(
    "message",
    [
        scram(), scram().upsertions[0], configs(), configs().resources[0], configs().resources[0].configs[0],
        SaslAuthenticateRequest(auth_bytes=b"\0alice\0" + PASSWORD.encode()),
        ConfigRecord(resource_name="broker", name="sasl.jaas.config", value=PASSWORD),
        AlterUserScramCredentialsRequest(tags={99: SALTED}),
        ScramCredentialUpsertion(tags={99: SALTED}),
    ],
    ids=lambda message: type(message).__name__,
)  # fmt: skip
def test_secrets_are_not_shown(message: Struct) -> None:
    output_text = checked(message)
    assert tree.SECRET in output_text
    for secret in (PASSWORD, PASSWORD.encode().hex(), SALTED.hex()):
        assert secret not in output_text


def test_what_is_no_secret_is_shown() -> None:
    assert "3600000" in checked(configs())
    assert "3600000" in checked(configs().resources[0].configs[1])
    assert "alice" in checked(scram())


def test_secrets_of_frames_are_not_shown() -> None:
    frame = decode_request(encode_request(scram(), version=0, correlation_id=7, client_id="till-3"))
    for message in (checked(frame), checked(show([frame]))):
        assert SALTED.hex() not in message
        assert "till-3" in message
    assert tree.SECRET in checked(frame)


def test_secrets_of_a_capture_are_not_shown() -> None:
    """As `coordwire decode` withholds them: tokens, and frames that may be ones."""
    results = entries("confluent__noida__sasl.pcap")
    output = "".join(checked(entry) for entry in results) + checked(show(results))
    for entry in results:
        if not isinstance(entry, UnreadableRange) and (
            entry.token or entry.api_key == ApiKey.SASL_AUTHENTICATE
        ):
            secret = getattr(entry.message, "auth_bytes", None) or entry.body
            assert len(secret) < 8 or secret.hex()[:16] not in output
    assert tree.SECRET in output


def test_a_client_id_that_swallowed_a_secret_is_not_shown() -> None:
    """As of a frame whose lengths were changed, which was refused."""
    entry = FrameEntry(
        capture="c", number=1, flow="f", time_ns=None, direction="request", body=b"x" * 9, api_key=36,
        api_version=2, client_id=f"\0{PASSWORD}", error=Malformed("a length of 99", 4, "client_id"),
    )  # fmt: skip
    for message in (checked(entry), checked(show([entry]))):
        assert PASSWORD not in message
        assert "a length of 99" in message


# --- bounds ---


def test_large_messages_are_cut() -> None:
    partitions = [
        PartitionData(partition_index=number, error_code=1, records=bytes(50)) for number in range(20_000)
    ]
    topics = [FetchableTopicResponse(topic="t" * 100_000, partitions=partitions)] * 20
    message = checked(FetchResponse(responses=topics))
    assert "19,980 more elements" in message
    assert "(100,000 characters)" in message
    assert "more fields are not shown" in checked(with_evil(MetadataResponse)) or len(message) < MOST


def test_large_events_are_cut() -> None:
    message = checked(rebalance("orders", 5000))
    assert "4,980 more" in message
    checked(show([rebalance("o" * 10_000, 500)] * 200))


def test_only_as_much_is_drawn_as_is_shown() -> None:
    numbers = iter(range(1000))
    requests = (HeartbeatRequest(generation_id=number) for number in numbers)
    message = checked(show(requests, most=10))
    assert next(numbers) == 11
    assert "The first 10; there are more." in message
    assert "Nothing." in checked(show([]))


@settings(max_examples=60, database=None)
@given(strategies.requests())
def test_any_request(request: Any) -> None:
    checked(request)


@settings(max_examples=40, database=None)
@given(st.data())
def test_fields_may_hold_anything(data: st.DataObject) -> None:
    """They are a user's to set: what is shown may say less, and nothing is raised."""
    any_value = st.sampled_from(
        [None, 5, -1.5, EVIL, [EVIL], [None], {EVIL: 1}, object(), b"\xff", "\udc80", 10**5000]
    )
    request = JoinGroupRequest(protocols=[JoinGroupRequestProtocol()])
    for field in fields(request):
        setattr(request, field.name, data.draw(any_value))
    checked(request)


def test_what_cannot_be_shown_says_so() -> None:
    request: Any = JoinGroupRequest()
    request.protocols = [request]
    assert checked(request).startswith("JoinGroupRequest")
    request.tags = 5
    assert "can't be shown" in checked(request)


# --- what is said ---


def test_a_frame_says_what_it_is() -> None:
    subscription = b"\0\1" + ConsumerProtocolSubscription(topics=["orders"]).encode(version=1)
    request = JoinGroupRequest(
        group_id="payments", protocol_type="consumer",
        protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
    )  # fmt: skip
    frame = decode_request(encode_request(request, version=5, correlation_id=7, client_id="till-3"))
    plain = text(frame)
    assert plain.splitlines()[:5] == [
        "JoinGroup v5 request", "  correlation_id: 7", '  client_id: "till-3"', f"  size: {frame.size} bytes",
        "  JoinGroupRequest:",
    ]  # fmt: skip
    assert '    group_id: "payments"' in plain
    assert "ConsumerProtocolSubscription v1" in plain
    assert 'topics: ["orders"]' in plain
    assert frame._repr_mimebundle_() == mimebundle(frame)
    assert frame._repr_html_() == html(frame)
    answer = encode_response(HeartbeatResponse(error_code=27), version=4, correlation_id=7)
    response = decode_response(answer, api_key=12, version=4)
    assert "error_code: 27 REBALANCE_IN_PROGRESS" in text(response)
    assert "27 REBALANCE_IN_PROGRESS" in text(show([response]))
    assert "error_code: 0 NONE" in text(HeartbeatResponse())


def test_a_capture_and_its_timeline() -> None:
    results = entries("confluent__rdmock__group-range.pcap")
    lines = repr(show(results)).splitlines()
    assert lines[0].split() == ["time", "#", "flow", "frame", "client", "size", "latency", "error"]
    assert len(lines) == 1 + min(len(results), 200) + (len(results) > 200)
    assert any("refused: " in line for line in lines)
    refused = next(entry for entry in results if not isinstance(entry, UnreadableRange) and entry.error)
    assert f"refused: byte {refused.error.position}" in text(refused)
    events: list[GroupEvent] = list(timeline(results))
    message = checked(show(events))
    assert "longest without a consumer" in message
    assert "#1 (ck-m1) first" in message
    for event in events:
        assert event.group in checked(event)


def test_the_core_does_not_import_it() -> None:
    script = (
        "import sys, coordwire\n"
        "from coordwire.messages import HeartbeatRequest\n"
        "HeartbeatRequest(), coordwire.decode_request, coordwire.Connection\n"
        "assert not [name for name in sys.modules if name.startswith('coordwire.notebook')]\n"
        "assert 'html' not in sys.modules\n"
        "assert 'HeartbeatRequest' in HeartbeatRequest()._repr_html_()\n"
        "assert 'coordwire.notebook' in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_another_renderer_and_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without one, or with one that raises, a secret isn't shown either."""

    def raising(value: object) -> dict[str, str]:
        raise LookupError(repr(value))

    message = SaslAuthenticateRequest(auth_bytes=PASSWORD.encode())
    for renderer, reason in (
        (None, "coordwire is not installed, or in another version"),
        (raising, "LookupError"),
    ):
        monkeypatch.setattr(_display, "_renderer", lambda renderer=renderer: renderer)
        assert message._repr_mimebundle_() == {
            "text/plain": f"SaslAuthenticateRequest: can't be shown ({reason}); `repr` has all of it"
        }
        assert message._repr_html_() is None
    monkeypatch.setattr(_display, "_renderer", lambda: lambda value: {"text/html": type(value).__name__})
    assert HeartbeatResponse()._repr_html_() == "HeartbeatResponse"


METADATA = {
    "none": ("coordwire", None),
    "without the group": ("coordwire", "[console_scripts]\ncoordwire = coordwire.cli.__main__:main\n"),
    "of a module that is gone": ("coordwire", "[coordwire_display]\nnotebook = coordwire.gone:mimebundle\n"),
    "of a name that is gone": ("coordwire", "[coordwire_display]\nnotebook = coordwire.notebook:gone\n"),
    "damaged": ("coordwire", "[coordwire_display]\nnotebook\n= = =\n"),
    "of another project": ("aardvark", "[coordwire_display]\nnotebook = builtins:repr\n"),
}
"""What may be installed beside, before this project's metadata: a project, and its entry points."""


@pytest.mark.parametrize("name", METADATA)
def test_what_else_is_installed_does_not_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    project, points = METADATA[name]
    folder = tmp_path / f"{project}-0.0.1.dist-info"
    folder.mkdir()
    if points is not None:
        (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project}\nVersion: 0.0.1\n")
        (folder / "entry_points.txt").write_text(points)
    monkeypatch.syspath_prepend(tmp_path)
    assert _display._renderer.__wrapped__() is mimebundle
