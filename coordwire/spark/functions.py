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
    "with_schemas",
]

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from coordwire.errors import CoordwireError
from coordwire.tables.functions import FUNCTIONS, struct_type

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession


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


def registry_schema(
    data: Column | str, header: Column | str | None = None, protobuf: Column | str | bool = False
) -> Column:
    """A schema's id or GUID, the indexes of a Protobuf message, and the payload. header: with the id."""
    from pyspark.sql import functions as f

    id_header = f.lit(None).cast("binary") if header is None else header
    return _apply(
        "registry_schema", data, id_header, f.lit(protobuf) if isinstance(protobuf, bool) else protobuf
    )


def with_schemas(records: DataFrame, *, protobuf: bool = False) -> DataFrame:
    """The records with key_schema_id, key_schema_guid, key_payload, and the same of the value.

    protobuf: whether payloads are Protobuf; then there are key_message_indexes and value_message_indexes too,
    and the payload begins after them. The columns key, value and headers are read as far as they are there.
    """
    from pyspark.sql import functions as f

    names = {"id": "schema_id", "guid": "schema_guid", "message_indexes": "message_indexes",
             "payload": "payload"}  # fmt: skip
    for side in ("key", "value"):
        if side in records.columns:
            header = f"try_element_at(filter(headers, h -> h.key = '__{side}_schema_id'), -1).value"
            id_header = f.expr(header) if "headers" in records.columns else None
            records = records.withColumn("_found", registry_schema(side, id_header, protobuf))
            for field, name in names.items():
                if protobuf or field != "message_indexes":
                    records = records.withColumn(f"{side}_{name}", f.col("_found")[field])
            records = records.drop("_found")
    return records


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
