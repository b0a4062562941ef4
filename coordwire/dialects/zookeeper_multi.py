"""The operations in a multi of ZooKeeper, and their results.

Strategy: each is a header with its type, and what that type has after it; a header that is done ends them.
Rules: bytes that aren't operations to their end raise `DecodeError`, with positions from where they begin.
"""

from __future__ import annotations

from typing import NamedTuple

from coordwire.codec import Message
from coordwire.codec.interpreter.decoder import Reader
from coordwire.errors import DecodeError, LimitExceeded, Malformed
from coordwire.limits import current
from coordwire.messages import find_message
from coordwire.messages.zookeeper_nodes import ZooKeeperOperationHeader

__all__ = ["MultiOperation", "encode_operations", "read_operations"]

_HEADER = 9
_OPERATIONS = {
    1: "Create", 2: "Delete", 4: "Read", 5: "SetData", 8: "Read", 13: "Check", 15: "Create", 19: "Create",
    21: "CreateTtl",
}  # fmt: skip
_RESULTS = {
    -1: "Error", 1: "Create", 2: None, 4: "GetData", 5: "SetData", 8: "GetChildren", 13: None, 15: "Create2",
    19: "Create2", 21: "Create2",
}  # fmt: skip
_NAMES = {
    -1: "Error", 1: "Create", 2: "Delete", 4: "GetData", 5: "SetData", 8: "GetChildren", 13: "Check",
    15: "Create2", 19: "CreateContainer", 21: "CreateTtl",
}  # fmt: skip


class MultiOperation(NamedTuple):
    """An operation, or the result of one. type: ZooKeeper's number of the operation, -1 for an error;
    error_code: of a result; message: what is after its header, None for nothing."""

    type: int
    error_code: int
    message: Message | None

    @property
    def name(self) -> str:
        """The operation by name."""
        return _NAMES[self.type]


def read_operations(data: bytes, *, results: bool) -> list[MultiOperation]:
    """The operations in the bytes of a multi, or their results. Raises `DecodeError`."""
    kinds, suffix = (_RESULTS, "Result") if results else (_OPERATIONS, "Operation")
    operations: list[MultiOperation] = []
    position, end = 0, len(data)
    while True:
        try:
            header = ZooKeeperOperationHeader.decode(data[position : position + _HEADER], version=0)
        except DecodeError as error:
            raise _moved(error, position, len(operations)) from None
        position += _HEADER
        if header.done:
            if position < end:
                raise Malformed(f"{end - position} bytes after the last operation", position)
            return operations
        if header.type not in kinds:
            raise Malformed(
                f"no operation has the type {header.type}", position - _HEADER, f"[{len(operations)}].type"
            )
        if len(operations) >= current().elements:
            raise LimitExceeded(f"more than {current().elements} operations", position)
        name = kinds[header.type]
        message: Message | None = None
        if name is not None:
            reader = Reader(data, position, 0)
            try:
                message = reader.message(find_message(f"ZooKeeper{name}{suffix}"), to_end=False)
            except DecodeError as error:
                raise _moved(error, 0, len(operations)) from None
            position = reader.pos
        operations.append(MultiOperation(header.type, header.error_code, message))


def _moved(error: DecodeError, position: int, index: int) -> DecodeError:
    error.position += position
    error.path = f"[{index}].{error.path}" if error.path else f"[{index}]"
    error.partial = None
    return error


def encode_operations(operations: list[MultiOperation]) -> bytes:
    """The bytes of operations, or of results, as a multi has them. Raises `EncodeError`."""
    parts: list[bytes] = []
    for operation in operations:
        header = ZooKeeperOperationHeader(type=operation.type, error_code=operation.error_code)
        parts.append(header.encode(version=0))
        if operation.message is not None:
            parts.append(operation.message.encode(version=0))
    parts.append(ZooKeeperOperationHeader(type=-1, done=True, error_code=-1).encode(version=0))
    return b"".join(parts)
