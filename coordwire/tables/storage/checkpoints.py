"""Checkpoints: what is known at the end of a chain's files, as a file that a later run goes on from.

Strategy: the objects of readers and timelines are written by `pickle`, which keeps what they share, after a
line of JSON with the formats, the interpreter, the size and a digest. Rules: what is read must have all of
these, before a byte of it is used; it can make only objects of the classes of this package that readers and
timelines have, and containers, and calls nothing else: no function, no method, no class of another module. A
state of more than `MOST` bytes has no checkpoint. `CHECKPOINT_FORMAT` is a new one where a class of these
has other attributes, or means others by them; rows do not depend on it.
"""

from __future__ import annotations

__all__ = ["CHECKPOINT_FORMAT", "NoCheckpoint", "load_checkpoint", "remove_checkpoints", "save_checkpoint"]

import io
import json
import pickle
import sys
from collections.abc import Collection
from hashlib import blake2b
from importlib import import_module
from inspect import getattr_static
from types import BuiltinMethodType, FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.tables.columns import ROWS_FORMAT
from coordwire.tables.storage.names import CHECKPOINTS, is_own_name

if TYPE_CHECKING:
    from coordwire.tables.storage.folders import Output

CHECKPOINT_FORMAT = 5
MOST = 64 << 20
HEAD = 1024
"""Bytes that the first line has at most."""

_OWN = (
    "coordwire.capture", "coordwire.codec", "coordwire.connection", "coordwire.dialects", "coordwire.errors",
    "coordwire.messages", "coordwire.timeline", "coordwire.versions", "coordwire.tables.readers",
)  # fmt: skip
"""The packages and modules whose classes a checkpoint may have."""

_OTHERS = frozenset((
    ("array", "array"), ("array", "_array_reconstructor"), ("builtins", "bytearray"), ("builtins", "set"),
    ("builtins", "frozenset"), ("collections", "Counter"), ("collections", "OrderedDict"),
    ("collections", "defaultdict"), ("collections", "deque"), ("functools", "partial"), ("uuid", "UUID"),
    ("builtins", "list"), ("builtins", "dict"), ("builtins", "int"), ("builtins", "str"),
))  # fmt: skip


class NoCheckpoint(CoordwireError):
    """A checkpoint that is not there, or can't be used or made; the reason says why."""


def save_checkpoint(output: Output, unit: str, state: Any) -> None:
    """Write the checkpoint of a unit. Raises `NoCheckpoint` for a state that is too large, and `OSError`."""
    buffer = _Bounded()
    try:
        _Pickler(buffer, 5).dump(state)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise NoCheckpoint(f"its state can't be written: {error}") from None
    data = buffer.getvalue()
    output.write(_name(unit), json.dumps(_head(data)).encode() + b"\n" + data)


def load_checkpoint(output: Output, unit: str) -> Any:
    """The state in the checkpoint of a unit. Raises `NoCheckpoint`, and `OSError`."""
    name = _name(unit)
    status = output.stat(name)
    if status is None:
        raise NoCheckpoint("it is not there")
    if status.size > MOST + HEAD:
        raise NoCheckpoint(f"it has {status.size} bytes")
    head, _, data = (output.read(name) or b"").partition(b"\n")
    try:
        form = json.loads(head)
    except (ValueError, RecursionError):
        raise NoCheckpoint("it is damaged") from None
    if not isinstance(form, dict) or form.get("formats") != _FORMATS:
        raise NoCheckpoint("it is of another version")
    if form != _head(data):
        raise NoCheckpoint("it is damaged")
    try:
        return _Unpickler(io.BytesIO(data)).load()
    except Exception as error:  # untrusted bytes may have a digest that fits
        raise NoCheckpoint(f"it can't be read: {error}") from None


def remove_checkpoints(output: Output, keep: Collection[str]) -> None:
    """Remove the checkpoints of all units but these."""
    for entry in output.entries(CHECKPOINTS):
        name = f"{CHECKPOINTS}/{entry}"
        if entry not in keep and is_own_name(name):
            output.delete(name)


_FORMATS = [CHECKPOINT_FORMAT, ROWS_FORMAT, sys.implementation.name, *sys.version_info[:2]]


def _head(data: bytes) -> dict[str, Any]:
    return {"formats": _FORMATS, "size": len(data), "digest": blake2b(data, digest_size=32).hexdigest()}


def _name(unit: str) -> str:
    return f"{CHECKPOINTS}/{unit}"


class _Bounded(io.BytesIO):
    """Memory for a state, up to `MOST` bytes."""

    def write(self, data: Any, /) -> int:
        written = super().write(data)
        if self.tell() > MOST:
            raise NoCheckpoint(f"what is open at its end takes more than {MOST >> 20} MiB")
        return written


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: Any) -> Any:
        """A bound method by its owner and its name: `pickle` would have it be fetched by `getattr`."""
        if type(value) is MethodType or (type(value) is BuiltinMethodType and value.__name__ == "get"):
            return _Method, (value.__self__, value.__name__)
        return NotImplemented


class _Method:
    """Makes a method of one of our objects, or the look-up of a dict."""

    def __new__(cls, owner: Any, name: str) -> Any:
        if isinstance(owner, dict) and name == "get":
            return owner.get
        function = getattr_static(type(owner), name)
        if not (_is_own(type(owner).__module__) and isinstance(function, FunctionType)):
            raise pickle.UnpicklingError(f"expected a method, got {name}")
        return MethodType(function, owner)


class _Unpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """A class that a checkpoint may have."""
        if (module, name) == (__name__, "_Method"):
            return _Method
        if (module, name) in _OTHERS:
            return getattr(import_module(module), name)
        kind = vars(import_module(module)).get(name) if _is_own(module) else None
        if not (isinstance(kind, type) and kind.__module__ == module):
            raise pickle.UnpicklingError(f"expected a class of a checkpoint, got {module}.{name}")
        return kind


def _is_own(module: str) -> bool:
    return any(module == own or module.startswith(f"{own}.") for own in _OWN)
