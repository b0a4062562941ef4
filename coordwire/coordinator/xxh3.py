"""XXH3, 64 bits, without a seed: the hash by which a coordinator notices that topics changed (KIP-1101).

Strategy: as specified: short inputs by length, long ones in stripes of 64 bytes over eight accumulators.
Only the metadata hash needs it, a few hundred bytes at a time, so plain integers are fast enough.
"""

from __future__ import annotations

import struct

_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_32_1, _32_2, _32_3 = 0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D
_64_1, _64_2, _64_3 = 0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9
_64_4, _64_5 = 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5
_MASK = (1 << 64) - 1
_LOW = (1 << 32) - 1
_STRIPE = 64
_STRIPES_IN_BLOCK = 16
_BLOCK = _STRIPE * _STRIPES_IN_BLOCK


def xxh3_64(data: bytes) -> int:
    """The hash of these bytes, unsigned."""
    size = len(data)
    if size <= 16:
        return _tiny(data, size)
    if size <= 128:
        return _short(data, size)
    if size <= 240:
        return _medium(data, size)
    return _long(data, size)


def _u32(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 4], "little")


def _u64(data: bytes, at: int) -> int:
    return int.from_bytes(data[at : at + 8], "little")


def _folded(first: int, second: int) -> int:
    product = first * second
    return (product & _MASK) ^ (product >> 64)


def _avalanche(value: int) -> int:
    value ^= value >> 37
    value = value * 0x165667919E3779F9 & _MASK
    return value ^ value >> 32


def _old_avalanche(value: int) -> int:
    value ^= value >> 33
    value = value * _64_2 & _MASK
    value ^= value >> 29
    value = value * _64_3 & _MASK
    return value ^ value >> 32


def _tiny(data: bytes, size: int) -> int:
    if size > 8:
        low = _u64(data, 0) ^ _u64(_SECRET, 24) ^ _u64(_SECRET, 32)
        high = _u64(data, size - 8) ^ _u64(_SECRET, 40) ^ _u64(_SECRET, 48)
        swapped = int.from_bytes(low.to_bytes(8, "little"), "big")
        return _avalanche(size + swapped + high + _folded(low, high) & _MASK)
    if size >= 4:
        value = (_u32(data, size - 4) + (_u32(data, 0) << 32)) ^ _u64(_SECRET, 8) ^ _u64(_SECRET, 16)
        value ^= (value << 49 | value >> 15) & _MASK ^ (value << 24 | value >> 40) & _MASK
        value = value * 0x9FB21C651E98DF25 & _MASK
        value ^= (value >> 35) + size
        value = value * 0x9FB21C651E98DF25 & _MASK
        return value ^ value >> 28
    if size:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[size - 1] | size << 8
        return _old_avalanche(combined ^ _u32(_SECRET, 0) ^ _u32(_SECRET, 4))
    return _old_avalanche(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _mixed(data: bytes, at: int, secret: int) -> int:
    return _folded(_u64(data, at) ^ _u64(_SECRET, secret), _u64(data, at + 8) ^ _u64(_SECRET, secret + 8))


def _short(data: bytes, size: int) -> int:
    total = size * _64_1
    for step in reversed(range((size - 1) // 32 + 1)):
        total += _mixed(data, 16 * step, 32 * step)
        total += _mixed(data, size - 16 * (step + 1), 32 * step + 16)
    return _avalanche(total & _MASK)


def _medium(data: bytes, size: int) -> int:
    total = size * _64_1 + sum(_mixed(data, 16 * step, 16 * step) for step in range(8))
    total = _avalanche(total & _MASK)
    total += sum(_mixed(data, 16 * step, 16 * (step - 8) + 3) for step in range(8, size // 16))
    total += _mixed(data, size - 16, 136 - 17)
    return _avalanche(total & _MASK)


def _long(data: bytes, size: int) -> int:
    lanes = [_32_3, _64_1, _64_2, _64_3, _64_4, _32_2, _64_5, _32_1]
    blocks = (size - 1) // _BLOCK
    for block in range(blocks):
        for stripe in range(_STRIPES_IN_BLOCK):
            _accumulate(lanes, data, block * _BLOCK + stripe * _STRIPE, 8 * stripe)
        for lane, secret in enumerate(struct.unpack_from("<8Q", _SECRET, len(_SECRET) - 64)):
            value = lanes[lane]
            lanes[lane] = (value ^ value >> 47 ^ secret) * _32_1 & _MASK
    start = blocks * _BLOCK
    for stripe in range((size - 1 - start) // _STRIPE):
        _accumulate(lanes, data, start + stripe * _STRIPE, 8 * stripe)
    _accumulate(lanes, data, size - _STRIPE, len(_SECRET) - 64 - 7)
    total = size * _64_1
    for pair in range(4):
        first, second = struct.unpack_from("<2Q", _SECRET, 11 + 16 * pair)
        total += _folded(lanes[2 * pair] ^ first, lanes[2 * pair + 1] ^ second)
    return _avalanche(total & _MASK)


def _accumulate(lanes: list[int], data: bytes, at: int, secret: int) -> None:
    words = struct.unpack_from("<8Q", data, at)
    for lane, key in enumerate(struct.unpack_from("<8Q", _SECRET, secret)):
        keyed = words[lane] ^ key
        lanes[lane ^ 1] += words[lane]
        lanes[lane] += (keyed & _LOW) * (keyed >> 32)
    lanes[:] = [lane & _MASK for lane in lanes]
