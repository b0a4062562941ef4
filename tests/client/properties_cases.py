"""What Java reads in properties, and Kafka in logins; `python -m tests.client.properties_cases` asks again.

The answers are in tests/data/client/properties.json.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from itertools import product
from pathlib import Path
from typing import Any

from tests.interop.broker import Java
from tests.interop.maven import CURRENT

ANSWERS = Path(__file__).parents[1] / "data" / "client" / "properties.json"
SOURCE = Path(__file__).parent / "java" / "ClientProperties.java"

PROPERTIES = [
    "a=b", "a = b", "a:b", "a : b", "a b", "a\tb", "a\f=\fb", "  a=b  ", "a==b", "a=:b", "a", "=b", "", "\\",
    "# a=b\n! c=d\ne=f", "a=b\\\n   c", "a=b\\\\\nc=d", "a=b\\\\\\\nc=d", "a=b\r\nc=d\re=f", "a\\ b=c",
    "a\\=b=c", "a\\:b:c", "a=\\u00e9\\u20ac", "a=\\u00E9x", "a=\\u00g9", "a=\\u12", "a=\\t\\n\\r\\f\\q\\\"",
    "a=b\na=c",
    "a=#b", "\n\n a=b\n\n", "a=b\\", "\\\na=b", "#a\\\nb=c", "a=b\\\n#c", "a=b\\\n\nc=d", "a=\\ud83d\\ude00",
    "p=\xe9", "a=\\\r\n  b", "k\\\n  ey=v", "a:=b", "a =: b",
]  # fmt: skip

_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
LOGINS = [
    f'{_MODULE} required username="ann" password="a b;c=d";',
    f"{_MODULE} REQUIRED username='ann' password=\"it's\";",
    f"{_MODULE} optional;",
    f"{_MODULE} required username=ann password=secret-1_$;",
    f"{_MODULE} required username=ann password=1234;",
    f"{_MODULE} required username=ann password=\"1234\" ;",
    f"{_MODULE} required username=\"ann\"",
    f"{_MODULE} sometimes username=\"ann\";",
    f"{_MODULE} required username \"ann\";",
    f"{_MODULE} required username=;",
    f"{_MODULE};",
    "",
    ";",
    f'{_MODULE} required a="\\"q\\\\ \\t\\n\\101\\7x";',
    f"// a comment\n{_MODULE} /* another; */ required // more\n username=\"ann\"\n;",
    f'{_MODULE} required username="ann" password="x";\n\n',
    f'{_MODULE} required username="ann" username="bob";',
    f'{_MODULE} required a="b"; {_MODULE} required c="d";',
    f'{_MODULE} required a="b";;',
    f'{_MODULE} required a="{{\'json\'}}" b=c.d-e;',
    f'{_MODULE} required a.b="c" d-e=f;',
    f'{_MODULE} required a="\N{LATIN SMALL LETTER E WITH ACUTE}\N{EURO SIGN}";',
    f'{_MODULE} required a="one\ntwo";',
    f"{_MODULE} required a=true b=false;",
    f"{_MODULE} required a=/path/to;",
    f"{_MODULE} required a=-x b=.y;",
]  # fmt: skip


def _random_properties() -> list[str]:
    """Every text of four of the characters that mean something."""
    return ["".join(chars) for chars in product("\\=: \nau", repeat=4)]


def asked() -> list[tuple[str, str]]:
    """Kind and text of each case."""
    return [
        *(("properties", text) for text in [*PROPERTIES, *_random_properties()]),
        *(("login", text) for text in LOGINS),
    ]


def kafkas_answers() -> list[Any]:
    """What Java and Kafka read: properties by name; module and options; None for a text that they refuse.

    Raises `Unavailable`.
    """
    lines = "".join(
        f"{kind} {b64encode(text.encode('latin-1' if kind == 'properties' else 'utf-8')).decode()}\n"
        for kind, text in asked()
    )
    output = Java(CURRENT, "classes").pipe(lines.encode(), str(SOURCE)).decode().splitlines()
    return [_answer(kind, line) for (kind, _), line in zip(asked(), output, strict=True)]


def _answer(kind: str, line: str) -> Any:
    if line == "refused":
        return None
    module, _, pairs = line.rpartition(" ")
    options = {}
    for pair in filter(None, pairs.split(",")):
        name, _, value = pair.partition("=")
        options[_decoded(name)] = _decoded(value)
    return options if kind == "properties" else [_decoded(module), options]


def _decoded(text: str) -> str:
    return b64decode(text + "=" * (-len(text) % 4)).decode()


if __name__ == "__main__":
    ANSWERS.parent.mkdir(exist_ok=True)
    ANSWERS.write_text(json.dumps(kafkas_answers(), separators=(",", ":")) + "\n")
