"""The archive of vectors: what is kept is what its generators make, and coordwire obeys it.

Strategy: inputs are made anew without Kafka and compared with those that are kept, checksums with the
manifest; `tests/interop/test_archive.py` asks Kafka again. Then each hostile vector is read, strictly and
leniently. Rules: by default a part of them, in the `slow` tests all.
"""

from __future__ import annotations

import functools
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conformance import messages
from conformance.archive import DATA, HERE, manifest, unpacked, write
from conformance.flaws import FLAWS
from conformance.histories import pairs_of
from conformance.hostile import ALLOWANCE, EARLIER, inputs, large
from conformance.judge import ANSWERS, message_of
from conformance.steps import Former, outcome_of, text
from coordwire import from_json, to_json
from coordwire.codec import Message
from coordwire.errors import DecodeError
from tests.interop.cells import as_kafka, kinds, without_tags

Vector = dict[str, Any]

ROOT = Path(__file__).parents[2]
PART = 5
"""One of so many vectors is read by default."""

TYPES = {"string": str, "integer": int, "boolean": bool, "array": list, "object": dict, "null": type(None)}


files = functools.cache(unpacked)


@functools.cache
def vectors(family: str) -> list[Vector]:
    return [json.loads(line) for line in files()[f"{family}.jsonl"].splitlines()]


@functools.cache
def by_message() -> dict[str, list[Vector]]:
    result: dict[str, list[Vector]] = {}
    for vector in vectors("hostile"):
        result.setdefault(message_of(vector).__name__, []).append(vector)
    return result


def test_the_manifest_is_that_of_the_kept_files() -> None:
    assert json.loads((DATA / "manifest.json").read_text()) == manifest(files())


def test_the_kept_inputs_are_those_that_the_generators_make() -> None:
    def asked(some: list[Vector]) -> list[Vector]:
        return [{name: value for name, value in one.items() if name not in ANSWERS} for one in some]

    hostile = vectors("hostile")
    assert asked(list(inputs(hostile))) == asked(hostile)
    assert list(large()) == asked(vectors("hostile-large"))
    assert len(hostile) > 45_000
    assert sum(f"/{EARLIER}/" in one["id"] for one in hostile) == 3824


def test_the_kept_values_are_those_that_the_generator_chooses() -> None:
    made = ("hex", "release")
    chosen = [{name: one[name] for name in one if name not in made} for one in vectors("messages")]
    assert chosen == list(messages.inputs())
    assert {message_of(one).__name__ for one in chosen} == {cls.__name__ for cls in kinds()}


def test_addresses_are_unique() -> None:
    addresses = [json.loads(line)["id"] for data in files().values() for line in data.splitlines()]
    assert len(addresses) == len(set(addresses))


def test_every_kind_of_flaw_is_there() -> None:
    families = ("hostile", "hostile-large", "hostile-batches")
    assert {one["flaw"] for family in families for one in vectors(family)} == set(FLAWS)


FAMILIES = sorted(
    name.removesuffix(".jsonl") for name in json.loads((DATA / "manifest.json").read_text())["files"]
)


@pytest.mark.parametrize("family", FAMILIES)
def test_lines_are_as_the_schema_says(family: str) -> None:
    schema = json.loads((HERE / "schemas" / f"{family.removesuffix('-large')}.schema.json").read_text())
    assert vectors(family)
    for one in vectors(family):
        assert set(schema["required"]) <= set(one) <= set(schema["properties"]), one["id"]
        for name, value in one.items():
            check(schema["properties"][name], value)


def test_steps_of_histories_are_as_the_schema_says() -> None:
    schema = json.loads((HERE / "schemas" / "histories.schema.json").read_text())
    rule = schema["properties"]["steps"]["items"]
    met = set()
    for step in (step for one in vectors("histories") for step in one["steps"]):
        assert set(rule["required"]) <= set(step) <= set(rule["properties"])
        met |= set(step)
        for name, value in step.items():
            check(rule["properties"][name], value)
    assert set(rule["properties"]) - met <= {"to", "unloadable"}


def test_histories_are_whole_in_json() -> None:
    """Steps are the same after they were bytes, so that the JSON is enough for a test in any language."""
    for one in vectors("histories"):
        former, requests, now = Former(kafkas_form), dict[int, tuple[int, int]](), 0
        assert one["settings"] == pairs_of(one["seed"])
        for step in one["steps"]:
            if step["op"] == "request":
                requests[step["ticket"]] = step["api_key"], step["version"]
            assert former.form(text(step), outcome_of(step, requests)) == step, one["id"]
            assert step["now"] >= now
            now = step["now"]


def kafkas_form(cls: type[Message], version: int, data: bytes) -> Any:
    message = cls.decode(data, version=version)
    return json.loads(json.dumps(as_kafka(cls, to_json(message, version=version))))


