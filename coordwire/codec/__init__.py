"""The field tables, and what runs them: C, compiled Python, and an exact interpreter.

    tables.py    Field and FieldTable, what a generated class says of its wire form in every version
    backends.py  which of the following serves a class
    program.py   the tables as the C engine takes them, where it was built
    compiler/    the tables as straight-line Python, made when a version is first used
    reader.py    bytes -> value by the tables: strict or not, with spans, wording every DecodeError
    writer.py    value -> bytes by the tables, wording every EncodeError
    message.py   Struct, Message, Request and Response, the base classes: the fast path first, the interpreter
                 where it refuses

Data flows one way: the C engine or a compiled decoder goes first; what it declines, the reader walks again
from the same table, and it alone says what is wrong. Encoders likewise.
"""

from coordwire.codec.fields import FOREVER, NEVER, Field, FieldTable, VersionLayout
from coordwire.codec.message import Message, Request, Response, Struct

__all__ = [
    "FOREVER",
    "NEVER",
    "Field",
    "FieldTable",
    "Message",
    "Request",
    "Response",
    "Struct",
    "VersionLayout",
]
