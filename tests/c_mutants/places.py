"""Where a source can be changed, and the source with all changes in it.

Strategy: a source is read as tokens; what an operator joins reaches to the next token that binds less, so
that no grammar is needed. A change is written such that nothing is evaluated twice. Rules: nothing is changed
outside of functions, in declarations of static data, in labels and in preprocessor lines; what then does not
compile is left out (build.py).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from random import Random

TOKEN = re.compile(
    r"""/\*.*?\*/|//[^\n]*|\#(?:[^\n\\]|\\.)*(?:\\\n[^\n]*)*|"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'"""
    r"""|[A-Za-z_]\w*|\d[\w.]*|<<=|>>=|->|\+\+|--|<<|>>|<=|>=|==|!=|&&|\|\||[-+*/%&|^]=|\s+|.""",
    re.DOTALL | re.VERBOSE,
)
OPENING, CLOSING = "([{", ")]}"
ENDS = {";", ",", "?", ":", "=", "+=", "-=", "*=", "/=", "|=", "&=", "^=", "%=", "<<=", ">>=", "return"}
"""What ends an operand of any operator."""

OR, AND, BITS, EQUAL, ORDER, SHIFT = (
    {"||"},
    {"&&"},
    {"|", "^", "&"},
    {"==", "!="},
    {"<", "<=", ">", ">="},
    {"<<", ">>"},
)
LEVELS = (OR, AND, BITS, EQUAL, ORDER, SHIFT, {"+", "-"})
"""Operators, those that bind least first."""

SWAPS = {
    "<": ("<=", ">"), "<=": ("<", ">="), ">": (">=", "<"), ">=": (">", "<="), "==": ("!=",), "!=": ("==",),
    "+": ("-",), "-": ("+",), "&&": ("||",), "||": ("&&",),
}  # fmt: skip
CALL = re.compile(r"[a-z]\w*\(|\*?[a-z]\w*(?:(?:->|\.)\w+|\[[^\]=]*\])*\s*(?:[-+|&]?=(?!=)|\+\+|--)")
"""How a statement begins that may be left out: a call, or an assignment to what is there."""


@dataclass(frozen=True)
class Change:
    """A change at a place: what it is, for people, and which token it wraps or replaces."""

    file: str
    line: int
    text: str
    what: str

    @property
    def name(self) -> str:
        return f"{self.file}: {self.text}: {self.what}"


@dataclass
class Edit:
    """What a place becomes: texts before its first token and after its last one, and in place of one."""

    first: int
    last: int
    before: str
    after: str
    at: int = -1
    instead: str = ""


