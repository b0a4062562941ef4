"""One story on every surface: what a terminal says of a recording is in its report, a notebook and JSON.

Strategy: the terminal's lines, at a width at which nothing is wrapped, are looked for in the texts of the
pages; the tables of the report are written first, and read back.
"""

from __future__ import annotations

import html
import io
import json
import lzma
import re
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")
pytest.importorskip("rich", reason="rich isn't installed: pip install 'coordwire[cli]'")

from coordwire.capture import Capture
from coordwire.cli.__main__ import main
from coordwire.notebook import show
from coordwire.tables import pipeline
from coordwire.tables.readers.group_rows import STORIES
from coordwire.timeline import timeline
from tests.tables.in_process import InProcess

DATA = Path(__file__).parents[1] / "data"
FEW = ("classic-freezes.pcap.xz", "share-causes.pcap.xz", "conversions.pcap.xz", "broker-killed.pcap.xz")
PATHS = sorted([*DATA.rglob("*.pcap"), *DATA.rglob("*.pcap.xz")])
KAFKAS = [path for path in PATHS if not {"drafts", "zookeeper", "zookeeper_consumer"} & set(path.parts)]


def story_texts(path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a terminal says: the head's sentences, incidents, and the cells of the tables."""
    monkeypatch.setenv("COLUMNS", "5000")
    main(["timeline", "--format", "story", str(path)])
    texts: list[str] = []
    for line in capsys.readouterr().out.splitlines():
        if line.startswith("   ") and str(path) not in line:
            texts += filter(None, re.split(r"\s{2,}", line.strip()))
        elif re.match(r"(Incidents|Rebalances|In at|No longer)", line):
            texts.append(line)
    return texts


def plain(page: str) -> str:
    """A page's texts, apart from one another."""
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", " ", page)))


@pytest.mark.parametrize(
    "path",
    [pytest.param(path, id=path.name, marks=[] if path.name in FEW else pytest.mark.slow) for path in KAFKAS],
)
def test_no_surface_knows_less(
    path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = story_texts(path, capsys, monkeypatch)
    pipeline.run(InProcess(), [str(path)], str(tmp_path / "tables"), tables=STORIES)
    report = plain((tmp_path / "tables" / "report.html").read_text("utf-8"))
    data = path.read_bytes()
    stream = io.BytesIO(lzma.decompress(data) if path.suffix == ".xz" else data)
    notebook = show(timeline(Capture(stream, path.name, lazy=True).entries_and_ends(), ends=True))
    page = plain(notebook._repr_html_() or "")
    monkeypatch.setattr("coordwire.notebook.rendering.WIDTH", 5000)
    lines = re.sub(r"\s+", " ", repr(notebook))
    for surface in (report, page, lines):
        missing = [text for text in texts if text not in surface]
        assert not missing
    main(["timeline", "--format", "json", "--summary", str(path)])
    for line in capsys.readouterr().out.splitlines():
        form = json.loads(line)
        assert form["verdict"] in texts
        for incident in form["incidents"]:
            assert all(part in texts or part in incident["text"] for part in incident["text"].split("; "))
