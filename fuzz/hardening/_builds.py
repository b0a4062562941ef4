"""The package copied to a folder, with an extension built there of the sources that pyproject.toml lists: for
another compiler, other flags or another interpreter than the install's."""

from __future__ import annotations

import shutil
import subprocess
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent


def copy_package(folder: Path) -> None:
    """The package and what its targets and tests need, without an extension."""
    for name in ("coordwire", "fuzz", "tests", "schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)


def build(folder: Path, compiler: str, flags: Sequence[str], suffix: str) -> None:
    """The same, with an extension. flags: where Python.h is among them; suffix: of the extension's name, as
    the interpreter that is to load it wants it."""
    copy_package(folder)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (extension,) = project["tool"]["setuptools"]["ext-modules"]
    target = folder / Path(*extension["name"].split(".")).with_suffix(suffix)
    command = [compiler, "-std=c11", "-Wall", "-Wextra", "-shared", "-fPIC", *flags]
    subprocess.run([*command, *extension["sources"], "-o", str(target)], cwd=ROOT, check=True)
