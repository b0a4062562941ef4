"""`.ci/unused.py` finds what nothing uses, and nothing else, in a small tree."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[1] / ".ci" / "unused.py"

USED = """
class Counter:
    \"\"\"`forgotten` is a word here.\"\"\"

    LIMIT = 3
    EXTRA = 4

    def __init__(self, step: int = 1, scale: int = 1) -> None:
        self.step, self.scale = step, scale
        self.total = 0
        self.lost = 0

    def add(self) -> None:
        self.total += self.step * self.scale * self.LIMIT
        self.lost += 1

    def on_start(self) -> None: ...

    def forgotten(self) -> int:
        return self.total


def helper(value: int, *, twice: bool = False, thrice: bool = False) -> int:
    return value * (2 if twice else 3 if thrice else 1)


def dead() -> int:
    return helper(3)
"""

USING = """
from coordwire.inner import Counter, helper


def shown(options: dict[str, int] | None = None) -> None:
    counter = Counter(2)
    counter.add()
    getattr(counter, f"on_{options}")()
    helper(counter.total, twice=True)
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").touch()
    files = {
        "coordwire/__init__.py": USING + "\n__all__ = ['shown']\n",
        "coordwire/inner.py": USED + "\n__all__ = ['Counter', 'dead', 'helper']\n",
        "docs/_generate.py": 'MODULES = ("coordwire",)\n',
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def found(root: Path) -> list[str]:
    script = runpy.run_path(str(SCRIPT))
    return sorted(text for _, _, text in script["unused"](script["gathered"](root)))


def test_what_nothing_uses(tree: Path) -> None:
    assert found(tree) == [
        "Counter(…, scale=…) is never given",
        "Counter.EXTRA is never read",
        "Counter.forgotten is never used",
        "dead is never used",
        "helper(…, thrice=…) is never given",
        "self.lost is never read",
    ]


def test_docs_and_fuzz_targets_use_names_and_tests_do_not(tree: Path) -> None:
    before = found(tree)
    (tree / "tests").mkdir()
    (tree / "tests" / "test_it.py").write_text("Counter().forgotten()\nhelper(1, thrice=True)\n")
    assert found(tree) == before
    (tree / "fuzz").mkdir()
    (tree / "fuzz" / "target.py").write_text("helper(1, thrice=True)\n")
    (tree / "docs" / "page.md").write_text("`counter.forgotten()` gives the sum, without EXTRA.\n")
    assert set(before) - set(found(tree)) == {
        "Counter.forgotten is never used", "helper(…, thrice=…) is never given",
    }  # fmt: skip


def test_the_list_of_the_allowed_uses_nothing_and_has_nothing_in_vain(tree: Path) -> None:
    (tree / ".ci").mkdir()
    (tree / ".ci" / SCRIPT.name).write_text('ALLOWED = {"Counter.forgotten": "", "self.lost": ""}\n')
    script = runpy.run_path(str(SCRIPT))
    script["ALLOWED"].clear()
    script["ALLOWED"].update({"Counter.": "", "Counter(…, ": "", "helper(…, thrice=…)": "", "self.found": ""})
    assert list(script["complaints"](script["unused"](script["gathered"](tree)))) == [
        "coordwire/inner.py:11: self.lost is never read",
        "coordwire/inner.py:27: dead is never used",
        ".ci/unused.py: 'self.found' is allowed, and nothing that is unused begins so",
    ]
