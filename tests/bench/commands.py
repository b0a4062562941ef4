"""`python -m tests.bench.commands` measures commands on captures and on a segment that it makes.

Strategy: each command runs as a process of its own, whose time is the processor's (user and system) as the
system counts it for that process, and whose memory is the most that it held. With `--against TREE` the same
command of another tree of coordwire runs in turns with it, and tshark does where it is installed. Rules:
output goes to /dev/null; both trees are compiled before; the fastest round counts, and a ratio is the median
of the rounds' own.
"""

from __future__ import annotations

import argparse
import compileall
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import coordwire
from coordwire.records import Record, encode_batch
from tests.bench import recorded_traffic
from tests.bench.engine import check_engine
from tests.bench.group_traffic import make
from tests.bench.segments import segment

TREE = Path(coordwire.__file__).parent.parent
_START = """
import sys
sys.path.insert(0, sys.argv.pop(1))
from coordwire.cli.__main__ import main
status = main()
print(*[line for line in open("/proc/self/status") if line.startswith("VmHWM")], file=sys.stderr)
sys.exit(status)
"""
JSON = ["decode", "--format", "json"]
_DUMP = ["segment", "dump", "--format", "json"]
_PARQUET = ["decode", "--format", "parquet", "--out"]
_PIPELINE = ["pipeline", "--engine", "local", "--workers", "1", "--no-report", "--out"]
_OUT = "{out}"
"""Stands for a new folder in the arguments of a command."""

_FILTER = 'groupId == "billing-workers-3"'


class Cost(NamedTuple):
    """What a process took: seconds of the processor, and the most memory that it held."""

    seconds: float
    mebibytes: float


