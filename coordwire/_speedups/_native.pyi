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
    def body(self, base_offset: int | None, base_timestamp: int | None, /) -> Body: ...

class Run(Iterator[Record]):
    done: int
    position: int
    def __next__(self) -> Record: ...
    def walk(self) -> None: ...

class Body:
    base_offset: int | None
    base_timestamp: int | None
    count: int
    size: int
    next_delta: int
    latest: int
    def add(self, records: tuple[Record, ...], room: int, /) -> bool | None: ...
    def append(self, record: Record, limit: int | None, /) -> bool | None: ...
    def records(self) -> bytes: ...
    def batch(self, head: bytes, rest: bytes, /) -> bytes: ...
