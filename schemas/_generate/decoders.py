"""A plan to the text of a decoder: straight lines, one fused `struct` call for each run of fixed fields.

Strategy: fixed fields gather in a run; the byte or short of the length behind them joins it, and one
precompiled unpack reads them all. Strings are slices; nested structs are filled in the loop. Checks are the
least that is safe: lengths below null, counts against the bytes left and the budgets. A slice may run past
the end; the position then does too, and the caller's last comparison refuses it.
"""

from __future__ import annotations

from schemas._generate.plan import FIXED, Node, Plan
from schemas._generate.text import Names, Text


def default_text(node_default: object, kind: str, *, array: bool, struct: str | None) -> str:
    """A default as an expression, a new object where it can be changed."""
    if node_default is None:
        return "None"
    if array:
        return "[]"
    if struct is not None:
        return f"{struct}()"
    if kind == "uuid":
        return "ZERO_UUID"
    if isinstance(node_default, str):
        return '"' + node_default.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if isinstance(node_default, bytes):
        return 'b"' + repr(node_default)[2:-1].replace('"', '\\"') + '"'
    if (
        isinstance(node_default, int)
        and not isinstance(node_default, bool)
        and abs(node_default) >= 1 << 31 - 1
    ):
        return f"{'-' * (node_default < 0)}0x{abs(node_default):X}"
    return repr(node_default)


