import json
import os
from pathlib import Path


def decode(api_key: int | None, direction: str, version: int, body: bytes) -> bytes | None:
    """Put your decoder here: the bytes that it writes again; None for what it lacks."""
    return None


def test_hostile() -> None:
    with (Path(os.environ["CONFORMANCE"]) / "hostile.jsonl").open(encoding="utf-8") as lines:
        for v in map(json.loads, lines):
            try:
                again = decode(v["api_key"], v["direction"], v["version"], bytes.fromhex(v["hex"]))
            except ValueError:  # what your decoder raises, and nothing else
                assert v["verdict"] != "valid", v["id"]
                continue
            if again is not None:
                assert v["verdict"] != "invalid", v["id"]
                assert v["verdict"] != "valid" or again.hex() == v["hex"], v["id"]
