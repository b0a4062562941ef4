"""`coordwire completion`: the scripts, run by their shells."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from coordwire.cli.__main__ import COMMANDS
from coordwire.cli.segment import VERBS

from .conftest import Run

CASES = [
    (["coordwire", ""], set(COMMANDS)),
    (["coordwire", "dec"], {"decode"}),
    (["coordwire", "decode", "--client"], {"--client-id"}),
    (["coordwire", "timeline", "--format", ""], {"story", "json"}),
    (["coordwire", "timeline", "--format", "s"], {"story"}),
    (["coordwire", "segment", ""], set(VERBS)),
    (["coordwire", "segment", "dump", "--from"], {"--from-offset"}),
    (["coordwire", "segment", "verify", "--from"], set()),
    (["coordwire", "--version", "segment", "du"], {"dump"}),
    (["coordwire", "completion", ""], {"bash", "zsh", "fish"}),
    (["coordwire", "decode", "cap"], {"capture.pcap", "capture two.pcap"}),
    (["coordwire", "decode", "--api", ""], set()),
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
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return {line for line in done.stdout.splitlines() if line}


def quoted(words: list[str]) -> str:
    return " ".join(f"'{word}'" for word in words)


def test_bash(folder: Path) -> None:
    script = ["source ./script.bash"]
    for words, _ in CASES:
        script.append(f"COMP_WORDS=({quoted(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _coordwire")
        script.append("printf '%s\\n' \"${COMPREPLY[@]}\"; echo ---")
    script.append("complete -p coordwire")
    if shutil.which("bash") is None:
        pytest.skip("bash is not installed")
    done = subprocess.run(
        ["bash", "--norc", "-c", "\n".join(script)], cwd=folder, capture_output=True, text=True, timeout=60
    )
    assert done.stderr == ""
    *found, last = done.stdout.split("---\n")
    assert last == "complete -F _coordwire coordwire\n"
    for (words, expected), told in zip(CASES, found, strict=True):
        assert {line for line in told.splitlines() if line} == expected, words


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
    found = complete(["fish", "--no-config", "-c", script], folder)
    assert {line.partition("\t")[0] for line in found} == expected


def test_every_option_is_there(run: Run, folder: Path) -> None:
    script = (folder / "script.bash").read_text()
    for command in COMMANDS:
        for line in run(command, "--help").text.split():
            option = line.strip("[],")
            if option.startswith("--") and option[2:].replace("-", "").isalpha():
                assert option in script, (command, option)
