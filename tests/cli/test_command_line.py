"""What all commands share: usage errors, input without a name, folders, output in a pipe."""

from __future__ import annotations

import io
import os
import pty
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import pytest

from coordwire.cli.__main__ import COMMANDS, EXAMPLES, command_module, whole_parser
from coordwire.cli.conformance import VERBS as KINDS
from coordwire.cli.segment import VERBS
from coordwire.cli.terminal import TrimmedOutput
from tests.broker_sample import broker_sample

from .conftest import CAPTURES, Run

GROUP = CAPTURES / "kpy__tansu__group-range.pcap"
MOST_LINES = 3

SCREEN = 50
"""Lines of a terminal."""


# --- usage errors ---


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["decod", "x"], "'decod' is unknown; did you mean decode?"),
        (["decode", "--frmat", "json", "x"], "unknown option --frmat; did you mean --format?"),
        (["decode", "--frmat=json", "x"], "unknown option --frmat; did you mean --format?"),
        (["decode", "--format", "jsn", "x"], "argument --format: 'jsn' is unknown; did you mean json?"),
        (
            ["decode", "--format", "xml", "x"],
            "expected tree, line, json, hex, tsv, csv or parquet, got 'xml'",
        ),
        (["decode", "--api", "JoinGrop", "x"], "no API is called 'JoinGrop'; did you mean JoinGroup?"),
        (["timeline", "--grup", "g", "x"], "unknown option --grup; did you mean --group?"),
        (["segment", "dmp", "x"], "'dmp' is unknown; did you mean dump?"),
        (
            ["segment", "dump", "--fromoffset", "3", "x"],
            "unknown option --fromoffset; did you mean --from-offset?",
        ),
        (["simulate", "clasic"], "'clasic' is unknown; did you mean classic?"),
        (["api", "Fetch", "17", "more"], "unexpected argument 'more'"),
        (["completion", "bsh"], "'bsh' is unknown; did you mean bash?"),
        (["decode", "\x1b[2J", "--\x1b[2J"], "unknown option --\\x1b[2J"),
        (["--nothing"], "the following arguments are required: COMMAND"),
    ],
)
def test_a_usage_error_is_short_and_names_what_is_near(run: Run, arguments: list[str], hint: str) -> None:
    result = run(*arguments)
    usage, error, extra = result.err.splitlines()
    assert usage.startswith("usage: coordwire ")
    assert "error: " in error
    assert hint in error
    assert extra.endswith(" --help says more")
    assert (result.status, result.out) == (2, b"")


def test_no_command_is_answered_with_the_help(run: Run) -> None:
    """On standard error, with the status of a usage error: nothing was asked for."""
    result = run()
    assert (result.status, result.out) == (2, b"")
    assert result.err == run("--help").text


COMMAND_LINES = [
    *([name] for name in COMMANDS if name not in ("segment", "conformance")),
    *(["segment", verb] for verb in VERBS),
    *(["conformance", kind] for kind in KINDS),
]


@pytest.mark.parametrize("command", COMMAND_LINES, ids=" ".join)
def test_every_command_refuses_what_it_does_not_know(run: Run, command: list[str]) -> None:
    arguments = {"explain": ["00"], "simulate": ["classic"], "completion": ["bash"]}.get(command[0], ["x"])
    result = run(*command, *arguments, "--nonsense")
    assert (result.status, result.out) == (2, b"")
    assert len(result.err.splitlines()) == MOST_LINES


@pytest.mark.parametrize("command", [[], ["segment"], ["conformance"], *COMMAND_LINES], ids=" ".join)
def test_help_opens_with_an_example_and_fits_a_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = run(*command, "--help")
    usage, example, *_ = lines = result.text.splitlines()
    assert (result.status, result.err) == (0, "")
    assert usage.startswith(" ".join(["usage: coordwire", *command]))
    assert example.startswith(" ".join(["example: coordwire", *command]))
    assert [line for line in lines if len(line) > 80 or line.endswith(" ")] == []


@pytest.mark.parametrize("command", [[], ["segment"], ["conformance"], *COMMAND_LINES], ids=" ".join)
def test_help_fits_a_screen(run: Run, monkeypatch: pytest.MonkeyPatch, command: list[str]) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert len(run(*command, "--help").text.splitlines()) <= SCREEN


def test_all_of_the_help_of_decode(run: Run) -> None:
    short, whole = run("decode", "--help").text, run("decode", "--help-all").text
    assert set(re.findall(r"--[a-z-]+", short)) < set(re.findall(r"--[a-z-]+", whole))
    assert "coordwire decode --help-all has more options, and the fields of expressions" in short
    for part in ("further options:", "other protocols:", "filter expressions:", "comparisons"):
        assert part in whole
        assert part not in short


