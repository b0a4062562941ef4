"""The streams of docs/how-to/table-formats.md, as a command: python -m tests.spark.stream_job FORMAT FOLDER.

It runs the page's example again and again, until there is a file FOLDER/stop; then twice more, since the
first may only finish what was under way when the query was killed, and the partition and offset of each row
of the table go to FOLDER/rows.json.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

from tests.spark.table_jars import session_settings

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "table-formats.md"


def example(table_format: str, folder: Path) -> str:
    """The page's code, with this folder in the place of its folders."""
    blocks = re.findall(r"^```py\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    code: str
    (code,) = (block for block in blocks if f'.format("{table_format}")' in block)
    for written in ('"/arriving"', '"/lake/'):
        assert written in code
        code = code.replace(written, written.replace("/", f"{folder}/", 1))
    return code


def main(table_format: str, folder: Path) -> None:
    from coordwire.spark.session import session

    settings = session_settings(table_format, folder / "lake")
    spark = session("local[2]", name="stream", config=settings)
    code = compile(example(table_format, folder), str(PAGE), "exec")
    names: dict[str, Any] = {"spark": spark}
    while not (folder / "stop").exists():
        exec(code, names)
    for _ in range(2):
        exec(code, names)
    if table_format == "iceberg":
        table = spark.table("lake.db.records")
    else:
        table = spark.read.format(table_format).load(f"{folder}/lake/records")
    rows = [[row.partition, row.log_offset] for row in table.select("partition", "log_offset").collect()]
    (folder / "rows.json").write_text(json.dumps(rows))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