def cost(arguments: list[str]) -> Cost:
    """Run a program to its end, without its output. Raises `RuntimeError` if it fails."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryDirectory() as folder:
        arguments = [f"{folder}/tables" if argument == _OUT else argument for argument in arguments]
        process = subprocess.Popen(
            arguments, stdout=subprocess.DEVNULL, stderr=errors, env=environment, cwd="/"
        )
        _, status, usage = os.wait4(process.pid, 0)
        errors.seek(0)
        most = re.search(r"VmHWM:\s*(\d+) kB", errors.read())  # the system's own count has the parent's in it
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):  # 1: something was refused, as the output says
        raise RuntimeError(f"{' '.join(arguments)}: status {process.returncode}")
    return Cost(usage.ru_utime + usage.ru_stime, int(most[1]) / 1024 if most else 0)


def commands(inputs: Path) -> dict[str, list[str]]:
    """The command lines, by their names in the table."""
    groups, beats, recorded = (str(inputs / f"{name}.pcap") for name in CAPTURES)
    log = str(inputs / "orders-0" / f"{0:020}.log")
    return {
        "`decode --format json`, 15 KB": [*JSON, str(inputs / "small.pcap")],
        "`decode --format json`, groups": [*JSON, groups],
        "`decode --format json`, heartbeats": [*JSON, beats],
        "`decode --format line`, groups": ["decode", "--format", "line", groups],
        "`decode --format tree`, groups": ["decode", "--format", "tree", groups],
        "`decode --format json --filter`, groups": [*JSON, "--filter", _FILTER, groups],
        "`decode --format json --api Heartbeat`, groups": [*JSON, "--api", "Heartbeat", groups],
        "`timeline --format json`, groups": ["timeline", "--format", "json", groups],
        "`timeline --format json`, heartbeats": ["timeline", "--format", "json", beats],
        "`decode --out`, Parquet, groups": [*_PARQUET, _OUT, groups],
        "`pipeline --engine local`, groups": [*_PIPELINE, _OUT, groups],
        "`pipeline --engine local`, heartbeats": [*_PIPELINE, _OUT, beats],
        "`decode --format json`, recorded": [*JSON, recorded],
        "`decode --format line`, recorded": ["decode", "--format", "line", recorded],
        "`decode --format tree`, recorded": ["decode", "--format", "tree", recorded],
        "`timeline --format json`, recorded": ["timeline", "--format", "json", recorded],
        "`decode --out`, Parquet, recorded": [*_PARQUET, _OUT, recorded],
        "`pipeline --engine local`, recorded": [*_PIPELINE, _OUT, recorded],
        "`segment dump`": [*_DUMP, log],
        "`segment dump`, batches of one record": [*_DUMP, log.replace("orders-0", "single-0")],
        "`segment verify`": ["segment", "verify", log],
        "`segment verify`, batches of one record": ["segment", "verify", log.replace("orders-0", "single-0")],
    }  # fmt: skip


CAPTURES: dict[str, Callable[[Path, int], None]] = {
    "groups": partial(make, mostly="joins"),
    "heartbeats": make,
    "recorded": recorded_traffic.make,
}


def make_inputs(folder: Path, sizes: Iterable[int], log: int) -> None:
    """Write what isn't there yet; sizes in MiB. A quarter of the segment's is also written in batches of one
    record."""
    for (name, write), size in zip(CAPTURES.items(), sizes, strict=True):
        if not (folder / f"{name}.pcap").exists():
            write(folder / f"{name}.pcap", size << 20)
    make(folder / "small.pcap", 15_000)
    path = folder / "orders-0" / f"{0:020}.log"
    path.parent.mkdir(exist_ok=True)
    if not path.exists():
        path.write_bytes(segment(log << 20, 16, 100, "none"))
    single = folder / "single-0" / path.name
    single.parent.mkdir(exist_ok=True)
    if not single.exists():
        record = Record(-1, 1_700_000_000_000, bytes(16), bytes(100))
        count = (log << 20) // 4 // len(encode_batch([record]))
        single.write_bytes(b"".join(encode_batch([record], base_offset=offset) for offset in range(count)))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.commands", description=__doc__)
    parser.add_argument("--against", type=Path, metavar="TREE", help="another tree, with its extension built")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--inputs", type=Path, metavar="DIR", help="where inputs are kept (default: nowhere)")
    parser.add_argument("--mebibytes", type=int, nargs=4, default=(56, 100, 56, 128), metavar="N",
                        help="of groups, heartbeats, recordings, a segment (56 100 56 128)")  # fmt: skip
    options = parser.parse_args()
    check_engine([])
    trees = {"coordwire": TREE} | ({"other": options.against.resolve()} if options.against else {})
    for tree in trees.values():
        compileall.compile_dir(tree / "coordwire", quiet=2)
    with tempfile.TemporaryDirectory() as folder:
        inputs = Path(folder) if options.inputs is None else options.inputs.resolve()
        inputs.mkdir(exist_ok=True)
        make_inputs(inputs, options.mebibytes[:-1], options.mebibytes[-1])
        columns = [*trees, *(["tshark"] if shutil.which("tshark") else [])]
        head = ["the processor's seconds", *columns, *[f"× {column}" for column in columns[1:]], "MiB"]
        print(f"| {' | '.join(head)} |\n|---|{'---:|' * (len(head) - 1)}")
        for name, arguments in commands(inputs).items():
            programs = {
                column: [sys.executable, "-P", "-c", _START, str(tree), *arguments]
                for column, tree in trees.items()
            }
            if "tshark" in columns and name == "`decode --format json`, groups":
                programs["tshark"] = ["tshark", "-T", "json", "-r", arguments[-1]]
            print(row(name, programs, columns, options.rounds), flush=True)
    return 0


def row(name: str, programs: dict[str, list[str]], columns: list[str], rounds: int) -> str:
    """A row of the table; rounds run the programs in turns."""
    costs: dict[str, list[Cost]] = {column: [] for column in programs}
    for turn in range(rounds):
        for column in list(programs) if turn % 2 else list(programs)[::-1]:
            costs[column].append(cost(programs[column]))
    ours = costs[columns[0]]
    cells = [f"{min(costs[column]).seconds:.2f}" if column in costs else "" for column in columns]
    cells += [
        f"{median(b.seconds / a.seconds for a, b in zip(ours, costs[column], strict=True)):.2f}"
        if column in costs else ""
        for column in columns[1:]
    ]  # fmt: skip
    return f"| {name} | {' | '.join(cells)} | {max(each.mebibytes for each in ours):.0f} |"


if __name__ == "__main__":
    sys.exit(main())
