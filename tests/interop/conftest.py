"""Says at the end how much Kafka's classes judged; and what to do where they can't be had."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest

from tests.interop.maven import CURRENT, FIRST_LOGS, PREVIOUS, Unavailable

JUDGED: dict[str, list[int]] = {FIRST_LOGS: [], CURRENT: [], PREVIOUS: []}
"""By release: the examples of every cell that it judged."""


def give_up(error: Unavailable) -> NoReturn:
    """Skip the test; with COORDWIRE_INTEROP=required, fail it."""
    if os.environ.get("COORDWIRE_INTEROP") == "required":
        raise error
    pytest.skip(str(error))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for release, cells in JUDGED.items():
        if cells:
            each = f"{len(cells)} messages x versions, up to {cells[0]} examples each"
            terminalreporter.write_line(f"Apache Kafka {release} agrees: {each}")
