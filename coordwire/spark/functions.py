"""The functions on columns of `coordwire.tables.functions`, in PySpark 4.1 and later.

    rows = spark.readStream.format("kafka").load()  # with what docs/how-to/live-groups.md says
    rows.select(decode_log_record("key", "value").alias("record")).select("record.*")

    functions.register(spark)
    spark.sql("SELECT decode_records(value).records FROM stored")

Strategy: Spark's Arrow functions, whose arrays are handed on. Rules: an argument is a column or its name; a
value for all rows is a literal, `lit("__transaction_state")`.
"""

from __future__ import annotations

__all__ = [
    "consumer_assignment",
    "consumer_subscription",
    "decode_log_record",
    "decode_message",
    "decode_records",
    "register",
    "registry_schema",
]

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.tables.functions import FUNCTIONS, struct_type

if TYPE_CHECKING:
    from pyspark.sql import Column, SparkSession


def decode_log_record(key: Column | str, value: Column | str, log: Column | str | None = None) -> Column:
    """A record of a coordinator's log. log: the topic, `__consumer_offsets` by default."""
    from pyspark.sql import functions as f

    return _apply("decode_log_record", key, value, f.lit("__consumer_offsets") if log is None else log)


def decode_records(data: Column | str) -> Column:
    """The records of record batches."""
    return _apply("decode_records", data)


def decode_message(
    body: Column | str, api: Column | str, version: Column | str, direction: Column | str
) -> Column:
    """A request or response, after its header, in Kafka's JSON form."""
    return _apply("decode_message", body, api, version, direction)


def consumer_subscription(data: Column | str) -> Column:
    """The subscription that a consumer offers in JoinGroup."""
    return _apply("consumer_subscription", data)


def consumer_assignment(data: Column | str) -> Column:
    """The assignment that a consumer gets in SyncGroup."""
    return _apply("consumer_assignment", data)


def registry_schema(data: Column | str) -> Column:
    """A schema's id and the payload after it; see also `coordwire.spark.payloads`."""
    return _apply("registry_schema", data)


def register(spark: SparkSession) -> list[str]:
    """Make the functions known to the session's SQL, with all of their arguments; returns their names.

    Raises `CoordwireError` with a PySpark before 4.1.
    """
    for name in FUNCTIONS:
        spark.udf.register(name, _arrow_function(name))
    return list(FUNCTIONS)


def _apply(name: str, *columns: Column | str) -> Column:
    column: Column = _arrow_function(name)(*columns)
    return column


def _arrow_function(name: str) -> Callable[..., Any]:
    """The function as Spark's; its workers import what it needs by this package's name."""
    from pyspark.sql import functions as f

    if not hasattr(f, "arrow_udf"):
        raise CoordwireError("these functions need PySpark 4.1 or later")
    spark_functions: Any = f

    def apply(*columns: Any) -> Any:
        return FUNCTIONS[name](*columns)

    apply.__name__ = name
    with warnings.catch_warnings():  # it prefers annotations, which must not be texts
        warnings.simplefilter("ignore", UserWarning)
        function: Callable[..., Any] = spark_functions.arrow_udf(
            apply, struct_type(FUNCTIONS[name].result), spark_functions.ArrowUDFType.SCALAR
        )
    return function
