"""`coordwire offsets`: formats, filters, secrets, and how it ends."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from coordwire.codec.primitives import uvarint
from coordwire.records import ControlType, Record, encode_batch
from tests.cli.conftest import Run
from tests.timeline.logs import TIME, commit, in_transaction, kafkas_segment, marker, of_log, plain


@pytest.fixture
def broker(tmp_path: Path) -> Path:
    """A broker's directory with the four logs as Kafka wrote them."""
    for log, topic in (
        ("consumer_offsets", "__consumer_offsets-7"), ("transaction_state", "__transaction_state-1"),
        ("share_group_state", "__share_group_state-0"), ("metadata", "__cluster_metadata-0"),
    ):  # fmt: skip
        (tmp_path / topic).mkdir()
        (tmp_path / topic / "00000000000000000000.log").write_bytes(kafkas_segment(log))
    return tmp_path


def segment(folder: Path, data: bytes) -> Path:
    path = folder / "__consumer_offsets-0.log"
    path.write_bytes(data)
    return path


def test_every_record_is_a_line_in_kafkas_json_form(run: Run, broker: Path) -> None:
    result = run("offsets", "--format=json", broker / "__consumer_offsets-7")
    assert (result.status, result.err) == (0, "")
    response = of_log("consumer_offsets")
    assert [(form["key"], form["value"]) for form in result.forms] == [
        (item["key"], item["value"]) for item in response
    ]
    assert {form["logPartition"] for form in result.forms} == {7}
    commit_v1 = result.forms[3]
    assert commit_v1["kind"] == "OffsetCommit"
    assert (commit_v1["group"], commit_v1["topic"], commit_v1["partition"]) == ("group-1", "topic-2", 1003)
    assert (commit_v1["offset"], commit_v1["expireTime"]) == (1700000000004, "2023-11-14T22:13:20.007Z")
    assert commit_v1["logTime"] == "2023-11-14T22:13:23.000Z"


def test_the_table_tells_of_every_record(run: Run, broker: Path) -> None:
    result = run("offsets", "--format", "table", broker)
    assert result.status == 0
    assert "topic-2-1003  → 1700000000004" in result.text
    assert "generation 1003" in result.text
    assert result.text.count("removed") == sum(
        item["value"] is None for item in of_log("consumer_offsets") + of_log("transaction_state")
    ) + sum(item["value"] is None for item in of_log("share_group_state"))


def test_a_narrow_terminal_gets_lines_within_its_width(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "72")
    note = commit("reports", 3, topic="a-topic-with-quite-a-long-name")
    path = segment(tmp_path, plain(0, commit("g", 1), note, commit("g", None)))
    lines = run("offsets", "--format", "table", path).text.splitlines()
    assert lines[lines.index("2023-11-14") + 1 :] == [
        "22:13:20.000  0  g        offset commit  orders-0  → 1  epoch 4",
        "22:13:20.000  1  reports  offset commit",
        "    a-topic-with-quite-a-long-name-0  → 3  epoch 4",
        "22:13:20.000  2  g        offset commit  orders-0  removed",
    ]


