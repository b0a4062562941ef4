"""The protocol of a connection that isn't Kafka's, by its first bytes.

Rules: only what a reader of a Kafka capture may meet on a broker's port is recognised, TLS above all, which
hides Kafka from all readers without the keys. In the middle of a connection TLS is found by two records that
follow one another; the places that are tried are bounded.
"""

from __future__ import annotations

__all__ = ["TLS", "find_protocol", "is_tls"]

import re
from collections.abc import Iterable

TLS = "TLS"
MOST_TRIED = 256
"""Places in the middle of a connection where a TLS record may begin."""

_RECORD = 5
_MOST_RECORD = (1 << 14) + 2048
_RECORDS = re.compile(rb"[\x14-\x18]\x03[\x00-\x04]", re.DOTALL)
_WORDS = b"conf|cons|crst|dirs|dump|envi|gtmk|hash|isro|mntr|ruok|srst|srvr|stat|wchc|wchp|wchs"
_FIRST = (
    ("HTTP", re.compile(rb"(?:GET|POST|PUT|HEAD|DELETE|CONNECT) [^\r\n]|HTTP/1\.[01] |PRI \* HTTP/2")),
    ("SSH", re.compile(rb"SSH-[12]\.")),
    ("Redis", re.compile(rb"\*[0-9]+\r\n\$[0-9]+\r\n")),
    ("ZooKeeper's four-letter words", re.compile(rb"(?:%s)$" % _WORDS)),
    ("SMTP or FTP", re.compile(rb"220[ -]")),
)  # fmt: skip


def find_protocol(directions: Iterable[bytes | bytearray]) -> str | None:
    """The protocol of a connection by the first bytes that were seen of each direction; None if unknown."""
    for data in directions:
        if is_tls(data):
            return TLS
        for name, pattern in _FIRST:
            if pattern.match(data):
                return name
    return None


def is_tls(data: bytes | bytearray) -> bool:
    """Whether TLS records are in the bytes: one at their start, or two in a row."""
    if _length(data, 0) > 0:
        return True
    for count, record in enumerate(_RECORDS.finditer(data)):
        if count >= MOST_TRIED:
            break
        length = _length(data, record.start())
        if length > 0 and _length(data, record.start() + _RECORD + length) > 0:
            return True
    return False


def _length(data: bytes | bytearray, at: int) -> int:
    """The length of the TLS record that begins at `at`; 0 if none can."""
    if len(data) < at + _RECORD or not _RECORDS.match(data, at):
        return 0
    length = int.from_bytes(data[at + 3 : at + _RECORD], "big")
    return length if 0 < length <= _MOST_RECORD else 0
