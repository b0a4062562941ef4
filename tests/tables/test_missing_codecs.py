"""What could not be read for want of a codec's library is read once that is installed."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from coordwire.records.compression import missing_codecs
from coordwire.tables import pipeline
from tests.broker_sample import broker_sample
from tests.tables import pipeline_steps
from tests.tables.in_process import InProcess

pytest.importorskip("zstandard", reason="zstandard isn't installed: pip install 'coordwire[compression]'")


def test_a_rerun_with_the_library_reads_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs, out = tmp_path / "logs", str(tmp_path / "out")
    shutil.copytree(broker_sample() / "data/codec-zstd-0", logs / "codec-zstd-0")

    def run() -> pipeline.PipelineSummary:
        return pipeline.run(InProcess(), [str(logs)], out, tables=["records", "quarantine"], report=False)

    with monkeypatch.context() as without:
        without.setitem(sys.modules, "zstandard", None)
        assert missing_codecs() == ["zstd"]
        run()
        assert not pipeline_steps.table_rows(out, "records")
        assert all("zstandard" in row["reason"] for row in pipeline_steps.table_rows(out, "quarantine"))
    assert missing_codecs() == []
    run()
    actual = len(pipeline_steps.table_rows(out, "records"))
    assert actual > 0
    assert not pipeline_steps.table_rows(out, "quarantine")
    run()
    assert len(pipeline_steps.table_rows(out, "records")) == actual
