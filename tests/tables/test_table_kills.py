"""The command with tables in Delta and Iceberg, killed at any moment, and run again; two at once."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="pyarrow isn't installed: pip install 'coordwire[arrow]'")

import pyarrow as pa

from coordwire.records import batches
from tests.tables.made_segments import partition, segment

TIMES = int(os.environ.get("COORDWIRE_KILLS", "1"))
"""How often a run is killed, each at another moment."""

PARTITIONS = 6


def command(logs: Path, out: Path, table_format: str) -> list[str]:
    words = ["--engine", "local", "--workers", "2", "--no-report", "--format", table_format,
             "--split-size", "16000"]  # fmt: skip
    return [
        sys.executable, "-m", "coordwire.cli", "pipeline", str(logs), "--out", str(out), *words,
        "--tables", "records,files", "--summary", "json",
    ]  # fmt: skip


def offsets(out: Path, table_format: str) -> Counter[tuple[int, int]]:
    """How often each record is in the table; none where there is no table yet."""
    place = out / "records"
    if not any((place / log).exists() for log in ("_delta_log", "metadata")):
        return Counter()
    if table_format == "delta":
        from deltalake import DeltaTable

        table: pa.Table = DeltaTable(place).to_pyarrow_table(columns=["partition", "log_offset"])
    else:
        from pyiceberg.table import StaticTable

        scan = StaticTable.from_metadata(str(place)).scan(selected_fields=("partition", "log_offset"))
        table = scan.to_arrow()
    return Counter(
        zip(*(table.column(name).to_pylist() for name in ("partition", "log_offset")), strict=True)
    )


def expected(logs: Path) -> Counter[tuple[int, int]]:
    counts: Counter[tuple[int, int]] = Counter()
    for file in logs.rglob("*.log"):
        number = int(file.parent.name.rpartition("-")[2])
        counts.update((number, record.offset) for batch in batches(file.read_bytes()) for record in batch)
    return counts


@pytest.mark.parametrize(("table_format", "package"), [("delta", "deltalake"), ("iceberg", "pyiceberg")])
def test_killed_at_any_moment(tmp_path: Path, table_format: str, package: str) -> None:
    """Rows are all of a run or none of it, at each moment, and each once in the end."""
    pytest.importorskip(package, reason=f"{package} isn't installed: pip install 'coordwire[{table_format}]'")
    logs, out, rng = tmp_path / "logs", tmp_path / "out", random.Random(table_format)
    versions: list[Counter[tuple[int, int]]] = [Counter()]
    took, killed, last = 3.0, 0, 0
    for turn in range(TIMES):
        for number in range(PARTITIONS):
            place = logs / f"orders-{number}"
            data = segment(random.Random(100 * turn + number), 8, base=10_000 * turn)
            if not place.exists():
                partition(logs, "orders", number, data)
            else:
                file = next(place.glob("*.log"))
                file.write_bytes(file.read_bytes() + data)
        versions.append(expected(logs))
        running = subprocess.Popen(
            command(logs, out, table_format), start_new_session=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        began = time.monotonic()
        try:
            running.wait(took * rng.uniform(0.3, 1.0))
            took = max(time.monotonic() - began, 1.0)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            killed += 1
        _, errors = running.communicate()
        assert "Traceback" not in errors
        actual = offsets(out, table_format)
        assert actual in versions[last:]  # a run that was killed before may have left a commit to be made
        last = versions.index(actual, last)
        if rng.random() < 0.5 or turn == TIMES - 1:
            began = time.monotonic()
            process = subprocess.run(
                command(logs, out, table_format), capture_output=True, text=True, timeout=600, check=False
            )
            took = time.monotonic() - began
            assert process.returncode == 0, process.stderr
            assert json.loads(process.stdout)["records"] == versions[-1].total()
            assert offsets(out, table_format) == versions[-1]
            last = len(versions) - 1
    print(f"{killed} of {TIMES} runs were killed")
