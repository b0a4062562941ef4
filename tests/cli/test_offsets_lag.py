"""`coordwire offsets --lag`: what is committed against the ends of logs on disk."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from coordwire.records import Record, encode_batch
from tests.timeline.logs import commit, plain

from .conftest import Run


def put(folder: Path, name: str, data: bytes, offset: int = 0) -> None:
    path = folder / name / f"{offset:020}.log"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Three groups' commits, one of them beyond the end, and two of three partitions."""
    put(
        tmp_path,
        "__consumer_offsets-7",
        plain(
            0,
            commit("pay", 3, "orders", 0),
            commit("pay", 1_200, "orders", 0),
            commit("pay", 7, "orders", 1),
            commit("audit", 99_999, "orders", 0),
            commit("audit", 5, "elsewhere", 0),
        ),
    )
    put(tmp_path, "orders-0", encode_batch([Record(number, value=b"v") for number in range(1_500)]))
    put(tmp_path, "orders-1", b"", 7)
    return tmp_path


def test_a_table(run: Run, disk: Path) -> None:
    result = run("offsets", "--lag", "--format", "table", "--group", "pay", disk)
    assert (result.status, result.err) == (0, "")
    assert result.text == (
        "group  topic     committed    end  lag\n"
        "pay    orders-0      1,200  1,500  300\n"
        "       orders-1          7      7    0\n"
    )
    every = run("offsets", "--lag", "--format", "table", disk).text
    assert every.splitlines()[1].split() == ["audit", "elsewhere-0", "5", "-", "-"]
    assert not any(line.endswith(" ") for line in every.splitlines())


def test_json_lines(run: Run, disk: Path) -> None:
    forms = run("offsets", "--format=json", "--lag", disk).forms
    assert [(form["group"], form["topic"], form["partition"]) for form in forms] == [
        ("audit", "elsewhere", 0), ("audit", "orders", 0), ("pay", "orders", 0), ("pay", "orders", 1)
    ]  # fmt: skip
    assert forms[0]["endOffset"] is forms[0]["lag"] is None
    assert forms[2] == {
        "group": "pay", "topic": "orders", "partition": 0, "committed": 1_200, "endOffset": 1_500, "lag": 300
    }  # fmt: skip
    assert [
        form["topic"] for form in run("offsets", "--format=json", "--lag", "--topic", "else", disk).forms
    ] == ["elsewhere"]


def test_what_nothing_matches(run: Run, disk: Path) -> None:
    result = run("offsets", "--format=json", "--lag", "--group", "payments", disk)
    assert (result.status, result.out) == (0, b"")
    assert "0 of 4 commits matched; groups seen: " in result.err


def test_damaged_commits_are_reported(run: Run, disk: Path) -> None:
    path = next((disk / "__consumer_offsets-7").iterdir())
    path.write_bytes(path.read_bytes() + b"\xff" * 70)
    result = run("offsets", "--format=json", "--lag", disk)
    assert result.status == 1
    assert len(result.forms) == 4
    assert "70 bytes at byte" in result.err


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--since", "2026-01-01"], "--since and --until do not apply"),
        (["--log", "metadata"], "--lag reads consumer_offsets"),
    ],
)
def test_options_that_do_not_go_together(run: Run, disk: Path, flags: list[str], reason: str) -> None:
    result = run("offsets", "--format=json", "--lag", *flags, disk)
    assert (result.status, result.out) == (2, b"")
    assert reason in result.err


def test_what_is_not_there(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes").touch()
    assert "no segments of __consumer_offsets" in run("offsets", "--lag", tmp_path).err
    missing = run("offsets", "--format=json", "--lag", tmp_path / "none")
    assert missing.status == 2
    assert "none" in missing.err


def test_it_needs_neither_spark_nor_arrow(disk: Path) -> None:
    code = (
        "import sys; sys.modules['pyarrow'] = sys.modules['pyspark'] = None\n"
        "from coordwire.cli.__main__ import main; "
        f"sys.exit(main(['offsets', '--lag', '--format=json', {str(disk)!r}]))"
    )
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (process.returncode, process.stderr) == (0, "")
    assert len(process.stdout.splitlines()) == 4
