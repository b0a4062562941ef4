"""A mutant's text, where its code is, and what of it may be changed in a process that has the module.

Strategy: definitions are found in the module's syntax tree. Where a mutant changes the body of a function
alone, that function is found too, in both texts.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import CodeType

from tests.designs.seeds import ROOT, Demand

Definition = ast.ClassDef | ast.FunctionDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change that breaks a demand. code: where it is, as in the row; old, new: the texts; test: which one
    has to fail."""

    demand: Demand
    code: str
    test: str
    old: str
    new: str

    def __str__(self) -> str:
        return f"{self.demand.seed} “{self.demand.words}”: {self.old!r} -> {self.new!r} in {self.code}"


def mutants(demands: Sequence[Demand]) -> Iterator[Mutant]:
    """Those of all rows, in their order."""
    for demand in demands:
        for number, (old, new) in enumerate(demand.mutants):
            code = demand.code[min(number, len(demand.code) - 1)]
            yield Mutant(demand, code, demand.tests[min(number, len(demand.tests) - 1)], old, new)


# --- the text of a module with a mutant ---


def path_of(code: str) -> Path:
    """The file of a row's code."""
    path = ROOT.joinpath("coordwire", *code.partition(":")[0].split("."))
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


@cache
def _parsed(path: Path) -> tuple[str, ast.Module]:
    text = path.read_text()
    return text, ast.parse(text)


def _named(body: Sequence[ast.stmt], name: str) -> Definition:
    for one in reversed(body):  # after its overloads
        targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", one)]
        names = [part for target in targets for part in getattr(target, "elts", [target])]
        if isinstance(one, Definition) and name in [
            getattr(part, "id", getattr(part, "name", "")) for part in names
        ]:
            return one
    raise LookupError(f"no definition of {name}")


def span(code: str) -> tuple[int, int]:
    """Where the definition of a row's code begins and ends in its file, in characters. Raises `LookupError`
    where the file does not define it."""
    text, tree = _parsed(path_of(code))
    body: Sequence[ast.stmt] = tree.body
    for part in code.partition(":")[2].split("."):
        found = _named(body, part)
        body = getattr(found, "body", ())
    lines = text.splitlines(keepends=True)
    first = min([found.lineno, *(one.lineno for one in getattr(found, "decorator_list", ()))])
    return sum(map(len, lines[: first - 1])), sum(map(len, lines[: found.end_lineno]))


def mutated(mutant: Mutant) -> str:
    """The text of the module. Raises `LookupError` where the code does not have the old text exactly once."""
    begin, end = span(mutant.code)
    text = _parsed(path_of(mutant.code))[0]
    if (count := text.count(mutant.old, begin, end)) != 1:
        raise LookupError(f"{count} times in its code: {mutant}")
    at = text.index(mutant.old, begin)
    return text[:at] + mutant.new + text[at + len(mutant.old) :]


def is_there(mutant: Mutant) -> bool:
    """Whether the code has its text; prints why not."""
    try:
        mutated(mutant)
    except LookupError as error:
        print(f"no mutant: {error}", flush=True)
        return False
    return True


# --- the function that a mutant changes ---

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _first_line(function: Function) -> int:
    return min([function.lineno, *(one.lineno for one in function.decorator_list)])


def _parts(node: ast.AST, *without: str) -> list[str]:
    return [
        ast.dump(one) if isinstance(one, ast.AST) else repr(one)
        for name, content in ast.iter_fields(node)
        if name not in without
        for one in (content if isinstance(content, list) else [content])
    ]


def changed_function(old: ast.AST, new: ast.AST) -> tuple[Function, Function] | None:
    """The function of a module or of a class in it whose body is all that differs; None if there is more."""
    if isinstance(old, Function) and isinstance(new, Function):
        return (old, new) if _parts(old, "body") == _parts(new, "body") else None
    if not isinstance(old, ast.Module | ast.ClassDef) or type(old) is not type(new):
        return None
    if _parts(old, "body") != _parts(new, "body") or len(old.body) != len(new.body):
        return None
    pairs = [pair for pair in zip(old.body, new.body, strict=True) if ast.dump(pair[0]) != ast.dump(pair[1])]
    return changed_function(*pairs[0]) if len(pairs) == 1 else None


def _codes(code: CodeType) -> Iterator[CodeType]:
    for one in code.co_consts:
        if isinstance(one, CodeType):
            yield one
            yield from _codes(one)


def changed_code(mutant: Mutant) -> tuple[int, CodeType] | None:
    """The line on which the function begins that a mutant changes, and its new code; None if the mutant
    changes more than one function's body."""
    path = path_of(mutant.code)
    text = mutated(mutant)
    functions = changed_function(_parsed(path)[1], ast.parse(text))
    if functions is None:
        return None
    old, new = functions
    module = compile(text, str(path), "exec")
    for code in _codes(module):
        if code.co_name == new.name and code.co_firstlineno == _first_line(new):
            return _first_line(old), code
    return None
