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


def test_the_implementation_can_be_forced_and_fails_loudly() -> None:
    script = "import coordwire; print(coordwire.implementation)"
    assert python(script, COORDWIRE_IMPL="python").stdout == "python\n"
    refused = python(script, COORDWIRE_IMPL="c")
    assert refused.returncode == 1
    assert "COORDWIRE_IMPL=c: this build has 'python' only" in refused.stderr
