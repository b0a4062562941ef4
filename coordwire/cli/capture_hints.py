"""The reasons for which a capture shows few frames or none: it holds no packets, no Kafka, or TLS.

Rules: each reason is a sentence for standard error; there is none where Kafka was read and nothing hides more
of it. Connections of other protocols beside Kafka's are usual and not reported; TLS on a port of brokers is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator

from coordwire.capture.client_search import TLS
from coordwire.capture.entries import Entry
from coordwire.capture.framing import may_be_request
from coordwire.capture.reader import Capture
from coordwire.errors import UnreadableRange, counted

MOST_NAMED = 8
"""Ports and protocols that a sentence names."""

BROKERS = range(9090, 9100)
"""Ports that brokers usually listen on, also with a digit before them, as 19092 and 29092."""

DECRYPT = """\
coordwire does not decrypt. To see the frames:
  - capture where they are plain: at a PLAINTEXT listener, or between the broker and a proxy
    that ends TLS; on that host: coordwire decode -i lo --port PORT
  - or log the keys of new connections: SSLKEYLOGFILE=KEYS for clients whose TLS library
    writes it, for a JVM an agent that does; then editcap --inject-secrets tls,KEYS IN OUT,
    and read OUT in Wireshark, whose decrypted bytes coordwire explain takes as hex"""
"""What to do about TLS, in lines."""


def capture_hints(capture: Capture) -> Iterator[str]:
    """The reasons, after the capture has been read."""
    yield from _unnamed_requests(capture)
    summary, counts = capture.summary, capture.counts
    tls = Counter(
        {port: count for (protocol, port), count in summary.other_protocols.items() if protocol == TLS}
    )
    named = tls + summary.tls
    if capture.format not in ("pcap", "pcapng"):
        if not summary.frames:
            yield "no frames in it"
        return
    if not counts.packets:
        yield "the capture holds no packets"
    elif not summary.connections:
        segments = f", {counted(counts.segments, 'TCP segment', ',')} without data" if counts.segments else ""
        other_traffic = f": {_enumerated(counts.other_protocols, '{}')}" if counts.other_protocols else ""
        packets = counted(counts.packets, "packet", ",")
        yield f"no Kafka in {packets}: no TCP data{segments}{other_traffic}"
    elif not summary.kafka:
        yield _no_kafka(capture)
    if summary.kafka:
        named = Counter({port: count for port, count in named.items() if _is_brokers(port, capture.ports)})
    if named:
        connections = counted(sum(named.values()), "connection", ",")
        yield f"{connections} encrypted with TLS, to {_enumerated(named, 'port {}')}; {DECRYPT}"


def _unnamed_requests(capture: Capture) -> Iterator[str]:
    """What is not known of the requests' clients, after the capture has been read."""
    if unnamed := capture.waiting.unnamed:
        yield (
            f"the client of {counted(unnamed, 'request', ',')} is unknown: only a connection's first request "
            "names it, which was sent before the capture"
        )


def is_lone_response(entry: Entry) -> bool:
    """Whether an entry is a refused frame of an unknown sender that may be a response whose request is not in
    the input: any frame but those that begin as a request does, with a client id."""
    if isinstance(entry, UnreadableRange) or entry.error is None or entry.request is not None or entry.token:
        return False
    prefixed = len(entry.body).to_bytes(4, "big") + entry.body
    return entry.direction == "response" or not entry.client_id or not may_be_request(prefixed)


def _no_kafka(capture: Capture) -> str:
    summary = capture.summary
    ports: Counter[str] = Counter()
    for (protocol, port), count in summary.other_protocols.items():
        ports[f"port {port}, {protocol}" if protocol else f"port {port}"] += count
    connections = f"{counted(summary.connections, 'TCP connection', ',')}, none"
    if capture.ports:
        named = " or ".join(str(port) for port in sorted(capture.ports))
        return (
            f"{connections} to port {named}, the one named with --port; there are: {_enumerated(ports, '{}')}"
        )
    hint = "; if one is, name its broker's port with --port"
    if all(protocol == TLS for protocol, _ in summary.other_protocols):
        hint = ""
    return f"{connections} of them recognised as Kafka: {_enumerated(ports, '{}')}{hint}"


def _is_brokers(port: int, named: Collection[int]) -> bool:
    return port in named or port % 10_000 in BROKERS


def _enumerated(counts: Counter[str] | Counter[int], form: str) -> str:
    """The most frequent keys with their counts."""
    texts = [f"{form.format(key)} ({count:,})" for key, count in counts.most_common(MOST_NAMED)]
    if (unnamed := len(counts) - MOST_NAMED) > 0:
        texts.append(f"and {unnamed:,} more")
    return ", ".join(texts)