def check(rule: dict[str, Any], value: Any) -> None:
    types = rule.get("type", [])
    kinds = tuple(TYPES[name] for name in ([types] if isinstance(types, str) else types))
    assert not kinds or isinstance(value, kinds)
    assert value in rule.get("enum", [value])
    assert not isinstance(value, str) or re.search(rule.get("pattern", ""), value)


def test_unpacking_needs_the_core_alone() -> None:
    """Whoever has a codec in another language installs no tools of ours."""
    names = "{name.partition('.')[0] for name in set(sys.modules) - before}"
    code = f"import sys; before = set(sys.modules); import conformance.__main__; print(*{names})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    ours = {"conformance", "coordwire", "crc32c", "tests"}
    assert set(run.stdout.split()) - sys.stdlib_module_names <= ours


def test_the_allocation_rule_is_stated() -> None:
    page = (HERE / "README.md").read_text()
    assert f"{ALLOWANCE[0]:,} + {ALLOWANCE[1]} n bytes" in page


def test_messages() -> None:
    """Kafka's bytes for Kafka's JSON, both ways."""
    for one in vectors("messages"):
        cls, wire, version = message_of(one), bytes.fromhex(one["hex"]), one["version"]
        message: Any = cls.decode(wire, version=version)
        assert message.encode(version=version) == wire, one["id"]
        tags = {tag: bytes.fromhex(data) for tag, data in one.get("unknown_tags", ())}
        assert dict(message.tags or {}) == tags
        form = json.loads(json.dumps(to_json(message, version=version)))
        form.pop("_tags", None)
        assert form == one["json"], one["id"]
        message.tags = None
        assert from_json(cls, one["json"], version=version) == message, one["id"]


@pytest.mark.parametrize("name", by_message())
def test_hostile_bytes(name: str) -> None:
    for vector in by_message()[name][::PART]:
        obey(vector)


@pytest.mark.slow
@pytest.mark.parametrize("name", by_message())
def test_all_hostile_bytes(name: str) -> None:
    for vector in by_message()[name]:
        obey(vector)


def test_large_bytes() -> None:
    for vector in vectors("hostile-large"):
        cls, wire = message_of(vector), bytes.fromhex(vector["hex"])
        if vector["kafka"] == "reads":
            assert cls.decode(wire, version=vector["version"]).encode(version=vector["version"]) == wire
            continue
        with pytest.raises(DecodeError, match="limit is"):
            cls.decode(wire, version=vector["version"])


def obey(vector: Vector) -> None:
    cls, wire = message_of(vector), bytes.fromhex(vector["hex"])
    strict(cls, wire, vector)
    lenient(cls, wire, vector)


def strict(cls: type[Message], wire: bytes, vector: Vector) -> None:
    """Refuses, or gives Kafka's value; never refuses what Kafka would write just so."""
    try:
        message = cls.decode(wire, version=vector["version"])
    except DecodeError as error:
        assert error.reason
        assert 0 <= error.position <= len(wire)
        assert vector["verdict"] != "valid", vector["id"]
        return
    assert vector["verdict"] != "invalid", vector["id"]
    assert vector["verdict"] != "valid" or message.encode(version=vector["version"]) == wire
    same_value(cls, message, vector)


def lenient(cls: type[Message], wire: bytes, vector: Vector) -> None:
    """Reads what Kafka reads, with its value, and nothing else but a negative count of tagged fields, which
    was none until Kafka 4.3."""
    try:
        message = cls.decode(wire, version=vector["version"], strict=False)
    except DecodeError:
        assert vector["kafka"] == "refuses", vector["id"]
        return
    assert vector["kafka"] == "reads" or "Invalid negative number of tagged" in vector["reason"], vector["id"]
    same_value(cls, message, vector)


def same_value(cls: type[Message], message: Message, vector: Vector) -> None:
    if "json" in vector:
        form = json.loads(json.dumps(as_kafka(cls, to_json(message, version=vector["version"]))))
        assert without_tags(cls, form) == vector["json"], vector["id"]


def test_what_is_there_is_not_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    vectors = {"some.jsonl": b'{"release":"4.4.0"}\n'}
    (tmp_path / "first").mkdir()
    monkeypatch.chdir(tmp_path / "first")
    packed = write(vectors, Path())
    assert packed.parent == tmp_path
    assert (tmp_path / "first" / "some.jsonl").read_bytes() == vectors["some.jsonl"]
    packed.write_bytes(b"mine")
    for folder in (Path(), tmp_path / "second"):
        with pytest.raises(FileExistsError):
            write(vectors, folder)
    assert packed.read_bytes() == b"mine"
    assert not any((tmp_path / "second").iterdir())
