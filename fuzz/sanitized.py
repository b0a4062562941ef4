"""Runs fuzz targets over an extension built with AddressSanitizer and UBSan:
`python -m fuzz.sanitized [TARGET…] [--seconds N]`.

Strategy: the package, the targets and the tests' data are copied to a temporary folder, and the extension's
sources, as pyproject.toml lists them, are compiled there; Python itself runs unchanged, with the sanitizer's
library preloaded and every object from malloc, so that one byte beyond any object is seen. Rules: a report
ends the run and fails it. Leaks are `fuzz.leaks`'s to find: Python itself leaves too much behind at its end.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).parent.parent
TARGETS = ("native", "records_native", "columns_native")
FLAGS = (
    "-std=c11", "-O1", "-g", "-fno-omit-frame-pointer", "-shared", "-fPIC", "-Wall", "-Wextra",
    "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-DCOORDWIRE_SANITIZED",
)  # fmt: skip


def build(folder: Path) -> None:
    """The package, with a sanitized extension, and what its targets need."""
    for name in ("coordwire", "fuzz", "tests", "schemas"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    (extension,) = project["tool"]["setuptools"]["ext-modules"]
    target = folder / Path(*extension["name"].split(".")).with_suffix(sysconfig.get_config_var("EXT_SUFFIX"))
    include = sysconfig.get_path("include")
    compiler = os.environ.get("CC", "gcc")
    command = [compiler, *FLAGS, f"-I{include}", *extension["sources"], "-o", str(target)]
    subprocess.run(command, cwd=folder, check=True)


def environment() -> dict[str, str]:
    compiler = os.environ.get("CC", "gcc")
    library = subprocess.check_output([compiler, "-print-file-name=libasan.so"], text=True).strip()
    return os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",
        "COORDWIRE_IMPL": "c",
        "PYTHONPATH": "",
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.sanitized", description=__doc__)
    parser.add_argument("targets", nargs="*", default=TARGETS, help="fuzz targets (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="for each target (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder))
        for target in options.targets:
            command = [sys.executable, "-m", f"fuzz.{target}", "--seconds", str(options.seconds)]
            subprocess.run(command, cwd=folder, env=environment(), check=True)
            print(f"{target}: no report")


if __name__ == "__main__":
    main()
