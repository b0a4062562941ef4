import json
import os
from pathlib import Path


def decode(api_key: int | None, direction: str, version: int, body: bytes) -> bytes | None:
    """Put your decoder here: the bytes that it writes again; None for what it lacks."""
    return None


def test_hostile() -> None:
    asked, failures = 0, []
    with (Path(os.environ["CONFORMANCE"]) / "hostile.jsonl").open(encoding="utf-8") as lines:
        for v in map(json.loads, lines):
            try:
                again = decode(v["api_key"], v["direction"], v["version"], bytes.fromhex(v["hex"]))
            except ValueError:  # what your decoder raises, and nothing else
                wrong = v["verdict"] == "valid"
            else:
                if again is None:
                    continue
                wrong = v["verdict"] == "invalid" or (v["verdict"] == "valid" and again.hex() != v["hex"])
            asked += 1
            failures += [f"{v['id']} is {v['verdict']}"] * wrong
    assert asked, "nothing was read: put your decoder into decode"
    assert not failures, "\n".join(failures)
