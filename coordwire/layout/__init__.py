"""The field tables, and their slow, exact interpreter: spans, paths, reasons; judge of every refusal.

    tables.py    Field and Layout, what a generated class says of its wire form in every version
    program.py   the tables as the native engine takes them, where it was built
    reader.py    bytes -> value by the tables: strict or lenient, with spans, wording every DecodeError
    writer.py    value -> bytes by the tables, wording every EncodeError
    message.py   Struct and Message, the base classes: fast path first, the interpreter where it refuses

Data flows one way: the native engine tries, or a generated decoder; where it doesn't like the bytes, the
reader walks them again from the same table and alone says what is wrong. Encoders likewise.
"""

from coordwire.layout.message import Message, Struct
from coordwire.layout.tables import FOREVER, NEVER, Field, Layout, Shape

__all__ = ["FOREVER", "NEVER", "Field", "Layout", "Message", "Shape", "Struct"]
