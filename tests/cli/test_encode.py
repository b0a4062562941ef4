"""`coordwire encode`: what it refuses, and in what words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coordwire.frames import encode_request, encode_response
from coordwire.messages import HeartbeatRequest, HeartbeatResponse

from .conftest import Run

FRAME = encode_request(
    HeartbeatRequest(group_id="g", generation_id=3, member_id="m"),
    version=4,
    correlation_id=7,
    client_id="till",
)
FORM: dict[str, Any] = {
    "direction": "request", "apiKey": 12, "apiVersion": 4, "correlationId": 7, "clientId": "till",
    "body": {"groupId": "g", "generationId": 3, "memberId": "m", "groupInstanceId": None},
}  # fmt: skip
Change = Callable[[dict[str, Any]], object]


def encode(run: Run, *forms: object) -> Any:
    return run("encode", "-", stdin="\n".join(json.dumps(form) for form in forms).encode())


def test_a_line_by_hand_needs_few_keys(run: Run) -> None:
    result = encode(run, FORM)
    assert (result.status, result.err) == (0, "")
    assert result.text == FRAME.hex() + "\n"


CHANGES: list[tuple[Change, str]] = [
    (lambda form: form["body"].update(groupID=form["body"].pop("groupId")), "body.groupID: "),
    (lambda form: form["body"].pop("groupId"), "body.group_id: missing"),
    (lambda form: form["body"].update(memberid="m"), "body.memberid: "),
    (lambda form: form["body"].update(generationId=1 << 31), "body.generation_id: beyond int32"),
    (lambda form: form["body"].update(generationId="3"), "body.generation_id: expected int"),
    (lambda form: form["body"].update(_tags={"x": ""}), "body.tags: "),
    (lambda form: form.update(body=None), "body: expected an object"),
    (lambda form: form.update(direction="sideways"), 'direction: expected "request" or "response"'),
    (lambda form: form.update(apiKey=999), "apiKey: no API has the key 999"),
    (lambda form: form.update(apiKey=1 << 40), "apiKey: 1099511627776 is beyond int16"),
    (lambda form: form.update(apiVersion=44), "body: HeartbeatRequest has no version 44"),
    (lambda form: form.pop("correlationId"), "correlationId: missing"),
    (lambda form: form.update(correlationId=True), "correlationId: expected a number"),
    (lambda form: form.update(clientId=5), "clientId: expected a string or null"),
    (lambda form: form.update(clientId="x" * 40_000), ""),
    (lambda form: form.update(headerTags={"x": ""}), "headerTags.x: expected a tag"),
    (lambda form: form.update(headerTags={"1": "!"}), "headerTags.1: not base64"),
    (lambda form: form.update(headerTags=[]), "headerTags: expected an object"),
    (lambda form: form.update(raw="0"), "raw: not hex"),
    (lambda form: form.update(raw=7), "raw: expected hex digits"),
    (lambda form: form.update(error={"reason": "x"}), "raw: a refused frame"),
    (lambda form: form.update(redacted=["a.b"], body=None), "redacted: a.b; decode with --show-secrets"),
]


@pytest.mark.parametrize(
    ("change", "words"), CHANGES, ids=lambda value: value[:40] if isinstance(value, str) else ""
)
def test_a_bad_line_says_where_and_why(run: Run, change: Change, words: str) -> None:
    damaged = json.loads(json.dumps(FORM))
    change(damaged)
    result = encode(run, FORM, damaged, FORM)
    assert result.status == 1
    assert result.text == 2 * (FRAME.hex() + "\n")  # the others are written
    assert result.err.startswith(f"coordwire: line 2: {words}")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("line", [b"{", b"[]", b"7", b"\xff", b"[" * 100_000, b"1" * 5000, b"nonsense"])
def test_what_is_no_object(run: Run, line: bytes) -> None:
    result = run("encode", "-", stdin=b"\n" + line + b"\n")
    assert result.status == 1
    assert result.err.startswith("coordwire: line 2: ")


def test_header_tags(run: Run) -> None:
    frame = encode_request(
        HeartbeatRequest(group_id="g"), version=4, correlation_id=1, client_id=None, header_tags={3: b"\1"}
    )
    answer = encode_response(HeartbeatResponse(), version=4, correlation_id=1, header_tags={9: b""})
    lines = run("decode", "--format", "json", "-", stdin=f"{frame.hex()}\n{answer.hex()}".encode())
    assert [form["headerTags"] for form in lines.forms] == [{"3": "AQ=="}, {"9": ""}]
    assert run("encode", "-", stdin=lines.out).text.split() == [frame.hex(), answer.hex()]
    old = encode(
        run,
        FORM
        | {
            "apiVersion": 2,
            "headerTags": {"1": ""},
            "body": {"groupId": "", "generationId": 1, "memberId": ""},
        },
    )
    assert "the header of version 2 has no tagged fields" in old.err


def test_stretches_are_skipped_with_a_note(run: Run) -> None:
    result = encode(run, {"frame": None, "error": {"reason": "x"}, "size": 5}, FORM)
    assert result.status == 0
    assert result.text == FRAME.hex() + "\n"
    assert "line 1: skipped" in result.err


def test_files(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text(json.dumps(FORM))
    assert run("encode", path).text == FRAME.hex() + "\n"
    assert run("encode", "--to", "frames", path).out == FRAME
    assert run("encode", tmp_path / "none").status == 2
    assert run("encode", tmp_path).status == 2
    assert run("encode", stdin=path.read_bytes()).out == run("encode", path).out
