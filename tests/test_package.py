"""The package itself: what importing it costs, where it runs, and which implementation runs there."""

from __future__ import annotations

import os
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import coordwire
from coordwire import _speedups, broker, capture, messages, timeline
from coordwire._speedups import _NEWEST, _OLDEST, _choose

ROOT = Path(__file__).parent.parent
C_SOURCES = ROOT / "coordwire" / "_speedups"
IS_CPYTHON = sys.implementation.name == "cpython"
needs_c_sources = pytest.mark.skipif(not C_SOURCES.is_dir(), reason="the C sources aren't in this tree")


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
    assert dir(coordwire) == sorted(coordwire.__all__)
    assert {"ResponseReceived", "UnreadableRange", "Deviation", "Request"} <= set(dir(coordwire))


@pytest.mark.parametrize("package", [coordwire, broker, capture, timeline, messages])
def test_public_names_of_packages(package: ModuleType) -> None:
    assert dir(package) == sorted(package.__all__)
    for name in package.__all__:
        assert getattr(package, name) is not None
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'Nonsense'"):
        package.Nonsense  # noqa: B018


def test_packages_import_what_is_used() -> None:
    script = """
import sys, coordwire.broker, coordwire.capture, coordwire.timeline
lazy = "coordwire.broker.", "coordwire.capture.", "coordwire.timeline.", "coordwire.coordinator"
print(sorted(n for n in sys.modules if n.startswith(lazy)), "asyncio" in sys.modules)
import coordwire.timeline.from_wire.timeline
from coordwire.timeline import timeline
print(callable(timeline))
"""
    assert python(script).stdout == "[] False\nTrue\n"


def test_a_broker_loads_what_it_needs() -> None:
    """Not what reads captures, unless it records; not what verifies segments, unless it has a data folder."""
    script = """
import sys
from coordwire.broker import Broker
rooms = "coordwire.capture", "coordwire.spans", "coordwire.segments.verify", "coordwire.client"
loaded = lambda: sorted(name for name in sys.modules if name.startswith(rooms))
print(loaded())
from coordwire.broker.harness.traffic import Traffic
Broker(traffic=Traffic())
print(bool(loaded()))
"""
    assert python(script).stdout == "[]\nTrue\n"


def test_the_package_is_the_command() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "coordwire", "--version"], capture_output=True, text=True, check=True
    )
    assert run.stdout == f"coordwire {coordwire.__version__}\n"


WHICH = "import coordwire; print(coordwire.implementation)"
WITHOUT_EXTENSION = "import sys; sys.modules['coordwire._speedups._native'] = None; "


def test_python_can_be_forced() -> None:
    assert python(WHICH, COORDWIRE_IMPL="python").stdout == "python\n"


def test_without_the_extension_python_runs() -> None:
    assert python(WITHOUT_EXTENSION + WHICH, COORDWIRE_IMPL="").stdout == "python\n"


def test_what_is_forced_and_missing_fails_loudly() -> None:
    refused = python(WITHOUT_EXTENSION + WHICH, COORDWIRE_IMPL="c")
    assert refused.returncode == 1
    elsewhere = "the native extension is for CPython 3.11 to 3.14, and this is"
    reason = "this install has no native extension" if IS_CPYTHON else elsewhere
    assert f"COORDWIRE_IMPL=c: {reason}" in refused.stderr


def test_an_unknown_implementation_is_refused() -> None:
    refused = python(WHICH, COORDWIRE_IMPL="rust")
    assert refused.returncode == 1
    assert "COORDWIRE_IMPL: expected python or c, got rust" in refused.stderr


# --- where it runs ---


def ci_versions() -> list[tuple[int, ...]]:
    """The versions of CPython that CI tests."""
    lines = (ROOT / ".ci" / "pythons").read_text().splitlines()
    return [tuple(map(int, line.split("."))) for line in lines if not line.startswith("#")]


def test_the_floor_is_the_oldest_python_that_ci_tests() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    versions = [".".join(map(str, version)) for version in ci_versions()]
    assert project["project"]["requires-python"] == f">={versions[0]}"
    prefix = "Programming Language :: Python :: 3."
    classified = [one for one in project["project"]["classifiers"] if one.startswith(prefix)]
    assert classified == [f"Programming Language :: Python :: {version}" for version in versions]
    assert project["tool"]["mypy"]["python_version"] == versions[0]
    assert project["tool"]["ruff"]["target-version"] == "py" + versions[0].replace(".", "")


