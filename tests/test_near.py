"""What `python -m tests.near` names for files of each kind."""

from __future__ import annotations

import pytest

from tests.near import MOST, ROOT, near

TESTS = {
    "coordwire/capture/framing.py": ["capture/test_framing.py", "capture/test_rules.py"],
    "coordwire/cli/decode/tree.py": ["cli/test_trees.py"],  # imported by its package, when it is needed
    "coordwire/coordinator/consumer/heartbeat.py": ["coordinator/test_heartbeat_paths.py"],
    "coordwire/timeline/story/incidents.py": ["timeline/test_gap_incidents.py", "timeline/test_totals.py"],
    "coordwire/connection/__init__.py": ["connection/test_connection.py"],
    "coordwire/_speedups/messages/decode.c": ["codec/test_native.py"],
    "schemas/_words.py": ["schemas", "conformance"],
    "docs/index.md": ["test_docs.py"],
    "tests/growth.py": ["test_growth.py", "capture/test_growth.py"],
    "tests/test_near.py": ["test_near.py"],
}


@pytest.mark.parametrize("path", TESTS)
def test_a_file_has_its_tests(path: str) -> None:
    names = [str(test.relative_to(ROOT / "tests")) for test in near(ROOT / path)]
    assert set(TESTS[path]) <= set(names[: max(len(TESTS[path]) * 3, 4)]), names
    assert len(names) <= MOST


def test_what_is_imported_through_a_package_counts() -> None:
    """`from coordwire import limits` is an import of `coordwire.limits`."""
    names = {test.name for test in near(ROOT / "coordwire" / "limits.py")}
    assert "test_budgets.py" in names
