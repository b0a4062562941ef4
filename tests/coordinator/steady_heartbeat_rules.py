"""Written histories of members with nothing to report, whose heartbeats may be answered by a short way.

Strategy: each rule is for consumer, share and streams groups alike; something beside the members changes (one
field, a target, a topic, a setting, a log that is loaded), and the heartbeat after it has to see it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from typing import Any

from coordwire.messages import ListGroupsRequest
from coordwire.messages.streams_group_heartbeat import (
    KeyValue,
    StreamsGroupHeartbeatRequestEndpoint,
    Topology,
)
from tests.coordinator.rule_script import APPEND_FAILS, JOINS, Script, settle

_NEWS: dict[str, dict[str, Any]] = {
    "consumer": {
        "member_epoch": 9,
        "rebalance_timeout_ms": 7_000,
        "subscribed_topic_names": ["audit"],
        "subscribed_topic_regex": "a.*",
        "instance_id": "i",
        "rack_id": "r",
        "server_assignor": "range",
    },
    "share": {"member_epoch": 9, "subscribed_topic_names": ["audit"], "rack_id": "r"},
    "streams": {
        "member_epoch": 9,
        "endpoint_information_epoch": 9,
        "rebalance_timeout_ms": 7_000,
        "topology": Topology(epoch=2),
        "active_tasks": [],
        "standby_tasks": [],
        "warmup_tasks": [],
        "process_id": "q",
        "user_endpoint": StreamsGroupHeartbeatRequestEndpoint(host="till", port=1),
        "client_tags": [KeyValue(key="zone", value="a")],
        "instance_id": "i",
        "rack_id": "r",
        "task_offsets": [],
        "task_end_offsets": [],
        "shutdown_application": True,
    },
}
"""By kind of group, the fields of a heartbeat with a value that a coordinator has to look at."""


def _heartbeats_with_news(kind: str) -> Callable[[Script], None]:
    """One field of a heartbeat differs; the group that changed has heartbeats after it as before."""

    def heartbeats_with_news(script: Script) -> None:
        join, version = JOINS[kind]
        news = _NEWS[kind]
        beats = [join(script, f"g-{name}") for name in [*news, "client", "no client"]]
        settle(script, beats, version)
        for beat, (name, value) in zip(beats, news.items(), strict=False):
            changed = copy(beat)
            setattr(changed, name, value)
            script.answer(changed, version)
            script.answer(beat, version)
        for beat, client in zip(beats[-2:], ("other", None), strict=True):
            script.answer(beat, version, client)
            script.answer(beat, version)
        other_kind = "share" if kind == "consumer" else "consumer"
        other = JOINS[other_kind][0](script, "other")
        script.answer(replace(beats[0], group_id="other", member_epoch=other.member_epoch), version)
        script.answer(replace(beats[0], member_id="unknown"), version)
        script.wait(44_000)
        for beat in beats:
            script.answer(beat, version)
        script.wait(44_000)
        script.ask(ListGroupsRequest(), 5)

    return heartbeats_with_news


def _targets_change(kind: str) -> Callable[[Script], None]:
    """Members join while a target is young, and others wait for what the first gives up late."""

    def targets_change(script: Script) -> None:
        join, version = JOINS[kind]
        beats = [join(script, "g", "m")]
        settle(script, beats, version)
        for member_id in ("n", "o", "p"):
            beats.append(join(script, "g", member_id))
            for _ in range(3):
                for beat in reversed(beats):
                    beat.member_epoch = script.answer(beat, version).member_epoch
                script.wait(300)
        for _ in range(4):
            for beat in reversed(beats):
                beat.member_epoch = script.answer(beat, version).member_epoch
            settle(script, beats[:1], version)

    return targets_change


def _topics_change(kind: str) -> Callable[[Script], None]:
    """A topic grows, while an append fails; it goes, and comes back smaller."""

    def topics_change(script: Script) -> None:
        join, version = JOINS[kind]
        beats = [join(script, "g", member_id) for member_id in ("m", "n")]
        settle(script, beats, version)
        for change in (
            "+AAAAAAAAAAIAAAAAAAAABw:6:orders",
            "-AAAAAAAAAAIAAAAAAAAABw",
            "+AAAAAAAAAAMAAAAAAAAABw:2:orders",
        ):
            script.step(f"topics {change}")
            script.step(APPEND_FAILS)
            for _ in range(2):
                for beat in beats:
                    script.answer(beat, version)
            settle(script, beats, version)
            for beat in beats:
                script.answer(beat, version)

    return topics_change


def _settings_change(kind: str) -> Callable[[Script], None]:
    """An operator changes the time-outs of a group with a steady member, which is silent in the end."""

    def settings_change(script: Script) -> None:
        join, version = JOINS[kind]
        (beat,) = beats = [join(script, "g")]
        settle(script, beats, version)
        for session_ms, interval_ms in ((60_000, 7_000), (45_000, 5_000)):
            script.step(
                f"config g {kind}.session.timeout.ms={session_ms} {kind}.heartbeat.interval.ms={interval_ms}"
            )
            script.answer(beat, version)
            if session_ms == 60_000:
                script.wait(50_000)
                script.answer(beat, version)
                script.wait(11_000)
        for milliseconds in (44_950, 100):
            script.wait(milliseconds)
            script.ask(ListGroupsRequest(), 5)
        settle(script, [beat := join(script, "g")], version)
        script.answer(beat, version)
        script.step("config g streams.num.standby.replicas=1")
        for _ in range(2):
            script.answer(beat, version)

    return settings_change


_IN_LOGS: list[dict[str, str | int]] = [
    {"client_host": "/192.0.2.7"},
    {"member_id": " "},
    {"group_id": " "},
    {"state": 1},
    {"epoch": 0, "assignment_epoch": 0, "member_epoch": 0},
    {"epoch": -1, "assignment_epoch": -1, "member_epoch": -1},
]
"""What no request brings: another host, ids of spaces, a state that does not fit the epoch, small epochs."""


def _heartbeats_after_a_load(kind: str, changes: Mapping[str, str | int]) -> Callable[[Script], None]:
    """The first member's heartbeat looks at the topics' metadata, so that the second's need not."""

    def heartbeats_after_a_load(script: Script) -> None:
        join, version = JOINS[kind]
        first, second = beats = [join(script, "g", member_id) for member_id in ("m", "n")]
        settle(script, beats, version)
        script.reload(**changes)
        for beat in beats if "group_id" in changes else [second]:
            for name in changes.keys() & {"group_id", "member_id", "member_epoch"}:
                setattr(beat, name, changes[name])
        if "member_epoch" in changes:
            for _ in range(2):  # the first is written
                join(script, "g")
        for beat in (first, second, first, second):
            script.answer(beat, version)
        script.wait(60_000)
        script.ask(ListGroupsRequest(), 5)

    return heartbeats_after_a_load


STEADY_HEARTBEATS: list[Callable[[Script], None]] = [
    *map(_targets_change, JOINS),
    *map(_topics_change, JOINS),
    *map(_heartbeats_with_news, JOINS),
    *map(_settings_change, JOINS),
    *itertools.starmap(_heartbeats_after_a_load, itertools.product(JOINS, _IN_LOGS)),
]
