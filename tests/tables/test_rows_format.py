"""The version of the pipeline's rows: it changes with them, and with nothing else is anything read again.

`FINGERPRINTS` has each version with a digest of all tables' columns and of their rows from stored inputs. A
change of either fails here until `ROWS_FORMAT` is a new one (0.1.0.1 after 0.1.0, or the next release's
number), with a line of its own below; earlier lines stay as they are. The meanings of columns are judged
apart: new words for the same meaning need their new digest alone.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import coordwire
from coordwire.records import Record, encode_batch
from coordwire.tables.columns import ROWS_FORMAT, TABLES
from coordwire.tables.options import Options
from coordwire.tables.pipeline.units import as_units
from coordwire.tables.readers.files import File
from coordwire.tables.readers.splits import Part
from tests.tables.captured_logs import unpack_captured_logs
from tests.tables.made_segments import START, partition
from tests.tables.pipeline_steps import run, table_rows
from tests.tables.test_captures import rotated

CAPTURES = Path(__file__).parents[1] / "data" / "captures"

FINGERPRINTS = {"0.1.0": "2991393f03fb", "0.1.0.1": "5cb27b0a8d6b", "0.1.0.2": "77748d275270"}
MEANINGS = "56d7a61d6c61"
OF_THIS_RUN = {"modified"}
"""Columns whose values are another run's others."""


def _digest(form: Any) -> str:
    text = json.dumps(form, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _inputs(folder: Path) -> None:
    """Captures, one of them damaged, one that begins in the middle, and a broker's logs with all that
    segments may have."""
    unpack_captured_logs(folder)
    for name in ("confluent__noida__sasl.pcap", "aio__tansu__txn.pcap", "kpy__tansu__group-range.pcap"):
        shutil.copy(CAPTURES / name, folder)
    rotated(folder / "later", ["first.pcap", "second.pcap"])
    (folder / "later" / "first.pcap").unlink()
    damaged = bytearray((CAPTURES / "aio__rdmock__admin.pcap").read_bytes())
    damaged[len(damaged) // 3 : len(damaged) // 3 + 40] = bytes(40)
    (folder / "damaged.pcap").write_bytes(damaged)
    records = [
        Record(timestamp=START, key=None, value=b"v", headers=(("h", None), ("h", b"x"))),
        Record(timestamp=START + 1, key=b"k", value=None),
    ]
    whole = encode_batch(records) + encode_batch(records, base_offset=2, producer_id=7, producer_epoch=1)
    partition(folder, "orders", 0, whole + b"\xff" * 100 + encode_batch(records, base_offset=4))


def _rows(out: Path, table: str, inputs: Path) -> list[str]:
    rows = [
        {name: value for name, value in row.items() if name not in OF_THIS_RUN}
        for row in table_rows(out, table)
    ]
    return sorted(json.dumps(row, sort_keys=True, default=str).replace(str(inputs), "") for row in rows)


def test_the_version_of_the_rows_changes_with_the_rows(tmp_path: Path) -> None:
    inputs, out = tmp_path / "in", tmp_path / "out"
    _inputs(inputs)
    run(inputs, out, tables=TABLES)
    rows = {table: _rows(out, table, inputs) for table in TABLES}
    assert [table for table, of_table in rows.items() if not of_table] == []
    columns = {table: [column[:2] for column in columns] for table, columns in TABLES.items()}
    assert FINGERPRINTS.get(ROWS_FORMAT) == _digest([columns, rows]), "the rows are others: a new ROWS_FORMAT"
    assert [*FINGERPRINTS][-1] == ROWS_FORMAT
    assert len(set(FINGERPRINTS.values())) == len(FINGERPRINTS)


def test_meanings_of_columns_are_judged_when_they_change() -> None:
    meanings = {table: [column.meaning for column in columns] for table, columns in TABLES.items()}
    assert _digest(meanings) == MEANINGS, "where a column means something else, ROWS_FORMAT is a new one"


def test_an_upgrade_of_the_package_reads_nothing_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs, out = tmp_path / "in", tmp_path / "out"
    partition(inputs, "orders", 0, encode_batch([Record(timestamp=START, value=b"v")]))
    shutil.copy(CAPTURES / "kpy__tansu__group-range.pcap", inputs)
    run(inputs, out, tables=TABLES)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")}
    for module in ("coordwire", "coordwire.tables.report.page", "coordwire.tables.formats.delta_table"):
        monkeypatch.setattr(f"{module}.__version__", "9.9.9")
    assert coordwire.__version__ == "9.9.9"
    summary = run(inputs, out, tables=TABLES)
    assert summary.reused > 1
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*.parquet")} == before
    monkeypatch.setattr("coordwire.tables.pipeline.units.ROWS_FORMAT", "later")
    assert run(inputs, out, tables=TABLES).reused == 0


def test_units_have_the_names_of_tables_that_exist() -> None:
    """Tables with rows of this version are continued."""
    file = File("/in/a.pcap", 10, 20)
    [unit] = as_units([Part("capture", file.path, 10, 0, 10)], {file.path: file}, Options(), ["frames"])
    assert (ROWS_FORMAT, unit.name) == ("0.1.0.2", "2afe14d4e541e2698a7852d6")
