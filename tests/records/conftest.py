"""Every test of records runs under both halves, in one process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crc32c import crc32c

from coordwire.records import native


@pytest.fixture(scope="module", params=["c", "python"], autouse=True)
def half(request: pytest.FixtureRequest) -> Iterator[str]:
    """The half that reads and writes records: "c" or "python"."""
    half: str = request.param
    with pytest.MonkeyPatch.context() as patch:
        if half == "python":
            patch.setattr(native, "codec", None)
            patch.setattr(native, "columns", None)
            patch.setattr(native, "crc32c", crc32c)
        elif native.codec is None:
            pytest.skip("no native extension")
        yield half
