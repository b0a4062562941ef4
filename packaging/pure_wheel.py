"""Builds the wheel without the extension, `py3-none-any`, for every interpreter that no other wheel is for:
`python packaging/pure_wheel.py OUT [PIP'S OPTIONS]`.

Strategy: a copy of the tree whose pyproject.toml lacks the extension is built as usual, so that the build
backend itself gives the wheel its tags. pip prefers a wheel for its own platform, so that this one goes to
Windows, PyPy, newer versions of CPython and free-threaded builds, which then need no compiler.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NEEDED = ("README.md", "LICENSE", "coordwire")
EXTENSION = re.compile(r"^\[\[tool\.setuptools\.ext-modules\]\]\n.*?(?=^\[)", re.MULTILINE | re.DOTALL)


def without_extension(project: str) -> str:
    """The text of pyproject.toml without the extension. Raises `ValueError` where there is not one."""
    text, count = EXTENSION.subn("", project)
    if count != 1:
        raise ValueError(f"expected 1 extension in pyproject.toml, got {count}")
    return text


def build(out: Path, *options: str) -> Path:
    """Build the wheel into a folder. options: pip's. Raises `SystemExit` if it is for some platform."""
    with tempfile.TemporaryDirectory() as name:
        tree, made = Path(name, "tree"), Path(name, "made")
        tree.mkdir()
        compiled = shutil.ignore_patterns("*.so", "*.pyd", "__pycache__")
        for needed in NEEDED:
            if (ROOT / needed).is_dir():
                shutil.copytree(ROOT / needed, tree / needed, ignore=compiled)
            else:
                shutil.copy(ROOT / needed, tree)
        project = without_extension((ROOT / "pyproject.toml").read_text("utf-8"))
        (tree / "pyproject.toml").write_text(project, "utf-8")
        pip = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps"]
        subprocess.run([*pip, *options, "--wheel-dir", made, tree], check=True)
        (wheel,) = made.iterdir()
        if not wheel.name.endswith("-py3-none-any.whl"):
            raise SystemExit(f"expected a wheel for any platform, got {wheel.name}")
        out.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy(wheel, out))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        raise SystemExit(__doc__)
    print(build(Path(sys.argv[1]), *sys.argv[2:]))
