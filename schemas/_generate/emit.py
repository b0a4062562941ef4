"""Rows to the modules of messages: `coordwire/messages/NAME.py`.

Strategy: a module holds a dataclass for each message and struct, whose fields say their wire form too; what
encodes and decodes them is `coordwire.codec`. Rules: the text is the same on every machine and finally
formatted; it opens with a banner that says where it comes from; it is meant to be read by people.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable
from uuid import UUID

from schemas._generate.text import BANNER, STEP, WIDTH, Text, literal
from schemas._generate.walk import NEVER, ModuleRow, Row, StructRow
from schemas.vocabulary import FOREVER, LOGS

_PYTHON = {
    "bool": "bool", "float64": "float", "uuid": "UUID", "string": "str", "long_string": "str",
    "bytes": "bytes", "records": "bytes",
}  # fmt: skip
_EMPTY = {
    "bool": "False", "float64": "0.0", "string": '""', "long_string": '""', "bytes": 'b""', "records": 'b""',
}  # fmt: skip
"""The defaults of types that are not integers, where a schema names none."""


def module_text(module: ModuleRow) -> str:
    """The text of one module."""
    body = Text()
    for struct in module.structs:
        _class(body, struct, module)
    return str(_head(module)) + str(body)


def _head(module: ModuleRow) -> Text:
    head = Text()
    head.add(BANNER.format(source=module.source), *_docstring(module.doc), "")
    head.add("from __future__ import annotations")
    rows = [row for struct in module.structs for row in struct.fields]
    used = {"wire_class"} | {_base(struct) for struct in module.structs} | {_word(row) for row in rows}
    if any(row.type == "uuid" for row in rows):
        head.add("", "from uuid import UUID")
    if any(_default(row) == "ZERO_UUID" for row in rows):
        used.add("ZERO_UUID")
    names = sorted(used, key=lambda name: (not name.isupper(), name))
    head.add("", f"from coordwire.codec import {', '.join(names)}")
    return head


def _docstring(doc: str) -> list[str]:
    doc = doc.replace("\\", "\\\\")
    if "\n" not in doc and len(doc) + 6 <= WIDTH - 4:
        return [f'"""{doc}"""']
    lines = []
    for number, paragraph in enumerate(doc.split("\n\n")):
        lines += [""] if number else []
        lines += textwrap.wrap(" ".join(paragraph.split()), WIDTH - 10)
    return ['"""' + lines[0], *lines[1:], '"""']


# --- classes ---


def _base(struct: StructRow) -> str:
    """The base class; a request without an api key may be without a response."""
    message = struct.message
    if message is None:
        return "Struct"
    return message.direction.capitalize() if message.api else "Message"


def _class(text: Text, struct: StructRow, module: ModuleRow) -> None:
    text.add("", "", "@wire_class")
    text.call(f"class {struct.name}", list(_class_arguments(struct, module)), ":")
    with text.deeper():
        text.add(*_docstring(_struct_doc(struct, module)), "")
        for row in struct.fields:
            text.call(f"{row.name}: {_annotation(row)} = {_word(row)}", list(_field_arguments(row)))
            text.add(*_docstring(_field_doc(row)))
        text.add("tags: dict[int, bytes] | None = None")


def _class_arguments(struct: StructRow, module: ModuleRow) -> Iterable[str]:
    """The base class and the facts about the class."""
    response, request = module.response(struct), module.request(struct)
    yield _base(struct) + (f'["{response.name}"]' if response else "")
    if request is not None:
        yield f"answers={request.name}"
    message = struct.message
    if message is not None:
        if message.api is not None:
            yield f"api_key={message.api.key}"
        elif message.direction != "data":
            yield f'direction="{message.direction}"'
        yield f"versions=({message.versions.start}, {message.versions.stop - 1})"
    if struct.flexible != NEVER:
        yield f"flexible={struct.flexible}"
    if struct.short_counts:
        yield "short_counts=True"


def _struct_doc(struct: StructRow, module: ModuleRow) -> str:
    """A class's docs. An API's are the request's; its response has only what is said of it alone."""
    message = struct.message
    if message is None:
        return struct.doc
    if message.log_role is not None:
        log, record_type, role = message.log_role
        return f"{struct.doc}\n\n{role.capitalize()} of record type {record_type} in {LOGS[log]}."
    request = module.request(struct)
    return f"The response to {request.name}." if request and not message.doc else struct.doc


def _field_doc(row: Row) -> str:
    if row.first > 0 and row.last < FOREVER:
        versions = f"v{row.first}-v{row.last}"
    elif row.last < FOREVER:
        versions = f"v0-v{row.last}"
    else:
        versions = f"v{row.first}+" if row.first else ""
    marks = [versions] if versions else []
    if row.tag is not None:
        marks.append(f"tag {row.tag}")
    if 0 < row.null < NEVER and row.null > row.first:
        marks.append(f"null from v{row.null}")
    if row.null_until < FOREVER:
        marks.append(f"null up to v{row.null_until}")
    return row.doc + (f" ({', '.join(marks)})" if marks else "")


def _annotation(row: Row) -> str:
    base = row.struct.name if row.struct else _PYTHON.get(row.type, "int")
    annotation = f"list[{base}]" if row.array else base
    return f"{annotation} | None" if row.null < NEVER or row.default is None else annotation


def _word(row: Row) -> str:
    """What declares the field."""
    return "array" if row.array else "struct" if row.struct else "field"


def _default(row: Row) -> str:
    """The default, as a reader would write it."""
    if row.default is None:
        return "None"
    if row.array:
        return "[]"
    if row.struct:
        return f"{row.struct.name}()"
    if row.type == "uuid":
        assert row.default == UUID(int=0), f"{row.name}: a uuid that is not zero has no name to write"
        return "ZERO_UUID"
    return literal(row.default) if row.default else _EMPTY.get(row.type, "0")


def _field_arguments(row: Row) -> Iterable[str]:
    yield row.struct.name if row.struct else f'"{row.type}"'
    yield f"default={_default(row)}"
    if row.first:
        yield f"since={row.first}"
    if row.last != FOREVER:
        yield f"until={row.last}"
    if row.null < NEVER:
        yield f"null={row.null}"
    if row.null_until < FOREVER:
        yield f"null_until={row.null_until}"
    if row.tag is not None:
        yield f"tag={row.tag}"
    if row.ignorable:
        yield "ignorable=True"
    if row.fixed:
        yield "fixed=True"
    if row.embedded:
        pairs = [f'("{kind}", "{name}"),' for kind, name in row.embedded]
        argument = f"embedded=({' '.join(pairs).removesuffix(',' * (len(pairs) > 1))})"
        fits = len(argument) < WIDTH - 2 * len(STEP)
        yield argument if fits else "\n".join(["embedded=(", *[STEP + pair for pair in pairs], ")"])
    if row.unprefixed:
        yield "unprefixed=True"
    if row.entity:
        yield f'entity="{row.entity}"'
    if row.secret:
        yield "secret=True"
