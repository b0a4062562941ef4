"""A plan to the text of an encoder: the same runs as the decoder's, packed, and the parts joined at the end.

Strategy: fixed fields gather in a run; the length behind them joins it where it fits its byte. Rules: types
are checked as far as packing would let a wrong one through (booleans, uuids, lists, bytes, structs); anything
odd raises, and the exact writer says what it was.
"""

from __future__ import annotations

import struct

from schemas._generate.decoders import default_text, is_number, numbers
from schemas._generate.plan import FIXED, Node, Plan
from schemas._generate.text import Names, Text
from schemas._generate.walk import NEVER, Row


class Encoder:
    """Writes one function. `formats` collects the struct codes that it needs, `imports` the helpers."""

    def __init__(self, text: Text, formats: set[str], imports: set[str]) -> None:
        self.text = text
        self.formats = formats
        self.imports = imports
        self.names = Names()
        self.run: list[tuple[str, str]] = []
        self.add = "out.append"

    def function(self, name: str, plan: Plan) -> None:
        head = f"def {name}(m: {plan.name}) -> bytes:"
        if not self.text.fits(head):
            self.text.add(f"def {name}(", f"    m: {plan.name},")
            head = ") -> bytes:"
        with self.text.block(head):
            self.text.add("out: list[bytes] = []")
            self.struct("m", plan)
            self.flush()
            self.text.add('return b"".join(out)')

    def _use(self, *helpers: str) -> None:
        self.imports.update(helpers)

    def refuse(self, *conditions: str) -> None:
        self._use("Refused")
        self.text.test("if", conditions)
        self.text.add("    raise Refused")

    # --- runs of fixed fields ---

    def pack(self, *more: tuple[str, str]) -> list[str]:
        """The pending run and what follows it as a call: its head, then its arguments."""
        run = [*self.run, *more]
        codes = "".join(code for _, code in run)
        self.formats.add("=" + codes)
        return [f"_pack_{codes}", *[value for value, code in run if code != "x"]]

    def put(self, *more: tuple[str, str], extra: str = "") -> None:
        """Write the pending run with `more` in it, then `extra`; the run stays pending."""
        if more and not self.run and (literal := constant(more)):
            self.text.add(f"{self.add}({literal})")
        elif self.run or more:
            head, *arguments = self.pack(*more)
            if self.text.fits(line := f"{self.add}({head}({', '.join(arguments)}))"):
                self.text.add(line)
            else:
                with self.text.block(f"{self.add}("):
                    self.text.call(head, arguments)
                self.text.add(")")
        if extra:
            self.text.add(f"{self.add}({extra})")

    def flush(self) -> None:
        self.put()
        self.run = []

    # --- structs ---

    def struct(self, source: str, plan: Plan) -> None:
        for row in plan.absent:
            if not row.ignorable:
                self.refuse(*is_set(f"{source}.{row.name}", row))
        for node in plan.inline:
            self.node(f"{source}.{node.row.name}", node)
        if plan.flexible:
            self.tags(source, plan)
        else:
            self.refuse(f"{source}.tags")

    def node(self, source: str, node: Node) -> None:
        if node.row.bare:
            self.bare(source, node)
        elif node.row.array:
            self.one_or_null(source, node, lambda: self.array(source, node))
        elif node.inner is not None:
            self.nested(source, node, node.inner)
        elif node.row.type in FIXED:
            self.fixed(source, node.row.type)
        else:
            self.one_or_null(source, node, lambda: self.sized(source, node))

    def bare(self, source: str, node: Node) -> None:
        """Bytes, or sized structs, up to the end."""
        add = self.text.add
        self.flush()
        if node.inner is None:
            self._use("as_bytes")
            add(f"value = {source}", "if value.__class__ is not bytes:", "    value = as_bytes(value)")
            add(f"{self.add}(value)")
            return
        self._use("as_list")
        self.formats.add("=i")
        items, item = self.names.take(node.row.name), self.names.item(node.row.name)
        add(f"{items} = {source}", f"if {items}.__class__ is not list:", f"    {items} = as_list({items})")
        with self.text.block(f"for {item} in {items}:"):
            self.refuse(f"{item}.__class__ is not {node.inner.name}")
            part = self.names.take("part")
            add(f"{part}: list[bytes] = []")
            outer, self.add = self.add, f"{part}.append"
            self.struct(item, node.inner)
            self.flush()
            self.add = outer
            add(f'value = b"".join({part})', f"{self.add}(_pack_i(len(value)))", f"{self.add}(value)")

    def fixed(self, source: str, kind: str) -> None:
        code = FIXED[kind][0]
        if kind == "bool":
            self.refuse(f"{source}.__class__ is not bool")
        elif kind == "uuid":
            self._use("UUID")
            self.refuse(f"{source}.__class__ is not UUID")
            source += ".bytes"
        self.run.append((source, code))

    def one_or_null(self, source: str, node: Node, write: object) -> None:
        """`write` what follows the pending run, or null."""
        assert callable(write)
        if not node.null:
            write()
            return
        pending = self.run
        with self.text.block(f"if {source} is None:"):
            self.put(self.null(node))
        with self.text.block("else:"):
            self.run = pending
            write()
            self.flush()
        self.run = []

    def null(self, node: Node) -> tuple[str, str]:
        if node.compact:
            return "0", "B"
        return "-1", "h" if node.short or (node.row.type == "string" and not node.row.array) else "i"

    def length(self, node: Node, count: str, *, text: bool) -> None:
        """Write the pending run and a length or count."""
        add = self.text.add
        if not node.compact:
            self.put((count, "h" if text or node.short else "i"))
        else:
            if not self.run:
                self._use(table := "STRING_LENGTHS" if text else "LENGTHS")
                add(f"{self.add}({table}[{count}])")
                return
            writer = "string_length" if text else "uvarint"
            self._use(writer)
            add(f"n = {count} + 1")
            with self.text.block("if n < 128:"):
                self.put(("n", "B"))
            with self.text.block("else:"):
                self.put(extra=f"{writer}(n)")
        self.run = []

    def sized(self, source: str, node: Node) -> None:
        if node.row.type == "string":
            if node.row.null < NEVER and not node.null and not node.row.array:
                self.refuse(f"{source} is None")
            self.text.add(f"text = {source}.encode()")
            self.length(node, "len(text)", text=True)
            self.text.add(f"{self.add}(text)")
        else:
            self._use("as_bytes")
            self.text.add(
                f"value = {source}", "if value.__class__ is not bytes:", "    value = as_bytes(value)"
            )
            self.length(node, "len(value)", text=False)
            self.text.add(f"{self.add}(value)")

    def nested(self, source: str, node: Node, plan: Plan) -> None:
        name = self.names.take(node.row.name)

        def write() -> None:
            self.text.add(f"{name} = {source}")
            self.refuse(f"{name}.__class__ is not {plan.name}")
            self.struct(name, plan)

        if not node.null:
            write()
            return
        pending = self.run
        with self.text.block(f"if {source} is None:"):
            self.put(("-1" if node.row.tag is None else "0", "b"))
        with self.text.block("else:"):
            self.run = [*pending, ("1", "b")]
            write()
            self.flush()
        self.run = []

    # --- arrays ---

    def array(self, source: str, node: Node) -> None:
        add = self.text.add
        self._use("as_list")
        items = self.names.take(node.row.name)
        add(f"{items} = {source}", f"if {items}.__class__ is not list:", f"    {items} = as_list({items})")
        self.length(node, f"len({items})", text=False)
        kind = node.row.type
        if is_number(kind):
            self._use(pack := f"PACK_{kind.upper()}S")
            add(f"if {items}:", f"    {self.add}({pack}[len({items})](*{items}))")
        elif node.inner is not None:
            item = self.names.item(node.row.name)
            with self.text.block(f"for {item} in {items}:"):
                self.refuse(f"{item}.__class__ is not {node.inner.name}")
                self.struct(item, node.inner)
                self.flush()
        elif kind in FIXED:
            item = self.names.item(node.row.name)
            with self.text.block(f"for {item} in {items}:"):
                self.fixed(item, kind)
                self.flush()
        else:
            item = self.names.item(node.row.name)
            one = Node(node.row, False, node.compact, False, None, 0, 0, 0)
            with self.text.block(f"for {item} in {items}:"):
                self.sized(item, one)

    # --- tagged fields ---

    def tags(self, source: str, plan: Plan) -> None:
        add = self.text.add
        self._use("write_tags")
        known = "[]"
        reserved = numbers(
            (*(node.row.tag for node in plan.tagged if node.row.tag is not None), *plan.barred)
        )
        if plan.tagged:
            known = self.names.take("known_tags")
            add(f"{known}: list[tuple[int, bytes]] = []")
            outer, pending = self.add, self.run
            for node in plan.tagged:
                field = f"{source}.{node.row.name}"
                self.text.test("if", is_set(field, node.row))
                with self.text.deeper():
                    part = self.names.take("part")
                    add(f"{part}: list[bytes] = []")
                    self.add, self.run = f"{part}.append", []
                    self.node(field, node)
                    self.flush()
                    add(f'{known}.append(({node.row.tag}, b"".join({part})))')
            self.add, self.run = outer, pending
        condition = f"{known} or {source}.tags" if plan.tagged else f"{source}.tags"
        arguments = [known, f"{source}.tags", *filter(None, [reserved])]
        with self.text.block(f"if {condition}:"):
            self.put(extra=f"write_tags({', '.join(arguments)})")
        with self.text.block("else:"):
            self.put(("0", "x"))
        self.run = []


def constant(run: tuple[tuple[str, str], ...]) -> str | None:
    """The bytes of a run of constants as an expression; None if a value isn't one."""
    values = [(value, code) for value, code in run if value.lstrip("-").isdecimal()]
    if len(values) < len(run):
        return None
    packed = struct.pack(">" + "".join(code for _, code in run), *[int(v) for v, code in run if code != "x"])
    return 'b"' + "".join(f"\\x{byte:02x}" for byte in packed) + '"'


def is_set(source: str, row: Row) -> list[str]:
    """Conditions of which one holds if the field differs from its default."""
    if row.default is None:
        return [f"{source} is not None"]
    if row.struct is not None and not row.array:
        inner = [
            condition for field in row.struct.fields for condition in is_set(f"{source}.{field.name}", field)
        ]
        return [*([f"{source} is None"] if row.null < NEVER else []), *inner, f"{source}.tags"]
    if row.type == "bool" and not row.array:
        return [f"{source} is not {row.default}"]  # None, for one, is neither the default nor a boolean
    if row.type == "uuid" and not row.array:
        return [f"{source}.int != 0"]
    return [f"{source} != {default_text(row.default, row.type, array=row.array, struct=None)}"]
