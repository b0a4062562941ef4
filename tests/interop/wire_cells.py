"""`python -m tests.interop.wire_cells OUT`: real frames of every API in every version, both ways.

Strategy: one broker after another, each of another release, is taken through the rounds of `wire_scenarios`
and `wire_administration`, by sockets and frames of coordwire. What passed on the wire is kept for each cell
(API, version, direction) and kind of answer, from the newest and from the oldest release that gave it. Then
Apache Kafka's own generated classes read each body, and write it again. tests/data/wire/README.md says what
the files hold.

Rules: correlation ids, names, records and times are the same in each run; ids and ports that a broker makes
up are not. A release that can't be had is passed over with the reason. Exit status 1 if a broker fails, 2 if
no judge can be had.
"""

from __future__ import annotations

import json
import lzma
import re
import socket
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from coordwire import decode_response, encode_request
from coordwire.codec import Message
from coordwire.codec.walk import entity_values
from coordwire.enums import ErrorCode
from coordwire.errors import DecodeError
from coordwire.messages import ApiVersionsRequest, find_message
from coordwire.messages.keys import FACTS
from tests.interop.broker import Broker, BrokerError, Java, ask
from tests.interop.cells import java_name, judge
from tests.interop.java_oracle import Command, Refused
from tests.interop.maven import COMPLETE, CURRENT, FIRST_LOGS, PREVIOUS, Project, Unavailable
from tests.interop.old_segments import zookeeper_broker
from tests.interop.wire_administration import (
    ADMINISTERING_ROUNDS,
    PASSWORD,
    USER,
    Place,
    administer,
    authenticate,
    govern,
)
from tests.interop.wire_rounds import Kind, Round
from tests.interop.wire_scenarios import ROUNDS, TOPIC, allocate_ids, play_round, prepare
from tests.recorded import body_of

UNSPOKEN: dict[str, str] = {}
"""Why a version was never on a wire, by "API vN direction": there is none of which no release can be made to
speak it."""

CLIENT_ID = "coordwire"
RECEIVER = Path(__file__).parent / "java" / "TelemetryReceiver.java"
WAIT = 40
"""Seconds for one answer."""

