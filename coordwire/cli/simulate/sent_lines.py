"""The messages of a simulated run: lines for people between those of the story, and JSON for programs.

Strategy: a line says who sends what to whom, with the fields that are set. Rules: what a field means the
message's own table says; a line has a bound, so has the number of lines, and those that were left out are
counted. A message that takes longer than the network's latency explains is marked, as is one that has not
arrived when the run ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from coordwire._quantities import duration
from coordwire.capture.jsonlines import frame_form
from coordwire.capture.printable import Pieces
from coordwire.capture.redaction.entry_secrets import withheld
from coordwire.cli.message_lines import MessageLines, refusal
from coordwire.cli.terminal import columns
from coordwire.connection.dialect import KAFKA
from coordwire.designs.simulator.sent_messages import SentMessage

MOST_MESSAGES = 1_000
"""So many have a line."""

_LEAST_WIDTH, _CLOCK, _ENDS, _API = 160, 14, 29, 24
"""Of a whole line, and of its columns."""

_UNSHOWN = frozenset({"xid", "zxid", "acl", "stat", "passwd"})
"""Fields of ZooKeeper's protocol that say nothing of a group."""

_FORM = ("direction", "dialect", "api", "apiVersion", "body", "error", "errors")


def sent_lines(messages: Iterable[SentMessage], latency_ms: int, until: int) -> Iterator[tuple[int, Pieces]]:
    """Each message with the time at which it was sent. latency_ms: the network's greatest; until: the end of
    the time whose messages these are."""
    left_out = 0
    room = max(columns(), _LEAST_WIDTH) - _CLOCK - _ENDS - _API
    for number, sent in enumerate(messages):
        if number < MOST_MESSAGES:
            yield sent.sent, _line(sent, latency_ms, room)
        else:
            left_out += 1
    if left_out:
        yield until, [(f"… and {left_out:,} more messages, of which --flow FROM-TO shows some", "odd")]


def _line(sent: SentMessage, latency_ms: int, room: int) -> Pieces:
    entry = sent.entry
    name = entry.api_name or ""
    if entry.dialect == KAFKA:
        name += f" v{entry.api_version}"
    if entry.direction == "response":
        name += " response"
    ends = f"{sent.sender} → {sent.receiver}"
    pieces: Pieces = [(f"{ends:<{_ENDS}}", "flow"), (f"{name:<{_API}}", entry.direction)]
    mark: Pieces = []
    if sent.arrived is None:
        mark = [("  ✗ has not arrived", "error")]
    elif (took := sent.arrived - sent.sent) > latency_ms:
        mark = [(f"  arrives after {duration(took / 1000)}", "slow")]
    if entry.error is not None:
        pieces += refusal(entry.error, 0)
    elif entry.message is not None and entry.body_version is not None:
        lines = MessageLines(entry.message, entry.body_version, set(withheld(entry).paths), room)
        pieces += lines.line(_UNSHOWN if entry.dialect == "zookeeper" else ())
    while not pieces[-1][0].strip():
        pieces.pop()
    text, style = pieces[-1]
    return [*pieces[:-1], (text.rstrip(), style), *mark]


def sent_forms(messages: Iterable[SentMessage]) -> Iterator[dict[str, Any]]:
    """Each message as in the lines of `coordwire decode --format json`, with its ends, and times in
    milliseconds."""
    for sent in messages:
        form = frame_form(sent.entry, 3, show_secrets=False)
        ends = {"sent": sent.sent, "arrived": sent.arrived, "from": sent.sender, "to": sent.receiver}
        yield ends | {name: form[name] for name in _FORM if name in form}
