"""What the extension offers; see module.c."""

from collections.abc import Iterator
from mmap import mmap

from coordwire.records.record import Record

Buffer = bytes | bytearray | memoryview | mmap

CRC32C_IS_FAST: bool

def crc32c(data: Buffer, crc: int = 0, /) -> int: ...
def crc32c_by_table(data: Buffer, crc: int = 0, /) -> int: ...

class Codec:
    def __new__(cls, record: type[Record]) -> Codec: ...
    def read(
        self, data: Buffer, count: int, base_offset: int, base_timestamp: int, stamp: int | None, /
    ) -> Run: ...

class Run(Iterator[Record]):
    done: int
    position: int
    def __next__(self) -> Record: ...
    def walk(self) -> None: ...
