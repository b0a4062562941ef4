"""Topics that clients ask for before anybody has made them."""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import ask, case

for v in (0, 3, 4, 8, 9, 12, 13):
    fields: dict[str, Any] = {"allow_auto_topic_creation": True} if v >= 4 else {}
    case(
        f"first-metadata-v{v}",
        ask("Metadata", v, topics=[{"name": "$t"}], **fields),
        ask("Metadata", v, topics=[{"name": "$t"}], again=(3, 5), **fields),
    )
case(
    "first-metadata-twice",
    ask("Metadata", 12, topics=[{"name": "$t"}, {"name": "$t"}, {"name": "$t2"}]),
    ask("Metadata", 12, topics=[{"name": "$t"}, {"name": "$t2"}], again=(3, 5)),
)
case(
    "first-metadata-collides",
    ask("Metadata", 12, topics=[{"name": "first.contact"}]),
    ask("Metadata", 12, topics=[{"name": "first.contact"}], again=(3, 5)),
    ask("Metadata", 12, topics=[{"name": "first_contact"}]),
)
case(
    "produce-makes-no-topic",
    ask("Produce", 9, acks=-1, timeout_ms=100, topic_data=[{"name": "$t", "partition_data": []}]),
    ask("Metadata", 12, topics=[{"name": "$t"}], allow_auto_topic_creation=False),
)