def test_a_wide_terminal_gets_columns(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    text = run("offsets", "--format", "table", segment(tmp_path, plain(0, commit("g", 1)))).text
    assert [line.split()[:4] for line in text.splitlines()[-2:]] == [
        ["time", "offset", "group", "record"],
        ["2023-11-14", "22:13:20.000", "0", "g"],
    ]


def test_every_record_is_told_at_every_width(run: Run, broker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = set()
    for columns in (40, 80, 120, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = run("offsets", "--format", "table", broker).text.splitlines()
        assert max(map(len, lines)) <= columns
        message.add(sum(line.count("removed") for line in lines))
    assert len(message) == 1


def test_the_log_named_is_chosen_in_a_directory_and_forced_on_a_segment(run: Run, broker: Path) -> None:
    selected = run("offsets", "--format=json", "--log", "consumer_offsets", broker)
    assert (selected.status, selected.err) == (0, "")
    assert selected.forms == run("offsets", "--format=json", broker / "__consumer_offsets-7").forms
    moved = broker / "old"
    (broker / "__consumer_offsets-7").rename(moved)
    assert len(run("offsets", "--format=json", "--log", "consumer_offsets", moved).forms) == len(
        selected.forms
    )
    none = run("offsets", "--format=json", "--log", "consumer_offsets", broker)
    assert (none.status, none.out) == (2, b"")
    assert "no segments of __consumer_offsets there" in none.err
    forced = run("offsets", "--format=json", "--log", "transaction_state", moved / f"{0:020}.log")
    assert {form["log"] for form in forced.forms} == {"transaction_state"}


def test_credentials_are_not_shown_unasked(run: Run, broker: Path) -> None:
    log = broker / "__cluster_metadata-0"
    response = next(item["value"] for item in of_log("metadata") if item["type"] == 11)
    (hidden,) = (form for form in run("offsets", "--format=json", log).forms if form["type"] == 11)
    assert hidden["redacted"] == ["value.salt", "value.stored_key", "value.server_key"]
    assert hidden["value"] == response | {"salt": None, "storedKey": None, "serverKey": None}
    (output,) = (
        form for form in run("offsets", "--format=json", "--show-secrets", log).forms if form["type"] == 11
    )
    assert output["value"] == response
    assert "redacted" not in output
    hidden_table = run("offsets", "--format", "table", log).text
    shown_table = run("offsets", "--format", "table", "--show-secrets", log).text
    key = base64.b64decode(response["storedKey"]).hex()
    assert "stored_key: (secret, not shown)" in hidden_table
    assert key in shown_table
    assert key not in hidden_table.partition("user scram credential")[2].partition("\n20")[0]


@pytest.mark.parametrize(("record_type", "kind"), [(2, "Topic"), (11, "UserScramCredential"), (9999, None)])
def test_unknown_bytes_are_shown_where_they_hide_nothing(
    run: Run, tmp_path: Path, record_type: int, kind: str | None
) -> None:
    """A later version of a known record: withheld only where the type has secrets, or isn't known at all."""
    value = uvarint(1) + uvarint(record_type) + uvarint(99) + b"later"
    path = tmp_path / "__cluster_metadata-0.log"
    path.write_bytes(plain(0, Record(timestamp=TIME, key=None, value=value)))
    result = run("offsets", "--format=json", path)
    (form,) = result.forms
    assert (result.status, form["type"], form["kind"]) == (0, record_type, kind)
    assert form["unknown"]
    table = run("offsets", "--format", "table", path).text
    if kind == "Topic":
        assert bytes.fromhex(form["valueRaw"]) == b"later"
        assert b"later".hex() in table
    else:
        assert (form["valueRaw"], form["redacted"]) == (None, ["valueRaw"])
        assert b"later".hex() not in table
    (response,) = run("offsets", "--format=json", "--show-secrets", path).forms
    assert bytes.fromhex(response["valueRaw"]).endswith(b"later")


def test_filters(run: Run, tmp_path: Path) -> None:
    records = [commit("g", 1), commit("h", 2), commit("g", 3, topic="other")]
    for second, record in enumerate(records):
        record.timestamp = TIME + 1000 * second
    path = segment(tmp_path, plain(0, *records))

    def offsets(*flags: str) -> list[int]:
        return [form["offset"] for form in run("offsets", "--format=json", *flags, path).forms]

    assert offsets("--group", "g") == [1, 3]
    assert offsets("--group", "g", "--topic", "orders") == [1]
    assert offsets("--since", "22:13:21") == [2, 3]
    assert offsets("--until", "2023-11-14T22:13:21Z") == [1, 2]
    assert offsets("--since", "-1s") == [2, 3]
    assert offsets("--until", "+999ms") == [1]
    assert offsets("--latest", "--until", "22:13:20", "--group", "g") == [1]


def test_latest_compacts_and_tells_what_is_pending(run: Run, tmp_path: Path) -> None:
    data = (
        plain(0, commit("g", 1), commit("g", 2), commit("gone", 1), commit("gone", None))
        + in_transaction(4, [commit("g", 9)])
        + in_transaction(5, [commit("h", 4)], producer_id=10)
        + marker(6, ControlType.COMMIT, producer_id=10)
    )
    result = run("offsets", "--format=json", "--latest", segment(tmp_path, data))
    assert result.status == 0
    assert [(form["group"], form["offset"]) for form in result.forms] == [("g", 2), ("h", 4), ("g", 9)]
    assert [form["transaction"] for form in result.forms] == [
        None,
        {"producerId": 10, "producerEpoch": 2, "pending": False},
        {"producerId": 9, "producerEpoch": 2, "pending": True},
    ]


def test_a_marker_is_a_line_that_says_what_it_decides(run: Run, tmp_path: Path) -> None:
    path = segment(tmp_path, in_transaction(0, [commit("g", 9)]) + marker(1, ControlType.ABORT))
    pending, decision = run("offsets", "--format=json", path).forms
    assert pending["transaction"] == {"producerId": 9, "producerEpoch": 2, "pending": True}
    assert (decision["entry"], decision["kind"], decision["coordinatorEpoch"]) == ("marker", "abort", 5)
    assert decision["decided"] == [
        {"logOffset": 0, "group": "g", "topic": "orders", "partition": 0, "offset": 9}
    ]
    assert run("offsets", "--format=json", "--group", "other", path).forms == []
    assert len(run("offsets", "--format=json", "--group", "g", path).forms) == 2
    assert "abort" in run("offsets", "--format", "table", path).text


@pytest.mark.parametrize("form", ["json", "table"])
def test_what_cannot_be_read_is_told_and_makes_the_status_1(run: Run, tmp_path: Path, form: str) -> None:
    first, broken, last = (
        plain(0, commit("g", 1)),
        bytearray(plain(1, commit("g", 2))),
        plain(2, commit("g", 3)),
    )
    broken[-1] ^= 1
    path = segment(tmp_path, first + broken + last)
    for flags in ((), ("--latest",), ("--group", "g")):
        result = run("offsets", "--format", form, *flags, path)
        assert result.status == 1
        assert f"{len(broken)} bytes at byte {len(first)} couldn't be read" in result.err
        assert "CRC-32C" in result.text


def test_a_record_that_cannot_be_read_is_told(run: Run, tmp_path: Path) -> None:
    result = run(
        "offsets",
        "--format=json",
        segment(tmp_path, plain(0, Record(key=b"\x00\x01\x00\x7f", value=b"\x01"))),
    )
    (form,) = result.forms
    assert result.status == 1
    assert (form["keyRaw"], form["valueRaw"], form["error"]["path"]) == ("0001007f", "01", "key.group")
    assert "record at offset 0: key.group" in result.err


def test_an_unknown_type_is_no_error(run: Run, tmp_path: Path) -> None:
    result = run(
        "offsets", "--format=json", segment(tmp_path, plain(0, Record(key=b"\x00\x63k", value=b"v")))
    )
    (form,) = result.forms
    assert (result.status, result.err) == (0, "")
    assert (form["unknown"], form["keyRaw"], form["valueRaw"]) == ("record type 99 is unknown", "6b", "76")


def test_a_file_that_is_not_there_costs_only_itself(run: Run, broker: Path) -> None:
    result = run("offsets", "--format=json", broker / "nothing", broker / "__transaction_state-1")
    assert result.status == 2
    assert "nothing: No such file" in result.err
    assert len(result.forms) == len(of_log("transaction_state"))


def test_a_directory_without_segments_is_said(run: Run, tmp_path: Path) -> None:
    result = run("offsets", "--format=json", tmp_path)
    assert result.status == 2
    assert "no segments" in result.err


@pytest.mark.parametrize("flags", [[], ["--latest"]])
def test_without_a_codec(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]) -> None:
    """What is missing is a library, and it is named."""
    path = segment(tmp_path, encode_batch([Record(0, value=b"v")], codec="zstd"))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    result = run("offsets", "--format=json", path, *flags)
    assert (result.status, result.text) == (2, "")
    assert "zstd needs the package zstandard: pip install 'coordwire[compression]'" in result.err
