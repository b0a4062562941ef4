"""The checksum in the header of an LZ4 frame, which Kafka got wrong up to 0.9.

Kafka's old producers hashed the frame's magic number too, and brokers and clients still write and accept that
in message sets of magic 0 (KAFKA-3160). Libraries refuse it, so that it is put right before they read.
"""

from __future__ import annotations

__all__ = ["MAGIC", "break_checksum", "mend_checksum"]

MAGIC = b"\x04\x22\x4d\x18"
_MASK = (1 << 32) - 1
_PRIME2, _PRIME3, _PRIME4, _PRIME5 = 2246822519, 3266489917, 668265263, 374761393
_PRIME1 = 2654435761


def _rotate(value: int, bits: int) -> int:
    return (value << bits | value >> (32 - bits)) & _MASK


def xxh32(data: bytes) -> int:
    """XXH32 with seed 0 of fewer than 16 bytes."""
    value = _PRIME5 + len(data)
    whole = len(data) & ~3
    for pos in range(0, whole, 4):
        word = int.from_bytes(data[pos : pos + 4], "little")
        value = _rotate((value + word * _PRIME3) & _MASK, 17) * _PRIME4 & _MASK
    for byte in data[whole:]:
        value = _rotate((value + byte * _PRIME5) & _MASK, 11) * _PRIME1 & _MASK
    value = (value ^ value >> 15) * _PRIME2 & _MASK
    value = (value ^ value >> 13) * _PRIME3 & _MASK
    return value ^ value >> 16


def _end(data: bytes) -> int | None:
    """The position of the header's checksum; None if this is not a frame with room for one."""
    if not data.startswith(MAGIC) or len(data) < 7:
        return None
    flags = data[4]
    end = 6 + (8 if flags & 8 else 0) + (4 if flags & 1 else 0)
    return end if end < len(data) and end < 16 else None


def mend_checksum(data: bytes) -> bytes:
    """The frame with the checksum that libraries want, whatever it was."""
    end = _end(data)
    if end is None:
        return data
    return data[:end] + bytes([xxh32(data[4:end]) >> 8 & 255]) + data[end + 1 :]


def break_checksum(data: bytes) -> bytes:
    """The frame with the checksum that Kafka 0.8 wrote."""
    end = _end(data)
    if end is None:
        return data
    return data[:end] + bytes([xxh32(data[:end]) >> 8 & 255]) + data[end + 1 :]
