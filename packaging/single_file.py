"""Builds the command as one file for people without Python's tools:
`python packaging/single_file.py WHEELS OUT [PYTHON…]`.

Strategy: pex gathers coordwire's wheels and what they need, for each of the interpreters, any of which runs
the file. Rules: coordwire comes from the folder of wheels, what it needs from the index; each interpreter
runs the file once, without an environment, before it is a result.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXTRAS = "cli,compression"


def build(wheels: Path, out: Path, interpreters: list[str]) -> None:
    """Build the file. interpreters: commands or paths. Raises `SystemExit` where one can't run it, and
    `subprocess.CalledProcessError`."""
    (wheel,) = wheels.glob("coordwire-*-py3-none-any.whl")
    version = wheel.name.split("-")[1]
    options = [word for interpreter in interpreters for word in ("--python", interpreter)]
    subprocess.run(
        [
            sys.executable, "-m", "pex", f"coordwire[{EXTRAS}]=={version}", "--find-links", wheels, *options,
            "--python-shebang", "/usr/bin/env python3", "--script", "coordwire", "--output-file", out,
        ],
        check=True,
    )  # fmt: skip
    for interpreter in interpreters:
        shown = subprocess.run(
            [interpreter, "-I", out, "--version"], capture_output=True, text=True, check=True
        ).stdout
        if shown != f"coordwire {version}\n":
            raise SystemExit(f"{interpreter}: expected coordwire {version}, got {shown!r}")


if __name__ == "__main__":
    build(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or [sys.executable])
