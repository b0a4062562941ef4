"""`coordwire segment` and `coordwire decode` of segments: what is printed, what is written, how it ends."""

from __future__ import annotations

import json
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path

import pytest

from coordwire.cli.record_sets import batch_form
from coordwire.cli.segment.json_lines import Lines, batch_text, encode
from coordwire.errors import CorruptBatch
from coordwire.logs import LogRecord, encode_log_record
from coordwire.messages.metadata_log import UserScramCredentialRecord
from coordwire.messages.offset_records import OffsetCommitKey, OffsetCommitValue
from coordwire.records import Record, RecordBatch, batches, encode_batch
from coordwire.segments import Segment
from tests.broker_sample import broker_sample
from tests.segments.build import START_MS, batch, log, write

from .conftest import Run

TRANSACTIONS = "transactions-0"


@pytest.fixture
def sample() -> Path:
    return broker_sample() / "data"


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """Twelve records in four batches."""
    return write(tmp_path, b"".join(log(4)))


def of_topic(folder: Path, topic: str, *records: Record) -> Path:
    path = folder / f"{topic}-0"
    path.mkdir()
    (path / "00000000000000000000.log").write_bytes(encode_batch(records, base_offset=0))
    return path


# --- dump ---


def test_the_text_of_a_batch_is_that_of_its_form(sample: Path) -> None:
    """The fast path beside the slow one: a broker's batches, and made ones with each set of attributes."""
    real = [part for path in sorted(sample.rglob("*.log")) for part in batches(path.read_bytes())]
    record = Record(-1, START_MS, b"k", b"v")
    made = [bytearray(encode_batch([record], magic=magic, base_offset=7)) for magic in (0, 1, 2)]
    for attributes in range(256):
        for magic, at in enumerate((17, 17, 22)):
            made[magic][at] = attributes
            real += batches(bytes(made[magic]), check_records=False)
    assert len({(part.magic, part.attributes) for part in real}) >= 280
    assert {part.magic for part in real} == {0, 1, 2}
    for part in real:
        assert _outcome(batch_text, part) == _outcome(lambda batch: encode(batch_form(batch)), part)


def test_the_lines_of_plain_records_are_those_of_any(sample: Path) -> None:
    lines = Lines("f", "orders", 0, text=False, deep=False, show_secrets=False)
    headers = (("n\u00e9", b"v"), ("", None))
    records = [Record(-1, START_MS, None, b"", headers), Record(-1, START_MS, b"k", None)]
    idempotent = encode_batch(records, producer_id=1, producer_epoch=0, base_sequence=0x7FFFFFFF)
    made = [encode_batch(records), idempotent]
    data = [path.read_bytes() for path in sorted(sample.rglob("*.log"))] + made
    count = 0
    for part in (part for content in data for part in batches(content) if not part.is_control):
        plain = list(lines._plain_records(part, iter(part)))
        assert plain == list(lines._any_records(part, iter(part)))
        count += len(plain)
    assert count > 100


def _outcome(text: Callable[[RecordBatch], str], of: RecordBatch) -> str:
    try:
        return text(of)
    except CorruptBatch as error:
        return f"{error.reason} {error.position} {error.path}"


def test_dump_says_what_the_records_are(run: Run, sample: Path) -> None:
    """Every record of every segment, in order, as reading it gives them."""
    result = run("segment", "dump", "--format=json", sample / TRANSACTIONS)
    assert result.status == 0
    forms = iter(result.forms)
    for path in sorted((sample / TRANSACTIONS).glob("*.log")):
        with Segment(path) as segment:
            for entry in segment.batches():
                for record in entry:
                    form = next(forms)
                    assert (form["topic"], form["partition"], form["error"]) == ("transactions", 0, None)
                    assert (form["offset"], form["timestamp"]) == (record.offset, record.timestamp)
                    key, value = form["key"], form["value"]
                    assert (None if key is None else b64decode(key)) == record.key
                    assert (None if value is None else b64decode(value)) == record.value
                    assert [name for name, _ in form["headers"]] == [name for name, _ in record.headers]
                    assert form["batch"]["position"] == entry.position
                    assert form["batch"]["producerId"] == entry.producer_id
                    assert ("control" in form) == entry.is_control
    assert next(forms, None) is None


