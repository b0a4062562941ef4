"""What can be wrong with the bytes of a message: kinds of flaws, and the bytes that have them.

Strategy: the marks of a valid message name each length, count and value; each is replaced by what an
untrusted peer may write there. Rules: bytes before the flaw stay as they are; a kind is one word for
implementers, with its effect in a reader that doesn't check, and public reports of readers that did not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import Mark, Reader


class Flaw(NamedTuple):
    """A kind. effect: what a reader that does not check does; reports: where that was public."""

    text: str
    effect: str
    reports: tuple[str, ...] = ()


_ARRAYS = (
    "https://github.com/kafka-protocol-rs/kafka-protocol-rs/pull/152",
    "https://github.com/kafka-protocol-rs/kafka-protocol-rs/pull/161",
    "https://github.com/kafka-protocol-rs/kafka-protocol-rs/pull/200",
    "https://github.com/segmentio/kafka-go/issues/1439",
    "https://github.com/apache/kafka/pull/12399",
)
_NULLS = ("https://github.com/confluentinc/librdkafka/issues/5577",)
_TAGS = ("https://github.com/redpanda-data/redpanda/pull/30160",)
_TAG_COUNTS = ("https://github.com/redpanda-data/redpanda/pull/30191",)
_BATCH_COUNTS = (
    "https://github.com/segmentio/kafka-go/issues/1438",
    "https://github.com/kafka-protocol-rs/kafka-protocol-rs/pull/156",
)

FLAWS = {
    "none": Flaw("nothing is wrong", "none"),
    "truncated": Flaw("the bytes end inside a field", "reads past the end"),
    "trailing": Flaw("bytes follow the message", "bytes are left unread"),
    "count-beyond-bytes": Flaw("more elements than bytes that follow", "allocates for them", _ARRAYS),
    "count-greatest": Flaw("2,147,483,647 elements or more", "allocates for them", _ARRAYS),
    "count-negative": Flaw("fewer elements than -1", "allocates, or takes it as null"),
    "count-null": Flaw("-1 elements: null", "a null array where none may be, or a crash", _NULLS),
    "count-overlong": Flaw("a varint in more bytes than it needs", "a second form of one value"),
    "count-overflow": Flaw("a varint beyond 32 bits", "a wrong number"),
    "count-limit": Flaw("more elements than Kafka 4.4 reads, all there", "allocates for them"),
    "length-beyond-bytes": Flaw("a length beyond the bytes that follow", "reads past the end, or allocates"),
    "length-greatest": Flaw("a length of 2,147,483,647 or more", "allocates"),
    "length-negative": Flaw("a length below -1", "allocates, or takes it as null"),
    "length-null": Flaw("length -1: null", "a null where none may be, or a crash"),
    "length-overlong": Flaw("a varint in more bytes than it needs", "a second form of one value"),
    "length-overflow": Flaw("a varint beyond 32 bits", "a wrong number"),
    "text-not-utf8": Flaw("a text that is not UTF-8", "a wrong text, or a crash"),
    "boolean-other": Flaw("a boolean that is neither 0 nor 1", "a wrong value"),
    "marker-other": Flaw("a nullable struct's first byte that is neither 1 nor -1", "a wrong value"),
    "marker-null": Flaw("a nullable struct that is null", "what follows is misread"),
    "tags-beyond-bytes": Flaw("more tagged fields than bytes that follow", "allocates for them", _TAG_COUNTS),
    "tags-greatest": Flaw("2,147,483,647 tagged fields or more", "allocates for them", _TAG_COUNTS),
    "tags-overlong": Flaw("a count of tagged fields in too many bytes", "a second form of one value"),
    "tags-overflow": Flaw("a count of tagged fields beyond 32 bits", "a wrong number"),
    "tags-limit": Flaw("more tagged fields than Kafka 4.4 reads, all there", "allocates for them"),
    "tags-duplicate": Flaw("a tagged field twice", "two values for one field"),
    "tags-unordered": Flaw("tagged fields not in the order of their numbers", "a second form of one value"),
    "tag-number-greatest": Flaw("a tag of 4,294,967,295", "a negative number"),
    "tag-number-overlong": Flaw("a tag's number in too many bytes", "a second form of one value"),
    "tag-size-beyond-bytes": Flaw("a tagged field longer than what follows", "reads past the end", _TAGS),
    "tag-size-greatest": Flaw("a tagged field of 2,147,483,647 bytes or more", "allocates", _TAGS),
    "tag-size-overlong": Flaw("a tagged field's size in too many bytes", "a second form of one value"),
    "tag-size-other": Flaw("a known tagged field of another size than its value", "what follows is misread"),
    "varint-overlong": Flaw("a length, count or tag in too many bytes", "a second form of one value"),
    "varint-overflow": Flaw("a length, count or tag beyond 32 bits", "a wrong number"),
    "varint-greatest": Flaw("a length, count or tag far beyond the bytes that follow", "allocates", _ARRAYS),
    "batch-truncated": Flaw("the bytes end inside a batch", "reads past the end"),
    "batch-length": Flaw("a batch's length is not that of its bytes", "reads past the end, or allocates"),
    "batch-damaged": Flaw("bytes that the checksum does not cover as they are", "takes damaged records"),
    "batch-magic": Flaw("a format that does not exist", "takes bytes for another format"),
    "batch-attributes": Flaw("a codec that does not exist or is not used, unknown bits", "misreads records"),
    "batch-count": Flaw("a count of records that is not theirs", "allocates, or a crash", _BATCH_COUNTS),
    "batch-body": Flaw("more or fewer bytes than the records have", "reads past the end"),
    "record-damaged": Flaw("a length, count or varint inside a record is wrong", "reads past the end"),
    "value-changed": Flaw("a number changed", "none, or what its meaning brings"),
}  # fmt: skip
"""By kind. A limit is Kafka 4.4's own: other readers may accept what is beyond it."""

