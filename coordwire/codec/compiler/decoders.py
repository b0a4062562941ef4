"""Field tables to decoders: straight lines, one fused `struct` call for each run of fixed fields.

Strategy: fixed fields gather in a run; the byte or short of the length after them joins it, and one
precompiled unpack reads them all. Strings are slices; nested structs are filled in the loop. Rules: only the
checks that safety needs are made: lengths below null, counts against the bytes left and the budgets. A slice
may run past the end; the position then does too, and the caller's last comparison refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import calcsize

from coordwire.codec.compiler.function import Function
from coordwire.codec.fields import CODES, FIXED, TEXTS, Field, VersionLayout
from coordwire.limits import MAX_ARRAY_ELEMENTS


def write_decoder(name: str, layout: VersionLayout) -> Function:
    """`name(data, pos, elements, memory)`: the message at `pos`, and the position after it. elements, memory:
    budgets; any exception means that the interpreter has to look at the bytes."""
    decoder = _Decoder()
    decoder.function(name, layout)
    return decoder.text


def is_number(kind: str) -> bool:
    """Whether an array of this type is read and written by one `struct` call."""
    return kind in FIXED and kind not in ("bool", "uuid")


def numbers(tags: list[int]) -> str:
    """Tags as a tuple's text; nothing for none."""
    return f"({', '.join(map(str, tags))}{',' if len(tags) == 1 else ''})" if tags else ""


