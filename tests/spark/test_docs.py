"""The PySpark example of docs/reference/spark.md runs as it is, on the sample's files."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.broker_sample import broker_sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[2]
(EXAMPLE,) = re.findall(
    r"^```py\n(.*?)^```$", (ROOT / "docs/reference/spark.md").read_text(), re.MULTILINE | re.DOTALL
)
CAPTURE = "aio__rdmock__admin.pcap"


def test_the_example(spark: SparkSession, tmp_path: Path) -> None:
    disk, caps = tmp_path / "backup", tmp_path / "caps"
    shutil.copytree(broker_sample() / "data/transactions-0", disk / "orders-0")
    caps.mkdir()
    shutil.copy(ROOT / "tests/data/captures" / CAPTURE, caps)
    code = EXAMPLE
    for written, meant in {
        "s3://logs/": disk,
        "/backup": disk,
        "/arriving": disk,
        '"caps/': f'"{caps}/',
        '"caps"': f'"{caps}"',
        '"tables"': f'"{tmp_path / "tables"}"',
    }.items():
        assert written in code
        code = code.replace(written, str(meant))
    code = code.replace("frames.selectExpr", "found = frames.selectExpr")
    names: dict[str, Any] = {}
    exec(compile(code, "docs/reference/spark.md, example", "exec"), names)
    assert any(row.group_id == "g-aio-admin" for row in names["found"].collect())
