"""Every test of records runs under both halves, in one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crc32c import crc32c

from coordwire.records import backend


@pytest.fixture(scope="module", params=["c", "python"], autouse=True)
def half(request: pytest.FixtureRequest) -> Iterator[str]:
    """The half that reads and writes records: "c" or "python"."""
    half: str = request.param
    with pytest.MonkeyPatch.context() as patch:
        if half == "python":
            patch.setattr(backend, "codec", None)
            patch.setattr(backend, "columns", None)
            patch.setattr(backend, "crc32c", crc32c)
        elif backend.codec is None:
            pytest.skip("no native extension")
        yield half
