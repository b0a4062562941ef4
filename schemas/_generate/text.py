"""Lines of Python, finally formatted: what is written here is what a formatter would leave alone.

Rules: a line that would be too long is exploded, one element a line with a trailing comma; nothing else
wraps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

WIDTH = 110
STEP = "    "


class Text:
    """A growing text with a current indentation."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.depth = 0

    def add(self, *lines: str) -> None:
        self.lines += [STEP * self.depth + line if line else "" for line in lines]

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """`head` and what is added inside, one step deeper."""
        self.add(head)
        with self.deeper():
            yield

    @contextmanager
    def deeper(self) -> Iterator[None]:
        self.depth += 1
        yield
        self.depth -= 1

    def fits(self, line: str) -> bool:
        return len(STEP) * self.depth + len(line) <= WIDTH

    def call(self, head: str, arguments: Sequence[str], tail: str = "") -> None:
        """`head(arguments)`; its arguments on a line of their own, or one a line, where it is too long.
        An argument of several lines is exploded already."""
        inside = ", ".join(arguments)
        if self.fits(f"{head}({inside}){tail}"):
            self.add(f"{head}({inside}){tail}")
            return
        with self.block(f"{head}("):
            if self.fits(inside):
                self.add(inside)
            else:
                self.add(*[line for argument in arguments for line in f"{argument},".split("\n")])
        self.add(f"){tail}")

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"
