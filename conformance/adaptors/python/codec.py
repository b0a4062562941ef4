"""coordwire as a codec for `coordwire conformance codec -- python codec.py`."""

from __future__ import annotations

import json
import sys
from typing import Any

import coordwire
from coordwire import UnsupportedVersion, from_json, to_json
from coordwire.errors import CoordwireError
from coordwire.messages import find_message


def without_tags(value: Any) -> Any:
    """A value in JSON without unknown tagged fields, for which Kafka's JSON has no name."""
    if isinstance(value, list):
        return [without_tags(each) for each in value]
    if isinstance(value, dict):
        return {name: without_tags(each) for name, each in value.items() if name != "_tags"}
    return value


def answer(request: dict[str, Any]) -> dict[str, Any]:
    if request["do"] == "name":
        return {"name": f"coordwire {coordwire.__version__}"}
    version, name = request["version"], request["api"]
    try:
        if request["api_key"] is not None:
            cls = find_message(request["api_key"], request["direction"])
        else:
            cls = find_message(name)
        if request["do"] == "write":
            return {"hex": from_json(cls, request["json"], version=version).encode(version=version).hex()}
        message: Any = cls.decode(bytes.fromhex(request["hex"]), version=version)
    except (LookupError, UnsupportedVersion) as error:
        return {"lacks": str(error)}
    except CoordwireError as error:
        return {"refused": str(error)}
    form = without_tags(to_json(message, version=version))
    return {"hex": message.encode(version=version).hex(), "json": form}


for line in sys.stdin:
    print(json.dumps(answer(json.loads(line))), flush=True)
