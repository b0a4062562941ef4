"""Runs fuzz targets on processors that this machine hasn't got, by QEMU's emulation of user programs:
`python -m fuzz.hardening.emulated WHEEL [--examples N]` and `python -m fuzz.hardening.emulated aarch64
[--examples N]`.

A wheel, as `pip wheel .` makes it, is installed beside its dependencies and loaded on an x86-64 processor
that has nothing beyond the baseline; and no instruction beyond it may be outside the functions that are
called only where the processor has it. For aarch64 the extension is compiled by the cross-compiler and loaded
by Debian's Python of that architecture, which apt-get fetches into a temporary folder. Rule: pyarrow stays
away, whose own wheels want newer processors; `fuzz.columns_native` looks at the Arrow kernel without it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from fuzz.hardening._builds import ROOT, build

TARGETS = {"checksum": 1, "records_native": 1, "columns_native": 1, "native": 10}
"""Targets, and of how many examples each takes one: for those of messages strategies are made, slowly."""

NEEDED = ("construct", "crc32c", "cramjam", "deflate", "hypothesis", "lz4", "zstandard")
DISPATCHED = {"by_instruction"}
"""Functions with instructions of their own, called after a look at the processor."""

BEYOND = re.compile(
    r"v[a-z]|crc32|pclmul|popcnt|lzcnt|movbe|aes|sha[12]|addsub|hadd|hsub|lddqu|mov(ddup|shdup|sldup|ntdqa)|pabs"
    r"|palignr|ph(add|sub|min)|pmaddubsw|pmulhrsw|pshufb|psign|p?blend|dpp|(extract|insert)ps|mpsadbw|packusdw"
    r"|pcmp(eqq|gtq|[ei]str)|p(extr|insr)[bdq]|pm(ax|in)(sb|sd|ud|uw)|pmov[sz]x|pmul(dq|ld)|ptest|round[ps]"
    r"|andn[lq]?$|bextr|bls|bzhi|mulx|p(dep|ext)[lq]?$|(ro|sa|sh)[lr]x|adcx|adox"
)
"""What the baseline, SSE2, lacks, as objdump writes it; tzcnt is what it calls `rep bsf`, sound anywhere."""

SCRIPT = """
import platform, coordwire
from coordwire._speedups import native
print(platform.machine(), coordwire.implementation, "CRC-32C by instruction:", native.CRC32C_IS_FAST)
"""


def run(*command: object, **options: object) -> None:
    subprocess.run([str(part) for part in command], check=True, **options)  # type: ignore[call-overload]


def install(site: Path, *what: object, platforms: tuple[str, ...] = ()) -> None:
    elsewhere = [f"--platform={platform}" for platform in platforms]
    if elsewhere:
        elsewhere.append("--only-binary=:all:")
    run(sys.executable, "-m", "pip", "install", "-q", "--target", site, *elsewhere, *what)


def run_targets(python: list[object], folder: Path, site: Path, examples: int) -> None:
    """The targets in `folder`, with the packages in `site`, each by that command."""
    environment = os.environ | {"PYTHONPATH": f"{folder}:{site}", "COORDWIRE_IMPL": "c"}
    run(*python, "-c", SCRIPT, cwd=folder, env=environment)
    for target, part in TARGETS.items():
        run(*python, "-m", f"fuzz.{target}", "--examples", -(-examples // part), cwd=folder, env=environment)


def beyond_the_baseline(extension: Path) -> dict[str, set[str]]:
    """Functions in which such instructions stand, and which."""
    result: dict[str, set[str]] = {}
    name = ""
    text = subprocess.check_output(["objdump", "-d", "--no-show-raw-insn", str(extension)], text=True)
    for line in text.splitlines():
        if match := re.match(r"[0-9a-f]+ <([^.>]*)", line):
            name = match[1]
        elif (match := re.match(r" +[0-9a-f]+:\s+(\S+)", line)) and BEYOND.match(match[1]):
            result.setdefault(name, set()).add(match[1])
    return result


def baseline(wheel: Path, folder: Path, examples: int) -> None:
    site = folder / "site"
    install(site, wheel, *NEEDED)
    (extension,) = site.glob("coordwire/_speedups/_native*.so")
    result = beyond_the_baseline(extension)
    print("beyond the baseline:", result)
    if set(result) - DISPATCHED:
        raise SystemExit(f"outside of {DISPATCHED}")
    for name in ("fuzz", "schemas", "tests"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    python = os.path.realpath(sys.executable)  # which knows nothing of this environment's packages
    run_targets(["qemu-x86_64", "-cpu", "qemu64", python], folder, site, examples)


def debian(folder: Path, architecture: str, *packages: str) -> Path:
    """The packages and what they depend on, unpacked; the system's own are left alone."""
    root, state = folder / "root", folder / "apt"
    for name in ("state/lists/partial", "cache/archives/partial"):
        (state / name).mkdir(parents=True)
    (state / "status").touch()
    options = (
        f"APT::Architecture={architecture}", f"APT::Architectures::={architecture}",
        f"Dir::State={state}/state", f"Dir::State::status={state}/status", f"Dir::Cache={state}/cache",
        "APT::Sandbox::User=root", "Acquire::Languages=none",
    )  # fmt: skip
    apt = ["apt-get", "-qq", *(part for option in options for part in ("-o", option))]
    run(*apt, "update")
    download = ("install", "-y", "--download-only", "--no-install-recommends", *packages)
    run(*apt, *download, stdout=subprocess.DEVNULL)
    for package in (state / "cache/archives").glob("*.deb"):
        run("dpkg-deb", "-x", package, root)
    return root


def aarch64(folder: Path, examples: int) -> None:
    root = debian(folder, "arm64", "python3-minimal", "libpython3-stdlib", "libpython3-dev", "libstdc++6")
    (headers,) = (path for path in root.glob("usr/include/python3.*") if path.name[-1].isdigit())
    version = headers.name.removeprefix("python3.")
    # The C library's headers, start files and stubs come with Python's; the machine may have none.
    flags = ["-O2", "-Werror", f"--sysroot={root}", f"-isystem{headers}"]
    site, package = folder / "site", folder / "package"
    build(package, "aarch64-linux-gnu-gcc", flags, f".cpython-3{version}-aarch64-linux-gnu.so")
    platforms = ("manylinux2014_aarch64", "manylinux_2_17_aarch64", "manylinux_2_28_aarch64")
    install(site, f"--python-version=3.{version}", *NEEDED, platforms=platforms)
    run_targets(["qemu-aarch64", "-L", root, root / f"usr/bin/python3.{version}"], package, site, examples)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz.hardening.emulated", description=__doc__)
    parser.add_argument("what", help="a wheel, or aarch64")
    parser.add_argument("--examples", type=int, default=30, help="for each target (%(default)s)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        if options.what == "aarch64":
            aarch64(Path(name), options.examples)
        else:
            baseline(Path(options.what).absolute(), Path(name), options.examples)


if __name__ == "__main__":
    main()
