"""The text of trees: of frames that are decoded when they are written, and of long messages."""

from __future__ import annotations

import io
import random
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from coordwire.capture.formats.pcap import as_pcap
from coordwire.cli import message_lines
from coordwire.cli.decode.tree import TreeFormat, latency_text
from coordwire.cli.message_lines import MessageLines
from coordwire.cli.terminal import plain_text
from coordwire.codec import Message
from coordwire.messages import (
    FetchRequest,
    HeartbeatRequest,
    HeartbeatResponse,
    JoinGroupRequest,
    MetadataRequest,
    MetadataResponse,
)
from coordwire.messages.fetch import ReplicaState
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.metadata import MetadataRequestTopic, MetadataResponseTopic
from tests.capture.samples import CAPTURES, traffic_rows
from tests.capture.test_lazy import broken, read
from tests.capture.test_walks import damaged


def text_of(message: Message, version: int) -> str:
    return "".join(map(plain_text, MessageLines(message, version, set(), 200).lines()))


@pytest.mark.parametrize(
    ("message", "version", "expected"),
    [
        (HeartbeatResponse(error_code=0), 4, "error_code: 0 NONE\n"),
        (HeartbeatResponse(error_code=27), 4, "error_code: 27 REBALANCE_IN_PROGRESS\n"),
        (HeartbeatResponse(error_code=9999), 4, "error_code: 9999 an unknown code\n"),
        *(
            (MetadataResponse(topics=[MetadataResponseTopic(topic_authorized_operations=number)]), 12, names)
            for number, names in (
                (-(1 << 31), "_operations: -2147483648 not asked for}"),
                (0, "_operations: 0 none}"),
                (264, "_operations: 264 READ, DESCRIBE}"),
            )
        ),
        (
            FetchRequest(replica_state=ReplicaState(replica_id=4)), 15,
            "replica_state: {replica_id: 4, replica_epoch: -1}\n",
        ),
        (HeartbeatRequest(group_id="é\n\x7f"), 4, r'group_id: "é\n\x7f"'),
        (HeartbeatRequest(tags={7: b"x"}), 4, "tags: 7: 1 byte 78\n"),
    ],
)  # fmt: skip
def test_values_are_shown_with_their_meaning(message: Message, version: int, expected: str) -> None:
    assert expected in text_of(message, version)


def test_tagged_fields_at_their_defaults_are_not_shown() -> None:
    assert "replica_state" not in text_of(FetchRequest(), 15)
    assert "cluster_id" not in text_of(FetchRequest(), 15)
    assert 'cluster_id: "k"' in text_of(FetchRequest(cluster_id="k"), 15)


def test_latencies() -> None:
    texts = [latency_text(ns) for ns in (-1_000, 0, 999_999, 9_999_499, 10_000_000, 123_456_789_012)]
    assert texts == ["-0.001 ms", "0.000 ms", "1.000 ms", "9.999 ms", "10.0 ms", "123,456.8 ms"]


@pytest.mark.parametrize("beyond", [-1, 0, 1, 1_000])
def test_lines_beyond_a_number_are_counted(beyond: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(message_lines, "MOST_LINES", 50)
    topics = [MetadataRequestTopic(name="t" * 60)] * (49 + beyond)  # and the line of the array itself
    lines = list(map(plain_text, MessageLines(MetadataRequest(topics=topics), 1, set(), 80).lines()))
    more = [f"  … {beyond:,} more lines (--format json shows all)\n"] if beyond > 0 else []
    assert lines[50:] == more
    assert len(lines) == min(50 + beyond, 50 + len(more))


def test_a_line_may_be_as_wide_as_a_terminal_says() -> None:
    protocols = [JoinGroupRequestProtocol(name=f"{n}" * 30, metadata=b"x" * n) for n in range(99)]
    request = JoinGroupRequest(group_id="g", protocols=protocols)
    texts = "".join(map(plain_text, MessageLines(request, 9, set(), 999_999_999).lines()))
    assert len(texts.splitlines()) < len(protocols)


def written(data: bytes, *, lazy: bool, show_secrets: bool) -> str:
    output = TreeFormat(show_secrets=show_secrets, deep=False)
    with redirect_stdout(io.StringIO()) as out:
        for entry in read(data, lazy=lazy):
            output.write(entry, 6)
        output.finish()
    return out.getvalue()


def compare(data: bytes, *, show_secrets: bool) -> None:
    """Compare the trees of frames that are decoded when they are written with those of decoded ones."""
    decoded = written(data, lazy=False, show_secrets=show_secrets)
    assert written(data, lazy=True, show_secrets=show_secrets) == decoded


@pytest.mark.parametrize("path", CAPTURES, ids=lambda path: path.stem)
def test_trees_of_captures(path: Path) -> None:
    data = path.read_bytes()
    compare(data, show_secrets=False)
    compare(damaged(data, random.Random(path.name)), show_secrets=True)


@pytest.mark.parametrize("seed", range(10))
def test_trees_of_frames_that_are_refused(seed: int) -> None:
    chance = random.Random(seed)
    frames = [(n, c, back, broken(chance, data)) for n, c, back, data in traffic_rows(20)]
    compare(as_pcap(frames), show_secrets=bool(seed % 2))
