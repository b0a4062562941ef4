"""`dataclass`: the standard library's, for classes with slots, completed when one is first used.

Strategy: the decorator makes the slots. What else a dataclass has (`__init__`, `__eq__`, `__repr__`, …) the
standard library makes of the class without slots when one of these is first looked up. Compiling them for
each class was a quarter of `from coordwire.broker import Broker`, and a run does not use all classes.

Rules: for what a broker imports; elsewhere the standard decorator does. Type checkers see the standard one,
and after the first use nothing differs from it.
"""

from __future__ import annotations

import dataclasses
import sys
from functools import partial
from typing import TYPE_CHECKING, Any

__all__ = ["dataclass"]

if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(cls: type | None = None, /, **options: Any) -> Any:
        """The class with slots; options: those of `dataclasses.dataclass`, with slots=True among them."""
        if cls is None:
            return partial(dataclass, **options)
        names = _generated_names(**options)
        namespace = dict(vars(cls))
        own = [name for name, hint in cls.__annotations__.items() if not hint.startswith(_NO_FIELD)]
        for name in (*own, "__dict__", "__weakref__"):  # the last two belong to the class without slots
            namespace.pop(name, None)
        inherited = {name for base in cls.__mro__[1:] for name in vars(base).get("__slots__", ())}
        namespace["__slots__"] = tuple(name for name in own if name not in inherited)
        namespace |= {name: _Attribute(cls, options) for name in names if name not in namespace}
        if "__eq__" in names and "__hash__" not in names:
            namespace.setdefault("__hash__", None)
        return type(cls)(cls.__name__, cls.__bases__, namespace)


_NO_FIELD = "ClassVar", "KW_ONLY", "InitVar"
"""How annotations begin that are not fields. They are text: each module postpones their evaluation."""


def _generated_names(
    *, slots: bool, frozen: bool = False, eq: bool = True, repr: bool = True, **_: bool
) -> list[str]:
    """The attributes that `dataclasses.dataclass` makes with these options."""
    names = ["__init__", "__match_args__", "__dataclass_fields__", "__dataclass_params__"]
    if sys.version_info >= (3, 13):
        names.append("__replace__")
    if repr:
        names.append("__repr__")
    if eq:
        names.append("__eq__")
    if frozen:
        names += ["__setattr__", "__delattr__", "__getstate__", "__setstate__"]
    if frozen and eq:
        names.append("__hash__")
    return names


class _Attribute:
    """An attribute that `dataclasses.dataclass` makes, with the others of its class."""

    __slots__ = ("cls", "name", "options", "source")

    def __init__(self, source: type, options: dict[str, Any]) -> None:
        self.source = source
        self.options = options

    def __set_name__(self, owner: type, name: str) -> None:
        self.cls, self.name = owner, name

    def __get__(self, instance: object, owner: type) -> Any:
        self._complete()
        value = vars(self.cls)[self.name]
        return value.__get__(instance, owner) if callable(value) else value

    def _complete(self) -> None:
        """Replace this attribute and its siblings. Two threads may do so at once: both make the same."""
        for name, value in vars(dataclasses.dataclass(**self.options)(self.source)).items():
            if isinstance(vars(self.cls).get(name), _Attribute):
                setattr(self.cls, name, value)