def test_dump_of_a_record(run: Run, tmp_path: Path) -> None:
    record = Record(5, START_MS, b"k", "ü".encode(), (("h", None), ("g", b"\xff")))
    data = encode_batch([record], producer_id=7, producer_epoch=1, base_sequence=40, codec="gzip")
    path = write(tmp_path, data, base=5)
    (form,) = run("segment", "dump", "--format=json", path).forms
    facts = form.pop("batch")
    assert form == {
        "file": str(path), "topic": "orders", "partition": 0, "offset": 5, "timestamp": START_MS,
        "sequence": 40, "key": "aw==", "value": "w7w=", "headers": [["h", None], ["g", "/w=="]],
        "error": None,
    }  # fmt: skip
    assert facts["codec"] == "gzip"
    assert facts["count"] == 1
    (form,) = run("segment", "dump", "--format=json", "--text", path).forms
    assert (form["key"], form["value"]) == ("k", "ü")
    assert form["headers"] == [["h", None], ["g", {"base64": "/w=="}]]


def test_dump_batches(run: Run, orders: Path) -> None:
    forms = run("segment", "dump", "--format=json", "--batches", orders).forms
    assert [form["batch"]["baseOffset"] for form in forms] == [0, 3, 6, 9]
    assert "offset" not in forms[0]


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--from-offset", "4"], range(4, 12)),
        (["--to-offset", "4"], range(5)),
        (["--from-offset", "4", "--to-offset", "7"], range(4, 8)),
        (["--from-offset", "12"], range(0)),
        (["--since", str((START_MS + 4) / 1000)], range(4, 12)),
        (["--until", str((START_MS + 4) / 1000)], range(5)),
        (["--since", "-2ms"], range(9, 12)),
        (["--until", "+4ms"], range(5)),
        (["--limit", "2"], range(2)),
        (["--limit", "2", "--from-offset", "8"], range(8, 10)),
        (["--limit", "0"], range(0)),
    ],
)
def test_dump_of_some(run: Run, orders: Path, flags: list[str], expected: range) -> None:
    result = run("segment", "dump", "--format=json", orders, *flags)
    assert result.status == 0
    assert [form["offset"] for form in result.forms] == list(expected)


def test_dump_of_what_is_bad(run: Run, orders: Path) -> None:
    """The bad range has a line in its place, and the others are shown."""
    data = bytearray(orders.read_bytes())
    size = len(data) // 4
    data[size + 70] ^= 1
    orders.write_bytes(data[:-1])
    result = run("segment", "dump", "--format=json", orders)
    assert result.status == 1
    assert [form.get("offset") for form in result.forms] == [0, 1, 2, None, 6, 7, 8, None]
    first, last = (form for form in result.forms if form["error"])
    assert (first["position"], first["length"]) == (size, size)
    assert "CRC-32C" in first["error"]["reason"]
    assert (last["position"], last["length"]) == (3 * size, size - 1)


def test_dump_of_indexes(run: Run, sample: Path) -> None:
    """As kafka-dump-log prints them."""
    folder = sample / TRANSACTIONS
    paths = [path for kind in ("index", "timeindex", "txnindex") for path in sorted(folder.glob(f"*.{kind}"))]
    output = 0
    for path in paths:
        text = path.with_name(f"{path.name}.txt").read_text()
        for form, line in zip(
            run("segment", "dump", "--format=json", path).forms, _entries(text), strict=True
        ):
            words = line.split()
            assert {
                word[:-1]: int(value) for word, value in zip(words[::2], words[1::2], strict=True)
            }.items() <= (form.items())
            output += 1
    assert output > 20