@pytest.mark.parametrize("command", ["decode", "explain", "timeline", "pipeline"])
def test_options_for_other_protocols_come_last(run: Run, command: str) -> None:
    option = "--help-all" if command == "decode" else "--help"
    before, _, last = run(command, option).text.partition("\nother protocols:\n")
    _, block, *_ = last.split("\n\n")
    expected = (
        ["--dialect", "--type-id", "--auto-commit"] if command in ("decode", "explain") else ["--dialect"]
    )
    assert re.findall(r"^  (--[\w-]+)", block, re.MULTILINE) == expected
    assert "--dialect" not in before.partition("options:")[2]


@pytest.mark.parametrize("example", EXAMPLES.values())
def test_the_examples_are_command_lines(example: str) -> None:
    words = shlex.split(example)
    assert vars(whole_parser().parse_args(words))["command"] == words[0]


# --- output ---


def test_a_pipe_has_the_text_that_a_terminal_has(run: Run) -> None:
    data = broker_sample() / "data"
    offsets = data / "__consumer_offsets-0"
    lines: list[tuple[str, list[object]]] = [
        ("tree", ["decode", GROUP]),
        ("story", ["timeline", GROUP]),
        ("table", ["offsets", offsets]),
        ("table", ["offsets", "--lag", data]),
        ("table", ["segment", "dump", offsets]),
        ("text", ["segment", "verify", offsets]),
    ]
    for name, line in lines:
        text = run(*line)
        assert text.out == run(*line, "--format", name).out
        assert not text.out.startswith(b"{"), line
        assert run(*line, "--format", "json").out.startswith(b"{"), line
    assert "json lines into a pipe" in " ".join(run("watch", "--help").text.split())


@pytest.mark.parametrize("command", [["timeline"], ["decode", "--format", "line"]], ids=" ".join)
def test_a_reader_that_has_seen_enough_ends_a_command_quietly(command: list[str]) -> None:
    """As `| head` does, of a text of more than a pipe holds."""
    line = [sys.executable, "-m", "coordwire", *command, *[str(GROUP)] * 40]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.read(1)
        process.stdout.close()
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, b"")


