"""The tests in docs/how-to/testing-with-the-broker.md and those of the tutorial pass, with their clients.

Those that need no client library, and the first, always run: where confluent-kafka is not installed, the
first has `own_client` in its place. With COORDWIRE_CLIENTS all run, with the clients of that environment.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def files(page: str) -> dict[str, str]:
    """The files on a page, by name."""
    text = (ROOT / "docs" / page).read_text()
    return dict(re.findall(r"^```python (\w+\.py)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


TESTS = files("how-to/testing-with-the-broker.md")
TUTORIAL = files("tutorials/test-a-service.md")
PLAIN = ["test_first.py", "test_fixtures.py"]


def run(folder: Path, texts: dict[str, str], paths: list[Path]) -> str:
    """The output of pytest with these files, and with more places for modules."""
    for name, text in texts.items():
        (folder / name).write_text(text)
    result = os.pathsep.join(map(str, paths))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        env=os.environ | {"PYTHONPATH": result},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_has_tests() -> None:
    names = ["first", "fixtures", "groups", "faults", "seeds", "failover", "replicas", "racks"]
    assert list(TESTS) == [f"test_{name}.py" for name in names]


def test_those_that_need_no_client(tmp_path: Path) -> None:
    own = [] if find_spec("confluent_kafka") else [Path(__file__).with_name("own_client")]
    assert "3 passed" in run(tmp_path, {name: TESTS[name] for name in PLAIN}, [ROOT, *own])


def test_the_tutorial(tmp_path: Path) -> None:
    assert list(TUTORIAL) == ["service.py", "test_service.py"]
    assert "1 passed" in run(tmp_path, TUTORIAL, [ROOT])


@pytest.mark.clients
def test_all_with_their_clients(tmp_path: Path) -> None:
    home = os.environ.get("COORDWIRE_CLIENTS")
    if not home:
        pytest.skip("COORDWIRE_CLIENTS names no virtual environment with Kafka clients")
    (packages,) = (Path(home) / "lib").glob("python*/site-packages")
    if packages.parent.name != f"python{sys.version_info[0]}.{sys.version_info[1]}":
        pytest.skip(f"COORDWIRE_CLIENTS is of another Python, {packages.parent.name}")
    print(run(tmp_path, TESTS, [ROOT, packages]))
