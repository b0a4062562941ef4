"""Apache Kafka's own JSON form. messages.py: messages and back; values.py: single values."""

from coordwire.jsonform.messages import Json, from_json, to_json

__all__ = ["Json", "from_json", "to_json"]
