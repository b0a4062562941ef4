"""What the extension offers; see module.c."""

from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from mmap import mmap
from typing import Any, TypeAlias, TypeVar

from coordwire.records.batch import RecordBatch
from coordwire.records.record import Record

# --- messages: engine.c ---

Row: TypeAlias = tuple[str, int, int, int, int, int, Program | None, Any]
"""A field: name, kind, flags, tag, least size and cost of an element, the struct's program, default."""

def bind(
    uuid: type, safety: object, limits: type, current: ContextVar[Any], kept_back: int, tag_cost: int
) -> None: ...

class Program:
    def __new__(
        cls_,
        cls: type,
        flexible: bool,
        inline: tuple[Row, ...],
        tagged: tuple[Row, ...],
        absent: tuple[Row, ...],
    ) -> Program: ...
    def decode(
        self, data: bytes | bytearray | memoryview, start: int, elements: int, memory: int, /
    ) -> tuple[Any, int] | None: ...
    def encode(self, message: object, /) -> bytes | None: ...

TextRow: TypeAlias = tuple[bytes, bool, int, bytes | None, Transcriber | None]
"""A field: its key, whether it is an error code, its place, its default's bytes, the struct's transcriber."""

class Transcriber:
    def __new__(cls_, program: Program, rows: tuple[TextRow, ...]) -> Transcriber: ...
    def transcribe(
        self, data: bytes | bytearray | memoryview, header: Transcriber | None = None, /
    ) -> tuple[str, int] | None: ...

class _Caller:
    def __new__(
        cls_,
        cls: type,
        compile: Callable[[Any, int], Program | None],
        function: Callable[..., Any],
        exact: Callable[..., Any],
        versions: int,
        at: bool = False,
    ) -> Any: ...

class Decoder(_Caller): ...
class Encoder(_Caller): ...

class Framer:
    def __new__(
        cls_,
        frame: type,
        header: object,
        request: bool,
        route: Callable[[int, int], tuple[Program, Program] | None],
    ) -> Framer: ...
    def read(self, data: object, prefixed: bool, api_key: int = 0, version: int = 0, /) -> Any: ...
    def parts(self, data: bytes, api_key: int = 0, version: int = 0, /) -> tuple[Any, Any, bool] | None: ...
    def read_next(self, data: object, position: int, api_key: int = 0, version: int = 0, /) -> Any: ...
    def write(
        self, message: object, version: object, correlation_id: object, client_id: object = None, /
    ) -> bytes | None: ...

class Exchange:
    def __new__(
        cls_, requests: Framer, responses: Framer, buffer: type, sent: type, request: type, response: type
    ) -> Exchange: ...
    def next_request(self, buffer: object, owed: object, /) -> Any: ...
    def next_response(self, buffer: object, waiting: object, /) -> Any: ...
    def write_request(
        self, message: object, version: object, number: int, client_id: object, waiting: object, /
    ) -> bytes | None: ...
    def write_response(
        self, message: object, version: object, event: object, owed: object, /
    ) -> bytes | None: ...

# --- records: record_codec.c ---

Buffer = bytes | bytearray | memoryview | mmap

CRC32C_IS_FAST: bool

def crc32c(data: Buffer, crc: int = 0, /) -> int: ...
def use_crc32c_package(is_used: bool, /) -> None: ...
def contains(data: Buffer, part: Buffer, /) -> bool: ...

Walked = TypeVar("Walked")

class Codec:
    def __new__(cls, record: type[Record]) -> Codec: ...
    def read(
        self, data: Buffer, count: int, base_offset: int, base_timestamp: int, stamp: int | None, /
    ) -> Run: ...
    def know(self, batch: type[RecordBatch], /) -> None: ...
    def walk(self, batches: type[Walked], data: bytes, /) -> Walked: ...
    def records(self, batch: RecordBatch, create_time: bool, /) -> Iterator[Record]: ...
    def encode(
        self,
        records: object,
        base_offset: int | None,
        last_offset: int | None,
        max_timestamp: int | None,
        producer_id: int,
        producer_epoch: int,
        base_sequence: int,
        partition_leader_epoch: int,
        transactional: bool,
        control: bool,
        /,
    ) -> bytes | None: ...
    def body(self, base_offset: int | None, base_timestamp: int | None, /) -> Body: ...

class Walk:
    _quick: Codec | None
    _view: memoryview
    position: int
    def __iter__(self) -> Any: ...
    def __next__(self) -> Any: ...

class Opened:
    position: int
    size: int
    _view: memoryview
    _head: tuple[int, ...]
    _first_chunk: list[Record] | None
    def __iter__(self) -> Iterator[Record]: ...

class Builder:
    limit: int | None
    _body: Any

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
    def batch(self, head: bytes, rest: bytes, packed: bytes | None, /) -> bytes: ...

# --- columns: columns_object.c ---

class Memory:
    def __buffer__(self, flags: int, /) -> memoryview: ...

class Columns:
    rows: int
    last: tuple[int, int]
    done: int
    def __new__(cls, wanted: int, most: int, view: bool, whole: bool) -> Columns: ...
    def run(self, data: Buffer, position: int, body: bytes | None, buffer: int, /) -> tuple[bool, int]: ...
    def span(self, data: Buffer, position: int, most: int, /) -> int: ...
    def take(self) -> tuple[int, int, tuple[Memory | None, ...]]: ...

# --- captures: packets.c, frame_walk_object.c, plain_lines.c ---

class PacketWalk:
    def __new__(
        cls,
        halves: dict[bytes, Any],
        half: type,
        chunk: type[tuple[Any, ...]],
        big: bool,
        unit: int,
        header: int,
        limit: int,
        link: int,
        interfaces: list[Any] | None,
        /,
    ) -> PacketWalk: ...
    def advance(self, buffer: bytes, at: int, number: int, /) -> tuple[int, int, int, list[Any]]: ...

class FrameWalk:
    def __new__(
        cls,
        kinds: tuple[type, ...],
        forget: object,
        dialect: object,
        routes: dict[int, Any],
        summary: object,
        telling: int,
        eager: int,
        omitting: bytes,
        numbers: tuple[int, int, int],
        /,
    ) -> FrameWalk: ...
    def take(self, chunk: tuple[Any, ...], limit: int, /) -> Any: ...
    def take_run(self, chunks: list[Any], at: int, limit: int, entries: list[Any], /) -> int: ...

ApiRow: TypeAlias = tuple[Transcriber, Transcriber, bool, bool, bool, str]
PlaceRow: TypeAlias = tuple[object, str, str, str, str]

class PlainLines:
    def __new__(
        cls,
        classes: tuple[type, type, type],
        tables: tuple[dict[int, ApiRow | None], dict[int, PlaceRow], dict[int, tuple[str, str]]],
        learn: Callable[[Any], None],
        body_text: Callable[[Any], object],
        has_nothing_to_redact: Callable[[Any], bool] | None,
        errors: Callable[[Any, str], str],
        /,
    ) -> PlainLines: ...
    def line(self, entry: object, digits: int, /) -> str | None: ...
    def run(self, entries: list[Any], at: int, digits: int, stops: frozenset[int], /) -> tuple[str, int]: ...
    def plain(self, entries: Sequence[object], /) -> list[bool | None]: ...

# --- objects: slots.c ---

class SlotMaker:
    def __new__(cls, made: type, names: tuple[str, ...], /) -> SlotMaker: ...
    def make(self, *values: object) -> Any: ...
    def lists(self, objects: Sequence[object], /) -> tuple[list[Any], ...]: ...
