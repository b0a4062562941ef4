"""Field tables to encoders: the same runs as the decoders', packed, and the parts joined at the end.

Strategy: fixed fields gather in a run; the length after them joins it where it fits its byte. Rules: types
are checked as far as packing would let a wrong one through (booleans, uuids, lists, bytes, structs); anything
unusual raises, and the exact writer words the error.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from coordwire.codec.compiler.decoders import is_number, numbers
from coordwire.codec.compiler.function import Function
from coordwire.codec.fields import CODES, FIXED, NEVER, TEXTS, Field, VersionLayout

Run = list[tuple[str, str]]
"""Values that are packed together, as expressions, and their codes."""


def write_encoder(name: str, layout: VersionLayout) -> Function:
    """`name(m)`: the message's bytes. Any exception means that the interpreter has to look at the message."""
    encoder = _Encoder()
    encoder.function(name, layout)
    return encoder.text


class _Encoder:
    """Writes one function."""

    def __init__(self) -> None:
        self.text = Function()
        self.run: Run = []
        self.out = "out.append"

    def function(self, name: str, layout: VersionLayout) -> None:
        text = self.text
        with text.block(f"def {name}(m: {text.struct(layout.cls)}) -> bytes:"):
            text.add("out: list[bytes] = []")
            self.struct("m", layout)
            self.flush()
            text.add('return b"".join(out)')

    # --- runs of fixed fields ---

    def put(self, *items: tuple[str, str], extra: str = "") -> None:
        """Write the pending run with `items` in it, then `extra`; the run stays pending."""
        text = self.text
        run = [*self.run, *items]
        if not self.run and (literal := constant(run)):
            text.add(f"{self.out}({literal})")
        elif run:
            pack = text.pack("".join(code for _, code in run))
            text.call(f"{self.out}({pack}", [value for value, code in run if code != "x"], ")")
        if extra:
            text.add(f"{self.out}({extra})")

    def flush(self) -> None:
        self.put()
        self.run = []

    # --- structs ---

    def struct(self, source: str, layout: VersionLayout) -> None:
        for field in layout.absent:
            if not field.ignorable:
                self.text.refuse(*self.is_set(source, field))
        for field in layout.inline:
            self.field(source, field, layout)
        if layout.flexible:
            self.tags(source, layout)
        else:
            self.text.refuse(f"{source}.tags")

    def is_set(self, owner: str, field: Field) -> list[str]:
        """Conditions of which one holds if the field differs from its default."""
        source = self.text.attribute(owner, field)
        if field.default is None:
            return [f"{source} is not None"]
        if field.array:
            return [f"{source} not in ([], ())"]
        if field.struct is not None:
            inner = [is_set for part in field.struct._layout_.fields for is_set in self.is_set(source, part)]
            return [*([f"{source} is None"] if field.null < NEVER else []), *inner, f"{source}.tags"]
        if field.type == "bool":
            return [f"{source} is not {field.default}"]  # None, for one, is neither the default nor a boolean
        if field.type == "uuid":
            return [f"{source}.int != 0"]
        return [f"{source} != {self.text.literal(field.default)}"]

    def field(self, owner: str, field: Field, layout: VersionLayout) -> None:
        source = self.text.attribute(owner, field)
        if field.unprefixed:
            self.unprefixed(source, field, layout)
        elif field.array:
            self.one_or_null(source, field, layout, lambda: self.array(source, field, layout))
        elif field.struct is not None:
            self.nested(source, field, layout)
        elif field.type in FIXED:
            self.fixed(source, field)
        else:
            self.one_or_null(source, field, layout, lambda: self.sized(source, field, layout))

    def unprefixed(self, source: str, field: Field, layout: VersionLayout) -> None:
        """Bytes, or structs each after its size, up to the end."""
        text = self.text
        self.flush()
        inner = layout.inner(field)
        if inner is None:
            self.bytes_of(source)
            text.add(f"{self.out}(value)")
            return
        items = self.items(source, field)
        item = text.item(field.name)
        with text.block(f"for {item} in {items}:"):
            text.refuse(f"{item}.__class__ is not {text.struct(inner.cls)}")
            part = text.local("part")
            text.add(f"{part}: list[bytes] = []")
            outer, self.out = self.out, f"{part}.append"
            self.struct(item, inner)
            self.flush()
            self.out = outer
            text.add(f'value = b"".join({part})', f"{self.out}({text.pack('i')}(len(value)))")
            text.add(f"{self.out}(value)")

    def fixed(self, source: str, field: Field) -> None:
        text = self.text
        if field.type == "bool":
            text.refuse(f"{source}.__class__ is not bool")
        elif field.type == "uuid":
            text.refuse(f"{source}.__class__ is not {text.helper('UUID')}")
            source += ".bytes"
        self.run.append((source, CODES[field.type]))

    def one_or_null(
        self, source: str, field: Field, layout: VersionLayout, write: Callable[[], None]
    ) -> None:
        """`write` what writes the pending run and a value; null where it is None and may be."""
        if not field.nullable(layout.version):
            write()
            return
        string = field.type == "string" and not field.array
        null = ("0", "B") if layout.compact(field) else ("-1", "h" if string else length_code(field, layout))
        pending = self.run
        with self.text.block(f"if {source} is None:"):
            self.put(null)
        with self.text.block("else:"):
            self.run = pending
            write()
            self.flush()
        self.run = []

    def length(self, count: str, code: str, *, compact: bool, text: bool = False) -> None:
        """Write the pending run and a length or count, of type `code` if it isn't compact."""
        lines = self.text
        if not compact:
            self.put((count, code))
        elif not self.run:
            table = lines.helper("STRING_LENGTHS" if text else "LENGTHS")
            lines.add(f"{self.out}({table}[{count}])")
        else:
            writer = lines.helper("string_length" if text else "uvarint")
            lines.add(f"n = {count} + 1")
            with lines.block("if n < 128:"):
                self.put(("n", "B"))
            with lines.block("else:"):
                self.put(extra=f"{writer}(n)")
        self.run = []

    def sized(self, source: str, field: Field, layout: VersionLayout) -> None:
        """A string or bytes."""
        compact = layout.compact(field)
        if field.type in TEXTS:
            if field.null < NEVER and not field.nullable(layout.version) and not field.array:
                self.text.refuse(f"{source} is None")
            self.text.add(f"text = {source}.encode()")
            self.length("len(text)", "h" if field.type == "string" else "i", compact=compact, text=True)
            self.text.add(f"{self.out}(text)")
        else:
            self.bytes_of(source)
            self.length("len(value)", "i", compact=compact)
            self.text.add(f"{self.out}(value)")

    def bytes_of(self, source: str) -> None:
        """The bytes in a field, as `value`."""
        self.text.add(f"value = {source}", "if value.__class__ is not bytes:")
        self.text.add(f"    value = {self.text.helper('as_bytes')}(value)")

    def nested(self, source: str, field: Field, layout: VersionLayout) -> None:
        """A struct; one that may be null is after a marker."""
        text = self.text
        inner = layout.inner(field)
        assert inner is not None
        name = text.local(field.name)

        def write() -> None:
            text.add(f"{name} = {source}")
            text.refuse(f"{name}.__class__ is not {text.struct(inner.cls)}")
            self.struct(name, inner)

        if not field.nullable(layout.version):
            write()
            return
        pending = self.run
        with text.block(f"if {source} is None:"):
            self.put(("-1" if field.tag is None else "0", "b"))
        with text.block("else:"):
            self.run = [*pending, ("1", "b")]
            write()
            self.flush()
        self.run = []

    # --- arrays ---

    def items(self, source: str, field: Field) -> str:
        """The elements of a field, in a local list that is named."""
        items = self.text.local(field.name)
        self.text.add(f"{items} = {source}", f"if {items}.__class__ is not list:")
        self.text.add(f"    {items} = {self.text.helper('as_list')}({items})")
        return items

    def array(self, source: str, field: Field, layout: VersionLayout) -> None:
        text = self.text
        items = self.items(source, field)
        self.length(f"len({items})", length_code(field, layout), compact=layout.compact(field))
        if is_number(field.type):
            pack = text.helper(f"PACK_{field.type.upper()}S")
            text.add(f"if {items}:", f"    {self.out}({pack}[len({items})](*{items}))")
            return
        inner = layout.inner(field)
        item = text.item(field.name)
        with text.block(f"for {item} in {items}:"):
            if inner is not None:
                text.refuse(f"{item}.__class__ is not {text.struct(inner.cls)}")
                self.struct(item, inner)
            elif field.type in FIXED:
                self.fixed(item, field)
            else:
                self.sized(item, field, layout)
            self.flush()

    # --- tagged fields ---

    def tags(self, source: str, layout: VersionLayout) -> None:
        """The section of tagged fields after a struct's others."""
        text = self.text
        known = self.known_tags(source, layout) if layout.tagged else ""
        reserved = numbers([*sorted(layout.tagged), *sorted(layout.reserved)])
        arguments = ", ".join(filter(None, [known or "[]", f"{source}.tags", reserved]))
        with text.block(f"if {known} or {source}.tags:" if known else f"if {source}.tags:"):
            self.put(extra=f"{text.helper('write_tags')}({arguments})")
        with text.block("else:"):
            self.put(("0", "x"))
        self.run = []

    def known_tags(self, source: str, layout: VersionLayout) -> str:
        """The tagged fields that are set, with their bytes, in a local list that is named."""
        text = self.text
        known = text.local("known_tags")
        text.add(f"{known}: list[tuple[int, bytes]] = []")
        outer, pending = self.out, self.run
        for field in layout.tagged_in_order:
            text.condition(self.is_set(source, field))
            with text.deeper():
                part = text.local("part")
                text.add(f"{part}: list[bytes] = []")
                self.out, self.run = f"{part}.append", []
                self.field(source, field, layout)
                self.flush()
                text.add(f'{known}.append(({field.tag}, b"".join({part})))')
        self.out, self.run = outer, pending
        return known


def length_code(field: Field, layout: VersionLayout) -> str:
    """The type of a field's length or count where it isn't compact."""
    return "h" if (layout.table.short_counts if field.array else field.type == "string") else "i"


def constant(run: Run) -> str | None:
    """The bytes of a run of constants as an expression; None if a value isn't one."""
    if not run or not all(value.lstrip("-").isdecimal() for value, _ in run):
        return None
    codes = "".join(code for _, code in run)
    return repr(struct.pack(f">{codes}", *[int(value) for value, code in run if code != "x"]))
