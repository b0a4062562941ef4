"""The records of brokers' own logs in a release's jars beside ours: types, versions and fields that we lack.

Strategy: the coordinators' jars hold no definitions, only generated classes; their schemas, asked of a JVM,
are laid beside our field tables. Rules: only what the release has counts, so a tagged field that it lacks is
none of its business. Whether a struct may be null its schema doesn't say. Up to 4.0 a key's version is its
record type; it has one layout, which is compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from zipfile import ZipFile

from coordwire.codec import VersionLayout
from coordwire.messages import find_message
from tests.interop.java_oracle import Command, JavaOracle, Refused

_GENERATED = re.compile(
    r"org/apache/kafka/(?:coordinator/(?:group|share|transaction)/generated|common/metadata)"
    r"/(\w+(?:Key|Value|Record))\.class"
)
_TYPES = {"bool": "BOOLEAN"}

Fields = dict[str, tuple[str, ...]]
"""By path: type, whether it may be null, tag."""


def log_drift(folder: Path, kafka: JavaOracle) -> Iterator[str]:
    """The differences of all records, a line each."""
    for name in sorted(_names(folder)):
        versions = kafka.versions(name)
        if versions is None:  # a class of another kind
            continue
        try:
            cls = find_message(name)
        except KeyError:
            yield f"{name}: unknown to us; versions {versions[0]}-{versions[-1]}"
            continue
        key = name.endswith("Key")
        for version in versions[-1:] if key else versions:
            if not key and version not in cls.versions:
                yield f"{name}: lacks version {version}"
                continue
            theirs = _theirs(kafka, name, version)
            ours = dict(_ours(cls._layout_.at(0 if key else version), ""))
            for path in sorted(theirs.keys() | ours.keys()):
                have, want = ours.get(path), theirs.get(path)
                newer = want is None and have is not None and have[-1] != ""
                if have != want and not newer:
                    yield f"{name} v{version}.{path}: {_shown(want)}, ours {_shown(have)}"


def _names(folder: Path) -> Iterator[str]:
    for path in folder.glob("kafka-*.jar"):
        with ZipFile(path) as jar:
            yield from (found[1] for found in map(_GENERATED.fullmatch, jar.namelist()) if found)


def _theirs(kafka: JavaOracle, name: str, version: int) -> Fields:
    (answer,) = kafka.ask([Command("S", name, version)])
    assert not isinstance(answer, Refused), answer
    rows = (line.split() for line in answer[0].decode().splitlines())
    return {path: _facts(kind, null == "true", tag) for path, kind, null, tag in rows}


def _ours(shape: VersionLayout, prefix: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    for field in (*shape.inline, *shape.tagged.values()):
        kind = "STRUCT" if field.struct else _TYPES.get(field.type, field.type.upper())
        tag = "-" if field.tag is None else str(field.tag)
        facts = _facts(("[]" if field.array else "") + kind, field.nullable(shape.version), tag)
        yield prefix + field.name, facts
        if field.struct is not None:
            yield from _ours(field.struct._layout_.at(shape.version), f"{prefix}{field.name}.")


def _facts(kind: str, null: bool, tag: str) -> tuple[str, ...]:
    return kind, "nullable" if null and kind != "STRUCT" else "", "" if tag == "-" else f"tag {tag}"


def _shown(facts: tuple[str, ...] | None) -> str:
    return "lacking" if facts is None else " ".join(filter(None, facts))
