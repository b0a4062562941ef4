"""The objects that the native engine makes: collected, freed, copied; and memory that runs out."""

from __future__ import annotations

import gc
import pickle
import subprocess
import sys
import weakref
from typing import Any, cast
from uuid import UUID

import pytest

from coordwire import CoordwireError
from coordwire._speedups import native
from coordwire.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from coordwire.messages.join_group import JoinGroupRequestProtocol
from coordwire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.bench.cases import cases
from tests.codec.test_native import REQUEST, WIRE, program, python_decode

pytestmark = pytest.mark.skipif(native is None, reason="the native engine isn't built, or Python is forced")


def test_messages_are_known_to_the_collector_and_it_goes_on() -> None:
    assert gc.is_tracked(HeartbeatRequest.decode(WIRE, version=4))
    assert gc.isenabled()
    with pytest.raises(CoordwireError):
        HeartbeatRequest.decode(WIRE[:-1], version=4)
    assert gc.isenabled()
    gc.disable()
    try:
        HeartbeatRequest.decode(WIRE, version=4)
        assert not gc.isenabled()
    finally:
        gc.enable()


def test_a_collection_meanwhile_sees_nothing_half_filled() -> None:
    case = cases()[-1]
    cls = type(case.message)
    seen: list[Any] = []

    def look(phase: str, info: object) -> None:
        seen.append(
            [instance for instance in gc.get_objects() if type(instance) is MetadataResponsePartition]
        )

    held = [cls.decode(case.wire, version=case.version) for _ in range(5)]  # no freed object waits any more
    gc.freeze()  # `look` then sees only what is made from here on
    before = sum(type(instance) is MetadataResponsePartition for instance in gc.get_objects())
    thresholds = gc.get_threshold()
    gc.callbacks.append(look)
    try:
        gc.set_threshold(20)  # so that there is one, whatever was made before
        message = cls.decode(case.wire, version=case.version)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(look)
        after = sum(type(instance) is MetadataResponsePartition for instance in gc.get_objects())
        gc.unfreeze()
    assert seen
    # Since 3.12 a collection waits until the interpreter has the call after it.
    whole = before if sys.version_info < (3, 12) else before + 600
    assert all(len(partitions) in (before, whole) for partitions in seen)
    assert after == before + 600
    assert message == case.message
    assert held == [case.message] * 5


def test_a_cycle_through_a_message_is_collected() -> None:
    class Seen:
        pass

    seen = Seen()
    ref = weakref.ref(seen)
    message = cast(Any, MetadataRequest.decode(MetadataRequest().encode(version=12), version=12))
    message.topics = [message, seen]
    del message, seen
    gc.collect()
    assert ref() is None


def test_a_long_chain_of_messages_is_freed() -> None:
    head: Any = None
    for _ in range(300_000):
        link = HeartbeatRequest.decode(WIRE, version=4)
        link.tags = head
        head = link
    del head, link


def test_a_finalizer_is_called() -> None:
    seen: list[Any] = []

    class Last(HeartbeatRequest):
        __slots__ = ()

        def __del__(self) -> None:
            seen.append(self.group_id)

    del Last
    gc.collect()
    HeartbeatResponse.__del__ = lambda self: seen.append(self.error_code)  # type: ignore[attr-defined]
    try:
        HeartbeatResponse.decode(b"\0\x1b", version=0)
    finally:
        del HeartbeatResponse.__del__  # type: ignore[attr-defined]
    assert seen == [27]


def test_a_class_of_a_moment_is_collected() -> None:
    class Moment(HeartbeatRequest):
        __slots__ = ()

    Moment.decode(WIRE, version=4).encode(version=4)
    ref = weakref.ref(Moment)
    del Moment
    gc.collect()
    assert ref() is None


def test_what_comes_again_is_shared_and_equal() -> None:
    names = ["ab", "abc", "orders", "orders-1", "orders-12345678", "x" * 16, "x" * 96, "x" * 97, "é" * 9]
    rows = [
        MetadataResponseTopic(name=name, topic_id=UUID(int=number), topic_authorized_operations=number)
        for number in (300, 1 << 30)
        for name in names
    ]
    many = MetadataResponse(topics=rows * 4)
    results = [MetadataResponse.decode(many.encode(version=12), version=12) for _ in range(3)]
    assert results == [many] * 3
    for name, topic, again in zip(names, results[2].topics, results[2].topics[18:], strict=False):
        assert (again.name is topic.name) == (name.isascii() and len(name) <= 96)
        assert again.topic_id is topic.topic_id
        assert again.topic_authorized_operations is topic.topic_authorized_operations


def test_texts_that_differ_in_one_place_are_told_apart() -> None:
    for size in range(1, 100):
        texts = ["a" * place + "b" + "a" * (size - place - 1) for place in range(size)]
        many = MetadataResponse(topics=[MetadataResponseTopic(name=text) for text in texts for _ in range(3)])
        for _ in range(2):
            assert MetadataResponse.decode(many.encode(version=12), version=12) == many


