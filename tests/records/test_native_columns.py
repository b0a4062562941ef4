"""The Arrow kernel by itself, where memory ends with the bytes given to it: no pyarrow is asked."""

from __future__ import annotations

import subprocess
import sys
from itertools import product

import pytest

from coordwire.records import Record, backend, encode_batch
from fuzz._columns import EVERYTHING, KEY, VALUE
from fuzz.columns_native import LATEST, PATTERN, check, filled
from fuzz.records import sealed

if backend.columns is None:
    pytest.skip("no native extension", allow_module_level=True)


@pytest.fixture(autouse=True, scope="module")
def half() -> str:
    """Only the native half is looked at here."""
    return "c"


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("sizes", [range(150), range(150, 300)])
def test_whatever_is_copied_ends_where_memory_does(sizes: range, view: bool) -> None:
    """Copies are made in steps larger than what they copy: what follows it may be any size too."""
    for size in sizes:
        for number in range(100):
            key, value = PATTERN[:size], PATTERN[7 : 7 + number]
            data = encode_batch([Record(key=key, value=value)])
            assert filled(data, KEY | VALUE, 1 << 20, view) == ([(key, value)], len(data))


def test_lengths_that_lead_beyond_the_end() -> None:
    """Each byte of a last record as anything that a length may be."""
    for record in (Record(key=b"k", value=b"v"), Record(), Record(key=PATTERN[:70], headers=(("h", b"x"),))):
        batch = encode_batch([Record(value=b"before"), record])
        for at in range(61, len(batch)):
            for byte in (0, 1, 2, 16, 30, 32, 34, 64, 126, 127, 128, 130, 254, 255):
                data = sealed(batch[:at] + bytes([byte]) + batch[at + 1 :])
                check(data, EVERYTHING, 1 << 20, False)


def test_a_last_record_that_breaks_off() -> None:
    before = Record(value=b"before")
    batch, single = encode_batch([before, Record()]), encode_batch([before])
    key = bytes([0, 0, 0, 2 * 20]) + PATTERN[:20]
    for length in range(1, 5):
        for tail in map(bytes, product((0, 2, 15, 128, 255), repeat=length)):
            for record in (tail, bytes([2 * (len(key) + length)]) + key + tail):
                check(sealed(batch[: len(single)] + record), EVERYTHING, 1 << 20, False)


@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("wanted", [EVERYTHING, EVERYTHING & ~2, EVERYTHING & ~4, KEY])
def test_batches_with_the_time_of_their_appending(wanted: int, view: bool) -> None:
    """Enough plain records for the quick way; some without key or value, some whose varints are odd."""
    rows = [Record(n, 1000 + n, b"k%d" % n if n % 7 else None, b"v" if n % 5 else None) for n in range(600)]
    for stamp in (1 << 41, 0, -1, LATEST, LATEST + 1):
        batch = bytearray(encode_batch(rows))
        batch[22] |= 8  # the broker's time, which is the batch's latest
        batch[35:43] = stamp.to_bytes(8, signed=True)
        data = sealed(bytes(batch))
        check(data, wanted, 1 << 20, view)
        check(data + data, wanted, 9000, view)
    for odd in range(61, 61 + 400):
        for byte in (1, 3, 5, 129):
            changed = encode_batch(rows[:60])
            check(sealed(changed[:odd] + bytes([byte]) + changed[odd + 1 :]), wanted, 1 << 20, view)


LARGE_AMONG_SMALL = """
import resource
from coordwire.records import Record, backend, encode_batch
small = [Record(offset=n, value=b"x" * 100) for n in range(260)]
data = encode_batch([*small, Record(offset=260, value=bytes(16 << 20))]) + bytes(64 << 20)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (200 << 20), resource.RLIM_INFINITY))
columns = backend.columns(32, 64 << 20, False, False)
columns.run(data, 0, None, 0)
assert columns.rows == 261
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc to tell the memory in use")
def test_one_large_value_doesnt_make_all_to_come_seem_as_large() -> None:
    subprocess.run([sys.executable, "-c", LARGE_AMONG_SMALL], check=True)


MORE_FORESEEN_THAN_THERE_IS = """
import mmap, resource
from coordwire.records import Record, backend, encode_batch
batch = encode_batch([Record(offset=n, value=b"x" * 100) for n in range(3000)])
data = mmap.mmap(-1, 600 << 20)
data[: len(batch)] = batch
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (60 << 20), resource.RLIM_INFINITY))
columns = backend.columns(127, 1 << 30, False, False)
columns.run(data, 0, None, 0)
assert columns.rows == 3000
"""


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc to tell the memory in use")
def test_without_memory_for_what_is_foreseen_what_is_needed_is_taken() -> None:
    subprocess.run([sys.executable, "-c", MORE_FORESEEN_THAN_THERE_IS], check=True)
