"""What `help` and `inspect.signature` give of messages."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
from dataclasses import dataclass
from uuid import UUID

import pytest

from coordwire import messages
from coordwire.codec import Message, Struct
from coordwire.codec.class_docs import WIDTH, ClassDoc, own_doc
from coordwire.messages import FetchRequest, HeartbeatRequest, HeartbeatResponse, RequestHeader, find_message
from coordwire.messages.fetch import FetchTopic, ForgottenTopic, ReplicaState


def test_help_shows_the_fields() -> None:
    text = pydoc.plain(pydoc.render_doc(FetchRequest))
    for line in (
        "API key 1, versions 0 to 18, flexible from 12, answered by FetchResponse.",
        "    max_wait_ms: int = 0  (int32)",
        "        Longest wait for min_bytes, in ms.",
        "    replica_state: ReplicaState = ReplicaState()",
        "    topics: list[FetchTopic] = []",
        "    rack_id: str = ''  (string)",
        "nearby replica. (v11+)",
        "    tags: dict[int, bytes] | None = None",
    ):
        assert line in text, line
    assert "field(" not in text


def test_structs_headers_and_subclasses_have_docs() -> None:
    assert "    topic: str = ''  (string)\n        Its name, up to version 12. (v0-v12)" in (
        FetchTopic.__doc__ or ""
    )
    assert "Versions 0 to 3, flexible from 2." in (RequestHeader.__doc__ or "")
    assert "answered by" not in (HeartbeatResponse.__doc__ or "")

    class Noted(HeartbeatRequest):
        pass

    assert Noted.__doc__ is None
    assert inspect.getdoc(Noted) == inspect.getdoc(HeartbeatRequest)


def test_a_class_has_its_own_text_too() -> None:
    assert own_doc(HeartbeatResponse) == "The response to HeartbeatRequest."
    assert own_doc(FetchRequest).splitlines()[-1] == "up."
    assert own_doc(type("Bare", (Struct,), {})) == ""


def test_the_signature_has_types_and_defaults() -> None:
    parameters = inspect.signature(FetchRequest).parameters
    assert list(parameters) == [*(field.name for field in FetchRequest._layout_.fields), "tags"]
    assert {parameter.kind for parameter in parameters.values()} == {inspect.Parameter.KEYWORD_ONLY}
    assert parameters["rack_id"].annotation is str
    assert parameters["rack_id"].default == ""
    assert parameters["cluster_id"].annotation == str | None
    assert parameters["topics"].annotation == list[FetchTopic]
    assert str(parameters["forgotten_topics_data"]).endswith(f"{ForgottenTopic.__name__}] = []")
    assert str(parameters["replica_state"]).endswith(" = ReplicaState()")
    assert parameters["replica_state"].annotation is ReplicaState
    assert inspect.signature(FetchTopic).parameters["topic_id"].default == UUID(int=0)


def test_a_subclass_with_an_init_has_its_own_signature() -> None:
    class Made(HeartbeatRequest):
        def __init__(self, group: str) -> None:
            super().__init__(group_id=group)

    @dataclass(slots=True, kw_only=True)
    class Noted(HeartbeatRequest):
        note: str = ""

    class Plain(HeartbeatRequest):
        pass

    assert list(inspect.signature(Made).parameters) == ["group"]
    assert list(inspect.signature(Noted).parameters)[-1] == "note"
    assert inspect.signature(Plain) == inspect.signature(HeartbeatRequest)


@pytest.mark.parametrize("name", sorted(set(messages.__all__) - {"find_message"}))
def test_every_message(name: str) -> None:
    cls: type[Message] = find_message(name)
    text = cls.__doc__
    assert text is not None
    assert text.startswith(own_doc(cls))
    assert all(len(line) <= WIDTH for line in text.splitlines() if line.startswith(" " * 8))
    assert "\n    tags: dict[int, bytes] | None = None\n" in text
    made = inspect.signature(cls)
    for field in cls._layout_.fields:
        assert f"\n    {field.name}: " in text
        assert getattr(cls(), field.name) == (
            field.fresh_default() if field.struct and not field.array else made.parameters[field.name].default
        )


def test_docs_are_made_when_they_are_asked_for() -> None:
    kept = vars(FetchRequest)["__doc__"]
    assert isinstance(kept, ClassDoc)
    assert "Fields:" not in kept.text


def test_python_without_docs() -> None:
    code = "from coordwire.messages import FetchRequest; print(FetchRequest.__doc__)"
    result = subprocess.run([sys.executable, "-OO", "-c", code], capture_output=True, text=True, check=True)
    assert "    rack_id: str = ''  (string)" in result.stdout
