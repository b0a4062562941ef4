"""The options that a reader takes.

    mode                                  permissive (the default: bad ranges are left out, and
                                          kafka-quarantine has them) or failfast (the first one fails the job)
    topics                                names or globs, separated by commas: of the partitions' folders, so
                                          that kafka-offsets has __consumer_offsets and the like; for
                                          kafka-lag the topics that were committed
    partitions                            numbers and ranges: 0,3-5, of the same
    startingOffset, endingOffset          records from the first, and before the second
    startingTimestamp, endingTimestamp    milliseconds since 1970, or ISO 8601 (UTC unless it says otherwise);
                                          batches that headers or the index exclude by these four are not
                                          looked into, and their faults are not reported
    splitSize                             bytes of a part that one task reads (default 128 MB); a capture has
                                          a share for about each, at most 16
    checksums                             for kafka-segment-batches: whether bodies are read and their
                                          checksums compared (default false: headers alone)
    batchSize                             bytes of keys and values in one Arrow batch (default 8 MB)
    strict, showSecrets                   for captures, as `coordwire decode` has them (default false)
    dialect                               what captures are in (default kafka, and ZooKeeper's protocol where
                                          a connection is in that): see `coordwire.dialects`
    apis, clientIds, directions, groups   for captures: rows of these frames alone: APIs by name, clients,
                                          request or response, and frames that name a group, or answer a
                                          request that does; each of them several, separated by commas
    joinRotated                           whether rotated captures are read as one (default true)
    log                                   for kafka-offsets: which log all segments are of, whatever their
                                          folders are called; to choose one, filter by the column log
    recursive                             whether folders are searched to their bottom (default true)
    maxFilesPerTrigger                    for streams: files in one micro-batch
    growing                               for streams of captures: whether these are still written (default
                                          false: a file is read once)

Rules: names are case-insensitive, as in Spark; an unknown name is refused and not ignored.
"""

from __future__ import annotations

__all__ = ["Options", "parse_options"]

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from coordwire.dialects import Dialect
from coordwire.errors import CoordwireError
from coordwire.logs import TOPICS

MEBI = 1 << 20


# --- values from texts ---


def _flag(text: str) -> bool:
    word = text.strip().lower()
    if word not in ("true", "false"):
        raise ValueError("expected true or false")
    return word == "true"


def _size(text: str) -> int:
    number = int(text)
    if number < 1:
        raise ValueError("expected a number of at least 1")
    return number


def _mode(text: str) -> str:
    if text.lower() not in ("permissive", "failfast"):
        raise ValueError("expected permissive or failfast")
    return text.lower()


def _dialect(text: str) -> str:
    try:
        return Dialect(text.lower())
    except ValueError:
        raise ValueError(f"expected {', '.join(Dialect)}") from None


def _log(text: str) -> str:
    if text not in TOPICS:
        raise ValueError(f"expected {', '.join(TOPICS)}")
    return text


def _names(text: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in text.split(",") if name.strip())


def _directions(text: str) -> tuple[str, ...]:
    names = _names(text)
    if not {"request", "response"}.issuperset(names):
        raise ValueError("expected request or response")
    return names


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    return tuple(
        (int(low), int(high or low))
        for low, _, high in (part.strip().partition("-") for part in text.split(","))
    )


def milliseconds(text: str) -> int:
    """Milliseconds since 1970 from a number or an ISO 8601 time. Raises `ValueError`."""
    try:
        return int(text)
    except ValueError:
        moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since = moment - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000


def _option(parse: Callable[[str], Any], default: Any = None, *, is_later: bool = False) -> Any:
    """A field whose value is parsed from a text. is_later: see `Options.row_facts`."""
    return field(default=default, metadata={"parse": parse, "is_later": is_later})


# --- the options ---


