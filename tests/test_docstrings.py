"""The examples in docstrings of public classes run, and each class has one."""

from __future__ import annotations

import dataclasses
import doctest
import importlib
import inspect
import re
from collections.abc import Iterator
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from coordwire.broker import Broker
from coordwire.client import connect_sync
from coordwire.codec import Message
from coordwire.coordinator import Append, GroupCoordinator, RequestContext, TopicImage, TopicsImage
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    JoinGroupRequest,
    ShareGroupHeartbeatRequest,
)
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.testing.simulation import CHECKERS

WHOLE_PAGES = ("coordwire", "coordwire.broker")
"""All classes of these have an example."""

PAGES = (
    "coordwire.broker.harness", "coordwire.broker.injection", "coordwire.capture", "coordwire.client",
    "coordwire.codec", "coordwire.coordinator", "coordwire.coordinator.share_partition",
    "coordwire.coordinator.share_state", "coordwire.coordinator.transactions", "coordwire.dialects",
    "coordwire.designs.simulator", "coordwire.designs.simulator.runs", "coordwire.patterns",
    "coordwire.records", "coordwire.replay", "coordwire.segments", "coordwire.tap",
    "coordwire.testing.simulation", "coordwire.timeline",
)  # fmt: skip
"""The classes of these that people use have one: not those of errors, and of values, whose fields say it."""

FINDER = doctest.DocTestFinder(recurse=False)


def public_classes() -> list[type[Any]]:
    classes: dict[type[Any], None] = {}
    for page in (*WHOLE_PAGES, *PAGES):
        module = importlib.import_module(page)
        for name in module.__all__:
            value = getattr(module, name)
            if inspect.isclass(value) and (page in WHOLE_PAGES or not is_value(value)):
                classes[value] = None
    return list(classes)


def is_value(cls: type[Any]) -> bool:
    return (
        dataclasses.is_dataclass(cls)
        or issubclass(cls, (BaseException, Enum, dict, tuple))
        or getattr(cls, "_is_protocol", False)
        or cls in CHECKERS
    )


@pytest.mark.parametrize("cls", public_classes(), ids=lambda cls: cls.__name__)
def test_its_example_runs(cls: type[Any]) -> None:
    """Alone: it imports what it uses."""
    (test,) = FINDER.find(cls, globs={})
    assert test.examples, f"{cls.__name__} has no example"
    said: list[str] = []
    result = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, out=said.append)
    assert result.failed == 0, "".join(said)


@pytest.mark.parametrize("cls", public_classes(), ids=lambda cls: cls.__name__)
def test_its_repr_is_not_that_of_any_object(cls: type[Any]) -> None:
    if cls.__name__ in ("Message", "Request", "Response", "Struct"):  # whose subclasses have their own
        return
    assert cls.__repr__.__qualname__ != "object.__repr__"


def public_texts() -> Iterator[tuple[str, str]]:
    """The docstrings of public functions, and of classes with their methods, by name."""
    for page in (*WHOLE_PAGES, *PAGES, "coordwire.coordinator.transactions", "coordwire.records.kafka_07"):
        module = importlib.import_module(page)
        for name in module.__all__:
            value = getattr(module, name)
            members = vars(value).items() if inspect.isclass(value) else ()
            for of, each in [("", value), *members]:
                if text := getattr(each, "__doc__", None):
                    yield f"{page}.{name}.{of}", text


def test_docstrings_stand_alone() -> None:
    """None says what an argument or a result is by the name of what else has it."""
    wrong = [
        name
        for name, text in public_texts()
        if re.search(r"(?<!Raises )\bas\s+`[\w.]+`\s+(has|have|does)\b", text)
    ]
    assert wrong == []


def test_brokers_and_clients_say_where_they_are() -> None:
    stopped = Broker(nodes=3)
    assert repr(stopped) == "<Broker not running: 3 nodes>"
    with Broker.in_thread(topics={"orders": 6}) as thread, connect_sync(thread.bootstrap) as client:
        broker = f"<Broker {thread.bootstrap}: 1 node, 1 topic, 1 connection>"
        assert repr(thread) == f"<BrokerThread of {broker}>"
        assert repr(client) == f"<SyncClient of {thread.bootstrap}: 1 connection>"
    assert repr(client).endswith(": 0 connections>")


def test_groups_say_what_they_are() -> None:
    coordinator = GroupCoordinator(partitions=1)
    coordinator.load(0, [], now=0)
    coordinator.set_topics(TopicsImage([TopicImage(UUID(int=7), "orders", 2)]), now=0)
    context = RequestContext(client_id="till-3", client_host="/192.0.2.7", new_id=lambda: "1")
    requests: list[tuple[Message, int]] = [
        (
            JoinGroupRequest(
                group_id="c",
                session_timeout_ms=9_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name="range")],
            ),
            3,
        ),
        (
            ConsumerGroupHeartbeatRequest(
                group_id="n",
                member_id="m",
                member_epoch=0,
                rebalance_timeout_ms=9,
                subscribed_topic_names=["orders"],
                topic_partitions=[],
            ),
            1,
        ),
        (ShareGroupHeartbeatRequest(group_id="s", member_id="m", subscribed_topic_names=["orders"]), 1),
    ]
    for request, api_version in requests:
        coordinator.handle(request, version=api_version, now=0, context=context)
        for effect in coordinator.effects():
            if isinstance(effect, Append):
                coordinator.appended(effect.partition, effect.number, now=0)
    assert {name: repr(group).split(":")[0] for name, group in coordinator.groups.items()} == {
        "c": "<classic group 'c'",
        "n": "<consumer group 'n'",
        "s": "<share group 's'",
    }
    assert repr(coordinator.groups["n"]) == "<consumer group 'n': Stable, 1 member>"