def _entries(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(("offset:", "timestamp:", "version:"))]


def test_dump_of_small_files(run: Run, sample: Path) -> None:
    folder = sample / TRANSACTIONS
    forms = run("segment", "dump", "--format=json", folder / "00000000000000000064.snapshot").forms
    assert [form["producerId"] for form in forms] == [6, 7]
    (form,) = run("segment", "dump", "--format=json", folder / "partition.metadata").forms
    assert form["topicId"] in (folder / "partition.metadata").read_text()
    forms = run("segment", "dump", "--format=json", folder / "leader-epoch-checkpoint").forms
    assert [form["startOffset"] for form in forms] == [0, 71]


def test_dump_of_a_small_file_that_is_bad(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "partition.metadata"
    path.write_bytes(b"version: 9")
    result = run("segment", "dump", "--format=json", path)
    assert result.status == 1
    assert result.forms[0]["error"]["reason"]


def test_dump_deep(run: Run, sample: Path) -> None:
    forms = run("segment", "dump", "--format=json", "--deep", sample / "__transaction_state-1").forms
    assert any(form["log"]["value"] for form in forms if "log" in form)


METADATA_LOG = "__cluster_metadata-0/00000000000000000000.log"


@pytest.mark.parametrize("name", [METADATA_LOG, "x/bootstrap.checkpoint"])
def test_secrets_are_hidden(run: Run, tmp_path: Path, name: str) -> None:
    secret = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=b"salt", stored_key=b"KEY", iterations=1
    )
    _, value = encode_log_record(LogRecord(log="metadata", type=11, version=0, value=secret))
    path = tmp_path / name
    path.parent.mkdir()
    path.write_bytes(encode_batch([Record(0, value=value)]))
    for flags in ([], ["--deep"]):
        (form,) = run("segment", "dump", "--format=json", *flags, path).forms
        assert form["value"] is None
        assert form["redacted"] == ["value"]
        assert "S0VZ" not in json.dumps(form)
    (form,) = run("segment", "dump", "--format=json", "--show-secrets", "--deep", path).forms
    assert b64decode(form["value"]) == value
    assert "S0VZ" in json.dumps(form["log"])


def test_the_table(run: Run, sample: Path) -> None:
    result = run("segment", "dump", "--format", "table", sample / TRANSACTIONS)
    assert result.status == 0
    assert "transactions-0" in result.text
    assert "value 0 of round 1" in result.text
    assert "ABORT" in result.text
    assert "transactions ü€😀  [trace, schlüssel, trace]  txn 6" in result.text
    paths = sorted((sample / TRANSACTIONS).glob("*.index"))
    text = run("segment", "dump", "--format", "table", "--batches", sample / TRANSACTIONS, *paths).text
    assert "txn" in text
    assert "position" in text


