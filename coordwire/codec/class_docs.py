"""The fields of generated classes in `help` and `inspect.signature`, made on first use.

Strategy: a class's `__doc__` is a `ClassDoc`, which Python asks for the text, and `__signature__` of the base
class a `ClassSignature`. The docs of fields are the strings below them, which only the source has, so `ast`
reads them from there. Rule: importing a class costs one small object for it; the code that makes the text is
imported when it is used.
"""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ast
    from inspect import Signature

WIDTH = 100
INDENT = " " * 8


class ClassDoc:
    """The docs of a generated class. text: its own, without the fields."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __get__(self, instance: object, owner: type[Any]) -> str:
        import inspect

        parts = (inspect.cleandoc(self.text), *_facts(owner), "Fields:", _fields(owner))
        return "\n\n".join(filter(None, parts))


class ClassSignature:
    """The signature of a generated class, with types and defaults as values."""

    __slots__ = ()

    def __get__(self, instance: object, owner: type[Any]) -> Signature:
        table = getattr(owner, "_layout_", None)
        if table is None or owner.__init__ is not table.cls.__init__:
            raise AttributeError("__signature__")  # a class whose __init__ is a user's
        import inspect

        types = inspect.get_annotations(table.cls, eval_str=True)
        return inspect.Signature(
            [
                inspect.Parameter(
                    name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=types[name]
                )
                for name, default in _defaults(table.cls).items()
            ]
        )


class _Fresh(str):
    """A default that each object has for itself, as it is written."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _defaults(cls: type[Any]) -> dict[str, Any]:
    """The default of each field and of `tags`."""
    defaults = {}
    for field in cls._layout_.fields:
        fresh = field.struct is not None and not field.array and field.default is not None
        defaults[field.name] = _Fresh(f"{field.struct.__name__}()") if fresh else field.fresh_default()
    return defaults | {"tags": None}


def _facts(cls: type[Any]) -> list[str]:
    """Key, versions and response of a message; nothing for a struct."""
    known = getattr(cls, "versions", None)
    if known is None:
        return []
    facts = [] if cls.api_key is None else [f"API key {cls.api_key}"]
    facts.append(f"versions {known[0]} to {known[-1]}" if len(known) > 1 else f"version {known[0]}")
    if cls.flexible_versions:
        facts.append(f"flexible from {cls.flexible_versions[0]}")
    response = getattr(cls, "response_class", None)
    if response is not None:
        facts.append(f"answered by {response.__name__}")
    text = ", ".join(facts)
    return [f"{text[0].upper()}{text[1:]}."]


def _fields(cls: Any) -> str:
    """A line a field, with its name, type and default as in Python and its type on the wire, and its docs."""
    import textwrap

    docs, types, defaults = field_docs(cls), cls.__annotations__, _defaults(cls)
    lines = []
    for field in cls._layout_.fields:
        wire = "" if field.struct else f"  ([]{field.type})" if field.array else f"  ({field.type})"
        lines.append(f"    {field.name}: {types[field.name]} = {defaults[field.name]!r}{wire}")
        text = docs.get(field.name, "")
        lines += textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
    lines.append(f"    tags: {types['tags']} = None")
    lines.append(f"{INDENT}Unknown tagged fields by number, with their bytes.")
    return "\n".join(lines)


def own_doc(cls: type[Any]) -> str:
    """A class's own docs without its fields, indented as `inspect.cleandoc` does."""
    import inspect

    doc = vars(cls).get("__doc__")
    return inspect.cleandoc((doc.text if isinstance(doc, ClassDoc) else doc) or "")


@cache
def field_docs(cls: Any) -> dict[str, str]:
    """The docs of a class's attributes, in one line each."""
    return _module_docs(cls.__module__).get(cls.__name__, {})


@cache
def _module_docs(name: str) -> dict[str, dict[str, str]]:
    import ast
    import inspect

    try:
        tree = ast.parse(inspect.getsource(sys.modules[name]))
    except (OSError, TypeError, KeyError, SyntaxError):  # installed without its source
        return {}
    return {node.name: _attribute_docs(node) for node in tree.body if isinstance(node, ast.ClassDef)}


def _attribute_docs(node: ast.ClassDef) -> dict[str, str]:
    import ast

    docs: dict[str, str] = {}
    name: str | None = None
    for statement in node.body:
        match statement:
            case ast.AnnAssign(target=ast.Name() as target):
                name = target.id
            case ast.Expr(value=ast.Constant(value=str(text))) if name is not None:
                docs[name] = " ".join(text.split())
                name = None
            case _:
                name = None
    return docs
