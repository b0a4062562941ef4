"""The folders of the logs that the implementation page describes: `my_topic_0`, `my_topic_1`.

Source: the page's section 5.4, whose folders have an underline before the partition, and whose files are
named by the offset of their first message (`00000000000.kafka`). Rules: only where a folder is said to hold
logs of this design; a Kafka broker's folders are named TOPIC-PARTITION (`coordwire.segments.names`), and
among those `backup_2` is not a partition.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from coordwire.designs.drafts.actions import DraftPartition
from coordwire.segments.names import kafka_07_offset

_FOLDER = re.compile(r"([a-zA-Z0-9._-]{1,249})_(0|[1-9][0-9]{0,9})")
_INT32 = 1 << 31


def folder_name(partition: DraftPartition) -> str:
    """The folder of a partition's log."""
    return f"{partition.topic}_{partition.partition}"


def folder_partition(name: str) -> DraftPartition | None:
    """The partition whose log a folder has; None for a name of another form."""
    match = _FOLDER.fullmatch(name)
    return DraftPartition(match[1], match[2]) if match is not None and int(match[2]) < _INT32 else None


def log_files(folder: str | os.PathLike[str]) -> Iterator[tuple[DraftPartition, list[Path]]]:
    """The partitions that have logs in a folder of this design, by topic and number, each with its files in
    the order of their offsets. Raises `OSError`."""
    with os.scandir(folder) as entries:
        partitions = [
            (partition, Path(entry.path))
            for entry in entries
            if entry.is_dir(follow_symlinks=False) and (partition := folder_partition(entry.name))
        ]
    for partition, path in sorted(partitions, key=lambda pair: (pair[0].topic, int(pair[0].partition))):
        offsets = [
            (offset, file)
            for file in path.iterdir()
            if (offset := kafka_07_offset(file.name)) is not None and file.is_file()
        ]
        yield partition, [file for _, file in sorted(offsets)]
