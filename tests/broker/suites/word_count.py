"""Kafka Streams' WordCount with exactly_once_v2 while the broker is stopped, killed and started again.

Strategy: three JVMs of Streams' jars: one writes lines at a given pace, one counts their words, one reads the
counts as a reader of committed records. Meanwhile the broker, a process of its own with its logs on disk,
ends in order (SIGTERM) and by SIGKILL in turn, and the counting program is killed once and started again, so
that it restores its counts from its changelog. Rules: each word's count is what the lines say, never falls
on the way, and nothing comes later; no line is lost or doubled; all segments are sound at the end.
COORDWIRE_WORD_COUNT_LINES says how many lines.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

from tests.broker.kills.killing import verify
from tests.broker.served import Served
from tests.broker.suites.checks import Checks
from tests.interop.broker import Java

_SOURCE = Path(__file__).parent / "java" / "WordCount.java"
_LINES = 1_000_000
_PER_SECOND = 12_000
_PARTITIONS = 4
_WORDS = 1_000
_ENDS = (signal.SIGTERM, signal.SIGKILL)
_LIVES = (2.0, 6.0)
"""Seconds between a start of the broker and its end."""
_PAUSES = (0.1, 1.5)
"""Seconds without a broker."""
_WAIT = 540


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """`only`: "restarts", or "quiet" without any."""
    java = Java(project="streams", flags=["-Xshare:auto", "-Xmx1g"])
    lines = int(os.environ.get("COORDWIRE_WORD_COUNT_LINES", _LINES))
    for name in only or ("restarts",):
        checks.run(name, lambda name=name: _counted(java, lines, name == "restarts"))  # type: ignore[misc]


def expected(lines: int) -> Counter[str]:
    """How often each word is in the lines that WordCount.java writes."""
    counts: Counter[str] = Counter()
    for number in range(lines):
        mixed = number * 2654435761 & 0xFFFFFFFF
        for word in range(number % 3 + 1):
            counts[f"w{(mixed >> 7 * word) % _WORDS}"] += 1
    return counts


def _counted(java: Java, lines: int, restarts: bool) -> None:
    with tempfile.TemporaryDirectory() as work, ExitStack() as ended:
        at = Path(work)
        data = at / "data"
        served = ended.enter_context(Served(data, {"lines": _PARTITIONS, "counts": _PARTITIONS}))
        counts = expected(lines)

        def started(name: str, *arguments: str) -> subprocess.Popen[bytes]:
            output = at / f"{name}.txt"
            process = java.start(str(_SOURCE), name, served.bootstrap, *arguments, output=output)
            ended.callback(process.wait)
            ended.callback(process.kill)
            return process

        begun = time.monotonic()
        writer = started("write", "lines", str(lines), str(_PER_SECOND))
        counter = started("count", "lines", "counts", str(at / "state"))
        reader = started("read", "counts", str(counts.total()), str(_WAIT))
        stops = 0
        source = random.Random(1)
        killed = False
        while reader.poll() is None:
            if not restarts or writer.poll() is not None:
                time.sleep(0.2)
                continue
            time.sleep(source.uniform(*_LIVES))
            served.end(_ENDS[stops % 2])
            time.sleep(source.uniform(*_PAUSES))
            served.start()
            stops += 1
            if stops == 6 and not killed:
                killed = True
                counter.kill()
                counter.wait()
                counter = started("count", "lines", "counts", str(at / "state"))
        seconds = time.monotonic() - begun
        counter.send_signal(signal.SIGTERM)
        counter.wait(60)
        served.end(signal.SIGTERM)
        outputs = {
            name: (at / f"{name}.txt").read_text(errors="replace") for name in ("write", "count", "read")
        }
        _judge(lines, counts, outputs)
        segments = verify(data)
        replaced = outputs["count"].count("replaced")
        deleted = [start for start in _starts(data) if start]
        assert deleted, "Streams deleted nothing of its repartition topic"
        print(
            f"    {lines} lines, {counts.total()} words in {seconds:.0f} s; the broker ended {stops} times,"
            f" half by SIGKILL, the counter {int(killed)} times; {replaced} of its threads were replaced;"
            f" {segments} segments are sound; {_last(outputs['read'])}"
        )


def _last(outputs: str) -> str:
    return outputs.strip().rpartition("\n")[2]


def _judge(lines: int, counts: Counter[str], outputs: dict[str, str]) -> None:
    assert f"written {lines}" in outputs["write"].splitlines(), f"printed {outputs['write'][-1500:]}"
    results = [line.split() for line in outputs["read"].splitlines()]
    fell = [line for line in results if line[0] == "fell"]
    assert not fell, f"{len(fell)} counts fell, as {fell[0]}"
    got = {line[0]: int(line[1]) for line in results if len(line) == 2}
    wrong = {word: (got.get(word), count) for word, count in counts.items() if got.get(word) != count}
    tail = outputs["count"][-1500:]
    assert not wrong, (
        f"{len(wrong)} of {len(counts)} counts are wrong, as {sorted(wrong.items())[:5]}: {tail}"
    )
    assert got.keys() == counts.keys(), f"words that nobody wrote: {sorted(got.keys() - counts.keys())[:5]}"


def _starts(data: Path) -> list[int]:
    """Where the logs of the repartition topic begin."""
    text = (data / "log-start-offset-checkpoint").read_text()
    return [int(line.split()[2]) for line in text.splitlines()[2:] if "-repartition " in line]
