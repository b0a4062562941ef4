"""How the work of a reader grows with its input, counted without a clock.

Strategy: while `work` counts, the code of every function of `coordwire` is replaced by an instrumented copy,
made from its source: each statement and each turn of a comprehension counts 1; what C does on Python's
behalf counts by its size: a slice, a concatenation, `[*x]`, `{**x}`, `bytes(…)`, `join`, `decode`, `hex`,
`sorted`, `list.insert`, `x in list`, a regular expression's search, a decoder of the extension (the bytes
that it is offered). Functions keep their identity, so that nothing is imported twice, and get their own code
back.

Rules: the same input gives the same count on every machine. Work that isn't seen: generated decoders (charged
by the bytes that they are offered instead), code of other packages (charged by the size of what it returns),
a failing `re.match`, holes that a dict's iteration steps over. A charge may be set with `charges`, by the
function's name; "del" is that of `del x[…]`.

    def test_hex_lines() -> None:
        assert_linear(lambda n: b"00 " * n, lambda data: list(read_frames([data])), n=2_000)

`assert_linear(make, read, n)` makes inputs of n, 2n and 4n (not counted), reads each (counted) and fails if
the work more than doubles. Choose n so that the fixed costs don't hide the growth: 1,000 and more, a second
or less. A reader that is quadratic up to a fixed window only shows with 4n below the window: take several n.
"""

from __future__ import annotations

import ast
import gc
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from types import CodeType, FunctionType, MethodType
from typing import Any, TypeVar
from weakref import WeakSet

import coordwire
from coordwire.records import resync as checksums

T = TypeVar("T")

SLACK = 1.1
"""What doubling the input may cost beyond twice the work: rounding, a logarithm, a table that was resized."""

ROOT = str(Path(coordwire.__file__).parent)
_GENERATED = str(Path(ROOT, "messages"))
_SIZED = (bytes, bytearray, str, list, tuple, set, frozenset, dict, deque)
_SEEN = (bytes, bytearray, memoryview, str, list, tuple, deque)
_FRAME_BOUND = {"super", "locals", "globals", "vars", "dir", "eval", "exec"}
_FREE = {
    "__delitem__", "__setitem__",
    "add", "append", "appendleft", "bisect_left", "bisect_right", "bool", "cast", "clear", "discard",
    "endswith", "get", "getattr", "hasattr", "hash", "heappop", "heappush", "id", "isinstance", "issubclass",
    "items", "iter", "iter_unpack", "keys", "len", "memoryview", "move_to_end", "next", "popitem", "popleft",
    "release", "setattr", "setdefault", "startswith", "toreadonly", "type", "unpack_from", "values", "write",
}  # fmt: skip
"""C functions that take the same time whatever the size of what they are given."""

_STEPS = ("read_next", "next_request", "next_response", "write_request", "write_response")
"""Functions of the extension that get a whole buffer, or all that waits, and look at one frame of it."""

Charge = Callable[..., int]


