"""What several of the broker's tests need."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from tests.certificates import make_certificate


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1, signed by itself, and its key."""
    return make_certificate(tmp_path)


@pytest.fixture
def only_warnings(caplog: pytest.LogCaptureFixture) -> None:
    """Warnings and errors are kept of the log, and nothing else."""
    caplog.set_level(logging.WARNING)
