"""The hostile vectors' inputs: each base with each of its flaws, and what earlier scripts made.

Rules: an input is a dict without an answer, its id unique; the order is that of the API keys. What is no
longer made by code (`EARLIER`) is taken over from the kept file, to be judged again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from conformance.bases import base, versions_of
from conformance.flaws import FLAWS, flawed
from coordwire.codec import Message
from coordwire.messages import DescribeGroupsRequest, HeartbeatRequest
from tests.interop.cells import RECORDS, kinds

Input = dict[str, Any]

EARLIER = "earlier"
"""The part of an id that names an input of earlier scripts."""

ALLOWANCE = (65_536, 256)
"""The suite's own rule: of n bytes a reader allocates at most the first number + n times the second."""


def inputs(kept: Iterable[Input]) -> Iterator[Input]:
    """All, of each message; kept: the vectors of the kept file."""
    earlier: dict[str, list[Input]] = {}
    for one in kept:
        if f"/{EARLIER}/" in one["id"]:
            earlier.setdefault(one["id"].rsplit(f"/{EARLIER}/")[0], []).append(one)
    for cls in kinds():
        for version in versions_of(cls) if cls.__name__ not in RECORDS else []:
            seen: set[str] = set()
            for kind, case, wire in flawed(base(cls, version), version):
                if case not in seen:  # a struct that the message has twice
                    seen.add(case)
                    yield entry(cls, version, kind, case, wire)
    for some in earlier.values():
        yield from some


def large() -> Iterator[Input]:
    """At Kafka's limits of counts and one beyond: megabytes, made when the archive is built."""
    for count, kind in [(1_000_000, "none"), (1_000_001, "count-limit")]:
        groups = DescribeGroupsRequest(groups=[""] * count)
        yield entry(type(groups), 5, kind, f"groups/count-{count}", groups.encode(version=5))
    for count, kind in [(10_000, "none"), (10_001, "tags-limit")]:
        tagged = HeartbeatRequest(tags=dict.fromkeys(range(count), b""))
        yield entry(type(tagged), 4, kind, f"top/tags-{count}-there", tagged.encode(version=4))


def address(cls: type[Message], version: int, family: str = "hostile") -> str:
    """The first part of an id: hostile/joingroup-request/v9."""
    api, direction = names(cls)
    return f"{family}/{api.lower()}-{direction}/v{version}"


def names(cls: type[Message]) -> tuple[str, str]:
    """API and direction."""
    direction = str(cls.direction)
    return cls.__name__.removesuffix(direction.title() if cls.api_key is not None else ""), direction


def entry(cls: type[Message], version: int, kind: str, case: str, wire: bytes) -> Input:
    api, direction = names(cls)
    return {
        "id": f"{address(cls, version)}/{case}",
        "api_key": cls.api_key,
        "api": api,
        "direction": direction,
        "version": version,
        "flaw": kind,
        "effect": FLAWS[kind].effect,
        "hex": wire.hex(),
    }