class Source:
    """A source's tokens, and where they may be changed."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.lines = text.splitlines()
        self.tokens = TOKEN.findall(text)
        self.partner: dict[int, int] = {}
        self.line_of: list[int] = []
        self.inside: list[bool] = []
        self._measure()

    def _measure(self) -> None:
        opened: list[int] = []
        line, function = 1, False
        for index, token in enumerate(self.tokens):
            self.line_of.append(line)
            line += token.count("\n")
            if token in OPENING and len(token) == 1:
                if not opened:
                    function = token == "{" and self._previous(index) == ")"
                opened.append(index)
            self.inside.append(bool(opened) and function)
            if token in CLOSING and len(token) == 1 and opened:
                other = opened.pop()
                self.partner[index], self.partner[other] = other, index

    def _is_code(self, index: int) -> bool:
        token = self.tokens[index]
        return not (token.isspace() or token.startswith(("/*", "//", "#")))

    def _step(self, index: int, way: int) -> int:
        index += way
        while 0 <= index < len(self.tokens) and not self._is_code(index):
            index += way
        return index

    def _previous(self, index: int) -> str:
        at = self._step(index, -1)
        return self.tokens[at] if at >= 0 else ""

    def _reach(self, index: int, way: int, stops: set[str]) -> int:
        """The last token of what an operator joins, in a direction; -1 if that isn't clear."""
        at, last = self._step(index, way), -1
        closing = CLOSING if way > 0 else OPENING
        while 0 <= at < len(self.tokens):
            token = self.tokens[at]
            if token in stops or token in closing or token in ("{", "}", "else", "do"):
                return last
            last = at
            if at in self.partner:
                at = last = self.partner[at]
            at = self._step(at, way)
        return -1

    def _is_plain(self, index: int) -> bool:
        """Whether a token is in a function's code, in no declaration of static data, label or size."""
        text = self.lines[self.line_of[index] - 1].strip()
        return self.inside[index] and not text.startswith(("case ", "static ", "#", "default:"))

    def edits(self) -> list[tuple[Change, Edit]]:
        found = []
        for index, token in enumerate(self.tokens):
            if self._is_plain(index):
                for what, edit in self._edits_at(index, token):
                    line = self.line_of[index]
                    found.append((Change(self.name, line, self.lines[line - 1].strip(), what), edit))
        return found

    def _edits_at(self, index: int, token: str) -> list[tuple[str, Edit]]:
        if token in SWAPS:
            return self._swaps(index, token)
        if token in ("if", "while"):
            start = self._step(index, 1)
            end = self.partner[start]
            return [
                (f"{token} never", Edit(start, end, "(!!", " && !M)")),
                *([("if always", Edit(start, end, "(!!", " || M)"))] if token == "if" else []),
            ]
        if re.fullmatch(r"\d+|0x[0-9A-F]+", token) and self._previous(index) not in ("[", "case"):
            edits = [(f"{token} + 1", Edit(index, index, "(", " + M)"))]
            if token not in ("0", "1"):
                edits.append((f"{token} - 1", Edit(index, index, "(", " - M)")))
            return edits
        if self._previous(index) in (";", "{", "}", ")", "else"):
            return self._left_out(index)
        return []

    def _swaps(self, index: int, token: str) -> list[tuple[str, Edit]]:
        level = next(number for number, one in enumerate(LEVELS) if token in one)
        before = self._previous(index)
        if (
            token in "+-" and not (before in (")", "]") or re.fullmatch(r"\w+", before))
        ) or before == "return":
            return []
        looser = ENDS.union(*LEVELS[:level])
        first = self._reach(index, -1, looser)
        last = self._reach(index, 1, looser | LEVELS[level])
        if first < 0 or last < 0:
            return []
        results = []
        for other in SWAPS[token]:
            if token in ("&&", "||"):
                edit = Edit(first, last, "({ const int l_ = !!(", "); })", index, "); l_ == "
                            f"{'M' if token == '&&' else '!M'} ? l_ : !!(")  # fmt: skip
            else:
                after = f"); M ? l_ {other} r_ : l_ {token} r_; }})"
                edit = Edit(first, last, "({ __auto_type l_ = (", after, index, "); __auto_type r_ = (")
            results.append((f"{token} to {other}", edit))
        return results

    def _left_out(self, index: int) -> list[tuple[str, Edit]]:
        """A statement that is left out."""
        end = self._reach(index, 1, {";"})
        after = self._step(end, 1) if end >= 0 else -1
        if after < 0 or self.tokens[after] != ";":
            return []
        text = "".join(self.tokens[index : end + 1])
        if not CALL.match(text) or text.startswith(("return", "goto", "Py_BEGIN", "Py_END", "IN_REGISTER")):
            return []
        return [("left out", Edit(index, end, "M ? (void)0 : (void)(", ")"))]

    def changed(self, chosen: dict[int, Edit]) -> str:
        """The source with changes by their numbers in it."""
        before: dict[int, str] = {}
        after: dict[int, str] = {}
        instead: dict[int, str] = {}
        # The widest first: their texts are outside of those of others.
        for number, edit in sorted(chosen.items(), key=lambda one: one[1].first - one[1].last):
            number_text = f"MUTANT({number})"
            before[edit.first] = before.get(edit.first, "") + edit.before.replace("M ", f"{number_text} ")
            after[edit.last] = edit.after.replace("M", number_text) + after.get(edit.last, "")
            if edit.at >= 0:
                instead[edit.at] = re.sub(r"\bM\b", number_text, edit.instead)
        parts = [
            before.get(index, "") + instead.get(index, token) + after.get(index, "")
            for index, token in enumerate(self.tokens)
        ]
        return "".join(parts)


def drawn(sources: list[Source], count: int, seed: int) -> list[tuple[Change, Edit]]:
    """So many changes of all, at most one at each token, by a seed."""
    everything = [one for source in sources for one in source.edits()]
    Random(seed).shuffle(everything)
    taken: set[tuple[str, int]] = set()
    results = []
    for change, edit in everything:
        place = change.file, edit.at if edit.at >= 0 else edit.first
        if place not in taken:
            taken.add(place)
            results.append((change, edit))
    return sorted(results[:count], key=lambda one: (one[0].file, one[1].first, one[1].last))
