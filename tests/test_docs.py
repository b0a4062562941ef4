"""Every Python and console example of README and docs runs, every link between them leads to a file, and
README's two opening blocks are those that CI runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
EXAMPLES = [
    pytest.param(code, id=f"{page.name}-{number}")
    for page in PAGES
    for number, code in enumerate(
        re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL), 1
    )
]
CONSOLE = [
    pytest.param(command, output, id=f"{page.name}-{number}")
    for page in PAGES
    for number, (command, output) in enumerate(
        re.findall(r"^```console\n\$ (.*?)\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL), 1
    )
]
SHELL = re.findall(r"^```sh\n(.*?)^```$", PAGES[0].read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("code", EXAMPLES)
def test_a_python_example(code: str, request: pytest.FixtureRequest) -> None:
    exec(compile(code, request.node.name, "exec"), {})


@pytest.mark.parametrize(("command", "output"), CONSOLE)
def test_a_console_example(command: str, output: str) -> None:
    bin = str(Path(sys.executable).parent)
    surroundings = {
        **os.environ,
        "COLUMNS": "100",
        "PATH": f"{bin}:{os.environ['PATH']}",
        "LC_ALL": "C.UTF-8",
    }
    done = subprocess.run(
        ["sh", "-c", command], cwd=ROOT, env=surroundings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    assert done.stdout.decode().rstrip() == output.rstrip()


def test_the_pages_have_examples() -> None:
    assert len(EXAMPLES) >= 15
    assert len(CONSOLE) >= 5


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
        assert (page.parent / target).is_file(), target


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_named_tests_and_targets_exist(page: Path) -> None:
    for path, name in re.findall(r"`((?:tests|fuzz|\.ci)/[\w/]+\.py)(?:::(\w+))?`", page.read_text()):
        source = (ROOT / path).read_text()
        assert not name or f"def {name}(" in source, f"{path} has no {name}"


def test_the_opening_blocks_start_from_nothing() -> None:
    first, second = SHELL[:2]
    for block in (first, second):
        assert block.startswith("python3 -m venv .venv\n")
    assert "coordwire decode" in first
    assert "pytest" in second
