"""What members' clients are, by the ApiVersions that they asked first on their connections."""

from __future__ import annotations

import pytest

from coordwire.messages import ApiVersionsRequest, ApiVersionsResponse
from coordwire.timeline.event_json import event_json, read_event
from coordwire.timeline.events import MemberJoined
from coordwire.timeline.story.collected import CollectedEvents
from coordwire.timeline.story.contents import StoryContents
from tests.timeline.script import Script, only


def says(script: Script, client: str, name: str, version: str, *, api_version: int = 3) -> None:
    request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
    answer = script.answer(script.ask(request, client, version=api_version), ApiVersionsResponse())
    answer.body = bytes(10)


def steady(*clients: tuple[str, str]) -> Script:
    """A group of these clients with their software; "" for one that says nothing."""
    script = Script()
    for client, software in clients:
        if software:
            says(script, client, software, "1.2")
    return script.steady(*(client for client, _ in clients))


def test_a_member_has_its_software() -> None:
    joins = only(steady(("a", "sarama"), ("b", "")).events(ends=True), MemberJoined)
    assert {join.client_id: join.software for join in joins} == {"a": "sarama 1.2", "b": None}
    assert [read_event(event_json(join)) for join in joins] == joins


@pytest.mark.parametrize("api_version", [0, 2])
def test_an_earlier_version_has_no_software(api_version: int) -> None:
    script = Script()
    says(script, "a", "sarama", "1.2", api_version=api_version)
    assert [join.software for join in only(script.steady("a").events(ends=True), MemberJoined)] == [None]


def test_another_connection_is_another_client() -> None:
    script = Script()
    says(script, "a", "sarama", "1.2")
    script.port = 2
    assert [join.software for join in only(script.steady("a").events(ends=True), MemberJoined)] == [None]


def test_too_long_a_name_is_no_software() -> None:
    script = Script()
    says(script, "a", "s" * 100, "1.2")
    assert [join.software for join in only(script.steady("a").events(ends=True), MemberJoined)] == [None]


def members(script: Script) -> tuple[str, list[bool]]:
    """The title of those who are in at the end, and whether each one's line names its software."""
    story = StoryContents(CollectedEvents(script.events(ends=True)).groups["g"])
    title, lines, _ = next(story.presence())
    return title, ["sarama 1.2" in line.notes for line in lines]


def test_software_that_all_have_is_beside_the_title() -> None:
    assert members(steady(("a", "sarama"), ("b", "sarama"))) == (
        "In at the end (2), all sarama 1.2", [False, False],
    )  # fmt: skip
    assert members(steady(("a", "sarama"))) == ("In at the end (1), sarama 1.2", [False])


def test_different_software_is_beside_each_member() -> None:
    assert members(steady(("a", "sarama"), ("b", ""))) == ("In at the end (2)", [True, False])
