"""What the runs by hand of `fuzz.hardening` check holds for small sizes and few steps too."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coordwire._speedups import implementation
from fuzz.hardening.large import BYTES, ELEMENTS

ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("name", sorted(ELEMENTS))
def test_a_large_array(name: str) -> None:
    assert ELEMENTS[name](40_000) > 40_000


@pytest.mark.parametrize("name", sorted(BYTES.keys() - {"too_long"}))
def test_a_large_field(name: str) -> None:
    assert BYTES[name](10_000_000) > 9_000_000


@pytest.mark.skipif(sys.implementation.name != "cpython", reason="CPython's interpreters")
def test_interpreters_of_one_process() -> None:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    environment["COORDWIRE_IMPL"] = implementation
    if implementation == "c":  # isolated ones fall back to Python, which they may not where C is demanded
        del environment["COORDWIRE_IMPL"]
    result = subprocess.run(
        [sys.executable, "-m", "fuzz.hardening.interpreters", "--steps", "8"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert "nothing found" in result.stdout
