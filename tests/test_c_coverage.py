"""What gcov says is counted rightly, each gap has a reason, and no reason is left over."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from tests.c_coverage import EXCUSES, SOURCES, Line, gaps, judged, merged, reached
from tests.proof import ROOT


def report(file: Path, *lines: tuple[int, int, list[int]]) -> dict[str, Any]:
    return {
        "files": [
            {
                "file": str(file),
                "lines": [
                    {"line_number": number, "count": count, "branches": [{"count": one} for one in taken]}
                    for number, count, taken in lines
                ],
            }
        ]
    }


def test_a_header_is_reached_where_one_file_reaches_it(tmp_path: Path) -> None:
    header = tmp_path / "part" / "a.h"
    header.parent.mkdir()
    header.write_text("int a;\nif (b)\nPy_CLEAR(c);\nnever();\nnor();\n")
    reports = [
        report(header, (1, 1, []), (2, 4, [4, 0]), (3, 1, [0, 1]), (4, 0, []), (5, 0, [])),
        report(header, (1, 0, []), (2, 3, [0, 3])),
        report(Path("/usr/include/else.h"), (1, 0, [])),
    ]
    files = merged(iter(reports), tmp_path)
    assert dict(files["part/a.h"]) == {1: Line(1), 2: Line(7, [4, 3]), 3: Line(1), 4: Line(0), 5: Line(0)}
    assert reached(files) == (3, 5, 2, 2)
    assert list(gaps(files, tmp_path)) == [("part/a.h", 4, "never();")]


def test_a_gap_needs_a_reason_and_a_reason_a_gap() -> None:
    found = [("a.c", 3, "if (x)"), ("b.c", 4, "if (x)")]
    assert judged(found, {"a.c": {"if (x)": "why"}}) == (["b.c:4: if (x)"], [])
    open_gaps, stale = judged(found, {"a.c": {"if (x)": "why", "gone": "why"}, "b.c": {"if (x)": "why"}})
    assert (open_gaps, stale) == ([], ["a.c: gone"])


def test_each_reason_names_a_line_that_is_there() -> None:
    for name, reasons in tomllib.loads(EXCUSES.read_text("utf-8")).items():
        lines = {line.strip() for line in (ROOT / SOURCES / name).read_text().splitlines()}
        assert set(reasons) <= lines, name
        assert all(reasons.values())


def test_the_page_says_how_many_gaps_there_are() -> None:
    reasons = [one for file in tomllib.loads(EXCUSES.read_text("utf-8")).values() for one in file.values()]
    page = (ROOT / "docs" / "development" / "proof.md").read_text("utf-8")
    assert f"lists {len(reasons)} stretches of C" in page
    assert f'for {reasons.count("not reached yet")} of them "not reached yet"' in page
