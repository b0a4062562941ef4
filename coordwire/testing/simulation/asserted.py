"""What has failed, and what an `assert` without a text says: its condition, and the values of names in it.

Strategy: pytest rewrites the assertions of tests alone, so that those of a service raise an `AssertionError`
without a text. The statement is found by its line in the source, the values in the frame that has failed.
Rules: nothing of the program is called but `repr`, whose errors are none; only names have values, and
attributes that objects have themselves.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Iterator
from reprlib import Repr
from types import FrameType, TracebackType

__all__ = ["assertion_text", "failure_of"]

_VALUES = Repr()
_VALUES.maxstring = _VALUES.maxother = _VALUES.maxlong = 80
_VALUES.maxdict = _VALUES.maxlist = _VALUES.maxset = _VALUES.maxtuple = _VALUES.maxdeque = 8


def failure_of(error: BaseException) -> BaseException:
    """The error itself; of a group of them the assertion in it, or the only one."""
    if isinstance(error, BaseExceptionGroup):
        assertions = error.subgroup(AssertionError)
        errors = (error if assertions is None else assertions).exceptions
        if assertions is not None or len(errors) == 1:
            return failure_of(errors[0])
    return error


def assertion_text(calls: TracebackType | None, is_own: Callable[[str], bool]) -> str:
    """The text for the last call of one's own code, if that is an `assert` whose source can be had; else
    nothing. is_own: whether a file has such code."""
    own = None
    while calls is not None:
        own = calls if is_own(calls.tb_frame.f_code.co_filename) else own
        calls = calls.tb_next
    if own is None:
        return ""
    statement = _statement(own.tb_frame.f_code.co_filename, own.tb_lineno)
    if statement is None:
        return ""
    values = dict(_values(statement.test, own.tb_frame))
    attributes = {name.rpartition(".")[0] for name in values}
    texts = ", ".join(f"{name} = {text}" for name, text in values.items() if name not in attributes)
    return f"assert {ast.unparse(statement.test)}{f', where {texts}' if texts else ''}"


def _statement(file: str, line: int) -> ast.Assert | None:
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except (SyntaxError, ValueError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert) and node.lineno <= line <= (node.end_lineno or node.lineno):
            return node
    return None


def _values(condition: ast.expr, frame: FrameType) -> Iterator[tuple[str, str]]:
    """Names and attributes in a condition, with their values' texts."""
    names = frame.f_globals | frame.f_locals
    for node in ast.walk(condition):
        path = _path(node)
        if not path or path[0] not in names:
            continue
        value = names[path[0]]
        try:
            for name in path[1:]:
                value = vars(value)[name]
        except (TypeError, KeyError):
            continue
        if not callable(value) and not hasattr(value, "__spec__"):  # neither a function nor a module
            yield ".".join(path), _VALUES.repr(value)


def _path(node: ast.AST) -> list[str]:
    """The names of `a.b.c`."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute) and (path := _path(node.value)):
        return [*path, node.attr]
    return []
