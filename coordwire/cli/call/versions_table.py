"""The APIs and versions of a broker, beside coordwire's."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from coordwire.cli.terminal import Pieces, line_writer
from coordwire.client.opening import Session
from coordwire.messages.keys import FACTS
from coordwire.versions import VersionRange, api_name, known_versions

__all__ = ["write_versions"]


def write_versions(session: Session, style: str) -> None:
    """Write a broker's APIs: "tree" for a table, "json" for an object a line."""
    if style == "json":
        for key, had in sorted(session.versions.items()):
            known = known_versions(key) if key in FACTS else None
            form = {
                "apiKey": key, "api": api_name(key), "versions": [had.first, had.last],
                "known": None if known is None else [known.first, known.last],
            }  # fmt: skip
            sys.stdout.write(json.dumps(form, separators=(",", ":")) + "\n")
        return
    line_writer()(_lines(session))


def _lines(session: Session) -> Iterator[Pieces]:
    width = max((len(facts.name) for facts in FACTS.values()), default=0)
    yield [(f"{'key':>3}  {'api':<{width}}  {'broker':<8}  {'coordwire':<9}  answered by", "note")]
    for key, had in sorted(session.versions.items()):
        facts = FACTS.get(key)
        known = known_versions(key) if facts else VersionRange(0, -1)
        common = had & known
        note = "" if facts is None else facts.answered_by
        if facts is not None and facts.coordinator:
            note = f"{facts.coordinator} coordinator"
        if not common:
            note = "no common version" if facts else "unknown to coordwire"
        yield [
            (f"{key:>3}  ", "plain"), (f"{api_name(key) or '?':<{width}}", "api"),
            (f"  {had!s:<8}", "plain"), (f"  {str(known) if facts else '-':<9}", "plain"),
            (f"  {note}", "note"),
        ]  # fmt: skip
    finalized = ", ".join(
        f"{feature.name} {feature.max_version_level}" for feature in session.response.finalized_features
    )
    if finalized:
        yield [("features: ", "note"), (finalized, "plain")]
