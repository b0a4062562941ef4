"""The lexer of `console` blocks: a line that begins with `$ ` is a command, any other is output.

Rules: `#`, `%` and `>` begin output, as in "#1 joins"; a command goes on after a line that ends in a
backslash.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, using
from pygments.lexers.shell import BashLexer
from pygments.token import Generic


class ConsoleLexer(RegexLexer):
    """Commands after `$ `, and what they print."""

    name = "Console"
    aliases: ClassVar = ["console"]
    tokens: ClassVar = {
        "root": [
            (r"^(\$ )((?:.*\\\n)*.*\n)", bygroups(Generic.Prompt, using(BashLexer))),
            (r".*\n", Generic.Output),
        ]
    }
