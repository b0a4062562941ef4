"""Arrays and batches of a million elements and messages of up to a gigabyte through the engine, by steps:
`python -m fuzz.hardening.large [--elements N] [--bytes N]`.

Strategy: each case is run in a process of its own, at a quarter of its size, at half and whole: encoded,
decoded within raised budgets, compared, and decoded from half of its bytes, which is refused. Rules: time
and memory are shown, not judged, since they are the machine's; values, lengths and refusals are. A frame
beyond what its size prefix can hold is refused.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable

from coordwire import decode_request, encode_request, limits
from coordwire.codec import Message
from coordwire.errors import DecodeError, EncodeError, LimitExceeded
from coordwire.limits import MAX_ARRAY_ELEMENTS
from coordwire.messages import DescribeGroupsRequest, LeaveGroupRequest, MetadataResponse, ProduceRequest
from coordwire.messages.leave_group import MemberIdentity
from coordwire.messages.metadata import MetadataResponsePartition, MetadataResponseTopic
from coordwire.messages.produce import PartitionProduceData, TopicProduceData
from coordwire.records import Record, backend, batches, encode_batch
from fuzz._columns import EVERYTHING

UNBOUNDED = 1 << 62
"""A budget that no size reaches."""

LONGEST = 32767
"""Characters of a string, at most."""


def exchanged(message: Message, version: int) -> int:
    """The bytes of a message that is encoded, decoded and refused when it is cut."""
    wire = message.encode(version=version)
    cls = type(message)
    with limits(elements=UNBOUNDED, memory=UNBOUNDED, frame=(1 << 31) - 1):
        assert cls.decode(wire, version=version) == message
        try:
            cls.decode(memoryview(wire)[: len(wire) // 2], version=version)
        except DecodeError as error:
            assert error.position <= len(wire) // 2
        else:
            raise AssertionError("half of a message is decoded")
    return len(wire)


def numbers(size: int) -> int:
    """An array of int32."""
    partition = MetadataResponsePartition(isr_nodes=list(range(size)))
    return exchanged(MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=[partition])]), 12)


def structs(size: int) -> int:
    """An array of structs; as many as allowed are decoded, and one more is refused."""
    message = LeaveGroupRequest(group_id="g", members=[MemberIdentity(member_id="m")] * size)
    wire = message.encode(version=4)
    with limits(elements=size - 1, memory=UNBOUNDED):
        try:
            LeaveGroupRequest.decode(wire, version=4)
        except LimitExceeded as error:
            assert error.path
        else:
            raise AssertionError("elements beyond the budget are decoded")
    return exchanged(message, 4)


def opaque(size: int) -> int:
    """One field of bytes, as a frame: what Produce has."""
    partition = PartitionProduceData(index=0, records=bytes(size))
    message = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    raw = encode_request(message, version=9, correlation_id=7)
    with limits(frame=UNBOUNDED):
        decoded = decode_request(raw).message
    assert decoded == message
    return len(raw)


def texts(size: int) -> int:
    """Strings of the greatest length that there is."""
    return exchanged(DescribeGroupsRequest(groups=["g" * LONGEST] * (size // LONGEST)), 5)


def too_long(size: int) -> int:
    """Fields that together are beyond int32: the frame is refused. size: of each of them."""
    part = PartitionProduceData(index=0, records=bytes(size))
    count = (1 << 31) // size + 1
    message = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[part] * count)])
    try:
        encode_request(message, version=9, correlation_id=7)
    except EncodeError as error:
        assert error.reason
    else:
        raise AssertionError("a frame beyond int32 is written")
    return size * count


def records(size: int) -> int:
    """One batch of many records, read one by one and as columns, copied and as views."""
    whole = encode_batch([Record(-1, 1000, b"k", b"value")] * size)
    count = sum(1 for batch in batches(whole) for _ in batch)
    assert count == size
    for view in (False, True) if backend.columns is not None else ():
        assert columns(whole, view) == size
    return len(whole)


def values(size: int) -> int:
    """One record whose value is almost a whole batch: as a record, and as a column, copied and as a view."""
    value = bytes(size)
    whole = encode_batch([Record(-1, 1000, None, value)])
    (batch,) = batches(whole)
    assert [record.value for record in batch] == [value]
    for view in (False, True) if backend.columns is not None else ():
        assert columns(whole, view) == 1
    return len(whole)


def columns(data: bytes, view: bool) -> int:
    """The rows that the kernel finds in the tables of a source."""
    assert backend.columns is not None
    kernel = backend.columns(EVERYTHING, 1 << 62, view, True)
    full, position, rows = True, 0, 0
    while full:
        full, position = kernel.run(data, position, None, 0)
        rows += kernel.take()[0]
    assert position == len(data)
    return rows


ELEMENTS: dict[str, Callable[[int], int]] = {case.__name__: case for case in (numbers, structs, records)}
BYTES: dict[str, Callable[[int], int]] = {case.__name__: case for case in (opaque, texts, too_long, values)}
CASES = ELEMENTS | BYTES
"""What is large, by its name: the first by a number of elements, the others by bytes."""


def run(name: str, size: int) -> None:
    """One case in this process, and its figures."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.process_time()
    length = CASES[name](size)
    seconds = time.process_time() - start
    peak = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{name:10} {size:>13,} {length:>13,} bytes {seconds:8.2f} s {peak:9,.0f} MB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.hardening.large", description=__doc__)
    parser.add_argument(
        "--elements", type=int, default=MAX_ARRAY_ELEMENTS, help="of the largest array (%(default)s)"
    )
    parser.add_argument("--bytes", type=int, default=1 << 30, help="of the largest field (%(default)s)")
    parser.add_argument("--case", choices=CASES, help="run one, at its whole size, in this process")
    options = parser.parse_args()
    sizes = dict.fromkeys(ELEMENTS, options.elements) | dict.fromkeys(BYTES, options.bytes)
    if options.case:
        run(options.case, sizes[options.case])
        return
    for name, size in sizes.items():
        for part in (size // 4, size // 2, size):
            command = ["-m", "fuzz.hardening.large", "--case", name, f"--elements={part}", f"--bytes={part}"]
            subprocess.run([sys.executable, *command], check=True)


if __name__ == "__main__":
    main()
