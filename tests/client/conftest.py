"""What the client's tests share: a certificate."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.certificates import make_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 and its key, as PEM files."""
    return make_certificate(tmp_path_factory.mktemp("certificate"))