def test_no_line_ends_in_blanks_in_a_pipe(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    data = broker_sample() / "data"
    offsets = data / "__consumer_offsets-0"
    metadata = data / "__cluster_metadata-0" / f"{0:020}.log"
    lines: list[Sequence[object]] = [
        *(["decode", "--format", form, GROUP] for form in ("tree", "line", "hex", "json")),
        *(["timeline", "--format", form, GROUP] for form in ("story", "json")),
        ["decode", "--deep", "--format", "tree", GROUP],
        ["offsets", "--format", "table", offsets],
        ["offsets", "--format", "table", "--latest", data],
        ["offsets", "--format", "table", "--lag", data],
        ["segment", "dump", "--format", "table", "--deep", metadata],
        ["segment", "dump", "--format", "table", "--batches", metadata],
        ["segment", "verify", "--format", "text", offsets],
        ["explain", "0000000e0012000000000007000474696c6c"],
        *(["api", *words] for words in ([], ["--all"], ["Fetch"], ["Fetch", "17"])),
        ["api", "Fetch", "--diff", "3", "17"],
        ["simulate", "draft-2", "--duration", "20s"],
        *(["completion", shell] for shell in ("bash", "zsh", "fish")),
    ]  # fmt: skip
    for width in ("80", "140"):
        monkeypatch.setenv("COLUMNS", width)
        for line in lines:
            result = run(*line)
            assert result.out, line
            wrong = [text for text in result.text.splitlines() if text.endswith((" ", "\t"))]
            assert wrong == [], line


@pytest.mark.parametrize("width", [80, 100, 140])
def test_screens_fit_their_width(run: Run, monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """The flow of a block has a line of its own where there is no room beside its packets and time."""
    monkeypatch.setenv("COLUMNS", str(width))
    data = broker_sample() / "data"
    lines: list[list[object]] = [
        ["decode", GROUP],
        ["decode", "--deep", GROUP],
        ["offsets", "--latest", data],
        ["offsets", "--lag", data],
    ]
    for line in lines:
        text = run(*line).text
        assert [row for row in text.splitlines() if len(row) > width] == [], line
    text = run("decode", GROUP).text
    assert len(re.findall(r"127\.0\.0\.1:\d+ [<>] 127\.0\.0\.1:9092\n", text)) == text.count("  tcp.stream ")


def test_a_line_waits_for_its_end() -> None:
    stream = io.StringIO()
    output = TrimmedOutput(stream)
    for text in ("a  ", " \nb", " c ", "", "\n \n\n", "d "):
        assert output.write(text) == len(text)
    assert stream.getvalue() == "a\nb c\n\n\n"


# --- input ---


def test_what_is_piped_in_needs_no_name(run: Run) -> None:
    data = GROUP.read_bytes()
    for command in ("decode", "timeline"):
        named = run(command, "--format", "json", "-", stdin=data)
        assert named.out
        assert run(command, "--format", "json", stdin=data).out == named.out
    lines = run("decode", "--format", "json", stdin=data).out
    text = run("encode", stdin=lines)
    assert text.out == run("encode", "-", stdin=lines).out
    assert run("explain", stdin=text.out).out == run("explain", "-", stdin=text.out).out


@pytest.mark.parametrize("command", ["decode", "timeline", "encode", "explain"])
def test_on_a_terminal_a_command_without_a_name_says_what_it_needs(command: str) -> None:
    terminal, other = pty.openpty()
    try:
        process = subprocess.run(
            [sys.executable, "-m", "coordwire", command],
            stdin=other,
            capture_output=True,
            text=True,
            timeout=60,
        )
    finally:
        os.close(terminal)
        os.close(other)
    assert process.returncode == 2
    assert "or a pipe to standard input" in process.stderr
    assert len(process.stderr.splitlines()) == MOST_LINES


def test_decode_reads_the_captures_of_a_folder(run: Run, tmp_path: Path) -> None:
    below = tmp_path / "below"
    below.mkdir()
    shutil.copy(GROUP, tmp_path / "b.pcap")
    shutil.copy(GROUP, below / "without a suffix")
    (tmp_path / "notes.txt").write_text("nothing")
    full_output = run("decode", "--format", "json", tmp_path)
    item = run("decode", "--format", "json", GROUP)
    assert len(full_output.forms) == 2 * len(item.forms)
    assert {form["capture"] for form in full_output.forms} == {
        str(tmp_path / "b.pcap"),
        str(below / "without a suffix"),
    }
    assert full_output.status == item.status
    last = run("decode", "--format", "json", "--since", "-1s", tmp_path)
    assert 0 < len(last.forms) < len(full_output.forms)
    assert "did you mean g-kpy-range?" in run("decode", "--group", "kpy-range", tmp_path).err


@pytest.mark.parametrize("command", ["decode", "timeline"])
def test_a_ring_that_began_again_is_read_in_the_order_of_time(run: Run, tmp_path: Path, command: str) -> None:
    """As `tcpdump -W 3` leaves it: the third file is the oldest."""
    data = GROUP.read_bytes()
    cuts, at = [24], 24
    while at < len(data):
        at += 16 + int.from_bytes(data[at + 8 : at + 12], "little")
        if at - cuts[-1] > len(data) // 3:
            cuts.append(at)
    for number, (start, end) in zip((2, 0, 1), pairwise([*cuts, len(data)]), strict=True):
        (tmp_path / f"x.pcap{number}").write_bytes(data[:24] + data[start:end])

    def forms(path: Path) -> list[dict[str, object]]:
        result = run(command, "--format", "json", path)
        return [{**form, "capture": "", "source": ""} for form in result.forms]

    assert forms(tmp_path) == forms(GROUP)


def test_a_rotated_capture_in_a_folder_is_one(run: Run, tmp_path: Path) -> None:
    data = GROUP.read_bytes()
    cut = 24 + 16 + int.from_bytes(data[32:36], "little")  # the header and one packet
    (tmp_path / "ring_00001_20261121031148.pcap").write_bytes(data[:cut])
    (tmp_path / "ring_00002_20261121031149.pcap").write_bytes(data[:24] + data[cut:])
    result = run("decode", "--format", "json", tmp_path)
    assert len(result.forms) == len(run("decode", "--format", "json", GROUP).forms)
    assert len({form["capture"] for form in result.forms}) == 1


def test_a_folder_without_captures_is_refused(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("nothing")
    for flags in ([], ["--group", "g"]):
        result = run("decode", *flags, tmp_path)
        assert (result.status, result.out) == (2, b"")
        assert f"{tmp_path}: no capture in 1 file; coordwire segment dump" in result.err
    result_of_both = run("decode", "--format", "line", tmp_path, GROUP)
    assert result_of_both.status == 2
    assert result_of_both.out == run("decode", "--format", "line", GROUP).out


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_its_module(name: str) -> None:
    assert vars(command_module(name))["__name__"] == f"coordwire.cli.{name}"
    assert name in EXAMPLES
    with pytest.raises(KeyError):
        command_module("decoder")
