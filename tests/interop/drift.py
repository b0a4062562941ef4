"""`python -m tests.interop.drift [--release 4.x.y | --at PATH]`: what a release of Apache Kafka has that we
lack or have otherwise: APIs, records of brokers' own logs, versions, fields, error codes and other enums.
Exit status 1 if there is anything, 2 if it can't be read.

Strategy: a release's definitions beside the field tables that the schemas became, in the versions that both
have; its records and enums need a JVM, and are left out for a jar or a source tree that is given. Rules: a
version that only we have is none of the release's business; a difference that we want is in `MEANT`, with its
reason, and is reported but doesn't count.
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from zipfile import BadZipFile

from coordwire.codec import Field, Struct
from coordwire.messages import find_message
from coordwire.messages.keys import FACTS, ApiFacts
from coordwire.versions import header_version
from schemas._generate.walk import modules
from tests.interop.definitions import Definition, Fact, definitions, definitions_at
from tests.interop.enums import enum_drift, unknown_enums
from tests.interop.java_oracle import oracle
from tests.interop.log_drift import log_drift
from tests.interop.maven import CURRENT, Unavailable, jars

_RENAMED = "4.x renamed it; the bytes are the same"
_UNSTABLE = "4.x made the same layout stable"
_EARLY = "its share groups were early access, and their records others"
_LATER = ("3.", "4.0.", "4.1.", "4.2.", "4.3.")
_RENAMED_LATER = "4.4 renamed it, in older versions too; the bytes are the same"
MEANT: dict[tuple[str | tuple[str, ...], str], str] = {
    (_LATER, "TxnOffsetCommitRequest.generationId"): _RENAMED_LATER,
    (_LATER, "StreamsGroupHeartbeatResponse.acceptableRecoveryLag"): _RENAMED_LATER,
    ("3.", "ListClientMetricsResources"): "4.x calls api key 74 ListConfigResources",
    ("3.", "VoteRequest.topics.partitions.candidate"): _RENAMED,
    ("3.", "VoteRequest.topics.partitions.replica"): _RENAMED,
    ("3.", "InitializeShareGroupStateRequest: unstable"): _UNSTABLE,
    ("3.", "ReadShareGroupStateRequest: unstable"): _UNSTABLE,
    ("3.", "DeleteShareGroupStateRequest: unstable"): _UNSTABLE,
    (
        "3.",
        "ReadShareGroupStateSummaryResponse.results.partitions.leaderEpoch:",
    ): "4.x added it to v0, early access",
    ("3.", "ShareGroupMetadataValue v0."): _EARLY,
    ("3.", "ShareGroupPartitionMetadataValue v0."): _EARLY,
    ("3.", "ShareFetchResponse.responses.partitions.records: default"): "from v1 on null can't be written",
}
"""By releases' series and the difference's first words: why we differ."""

ANY_REQUEST = ("UNKNOWN_SERVER_ERROR",)
"""Errors that every response may carry, so that no API lists them."""


def drift(release: Definition) -> Iterator[str]:
    """The differences of one message, a line each."""
    name = release.name
    try:
        cls = find_message(name)
    except KeyError:
        key = "" if release.key is None else f" (api key {release.key})"
        yield f"{name}{key}: unknown to us; versions {_shown(release.versions)}"
        return
    if cls.api_key != release.key:
        yield f"{name}: api key {release.key}, ours {cls.api_key}"
    lacking = release.versions - set(cls.versions)
    if lacking:
        yield f"{name}: lacks versions {_shown(lacking)}{_declared(release, lacking)}"
    common = release.versions & set(cls.versions)
    flexible = {version for version in common if version in cls.flexible_versions}
    if flexible != release.flexible & common:
        yield f"{name}: flexible in {_shown(release.flexible & common)}, ours in {_shown(flexible)}"
    if release.key is not None and release.headers is not None:
        for version in sorted(common):
            want, have = release.headers.get(version), header_version(release.key, version, cls.direction)
            if want != have:
                yield f"{name}: header {want} in version {version}, ours {have}"
    if release.key is not None and cls.direction == "request":
        yield from _api_facts(release, FACTS[release.key], common)
    if release.key is not None:
        listed = {*FACTS[release.key].errors, *ANY_REQUEST}
        yield from (f"{name}: error {error}: lacking" for error in release.errors if error not in listed)
    yield from _fields(f"{name}.", release.fields, cls, common)


def _declared(release: Definition, lacking: frozenset[int]) -> str:
    """What to do where the versions are declared, and were in no release."""
    first = None if release.key is None else unreleased().get(release.key)
    is_declared = first is not None and min(lacking) >= first
    return ", declared as unreleased: see python -m schemas --unreleased" if is_declared else ""


@functools.cache
def unreleased() -> dict[int, int]:
    """By API key the first version that is declared, and that no release of Kafka had."""
    apis = (row.api for row in modules())
    return {api.key: api.unreleased for api in apis if api is not None and api.unreleased is not None}


def _api_facts(release: Definition, facts: ApiFacts, common: frozenset[int]) -> Iterator[str]:
    """Where a request is accepted, and in which versions it had better not be sent."""
    if release.listeners is not None:
        theirs, ours = (_without_zookeeper(names) for names in (release.listeners, facts.listeners))
        if theirs != ours:
            yield f"{release.name}: listeners {', '.join(theirs)}, ours {', '.join(ours)}"
    for what, theirs_in, ours_in in (
        ("deprecated", release.deprecated, frozenset(facts.deprecated)),
        ("unstable", release.unstable, frozenset({facts.unstable} - {None})),
    ):
        if what == "unstable" and facts.last not in common:
            continue  # only a release that knows our last version says whether its layout may change
        want, have = theirs_in & common, ours_in & common
        if want != have:
            yield f"{release.name}: {what} in {_shown(want)}, ours in {_shown(have)}"


def _without_zookeeper(listeners: Iterable[str]) -> list[str]:
    """Listeners as Kafka 4 has them; those that only a ZooKeeper cluster had where there are no others."""
    return sorted(set(listeners) - {"zkBroker"}) or sorted(listeners)


def _fields(path: str, facts: tuple[Fact, ...], cls: type[Struct], within: frozenset[int]) -> Iterator[str]:
    theirs = {fact.name: fact for fact in facts if fact.versions & within}
    ours = {f.json_name: f for f in cls._layout_.fields if any(f.exists(v) for v in within)}
    yield from (f"{path}{name}: lacking" for name in theirs if name not in ours)
    yield from (f"{path}{name}: not in the release" for name in ours if name not in theirs)
    both = [name for name in theirs if name in ours]
    if [name for name in ours if name in theirs] != both:
        yield f"{path}: fields in another order"
    for name in both:
        fact, field = theirs[name], ours[name]
        for what, (want, have) in _facts(fact, field, within).items():
            if want != have:
                yield f"{path}{name}: {what} {_shown(want)}, ours {_shown(have)}"
        if field.struct is not None and fact.type == "struct":
            content = fact.versions & frozenset(v for v in within if field.exists(v))
            yield from _fields(f"{path}{name}.", fact.fields, field.struct, content)


def _facts(fact: Fact, field: Field, within: frozenset[int]) -> dict[str, tuple[object, object]]:
    """Theirs beside ours."""
    here = frozenset(v for v in within if field.exists(v))
    prefix = {True: "[]", False: ""}
    result: dict[str, tuple[object, object]] = {
        "type": (prefix[fact.array] + fact.type, prefix[field.array] + field.type),
        "versions": (fact.versions & within, here),
        "nullable in": (fact.nullable & here, frozenset(v for v in here if field.nullable(v))),
        "tag": (fact.tag, field.tag),
        "default": (fact.default, _default(field)),
        "classic": (fact.fixed, field.fixed),
    }
    if fact.entity is not None:  # where the release gives none, ours may say more
        result["entity"] = (fact.entity, field.entity)
    if here != within:  # else no version lacks it, and nothing is ignored
        result["ignorable"] = (fact.ignorable, field.ignorable)
    return result


def _default(field: Field) -> object:
    return "empty" if field.default is not None and (field.array or field.struct) else field.default


def _shown(value: object) -> str:
    if not isinstance(value, (set, frozenset)):
        return repr(value)
    numbers = sorted(value)
    if len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"{numbers[0]}-{numbers[-1]}"
    return ", ".join(map(str, numbers)) or "none"


def meant(release: str, line: str) -> str | None:
    """Why this difference is wanted, if it is."""
    for (series, start), why in MEANT.items():
        if release.startswith(series) and line.startswith(start):
            return why
    return None


def _others(release: str) -> Iterator[str]:
    """The differences that only a JVM can tell."""
    kafka = oracle(release)
    yield from log_drift(jars(release), kafka)
    yield from enum_drift(kafka)
    yield from unknown_enums(jars(release), kafka)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.interop.drift", description=__doc__.split("\n\n")[0] if __doc__ else None
    )
    parser.add_argument(
        "--release", default=CURRENT, help="a version of kafka-clients (default: %(default)s)"
    )
    parser.add_argument(
        "--at", type=Path, help="a jar, or a tree of Kafka's source, instead of Maven Central's"
    )
    options = parser.parse_args(arguments)
    try:
        if options.at:
            results, others = list(definitions_at(options.at)), []
        else:
            results = list(definitions(jars(options.release), options.release))
            others = list(_others(options.release))
    except (Unavailable, OSError, BadZipFile) as error:
        print(error, file=sys.stderr)
        return 2
    lines = [line for result in results for line in drift(result)] + others
    reasons = {line: meant(options.release, line) for line in lines}
    for line, why in reasons.items():
        print(f"{line}  [meant: {why}]" if why else line)
    count = sum(reason is None for reason in reasons.values())
    counts = f"{len(results)} messages, {count} differences, {len(lines) - count} meant"
    print(f"{options.at or f'Apache Kafka {options.release}'}: {counts}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
