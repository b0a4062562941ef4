"""The pytest plugin: the fixtures `kafka`, `kafka_session` and `kafka_tap`, and the report of a failed test.
Tests in simulated worlds are in `simulated_worlds`.

    @pytest.mark.kafka(topics={"orders": 6}, nodes=3)
    def test_orders(kafka): ...

Strategy: nothing but pytest is imported until a test asks for one of the fixtures. Rules: a test fails if one
of its faults never fired, or if it has not awaited one of its waits. When a test fails, its report has the
groups' timeline, and a capture is written: beside the test's other files, or into `--kafka-captures`. A
test's mistake is shown at its own line, unless `--full-trace` asks for all calls.
"""

from __future__ import annotations

import concurrent.futures
import re
import sys
from collections.abc import Generator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import pytest

from .simulated_worlds import add_options, check_options, kafka_simulation_options

if TYPE_CHECKING:
    from coordwire.broker.harness import Kafka, ObservedTraffic
    from coordwire.tap import KafkaTap

__all__ = ["kafka_simulation_options"]

_FIXTURES = ("kafka", "kafka_session", "kafka_tap")
_MARKER = (
    "kafka(topics={name: partitions}, nodes=1, config=None, kafka_defaults=False, **settings): what the"
    " fixture kafka is started with; settings are those of coordwire.broker.Broker and BrokerConfig"
)
_TAP_MARKER = (
    "kafka_tap(upstream=None, **settings): the cluster before which the fixture kafka_tap is, and the"
    " arguments of coordwire.tap.Tap; without upstream it is --kafka-upstream, or the broker of kafka"
)
_UNFIT = re.compile(r"[^\w.-]+")
_MISSING = pytest.StashKey[set[str]]()
"""Why brokers stored records that they could not read."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kafka", "a Kafka broker in the tests' process (coordwire)")
    group.addoption(
        "--kafka-defaults",
        action="store_true",
        help="Kafka's own delays and time-outs, not those that fit tests",
    )
    group.addoption(
        "--kafka-captures",
        metavar="DIR",
        help="where failed tests leave their captures (default: a temporary folder of the test)",
    )
    group.addoption(
        "--kafka-upstream", metavar="HOST:PORT[,…]", help="the cluster before which the fixture kafka_tap is"
    )
    add_options(group)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Leave the package's own modules as they are.

    pytest rewrites the assertions of everything in a distribution that has a plugin. Of a library this size
    that takes seconds, for nothing: its assertions are not tests.
    """
    hook = early_config.pluginmanager.rewrite_hook
    marked = getattr(hook, "_must_rewrite", None)
    if isinstance(marked, set):
        marked -= {name for name in marked if name.partition(".")[0] == "coordwire"}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", _MARKER)
    config.addinivalue_line("markers", _TAP_MARKER)
    check_options(config)


@pytest.fixture
def kafka(request: pytest.FixtureRequest) -> Generator[Kafka]:
    """A Kafka broker for this test, with the arguments of the marker `kafka`."""
    yield from _running(request.config, _arguments(request, "kafka"))


def _arguments(request: pytest.FixtureRequest, name: str) -> dict[str, Any]:
    """The arguments of a fixture's markers, of which the nearest decides."""
    settings: dict[str, Any] = {}
    for marker in reversed(list(request.node.iter_markers(name))):  # the nearest last
        if marker.args:
            pytest.fail(f"the marker {name} takes names only, got {marker.args!r}", pytrace=False)
        settings |= marker.kwargs
    return settings


@pytest.fixture(scope="session")
def kafka_settings() -> dict[str, Any]:
    """The arguments of the broker of `kafka_session`; to be overridden in a conftest."""
    return {}


@pytest.fixture(scope="session")
def kafka_session(request: pytest.FixtureRequest, kafka_settings: dict[str, Any]) -> Generator[Kafka]:
    """One Kafka broker for all tests of the run that ask for it."""
    yield from _running(request.config, kafka_settings)


@pytest.fixture
def kafka_tap(request: pytest.FixtureRequest) -> Generator[KafkaTap]:
    """A tap before a cluster: that of the marker `kafka_tap`, of --kafka-upstream, or of the fixture
    `kafka`."""
    from coordwire.errors import CoordwireError
    from coordwire.tap import KafkaTap

    settings = _arguments(request, "kafka_tap")
    upstream = settings.pop("upstream", None) or request.config.getoption("--kafka-upstream")
    if upstream is None:
        upstream = request.getfixturevalue("kafka").bootstrap
    problem = ""
    try:
        tap = KafkaTap(upstream, **settings)
    except (TypeError, ValueError, CoordwireError) as error:
        problem = str(error)
    if problem:  # outside of `except`, so that the report has it once
        pytest.fail(f"the settings of the fixture: {problem}", pytrace=False)
    with tap as running:
        yield running