def test_a_uuid_that_somebody_forced_is_not_shared() -> None:
    many = MetadataResponse(topics=[MetadataResponseTopic(topic_id=UUID(int=77)) for _ in range(9)])
    wire = many.encode(version=12)
    broken = MetadataResponse.decode(wire, version=12).topics[-1].topic_id
    ref = weakref.ref(broken)
    object.__setattr__(broken, "int", 5)
    assert MetadataResponse.decode(wire, version=12) == many
    del broken
    for number in range(2000):  # others take its place
        topic = MetadataResponseTopic(topic_id=UUID(int=number << 32))
        MetadataResponse.decode(MetadataResponse(topics=[topic] * 3).encode(version=12), version=12)
    assert ref() is None


def test_lists_that_are_freed_with_their_object() -> None:
    case = cases()[-1]
    cls: Any = type(case.message)
    for _ in range(3):
        message = cls.decode(case.wire, version=12)
        taken = [topic.partitions for topic in message.topics]
        for partitions in taken:
            partitions.append(partitions)
            partitions[0].isr_nodes.extend(range(1000))
            partitions[1].isr_nodes.clear()
            partitions[2].offline_replicas.append(partitions[2])
        del message, partitions
        assert all(partitions[-1] is partitions and partitions[0].leader_epoch == 7 for partitions in taken)
        del taken
        gc.collect()
        assert cls.decode(case.wire, version=12) == case.message


def test_pickles_and_copies_are_of_the_same_class() -> None:
    message = HeartbeatRequest.decode(WIRE, version=4)
    assert pickle.loads(pickle.dumps(message)) == REQUEST
    assert pickle.dumps(message) == pickle.dumps(python_decode(HeartbeatRequest, WIRE, version=4))


def test_no_reference_is_lost_or_kept() -> None:
    held: list[Any] = [None, True, 0, 1, 3, b"", "", UUID, HeartbeatRequest, JoinGroupRequestProtocol]
    work = [(type(case.message), case.version, case.wire[:400]) for case in cases()]

    def once() -> None:
        for cls, version, wire in work:
            run = program(cls, version)
            for cut in range(0, len(wire), 3):
                assert run.decode(wire[:cut], 0, 10**6, 10**7) is None
            run.decode(wire, 0, 3, 10**7)
            run.decode(wire, 0, 10**6, 10)
        for case in cases():
            message: Any = type(case.message).decode(case.wire, version=case.version)
            assert message.encode(version=case.version) == case.wire
            message.tags = {5: "wrong"}
            assert program(type(message), case.version).encode(message) is None

    once()
    gc.collect()
    before = [sys.getrefcount(one) for one in held]
    for _ in range(20):
        once()
    gc.collect()
    after = [sys.getrefcount(one) for one in held]
    assert all(abs(b - a) < 20 for a, b in zip(before, after, strict=True)), (before, after)


def test_memory_may_run_out_anywhere() -> None:
    script = """
import _testcapi
from coordwire.codec.program import message_program
from tests.bench.cases import cases
from tests.codec.test_native import REQUEST, WIRE, program, python_decode

for case in (*cases()[:2], cases()[-1]):
    run, message = message_program(type(case.message), case.version), case.message
    decode, encode, stop = run.decode, run.encode, _testcapi.remove_mem_hooks
    message.tags = {n: b"unknown" for n in range(100, 105)}
    wire = encode(message)
    failed, held = 0, []  # held: so that no freed object can be taken instead of new memory
    for turn in range(250):
        found = made = None
        try:
            _testcapi.set_nomemory(turn, turn + 1)  # the interpreter may be the first that lacks it
            found = decode(wire, 0, 10**6, 10**7)
            made = encode(message)
        except MemoryError:
            failed += 1
        stop()
        held.append(found)
        failed += found is None or made is None
    assert failed > 3, failed
    assert decode(wire, 0, 10**6, 10**7)[1] == len(wire)
    assert encode(message) is not None
print("whole")
"""
    pytest.importorskip("_testcapi")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout == "whole\n", result.stderr


def test_another_interpreter_of_the_process_may_load_it() -> None:
    script = """
import sys
import _testcapi
from coordwire.messages.heartbeat import HeartbeatRequest

wire = HeartbeatRequest(group_id="g").encode(version=4)
code = '''
import sys
sys.path[:] = %r
from coordwire.messages.heartbeat import HeartbeatRequest
found = [HeartbeatRequest.decode(%r, version=4) for _ in range(1000)]
assert found[0].encode(version=4) == %r
from coordwire.records import Record, batches, encode_batch
(batch,) = batches(encode_batch([Record(value=b"v")] * 1000))
assert [record.value for record in batch] == [b"v"] * 1000
''' % (sys.path, wire, wire)
for _ in range(3):
    assert _testcapi.run_in_subinterp(code) == 0
    assert [HeartbeatRequest.decode(wire, version=4) for _ in range(1000)][0].group_id == "g"
print("whole")
"""
    pytest.importorskip("_testcapi")
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.stdout == "whole\n", result.stderr