_INDEX = re.compile(r"\[\d+\]")
_WORD = re.compile("_([a-z])")


def uvarint(value: int, width: int = 0) -> bytes:
    """In at least this many bytes."""
    out = bytearray()
    while value > 127 or len(out) + 1 < width:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def flawed(message: Message, version: int) -> Iterator[tuple[str, str, bytes]]:
    """Kind, address in the message, and bytes: of each flaw that this message can have."""
    cls, wire = type(message), message.encode(version=version)
    marks: list[Mark] = []
    Reader(wire, 0, version, marks=marks).message(cls)
    flexible = version in cls.flexible_versions
    yield "none", "valid", wire
    yield "trailing", "trailing/zero", wire + b"\0"
    yield "trailing", "trailing/many", wire + b"\xff" * 5
    for mark in marks:
        field = _WORD.sub(lambda word: word[1].upper(), _INDEX.sub("", mark.path)) or "top"  # as Kafka's JSON
        end = mark.offset + mark.length
        yield "truncated", f"{field}/truncated-{_part(mark)}", wire[: end - 1]
        for kind, name, data in _replaced(mark, len(wire) - end, flexible):
            yield kind, f"{field}/{name}", _put(wire, mark, data, marks)
        if mark.sort == "tags" and mark.kind != "uvarint":
            yield from _known_tag(mark, field, wire)


def _put(wire: bytes, mark: Mark, data: bytes, marks: list[Mark]) -> bytes:
    """A mark's bytes replaced; the tagged fields that it is in say their new sizes."""
    wire = wire[: mark.offset] + data + wire[mark.offset + mark.length :]
    more = len(data) - mark.length
    for outer in reversed(marks[: marks.index(mark)]):
        if outer.sort == "tags" and outer.kind != "uvarint":
            tag, size = _tag(outer)
            end = outer.offset + outer.length
            if end <= mark.offset < end + size:
                head = uvarint(tag) + uvarint(size + more)
                wire = wire[: outer.offset] + head + wire[end:]
                more += len(head) - outer.length
    return wire


def _tag(mark: Mark) -> tuple[int, int]:
    """The number and the size of a known tagged field."""
    assert isinstance(mark.value, tuple)
    return mark.value[0], mark.value[1]


def _part(mark: Mark) -> str:
    return mark.sort if mark.sort != "tags" or mark.kind == "uvarint" else f"tag-{_tag(mark)[0]}"


def _replaced(mark: Mark, left: int, flexible: bool) -> Iterator[tuple[str, str, bytes]]:
    match mark.sort, mark.kind:
        case "count", _:
            yield from _number("count", mark.length, left, int(str(mark.value)))
        case "length", _:
            yield from _number("length", mark.length, left, int(str(mark.value)))
        case "tags", "uvarint":
            yield from _tags(left, int(str(mark.value)))
        case "value", "string":
            for name, text in [("byte-ff", b"\xff\xfe"), ("overlong", b"\xc0\x80"), ("cut", b"\xe2\x82")]:
                yield "text-not-utf8", f"text-not-utf8-{name}", text
        case "value", "bool":
            yield "boolean-other", "boolean-2", b"\x02"
            yield "boolean-other", "boolean-255", b"\xff"
        case "marker", _:
            yield "marker-other", "marker-2", b"\x02"
            yield "marker-other", "marker-minus-2", b"\xfe"
            yield "marker-null", "marker-null", b"\xff"


