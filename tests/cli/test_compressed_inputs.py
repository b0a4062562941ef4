"""Every command reads compressed inputs as what is inside them, from files and from standard input."""

from __future__ import annotations

import gzip
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from coordwire.records import Record, encode_batch
from tests.timeline.logs import TIME, commit, plain

from .conftest import Run


def _zstd(data: bytes) -> bytes:
    return bytes(pytest.importorskip("zstandard").compress(data))


COMPRESS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": _zstd}
every = pytest.mark.parametrize("suffix", list(COMPRESS))


@pytest.fixture
def capture(captures: Path) -> Path:
    return captures / "kpy__tansu__group-range.pcap"


def json(command: str) -> tuple[str, ...]:
    """The command with its lines of JSON."""
    return command, "--format", "json"


def squeezed(path: Path, suffix: str, folder: Path) -> Path:
    product = folder / f"{path.name}{suffix}"
    product.write_bytes(COMPRESS[suffix](path.read_bytes()))
    return product


@every
def test_captures(run: Run, capture: Path, tmp_path: Path, suffix: str) -> None:
    path = squeezed(capture, suffix, tmp_path)
    for command in ("decode", "timeline"):
        plain = run(*json(command), capture).text.replace(str(capture), "-")
        assert run(*json(command), path).text.replace(str(path), "-") == plain
        assert run(*json(command), "-", stdin=path.read_bytes()).text == plain


@every
def test_hex_frames_and_lines(run: Run, capture: Path, tmp_path: Path, suffix: str) -> None:
    lines = tmp_path / "lines"
    lines.write_bytes(run(*json("decode"), "--api", "JoinGroup", capture).out)
    frames = run("encode", lines).out
    assert frames
    assert run("encode", squeezed(lines, suffix, tmp_path)).out == frames
    text = tmp_path / "x.hex"
    text.write_bytes(frames)
    path = squeezed(text, suffix, tmp_path)
    assert [form["body"] for form in run(*json("decode"), path).forms] == [
        form["body"] for form in run(*json("decode"), text).forms
    ]
    binary = tmp_path / "frames"
    binary.write_bytes(run("encode", "--to", "frames", lines).out)
    assert (
        len(run(*json("decode"), squeezed(binary, suffix, tmp_path)).forms)
        == len(run(*json("decode"), binary).forms)
        > 0
    )
    assert run("explain", "-", stdin=path.read_bytes()).text == run("explain", "-", stdin=frames).text


@every
def test_segments(run: Run, tmp_path: Path, suffix: str) -> None:
    log = tmp_path / "orders-2" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(encode_batch([Record(number, timestamp=TIME, value=b"v") for number in range(9)]))
    forms = run("segment", *json("dump"), log).forms
    valid = run("segment", *json("verify"), log).forms
    path = squeezed(log, suffix, log.parent)
    log.unlink()
    for place in (path, path.parent):
        assert [form | {"file": str(log)} for form in run("segment", *json("dump"), place).forms] == forms
        assert [form | {"file": str(log)} for form in run("segment", *json("verify"), place).forms] == valid
    assert [form | {"file": str(log)} for form in run(*json("decode"), path).forms] == forms
    assert len(run(*json("decode"), "-", stdin=path.read_bytes()).forms) == 9
    (process,) = run("segment", "recover", "--format=json", path, "--out", tmp_path / "out").forms
    assert process["file"] == str(path)
    assert Path(process["log"]).name == log.name
    result = run("segment", "index", "--format=json", path)
    assert result.status == 2
    assert "decompress it first" in result.err


@every
def test_logs_of_coordinators(run: Run, tmp_path: Path, suffix: str) -> None:
    log = tmp_path / "__consumer_offsets-3" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(plain(0, commit("g", 1), commit("h", 2)))
    plainly = {command: run(*json(command), log).forms for command in ("offsets", "timeline")}
    path = squeezed(log, suffix, log.parent)
    log.unlink()
    for command, forms in plainly.items():
        for place in (path, path.parent):
            results = run(*json(command), place).forms
            assert [form | {"file": 0, "source": 0} for form in results] == [
                form | {"file": 0, "source": 0} for form in forms
            ]


@every
def test_what_is_cut_short_is_said(run: Run, capture: Path, tmp_path: Path, suffix: str) -> None:
    log = tmp_path / "__consumer_offsets-3" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(plain(0, commit("g", 1)))
    data = COMPRESS[suffix](log.read_bytes())
    log.unlink()
    path = log.with_name(log.name + suffix)
    path.write_bytes(data + data[: len(data) - 5])  # a second member, not whole
    for command in (["offsets"], ["timeline"], ["segment", "dump"], ["segment", "verify"], ["decode"]):
        result = run(*command, path)
        assert result.status == 1, command
        assert result.text, command
        if command != ["timeline"]:
            assert "cut short" in result.text + result.err
    cut = tmp_path / "x.pcap"
    cut.write_bytes(COMPRESS[suffix](capture.read_bytes()) + COMPRESS[suffix](b"more")[:10])
    result = run(*json("decode"), cut)
    assert result.status == 1
    assert "cut short" in result.forms[-1]["error"]["reason"]


def test_without_the_library(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.pcap.zst"
    path.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    for command in (["decode"], ["timeline"], ["offsets"], ["segment", "verify"], ["encode"]):
        result = run(*command, path)
        assert (result.status, result.text) == (2, ""), command
        assert "zstd needs the package zstandard: pip install 'coordwire[compression]'" in result.err


@pytest.mark.parametrize("codec", ["snappy", "lz4", "zstd"])
def test_verify_names_an_absent_codec(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, codec: str
) -> None:
    """Its batches aren't corrupt."""
    package = {"snappy": "cramjam", "lz4": "lz4", "zstd": "zstandard"}[codec]
    pytest.importorskip(package)
    log = tmp_path / "orders-2" / "00000000000000000000.log"
    log.parent.mkdir()
    log.write_bytes(encode_batch([Record(0, value=b"v" * 50)], codec=codec))  # type: ignore[arg-type]
    for name in (package, "lz4.frame"):
        monkeypatch.setitem(sys.modules, name, None)
    result = run("segment", "verify", "--format=json", log)
    (form,) = result.forms
    assert (result.status, form["faults"], form["badBytes"], form["unread"]) == (2, 0, 0, 1)
    assert form["needs"] == f"{codec} needs the package {package}: pip install 'coordwire[compression]'"
    words = run("segment", "verify", "--format", "text", log).text
    assert f"the records of 1 batch were not read: {codec} needs the package {package}" in words
    assert "fault" not in words
