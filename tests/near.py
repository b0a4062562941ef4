"""The tests near a file: what to run after a change of it, before anything else.

    python -m tests.near coordwire/capture/framing.py

Strategy: imports tell what a test is about. First come tests of the file's own name; then those that import
it, or a name of it through its package; then those that import what imports it, step by step, until there are
a few: those in the folder of its own first, and of these the ones that import least. Nothing is kept, so that
the answer is never stale.

Rules: for a file in C, tests that are named "native" or share a word with its path; for a declaration in
`schemas/`, `tests/schemas` and `tests/conformance`; for a page, `tests/test_docs.py`.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
ENOUGH = 6
"""With so many files no further step is made."""

MOST = 20
"""So many files are named at most."""

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+(\([^)]*\)|[^\n#]+)|import[ \t]+([\w.]+))", re.MULTILINE
)
_LAZY = re.compile(r'^    "(\w+)": "\.?([\w.]+)",$', re.MULTILINE)


def imported(path: Path) -> Iterator[tuple[str, str]]:
    """The modules that a file imports, each with a name taken from it, or an empty one."""
    for module, names, whole in _IMPORT.findall(path.read_text()):
        if whole:
            yield whole, ""
        for name in re.findall(r"(\w+)(?:[ \t]+as[ \t]+\w+)?", names):
            yield module, name


def dotted(path: Path) -> str:
    """The name under which a file of the repository is imported."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def re_exported(package: str) -> dict[str, str]:
    """The modules from which a package has its names."""
    path = ROOT.joinpath(*package.split("."), "__init__.py")
    if not path.exists():
        return {}
    lazy = {name: f"{package}.{module}" for name, module in _LAZY.findall(path.read_text())}
    return lazy | {name: module for module, name in imported(path) if name}


@cache
def modules_of(path: Path) -> set[str]:
    """The modules whose code a file names: imported, also through a package that hands their names on."""
    names = set()
    for module, name in imported(path):
        names |= {module, f"{module}.{name}", re_exported(module).get(name, module)}
    return names


def tests_in(folder: Path) -> list[Path]:
    return sorted(folder.rglob("test_*.py"))


def mirror(path: Path) -> Path:
    """The folder of tests for a file: the deepest one with the names of its folders."""
    folder = ROOT / "tests"
    for part in path.relative_to(ROOT).parent.parts[1:]:
        if (folder / part).is_dir():
            folder /= part
    return folder


def near(path: Path) -> list[Path]:
    """Files and folders of tests, the nearest first."""
    first, *_ = path.relative_to(ROOT).parts
    if first == "schemas":
        return [ROOT / "tests" / "schemas", ROOT / "tests" / "conformance"]
    if first in ("docs", "README.md"):
        return [ROOT / "tests" / "test_docs.py"]
    if path.name.startswith("test_"):
        return [path]
    folder = mirror(path)
    if path.suffix != ".py":
        words = {*path.stem.split("_"), path.parent.name, "native"}
        return [test for test in tests_in(ROOT / "tests") if words & set(test.stem.split("_")[1:])]
    stem = path.parent.name if path.stem in ("__init__", "__main__") else path.stem
    found = [test for test in tests_in(ROOT / "tests") if test.stem.removeprefix("test_") == stem]
    known, step = {dotted(path)}, [dotted(path)]
    while step and len(found) < ENOUGH:
        users = sorted({user for name in step for user in users_of().get(name, ())} - known)
        known.update(users)
        tests = [ROOT.joinpath(*user.split(".")).with_suffix(".py") for user in users if ".test_" in user]
        tests.sort(key=lambda test: (not test.is_relative_to(folder), len(modules_of(test)), test))
        found += [test for test in tests if test not in found]
        step = [user for user in users if ".test_" not in user]
    return found[:MOST] or [folder]


@cache
def users_of() -> dict[str, set[str]]:
    """The modules that import a module, by its name."""
    users: dict[str, set[str]] = defaultdict(set)
    for top in ("coordwire", "tests"):
        for path in (ROOT / top).rglob("*.py"):
            for name in modules_of(path):
                users[name].add(dotted(path))
    return users


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    found: list[Path] = []
    for file in parser.parse_args().files:
        path = file.resolve()
        if not path.is_relative_to(ROOT) or not path.exists():
            parser.error(f"expected a file of this repository, got {file}")
        found += near(path)
    paths = list(dict.fromkeys(found))
    print("python -m pytest", *(path.relative_to(ROOT) for path in paths), sep=" \\\n    ")


if __name__ == "__main__":
    main()
