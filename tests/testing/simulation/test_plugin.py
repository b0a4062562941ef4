"""Simulated tests in a pytest of their own: fixtures, options, and the report of a failure."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("aiokafka", reason="aiokafka isn't installed")

from coordwire.testing.simulation.runs import HASH_BLOCK, command_of_seed

SUITE = f"""
import os
import pytest
from coordwire.testing.simulation import kafka_simulation

@pytest.fixture
def price():
    return b"3"

@pytest.mark.parametrize("topic", ["tea"])
@kafka_simulation(seeds=[0, {HASH_BLOCK}], faults="1s drop test *", nodes=1)
async def test_fixtures(kafka, world, topic, price, tmp_path):
    assert os.environ["PYTHONHASHSEED"] == str(world.seed // {HASH_BLOCK} + 1)
    kafka.produce(topic, price)
    await world.calm()
    (tmp_path / "one").write_text(topic)
    assert [record.value for record in kafka.records(topic)] == [b"3"]

@kafka_simulation(seeds=4, faults="1s drop test *; 2s cut test * for 9s", nodes=1)
async def test_failing(kafka, world):
    world.note("it begins")
    await world.calm()
    assert world.seed != 2 or not world.driver.inflicted, "two of them"
"""

DEBUGGED = """
from coordwire.testing.simulation import kafka_simulation

async def sell(world):
    price = 3
    if world.seed == 1:
        raise ValueError("no more")

@kafka_simulation(seeds=3, faults="1s drop test *", nodes=1)
async def test_sale(kafka, world):
    await world.calm()
    await sell(world)
"""

ROOT = Path(__file__).parents[3]
PAGE = re.findall(
    r"^```python (test_\w+\.py)\n(.*?)^```$",
    (ROOT / "docs" / "how-to" / "simulation.md").read_text(),
    re.MULTILINE | re.DOTALL,
)
"""The tests of the page for users."""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("simulated")
    (folder / "test_shop.py").write_text(SUITE)
    for name, text in PAGE:
        (folder / name).write_text(text)
    completed = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-rf",
            "--kafka-captures=captures",
            "--kafka-jobs=2",
        ],
        cwd=folder,
        env=os.environ | {"PYTHONHASHSEED": "random"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert {path.relative_to(folder).as_posix() for path in folder.glob("captures/**/seed-*")} == {
        f"captures/test_failing/seed-2.{ending}" for ending in ("pcapng", "txt")
    }
    return completed.stdout


@pytest.mark.slow
def test_fixtures_and_blocks_of_seeds(report: str) -> None:
    assert len(PAGE) == 3
    assert "1 failed, 4 passed" in report, report


@pytest.mark.slow
def test_a_failure_says_all_that_is_needed(report: str) -> None:
    for line in (
        "seed 2 fails: AssertionError, after 2.3 s of virtual time",
        'test_shop.py", line 23, in test_failing',
        "With this fault alone, of 2:",
        "    2s cut test * for 300ms",
        "    pytest test_shop.py::test_failing --kafka-seeds 2",
        "    pytest test_shop.py::test_failing --kafka-seeds 2 --kafka-faults '2s cut test * for 300ms'",
        "All bytes, for Wireshark",
    ):
        assert line in report, report
    assert re.search(r"0\.0\d\d test +INFO +coordwire.testing.simulation: it begins", report)


@pytest.mark.slow
def test_a_strategy_above_the_decorator_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("hypothesis", reason="hypothesis isn't installed")
    given = "from hypothesis import given, strategies\n"
    text = DEBUGGED.replace("@kafka_simulation", "@given(count=strategies.integers())\n@kafka_simulation")
    (tmp_path / "test_shop.py").write_text(given + text.replace("(kafka, world)", "(kafka, world, count)"))
    arguments = "-m", "pytest", "-p", "no:cacheprovider", "test_shop.py"
    completed = subprocess.run(
        [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert "@given above @kafka_simulation would run all seeds for each example" in completed.stdout
    assert "write it below, so that each seed draws values of its own" in completed.stdout
    assert "Traceback" not in completed.stdout


@pytest.mark.slow
def test_a_debugger_shows_the_frame_that_has_failed(tmp_path: Path) -> None:
    (tmp_path / "test_shop.py").write_text(DEBUGGED)
    arguments = "-m", "pytest", "-p", "no:cacheprovider", "--pdb", "test_shop.py"
    command, environment = command_of_seed(0, *arguments)
    completed = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False, timeout=120,
        input="p 'the price is', price + 1\nquit\n",
    )  # fmt: skip
    assert "('the price is', 4)" in completed.stdout, completed.stdout
    assert "seed 1 fails: ValueError" in completed.stdout


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("--kafka-seeds=5-2", "--kafka-seeds: expected at most 10,000,001 seeds in order, got '5-2'"),
        ("--kafka-seeds=x", "--kafka-seeds: expected 17 or 0-999, got 'x'"),
        ("--kafka-seeds=", "--kafka-seeds: expected 17 or 0-999, got ''"),
        ("--kafka-faults=burn", "--kafka-faults: expected kinds of faults out of network, processes"),
        ("--kafka-faults=1s burn x", "--kafka-faults: expected one of crash"),
        ("--kafka-repeat=-1", "--kafka-repeat: expected 0 or more seeds, got -1"),
        ("--kafka-jobs=0", "--kafka-jobs: expected 1 or more processes, got 0"),
        ("--kafka-captures=file", "--kafka-captures: expected a folder, got the file file"),
    ],
)
@pytest.mark.slow
def test_wrong_options(option: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    completed = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", option],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == pytest.ExitCode.USAGE_ERROR
    assert completed.stderr.startswith(f"ERROR: {reason}")
    assert completed.stderr.strip().count("\n") == 0
