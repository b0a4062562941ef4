"""`coordwire replay`: a capture's requests, sent again to a cluster, and the answers compared.

Rules: it asks first on a terminal, and needs --yes elsewhere, since requests change clusters. Answers that
differ are printed as they come; nothing is printed for those that are equal. Exit status: 0 all answers are
equal; 1 some differ, or a request could not be sent or had no answer; 2 usage or I/O.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from coordwire.capture.printable import shown
from coordwire.cli import Failure, cluster_options
from coordwire.cli.inputs import note, opened

if TYPE_CHECKING:
    from coordwire.capture import Entry
    from coordwire.replay import Difference, Replay, ReplayedRequest

_INDEX = re.compile(r"\[\d+\]")
_LONGEST = 200


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", nargs="+", metavar="FILE", help="captures, as decode reads them; -: standard input"
    )
    cluster_options.configure(parser)
    parser.add_argument(
        "--timeout",
        type=cluster_options.seconds,
        default=30.0,
        metavar="S",
        help="seconds for each answer (default: 30)",
    )
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="FIELD",
        help="a field that may differ, by its name or its path, as "
        "responses[].partition_responses[].base_offset; repeatable",
    )
    parser.add_argument("--format", choices=("line", "json"), default="line", help="(default: line)")
    parser.add_argument("--show-secrets", action="store_true", help="show passwords, tokens and keys")
    parser.add_argument("--yes", action="store_true", help="do not ask: the requests may change the cluster")


def run(options: argparse.Namespace) -> int:
    from coordwire.errors import CoordwireError
    from coordwire.replay import Replay

    if not options.yes and not _agreed(options):
        raise Failure("replay: requests may change the cluster: expected --yes")
    try:
        replay = Replay(cluster_options.settings(options), timeout_s=options.timeout)
    except CoordwireError as error:
        raise Failure(f"replay: {error}") from None
    return asyncio.run(_replay(replay, options))


def _agreed(options: argparse.Namespace) -> bool:
    """Whether a user at a terminal agrees."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()) or "-" in options.files:
        return False
    print(f"Send the requests of {', '.join(options.files)} to {options.to}? [y/N] ", end="", file=sys.stderr)
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _entries(options: argparse.Namespace) -> Iterator[Entry]:
    from coordwire.capture import Capture

    for name in options.files:
        with opened(name) as stream:
            yield from Capture(stream, name).entries()


async def _replay(replay: Replay, options: argparse.Namespace) -> int:
    from coordwire.errors import CoordwireError

    ignored = frozenset(options.ignore)
    status = 0
    results = replay.run(_entries(options))
    try:
        async for result in results:
            remaining = [place for place in result.differences if not _is_ignored(place.path, ignored)]
            if result.error is None and not remaining:
                continue
            status = 1
            _print(result, remaining, options)
    except CoordwireError as error:
        raise Failure(f"replay: {shown(f'{error}')}") from None
    finally:
        await results.aclose()
    totals = replay.totals
    skipped = "".join(f"; {count:,} skipped ({reason})" for reason, count in sorted(totals.skipped.items()))
    note(
        f"{totals.sent:,} requests sent, {totals.compared:,} answers compared, {totals.differing:,} differ, "
        f"{totals.failed:,} without an answer{skipped}"
    )
    return status


def _is_ignored(path: str, ignored: frozenset[str]) -> bool:
    general = _INDEX.sub("[]", path)
    return general in ignored or general.rpartition(".")[2] in ignored or path in ignored


def _print(result: ReplayedRequest, places: list[Difference], options: argparse.Namespace) -> None:
    from coordwire.capture.printable import without_numbers
    from coordwire.capture.redaction.entry_secrets import withheld

    entry, client = result.entry, result.entry.client_id
    if not options.show_secrets and withheld(entry).client:
        client = None
    hidden = _hidden(result, options.show_secrets)
    rows = [
        (
            place.path,
            *("redacted" if hidden(place) else _text(place.path, value) for value in _values(place)),
        )
        for place in places
    ]
    reason = None if result.error is None else without_numbers(f"{result.error}")
    if options.format == "json":
        record = {
            "capture": entry.capture,
            "frame": entry.number,
            "api": entry.api_name,
            "apiVersion": entry.api_version,
            "clientId": client,
            "error": reason,
            "differences": [
                {"path": path, "captured": captured, "answered": answered}
                for path, captured, answered in rows
            ],
        }
        print(json.dumps(record), flush=True)
        return
    title = f"{shown(entry.capture)} #{entry.number} {entry.api_name} v{entry.api_version}"
    client = f" {shown(client)}" if client else ""
    if reason is not None:
        print(f"{title}{client}: {shown(reason)}", flush=True)
    for path, captured, answered in rows:
        print(f"{title}{client}: {path}: {shown(captured)}, now {shown(answered)}", flush=True)


def _hidden(result: ReplayedRequest, show_secrets: bool) -> Callable[[Difference], bool]:
    """Whether a place is a secret in either answer; every place is where no message accounts for the captured
    one."""
    if show_secrets:
        return lambda place: False
    from coordwire.capture.redaction.entry_secrets import is_fully_decoded
    from coordwire.capture.redaction.secret_fields import find

    if result.response is None or not is_fully_decoded(result.response):
        return lambda place: True
    captured, answered = set(find(result.captured)), set(find(result.answered))
    return lambda place: place.path in captured or place.answered_path in answered


def _values(place: Difference) -> tuple[Any, Any]:
    return place.captured, place.answered


def _text(path: str, value: Any) -> str:
    """A value of an answer, as people read it."""
    if path.endswith("error_code") and isinstance(value, int):
        from coordwire.enums import ErrorCode

        return ErrorCode(value).name
    text = f"{len(value)} bytes" if isinstance(value, bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"
