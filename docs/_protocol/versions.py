"""The bytes of a message in each of its versions, from the vectors of the conformance archive.

Rules: the bytes are those that Apache Kafka's classes wrote of a value with something in every field;
versions with the same bytes and layout share a table; a table is closed at first, as there are many.
"""

from __future__ import annotations

import json
import lzma
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import groupby
from pathlib import Path

from _protocol.catalog import anchor
from _protocol.frames import Sample, annotated_frame
from _protocol.markup import Html, tag
from coordwire.codec import Message
from coordwire.messages import find_message
from coordwire.spans import message_spans
from coordwire.versions import header_version

_VECTORS = Path(__file__).parents[2] / "conformance" / "data" / "messages.jsonl.xz"


@cache
def written() -> dict[type[Message], dict[int, tuple[str, bytes]]]:
    """By message and version: the release that wrote the bytes, and the bytes."""
    found: dict[type[Message], dict[int, tuple[str, bytes]]] = defaultdict(dict)
    for line in lzma.decompress(_VECTORS.read_bytes()).splitlines():
        if b'/sample"' in line[:200]:
            one = json.loads(line)
            way = one["direction"]
            is_api = way in ("request", "response")
            cls = find_message(one["api_key"], way) if is_api else find_message(one["api"])
            found[cls][one["version"]] = one["release"], bytes.fromhex(one["hex"])
    return found


def version_samples(cls: type[Message]) -> Iterator[tuple[range, Sample]]:
    """The versions that share bytes, with these."""

    def sample(version: int) -> Sample:
        release, data = written()[cls][version]
        origin = f"written by Apache Kafka {release}'s classes{_header(cls, version)}"
        return Sample("", origin, data, 0, message_spans(data, cls, version))

    shown = {version: sample(version) for version in sorted(written()[cls])}
    for _, some in groupby(shown, key=lambda version: (shown[version].origin, repr(shown[version].spans))):
        versions = list(some)
        yield range(versions[0], versions[-1] + 1), shown[versions[0]]


def _header(cls: type[Message], version: int) -> str:
    if cls.api_key is None:
        return ""
    return (
        f", after a {cls.direction} header of version {header_version(cls.api_key, version, cls.direction)}"
    )


def each_version(cls: type[Message]) -> Iterator[Html]:
    """The closed tables of a message."""
    for versions, sample in version_samples(cls):
        first, last = versions[0], versions[-1]
        words = f"v{first} to v{last}" if last > first else f"v{first}"
        yield tag(
            "details",
            tag("summary", f"{cls.__name__} {words}: {len(sample.data)} bytes"),
            annotated_frame(sample, has_key=False),
            id=f"{anchor(cls)}-bytes-v{first}",
        )