_SETTINGS = {
    "unstable.api.versions.enable": "true",
    "unstable.feature.versions.enable": "true",
    "transaction.two.phase.commit.enable": "true",
    "num.partitions": "2",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.num.partitions": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.streams.initial.rebalance.delay.ms": "0",
}
_ACCESS = {
    "super.users": f"User:ANONYMOUS;User:{USER}",
    "delegation.token.secret.key": "secret",
    "delegation.token.master.key": "secret",
}
_KRAFT_ACCESS = _ACCESS | {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "metric.reporters": RECEIVER.stem,
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}
_ZOOKEEPER_ACCESS = _ACCESS | {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer"}

Versions = Mapping[int, tuple[int, int]]
"""The first and the last version of each API."""


@dataclass(frozen=True, slots=True)
class Frame:
    """What passed on the wire. data: with its size prefix; kind: what the answer was."""

    api_key: int
    version: int
    direction: str
    kind: str
    release: str
    data: bytes


@dataclass(slots=True)
class Recorder:
    """What was recorded, by cell and kind: of the newest and, after it, of the oldest release.

    release: of the broker that now answers; unreadable: what is in no layout of ours, with the reason;
    spoken: the first and last version of each API, by release.
    """

    release: str = ""
    frames: dict[tuple[int, int, str, str], list[Frame]] = field(default_factory=dict)
    unreadable: dict[tuple[str, int, int], tuple[bytes, str]] = field(default_factory=dict)
    spoken: dict[str, dict[int, tuple[int, int]]] = field(default_factory=dict)

    def keep(self, api_key: int, version: int, kind: str, request: bytes, response: bytes) -> None:
        for direction, data in (("request", request), ("response", response)):
            frame = Frame(api_key, version, direction, kind, self.release, data)
            kept = self.frames.setdefault((api_key, version, direction, kind), [])
            if all(other.release != self.release for other in kept):
                kept[1:] = []
                kept.append(frame)

    def keep_unreadable(self, api_key: int, version: int, response: bytes, reason: str) -> None:
        """What a preview answered in a layout that no later release has."""
        self.unreadable.setdefault((self.release, api_key, version), (response, reason))

    def all(self) -> list[Frame]:
        """Every frame, by cell and kind, those of newer releases first."""
        return [frame for key in sorted(self.frames) for frame in self.frames[key]]


class RecordedLink:
    """A connection whose frames are recorded. Raises `OSError` where no answer comes."""

    def __init__(self, recorder: Recorder, port: int) -> None:
        self._recorder = recorder
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=WAIT)
        self._stream = self._socket.makefile("rb")
        self._sent: list[tuple[int, int, bytes]] = []
        self._count = 0

    def close(self) -> None:
        self._stream.close()
        self._socket.close()

    def send(self, message: Message, version: int) -> None:
        self._count += 1
        data = encode_request(message, version=version, correlation_id=self._count, client_id=CLIENT_ID)
        assert message.api_key is not None
        self._sent.append((message.api_key, version, data))
        self._socket.sendall(data)

    def receive(self, kind: Kind = None) -> Any:
        """The oldest request's answer; None for an unreadable one.

        kind: None for the error's name or "answer"; "" for a pair that is not kept.
        """
        api_key, version, request = self._sent.pop(0)
        size = self._stream.read(4)
        response = size + self._stream.read(int.from_bytes(size))
        if len(size) < 4 or len(response) < 4 + int.from_bytes(size):
            raise ConnectionError(f"the broker closed the connection: {FACTS[api_key].name} v{version}")
        try:
            answer = decode_response(response, api_key=api_key, version=version).message
        except DecodeError as error:
            self._recorder.keep_unreadable(api_key, version, response, str(error))
            return None
        if callable(kind):
            kind = kind(answer)
        if kind != "":
            errors = [code for code in entity_values(answer, "error_code") if code]
            named = ErrorCode(errors[0]).name if errors else "answer"
            label = named if kind is None else f"{kind}: {named}" if errors else kind
            self._recorder.keep(api_key, version, label, request, response)
        return answer


def record(recorder: Recorder, release: str, port: int, versions: Versions) -> Place:
    """Take one broker through all rounds."""
    recorder.release = release
    recorder.spoken[release] = dict(versions)
    with closing(_round(recorder, 0, versions, port)) as play:
        topic_id = prepare(play)
        told = play.ask("Metadata", kind="", at=play.last("Metadata"), topics=[])
        software: dict[str, Any] = {"client_software_name": "coordwire", "client_software_version": "1"}
        features = play.ask("ApiVersions", kind="", at=min(play.last("ApiVersions"), 4), **software)
    place = Place(TOPIC, topic_id, told.cluster_id, _features(features))
    for number in range(ROUNDS):
        with closing(_round(recorder, number, versions, port)) as play:
            play_round(play, topic_id)
    for number in range(ADMINISTERING_ROUNDS):
        with closing(_round(recorder, number, versions, port)) as play:
            administer(play, place)
    return place


def _features(answer: Any) -> list[dict[str, Any]]:
    """The features that a broker says it supports."""
    return [
        {
            "name": feature.name,
            "min_supported_version": feature.min_version,
            "max_supported_version": feature.max_version,
        }
        for feature in (answer.supported_features if answer is not None else ())
    ]


def record_controller(recorder: Recorder, port: int, place: Place, snapshot: tuple[int, int]) -> None:
    """The same for the listener of the controller, which speaks more than the broker does."""
    versions = versions_of(port)
    spoken = recorder.spoken[recorder.release]
    for key, bounds in versions.items():
        spoken.setdefault(key, bounds)
    with closing(_round(recorder, 0, versions, port)) as play:
        allocate_ids(play)
    for number in range(ADMINISTERING_ROUNDS):
        with closing(_round(recorder, number, versions, port)) as play:
            govern(play, place, snapshot)