@dataclass(frozen=True, slots=True)
class Options:
    """The options above, by their names in snake_case. Times are milliseconds; ends are exclusive.

    partitions: ranges, both ends inclusive; None for all.
    """

    paths: tuple[str, ...] = ()
    mode: str = _option(_mode, "permissive")
    topics: tuple[str, ...] | None = _option(_names)
    partitions: tuple[tuple[int, int], ...] | None = _option(_ranges)
    starting_offset: int | None = _option(int)
    ending_offset: int | None = _option(int)
    starting_timestamp: int | None = _option(milliseconds)
    ending_timestamp: int | None = _option(milliseconds)
    split_size: int = _option(_size, 128 * MEBI)
    batch_size: int = _option(_size, 8 * MEBI)
    checksums: bool = _option(_flag, False)
    strict: bool = _option(_flag, False)
    show_secrets: bool = _option(_flag, False)
    dialect: str = _option(_dialect, Dialect.KAFKA)
    join_rotated: bool = _option(_flag, True)
    log: str | None = _option(_log)
    recursive: bool = _option(_flag, True)
    max_files_per_trigger: int | None = _option(_size)
    growing: bool = _option(_flag, False)
    apis: tuple[str, ...] | None = _option(_names, is_later=True)
    client_ids: tuple[str, ...] | None = _option(_names, is_later=True)
    directions: tuple[str, ...] | None = _option(_directions, is_later=True)
    groups: tuple[str, ...] | None = _option(_names, is_later=True)

    @property
    def failfast(self) -> bool:
        return self.mode == "failfast"

    @property
    def selects_frames(self) -> bool:
        """Whether not all of a capture's frames have rows."""
        limits = (
            self.starting_timestamp, self.ending_timestamp, self.apis, self.client_ids, self.directions,
            self.groups,
        )  # fmt: skip
        return any(limit is not None for limit in limits)

    def row_facts(self) -> dict[str, Any]:
        """The options that rows depend on, by name. One that came after tables were written is left out
        unless it is set, so that the others' units keep their names."""
        return {
            option.name: getattr(self, option.name)
            for option in fields(self)
            if not (option.metadata.get("is_later") and getattr(self, option.name) == option.default)
        } | {"paths": None, "split_size": None}

    def wants(self, topic: str | None, partition: int | None) -> bool:
        """Whether a file of this topic and partition is to be read."""
        if self.topics is not None and not any(fnmatchcase(topic or "", glob) for glob in self.topics):
            return False
        if self.partitions is None:
            return True
        return partition is not None and any(low <= partition <= high for low, high in self.partitions)


_FIELDS = {option.name.replace("_", ""): option for option in fields(Options) if option.metadata}
"""By their names as an option's is compared: case does not matter."""


def parse_options(texts: Mapping[str, str]) -> Options:
    """Parse the options; `path` or `paths` name what to read. Raises `CoordwireError` for an unknown name or
    value."""
    values: dict[str, Any] = {"paths": _paths(texts)}
    for name, text in texts.items():
        if name.lower() in ("path", "paths"):
            continue
        option = _FIELDS.get(name.lower().replace("_", ""))
        if option is None:
            names = sorted(option.name for option in _FIELDS.values())
            raise CoordwireError(f"no such option: {name}; there are {', '.join(map(_camel, names))}")
        try:
            values[option.name] = option.metadata["parse"](text)
        except ValueError as error:
            raise CoordwireError(f"option {name} = {text!r}: {error}") from None
    return Options(**values)


def _paths(texts: Mapping[str, str]) -> tuple[str, ...]:
    """`load("a")` gives `path`, `load(["a", "b"])` gives `paths`, a JSON list."""
    paths: list[str] = []
    for name, text in texts.items():
        if name.lower() == "path":
            paths.append(text)
        elif name.lower() == "paths":
            try:
                names = json.loads(text)
            except ValueError:
                names = None
            if not isinstance(names, list) or not all(isinstance(path, str) for path in names):
                raise CoordwireError(f"option paths = {text!r}: expected a JSON list of texts")
            paths += names
    return tuple(paths)


def _camel(name: str) -> str:
    """A field's name in the style of Spark's options."""
    first, *words = name.split("_")
    return first + "".join(map(str.capitalize, words))
