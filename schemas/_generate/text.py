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

    def test(self, head: str, conditions: Sequence[str]) -> None:
        """`if a or b:`; one condition a line where it is too long, one operand a line where that is."""
        line = f"{head} {' or '.join(conditions)}:"
        if self.fits(line):
            self.add(line)
            return
        with self.block(f"{head} ("):
            first, operator, operand = conditions[0].partition(" is not ")
            if len(conditions) == 1 and operator and not self.fits(conditions[0]):
                self.add(first, f"is not {operand}")
            else:
                self.add(conditions[0], *[f"or {condition}" for condition in conditions[1:]])
        self.add("):")

    def unpack(self, targets: Sequence[str], source: str) -> None:
        """`a, b = source`; exploded where it is too long."""
        if len(targets) == 1:
            self.add(f"({targets[0]},) = {source}")
        elif self.fits(line := f"{', '.join(targets)} = {source}"):
            self.add(line)
        else:
            self.add("(")
            self.depth += 1
            self.add(*[f"{target}," for target in targets])
            self.depth -= 1
            self.add(f") = {source}")

    def __str__(self) -> str:
        return "\n".join(self.lines) + "\n"


class Names:
    """Local names of one function: a wanted name, or the next free one like it."""

    RESERVED = frozenset({
        "as_bytes", "as_list", "as_uuid", "data", "elements", "end", "known", "list", "m", "map", "memory",
        "n", "new", "out", "pos", "repeat", "tag", "tags", "text", "value",
    })  # fmt: skip

    def __init__(self) -> None:
        self.taken = set(self.RESERVED)

    def take(self, wanted: str) -> str:
        name, number = wanted, 2
        while name in self.taken:
            name, number = f"{wanted}{number}", number + 1
        self.taken.add(name)
        return name

    def item(self, plural: str) -> str:
        """A name for one of `plural`."""
        single = (
            plural[:-3] + "y" if plural.endswith("ies") else plural[:-1] if plural.endswith("s") else plural
        )
        return self.take(single if single != plural else f"{plural}_item")
