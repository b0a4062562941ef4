"""Python's hash seed, which each process has its own of, changes no byte and no report of a coordinator."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SEEDS = ("0", "1", "2")


def test_the_hash_seed_of_a_process_changes_nothing() -> None:
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.coordinator.hash_seeds"],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed},
            stdout=subprocess.PIPE,
            text=True,
        )
        for seed in SEEDS
    ]
    first, *further = [process.communicate()[0].splitlines() for process in processes]
    assert [process.returncode for process in processes] == [0] * len(SEEDS)
    assert len(first) == 9
    assert len({line.split()[0] for line in first}) == 9
    for lines in further:
        assert lines == first
