"""README's examples run, and its two opening blocks stay what CI runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = (Path(__file__).parent.parent / "README.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)
SHELL = re.findall(r"^```sh\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("number", range(len(PYTHON)))
def test_a_python_example(number: int) -> None:
    exec(compile(PYTHON[number], f"README.md, python example {number + 1}", "exec"), {})


def test_the_opening_blocks_start_from_nothing() -> None:
    assert len(PYTHON) >= 6
    first, second = SHELL[:2]
    for block in (first, second):
        assert block.startswith("python3 -m venv .venv\n")
    assert "coordwire decode" in first
    assert "pytest" in second
