"""A broker's files: log segments, and the files beside them.

    with Segment("orders-0/00000000000000000000.log") as segment:
        for batch in segment.batches(on_error="skip"):
            for record in batch: record.offset, record.key, record.value
        segment.find(offset=4711); segment.find(timestamp=1_700_000_000_000)

    names.py        what file and folder names say; how a log is read, by its file's name
    remote_storage.py   the same of segments in remote storage, and the log of their metadata
    indexes.py      .index, .timeindex, .txnindex
    state_files.py  .snapshot, leader-epoch-checkpoint, partition.metadata
    segment.py      Segment, files as memory; a folder's segments in order
    verify.py       what is wrong with a segment; index_check.py: with its indexes,
                    and these from batches
    producers.py    what a broker remembers of producers
    recovery.py     a clean copy, and the rest in quarantine; batch_selection.py: which batches make a log

Rule: files are untrusted: no index, length or name is trusted.
"""

from typing import TYPE_CHECKING

from coordwire._lazy import exports

if TYPE_CHECKING:
    from coordwire.messages.producer_snapshot import ProducerEntry, ProducerSnapshot
    from coordwire.segments.index_check import Fault, Indexes, rebuild
    from coordwire.segments.indexes import (
        AbortedTransaction,
        OffsetIndex,
        OffsetPosition,
        TimeIndex,
        TimestampOffset,
        TransactionIndex,
    )
    from coordwire.segments.names import topic_partition
    from coordwire.segments.producers import Producers
    from coordwire.segments.recovery import Recovered, recover
    from coordwire.segments.segment import Segment
    from coordwire.segments.state_files import (
        EpochEntry,
        PartitionMetadata,
        read_leader_epochs,
        read_metadata,
        read_snapshot,
        write_snapshot,
    )
    from coordwire.segments.verify import SegmentCounts

_LAZY = {
    "ProducerEntry": ".messages.producer_snapshot",
    "ProducerSnapshot": ".messages.producer_snapshot",
    "Fault": "index_check",
    "Indexes": "index_check",
    "rebuild": "index_check",
    "AbortedTransaction": "indexes",
    "OffsetIndex": "indexes",
    "OffsetPosition": "indexes",
    "TimeIndex": "indexes",
    "TimestampOffset": "indexes",
    "TransactionIndex": "indexes",
    "topic_partition": "names",
    "Producers": "producers",
    "Recovered": "recovery",
    "recover": "recovery",
    "Segment": "segment",
    "EpochEntry": "state_files",
    "PartitionMetadata": "state_files",
    "read_leader_epochs": "state_files",
    "read_metadata": "state_files",
    "read_snapshot": "state_files",
    "write_snapshot": "state_files",
    "SegmentCounts": "verify",
}

__all__ = [
    "AbortedTransaction",
    "EpochEntry",
    "Fault",
    "Indexes",
    "OffsetIndex",
    "OffsetPosition",
    "PartitionMetadata",
    "ProducerEntry",
    "ProducerSnapshot",
    "Producers",
    "Recovered",
    "Segment",
    "SegmentCounts",
    "TimeIndex",
    "TimestampOffset",
    "TransactionIndex",
    "read_leader_epochs",
    "read_metadata",
    "read_snapshot",
    "rebuild",
    "recover",
    "topic_partition",
    "write_snapshot",
]

__getattr__, __dir__ = exports(__name__, __all__, _LAZY)
