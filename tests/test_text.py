"""The text that readers meet is plain technical English, and names say what a value is.

Strategy: string literals and comments of the hand-written modules, Python and C, are searched for words that
this project once used in a meaning of its own; names that the package's code gives, in Python and C, are
compared with docs/development/words.md, which is the only list of them.
Rules: what a word list can't decide is not in it ("sound" is fine of a batch). How many names of a kind still
stand is counted per package, and may only fall.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
GENERATED = "coordwire/messages"
PACKAGES = ("coordwire", "schemas")

WORDS = {
    r"behind": 'of places: "after"',
    r"told|tells|hears?": 'code doesn\'t talk: "given", "reports", "gets"',
    r"stands?": '"is", "means"',
    r"nobody(?:'s)?|whoever|strangers?": 'name what is meant: "untrusted bytes", "the caller"',
    r"dislikes?|forgets|gossips?": "code has no moods",
    r"says that": '"means that", "reports that"',
    r"(?<!there )(?<!here )is no (?!longer\b|more\b)[a-z]+": '"is not a"; in errors "expected X, got Y"',
    r"wanted, not": '"expected X, got Y"',
    r"(?<!- )1 (?:bytes|records|elements)": '"1 byte": see `coordwire.errors.counted`',
}
"""Patterns of whole words, each with what to write instead."""

NAMES_LEFT = {
    "coordwire/_speedups/__init__.py": "here one wanted",
    "coordwire/_speedups/arrow/columns.c": "done noted wanted whole",
    "coordwire/_speedups/arrow/columns.h": "done noted wanted whole",
    "coordwire/_speedups/arrow/columns_object.c": "wanted whole",
    "coordwire/_speedups/arrow/memory.c": "noted wanted",
    "coordwire/_speedups/arrow/rows.c": "any left wanted",
    "coordwire/_speedups/arrow/rows.h": "left",
    "coordwire/_speedups/capture/frame_walk.c": "asked made",
    "coordwire/_speedups/messages/decode.c": "made rest",
    "coordwire/_speedups/messages/decode.h": "made",
    "coordwire/_speedups/messages/encode.c": "rest",
    "coordwire/_speedups/messages/engine.h": "rest",
    "coordwire/_speedups/messages/program.c": "rest whole",
    "coordwire/_speedups/messages/transcribe.c": "found rest",
    "coordwire/_speedups/messages/transcribe.h": "found",
    "coordwire/_speedups/records/batch.c": "kept",
    "coordwire/_speedups/records/opened.h": "kept",
    "coordwire/_speedups/records/record_parser.h": "odd",
    "coordwire/_speedups/records/run.c": "done given rest",
    "coordwire/_speedups/records/run.h": "done given rest",
    "coordwire/_speedups/records/run_batch.c": "done rest",
    "coordwire/_speedups/rows.py": "made one",
    "coordwire/broker/harness/group_watch.py": "holds",
    "coordwire/broker/harness/traffic.py": "one when",
    "coordwire/broker/injection/fault_registry.py": "_holds held",
    "coordwire/broker/injection/fault_rule.py": "when",
    "coordwire/broker/injection/faulted_call.py": "holds",
    "coordwire/broker/injection/refused_answers.py": "other",
    "coordwire/broker/security/authorizer.py": "other",
    "coordwire/capture/frame_decoding.py": "other",
    "coordwire/capture/printable.py": "shown",
    "coordwire/coordinator/classic/requests.py": "other",
    "coordwire/embedded.py": "inside said",
    "coordwire/errors.py": "where",
    "coordwire/limits.py": "given",
    "coordwire/spans.py": "_rest",
    "coordwire/tables/audits.py": "left shown",
    "coordwire/testing/fault_plans.py": "rest",
    "coordwire/testing/group_scripts.py": "_asked others",
    "coordwire/timeline/events.py": "how",
    "coordwire/versions.py": "wanted",
}
"""Names of words.md that files still give; none is added, and a line whose name is gone may go."""


_ANY_WORD = re.compile("|".join(rf"\b(?:{word})\b" for word in WORDS), re.IGNORECASE)
_MARGIN = re.compile(r"""(?:\\[nrt]|\b[bfru]{1,2}(?=["'])|[\s"'\\#*/])+""", re.IGNORECASE)
"""What may be between the words of a text: line ends, with the signs of comments, and quotes."""


def is_suspect(source: str) -> bool:
    """Whether a file may have a text with one of the words."""
    return _ANY_WORD.search(_MARGIN.sub(" ", source)) is not None


def modules() -> list[Path]:
    return [
        path
        for package in PACKAGES
        for path in sorted((ROOT / package).rglob("*.py"))
        if not path.relative_to(ROOT).as_posix().startswith(GENERATED)
    ]


def c_files() -> list[Path]:
    return sorted((ROOT / "coordwire").rglob("*.[ch]"))


def literals(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of all string literals, those of f-strings in parts."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.lineno, node.value


def comments(source: str) -> Iterator[tuple[int, str]]:
    """Line and text of all comments, those of adjacent lines as one."""
    line, text = 0, ""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        if text and token.start[0] == line + 1:
            line, text = token.start[0], f"{text} {token.string.lstrip('# ')}"
            continue
        if text:
            yield line, text
        line, text = token.start[0], token.string.lstrip("# ")
    if text:
        yield line, text


_C_STRING = r'"(?:\\.|[^"\\\n])*"'
C_TOKENS = re.compile(
    r"(?P<comment>/\*.*?\*/|//[^\n]*(?:\n[ \t]*//[^\n]*)*)"
    rf"|(?P<text>{_C_STRING}(?:[\s\\]*{_C_STRING})*)"
    r"|'(?:\\.|[^'\\\n])+'|(?P<name>(?<![\w.])[A-Za-z_]\w*)",
    re.DOTALL,
)


def c_tokens(source: str, kind: str) -> Iterator[tuple[int, str]]:
    """Line and text of the comments, string literals ("text") or names of a C file; what goes on is one."""
    line, position = 1, 0
    for token in C_TOKENS.finditer(source):
        if token.lastgroup == kind:
            line, position = line + source.count("\n", position, token.start()), token.start()
            text = re.sub(r'"[\s\\]*"', "", token[0]) if kind == "text" else token[0]
            yield line, re.sub(r"\n\s*(?:\*|//)? ?", " ", text)


def complaints(text: str) -> list[str]:
    joined = " ".join(text.split())
    return [
        f"{match[0]!r}: {instead}"
        for word, instead in WORDS.items()
        if (match := re.search(rf"\b(?:{word})\b", joined, re.IGNORECASE))
    ]


def refused_names() -> set[str]:
    """The names that words.md refuses: in backticks in the last column of its terms, and the bare words."""
    page = (ROOT / "docs" / "development" / "words.md").read_text()
    rows = [line.rsplit("|", 2)[1] for line in page.splitlines() if line.startswith("| ")]
    terms = {term for row in rows for term in re.findall(r"`(\w+)`", row)}
    (bare,) = re.findall(r"^```text\n(.+?)^```", page, re.DOTALL | re.MULTILINE)
    return terms | {word.strip("_") for word in bare.split()}


def python_names(source: str) -> Iterator[tuple[int, str]]:
    """The names that a module gives: functions, classes, arguments, variables, attributes."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def c_names(source: str) -> Iterator[tuple[int, str]]:
    """Each identifier of a C file, once."""
    lines: dict[str, int] = {}
    for line, name in c_tokens(source, "name"):
        lines.setdefault(name, line)
    return ((line, name) for name, line in lines.items())


@pytest.mark.parametrize(
    "text",
    [
        "3 bytes behind the frame", "what it is told", "where it stands", "bytes from strangers",
        "x is no port", "a number wanted, not str", "needs 1 bytes", "A marker says that the group is gone.",
    ],
)  # fmt: skip
def test_the_words_are_found(text: str) -> None:
    assert complaints(text)


@pytest.mark.parametrize("text", ["There is no response.", "is no longer", "told_of", "21 bytes", "standard"])
def test_other_words_are_not(text: str) -> None:
    assert complaints(text) == []


def test_names_and_comments_are_found() -> None:
    source = "def one(rest):\n    x.found = 1  # first\n    # second\n    return {}\n"
    assert [name for _, name in python_names(source)] == ["one", "rest", "found"]
    assert list(comments(source)) == [(3, "first second")]
    text = 'int found; /* a\n * b */ char *s = "left"; c = \'"\'; // d\nfound = s.rest;'
    assert [name for _, name in c_names(text)] == ["int", "found", "char", "s", "c"]
    assert list(c_tokens(text, "comment")) == [(1, "/* a b */"), (2, "// d")]
    assert list(c_tokens(text, "text")) == [(2, '"left"')]
    assert {"one", "found", "Oddity", "talk"} <= refused_names()
    assert not {"expected", "UnreadableRange", "decode", "Deviation"} & refused_names()


@pytest.mark.parametrize(
    "source",
    [
        "x = 1  # it says\n    # that\n", '"""It stands\nhere."""', '"It says " \'that\'', "'says\\nthat'",
        'x = (f"it says "\n    f"that {x}")', "r'says ' rb'' f'that'", "f'it stands {x}'", '"says \\\nthat"',
    ],
)  # fmt: skip
def test_a_module_with_the_words_is_suspect(source: str) -> None:
    """Wherever they are found."""
    assert is_suspect(source)
    texts = [*literals(source.replace("rb''", "")), *comments(source)]
    assert any(complaints(text) for _, text in texts)


@pytest.mark.parametrize(
    "source",
    [
        "/* what says\n   that */", "/**\n * says\n *\n * that\n */", "// it says\n    // that\n",
        'char *text = "It says "\n    "that";', '#define TEXT "it says" \\\n  " that"',
    ],
)  # fmt: skip
def test_a_c_file_with_the_words_is_suspect(source: str) -> None:
    assert is_suspect(source)
    texts = [*c_tokens(source, "comment"), *c_tokens(source, "text")]
    assert any(complaints(text) for _, text in texts)


def test_a_file_without_the_words_is_not() -> None:
    assert not is_suspect("x = standard  # it is here\n")


def test_text_is_plain() -> None:
    texts = [(path, literals) for path in modules()] + [(path, comments) for path in modules()]
    texts += [(path, lambda source: c_tokens(source, "comment")) for path in c_files()]
    texts += [(path, lambda source: c_tokens(source, "text")) for path in c_files()]
    sources = {path: path.read_text() for path, _ in texts}
    suspects = {path for path, source in sources.items() if is_suspect(source)}
    wrong = {
        f"{path.relative_to(ROOT)}:{line}": reasons
        for path, reader in texts
        if path in suspects
        for line, text in reader(sources[path])
        if (reasons := complaints(text))
    }
    assert len(texts) > 800
    assert wrong == {}


def prose(page: str) -> Iterator[tuple[int, str]]:
    """Line and text of a Markdown page, without code, quotations and the targets of links."""
    page = re.sub(
        r"^```.*?^```", lambda code: "\n" * code[0].count("\n"), page, flags=re.DOTALL | re.MULTILINE
    )
    for number, line in enumerate(page.splitlines(), 1):
        yield number, re.sub(r"`[^`]*`|“[^”]*”|\"[^\"]*\"|\]\([^)]*\)", "", line)


def test_pages_are_plain() -> None:
    """words.md names the words; seeds.md, which the site has, quotes documents."""
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    wrong = {
        f"{page.relative_to(ROOT)}:{line}": reasons
        for page in pages
        if page.name not in ("words.md", "seeds.md")
        for line, text in prose(page.read_text())
        if (reasons := complaints(text))
    }
    assert len(pages) > 40
    assert wrong == {}


def test_names_say_what_a_value_is() -> None:
    refused = refused_names()
    name = rf"_*(?:{'|'.join(refused)})\b"
    given = re.compile(rf"(?:def|class|as) {name}|\b{name}\s*(?:[-+*/|&@%]?=|[:,)(]|in\b)")
    beyond = []
    for path in [*modules(), *c_files()]:
        file, source = str(path.relative_to(ROOT)), path.read_text()
        if path.suffix == ".py" and not given.search(source):
            continue
        names = python_names if path.suffix == ".py" else c_names
        left = NAMES_LEFT.get(file, "").split()
        beyond += [
            f"{file}:{line}: {name}"
            for line, name in names(source)
            if name.strip("_") in refused and name not in left
        ]
    assert beyond == []
