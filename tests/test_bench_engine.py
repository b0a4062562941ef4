"""The engine that benchmarks measure: named first, and compared with its like only."""

from __future__ import annotations

import pytest

from coordwire._speedups import native
from tests.bench import engine
from tests.bench.__main__ import main


@pytest.mark.skipif(native is None, reason="the extension isn't here")
def test_the_first_line_names_native_code(capsys: pytest.CaptureFixture[str]) -> None:
    engine.check_engine(["kio", "construct"])
    assert native is not None
    assert capsys.readouterr().out.splitlines()[0] == f"engine: native code, {native.__file__}"


def test_a_tree_without_the_extension_measures_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(engine, "native", None)
    monkeypatch.delenv("COORDWIRE_IMPL", raising=False)
    with pytest.raises(SystemExit, match="the extension isn't built in this tree"):
        main(["--short", "--peers", "construct"])
    assert capsys.readouterr().out.startswith("engine: ")


@pytest.mark.parametrize("peer", ["kio", "aiokafka (Cython)", "google-crc32c"])
def test_python_is_not_compared_with_native_code(peer: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine, "native", None)
    monkeypatch.setenv("COORDWIRE_IMPL", "python")
    engine.check_engine(["kafka-python", "construct"])
    with pytest.raises(SystemExit, match=r"not compared with native code"):
        engine.check_engine(["kafka-python", peer])
