"""Which frames of a capture have rows, by the options.

Rules: all that is asked for must match; a frame without a time is in no range of times. A client matches
where its id is in the frame's row: ids that are withheld can't be found by guessing. A group matches where
the frame or the request that it answers names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from coordwire.capture.entries import FrameEntry
from coordwire.capture.named_groups import groups
from coordwire.capture.redaction.entry_secrets import withheld
from coordwire.tables.options import Options

__all__ = ["is_selected"]


def is_selected(entry: FrameEntry, options: Options) -> bool:
    """Whether a frame has rows."""
    if not options.selects_frames:
        return True
    return (
        _is_in_time(entry, options)
        and (options.directions is None or entry.direction in options.directions)
        and (options.apis is None or entry.api_name in options.apis)
        and (options.client_ids is None or _is_of_client(entry, options.client_ids, options.show_secrets))
        and (options.groups is None or _names_group(entry, options.groups, options.show_secrets))
    )


def _is_in_time(entry: FrameEntry, options: Options) -> bool:
    start, end = options.starting_timestamp, options.ending_timestamp
    if start is None and end is None:
        return True
    if entry.time_ns is None:
        return False
    return (start is None or entry.time_ns >= start * 1_000_000) and (
        end is None or entry.time_ns < end * 1_000_000
    )


def _is_of_client(entry: FrameEntry, client_ids: tuple[str, ...], show_secrets: bool) -> bool:
    return entry.client_id in client_ids and (show_secrets or not withheld(entry).client)


def _names_group(entry: FrameEntry, names: tuple[str, ...], show_secrets: bool) -> bool:
    return not set(names).isdisjoint(_groups(entry, show_secrets))


def _groups(entry: FrameEntry, show_secrets: bool) -> Iterator[Any]:
    """The groups that a frame and its request name, as far as they are shown."""
    for frame in (entry, entry.request):
        if frame is not None and (show_secrets or not withheld(frame).body):
            yield from groups(frame.message)
