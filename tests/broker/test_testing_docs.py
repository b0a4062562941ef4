"""The tests in docs/how-to/testing-with-the-broker.md pass, with the clients that they use.

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
PAGE = ROOT / "docs" / "how-to" / "testing-with-the-broker.md"
TESTS = dict(re.findall(r"^```python (test_\w+\.py)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL))
PLAIN = ["test_first.py", "test_fixtures.py"]


def run(folder: Path, names: list[str], paths: list[Path]) -> str:
    """The output of pytest with some of the page's tests, and with more places for modules."""
    for name in names:
        (folder / name).write_text(TESTS[name])
    found = os.pathsep.join(map(str, paths))
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--strict-markers"],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=120,
        env=os.environ | {"PYTHONPATH": found},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_page_has_tests() -> None:
    names = ["test_first.py", "test_fixtures.py", "test_groups.py", "test_faults.py", "test_failover.py"]
    assert list(TESTS) == names


def test_those_that_need_no_client(tmp_path: Path) -> None:
    own = [] if find_spec("confluent_kafka") else [Path(__file__).with_name("own_client")]
    assert "3 passed" in run(tmp_path, PLAIN, [ROOT, *own])


@pytest.mark.clients
def test_all_with_their_clients(tmp_path: Path) -> None:
    home = os.environ.get("COORDWIRE_CLIENTS")
    if not home:
        pytest.skip("COORDWIRE_CLIENTS names no virtual environment with Kafka clients")
    (packages,) = (Path(home) / "lib").glob("python*/site-packages")
    if packages.parent.name != f"python{sys.version_info[0]}.{sys.version_info[1]}":
        pytest.skip(f"COORDWIRE_CLIENTS is of another Python, {packages.parent.name}")
    print(run(tmp_path, list(TESTS), [ROOT, packages]))
