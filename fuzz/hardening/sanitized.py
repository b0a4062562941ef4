"""Runs fuzz targets over an extension built with AddressSanitizer and UBSan:
`python -m fuzz.hardening.sanitized [TARGET…] [--seconds N]`.

Strategy: the package, the targets and the tests' data are copied to a temporary folder, and the extension's
sources, as pyproject.toml lists them, are compiled there; Python itself runs unchanged, with the sanitizer's
library preloaded and every object from malloc, so that one byte beyond any object is seen. Rules: a report
ends the run and fails it. Leaks are `fuzz.hardening.leaks`'s to find: Python itself leaves too much allocated
at its end.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from fuzz.hardening._builds import build

TARGETS = (
    "bursts", "native", "hostile_values", "decode_frame", "connection", "records_native", "columns_native",
    "columns_shapes", "batch_fields", "capture",
)  # fmt: skip
FLAGS = (
    "-O1", "-g", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=undefined",
    "-DCOORDWIRE_SANITIZED", "-DCOORDWIRE_DEBUG",
)  # fmt: skip


def environment() -> dict[str, str]:
    compiler = os.environ.get("CC", "gcc")
    library = subprocess.check_output([compiler, "-print-file-name=libasan.so"], text=True).strip()
    return os.environ | {
        "LD_PRELOAD": library,
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:abort_on_error=1:malloc_context_size=4",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "PYTHONMALLOC": "malloc",
        "COORDWIRE_IMPL": "c",
        "PYTHONPATH": "",
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.hardening.sanitized", description=__doc__)
    parser.add_argument("targets", nargs="*", default=TARGETS, help="fuzz targets (%(default)s)")
    parser.add_argument("--seconds", type=float, default=60, help="for each target (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        include = f"-I{sysconfig.get_path('include')}"
        suffix = sysconfig.get_config_var("EXT_SUFFIX")
        build(Path(folder), os.environ.get("CC", "gcc"), [*FLAGS, include], suffix)
        for target in options.targets:
            command = [sys.executable, "-m", f"fuzz.{target}", "--seconds", str(options.seconds)]
            subprocess.run(command, cwd=folder, env=environment(), check=True)
            print(f"{target}: no report")


if __name__ == "__main__":
    main()
