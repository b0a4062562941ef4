"""Rotated captures: which files belong together, and their bytes as one stream."""

from __future__ import annotations

import gzip
import io
from itertools import pairwise
from pathlib import Path

import pytest

from coordwire.capture import Capture, FrameEntry
from coordwire.capture.rotated_names import is_capture_name, rotated
from coordwire.capture.rotation import RotatedFiles
from coordwire.cli.inputs import capture_chains, open_file
from coordwire.errors import DecodeError

from .build import pcap

GROUP = Path(__file__).parent.parent / "data" / "captures" / "kpy__tansu__group-range.pcap"


def test_files_of_one_capture_are_together_in_their_order() -> None:
    names = [
        "a/x.pcap10", "a/x.pcap", "a/x.pcap2.gz", "b/x.pcap1", "y_00002_20240131120500.pcapng",
        "y_00001_20240131120000.pcapng.xz", "z.bin",
    ]  # fmt: skip
    assert rotated(names, str, lambda name: None) == [
        ["a/x.pcap", "a/x.pcap2.gz", "a/x.pcap10"],
        ["b/x.pcap1"],
        ["y_00001_20240131120000.pcapng.xz", "y_00002_20240131120500.pcapng"],
        ["z.bin"],
    ]


def test_files_without_a_packet_follow_the_number_before(tmp_path: Path) -> None:
    data = GROUP.read_bytes()
    end = 24 + 16 + int.from_bytes(data[32:36], "little")
    later = end + 16 + int.from_bytes(data[end + 8 : end + 12], "little")
    contents = [data[:24] + data[end:later], b"", b"no capture", gzip.compress(data[:end]), data[:24]]
    for number, content in enumerate(contents):
        (tmp_path / f"x.pcap{number}").write_bytes(content)
    (tmp_path / "x.pcap5").mkdir()
    names = [str(tmp_path / f"x.pcap{number}") for number in range(6)]
    [chain] = capture_chains(names)
    assert [int(name[-1]) for name in chain] == [3, 4, 5, 0, 1, 2]


@pytest.mark.parametrize(
    ("name", "answer"),
    [("x.pcap", True), ("x.pcapng.zst", True), ("x.cap3", True), ("x.log", False), ("pcap", False)],
)
def test_names_of_captures(name: str, answer: bool) -> None:
    assert is_capture_name(name) is answer


def test_a_capture_cut_anywhere_between_packets_reads_as_the_whole(tmp_path: Path) -> None:
    data = GROUP.read_bytes()
    ends, at = [], 24
    while at < len(data):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        ends.append(at)
    cuts = [24, *ends[len(ends) // 3 :: len(ends) // 3][:2], len(data)]
    paths = []
    for number, (start, end) in enumerate(pairwise(cuts)):
        paths.append(str(tmp_path / f"x.pcap{number}"))
        content = data[:24] + data[start:end]
        Path(paths[-1]).write_bytes(gzip.compress(content) if number == 1 else content)
    missing: list[str] = []
    stream = io.BufferedReader(
        RotatedFiles([*paths, str(tmp_path / "none")], open_file, lambda path, error: missing.append(path))
    )
    joined = list(Capture(stream, "x").entries())
    assert joined == list(Capture(io.BytesIO(data), "x").entries())
    assert any(isinstance(entry, FrameEntry) for entry in joined)
    assert missing == [str(tmp_path / "none")]


def test_a_header_that_says_something_else_stays(tmp_path: Path) -> None:
    first, second = tmp_path / "x.pcap", tmp_path / "x.pcap1"
    first.write_bytes(pcap([]))
    second.write_bytes(pcap([], order=">"))
    failed: list[OSError | DecodeError] = []
    stream = RotatedFiles([str(first), str(second)], open_file, lambda path, error: failed.append(error))
    assert io.BufferedReader(stream).read() == first.read_bytes() + second.read_bytes()
    assert not failed
