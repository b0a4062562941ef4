"""Which format an input has, by its first bytes.

Strategy: magic numbers first; then text, which none of the rest can be (a frame that began with "0000"
would be 800 MB long); then the two formats without a magic, by whether their first headers could be true.

Rules: from the bytes alone, never from a name; None rather than a guess. The more of the head there is, up to
64 KB, the surer the answer: frames must follow one another to its end.
"""

from __future__ import annotations

import struct
from typing import Literal

from coordwire.capture.formats.pcap import MAGICS
from coordwire.capture.formats.pcapng import SECTION
from coordwire.limits import current

#: What an input can be; "empty" is not a format, but no error of the user's either.
InputFormat = Literal["pcap", "pcapng", "hex", "frames", "segment", "empty"]
HEAD = 64 << 10  # how much of the input is worth showing

BATCH = 61  # bytes of a v2 batch up to its records
KEYS = 256  # api keys end below 100 today
VERSIONS = 64
CLIENT_ID = 1024
_SIZE = struct.Struct(">i").unpack_from
_REQUEST = struct.Struct(">hhih").unpack_from
_BATCH = struct.Struct(">qiiBIhiqqqhii").unpack_from
_OLD = struct.Struct(">qiIBB").unpack_from


def sniff(head: bytes) -> InputFormat | None:
    """The format of an input that begins with `head` (64 KB are enough); None if no known one."""
    if not head:
        return "empty"
    if is_capture(head):
        return "pcapng" if head[:4] == SECTION else "pcap"
    from coordwire.capture.formats.hexdump import looks_like_hexdump  # which a capture does without

    if looks_like_hexdump(head):
        return "hex"
    frame_count = _whole_frames(head)
    if frame_count > 0:
        return "frames"
    if _is_batch(head):
        return "segment"
    if frame_count == 0:
        return "frames"
    return "segment" if _is_old_message(head) else None


def is_capture(head: bytes | bytearray) -> bool:
    """Whether this is the beginning of a pcap or pcapng, by its first 4 bytes."""
    magic = bytes(head[:4])
    return magic in MAGICS or magic == SECTION


def _is_batch(head: bytes) -> bool:
    """Whether a v2 record batch may begin here."""
    if len(head) < BATCH or head[16] != 2:
        return False
    offset, length, _, _, _, flags, last, first_ms, _, producer, epoch, sequence, count = _BATCH(head)
    is_sound: bool = min(first_ms, producer, epoch, sequence) >= -1 and 0 <= count <= last + 1
    return is_sound and offset >= 0 and length >= BATCH - 12 and not flags & 0xFF80


def _is_old_message(head: bytes) -> bool:
    """Whether a message of magic 0 or 1 may begin here: its key and value have to fill it."""
    if len(head) < 26:
        return False
    offset, length, _, magic, attributes = _OLD(head)
    if offset < 0 or magic > 1 or attributes & 0xF0:
        return False
    at = 18 + 8 * magic
    for _ in range(2):  # key and value
        if at + 4 > len(head):
            break
        size = _SIZE(head, at)[0]
        if size < -1:
            return False
        at += 4 + max(size, 0)
    is_exact: bool = at == 12 + length
    return is_exact if at <= len(head) else bool(at <= 12 + length <= current().frame)


def _whole_frames(head: bytes) -> int:
    """How many whole frames follow one another up to the head's end; -1 if anything else does."""
    most = current().frame
    at = count = 0
    while at + 4 <= len(head):
        size = _SIZE(head, at)[0]
        if not 4 <= size <= most:
            return -1
        at += 4 + size
        count += at <= len(head)
    # A request has a header to judge by. A response has its correlation id alone: it must be whole, at least.
    return count if _is_request(head) or (count and _SIZE(head, 4)[0] >= 0) else -1


def _is_request(head: bytes) -> bool:
    if len(head) < 14:
        return False
    size = _SIZE(head)[0]
    key, version, _, client = _REQUEST(head, 4)
    is_sound: bool = 0 <= key < KEYS and 0 <= version < VERSIONS and -1 <= client <= min(CLIENT_ID, size - 10)
    return is_sound and b"\0" not in head[14 : 14 + max(client, 0)]
