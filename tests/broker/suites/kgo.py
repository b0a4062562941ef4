"""franz-go's own tests of its client kgo: groups with every balancer, KIP-848, exactly-once transactions.

Strategy: the Go proxy's module has the tests; they are compiled once into the cache, and find the broker by
KGO_SEEDS. Rules: each check has a broker of its own, of three nodes; Test848RegexBrokerResolves has one node,
as its authors run it on Kafka. It reads until it has records of as many topics as it looks for, two, and
counts `__consumer_offsets`, which it reads too: with several nodes that topic's answer may come before one of
the two, and it ends too early.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

from coordwire.broker import Broker, BrokerConfig
from tests.broker.suites.checks import Checks
from tests.interop.maven import Unavailable, cache

VERSION = "v1.22.2"
_MODULE = f"github.com/twmb/franz-go@{VERSION}"
GROUPS = "^(TestGroupETL|TestTxnEtl|TestGroupSimple|TestUnknownGroupOffsetFetchPinned)$"
REGEX = "^Test848RegexBrokerResolves$"
SHARES = "^TestShare.*$"
CLIENT = (
    "^(TestAddRemovePartitions|TestClient_Produce.*|TestConsume.*|TestDirectPartitionPurge|TestHookPollStart.*"
    "|TestIssue.*|TestLookbackMilli|TestMaxVersions|TestPause.*|TestPing|TestPooling|TestProcessHooks.*)$"
)
_WAIT = 540
_RECORDS = 20_000


def _go(*arguments: str, folder: Path | None = None) -> str:
    go = shutil.which("go")
    if go is None:
        raise Unavailable("Go isn't installed")
    result = subprocess.run([go, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    if result.returncode:
        raise Unavailable(f"go {arguments[0]}: {(result.stderr or result.stdout).strip()[-500:]}")
    return result.stdout


def _compiled() -> Path:
    """The tests as a program. Raises `Unavailable`."""
    program = cache() / f"kgo-{VERSION}.test"
    if not program.exists():
        cache().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=cache()) as work:
            (Path(work) / "go.mod").write_text("module fetch\n")
            log_text = _go("mod", "download", "-json", _MODULE, folder=Path(work))
            result = re.search(r'"Dir": "([^"]+)"', log_text)
            if result is None:
                raise Unavailable(f"the Go proxy gave no {_MODULE}")
            made = Path(work) / "made"
            _go("test", "-c", "-o", str(made), "./pkg/kgo", folder=Path(result[1]))
            made.rename(program)
    return program


def run(checks: Checks, only: tuple[str, ...] = ()) -> None:
    """One round; `only`: "groups", "regex", "client", "shares", or tests' names."""
    program = _compiled()
    patterns = {"groups": GROUPS, "regex": REGEX, "client": CLIENT, "shares": SHARES}
    for name in only or patterns:
        pattern = patterns.get(name, f"^{name}$")
        checks.run(name, lambda pattern=pattern: _round(program, pattern))  # type: ignore[misc]


def _round(program: Path, pattern: str) -> None:
    config, nodes = BrokerConfig(auto_create_topics=False), 1 if pattern == REGEX else 3
    with tempfile.TemporaryDirectory() as work, Broker.in_thread(nodes=nodes, config=config) as broker:
        environment = os.environ | {"KGO_SEEDS": broker.bootstrap, "KGO_TEST_RF": "1"}
        environment.setdefault("KGO_TEST_RECORDS", str(_RECORDS))
        result = subprocess.run(
            [str(program), "-test.run", pattern, "-test.v", f"-test.timeout={_WAIT}s"],
            env=environment, cwd=work, capture_output=True, text=True, errors="replace", check=False,
        )  # fmt: skip
    output = result.stdout + result.stderr
    ended = re.findall(r"(?m)^ *--- (PASS|FAIL): (\S+)", output)
    failed = [test for outcome, test in ended if outcome == "FAIL"]
    print(f"    {len(ended) - len(failed)} tests and subtests passed, {len(failed)} failed")
    if result.returncode or failed or not ended:
        kept = Path(tempfile.gettempdir()) / "kgo-failed.txt"
        kept.write_text(output)
        raise AssertionError(f"{', '.join(failed) or f'status {result.returncode}'}; its output is in {kept}")
