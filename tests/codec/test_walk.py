"""The walk over the fields of messages: complete, in order, bounded by the schema."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordwire.codec import Field, Message
from coordwire.codec.walk import FieldSelection, elements, fields_of, layout_of, walk
from coordwire.messages import FetchRequest, JoinGroupRequest, MetadataResponse, OffsetCommitRequest
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from coordwire.testing import strategies

CLASSES: list[type[Message]] = [FetchRequest, JoinGroupRequest, MetadataResponse, OffsetCommitRequest]
STEP = re.compile(r"([a-z_0-9]+)|\[(\d+)\]")


def at(value: Any, path: str) -> Any:
    """What a path leads to."""
    for name, index in STEP.findall(path):
        value = getattr(value, name) if name else value[int(index)]
    return value


@st.composite
def messages(draw: st.DrawFn) -> tuple[Message, int]:
    cls = draw(st.sampled_from(CLASSES))
    version = draw(st.sampled_from(list(cls.versions)))
    return draw(strategies.messages(cls, version=version)), version


def test_a_message_in_order() -> None:
    request = JoinGroupRequest(
        group_id="g", protocols=[JoinGroupRequestProtocol(name="range", metadata=b"x")]
    )
    places = list(walk(request, 0))
    assert [(place.path, place.value) for place in places] == [
        ("group_id", "g"),
        ("session_timeout_ms", 0),
        ("member_id", ""),
        ("protocol_type", ""),
        ("protocols", request.protocols),
        ("protocols[0].name", "range"),
        ("protocols[0].metadata", b"x"),
    ]
    assert places[-1].owner is request.protocols[0]
    assert places[-1].field is fields_of(JoinGroupRequestProtocol)[1]
    assert [place.path for place in walk(request.protocols[0], path="protocols[0]")] == [
        "protocols[0].name",
        "protocols[0].metadata",
    ]


def test_tagged_fields_come_last_by_number() -> None:
    fields = fields_of(FetchRequest, 17)
    tags = [field.tag for field in fields if field.tag is not None]
    assert tags == sorted(tags)
    assert tags
    assert all(field.tag is not None for field in fields[-len(tags) :])
    assert {field.name for field in fields} == {f.name for f in fields_of(FetchRequest) if f.exists(17)}
    assert layout_of(FetchRequest, 17) is layout_of(FetchRequest(), 17)


@given(messages())
def test_paths_lead_to_values(case: tuple[Message, int]) -> None:
    message, version = case
    for chosen in (version, None):
        for path, owner, field, value in walk(message, chosen):
            assert at(message, path) is value
            above, _, name = path.rpartition(".")
            assert name.partition("[")[0] == field.name
            assert at(message, above) is owner
            assert chosen is None or field.exists(chosen)


@given(messages(), st.sampled_from(["string", "int32", "bytes", "uuid"]))
def test_a_selection_gives_what_the_walk_gives(case: tuple[Message, int], kind: str) -> None:
    message, version = case
    selection = FieldSelection(lambda field: field.type == kind)
    for chosen in (version, None):
        expected = {
            place.path: place.value
            for place in walk(message, chosen)
            if place.field.type == kind and (place.value is not None or place.path.endswith("]"))
        }
        expected = {path: value for path, value in expected.items() if not isinstance(value, list)}
        places = list(selection.places(message, chosen))
        assert {place.path: place.value for place in places} == expected
        assert [place.value for place in places] == list(selection.values(message, chosen))
        assert all(at(message, place.path) is place.value for place in places)


def test_a_selection_asks_once_for_each_field() -> None:
    names: list[str] = []

    def matches(field: Field) -> bool:
        names.append(field.name)
        return field.name == "error_code"

    selection = FieldSelection(matches)
    response = MetadataResponse(
        topics=[MetadataResponseTopic(partitions=[MetadataResponsePartition()] * 3) for _ in range(3)]
    )
    assert len(list(selection.places(response))) == 1 + 3 + 9
    count = len(names)
    assert len(list(selection.values(response))) == 1 + 3 + 9
    assert len(names) == count
    assert len(set(selection.fields(MetadataResponse))) == 2
    assert FieldSelection(lambda field: False).fields(MetadataResponse) == ()


def test_a_message_inside_itself_ends() -> None:
    response = MetadataResponse()
    response.topics = [response]  # type: ignore[list-item]  # what an encoder refuses
    assert [place.path for place in walk(response) if place.path.startswith("topics")] == ["topics"]
    topic = MetadataResponseTopic()
    topic.partitions = [topic]  # type: ignore[list-item]
    with pytest.raises(AttributeError):
        list(FieldSelection(lambda field: field.name == "partition_index").values(topic))


def test_elements() -> None:
    (field,) = (field for field in fields_of(JoinGroupRequest) if field.name == "protocols")
    assert list(elements("protocols", field, None)) == []
    assert list(elements("protocols", field, ["a", "b"])) == [("protocols[0]", "a"), ("protocols[1]", "b")]
