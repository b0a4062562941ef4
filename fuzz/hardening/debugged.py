"""Runs native tests, fuzz targets and the count of references on a debug build of the interpreter, with its
assertions and checks: `python -m fuzz.hardening.debugged [--python python3.11-dbg]`.

Strategy: the extension is built for that interpreter in a temporary folder; the packages beside it are this
one's, which any build of the same version loads. Rule: an interpreter of another version is refused.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from fuzz.hardening._builds import build

ASK = """
import json, sys, sysconfig
print(json.dumps([
    hasattr(sys, "gettotalrefcount"), sys.version_info[:2], sysconfig.get_path("include"),
    sysconfig.get_config_var("EXT_SUFFIX"),
]))
"""
RUNS = (
    ("pytest", "-q", "-p", "no:cacheprovider", *(
        f"tests/{name}.py" for name in (
            "codec/test_native", "codec/test_native_exchange", "codec/test_native_frames",
            "codec/test_native_objects", "codec/test_transcriber",
            "records/test_native", "records/test_native_batch", "records/test_native_columns",
        )
    )),
    ("fuzz.native", "--examples", "100"),
    ("fuzz.hostile_values", "--examples", "20"),
    ("fuzz.records_native", "--examples", "200"),
    ("fuzz.batch_fields", "--examples", "10"),
    ("fuzz.columns_native", "--examples", "200"),
    ("fuzz.columns_shapes", "--examples", "50"),
    ("fuzz.hardening.leaks", "--calls", "20000"),
)  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.hardening.debugged", description=__doc__)
    name = f"python{sys.version_info.major}.{sys.version_info.minor}-dbg"
    parser.add_argument("--python", default=name, help="a debug build (%(default)s)")
    python = parser.parse_args().python
    debug, version, include, suffix = json.loads(subprocess.check_output([python, "-c", ASK]))
    if not debug or version != list(sys.version_info[:2]):
        raise SystemExit(f"{python} is not a debug build of this version")
    with tempfile.TemporaryDirectory() as folder:
        flags = ["-O1", "-g", "-UNDEBUG", "-DCOORDWIRE_DEBUG", f"-I{include}"]
        build(Path(folder), os.environ.get("CC", "gcc"), flags, suffix)
        packages = sysconfig.get_path("platlib")
        # The plugin that an editable install names is found by a .pth file, which PYTHONPATH does not read.
        plugins = str(Path(folder, "coordwire", "testing", "plugins"))
        path = os.pathsep.join([folder, plugins, packages])
        environment = os.environ | {"PYTHONPATH": path, "COORDWIRE_IMPL": "c"}
        for run in RUNS:
            subprocess.run([python, "-X", "dev", "-m", *run], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
