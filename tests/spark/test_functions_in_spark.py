"""The functions on columns in PySpark: the values of the core over Arrow, by DataFrames and by SQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyspark", reason="pyspark isn't installed: pip install 'coordwire[spark]'")

from pyspark.sql import functions as f

from coordwire.spark import functions
from coordwire.tables import functions as core
from tests.tables.column_samples import samples
from tests.test_notebooks import NOTEBOOKS, assert_kept

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.skipif(not hasattr(f, "arrow_udf"), reason="PySpark is older than 4.1")


@pytest.mark.parametrize("name", core.FUNCTIONS)
def test_values_are_those_of_the_core(spark: SparkSession, name: str) -> None:
    function, columns = core.FUNCTIONS[name], samples(name)
    expected = function(*columns).to_pylist()
    fields = ", ".join(f"{argument} {kind}" for argument, kind in function.arguments.items())
    rows = list(zip(*(column.to_pylist() for column in columns), strict=True))
    frame = spark.createDataFrame(rows, fields).coalesce(1)
    decoded = frame.select(getattr(functions, name)(*function.arguments).alias("decoded"))
    assert decoded.toArrow().column("decoded").to_pylist() == expected
    functions.register(spark)
    frame.createOrReplaceTempView("stored")
    by_sql = spark.sql(f"SELECT {name}({', '.join(function.arguments)}) AS decoded FROM stored")
    assert by_sql.toArrow().column("decoded").to_pylist() == expected


def test_another_log(spark: SparkSession) -> None:
    key, value = b"\0\0\0\1t", None
    frame = spark.createDataFrame([(key, value)], "key binary, value binary")
    column = functions.decode_log_record("key", "value", f.lit("__transaction_state"))
    assert frame.select(column.alias("decoded")).select("decoded.kind").collect()[0].kind == "TransactionLog"


def test_the_notebook(spark: SparkSession) -> None:
    """In the tests' own session, which the notebook's `session` gives."""
    (path,) = [path for path in NOTEBOOKS if path.name == "columns-of-bytes.ipynb"]
    assert_kept(path, with_spark=True)