class _Decoder:
    """Writes one function."""

    def __init__(self) -> None:
        self.text = Function()
        self.run: list[tuple[str, str]] = []  # targets and codes of the fixed fields not yet read
        self.after: list[str] = []  # what converts them then
        self.end = "end"
        self.late = False  # whether a budget is charged without a look at it

    def function(self, name: str, layout: VersionLayout) -> None:
        text = self.text
        cls, new = text.struct(layout.cls), text.helper("new")
        arguments = ["data: bytes", "pos: int", "elements: int", "memory: int"]
        text.call(f"def {name}", arguments, f" -> tuple[{cls}, int]:")
        with text.deeper():
            if self.is_bounded(layout):
                text.add("end = len(data)")
            text.add(f"m = {new}({cls})")
            self.struct("m", layout)
            if self.late:
                text.refuse("elements < 0", "memory < 0")
            text.add("return m, pos")

    def is_bounded(self, layout: VersionLayout) -> bool:
        """Whether something in a struct is compared with the bytes left."""
        return any(
            field.unprefixed
            or (field.array and not is_number(field.type))
            or (field.struct is not None and self.is_bounded(field.struct._layout_.at(layout.version)))
            for field in [*layout.inline, *layout.tagged.values()]
        )

    # --- runs of fixed fields ---

    def take(self, target: str, code: str, after: str | None = None) -> None:
        """Read a fixed field with the others of its run; `after`: a line that follows."""
        self.run.append((target, code))
        if after:
            self.after.append(after)

    def flush(self) -> None:
        """Read the run."""
        text = self.text
        if self.run:
            codes = "".join(code for _, code in self.run)
            targets = [target for target, _ in self.run]
            if codes == "B":
                text.add(f"{targets[0]} = data[pos]")
            else:
                text.unpack_into(targets, f"{text.unpack(codes)}(data, pos)")
            text.add(f"pos += {calcsize(f'>{codes}')}", *self.after)
        self.run, self.after = [], []

    # --- structs ---

    def struct(self, target: str, layout: VersionLayout) -> None:
        """Fill the object that `target` names."""
        text = self.text
        for field in layout.absent:
            text.add(f"{text.attribute(target, field)} = {text.default(field)}")
        for field in layout.inline:
            self.field(target, field, layout)
        if layout.flexible:
            self.tags(target, layout)
        else:
            self.flush()
            text.add(f"{target}.tags = None")

    def field(self, owner: str, field: Field, layout: VersionLayout) -> None:
        target = self.text.attribute(owner, field)
        if field.unprefixed:
            self.unprefixed(target, field, layout)
        elif field.array:
            self.array(target, field, layout)
        elif field.struct is not None:
            self.nested(target, field, layout)
        elif field.type in FIXED:
            self.fixed(target, field)
        else:
            self.sized(target, field, layout)

    def unprefixed(self, target: str, field: Field, layout: VersionLayout) -> None:
        """Bytes, or structs each after its size, up to the end."""
        text = self.text
        self.flush()
        inner = layout.inner(field)
        if inner is None:
            text.refuse(f"pos > {self.end}")
            text.add(f"{target} = data[pos:{self.end}]", f"pos = {self.end}")
            return
        items, item = text.local(field.name), text.item(field.name)
        text.add(f"{target} = {items} = []")
        outer, self.end = self.end, text.local(f"{item}_end")
        with text.block(f"while pos < {outer}:"):
            text.add("elements -= 1", f"memory -= {layout.element_memory_cost(field)}")
            self.take("n", "i")
            self.flush()
            text.add(f"{self.end} = pos + n")
            text.refuse("n < 0", f"{self.end} > {outer}", "elements < 0", "memory < 0")
            text.add(f"{item} = new({text.struct(inner.cls)})", f"{items}.append({item})")
            self.struct(item, inner)
            text.refuse(f"pos != {self.end}")
        self.end = outer

    def fixed(self, target: str, field: Field) -> None:
        text = self.text
        code = CODES[field.type]
        if field.type in ("bool", "uuid"):
            raw = text.local(field.name)
            if field.type == "bool":
                self.take(raw, code, f"{target} = {text.helper('BOOLEANS')}[{raw}]")
            else:
                self.take(raw, code, f"{target} = {text.helper('as_uuid')}({raw})")
        else:
            self.take(target, code)

    def length(self, code: str, *, compact: bool, null: bool, text: bool = False) -> None:
        """Read a length or count into n: the number + 1 if compact; else of type `code`, and -1 for null."""
        if compact:
            self.take("n", "B")
            self.flush()
            reader = self.text.helper("long_string" if text else "long_uvarint")
            self.text.add("if n > 127:" if null else "if not 0 < n < 128:")
            self.text.add(f"    n, pos = {reader}(data, pos, n)")
        else:
            self.take("n", code)
            self.flush()
            self.text.refuse(f"n < {-1 if null else 0}")

    def sized(self, target: str, field: Field, layout: VersionLayout) -> None:
        """A string or bytes."""
        null = field.nullable(layout.version)
        value = self.slice(field, layout, null=null)
        if null:  # empty is what most strings that could be null are
            empty = '""' if field.type in TEXTS else 'b""'
            nonempty, none = ("n > 1", "n") if layout.compact(field) else ("n > 0", "n == 0")
            value += f" if {nonempty} else {empty} if {none} else None"
        self.text.add(f"{target} = {value}")

    def slice(self, field: Field, layout: VersionLayout, *, null: bool) -> str:
        """Read a string's or bytes' length; their value as an expression that moves the position too."""
        string, compact = field.type in TEXTS, layout.compact(field)
        self.length("h" if field.type == "string" else "i", compact=compact, null=null, text=string)
        return f"data[pos : (pos := pos + n{' - 1' * compact})]{'.decode()' * string}"

    def one_or_null(self, target: str, null: str, write: Callable[[], None]) -> None:
        """`write` what reads a value; None where the condition `null` holds, if there is one."""
        if not null:
            write()
            return
        with self.text.block(f"if {null}:"):
            self.text.add(f"{target} = None")
        with self.text.block("else:"):
            write()

    def nested(self, target: str, field: Field, layout: VersionLayout) -> None:
        """A struct; one that may be null is after a marker."""
        text = self.text
        inner = layout.inner(field)
        assert inner is not None

        def fill() -> None:
            name = text.local(field.name)
            text.add(f"{target} = {name} = new({text.struct(inner.cls)})")
            self.struct(name, inner)

        if not field.nullable(layout.version):
            fill()
            return
        self.take("n", "b")
        self.flush()
        with text.block("if n == 1:"):
            fill()
        with text.block("elif n == -1:" if field.tag is None else "elif n == 0:"):
            text.add(f"{target} = None")
        with text.block("else:"):
            text.add(f"raise {text.helper('Refused')}")

    # --- arrays ---

    def array(self, target: str, field: Field, layout: VersionLayout) -> None:
        compact, null = layout.compact(field), field.nullable(layout.version)
        self.length("h" if layout.table.short_counts else "i", compact=compact, null=null)
        is_null = "" if not null else "n == 0" if compact else "n < 0"
        self.one_or_null(target, is_null, lambda: self.elements(target, field, layout))

    def elements(self, target: str, field: Field, layout: VersionLayout) -> None:
        """The elements of an array, after its count."""
        text, kind, compact = self.text, field.type, layout.compact(field)
        if kind == "int32" and compact:  # the commonest: looked up by the count + 1
            self.late = True
            text.add("elements -= n", f"{target} = [*{text.helper('UNPACK_COMPACT_INT32S')}[n](data, pos)]")
            text.add("pos += 4 * n - 4")
            return
        if compact:
            text.add("n -= 1")
        text.add("elements -= n")
        if cost := layout.element_memory_cost(field):
            text.add(f"memory -= n * {cost}")
        if is_number(kind):  # unpacking compares with the bytes left itself; the budgets wait for the end
            self.late = True
            unpack = text.helper(f"UNPACK_{kind.upper()}S")
            text.add(f"{target} = [*{unpack}[n](data, pos)]", f"pos += {FIXED[kind]} * n")
            return
        min_size = layout.element_min_size(field)
        text.refuse(
            f"n{f' * {min_size}' if min_size != 1 else ''} > {self.end} - pos",
            f"n > {MAX_ARRAY_ELEMENTS}",
            "elements < 0",
            "memory < 0",
        )
        if kind == "bool":
            booleans = text.helper("BOOLEANS")
            text.add(f"{target} = [{booleans}[byte] for byte in data[pos : pos + n]]", "pos += n")
        elif kind == "uuid":
            uuid = f"{text.helper('as_uuid')}(data[at : at + 16])"
            text.add(f"{target} = [{uuid} for at in range(pos, pos + 16 * n, 16)]", "pos += 16 * n")
        else:
            self.objects(target, field, layout)

    def objects(self, target: str, field: Field, layout: VersionLayout) -> None:
        """Elements that are read one by one: structs, strings or bytes."""
        text = self.text
        items = text.local(field.name)
        inner = layout.inner(field)
        if inner is not None:
            item = text.item(field.name)
            repeated = f"{text.helper('repeat')}({text.struct(inner.cls)}, n)"
            text.add(f"{target} = {items} = list(map(new, {repeated}))")
            with text.block(f"for {item} in {items}:"):
                self.struct(item, inner)
        else:
            text.add(f"{target} = {items} = []")
            with text.block("for _ in range(n):"):
                value = self.slice(field, layout, null=False)
                text.add(f"{items}.append({value})")

    # --- tagged fields ---

    def tags(self, target: str, layout: VersionLayout) -> None:
        """The section of tagged fields after a struct's others."""
        text = self.text
        self.take("n", "B")
        self.flush()
        text.add(f"{target}.tags = None")
        tagged = layout.tagged_in_order
        for field in tagged:
            text.add(f"{text.attribute(target, field)} = {text.default(field)}")
        with text.block("if n:"):
            if tagged:
                self.known_tags(target, tagged, layout)
            else:
                arguments = ["data", "pos", "n", "elements", "memory", numbers(sorted(layout.reserved))]
                head = f"{target}.tags, pos, elements, memory = {text.helper('unknown_tags')}"
                text.call(head, list(filter(None, arguments)))

    def known_tags(self, target: str, tagged: list[Field], layout: VersionLayout) -> None:
        """A section in which each field may be one of `tagged`."""
        text = self.text
        count, read = text.helper("tag_count"), text.helper("read_tag")
        tag, stop = text.local("this_tag"), text.local("tag_stop")
        text.add(f"n, pos, elements, memory = {count}(data, pos, n, elements, memory)", f"{tag} = -1")
        with text.block("for _ in range(n):"):
            text.add(f"{tag}, pos, {stop} = {read}(data, pos, {tag})")
            for field in tagged:
                with text.block(f"{'if' if field is tagged[0] else 'elif'} {tag} == {field.tag}:"):
                    self.field(target, field, layout)
                    self.flush()
            if layout.reserved:
                first, *further = reserved = sorted(layout.reserved)
                with text.block(f"elif {tag} {f'in {numbers(reserved)}' if further else f'== {first}'}:"):
                    text.add(f"raise {text.helper('Refused')}")
            with text.block("else:"):
                with text.block(f"if {target}.tags is None:"):
                    text.add(f"{target}.tags = {{}}")
                text.add(f"{target}.tags[{tag}] = data[pos:{stop}]", f"pos = {stop}")
            text.refuse(f"pos != {stop}")