def _snapshot(logs: Path) -> tuple[int, int]:
    """End offset and epoch of a snapshot of the cluster's metadata: by its file's name."""
    *_, newest = sorted((logs / "__cluster_metadata-0").glob("*.checkpoint"))
    offset, epoch = newest.stem.split("-")
    return int(offset), int(epoch)


def record_sasl(recorder: Recorder, port: int) -> None:
    """The same for a listener whose clients authenticate."""
    versions = recorder.spoken[recorder.release]
    for number in range(ADMINISTERING_ROUNDS):
        with closing(_round(recorder, number, versions, port)) as play:
            authenticate(play)


def _round(recorder: Recorder, number: int, versions: Versions, port: int) -> Round:
    return Round(number, versions, lambda: RecordedLink(recorder, port))


def versions_of(port: int) -> dict[int, tuple[int, int]]:
    """What a broker says it speaks."""
    answer: Any = ask(port, ApiVersionsRequest(), version=0)
    return {entry.api_key: (entry.min_version, entry.max_version) for entry in answer.api_keys}


# --- releases -----------------------------------------------------------------------------------------------

_SHARE_PREVIEW = {
    "group.coordinator.rebalance.protocols": "classic,consumer,share", "group.share.enable": "true",
}  # fmt: skip
_STREAMS_PREVIEW = {"group.coordinator.rebalance.protocols": "classic,consumer,share,streams"}
KRAFT: dict[str, tuple[Project, dict[str, str], dict[str, int]]] = {
    CURRENT: ("recording", {}, {}),
    COMPLETE: ("broker", {}, {}),
    "4.2.0": ("broker", {}, {}),
    "4.1.0": ("broker", _STREAMS_PREVIEW, {"share.version": 1, "streams.version": 1}),
    FIRST_LOGS: ("broker", _SHARE_PREVIEW, {}),
}
"""Releases without ZooKeeper: whose jars, and the settings and levels that switch on what they preview."""

ZOOKEEPER: dict[str, Project] = {
    PREVIOUS: "broker",
    "2.4.1": "zookeeper-consumer",
    "0.9.0.1": "zookeeper-consumer",
    "0.8.2.2": "zookeeper-consumer",
}
"""Releases with ZooKeeper; those between 0.10 and 2.3 don't run on a Java of today."""

UNSAID = {
    "0.9.0.1": {
        **dict.fromkeys(range(6), (0, 0)), 0: (0, 1), 1: (0, 1), 6: (0, 1), 7: (1, 1), 8: (0, 2), 9: (0, 1),
        **dict.fromkeys(range(10, 17), (0, 0)),
    },
    "0.8.2.2": {**dict.fromkeys(range(8), (0, 0)), 8: (0, 1), 9: (0, 1), 10: (0, 0)},
}  # fmt: skip
"""What the releases speak that have no ApiVersions yet, as their sources say."""


def record_release(recorder: Recorder, release: str, work: Path) -> None:
    """Record a release's broker, in an empty folder. Raises `Unavailable`, `BrokerError`, `OSError`."""
    if release in ZOOKEEPER:
        settings = _SETTINGS | {"log.dirs": str(work / "logs")}
        if release not in UNSAID:
            settings |= _ZOOKEEPER_ACCESS
        with zookeeper_broker(Java(release, ZOOKEEPER[release]), work, settings) as port:
            record(recorder, release, port, UNSAID.get(release) or versions_of(port))
        return
    project, preview, features = KRAFT[release]
    java = Java(release, project)
    java.compile(RECEIVER, work / "classes")
    broker = Broker(
        java, work / "data", _SETTINGS | _KRAFT_ACCESS | preview, features=features,
        passwords={USER: PASSWORD},
    )  # fmt: skip
    with broker:
        place = record(recorder, release, broker.port, versions_of(broker.port))
        record_controller(recorder, broker.controller_port, place, _snapshot(work / "data"))
        record_sasl(recorder, broker.sasl_port)