class Decoder:
    """Writes one function. `formats` collects the struct codes that it needs, `imports` the helpers."""

    def __init__(self, text: Text, formats: set[str], imports: set[str]) -> None:
        self.text = text
        self.formats = formats
        self.imports = imports
        self.names = Names()
        self.run: list[tuple[str, str]] = []
        self.after: list[str] = []
        self.end = "end"
        self.deferred = False

    def function(self, name: str, plan: Plan) -> None:
        arguments, result = "data: bytes, pos: int, elements: int, memory: int", f"tuple[{plan.name}, int]"
        head = f"def {name}({arguments}) -> {result}:"
        if not self.text.fits(head):
            self.text.add(f"def {name}(", f"    {arguments}")
            head = f") -> {result}:"
        with self.text.block(head):
            self.text.add("end = len(data)") if self._bounded(plan) else None
            self._use("new")
            self.text.add(f"m = new({plan.name})")
            self.struct("m", plan)
            if self.deferred:
                self.text.add("if elements < 0 or memory < 0:", "    raise Refused")
            self.text.add("return m, pos")

    def _bounded(self, plan: Plan) -> bool:
        return any(
            node.row.bare
            or (node.row.array and not is_number(node.row.type))
            or (node.inner and self._bounded(node.inner))
            for node in plan.inline + plan.tagged
        )

    def _use(self, *helpers: str) -> None:
        self.imports.update(helpers)

    # --- runs of fixed fields ---

    def take(self, target: str, code: str, after: str | None = None) -> None:
        self.run.append((target, code))
        if after:
            self.after.append(after)

    def flush(self) -> None:
        if self.run:
            codes = "".join(code for _, code in self.run)
            targets = [target for target, _ in self.run]
            if codes == "B":
                self.text.add(f"{targets[0]} = data[pos]")
            else:
                self.formats.add(codes)
                self.text.unpack(targets, f"_unpack_{codes}(data, pos)")
            self.text.add(f"pos += {size_of(codes)}", *self.after)
        self.run, self.after = [], []

    # --- structs ---

    def struct(self, target: str, plan: Plan) -> None:
        for row in plan.absent:
            struct = row.struct.name if row.struct else None
            value = default_text(row.default, row.type, array=row.array, struct=struct)
            if value == "ZERO_UUID":
                self._use(value)
            self.text.add(f"{target}.{row.name} = {value}")
        for node in plan.inline:
            self.node(f"{target}.{node.row.name}", node)
        if plan.flexible:
            self.tags(target, plan)
        else:
            self.flush()
            self.text.add(f"{target}.tags = None")

    def node(self, target: str, node: Node) -> None:
        if node.row.bare:
            self.bare(target, node)
        elif node.row.array:
            self.array(target, node)
        elif node.inner is not None:
            self.nested(target, node, node.inner)
        elif node.row.type in FIXED:
            self.fixed(target, node.row.type)
        else:
            self.sized(target, node)

    def bare(self, target: str, node: Node) -> None:
        """Bytes, or sized structs, up to the end."""
        add = self.text.add
        self.flush()
        self._use("Refused")
        if node.inner is None:
            add(f"if pos > {self.end}:", "    raise Refused")
            add(f"{target} = data[pos:{self.end}]", f"pos = {self.end}")
            return
        items, item = self.names.take(node.row.name), self.names.item(node.row.name)
        add(f"{target} = {items} = []")
        outer, self.end = self.end, self.names.take(f"{item}_end")
        with self.text.block(f"while pos < {outer}:"):
            add("elements -= 1", f"memory -= {node.element_cost}")
            self.take("n", "i")
            self.flush()
            add(f"{self.end} = pos + n", f"if n < 0 or {self.end} > {outer} or elements < 0 or memory < 0:")
            add("    raise Refused")
            add(f"{item} = new({node.inner.name})", f"{items}.append({item})")
            self.struct(item, node.inner)
            add(f"if pos != {self.end}:", "    raise Refused")
        self.end = outer

    def fixed(self, target: str, kind: str) -> None:
        code = FIXED[kind][0]
        if kind in ("bool", "uuid"):
            raw = self.names.take(target.rpartition(".")[2])
            convert = f"BOOLEANS[{raw}]" if kind == "bool" else f"as_uuid({raw})"
            self._use("BOOLEANS" if kind == "bool" else "as_uuid")
            self.take(raw, code, f"{target} = {convert}")
        else:
            self.take(target, code)

    def length(self, node: Node, *, text: bool) -> None:
        """Read a length or count into n: the number + 1 if compact, -1 for null if classic."""
        add = self.text.add
        if node.compact:
            self.take("n", "B")
            self.flush()
            reader = "long_string" if text else "long_uvarint"
            self._use(reader)
            add("if n > 127:" if node.null else "if not 0 < n < 128:", f"    n, pos = {reader}(data, pos, n)")
        else:
            self.take("n", "h" if text or node.short else "i")
            self.flush()
            self._use("Refused")
            add(f"if n < {-1 if node.null else 0}:", "    raise Refused")

    def sized(self, target: str, node: Node) -> None:
        self.length(node, text=node.row.type == "string")
        value = slice_text(node)
        if node.null:  # empty is what most strings that could be null are
            empty = "b" * (node.row.type != "string") + '""'
            some, none = ("n > 1", "n") if node.compact else ("n > 0", "n == 0")
            value += f" if {some} else {empty} if {none} else None"
        if self.text.fits(line := f"{target} = {value}"):
            self.text.add(line)
        else:
            self.text.add(f"{target} = (", f"    {value}", ")")

    def one_or_null(self, target: str, node: Node, write: object) -> None:
        assert callable(write)
        if not node.null:
            write()
            return
        with self.text.block("if n == 0:" if node.compact else "if n < 0:"):
            self.text.add(f"{target} = None")
        with self.text.block("else:"):
            write()

    def nested(self, target: str, node: Node, plan: Plan) -> None:
        def fill() -> None:
            name = self.names.take(node.row.name)
            self.text.call(f"{target} = {name} = new", [plan.name])
            self.struct(name, plan)

        if not node.null:
            fill()
            return
        self.take("n", "b")
        self.flush()
        self._use("Refused")
        with self.text.block("if n == 1:"):
            fill()
        with self.text.block("elif n == -1:" if node.row.tag is None else "elif n == 0:"):
            self.text.add(f"{target} = None")
        with self.text.block("else:"):
            self.text.add("raise Refused")

    # --- arrays ---

    def array(self, target: str, node: Node) -> None:
        self.length(node, text=False)
        self.one_or_null(target, node, lambda: self.elements(target, node))

    def unpack_all(self, target: str, table: str) -> None:
        """A list of n numbers, unpacked by the table's nth function."""
        unpacked = f"*{table}[n](data, pos)"
        line = f"{target} = [{unpacked}]"
        self.text.add(*[line] if self.text.fits(line) else [f"{target} = [", f"    {unpacked}", "]"])

    def elements(self, target: str, node: Node) -> None:
        add = self.text.add
        kind = node.row.type
        self._use("Refused")
        if kind == "int32" and node.compact:  # the commonest: looked up by the count + 1
            self._use("UNPACK_COMPACT_INT32S")
            self.deferred = True
            add("elements -= n")
            self.unpack_all(target, "UNPACK_COMPACT_INT32S")
            add("pos += 4 * n - 4")
            return
        if node.compact:
            add("n -= 1")
        add("elements -= n")
        if node.element_cost:
            add(f"memory -= n * {node.element_cost}")
        if is_number(kind):  # unpacking compares with the bytes left itself; the budgets wait for the end
            self.deferred = True
        else:
            least = "n" if node.element_least == 1 else f"n * {node.element_least}"
            add(f"if {least} > {self.end} - pos or elements < 0 or memory < 0:", "    raise Refused")
        if node.inner is not None:
            items = self.names.take(node.row.name)
            item = self.names.item(node.row.name)
            self._use("repeat")
            self.text.call(f"{target} = {items} = list", [f"map(new, repeat({node.inner.name}, n))"])
            with self.text.block(f"for {item} in {items}:"):
                self.struct(item, node.inner)
        elif kind == "bool":
            self._use("BOOLEANS")
            add(f"{target} = [BOOLEANS[byte] for byte in data[pos : pos + n]]", "pos += n")
        elif kind == "uuid":
            self._use("as_uuid")
            add(
                f"{target} = [as_uuid(data[at : at + 16]) for at in range(pos, pos + 16 * n, 16)]",
                "pos += 16 * n",
            )
        elif kind in FIXED:
            unpack = f"UNPACK_{kind.upper()}S"
            self._use(unpack)
            self.unpack_all(target, unpack)
            add(f"pos += {FIXED[kind][1]} * n")
        else:
            items = self.names.take(node.row.name)
            add(f"{target} = {items} = []")
            one = Node(node.row, False, node.compact, False, None, 0, 0, 0)
            with self.text.block("for _ in range(n):"):
                self.length(one, text=kind == "string")
                add(f"{items}.append({slice_text(one)})")

    # --- tagged fields ---

    def tags(self, target: str, plan: Plan) -> None:
        add = self.text.add
        self.take("n", "B")
        self.flush()
        add(f"{target}.tags = None")
        for node in plan.tagged:
            row = node.row
            value = default_text(
                row.default, row.type, array=row.array, struct=row.struct.name if row.struct else None
            )
            if value == "ZERO_UUID":
                self._use(value)
            add(f"{target}.{row.name} = {value}")
        if not plan.tagged:
            self._use("unknown_tags")
            with self.text.block("if n:"):
                arguments = ["data", "pos", "n", "elements", "memory", *filter(None, [numbers(plan.barred)])]
                self.text.call(f"{target}.tags, pos, elements, memory = unknown_tags", arguments)
            return
        self._use("tag_count", "read_tag", "Refused")
        tag, stop = self.names.take("this_tag"), self.names.take("tag_stop")
        with self.text.block("if n:"):
            add("n, pos, elements, memory = tag_count(data, pos, n, elements, memory)", f"{tag} = -1")
            with self.text.block("for _ in range(n):"):
                add(f"{tag}, pos, {stop} = read_tag(data, pos, {tag})")
                for number, node in enumerate(plan.tagged):
                    with self.text.block(f"{'elif' if number else 'if'} {tag} == {node.row.tag}:"):
                        self.node(f"{target}.{node.row.name}", node)
                        self.flush()
                if plan.barred:
                    one = plan.barred[0] if len(plan.barred) == 1 else None
                    test = f"in {numbers(plan.barred)}" if one is None else f"== {one}"
                    add(f"elif {tag} {test}:", "    raise Refused")
                with self.text.block("else:"):
                    with self.text.block(f"if {target}.tags is None:"):
                        add(f"{target}.tags = {{}}")
                    add(f"{target}.tags[{tag}] = data[pos:{stop}]", f"pos = {stop}")
                add(f"if pos != {stop}:", "    raise Refused")


def numbers(tags: tuple[int, ...]) -> str:
    """Tags as a tuple's text; nothing for none."""
    return f"({', '.join(map(str, tags))}{',' if len(tags) == 1 else ''})" if tags else ""


def slice_text(node: Node) -> str:
    """A string or bytes of `n`, and the position moved behind it, as an expression."""
    decode = ".decode()" if node.row.type == "string" else ""
    return f"data[pos : (pos := pos + n{' - 1' if node.compact else ''})]{decode}"


def is_number(kind: str) -> bool:
    """Whether an array of this type is read and written by one `struct` call."""
    return kind in FIXED and kind not in ("bool", "uuid")


def size_of(codes: str) -> int:
    sizes = {"b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "s": 16, "x": 1, "?": 1}
    return sum(sizes[code] for code in codes.replace("16s", "s"))
