"""What the extension offers; see module.c."""

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, TypeAlias

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

class _Caller:
    def __new__(
        cls_,
        cls: type,
        compile: Callable[[Any, int], Program | None],
        function: Callable[..., Any],
        versions: int,
        at: bool = False,
    ) -> Any: ...

class Decoder(_Caller): ...
class Encoder(_Caller): ...