def record_all(recorder: Recorder) -> Iterator[str]:
    """Record every release, the newest first; gives a line for each."""
    for release in (*KRAFT, *ZOOKEEPER):
        before = len(recorder.frames)
        try:
            with tempfile.TemporaryDirectory() as work:
                record_release(recorder, release, Path(work))
        except Unavailable as error:
            yield f"{release}: passed over: {error}"
        else:
            yield f"{release}: {len(recorder.frames) - before} more cells and kinds"


# --- files --------------------------------------------------------------------------------------------------


def row_of(frame: Frame) -> dict[str, Any]:
    """The frame's line in frames.jsonl.xz. Raises `Unavailable` where there is no judge."""
    cls = find_message(frame.api_key, frame.direction)
    body = body_of(frame.data, frame.api_key, frame.version, frame.direction)
    row: dict[str, Any] = {
        "release": frame.release, "api_key": frame.api_key, "api": FACTS[frame.api_key].name,
        "version": frame.version, "direction": frame.direction, "kind": frame.kind, "hex": frame.data.hex(),
    }  # fmt: skip
    kafka = judge(cls, frame.version)
    assert kafka is not None
    (result,) = kafka.ask([Command("B", java_name(cls), frame.version, body)])
    assert not isinstance(result, Refused), f"{row}: {result.reason}"
    form, again, left = result
    equal = again == body and left == b"0"
    return row | {"judge": kafka.release, "equal": equal, "json": json.loads(form)}


def write(recorder: Recorder, out: Path) -> None:
    """The files of tests/data/wire. Raises `Unavailable`."""
    rows = [row_of(frame) for frame in recorder.all()]
    text = "".join(f"{json.dumps(row, ensure_ascii=False, separators=(',', ':'))}\n" for row in rows)
    (out / "frames.jsonl.xz").write_bytes(lzma.compress(text.encode(), preset=9))
    spoken = {
        release: {FACTS[key].name: list(bounds) for key, bounds in sorted(apis.items()) if key in FACTS}
        for release, apis in recorder.spoken.items()
    }
    unreadable = [
        {"release": release, "api": FACTS[key].name, "version": version, "hex": data.hex(), "reason": reason}
        for (release, key, version), (data, reason) in sorted(recorder.unreadable.items())
    ]
    facts = {"spoken": spoken, "reasons": UNSPOKEN, "unreadable": unreadable, "cells": table(recorder)}
    text = re.sub(r"\[[^][{}]*\]", lambda found: " ".join(found[0].split()), json.dumps(facts, indent=1))
    (out / "cells.json").write_text(f"{text}\n")


def table(recorder: Recorder) -> dict[str, dict[str, dict[str, list[str]]]]:
    """The releases whose frames are kept, by API, direction and version; none where no release spoke it."""
    results: dict[str, dict[str, dict[str, list[str]]]] = {}
    releases = list(recorder.spoken)
    for key in FACTS:
        for direction in ("request", "response"):
            for version in find_message(key, direction).versions:
                kept = {
                    frame.release for cell, frames in recorder.frames.items() for frame in frames
                    if cell[:3] == (key, version, direction)
                }  # fmt: skip
                of = results.setdefault(FACTS[key].name, {}).setdefault(direction, {})
                of[str(version)] = sorted(kept, key=releases.index)
    return results


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("usage: python -m tests.interop.wire_cells OUT", file=sys.stderr)
        return 2
    recorder = Recorder()
    try:
        for line in record_all(recorder):
            print(line, flush=True)
        write(recorder, Path(arguments[0]))
    except BrokerError as error:
        print(error, file=sys.stderr)
        return 1
    except (Unavailable, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