def _running(config: pytest.Config, settings: dict[str, Any]) -> Generator[Kafka]:
    from coordwire.broker.harness import Kafka

    if config.getoption("--kafka-defaults") and "config" not in settings:
        settings = {"kafka_defaults": True} | settings
    problem = ""
    try:
        kafka = Kafka(**settings)
    except (TypeError, ValueError) as error:
        problem = str(error)
    if problem:  # outside of `except`, so that the report has it once
        pytest.fail(f"the settings of the fixture: {problem}", pytrace=False)
    with kafka as running:
        yield running
        config.stash.setdefault(_MISSING, set()).update(running.missing_libraries)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for reason in sorted(config.stash.get(_MISSING, ())):
        terminalreporter.write_line(f"kafka: records were stored as they came, and not checked: {reason}")


def _in_use(item: pytest.Item) -> list[ObservedTraffic]:
    """The brokers of a test."""
    values: dict[str, Any] = getattr(item, "funcargs", None) or {}
    return [values[name] for name in _FIXTURES if name in values and hasattr(values[name], "traffic")]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    result = yield
    for running in _in_use(item):
        problem = _problem(running)
        if problem:
            pytest.fail(problem, pytrace=False)  # outside of `except`, so that the report has it once
    return result


def _problem(running: ObservedTraffic) -> str | None:
    """What fails a test that has passed."""
    try:
        running.check()
    except AssertionError as error:
        return str(error)
    return None


def _shorten(error: BaseException) -> None:
    """Leave only a test's own calls of an error that came through the broker's face for tests.

    One that other modules of the package raised is a fault in there, and stays whole.
    """
    broker = sys.modules.get("coordwire.broker")
    if broker is None:
        return
    package, library = Path(broker.__path__[0]), Path(concurrent.futures.__file__).parents[2]
    faces = tuple(str(package / name) for name in ("harness", "injection", "thread.py"))
    hidden = tuple(str(place) for place in (package, library / "concurrent", library / "asyncio"))
    calls: list[tuple[TracebackType, str]] = []
    call = error.__traceback__
    while call is not None:
        calls.append((call, call.tb_frame.f_code.co_filename))
        call = call.tb_next
    if not any(name.startswith(faces) for _, name in calls):
        return
    raised = calls[-1][1]
    if raised.startswith(str(package.parent)) and not raised.startswith(faces):
        return
    traceback: TracebackType | None = None
    for call, name in reversed(calls):
        if not name.startswith(hidden):
            traceback = TracebackType(traceback, call.tb_frame, call.tb_lasti, call.tb_lineno)
    error.__traceback__ = traceback


def _simulated(call: pytest.CallInfo[None]) -> str | None:
    """The report of a simulated test that has failed."""
    module = sys.modules.get("coordwire.testing.simulation")
    error = None if call.excinfo is None else call.excinfo.value
    if module is None or not isinstance(error, module.SimulationFailed):
        return None
    return str(error)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    simulated = _simulated(call)
    if call.excinfo is not None and not item.config.getoption("fulltrace"):
        _shorten(call.excinfo.value)
        call.excinfo = pytest.ExceptionInfo.from_exception(call.excinfo.value)
    report = yield
    if simulated is not None and report.failed:
        report.longrepr = simulated
    if report.failed and report.when == "call":
        for running in _in_use(item):
            report.sections.append(("Kafka", _story(item, running)))
    if report.when == "call":
        for running in _in_use(item):
            running.faults.clear()
    elif report.when == "teardown":
        for running in _in_use(item):
            running.traffic.clear()  # of a session's broker, the next test sees its own
    return report


def _story(item: pytest.Item, running: ObservedTraffic) -> str:
    """What happened to groups, what became of faults, and where the capture is."""
    from coordwire.timeline.story import story_lines

    try:
        lines = list(story_lines(running.timeline()))
        lines.extend(repr(fault) for fault in running.faults.all)
        folder = item.config.getoption("--kafka-captures")
        name = _UNFIT.sub("-", item.name)[:100]
        kind = "" if type(running).__name__ == "Kafka" else "-tap"
        if folder is None:
            factory: pytest.TempPathFactory = item.config._tmp_path_factory  # type: ignore[attr-defined]
            path = factory.mktemp(name[:30]) / f"{name}{kind}.pcap"
        else:
            path = Path(folder) / f"{_UNFIT.sub('-', item.nodeid)[-150:]}{kind}.pcap"
            path.parent.mkdir(parents=True, exist_ok=True)
        running.write_pcap(path)
    except Exception as error:  # the test's own failure must be seen
        return f"what went over the connections cannot be shown: {error!r}"
    lines.append(f"capture: {path} (coordwire timeline, coordwire decode, Wireshark)")
    if running.traffic.dropped:
        lines.append(f"{running.traffic.dropped:,} bytes after it were not kept")
    return "\n".join(lines)
