"""The names of the pipeline's files and folders, and which other names it never gives.

    manifest.json                               what is complete
    report.html
    TABLE/date=D/topic-T/UNIT-TOKEN-NNNN.parquet
    _manifest/TASK.json                         notes of the units of a task, which are complete
    _manifest/writing/                          small files until they are complete
    _manifest/checkpoints/UNIT                  what is known at the end of a unit's files, for those after
    _manifest/lock, _manifest/commit            empty; only locked (flock)
    _manifest/runs/RUN.lock                     the run that writes here at present
    _manifest/attempts/RUN-TASK-TOKEN/          what one attempt at one task has not published yet

Strategy: dates are partitions in Hive's form; a topic's folder only keeps files apart, and the topic itself
is a column in the files, since readers guess types from folders' names (007 would become 7), and Spark and
pyarrow decode escapes differently. Rules: a topic of Kafka's own alphabet has the folder topic-NAME; any
other, one of more than 100 characters, and one that ends in a dot have topic-START~HASH, with the plain ones
of the first characters and half of the SHA-256; null has no-topic; no two topics share a folder. TOKEN is
random and new for each attempt, so that no two writers ever share a name.
"""

from __future__ import annotations

__all__ = [
    "ATTEMPTS", "CHECKPOINTS", "COMMIT", "LOCK", "MANIFEST", "NOTES", "REPORT", "RUNS", "WRITING",
    "attempt_of", "data_name", "folder_of", "is_data_name", "is_note_name", "is_own_name", "partition_date",
]  # fmt: skip

import re
from hashlib import sha256
from typing import Any

from coordwire.tables.columns import TABLES

MANIFEST = "manifest.json"
REPORT = "report.html"
NOTES = "_manifest"
"""Where the notes of complete units are, until the manifest takes them in."""

LOCK = f"{NOTES}/lock"
COMMIT = f"{NOTES}/commit"
RUNS = f"{NOTES}/runs"
ATTEMPTS = f"{NOTES}/attempts"
WRITING = f"{NOTES}/writing"
"""Where small files are until they are whole."""

CHECKPOINTS = f"{NOTES}/checkpoints"

NULL = "__HIVE_DEFAULT_PARTITION__"
NO_TOPIC = "no-topic"
LONGEST = 100
"""Characters of a topic that its folder is named after; file systems take 255 bytes, some only 143."""

SHOWN = 40
"""Characters of any other topic that its folder's name begins with."""

_PLAIN = re.compile(rf"[A-Za-z0-9._-]{{0,{LONGEST - 1}}}[A-Za-z0-9_-]")
_NOT_PLAIN = re.compile(r"[^A-Za-z0-9_-]+")
_TOPIC = rf"(?:no-topic|topic-(?:{_PLAIN.pattern}|[A-Za-z0-9_-]{{0,{SHOWN}}}~[0-9a-f]{{32}}))"
_DATA = re.compile(
    rf"(?:{'|'.join(TABLES)})(?:/date=(?:\d{{4}}-\d\d-\d\d|{NULL}))?(?:/{_TOPIC})?"
    r"/[0-9a-f]{24}-[0-9a-f]{32}-\d{4,}\.parquet"
)
_DATE = re.compile(r"/date=([^/]+)/")
_NOTE = re.compile(rf"{NOTES}/[0-9a-f]{{24}}\.json")
_ATTEMPT = re.compile(
    rf"{ATTEMPTS}/(?P<run>[0-9a-f]{{32}})-[0-9a-f]{{24}}-[0-9a-f]{{32}}"
    r"/(?:\d{4,}\.part|commit\.json)"
)
_OWN = re.compile(
    rf"{LOCK}|{COMMIT}|{RUNS}/[0-9a-f]{{32}}\.lock|{WRITING}/[\w.-]+\.[0-9a-f]{{32}}\.part"
    rf"|{_NOTE.pattern}|{_ATTEMPT.pattern}|{CHECKPOINTS}/[0-9a-f]{{24}}"
)


def folder_of(values: list[Any], with_topic: bool) -> str:
    """The folder of a table's rows. values: their date, and their topic if the table has folders for it."""
    date = f"date={NULL if values[0] is None else values[0].isoformat()}"
    return f"{date}/{_topic_folder(values[1])}" if with_topic else date


def _topic_folder(topic: str | None) -> str:
    if topic is None:
        return NO_TOPIC
    if _PLAIN.fullmatch(topic):
        return f"topic-{topic}"
    start = _NOT_PLAIN.sub("", topic[: 4 * SHOWN])[:SHOWN]
    return f"topic-{start}~{sha256(topic.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def data_name(table: str, folder: str, unit: str, token: str, number: int) -> str:
    """A file of a table."""
    return "/".join(part for part in (table, folder, f"{unit}-{token}-{number:04}.parquet") if part)


def is_data_name(name: str) -> bool:
    """Whether a file of a table could have this name."""
    return _DATA.fullmatch(name) is not None


def partition_date(name: str) -> str | None:
    """The date that a table's file is of, as its folder has it; None for null."""
    match = _DATE.search(name)
    return None if match is None or match[1] == NULL else match[1]


def is_own_name(name: str) -> bool:
    """Whether a file in `_manifest` is one of those listed above."""
    return _OWN.fullmatch(name) is not None


def is_note_name(name: str) -> bool:
    """Whether it is the file of a task's notes."""
    return _NOTE.fullmatch(name) is not None


def attempt_of(name: str) -> tuple[str, str] | None:
    """The run and the folder of an attempt's file; None for any other file."""
    match = _ATTEMPT.fullmatch(name)
    return (match["run"], name.rpartition("/")[0]) if match else None
