"""Users' subclasses of generated classes: the generated class of one, and messages as objects of one.

Rule: field tables belong to generated classes; whatever reads a table makes objects of its class first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from coordwire.codec.message import Message

M = TypeVar("M", bound="Message")


def owner(cls: type[Message]) -> type[Message]:
    """The generated class: the class itself, or the one that a user's subclass inherits from."""
    return cast("type[Message]", cls._layout_.cls)


def as_class(cls: type[M], message: Message) -> M:
    """A decoded object as one of the requested class, which may be a user's subclass."""
    if message.__class__ is cls:
        return message
    instance = object.__new__(cls)
    for name in (*(field.name for field in cls._layout_.fields), "tags"):
        setattr(instance, name, getattr(message, name))
    return instance
