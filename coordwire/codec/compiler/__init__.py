"""The compiler: a message's field table, in one version and direction, to straight-line Python.

    function.py   the text of one function as it grows, and its globals
    decoders.py   a decoder's text
    encoders.py   an encoder's text
    __main__.py   prints a codec: python -m coordwire.codec.compiler JoinGroupRequest 9

Strategy: as dataclasses and attrs do, a function's source is put together and compiled when the function is
first used. Its text is not kept: `linecache` asks for it where a traceback or a debugger shows a line, and
the table gives the same text again. Rules: nothing but field tables becomes source, and those come from the
generated modules: no name and no value of any input does. The C engine replaces all of this where it runs.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

from coordwire.codec.compiler.decoders import write_decoder
from coordwire.codec.compiler.encoders import write_encoder
from coordwire.codec.compiler.function import STANDARD, Function
from coordwire.codec.fields import VersionLayout

if TYPE_CHECKING:
    from coordwire.codec.message import Message

__all__ = ["Direction", "decoder", "encoder", "module_text"]

Direction = Literal["decode", "encode"]


def decoder(cls: type[Message], version: int) -> Callable[[bytes, int, int, int], tuple[Any, int]]:
    """Compile the decoder of a version: see `write_decoder`."""
    return _compiled(cls, version, "decode")


def encoder(cls: type[Message], version: int) -> Callable[[Any], bytes]:
    """Compile the encoder of a version: see `write_encoder`."""
    return _compiled(cls, version, "encode")


def _compiled(cls: type[Message], version: int, direction: Direction) -> Callable[..., Any]:
    name, function = _written(cls, version, direction)
    origin = _Origin(cls, version, direction)
    code = compile(str(function), origin.filename, "exec")  # annotations stay text, as in this module
    namespace: dict[str, Any] = {"__name__": origin.filename, "__loader__": origin, **function.globals}
    exec(code, namespace)
    linecache.lazycache(origin.filename, namespace)
    compiled: Callable[..., Any] = namespace[name]
    return compiled


def _written(cls: type[Message], version: int, direction: Direction) -> tuple[str, Function]:
    layout: VersionLayout = cls._layout_.at(version)
    name = f"{direction}_{layout.cls.__name__}_v{version}"
    write = write_decoder if direction == "decode" else write_encoder
    return name, write(name, layout)


class _Origin:
    """Where a compiled function comes from: a loader, as `linecache` knows them from modules."""

    def __init__(self, cls: type[Message], version: int, direction: Direction) -> None:
        self.cls = cls
        self.version = version
        self.direction = direction
        owner = cls._layout_.cls
        self.filename = f"{owner.__module__}.{owner.__name__}.{direction}(version={version})"

    def get_source(self, name: str) -> str:
        """The text from which the function was compiled."""
        return str(_written(self.cls, self.version, self.direction)[1])


def module_text(cls: type[Message], version: int, direction: Direction) -> str:
    """A function with what it needs, as a module: to be read, and to be checked for its types."""
    _, function = _written(cls, version, direction)
    standard: dict[str, list[str]] = {}
    own: dict[str, list[str]] = {}
    runs = []
    for name, value in function.globals.items():
        kind, _, codes = name.rpartition("_")
        if kind in ("_pack", "_unpack"):
            standard["struct"] = ["Struct as Compiled"]
            runs.append(f'{name} = Compiled(">{codes}").{kind[1:]}{"_from" * (kind == "_unpack")}')
        elif name in STANDARD:
            standard.setdefault(STANDARD[name].__module__, []).append(name)
        else:
            home = value.__module__ if isinstance(value, type) else "coordwire.codec.primitives"
            own.setdefault(home, []).append(name)
    lines = ["from __future__ import annotations", ""]
    for imports in (standard, own):
        lines += [f"from {home} import {', '.join(sorted(names))}" for home, names in sorted(imports.items())]
        lines += [""] * bool(imports)
    return "\n".join([*lines, *sorted(runs), *["", ""] * bool(runs), str(function)])
