"""Names of the package that nothing in it uses: `python .ci/unused.py`; status 1 where there are any.

Strategy: each file is parsed once, for what it defines and for every name that it reads: as a name, an
attribute, a keyword, or a text that is one or a few identifiers (`getattr`, field names). Names are compared
and not resolved, so that one that is used anywhere counts as used everywhere: what is reported is dead, and
not all that is dead is reported. Rules: what tests alone use is unused; imports and `__all__` use nothing.
What is for users counts as used: names of the public modules, which the site lists (`MODULES` of
docs/_generate.py), with the attributes of their classes; names that a page of docs has in code; what a class
takes over from a base of another project. `ALLOWED` has the rest, each with its reason: this file itself uses
nothing, and what the list allows in vain is reported.

Reported are
- functions, classes, methods and constants that nothing reads
- fields and attributes that are set or counted, and that nothing reads
- arguments with a default that no call gives, of functions that only calls use
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent
DEFINED = "coordwire"
USING = ("coordwire", "docs", "fuzz", "schemas", "packaging", ".ci")
GENERATED = "coordwire/messages"
SCRIPT = ".ci/unused.py"
ALLOWED = {
    # Others call them, by their names.
    "DefaultSource": "PySpark, which looks for it in the packages of plugins",
    "case_": "the decorator of coordwire.conformance.broker.stage, which lists them",
    "pytest_": "pytest, which calls a plugin's hooks",
    "_Origin.get_source": "linecache, for tracebacks through compiled code",
    "_Parser._check_value": "argparse",
    "_Socket.": "asyncio, and what asks a transport for its socket",
    "Transport.": "asyncio's protocols, as `asyncio.Transport` has them",
    "self._repr": "asyncio.TimerHandle",
    "self._source_traceback": "asyncio.TimerHandle",
    "self.get_debug": "asyncio.Handle, which asks its loop",
    "write_tags(…, reserved=…)": "compiled code",
    # What a user's test or a run from the command line reads of a result.
    "Deliveries.disordered": "a run's result",
    "self.busy_us": "a run's result",
    # How tests see limits kept, and replace clocks and settings.
    "PendingRequests.place_count": "tests of what is kept",
    "RegularExpression.kept_bytes": "tests of what is kept",
    "DeliveryStates.records_in_flight": "comparisons with Kafka's own",
    "ZooKeeperConsumer.offset_manager_reply": "a cluster of tests, which has an offset manager",
    # What the seed documents demand, and tests hold (tests/data/seeds/demands.toml).
    "DetailedDesignConsumer.fail_fetchers": "a demand",
    "PingingCoordinator.enable_rebalancing": "a demand",
    "ZooKeeperConsumer.set_consumer_rebalance_listener": "a demand",
    "Repeats(…, clock=…)": "a test's clock",
    "read_users(…, environment=…)": "a test's environment",
    "Clock(…, now=…)": "tests that begin at another time",
    "add_design(…, ": "tests of designs",
    "Cluster(…, ": "tests with other durations",
    "FlowTable(…, ": "tests of its limits",
    "LiveTraffic(…, most=…)": "tests of its limit",
    "Problems(…, now_ns=…)": "a test's clock",
}
"""How a reported name begins, and who uses it."""

Function = ast.FunctionDef | ast.AsyncFunctionDef

IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
NAMES = re.compile(r"[\w.:,|\[\] ]+")
"""Texts that may be names: one or a few of them, or a type."""
CODE = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
FORMS = {
    "ABC", "Enum", "Exception", "Generic", "IntEnum", "IntFlag", "NamedTuple", "Protocol", "StrEnum",
    "TypedDict", "dict", "int", "list", "object", "str", "tuple",
}  # fmt: skip
"""Bases from elsewhere that call no method of their classes."""
ENUMS = {"Enum", "IntEnum", "IntFlag", "StrEnum"}
"""Bases of classes whose members are values of something."""


@dataclass
class Call:
    """What a call gives: keywords, how many other arguments, and whether there may be more (`*`, `**`)."""

    keywords: set[str]
    count: int
    open: bool


@dataclass
class Tree:
    """What all files define, and what they read.

    read: names. prefixes: how names begin that f-strings make. named: how often a name is read other than to
    call it or as a type. documented: names that docs have in code.
    """

    read: set[str] = field(default_factory=set)
    prefixes: set[str] = field(default_factory=set)
    documented: set[str] = field(default_factory=set)
    named: dict[str, int] = field(default_factory=dict)
    calls: dict[str, list[Call]] = field(default_factory=dict)
    functions: list[tuple[str, str | None, Function]] = field(default_factory=list)
    names: list[tuple[str, int, str | None, str]] = field(default_factory=list)
    attributes: dict[str, tuple[str, int]] = field(default_factory=dict)
    bases: dict[str, list[str]] = field(default_factory=dict)
    members: dict[str, set[str]] = field(default_factory=dict)
    public: set[str] = field(default_factory=set)


def last_name(node: ast.expr) -> str | None:
    if isinstance(node, ast.Subscript):
        return last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else None


class Reader(ast.NodeVisitor):
    """Adds a file to the tree. place: its path; defines: whether its names are looked at."""

    def __init__(self, tree: Tree, place: str, defines: bool) -> None:
        self.tree, self.place, self.defines = tree, place, defines
        self.owner: str | None = None
        self.depth = 0
        self.is_annotation = False

    def visit_arg(self, node: ast.arg) -> None:
        self._annotation(node.annotation)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        self._annotation(node.annotation)
        self.visit(node.target)
        if node.value is not None:
            self.visit(node.value)

    def _annotation(self, node: ast.expr | None) -> None:
        """Read a type: its name is used, and not as a function."""
        if node is not None:
            self.is_annotation = True
            self.visit(node)
            self.is_annotation = False

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.id)
        elif self.defines and self.depth == 0:
            self.tree.names.append((self.place, node.lineno, self.owner, node.id))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.attr)
        elif self.defines and isinstance(node.value, ast.Name) and node.value.id == "self":
            self.tree.attributes.setdefault(node.attr, (self.place, node.lineno))
        self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        text = node.value
        if isinstance(text, str) and NAMES.fullmatch(text) and ("[" in text or len(text.split()) < 5):
            self.tree.read.update(IDENTIFIER.findall(text))

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        first = node.values[0]
        if isinstance(first, ast.Constant) and re.fullmatch(r"[A-Za-z_]\w*_", str(first.value)):
            self.tree.prefixes.add(str(first.value))
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):  # docstrings use nothing
            self.visit(node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        if last_name(node.targets[0]) != "__all__":
            self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = last_name(node.func)
        keywords = {keyword.arg for keyword in node.keywords if keyword.arg}
        is_open = any(isinstance(one, ast.Starred) for one in node.args) or len(keywords) < len(node.keywords)
        given = Call(keywords, len(node.args), is_open)
        if name is not None:
            self.tree.calls.setdefault(name, []).append(given)
            self.tree.named[name] = self.tree.named.get(name, 0) - 1
        if name == "partial" and node.args and (inner := last_name(node.args[0])):
            self.tree.calls.setdefault(inner, []).append(Call(keywords, len(node.args) - 1, True))
        self.tree.read |= keywords
        self.generic_visit(node)

    def visit_FunctionDef(self, node: Function) -> None:
        if self.defines and self.depth == 0:
            self.tree.functions.append((self.place, self.owner, node))
        for one in (*node.decorator_list, node.args):
            self.visit(one)
        self._annotation(node.returns)
        self.depth += 1
        for statement in node.body:
            self.visit(statement)
        self.depth -= 1

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        if self.defines and self.depth == 0:
            self.tree.names.append((self.place, node.lineno, self.owner, node.name))
        self.tree.bases[node.name] = [name for base in node.bases if (name := last_name(base))]
        self.tree.members[node.name] = {name for statement in node.body for name in _bound(statement)}
        for one in (*node.decorator_list, *node.bases, *(keyword.value for keyword in node.keywords)):
            self.visit(one)
        owner, self.owner = self.owner, node.name
        for statement in node.body:
            self.visit(statement)
        self.owner = owner

    def _read(self, name: str) -> None:
        self.tree.read.add(name)
        if not self.is_annotation:
            self.tree.named[name] = self.tree.named.get(name, 0) + 1


def _bound(statement: ast.stmt) -> Iterator[str]:
    if isinstance(statement, Function):
        yield statement.name
    for node in ast.walk(statement) if isinstance(statement, ast.Assign | ast.AnnAssign) else ():
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def gathered(root: Path) -> Tree:
    tree = Tree()
    for folder in USING:
        for path in sorted((root / folder).rglob("*.py")):
            place = path.relative_to(root).as_posix()
            if place == SCRIPT:  # whose texts name what is unused
                continue
            if place.startswith(GENERATED):
                tree.read.update(IDENTIFIER.findall(path.read_text()))
            else:
                Reader(tree, place, place.startswith(f"{DEFINED}/")).visit(ast.parse(path.read_bytes()))
    for path in (root / DEFINED).rglob("*.[ch]"):
        tree.read.update(IDENTIFIER.findall(path.read_text()))
    for path in [*root.glob("*.md"), root / "pyproject.toml", *(root / "docs").rglob("*.md")]:
        text = path.read_text()
        for code in CODE.findall(text) if path.suffix == ".md" else [text]:
            tree.documented.update(IDENTIFIER.findall(code))
    tree.read |= tree.documented
    tree.public = _public(root, tree)
    return tree


def _public(root: Path, tree: Tree) -> set[str]:
    """The names of the public modules, and those of their classes with what they inherit."""
    text = (root / "docs" / "_generate.py").read_text()
    listed = next(
        ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and last_name(node.targets[0]) == "MODULES"
    )
    names: set[str] = set()
    for module in listed:
        path = root / module.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Assign) and last_name(node.targets[0]) == "__all__":
                names.update(str(one.value) for one in ast.walk(node.value) if isinstance(one, ast.Constant))
    classes = [name for name in names if name in tree.bases]
    while classes:
        name = classes.pop()
        for base in tree.bases[name]:
            if base in tree.bases and base not in names:
                names.add(base)
                classes.append(base)
    return names | {member for name in names for member in tree.members.get(name, ())}


def _ancestors(tree: Tree, owner: str | None) -> set[str]:
    """The names of all bases of a class."""
    found: set[str] = set()
    waiting = [*tree.bases.get(owner or "", ())]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += tree.bases.get(name, ())
    return found


def _is_foreign(tree: Tree, owner: str | None) -> bool:
    """Whether a class has a base of another project, which may call its methods."""
    return any(name not in FORMS and name not in tree.bases for name in _ancestors(tree, owner))


def _is_overriding(tree: Tree, owner: str | None, name: str) -> bool:
    return any(name in tree.members.get(base, ()) for base in _ancestors(tree, owner) - {owner})


def unused(tree: Tree) -> Iterator[tuple[str, int, str]]:
    """Each name that is unused: its file, line, and what it is."""
    used = tree.read | tree.public

    def is_used(owner: str | None, name: str) -> bool:
        made = any(name.startswith(prefix) for prefix in tree.prefixes)
        return name in used or made or name.startswith("__") or _is_foreign(tree, owner)

    for place, owner, node in tree.functions:
        if not is_used(owner, node.name):
            yield place, node.lineno, f"{owner + '.' if owner else ''}{node.name} is never used"
    for place, line, owner, name in tree.names:
        if not is_used(owner, name) and not _ancestors(tree, owner) & ENUMS:
            yield place, line, f"{owner + '.' if owner else ''}{name} is never read"
    for name, (place, line) in tree.attributes.items():
        if not is_used(None, name):
            yield place, line, f"self.{name} is never read"
    for place, owner, node in tree.functions:
        called = owner if node.name == "__init__" else node.name
        if called is not None and _is_only_called(tree, owner, called) and not _is_decorated(node):
            yield from ((place, node.lineno, text) for text in _options(tree, owner, called, node))


def _is_only_called(tree: Tree, owner: str | None, name: str) -> bool:
    """Whether calls that are there are all that a function is for."""
    if name.startswith("__") or {name, owner} & tree.public or name in tree.documented:
        return False
    if name not in tree.calls or tree.named.get(name, 0) > 0:
        return False
    return not _is_foreign(tree, owner) and not _is_overriding(tree, owner, name)


def _is_decorated(node: Function) -> bool:
    return any(last_name(one) not in ("staticmethod", "classmethod") for one in node.decorator_list)


def _options(tree: Tree, owner: str | None, called: str, node: Function) -> Iterator[str]:
    """The arguments with a default that no call gives."""
    is_static = any(last_name(one) == "staticmethod" for one in node.decorator_list)
    positional = [*node.args.posonlyargs, *node.args.args][0 if owner is None or is_static else 1 :]
    first = len(positional) - len(node.args.defaults)
    options = [(one.arg, first + at) for at, one in enumerate(positional[first:])]
    for one, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True):
        options += [(one.arg, sys.maxsize)] if default is not None else []
    for name, position in options:
        given = (call.open or name in call.keywords or call.count > position for call in tree.calls[called])
        if not any(given):
            yield f"{called}(…, {name}=…) is never given"


def complaints(found: Iterable[tuple[str, int, str]]) -> Iterator[str]:
    """A line for each that is not allowed, then for each of `ALLOWED` that is for nothing."""
    needless = set(ALLOWED)
    for place, line, text in sorted(found):
        allowed = {name for name in ALLOWED if text.startswith(name)}
        needless -= allowed
        if not allowed:
            yield f"{place}:{line}: {text}"
    yield from (
        f"{SCRIPT}: {name!r} is allowed, and nothing that is unused begins so" for name in sorted(needless)
    )


def main() -> int:
    lines = list(complaints(unused(gathered(ROOT))))
    print(*lines, sep="\n", end="\n" * bool(lines))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
