"""The text of one function, line by line, and the values of the global names in it.

Strategy: `decoders.py` and `encoders.py` add lines; each global name in a line comes from `helper`, `struct`,
`unpack` or `pack`, which record its value. The function is compiled with exactly these globals, so that no
import runs and no name is looked up. Rules: local names avoid Python's words and builtins, the globals and
each other; names and defaults of fields are checked before they become text.
"""

from __future__ import annotations

import builtins
import functools
import keyword
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import repeat
from math import isfinite
from struct import Struct as Compiled
from typing import TYPE_CHECKING, Any
from uuid import UUID

from coordwire.codec import primitives

if TYPE_CHECKING:
    from coordwire.codec.fields import Field
    from coordwire.codec.message import Struct

WIDTH = 110
STEP = "    "

STANDARD: dict[str, type] = {"UUID": UUID, "repeat": repeat}
"""The helpers that `coordwire.codec.primitives` doesn't define."""

_RESERVED = frozenset(
    {*keyword.kwlist, *dir(builtins), *vars(primitives), *STANDARD}
    | {"data", "elements", "end", "m", "memory", "n", "out", "pos", "text", "value"}
)
"""What no local name may be: the words of Python, globals, and the locals that every function has."""


@functools.cache
def _unpacker(codes: str) -> Callable[[bytes, int], tuple[Any, ...]]:
    return Compiled(f">{codes}").unpack_from


@functools.cache
def _packer(codes: str) -> Callable[..., bytes]:
    return Compiled(f">{codes}").pack


class Function:
    """A function's text so far. `globals`: the value of each global name in it."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.globals: dict[str, object] = {}
        self._depth = 0
        self._used_names = set(_RESERVED)

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"

    # --- lines ---

    def add(self, *lines: str) -> None:
        self.lines += [STEP * self._depth + line for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head` and what is added inside, one step deeper."""
        self.add(head)
        with self.deeper():
            yield

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def _fits(self, line: str) -> bool:
        return len(STEP) * self._depth + len(line) <= WIDTH

    def call(self, head: str, arguments: Sequence[str], tail: str = "") -> None:
        """`head(arguments)tail`; an argument a line where that is too long."""
        line = f"{head}({', '.join(arguments)}){tail}"
        if self._fits(line):
            self.add(line)
        else:
            self.add(f"{head}(", *[f"{STEP}{argument}," for argument in arguments], f"){tail}")

    def unpack_into(self, targets: Sequence[str], source: str) -> None:
        """`a, b = source`; a target a line where that is too long."""
        if len(targets) == 1:
            self.add(f"({targets[0]},) = {source}")
        elif self._fits(line := f"{', '.join(targets)} = {source}"):
            self.add(line)
        else:
            self.call("", targets, f" = {source}")

    def condition(self, any_of: Sequence[str]) -> None:
        """`if a or b:`; a condition a line where that is too long."""
        line = f"if {' or '.join(any_of)}:"
        if self._fits(line):
            self.add(line)
        else:
            self.add("if (", f"{STEP}{any_of[0]}", *[f"{STEP}or {text}" for text in any_of[1:]], "):")

    def refuse(self, *any_of: str) -> None:
        """Raise `Refused` where one of these conditions holds."""
        self.condition(any_of)
        self.add(f"{STEP}raise {self.helper('Refused')}")

    # --- local names ---

    def local(self, base_name: str) -> str:
        """A free name for a local variable: `base_name`, or that with a number."""
        name, number = base_name, 2
        while name in self._used_names:
            name, number = f"{base_name}{number}", number + 1
        self._used_names.add(name)
        return name

    def item(self, plural: str) -> str:
        """A name for one of `plural`."""
        single = plural[:-3] + "y" if plural.endswith("ies") else plural.removesuffix("s")
        return self.local(single if single not in ("", plural) else f"{plural}_item")

    # --- global names ---

    def helper(self, name: str) -> str:
        """A name of `coordwire.codec.primitives`, or one of the two that come from the standard library."""
        self.globals[name] = STANDARD.get(name) or getattr(primitives, name)
        return name

    def struct(self, cls: type[Struct]) -> str:
        """The name of a generated class."""
        name = cls.__name__
        if self.globals.get(name) is not cls:
            if name in self._used_names or not name.isidentifier():
                raise ValueError(f"a class can't be called {name!r} here")
            self._used_names.add(name)
            self.globals[name] = cls
        return name

    def unpack(self, codes: str) -> str:
        """A function that reads values of these types, by their codes in `struct`."""
        self.globals[name := f"_unpack_{codes}"] = _unpacker(codes)
        return name

    def pack(self, codes: str) -> str:
        """A function that writes values of these types, by their codes in `struct`."""
        self.globals[name := f"_pack_{codes}"] = _packer(codes)
        return name

    # --- expressions ---

    def attribute(self, source: str, field: Field) -> str:
        """A field of the object that `source` names."""
        if not field.name.isidentifier():
            raise ValueError(f"a field can't be called {field.name!r}")
        return f"{source}.{field.name}"

    def default(self, field: Field) -> str:
        """A field's default, a new object where it can be changed."""
        if field.array and field.default is not None:
            return "[]"
        if field.struct is not None and field.default is not None:
            return f"{self.struct(field.struct)}()"
        return self.literal(field.default)

    def literal(self, value: object) -> str:
        """A default of a type whose text gives the value back."""
        if value == primitives.ZERO_UUID:
            return self.helper("ZERO_UUID")
        plain = value is None or type(value) in (bool, int, str, bytes)
        if not plain and not (type(value) is float and isfinite(value)):
            raise ValueError(f"a default can't be {value!r}")
        return repr(value)