def test_the_extension_is_for_the_pythons_that_ci_tests() -> None:
    versions = ci_versions()
    assert versions == sorted(versions)
    assert (versions[0], versions[-1]) == (_OLDEST, _NEWEST)


@needs_c_sources
def test_the_c_sources_refuse_the_same_versions() -> None:
    refused = re.search(
        r"PY_VERSION_HEX < (0x[0-9A-F]{8}) \|\| PY_VERSION_HEX >= (0x[0-9A-F]{8})\n"
        r'#error "the extension is for CPython ([0-9.]+) to ([0-9.]+)',
        (C_SOURCES / "module.h").read_text(),
    )
    assert refused is not None
    least, above = (int(number, 16) for number in refused.groups()[:2])
    assert (least >> 24, least >> 16 & 255) == _OLDEST
    assert (above >> 24, above >> 16 & 255) == (_NEWEST[0], _NEWEST[1] + 1)
    assert [tuple(map(int, name.split("."))) for name in refused.groups()[2:]] == [_OLDEST, _NEWEST]


@needs_c_sources
@pytest.mark.parametrize("macro", ["Py_GIL_DISABLED", "PYPY_VERSION"])
def test_the_c_sources_refuse_other_builds(macro: str) -> None:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("no C compiler")
    command = [compiler, "-E", f"-I{sysconfig.get_path('include')}", str(C_SOURCES / "module.h")]
    result = subprocess.run([*command, f"-D{macro}=1"], capture_output=True, text=True, check=False)
    if "Python.h" in result.stderr:
        pytest.skip("no headers of this Python")
    assert result.returncode != 0
    assert "coordwire runs in Python" in result.stderr
    supported = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (supported.returncode == 0) == (IS_CPYTHON and _OLDEST <= sys.version_info[:2] <= _NEWEST)


@pytest.mark.parametrize(
    ("name", "version", "build", "reason"),
    [
        ("cpython", (3, 15), "3.15.0 (main)", "for CPython 3.11 to 3.14, and this is cpython 3.15"),
        ("cpython", (3, 10), "3.10.4 (main)", "for CPython 3.11 to 3.14, and this is cpython 3.10"),
        ("pypy", (3, 11), "3.11.13 (PyPy)", "for CPython 3.11 to 3.14, and this is pypy 3.11"),
        (
            "cpython",
            (3, 13),
            "3.13.0 experimental free-threading build (main)",
            "this is a free-threaded build",
        ),
    ],
)
def test_the_extension_is_refused_elsewhere(
    name: str, version: tuple[int, int], build: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = SimpleNamespace(
        implementation=SimpleNamespace(name=name), version_info=(*version, 4, "final", 0), version=build
    )
    monkeypatch.setattr(_speedups, "sys", here)
    assert _choose(None) is None
    assert _choose("python") is None
    with pytest.raises(ImportError, match=re.escape(reason)):
        _choose("c")


# --- the wheel for all other interpreters ---


def test_the_pure_wheel_lacks_the_extension_alone() -> None:
    path = ROOT / "packaging" / "pure_wheel.py"
    if not path.exists():
        pytest.skip("the scripts of packaging aren't in this tree")
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    pure = tomllib.loads(runpy.run_path(str(path))["without_extension"](text))
    whole = tomllib.loads(text)
    assert [one["name"] for one in whole["tool"]["setuptools"].pop("ext-modules")] == [
        "coordwire._speedups._native"
    ]
    assert pure == whole


@needs_c_sources
def test_words_of_compilers_are_in_one_header() -> None:
    """For compilers that don't know them: what others call `__attribute__` and the like."""
    words = re.compile(r"__(attribute__|builtin_\w+|asm__|typeof__|extension__)|\btypeof\b")
    names = {
        path.name
        for path in C_SOURCES.rglob("*.[ch]")
        if words.search(re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL))
    }
    assert names == {"compiler.h", "crc32c.c"}
