"""The functions of the native half that read and write records; None where Python does it.

Rules: callers look them up here at each call, so that one process can run either half, as the tests do.
"""

from __future__ import annotations

from collections.abc import Callable
from operator import contains as in_python
from typing import TYPE_CHECKING

from coordwire._speedups import native
from coordwire.records.record import Record

if TYPE_CHECKING:
    from coordwire._speedups import _native

codec: _native.Codec | None = None if native is None else native.Codec(Record)
"""Reads and writes instances of `Record`."""

columns: type[_native.Columns] | None = None if native is None else native.Columns
"""Fills Arrow's columns."""

crc32c: Callable[..., int]
if native is not None and native.CRC32C_IS_FAST:
    crc32c = native.crc32c
else:  # importing the package takes longer than most commands
    from crc32c import crc32c as in_package

    crc32c = in_package
"""The CRC-32C of bytes: by the native half where the processor has an instruction for it."""

contains: Callable[[bytes, bytes], bool] = in_python if native is None else native.contains
"""Whether bytes have others in them."""
