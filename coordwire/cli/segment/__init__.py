"""`coordwire segment`: a broker's log segments shown, verified, recovered and indexed.

Strategy: one subcommand a verb; `dump` has a module of its own, the others report each segment in a line of
words, or of JSON. Rules: originals are never written to; `index` writes beside a log only missing files,
unless --replace is given, and refuses logs of Kafka 0.7, which had no indexes; a fault makes the status 1, a
batch whose codec's library is not installed 2.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from coordwire.capture.printable import shown
from coordwire.cli import Failure, progress, terminable
from coordwire.cli.inputs import PlainFile, failure, is_compressed, note, plain_file
from coordwire.cli.segment import dump
from coordwire.cli.segment.files import WatchedSegment, partitions, report_position
from coordwire.cli.terminal import line_writer
from coordwire.errors import CodecUnavailable, CoordwireError, counted
from coordwire.files.staged import Staged, remove_stale
from coordwire.segments import Fault, Indexes, Recovered, Segment, SegmentCounts, rebuild, recover
from coordwire.segments.index_check import INTERVAL
from coordwire.segments.names import kafka_07_offset, log_name
from coordwire.segments.segment import producers_before

Form = dict[str, Any]
VERBS = {
    "dump": "show records, batches and the files beside them",
    "verify": "report what is wrong, by byte range",
    "recover": "copy the valid batches and put the rest in quarantine",
    "index": "write indexes as a broker's recovery does, or compare with them",
}


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    commands = {
        name: verbs.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        for name, summary in VERBS.items()
    }
    dump.configure(commands["dump"])
    for name in ("verify", "recover", "index"):
        commands[name].add_argument("paths", nargs="+", metavar="FILE|DIR", help="a log, or a folder of logs")
        commands[name].add_argument(
            "--format",
            choices=("text", "json"),
            default="text",
            help="json: a line a segment (default: text)",
        )
    commands["verify"].add_argument(
        "--quick", action="store_true", help="check batch checksums only; do not read records"
    )
    commands["recover"].add_argument("--out", required=True, metavar="DIR", help="output folder for the copy")
    commands["index"].add_argument("--out", metavar="DIR", help="output folder (default: beside the log)")
    commands["index"].add_argument("--replace", action="store_true", help="replace existing indexes")
    commands["index"].add_argument(
        "--check", action="store_true", help="write nothing; compare with the existing indexes"
    )
    commands["index"].add_argument(
        "--snapshots", action="store_true", help="also write the producer .snapshot at each segment's end"
    )
    for name in ("recover", "index"):
        commands[name].add_argument(
            "--index-interval", type=_interval, default=INTERVAL, metavar="BYTES",
            help="the topic's index.interval.bytes (default: %(default)s)",
        )  # fmt: skip


def run(options: argparse.Namespace) -> int:
    if options.verb == "dump":
        return dump.run(options)
    text = options.format == "text"
    verb: Callable[[argparse.Namespace], Iterator[tuple[int, str, Form]]] = {
        "verify": _verify, "recover": _recover, "index": _index
    }[options.verb]  # fmt: skip
    status = 0
    write = line_writer()
    progress.quietly()
    try:
        with terminable():
            for segment_status, words, form in verb(options):
                status = max(status, segment_status)
                progress.clear()
                if text:
                    write([[(words, "plain")]])
                else:
                    sys.stdout.write(json.dumps(form, separators=(",", ":")) + "\n")
    except OSError as error:
        if error.filename is None:  # it was the output's
            raise
        raise failure(str(error.filename), error) from None
    return status


def _interval(text: str) -> int:
    if not (text.isdecimal() and text.isascii()):
        raise argparse.ArgumentTypeError(f"expected a number of bytes, got {text!r}")
    return int(text)


# --- verify ------------------------------------------------------------------------------------------------


def _verify(options: argparse.Namespace) -> Iterator[tuple[int, str, Form]]:
    """A line a fault, and one a segment after its faults: status, words, form."""
    for folder, paths in partitions(options.paths):
        before: SegmentCounts | None = None
        for path in paths:
            counts, count = SegmentCounts(), 0
            with plain_file(path) as plain, WatchedSegment(plain.path) as segment:
                for fault in _faults(segment, counts, before, options, plain):
                    count += 1
                    place = str(path if fault.file == plain.path.name else folder / fault.file)
                    place_text = f"{shown(place)}: {counted(fault.length, 'byte')} at {fault.position}"
                    words = f"{place_text}: {shown(fault.reason)}"
                    yield 1, words, {"file": place, **fault._asdict() | {"file": place}}
                unread = {} if counts.needs is None else {"unread": counts.unread, "needs": counts.needs}
                yield 2 if unread else int(count > 0), _result(path, segment, counts, count), {
                    "file": str(path), "topic": segment.topic, "partition": segment.partition,
                    "size": segment.size, "batches": counts.batches, "records": counts.records,
                    "firstOffset": counts.first_offset, "lastOffset": counts.last_offset,
                    "badBytes": counts.bad_bytes, "faults": count, **unread,
                }  # fmt: skip
            before = counts


def _faults(
    segment: Segment,
    counts: SegmentCounts,
    before: SegmentCounts | None,
    options: argparse.Namespace,
    plain: PlainFile,
) -> Iterator[Fault]:
    with suppress(CodecUnavailable):  # the tally says so
        yield from segment.verify(check_records=not options.quick, counts=counts)
    if plain.fault:
        yield Fault(segment.path.name, segment.size, 0, plain.fault)
    first = counts.first_offset
    if (
        before is not None
        and before.last_offset is not None
        and first is not None
        and first <= before.last_offset
    ):
        reason = f"begins at offset {first}, the segment before it ends at {before.last_offset}"
        yield Fault(segment.path.name, 0, 0, reason)


def _result(path: Path, segment: Segment, counts: SegmentCounts, count: int) -> str:
    verdict = f"{counted(count, 'fault')}, {counted(counts.bad_bytes, 'bad byte')}" if count else "valid"
    if counts.needs is not None:
        prefix = "" if not count else f"{verdict}; "
        verdict = f"{prefix}the records of {counted(counts.unread, 'batch')} were not read: {counts.needs}"
    records = "" if counts.records is None else f"{counted(counts.records, 'record')}, "
    offsets = (
        "" if counts.first_offset is None else f", offsets {counts.first_offset} to {counts.last_offset}"
    )
    batches, size = counted(counts.batches, "batch"), counted(segment.size, "byte")
    return f"{shown(str(path))}: {verdict} ({batches}, {records}{size}{offsets})"


# --- recover -----------------------------------------------------------------------------------------------


def _recover(options: argparse.Namespace) -> Iterator[tuple[int, str, Form]]:
    """A line a segment."""
    folders = partitions(options.paths)
    for folder, paths in folders:
        out = Path(options.out)
        if len(folders) > 1:
            out = _below(out, folder)
        try:
            for copy, is_whole in _recovered(paths, out, options.index_interval):
                words = (
                    f"{shown(str(copy.log))}: {counted(copy.batches, 'batch')}, {counted(copy.size, 'byte')}"
                )
                if copy.ranges:
                    bad_bytes = f"{counted(copy.bad_bytes, 'byte')} in {counted(copy.ranges, 'range')}"
                    words += f"; {bad_bytes} copied to {copy.log.name}.quarantine"
                yield int(copy.ranges > 0 or not is_whole), words, {
                    "file": str(copy.source), "log": str(copy.log), "batches": copy.batches,
                    "size": copy.size,
                    "quarantined": copy.ranges, "badBytes": copy.bad_bytes,
                    "files": [str(file) for file in copy.files],
                }  # fmt: skip
        except ValueError as error:
            raise Failure(str(error)) from None
        except CoordwireError as error:
            raise Failure(f"{shown(str(folder))}: {error}") from None


def _recovered(paths: list[Path], out: Path, interval: int) -> Iterator[tuple[Recovered, bool]]:
    """What `recover` makes of the logs, decompressed, and whether all of their content was there."""
    with ExitStack() as stack:
        copies: dict[Path, tuple[Path, bool]] = {}
        for path in paths:
            plain = stack.enter_context(plain_file(path))
            copies[plain.path] = path, not plain.fault
            if plain.fault:
                note(f"{shown(str(path))}: {plain.fault}")
        for recovered in recover(list(copies), out, interval=interval, progress=report_position):
            source, is_whole = copies[recovered.source]
            yield replace(recovered, source=source), is_whole


def _below(out: Path, partition: Path) -> Path:
    """The folder for one of several partitions. Raises `Failure` where a link leads out of `out`."""
    folder = out / partition.absolute().name
    if folder.is_symlink():
        raise Failure(f"{shown(str(folder))}: a symbolic link; expected a folder, or nothing")
    return folder


# --- index -------------------------------------------------------------------------------------------------


def _index(options: argparse.Namespace) -> Iterator[tuple[int, str, Form]]:
    """A line a segment: what was written, or, with --check, which files differ."""
    if options.check and (options.out or options.replace):
        raise Failure("segment index: --check writes nothing; it cannot be combined with --out or --replace")
    folders = partitions(options.paths)
    for path in (path for _, paths in folders for path in paths):
        if kafka_07_offset(path.name) is not None:
            reason = "Kafka 0.7 has no indexes: a message's offset is its place in the log"
            raise Failure(f"{shown(str(path))}: {reason}")
        if is_compressed(path):
            raise Failure(
                f"{shown(str(path))}: compressed; an index is of the log itself: decompress it first"
            )
    for folder, paths in folders:
        out = folder if options.out is None else Path(options.out)
        if options.out is not None and len(folders) > 1:
            out = _below(out, folder)
        if not options.check:
            remove_stale(out)
        before: Indexes | None = None
        for path in paths:
            with WatchedSegment(path) as segment:
                indexes = before = _rebuilt(segment, before, options.index_interval)
                contents = {
                    log_name(indexes.base_offset, kind): data for kind, data in indexes.files().items()
                }
                if options.snapshots and indexes.end_offset > indexes.base_offset:
                    contents[log_name(indexes.end_offset, "snapshot")] = indexes.snapshot()
                yield (_compared if options.check else _written)(path, out, contents, options.replace)


def _rebuilt(segment: Segment, before: Indexes | None, interval: int) -> Indexes:
    name = shown(str(segment.path))
    if segment.base_offset is None:
        raise Failure(f"{name}: a log's name is its base offset, as in {log_name(0)}")
    if before is not None and before.end_offset == segment.base_offset:
        producers = before.producers
    else:
        producers = producers_before(segment)
    reader = segment.batches()
    try:
        indexes = rebuild(reader, segment.base_offset, interval=interval, producers=producers)
    except CodecUnavailable as error:
        raise Failure(f"{name}: {error}") from None
    except CoordwireError as error:
        raise Failure(f"{name}: {error}; recover it first") from None
    if len(reader.remainder):
        raise Failure(
            f"{name}: it ends {counted(len(reader.remainder), 'byte')} into a batch; recover it first"
        )
    return indexes


def _compared(path: Path, out: Path, contents: dict[str, bytes], _: bool) -> tuple[int, str, Form]:
    differs = [name for name, data in contents.items() if _bytes(out / name) != data]
    stale = out / f"{path.stem}.txnindex"
    if stale.name not in contents and _bytes(stale):
        differs.append(stale.name)
    words = f"{shown(str(path))}: " + (
        f"differs: {', '.join(differs)}" if differs else "its indexes are correct"
    )
    return int(bool(differs)), words, {"file": str(path), "differs": differs}


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None


def _written(path: Path, out: Path, contents: dict[str, bytes], replace: bool) -> tuple[int, str, Form]:
    existing = [name for name in contents if os.path.lexists(out / name)]
    if existing and not replace:
        raise Failure(f"{shown(str(out / existing[0]))}: already exists; --replace replaces it")
    with Staged(out) as files:
        for name, data in contents.items():
            with files.new(name) as file:
                file.write(data)
        written = files.commit(replace=replace)
    sizes = ", ".join(f"{file.name} ({counted(len(contents[file.name]), 'byte')})" for file in written)
    words = f"{shown(str(path))}: {sizes}"
    return 0, words, {"file": str(path), "files": [str(file) for file in written]}