def test_the_table_is_whole_in_a_pipe(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    values = b"a" * 200, b"b" * 1_201, b"\xff" * 201
    path = of_topic(tmp_path, "orders", *(Record(at, 0, b"k" * 99, value) for at, value in enumerate(values)))
    _, whole, long, binary = run("segment", "dump", path).text.splitlines()
    assert whole.endswith(f"{'k' * 99}  {'a' * 200}")
    assert long.endswith(f"  {'b' * 200}… (1,201 bytes)")
    assert binary.endswith(f"  0x{'ff' * 200}… (201 bytes)")


def test_the_table_is_safe(run: Run, tmp_path: Path) -> None:
    path = write(
        tmp_path, encode_batch([Record(0, 0, b"\x1b[2J", b"\x1b]0;x", (("\x1b", b""),))]) + b"junk" * 9
    )
    result = run("segment", "dump", "--format", "table", path)
    assert result.status == 1
    assert "\x1b" not in result.text
    assert "can't be read" in result.text


# --- decode ---


def test_decode_knows_segments(run: Run, orders: Path, captures: Path) -> None:
    dumped = run("segment", "dump", "--format=json", orders).out
    assert run("decode", "--format", "json", orders).out == dumped
    assert run("decode", "--format", "json", "--input", "segment", orders).out == dumped
    piped = run("decode", "--format", "json", "-", stdin=orders.read_bytes())
    assert [form["offset"] for form in piped.forms] == list(range(12))
    assert "orders" in run("decode", "--format", "tree", orders).text
    options = run("decode", "--format", "json", "--since", str((START_MS + 10) / 1000), orders)
    assert [form["offset"] for form in options.forms] == [10, 11]
    assert run("decode", "--format", "json", "--since", "-1ms", orders).out == options.out


@pytest.mark.parametrize(
    "flags", [["--api", "Fetch"], ["--errors"], ["--format", "hex"], ["--since", "10:00"]]
)
def test_decode_of_segments_has_no(run: Run, orders: Path, flags: list[str]) -> None:
    result = run("decode", "--format", "json", orders, *flags)
    assert result.status == 2
    assert result.out == b""


# --- verify ---


def test_verify(run: Run, orders: Path, sample: Path) -> None:
    result = run("segment", "verify", "--format=json", orders)
    assert result.status == 0
    assert result.forms == [
        {
            "file": str(orders), "topic": "orders", "partition": 0, "size": orders.stat().st_size,
            "batches": 4, "records": 12, "firstOffset": 0, "lastOffset": 11, "badBytes": 0, "faults": 0,
        }
    ]  # fmt: skip
    assert run("segment", "verify", sample).status == 0
    data = bytearray(orders.read_bytes())
    data[80] ^= 1
    orders.write_bytes(data)
    for flags in ([], ["--quick"]):
        result = run("segment", "verify", "--format=json", orders, *flags)
        assert result.status == 1
        fault, summary = result.forms
        assert (fault["position"], fault["length"]) == (0, len(data) // 4)
        assert (summary["faults"], summary["batches"]) == (1, 3)
    text = run("segment", "verify", "--format", "text", orders).text
    assert "1 fault, " in text


def test_verify_segments_that_overlap(run: Run, orders: Path) -> None:
    write(orders.parent.parent, batch(9), base=9)
    result = run("segment", "verify", "--format=json", orders.parent)
    assert result.status == 1
    assert result.forms[1]["reason"] == "begins at offset 9, the segment before it ends at 11"


def test_verify_by_an_index(run: Run, orders: Path) -> None:
    index = orders.with_suffix(".index")
    index.write_bytes(b"\0" * 7)
    result = run("segment", "verify", "--format=json", index)
    assert result.forms[0]["file"] == str(index)
    alone = orders.with_name("00000000000000000099.index")
    alone.write_bytes(b"")
    assert run("segment", "verify", alone).status == 2


# --- recover, index ---


@pytest.fixture
def packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A segment with a batch whose codec's library isn't installed."""
    path = write(tmp_path, batch(0) + batch(3, codec="zstd") + batch(6))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    return path


NEEDS = "zstd needs the package zstandard: pip install 'coordwire[compression]'"


def test_verify_without_a_codec(run: Run, packed: Path) -> None:
    """The message names what to install; nothing is reported as damage."""
    result = run("segment", "verify", "--format=json", packed)
    (form,) = result.forms
    assert (result.status, form["faults"], form["badBytes"]) == (2, 0, 0)
    assert (form["batches"], form["records"], form["unread"], form["needs"]) == (3, 6, 1, NEEDS)
    text = run("segment", "verify", packed, "--format", "text").text
    assert f"the records of 1 batch were not read: {NEEDS}" in text
    assert ": valid" not in text
    result = run("segment", "verify", "--format=json", packed, "--quick")
    assert (result.status, "needs" in result.forms[0]) == (0, False)


def test_recover_without_a_codec(run: Run, packed: Path, tmp_path: Path) -> None:
    result = run("segment", "recover", "--format=json", packed, "--out", tmp_path / "out")
    assert (result.status, result.text) == (2, "")
    assert NEEDS in result.err
    assert not (tmp_path / "out").exists()


def test_dump_without_a_codec(run: Run, packed: Path) -> None:
    result = run("segment", "dump", "--format=json", packed)
    assert result.status == 2
    assert [form["error"]["reason"] for form in result.forms if form["error"]] == [NEEDS]
    assert len(result.forms) == 7


@pytest.mark.parametrize("verb", ["recover", "index"])
def test_a_link_out_of_the_folder_is_not_followed(run: Run, tmp_path: Path, verb: str) -> None:
    """Of several partitions each gets a folder of its own below the one that was named."""
    for name in ("a-0", "a-1"):
        write(tmp_path / "logs", batch(0), name=name)
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "a-1").symlink_to(elsewhere)
    result = run("segment", verb, "--format=json", tmp_path / "logs", "--out", out)
    assert result.status == 2
    assert "a-1: a symbolic link; expected a folder, or nothing" in result.err
    assert list(elsewhere.iterdir()) == []


def test_recover_onto_a_full_disk(
    run: Run, orders: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    result = run("segment", "recover", "--format=json", orders, "--out", tmp_path / "out")
    assert result.status == 2
    assert result.err == f"coordwire: {tmp_path / 'out' / orders.name}: No space left on device\n"
    assert list((tmp_path / "out").iterdir()) == []


def test_recover(run: Run, orders: Path, tmp_path: Path) -> None:
    data = orders.read_bytes()
    orders.write_bytes(data + bytes(100))
    result = run("segment", "recover", "--format=json", orders, "--out", tmp_path / "out")
    assert result.status == 1
    (form,) = result.forms
    assert (form["batches"], form["quarantined"], form["badBytes"]) == (4, 1, 100)
    assert (tmp_path / "out" / orders.name).read_bytes() == data
    assert (tmp_path / "out" / f"{orders.name}.quarantine").read_bytes() == bytes(100)
    second_run = run("segment", "recover", "--format=json", orders, "--out", tmp_path / "out")
    assert second_run.status == 2
    assert "exists" in second_run.err
    text = run("segment", "recover", "--format", "text", orders, "--out", tmp_path / "more").text
    assert "quarantine" in text


def test_recover_partitions(run: Run, tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1"):
        write(tmp_path / "logs", b"".join(log(2)), name=name)
    result = run("segment", "recover", "--format=json", tmp_path / "logs", "--out", tmp_path / "out")
    assert result.status == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["orders-0", "orders-1"]


def test_index(run: Run, orders: Path, tmp_path: Path) -> None:
    flags = ["--index-interval", "100"]
    assert run("segment", "index", "--check", orders, *flags).status == 1
    result = run("segment", "index", "--format=json", orders, *flags)
    assert result.status == 0
    assert len(result.forms[0]["files"]) == 2
    assert run("segment", "index", "--check", orders, *flags).status == 0
    assert run("segment", "index", orders, *flags).status == 2
    assert run("segment", "index", "--replace", orders, *flags).status == 0
    product = run(
        "segment", "index", "--format=json", "--out", tmp_path / "out", "--snapshots", orders
    ).forms[0]["files"]
    assert Path(product[-1]).name == "00000000000000000012.snapshot"
    orders.with_suffix(".txnindex").write_bytes(bytes(34))
    assert run("segment", "index", "--format=json", "--check", orders, *flags).forms[0]["differs"] == [
        "00000000000000000000.txnindex"
    ]


def test_index_of_a_brokers_recovery(run: Run) -> None:
    folder = broker_sample() / "rebuilt" / TRANSACTIONS
    result = run("segment", "index", "--format=json", "--check", "--index-interval", "256", folder)
    assert result.status == 0, result.text


def test_index_of_what_is_bad(run: Run, orders: Path) -> None:
    orders.write_bytes(orders.read_bytes()[:-3])
    result = run("segment", "index", "--format=json", orders)
    assert result.status == 2
    assert "recover it first" in result.err
    assert run("segment", "index", orders.rename(orders.with_name("some.log"))).status == 2


# --- usage ---


def test_quiet_when_the_reader_leaves(orders: Path) -> None:
    """Also with many files left to read."""
    for number in range(1, 200):
        write(orders.parent.parent, b"".join(log(20, base=100 * number)), base=100 * number)
    command = [sys.executable, "-m", "coordwire.cli", "segment", "dump", str(orders.parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0


@pytest.mark.parametrize("verb", ["dump", "verify", "index"])
def test_what_isnt_there(run: Run, tmp_path: Path, verb: str) -> None:
    result = run("segment", verb, "--format=json", tmp_path / "nothing.log")
    assert result.status == 2
    assert "nothing.log" in result.err
    assert run("segment", verb, tmp_path).status == 2


def test_usage(run: Run, orders: Path) -> None:
    assert run("segment").status == 2
    assert run("segment", "recover", orders).status == 2
    assert run("segment", "index", "--check", "--replace", orders).status == 2
    assert run("segment", "index", "--index-interval", "x", orders).status == 2
    assert run("segment", "--help").status == 0


# --- records of brokers' own logs, in the table ---


def test_the_deep_table_tells_what_records_mean(run: Run, tmp_path: Path) -> None:
    key = OffsetCommitKey(group="g", topic="orders", partition=3)
    value = OffsetCommitValue(offset=42, metadata="ü\x1b[2J", commit_timestamp=START_MS)
    known = encode_log_record(LogRecord(log="consumer_offsets", type=1, key=key, value=value, version=3))
    newer = (known[0], b"\0\x09later")
    records = [Record(timestamp=START_MS, key=item, value=two) for item, two in (known, newer)]
    folder = of_topic(tmp_path, "__consumer_offsets", *records)
    lines = run("segment", "dump", "--deep", "--format", "table", folder).text.splitlines()
    response = [" ".join(line.split()) for line in lines if line.startswith(" " * 14)]
    text = " ".join(response)
    assert 'OffsetCommitKey {"group": "g", "topic": "orders", "partition": 3}' in text
    assert 'OffsetCommitValue v3 {"offset": 42,' in text
    assert "OffsetCommitValue has no version 9: it has 0 to 4" in text
    assert "\x1b[2J" not in text
    plain = run("segment", "dump", "--format", "table", folder).text
    assert "OffsetCommit" not in plain


@pytest.mark.parametrize("flags", [(), ("--deep",), ("--text",)])
def test_the_table_shows_no_credentials_unasked(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: tuple[str, ...]
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    secret = b"salt-and-keys-and-all"
    credential = UserScramCredentialRecord(
        name="alice", mechanism=1, salt=secret, stored_key=secret, server_key=secret, iterations=4096
    )
    _, value = encode_log_record(LogRecord(log="metadata", type=11, value=credential, version=0))
    folder = of_topic(tmp_path, "__cluster_metadata", Record(timestamp=START_MS, key=None, value=value))
    for command in (
        ("segment", "dump"),
        (
            "decode",
            "--format",
            "json",
        ),
    ):
        paths = [folder] if command == ("segment", "dump") else [*folder.glob("*.log")]
        form = "table" if command == ("segment", "dump") else "tree"
        options = [
            flag
            for flag in flags
            if command
            != (
                "decode",
                "--format",
                "json",
            )
            or flag != "--text"
        ]
        hidden = run(*command, *options, "--format", form, *paths).text
        assert "(secret, not shown)" in hidden
        assert secret.decode() not in hidden
        assert secret.hex() not in hidden
        output = run(*command, *options, "--show-secrets", "--format", form, *paths).text
        assert secret.hex() in output or secret.decode() in output
