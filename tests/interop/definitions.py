"""Apache Kafka's own message definitions: the JSON files in a jar or a source tree, as plain facts.

Strategy: a definition becomes a tree of `Fact`s, one a field, its versions as sets cut to the message's own;
so two ways of writing the same ("0+" and "0-7" where 7 is the last) are the same fact.

Rules: read from `common/message/` of kafka-clients, and of kafka-streams where that is there too, or from
`src/main/resources/common/message/` of these modules' source; only what decides on bytes, JSON or refusals is
kept.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import ZipFile

_COMMENT = re.compile(r"(?:^|(?<=,))\s*//.*$|^\s*/\*.*\*/\s*$", re.MULTILINE)
_ERROR = re.compile(r"^\s*//\s*-\s*([A-Z_]+)\b", re.MULTILINE)
_CAPITAL = re.compile("([A-Z])")
_ZERO: dict[str, object] = {
    "bool": False,
    "string": "",
    "bytes": b"",
    "float64": 0.0,
    "uuid": uuid.UUID(int=0),
}


@dataclass(frozen=True)
class Fact:
    """One field, in the versions of its message. type: without "[]"; "struct" for a nested one.

    default: None for null; "empty" for an array or struct that isn't. fixed: keeps fixed lengths.
    entity: its entity type in our spelling, None where the release gives none.
    """

    name: str
    type: str
    array: bool
    versions: frozenset[int]
    nullable: frozenset[int]
    default: object
    tag: int | None
    ignorable: bool
    fixed: bool
    entity: str | None = None
    fields: tuple[Fact, ...] = ()


@dataclass(frozen=True)
class Definition:
    """One message of one release. listeners: those that accept a request; None for all other messages.

    deprecated, unstable: the versions that the release says this of.
    errors: the codes that its comments list, which few definitions have.
    headers: the header's version by the message's, where the definition declares it (KAFKA-20923).
    """

    name: str
    key: int | None
    versions: frozenset[int]
    flexible: frozenset[int]
    fields: tuple[Fact, ...]
    listeners: frozenset[str] | None = None
    deprecated: frozenset[int] = frozenset()
    unstable: frozenset[int] = frozenset()
    errors: tuple[str, ...] = ()
    headers: Mapping[int, int] | None = None


def span(text: str | None, within: frozenset[int]) -> frozenset[int]:
    """Which of these versions "3+", "0-7", "2" or "none" means."""
    if text is None or text == "none":
        return frozenset()
    first, plus, last = text.partition("+" if text.endswith("+") else "-")
    top = max(within, default=0) if plus == "+" else int(last or first)
    return frozenset(v for v in within if int(first) <= v <= top)


def definitions(folder: Path, release: str) -> Iterator[Definition]:
    """All messages of a release that have a version at all."""
    yield from _in_jar(folder / f"kafka-clients-{release}.jar")
    streams = folder / f"kafka-streams-{release}.jar"
    if streams.exists():
        yield from _in_jar(streams)


def definitions_at(path: Path) -> Iterator[Definition]:
    """All messages of one jar, or of a tree of Kafka's source. Raises `OSError` if there are none."""
    found = False
    for result in _in_jar(path) if path.is_file() else _in_source(path):
        found = True
        yield result
    if not found:
        raise OSError(f"{path}: no definitions of messages")


def _in_jar(path: Path) -> Iterator[Definition]:
    with ZipFile(path) as jar:
        names = [name for name in jar.namelist() if name.startswith("common/message/")]
        yield from _with_versions(jar.read(name).decode() for name in sorted(names) if name.endswith(".json"))


def _in_source(tree: Path) -> Iterator[Definition]:
    yield from _with_versions(
        path.read_text()
        for module in ("clients", "streams")
        for path in sorted(tree.glob(f"{module}/src/main/resources/common/message/*.json"))
    )


def _with_versions(texts: Iterable[str]) -> Iterator[Definition]:
    return (result for result in map(definition_of, texts) if result.versions)


def definition_of(text: str) -> Definition:
    """What one file says, the errors in its comments too."""
    return replace(definition(json.loads(_COMMENT.sub("", text))), errors=tuple(_ERROR.findall(text)))


def definition(raw: Mapping[str, Any]) -> Definition:
    """The same without comments."""
    valid = raw["validVersions"]
    known = range(int(re.split("[-+]", valid)[-1] or 0) + 1) if valid != "none" else range(0)
    versions = span(valid, frozenset(known))
    structs = {struct["name"]: struct for struct in raw.get("commonStructs", ())}
    unstable = raw.get("latestVersionUnstable") is True
    return Definition(
        name=raw["name"],
        key=raw.get("apiKey"),
        versions=versions,
        flexible=span(raw.get("flexibleVersions"), versions),
        fields=tuple(_fact(field, versions, structs) for field in raw.get("fields", ())),
        listeners=frozenset(raw["listeners"]) if "listeners" in raw else None,
        deprecated=span(raw.get("deprecatedVersions"), versions),
        unstable=frozenset({max(versions)}) if unstable and versions else frozenset(),
        headers=_headers(raw.get("headerVersions"), versions),
    )


def _headers(raw: Mapping[str, int] | None, versions: frozenset[int]) -> Mapping[int, int] | None:
    """{"0-5": 1, "6+": 2} by version."""
    if raw is None:
        return None
    return {version: number for text, number in raw.items() for version in span(text, versions)}


def _fact(raw: Mapping[str, Any], within: frozenset[int], structs: Mapping[str, Any]) -> Fact:
    array = raw["type"].startswith("[]")
    kind = raw["type"].removeprefix("[]")
    versions = span(raw["versions"], within)
    nullable = span(raw.get("nullableVersions"), versions)
    nested = kind[0].isupper()
    content = raw.get("fields") or (structs[kind]["fields"] if nested else ())
    return Fact(
        name=raw["name"][0].lower() + raw["name"][1:],
        type="struct" if nested else kind,
        array=array,
        versions=versions,
        nullable=nullable,
        default=_default(raw.get("default"), kind, nullable=bool(nullable), whole=not array and not nested),
        tag=int(raw["tag"]) if "tag" in raw else None,
        ignorable=str(raw.get("ignorable")).lower() == "true",  # at times a text
        fixed=raw.get("flexibleVersions") == "none",
        entity=_CAPITAL.sub(r"_\1", raw["entityType"]).lower() if "entityType" in raw else None,
        fields=tuple(_fact(field, versions, structs) for field in content),
    )


def _default(text: Any, kind: str, *, nullable: bool, whole: bool) -> object:
    if kind == "records":  # always null in Java, which then can't write it where it may not be null
        return None if nullable else b""
    if text == "null":
        return None
    if not whole:
        return "empty"
    if text is None or text == "":
        return _ZERO.get(kind, 0)
    if kind == "bool":
        return str(text).lower() == "true"
    if kind == "float64":
        return float(text)
    return text if kind == "string" else int(str(text), 0)
