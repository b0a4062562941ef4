"""The field tables, and what runs them: C, compiled Python, and an exact interpreter.

    message.py      Struct, Message, Request and Response, the base classes: a fast back end first,
                    then the interpreter
    walk.py         fields and values of any message: the walk that all other packages use
    declarations.py field, array and struct: how a generated class says its fields' wire form
    class_docs.py   what help and inspect.signature give of a generated class
    fields.py       Field and FieldTable: what it says, in every version
    backends.py     which of the following serves a class
    program.py      the tables as the C engine takes them, where it was built; the same for JSON text
    compiler/       the tables as straight-line Python, made when a version is first used
    interpreter/    bytes to values and back by the tables; words every DecodeError and EncodeError
    names.py        messages by name, with suggestions
        primitives.py   varints, strings and unknown tags, as compiled code reads and writes them

Strategy: the C engine or compiled code goes first; whatever it declines, the interpreter goes over again from
the same table, and it alone says what is wrong. Rule: `message.py` is on top; the others import its types
only.
"""

from coordwire.codec.declarations import array, field, struct, wire_class
from coordwire.codec.fields import FOREVER, NEVER, Field, FieldTable, VersionLayout
from coordwire.codec.message import Message, Request, Response, Struct
from coordwire.codec.primitives import ZERO_UUID

__all__ = [
    "FOREVER",
    "NEVER",
    "ZERO_UUID",
    "Field",
    "FieldTable",
    "Message",
    "Request",
    "Response",
    "Struct",
    "VersionLayout",
    "array",
    "field",
    "struct",
    "wire_class",
]