class Counter:
    """Counts work. charges: by a C function's name, what a call of it costs: called with the result, the
    object that it is a method of (or None) and the arguments."""

    def __init__(self, charges: Mapping[str, Charge] | None = None) -> None:
        self.count = 0
        self._before_collection = 0
        self.charges: dict[str, Charge] = dict.fromkeys(("find", "rfind", "index"), _found)
        self.charges["search"] = _searched
        self.charges["advance"] = _advanced
        self.charges["isdisjoint"] = _compared
        self.charges.update(dict.fromkeys(_STEPS, _stepped))
        self.charges.update(charges or {})

    def weigh(self, value: T) -> T:
        """Charge the size of a new value."""
        if isinstance(value, _SIZED):
            self.count += len(value)
        return value

    def collected(self, phase: str, info: object) -> None:
        """Count nothing of what a collection runs: a callback of `gc`."""
        if phase == "start":
            self._before_collection = self.count
        else:
            self.count = self._before_collection

    def each(self, values: Iterable[T]) -> Iterator[T]:
        """Charge the turns of a comprehension."""
        for value in values:
            self.count += 1
            yield value

    def contains(self, value: T, container: Any) -> T:
        """Charge a look through a sequence; a dict or set finds at once."""
        if isinstance(container, _SEEN):
            self.count += len(container)
        return value

    def removed(self, container: Any) -> Any:
        """Charge `del container[…]`: what is after moves up."""
        if "del" in self.charges:
            self.count += self.charges["del"](None, container)
        elif isinstance(container, (list, deque)):
            self.count += len(container)
        return container

    def call(self, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call, and charge what isn't counted by itself."""
        result = function(*args, **kwargs)
        kind = type(function)
        # PyPy has code objects of another type for built-in functions.
        is_python = type(getattr(function, "__code__", None)) in (CodeType, type(None))
        if (kind is FunctionType or kind is MethodType) and is_python:
            if not str(getattr(function, "__module__", "")).startswith("coordwire"):
                self.weigh(result)  # of another package
            elif function.__name__ == "_decode_at":  # generated
                self.count += max(len(args[0]) - args[1], 1)
            return result
        name = getattr(function, "__name__", "")
        name = "finditer" if name == "scanner" else name  # what PyPy calls it
        owner = getattr(function, "__self__", None)
        if isinstance(function, type) and str(function.__module__).startswith("coordwire"):
            return result
        charge = self.charges.get(name)
        if charge is not None:
            self.count += charge(result, owner, *args, **kwargs)
        elif name == "pop":
            self.count += len(owner) if isinstance(owner, list) and args and args[0] != -1 else 0
        elif name not in _FREE:
            for value in (result, owner, *args):
                if isinstance(value, (*_SIZED, memoryview)):
                    self.count += len(value)
        return result


def _found(result: int, owner: Any, wanted: object, start: int = 0, end: int | None = None) -> int:
    """str.find and the like: up to the place."""
    stop = len(owner) if end is None else min(end, len(owner))
    return max(stop if result < 0 else result - start, 0) + 1


def _stepped(result: Any, *_: Any) -> int:
    """A step of a connection: the frame that it read or wrote, not what it is one of."""
    if isinstance(result, bytes):
        return len(result)
    frame = getattr(result, "frame", result)
    return int(getattr(frame, "size", 0)) + 1


def _advanced(result: tuple[int, ...], _: object, buffer: bytes, at: int, *__: object) -> int:
    """A walk over packets: those that it passed, and the one that it stopped before."""
    return result[0] - at + 1


def _compared(result: bool, owner: Any, other: Any) -> int:
    """Of two sets, or the keys of dicts, the smaller one is gone through."""
    return (min(len(owner), len(other)) if isinstance(other, Set) else len(other)) + 1


def _searched(result: re.Match[Any] | None, owner: Any, text: Any, start: int = 0, *_: Any) -> int:
    return max((len(text) if result is None else result.end()) - start, 0) + 1


# --- instrumented code


class _Instrument(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if not isinstance(block, list) or not block or not isinstance(block[0], ast.stmt):
                continue
            if not isinstance(node, (ast.Module, ast.ClassDef)):
                setattr(node, name, [part for one in block for part in (_tick(one), one)])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in _FRAME_BOUND:
            return node
        return _place(ast.Call(_method("call"), [node.func, *node.args], node.keywords), node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.ctx, ast.Load) and isinstance(node.slice, ast.Slice):
            return _weighed(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _weighed(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        self.generic_visit(node)
        return _weighed(node) if None in node.keys else node

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return _weighed(node) if _unpacks(node) else node

    def visit_Tuple(self, node: ast.Tuple) -> ast.AST:
        self.generic_visit(node)
        return _weighed(node) if _unpacks(node) else node

    def visit_Set(self, node: ast.Set) -> ast.AST:
        self.generic_visit(node)
        return _weighed(node) if _unpacks(node) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        node.value = _weighed(node.value)
        return node

    def visit_Delete(self, node: ast.Delete) -> ast.AST:
        self.generic_visit(node)
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                target.value = _place(ast.Call(_method("removed"), [target.value], []), node)
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        (container, *others) = node.comparators
        # Only a container that can be named twice without another evaluation.
        simple = isinstance(container, (ast.Name, ast.Attribute)) and not others
        if simple and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            node.left = _place(ast.Call(_method("contains"), [node.left, container], []), node)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if not node.is_async:
            node.iter = _place(ast.Call(_method("each"), [node.iter], []), node.iter)
        return node


def _unpacks(node: ast.List | ast.Tuple | ast.Set) -> bool:
    """Whether it is a display into which another container is copied."""
    stored = isinstance(getattr(node, "ctx", None), (ast.Store, ast.Del))
    return not stored and any(isinstance(one, ast.Starred) for one in node.elts)


def _method(name: str) -> ast.expr:
    return ast.Attribute(ast.Name("__work__", ast.Load()), name, ast.Load())


def _weighed(node: ast.expr) -> ast.expr:
    return _place(ast.Call(_method("weigh"), [node], []), node)


def _tick(before: ast.stmt) -> ast.stmt:
    target = ast.Attribute(ast.Name("__work__", ast.Load()), "count", ast.Store())
    return _place(ast.AugAssign(target, ast.Add(), ast.Constant(1)), before)


N = TypeVar("N", bound=ast.AST)


def _place(new: N, old: ast.AST) -> N:
    return ast.fix_missing_locations(ast.copy_location(new, old))


Key = tuple[str, int, tuple[str, ...]]


def _key(code: CodeType) -> Key:
    return code.co_qualname, code.co_firstlineno, code.co_varnames[: code.co_argcount]


@cache
def _instrumented(path: str) -> dict[Key, CodeType]:
    """The functions of a module's source; those that can't be distinguished are left out."""
    tree = _Instrument().visit(ast.parse(Path(path).read_text("utf-8"), path))
    result: dict[Key, CodeType] = {}
    twice: set[Key] = set()
    codes = [compile(tree, path, "exec", dont_inherit=True)]
    while codes:
        for code in codes.pop().co_consts:
            if isinstance(code, CodeType):
                codes.append(code)
                if _key(code) in result:
                    twice.add(_key(code))
                result[_key(code)] = code
    return {key: code for key, code in result.items() if key not in twice}


def _is_counted(path: str) -> bool:
    return path.startswith(ROOT) and not path.startswith(_GENERATED) and path.endswith(".py")


_early: WeakSet[FunctionType] = WeakSet()
"""The functions of objects that look-ups pass over."""

_MANY = 100_000


def _functions() -> set[FunctionType]:
    """All functions of `coordwire` that are loaded. A look-up that meets many objects takes them out of the
    collector's lists, which hold a million of them in a run of all tests: at first, and after a test that
    called `gc.unfreeze`."""
    objects = gc.get_objects()
    counted = {
        instance
        for instance in objects
        if type(instance) is FunctionType and _is_counted(getattr(instance.__code__, "co_filename", ""))
    }
    counted.update(_early)
    if len(objects) > _MANY:
        del objects
        _early.update(counted)
        gc.collect()
        gc.freeze()
    return counted


def _make_tables() -> None:
    """Make what is made once for all inputs, but at a size of its own: the tables of checksums, for ranges of
    up to 16 MiB. A test that is the first to meet such a size would have it in its count."""
    for kind in (checksums.CRC32, checksums.CRC32C):
        for power in range(17):
            checksums._tables(kind.polynomial, power)


@contextmanager
def counting(
    charges: Mapping[str, Charge] | None = None, functions: Iterable[FunctionType] = ()
) -> Iterator[Counter]:
    """Count the work of all functions of `coordwire` that are loaded, and of these."""
    _make_tables()
    counter = Counter(charges)
    replaced: list[tuple[FunctionType, CodeType]] = []
    for function in _functions().union(functions):
        path = function.__code__.co_filename
        code = _instrumented(path).get(_key(function.__code__))
        if code is not None and code.co_freevars == function.__code__.co_freevars:
            replaced.append((function, function.__code__))
            function.__globals__["__work__"] = counter
            function.__code__ = code
    # A collection comes at a moment of its own, and ends coroutines that wait: that is no reader's work.
    callbacks: list[Any] = getattr(gc, "callbacks", [])  # PyPy has none
    callbacks.append(counter.collected)
    try:
        yield counter
    finally:
        callbacks.remove(counter.collected)
        for function, code in replaced:
            function.__code__ = code  # a coroutine that waits has the counted one still, and its `__work__`


def work(
    run: Callable[[], object],
    charges: Mapping[str, Charge] | None = None,
    functions: Iterable[FunctionType] = (),
) -> int:
    """The work of a call. It should be run once before, so that what is made at first use isn't counted."""
    with counting(charges, functions) as counter:
        run()
    return counter.count


def assert_linear(
    make: Callable[[int], T],
    read: Callable[[T], object],
    n: int,
    *,
    slack: float = SLACK,
    charges: Mapping[str, Charge] | None = None,
) -> list[int]:
    """The work of reading inputs of n, 2n and 4n; fails if doubling the input more than doubles it.

    read: gets what `make` gave, and reads all of it (a generator must be drawn). Returns the three counts.
    """
    read(make(n // 2))  # so that of each input caches may know the same half
    counts = []
    for size in (n, 2 * n, 4 * n):
        made = make(size)
        with counting(charges) as counter:
            read(made)
        counts.append(counter.count)
    assert counts[0] > 0
    for less, more in pairwise(counts):
        assert more <= 2 * slack * less, f"the work grows faster than the input: {counts}"
    return counts


def assert_increments(counts: Sequence[int], *, slack: float = SLACK, noise: int = 0) -> None:
    """Fail if what n more cost grows with n: counts are the work for n, 2n and 4n.

    What costs the same whatever n is falls out, so that a small n is enough. noise: work that comes and goes.
    """
    first, second, third = counts
    assert third - second <= 2 * slack * max(second - first, 0) + noise, f"the work grows faster: {counts}"
