"""`coordwire completion`: the scripts, run by their shells."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from coordwire.cli.__main__ import COMMANDS
from coordwire.cli.segment import VERBS
from coordwire.frames import encode_request
from coordwire.messages import HeartbeatRequest

from .conftest import Result, Run

CASES = [
    (["coordwire", ""], set(COMMANDS)),
    (["coordwire", "dec"], {"decode"}),
    (["coordwire", "decode", "--client"], {"--client-id"}),
    (["coordwire", "timeline", "--format", ""], {"html", "json", "story"}),
    (["coordwire", "timeline", "--jo"], set()),
    (["coordwire", "timeline", "--format", "s"], {"story"}),
    (["coordwire", "segment", ""], set(VERBS)),
    (["coordwire", "segment", "dump", "--from"], {"--from-offset"}),
    (["coordwire", "segment", "verify", "--from"], set()),
    (["coordwire", "--version", "segment", "du"], {"dump"}),
    (["coordwire", "completion", ""], {"bash", "zsh", "fish", "groups"}),
    (["coordwire", "decode", "--api", "JoinG"], {"JoinGroup"}),
    (["coordwire", "decode", "--api", "ListO"], {"ListOffsets"}),
    (["coordwire", "explain", "--response-to", "Heart"], {"Heartbeat"}),
    (["coordwire", "api", "SyncG"], {"SyncGroup"}),
    (["coordwire", "decode", "cap"], {"capture.pcap", "capture two.pcap"}),
    (["coordwire", "decode", "--api", "x"], set()),
]


@pytest.fixture
def folder(tmp_path: Path, run: Run) -> Path:
    for name in ("capture.pcap", "capture two.pcap"):
        (tmp_path / name).touch()
    for shell in ("bash", "zsh", "fish"):
        result = run("completion", shell)
        assert (result.status, result.err) == (0, "")
        (tmp_path / f"script.{shell}").write_bytes(result.out)
    return tmp_path


def complete(command: list[str], folder: Path) -> set[str]:
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    process = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert process.stderr == ""
    return {line for line in process.stdout.splitlines() if line}


def quoted(words: list[str]) -> str:
    return " ".join(f"'{word}'" for word in words)


def test_bash(folder: Path) -> None:
    cases = [*CASES, (["coordwire", "timeline", "--format", "=", "st"], {"story"})]
    script = ["source ./script.bash"]
    for words, _ in cases:
        script.append(f"COMP_WORDS=({quoted(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _coordwire")
        script.append("printf '%s\\n' \"${COMPREPLY[@]}\"; echo ---")
    script.append("complete -p coordwire")
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    process = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(script)], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert process.stderr == ""
    *results, last = process.stdout.split("---\n")
    assert last == "complete -F _coordwire coordwire\n"
    for (words, expected), response in zip(cases, results, strict=True):
        assert {line for line in response.splitlines() if line} == expected, words


@pytest.mark.parametrize(("words", "expected"), CASES[:-2])
def test_zsh(folder: Path, words: list[str], expected: set[str]) -> None:
    script = f"""
    compadd() {{
        shift
        for word in "$@"; do
            [[ $word == ${{words[CURRENT]}}* ]] && print -r -- $word
        done
        true
    }}
    compdef() {{ true }}
    source ./script.zsh
    words=({quoted(words)}) CURRENT={len(words)}
    _coordwire
    """
    assert complete(["zsh", "-f", "-c", script], folder) == expected


@pytest.mark.parametrize(("words", "expected"), CASES[:-2])
def test_fish(folder: Path, words: list[str], expected: set[str]) -> None:
    script = f"source script.fish; complete -C {' '.join(words)!r}"
    results = complete(["fish", "--no-config", "-c", script], folder)
    assert {line.partition("\t")[0] for line in results} == expected


# --- groups ---


def requests(*groups: str) -> bytes:
    return b"".join(
        encode_request(HeartbeatRequest(group_id=group), version=4, correlation_id=number)
        for number, group in enumerate(groups)
    )


def test_the_groups_of_small_captures(
    run: Run, tmp_path: Path, captures: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "frames"
    path.write_bytes(requests("pay-eu", "orders", "a b", "$(id)", "`id`", "", "pay-eu"))
    words = ["decode", str(path), "--format", "line", str(tmp_path), "--group", "p", str(tmp_path / "none")]
    assert run("completion", "groups", "--", *words).text == "orders\npay-eu\n"
    group_range = captures / "kpy__tansu__group-range.pcap"
    assert run("completion", "groups", "--", "timeline", group_range).text == "g-kpy-range\n"
    monkeypatch.setattr("coordwire.cli.completion.CHEAP", 10)
    assert run("completion", "groups", "--", *words) == Result(0, b"", "")
    assert run("completion", "bash", "word").status == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_group_is_completed_from_the_capture(folder: Path, shell: str) -> None:
    command = Path(sys.executable).with_name("coordwire")
    if shutil.which(shell) is None or not command.exists():
        pytest.skip(f"{shell} or the command is not installed")
    (folder / "frames").write_bytes(requests("pay-eu", "pay-us", "orders"))
    words = [str(command), "decode", "frames", "--group", "pay"]
    script = {
        "bash": f"""
            source ./script.bash
            COMP_WORDS=({quoted(words)}); COMP_CWORD=4; _coordwire; printf '%s\\n' "${{COMPREPLY[@]}}"
        """,
        "zsh": f"""
            compadd() {{ shift; print -rl -- ${{(M)@:#pay*}} }}
            compdef() {{ true }}
            source ./script.zsh
            words=({quoted(words)}) CURRENT=5
            _coordwire
        """,
        "fish": f"set PATH {command.parent} $PATH; source script.fish; "
        "complete -C 'coordwire decode frames --group pay'",
    }[shell]
    flags = {"bash": ["--norc"], "zsh": ["-f"], "fish": ["--no-config"]}[shell]
    results = complete([shell, *flags, "-c", script], folder)
    assert {line.partition("\t")[0] for line in results} == {"pay-eu", "pay-us"}


def test_every_option_is_there(run: Run, folder: Path) -> None:
    script = (folder / "script.bash").read_text()
    for command in COMMANDS:
        for line in run(command, "--help").text.split():
            option = line.strip("[],")
            if option.startswith("--") and option[2:].replace("-", "").isalpha():
                assert option in script, (command, option)
