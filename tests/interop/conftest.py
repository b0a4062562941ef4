"""Says at the end how much Kafka's classes judged."""

from __future__ import annotations

import pytest

from tests.interop.maven import CURRENT, PREVIOUS

JUDGED: dict[str, list[int]] = {CURRENT: [], PREVIOUS: []}
"""By release: the examples of every cell that it judged."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for release, cells in JUDGED.items():
        if cells:
            each = f"{len(cells)} messages x versions, up to {cells[0]} examples each"
            terminalreporter.write_line(f"Apache Kafka {release} agrees: {each}")