def _number(what: str, width: int, left: int, value: int) -> Iterator[tuple[str, str, bytes]]:
    """A length or count of this width; of one byte it is compact: a varint of one more."""
    if width > 1:
        top = (1 << 8 * width - 1) - 1
        for kind, number in [
            ("beyond-bytes", min(left + 1, top)), ("greatest", top), ("null", -1), ("negative", -2),
        ]:  # fmt: skip
            yield f"{what}-{kind}", f"{what}-{kind}", number.to_bytes(width, "big", signed=True)
        yield f"{what}-negative", f"{what}-least", (-top - 1).to_bytes(width, "big", signed=True)
        return
    yield f"{what}-beyond-bytes", f"{what}-beyond-bytes", uvarint(left + 2)
    yield f"{what}-greatest", f"{what}-greatest", uvarint((1 << 31) - 1)
    yield f"{what}-negative", f"{what}-negative", uvarint(1 << 31)
    yield f"{what}-greatest", f"{what}-all-bits", uvarint((1 << 32) - 1)
    yield f"{what}-null", f"{what}-null", uvarint(0)
    yield f"{what}-overlong", f"{what}-overlong-2", uvarint(value + 1, 2)
    yield f"{what}-overlong", f"{what}-overlong-5", uvarint(value + 1, 5)
    yield f"{what}-overflow", f"{what}-overflow-33-bits", uvarint(value + 1 + (1 << 32))
    yield f"{what}-overflow", f"{what}-overflow-6-bytes", uvarint(value + 1, 6)
    yield f"{what}-overflow", f"{what}-overflow-11-bytes", b"\x80" * 10 + b"\x01"


def _tags(left: int, count: int) -> Iterator[tuple[str, str, bytes]]:
    yield "tags-beyond-bytes", "tags-beyond-bytes", uvarint(left + count + 1)
    yield "tags-beyond-bytes", "tags-10001", uvarint(10_001)
    yield "tags-greatest", "tags-greatest", uvarint((1 << 31) - 1)
    yield "tags-greatest", "tags-all-bits", uvarint((1 << 32) - 1)
    yield "tags-overlong", "tags-overlong-2", uvarint(count, 2)
    yield "tags-overflow", "tags-overflow-6-bytes", uvarint(count, 6)
    if count:
        return
    one, other = uvarint(1000) + b"\x01a", uvarint(1001) + b"\x01b"
    yield "none", "tags-unknown", b"\x02" + one + other
    yield "tags-duplicate", "tags-duplicate", b"\x02" + one + one
    yield "tags-unordered", "tags-unordered", b"\x02" + other + one
    yield "tag-number-greatest", "tag-number-greatest", b"\x01" + uvarint((1 << 32) - 1) + b"\x01a"
    yield "tag-number-overlong", "tag-number-overlong", b"\x01" + uvarint(1000, 4) + b"\x01a"
    yield "tag-size-beyond-bytes", "tag-size-beyond-bytes", b"\x01" + uvarint(1000) + uvarint(left + 2) + b"a"
    yield "tag-size-greatest", "tag-size-greatest", b"\x01" + uvarint(1000) + uvarint((1 << 31) - 1) + b"a"
    yield "tag-size-greatest", "tag-size-all-bits", b"\x01" + uvarint(1000) + uvarint((1 << 32) - 1) + b"a"
    yield "tag-size-overlong", "tag-size-overlong", b"\x01" + uvarint(1000) + uvarint(1, 3) + b"a"


def _known_tag(mark: Mark, field: str, wire: bytes) -> Iterator[tuple[str, str, bytes]]:
    """A tagged field of the version: its size changed."""
    tag, size = _tag(mark)
    before, after = wire[: mark.offset], wire[mark.offset + mark.length :]
    name = f"{field}/tag-{tag}"
    for kind, case, wrong in [
        ("tag-size-other", "size-zero", uvarint(0)), ("tag-size-other", "size-less", uvarint(size - 1)),
        ("tag-size-other", "size-more", uvarint(size + 1)),
        ("tag-size-beyond-bytes", "size-beyond-bytes", uvarint(len(after) + 1)),
        ("tag-size-greatest", "size-greatest", uvarint((1 << 31) - 1)),
        ("tag-size-overlong", "size-overlong", uvarint(size, 3)),
    ]:  # fmt: skip
        yield kind, f"{name}-{case}", before + uvarint(tag) + wrong + after
