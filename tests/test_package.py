"""The package itself: what importing it costs, and which implementation runs."""

from __future__ import annotations

import os
import subprocess
import sys

import coordwire


def python(script: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_importing_it_imports_no_message() -> None:
    script = """
import sys, coordwire
light = {"coordwire.messages.keys", "coordwire.messages.record_types"}
print(sorted(n for n in sys.modules if n.startswith("coordwire.messages.") and n not in light))
print(sorted({"hypothesis", "rich", "construct", "dpkt", "pyarrow"} & set(sys.modules)))
"""
    assert python(script).stdout == "[]\n[]\n"


def test_every_public_name_is_there() -> None:
    for name in coordwire.__all__:
        assert getattr(coordwire, name) is not None
    assert set(coordwire.__all__) <= set(dir(coordwire))


WHICH = "import coordwire; print(coordwire.implementation)"
WITHOUT_EXTENSION = "import sys; sys.modules['coordwire._speedups._native'] = None; "


def test_python_can_be_forced() -> None:
    assert python(WHICH, COORDWIRE_IMPL="python").stdout == "python\n"


def test_without_the_extension_python_runs() -> None:
    assert python(WITHOUT_EXTENSION + WHICH, COORDWIRE_IMPL="").stdout == "python\n"


def test_what_is_forced_and_missing_fails_loudly() -> None:
    refused = python(WITHOUT_EXTENSION + WHICH, COORDWIRE_IMPL="c")
    assert refused.returncode == 1
    assert "COORDWIRE_IMPL=c: this install has no native extension" in refused.stderr


def test_an_unknown_implementation_is_refused() -> None:
    refused = python(WHICH, COORDWIRE_IMPL="rust")
    assert refused.returncode == 1
    assert "COORDWIRE_IMPL=rust: it is python or c" in refused.stderr
