"""`python -m tests.interop.new_vectors --since 4.x.y`: values, JSON and bytes of what the current release has
and an older one lacks, as lines of tests/data/vectors.

Strategy: Kafka reads our JSON of a value at the edges of its fields and writes its own bytes, reads these,
and writes its own JSON; both are kept. So the tests hold new versions to Kafka's bytes where no JVM is.

Rules: a message in one version is new where the older release has no such version, or names its fields in
another way. Exit status 2 if the jars can't be had.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from coordwire.codec import Message
from coordwire.jsonform import to_json
from tests.interop.cells import CELLS, RECORDS, java_name
from tests.interop.edges import edge
from tests.interop.java_oracle import Command, JavaOracle, Refused, oracle
from tests.interop.maven import CURRENT, Unavailable

VARIANTS = ("null", "empty", "fresh", "least")


def vectors(kafka: JavaOracle, older: JavaOracle) -> Iterator[dict[str, Any]]:
    """What is new, each message in each version at each edge."""
    for cls, version in CELLS:
        if cls.__name__ in RECORDS or version not in (kafka.versions(java_name(cls)) or ()):
            continue
        for variant in ("default", *VARIANTS):
            message = cls() if variant == "default" else edge(cls, version, variant)
            form = json.dumps(to_json(message, version=version)).encode()
            if _same(older, cls, version, form):
                break
            wire = _answer(kafka, Command("J", java_name(cls), version, form))[0]
            theirs = json.loads(_answer(kafka, Command("B", java_name(cls), version, wire))[0])
            yield {
                "api_key": cls.api_key, "api": cls.__name__.removesuffix(cls.direction.title()),
                "direction": cls.direction, "version": version, "flexible": version in cls.flexible_versions,
                "variant": variant, "json": theirs, "hex": wire.hex(), "made_by": kafka.release,
            }  # fmt: skip


def _same(older: JavaOracle, cls: type[Message], version: int, form: bytes) -> bool:
    """Whether the older release reads this JSON. A default value suffices: its JSON has all names."""
    known = older.versions(java_name(cls))
    if known is None or version not in known:
        return False
    (result,) = older.ask([Command("J", java_name(cls), version, form)])
    return not isinstance(result, Refused)


def _answer(kafka: JavaOracle, command: Command) -> list[bytes]:
    (result,) = kafka.ask([command])
    assert not isinstance(result, Refused), result
    return result


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.interop.new_vectors", description=(__doc__ or "").split("\n\n")[0]
    )
    parser.add_argument("--since", required=True, help="the release before")
    options = parser.parse_args(arguments)
    try:
        for vector in vectors(oracle(CURRENT), oracle(options.since)):
            print(json.dumps(vector, ensure_ascii=False, separators=(",", ":")))
    except (Unavailable, OSError) as error:
        print(error, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
