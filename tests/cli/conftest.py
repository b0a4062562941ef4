"""Running `coordwire` in the tests' own process, with standard input and output as a shell gives them."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coordwire.cli.__main__ import main
from tests.conftest import want

CAPTURES = Path(__file__).parent.parent / "data" / "captures"


@dataclass(frozen=True, slots=True)
class Result:
    """How a command ended, and what it wrote."""

    status: int
    out: bytes
    err: str

    @property
    def text(self) -> str:
        return self.out.decode()

    @property
    def forms(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """`run("decode", file, stdin=b"…")`."""

    def run(*arguments: object, stdin: bytes = b"") -> Result:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        status = main([str(argument) for argument in arguments])
        out, err = capfdbinary.readouterr()
        if reason := want((out + err).decode(errors="replace")):
            pytest.skip(reason)
        return Result(status, out, err.decode())

    monkeypatch.setenv("COLUMNS", "100")
    return run


@pytest.fixture
def captures() -> Path:
    return CAPTURES
