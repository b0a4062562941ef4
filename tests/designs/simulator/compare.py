"""The designs compared: under the same fault plans, by the size of the group, and by scenario.

    python -m tests.designs.simulator.compare              print the tables (about 40 minutes)
    python -m tests.designs.simulator.compare --write      put them into FIGURES, the plots into docs/
    python -m tests.designs.simulator.compare --plans 5 --sizes 2,8
    python -m tests.designs.simulator.compare --check --plans 0 --sizes 2,10    hold the file to these figures
    python -m tests.designs.simulator.compare --sizes 2,5,10,20,50,100,1000    (about ten minutes)
    python -m tests.designs.simulator.compare --kept FILE  go on where an earlier command was ended

Rules: the same words give the same bytes, whatever the machine, and however often the command was ended and
begun again: what is known is kept in the file. A run of a fault plan is one group of four consumers and
twelve partitions for two minutes. A run of a size has two partitions for each consumer, and one plan for all
(`SIZE_PLAN`): a consumer comes, a machine is lost, a consumer is cut off, a coordinator crashes, each after
the group has been quiet for a while. What a scenario is, `scenarios` says.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import Any

from coordwire.designs.simulator import parse_faults
from coordwire.designs.simulator.runs import (
    DESIGNS,
    DesignRun,
    RunMeasures,
    SimulatedRun,
    comparable_faults,
    simulate,
)
from tests.designs.simulator.comparison_plots import bars, curves
from tests.designs.simulator.leaders import leaders_table
from tests.designs.simulator.pools import batches_table, pools_table
from tests.designs.simulator.scenarios import SCENARIOS, Event, run, scenario_tables

ROOT = Path(__file__).parent.parent.parent.parent
FIGURES = ROOT / "tests" / "data" / "drafts" / "figures.md"
PAGE = ROOT / "docs" / "history" / "from-zookeeper-to-kip-848.md"
PLOTS = PAGE.parent / "plots"
MEMBERS, PARTITIONS, DURATION_MS = 4, 12, 120_000
SIZES = (2, 5, 10, 20, 50, 100, 1_000, 5_000)
MOST = {"zookeeper": 1_000}
"""The largest group of a design. One change makes each consumer of ZooKeeper read the nodes of all
others: 5,000 of them would cost 25 times the processor time and memory of 1,000."""

GROUPS, SUBSETS, BROKERS, PER_GROUP = 24, 12, 4, 3
MANY_GROUPS = ("draft-2-overview", "draft-2", "draft-3", "draft-3-loaded")
METADATA_MS = 300_000
"""Between the times at which a consumer asks for metadata: Kafka's default, longer than a run of a size."""

QUIET_MS, JOIN_MS, DEATH_MS, CUT_MS, FAILOVER_MS, END_MS = 30_000, 48_000, 84_000, 114_000, 138_000, 168_000
WINDOW_MS = 18_000
SIZE_PLAN = (
    "18s crash consumer-{last} for 30s; 84s cut consumer-1 * for 15s; 84s crash consumer-1 for 16s; "
    "114s cut consumer-2 * for 12s; 138s crash coordinator-1"
)
NONE = "–"
Row = tuple[str, Mapping[str, str]]


# --- fault plans ---


def under_plans(design: str, plans: int, seed: int = 1) -> list[RunMeasures]:
    """The figures of a design under each plan."""
    return [
        simulate(
            design, members=MEMBERS, partitions=PARTITIONS, seed=number, duration_ms=DURATION_MS,
            plan=comparable_faults(number, members=MEMBERS, duration_ms=DURATION_MS), messages=True,
        ).measures
        for number in range(seed, seed + plans)
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class PlanFigures:
    """One design under all plans. cells: the column of its table, by the rows' names; duplicated_s,
    orphaned_s: partition-seconds a run with two owners, and with none."""

    cells: Mapping[str, str]
    duplicated_s: float
    orphaned_s: float


def of_plans(design: str, plans: int) -> PlanFigures:
    runs = under_plans(design, plans)
    deliveries = [run.deliveries for run in runs if run.deliveries is not None]
    duplicated, orphaned = mean(r.duplicated_ms for r in runs), mean(r.orphaned_ms for r in runs)
    lengths = [time for run in runs for time in run.lengths_ms]
    deaths = [death for run in runs for death in run.deaths]
    coordinators = [death for run in runs for death in run.coordinator_deaths]
    cells = {
        "messages delivered twice, a run": _mean((delivery.twice for delivery in deliveries), 0),
        "messages never delivered, a run": _mean((delivery.never for delivery in deliveries), 1),
        "of them passed over for good": _mean((delivery.skipped for delivery in deliveries), 1),
        "two owners, partition-seconds a run": _seconds(duplicated),
        "runs with two owners for over a second": str(sum(r.duplicated_ms > 1000 for r in runs)),
        "no owner, partition-seconds a run": _seconds(orphaned),
        "rebalances a run": f"{mean(len(r.rebalances) for r in runs):.1f}",
        "length of a rebalance": _median_and_most(lengths),
        "until a death is detected": _median_and_most(
            [death.detected - death.time for death in deaths if death.detected is not None]
        ),
        "until its partitions have owners": _median_and_most(
            [death.taken_over - death.time for death in deaths if death.taken_over is not None]
        ),
        "until a coordinator is replaced": _median_and_most(
            [
                coordinator.replaced - coordinator.time
                for coordinator in coordinators
                if coordinator.replaced is not None
            ]
        ),
        "messages of a quiet 6 s": f"{median(_known(r.quiet_messages for r in runs)):g}",
        "messages beyond, a membership change": f"{mean(_known(r.messages_per_change for r in runs)):.0f}",
        "watches, a membership change": f"{mean(r.watches_per_change for r in runs):.1f}",
    }
    return PlanFigures(cells, duplicated / 1000, orphaned / 1000)


def _known(values: Iterable[float | None]) -> list[float]:
    """Those of runs that were quiet for long enough; all that last two minutes are."""
    results = list(values)
    assert None not in results
    return [value for value in results if value is not None]


def _mean(values: Iterable[int], digits: int) -> str:
    """No text of figures where no run has one: who reads a share group's message is not simulated."""
    results = list(values)
    return f"{mean(results):.{digits}f}" if results else NONE


def _seconds(time: float) -> str:
    return f"{time / 1000:.1f}"


def _median_and_most(times: Sequence[int]) -> str:
    return f"{median(times) / 1000:.2f} s, to {max(times) / 1000:.1f} s" if times else NONE


# --- sizes ---


@dataclass(frozen=True, slots=True)
class SizeFigures:
    """One design with one size. join: messages beyond the usual ones when a consumer comes. settled_ms: from
    its start until the last partition has moved. unread_ms: partition-milliseconds without an owner then.
    detected_ms, taken_over_ms: of a consumer whose machine is lost. twice_ms: partition-milliseconds with two
    owners, when a consumer is cut off for 12 s. replaced_ms, failover_ms: when a coordinator crashes, until
    another is elected, and partition-milliseconds without an owner. quiet: messages of six seconds."""

    join: float
    watches: int
    settled_ms: int | None
    unread_ms: int
    detected_ms: int | None
    taken_over_ms: int | None
    twice_ms: int
    replaced_ms: int | None
    failover_ms: int
    quiet: float


def of_size(design: str, members: int) -> SizeFigures:
    result = simulate(
        design, members=members, partitions=2 * members, plan=parse_faults(SIZE_PLAN.format(last=members)),
        duration_ms=END_MS, metadata_ms=METADATA_MS,
    )  # fmt: skip
    traffic, measures = result.traffic, result.measures
    quiet = traffic.between(QUIET_MS, JOIN_MS), traffic.between(JOIN_MS + WINDOW_MS, DEATH_MS)
    ended = [
        rebalance.ended for rebalance in measures.rebalances
        if JOIN_MS <= rebalance.began < JOIN_MS + WINDOW_MS and rebalance.ended is not None
    ]  # fmt: skip
    death = next((death for death in measures.deaths if death.time == DEATH_MS), None)
    coordinator = next(
        (
            coordinator_death
            for coordinator_death in measures.coordinator_deaths
            if coordinator_death.time == FAILOVER_MS
        ),
        None,
    )
    return SizeFigures(
        traffic.between(JOIN_MS, JOIN_MS + WINDOW_MS) - sum(quiet) / 2,
        sum(JOIN_MS <= time < JOIN_MS + WINDOW_MS for time in traffic.watch_times),
        max(ended) - JOIN_MS if ended else None,
        _within(result, JOIN_MS, JOIN_MS + WINDOW_MS),
        None if death is None or death.detected is None else death.detected - DEATH_MS,
        None if death is None or death.taken_over is None else death.taken_over - DEATH_MS,
        _within(result, CUT_MS, FAILOVER_MS, owners=2),
        None if coordinator is None or coordinator.replaced is None else coordinator.replaced - FAILOVER_MS,
        _within(result, FAILOVER_MS, END_MS),
        quiet[1] * 6_000 / WINDOW_MS,
    )


def _within(done: SimulatedRun, begin: int, end: int, owners: int = 0) -> int:
    """Partition-milliseconds with so many owners in a part of the time."""
    return sum(
        min(spell.ended, end) - max(spell.began, begin)
        for spell in done.observer.spells
        if len(spell.owners) == owners and spell.ended > begin and spell.began < end
    )


class KeptFigures:
    """The figures of sizes and of plans, each computed once; kept in a file of JSON lines if one is given."""

    def __init__(self, path: Path | None = None) -> None:
        self._path = path
        self._found: dict[tuple[str, str, int], Any] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                kind, design, number, figures = json.loads(line)
                self._found[kind, design, number] = figures

    def of_size(self, design: str, members: int) -> SizeFigures:
        """As `of_size`."""
        return SizeFigures(**self._figures("size", design, members, of_size))

    def of_groups(self, design: str, subsets: int) -> Mapping[str, int]:
        """As `of_groups`."""
        figures: Mapping[str, int] = self._figures("groups", design, subsets, of_groups)
        return figures

    def of_scenario(self, name: str, design: str, seeds: int) -> list[Event]:
        """The runs of a scenario. seeds: how many, times the scenario's weight."""
        return [
            Event(**self._figures(name, design, seed, partial(run, name)))
            for seed in range(1, seeds * SCENARIOS[name].weight + 1)
        ]

    def table(self, make: Callable[[], str]) -> str:
        """A table without a choice of designs."""
        text: str = self._figures(make.__name__, "", 0, lambda _design, _number: {"text": make()})["text"]
        return text

    def of_plans(self, design: str, plans: int) -> PlanFigures:
        """The figures of a design under so many plans."""
        return PlanFigures(**self._figures("plans", design, plans, of_plans))

    def _figures(self, kind: str, design: str, number: int, make: Callable[[str, int], Any]) -> Any:
        key = kind, design, number
        if key not in self._found:
            figures = make(design, number)
            self._found[key] = figures if isinstance(figures, dict) else asdict(figures)
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps([*key, self._found[key]]) + "\n")
        return self._found[key]


Sizes = Mapping[str, Mapping[int, SizeFigures]]

OF_SIZE: dict[str, Callable[[SizeFigures], str]] = {
    "Messages that one more consumer costs": lambda one: f"{one.join:,.0f}",
    "Watches that one more consumer fires": lambda one: f"{one.watches:,}",
    "Partition-seconds without an owner, when one more consumer comes": lambda one: (
        f"{one.unread_ms / 1000:,.2f}"
    ),
    "Seconds until the last partition has moved, when one more consumer comes": lambda one: (
        NONE if one.settled_ms is None else f"{one.settled_ms / 1000:.2f}"
    ),
    "Seconds until a lost machine's consumer is detected": lambda one: (
        NONE if one.detected_ms is None else f"{one.detected_ms / 1000:.1f}"
    ),
    "Seconds until all its partitions have owners": lambda one: (
        NONE if one.taken_over_ms is None else f"{one.taken_over_ms / 1000:.1f}"
    ),
    "Partition-seconds with two owners, when a consumer is cut off for 12 s": lambda one: (
        f"{one.twice_ms / 1000:,.1f}"
    ),
    "Seconds until a crashed coordinator is replaced": lambda one: (
        NONE if one.replaced_ms is None else f"{one.replaced_ms / 1000:.1f}"
    ),
    "Partition-seconds without an owner, when a coordinator crashes": lambda one: (
        f"{one.failover_ms / 1000:,.1f}"
    ),
    "Messages of a quiet group in 6 s": lambda one: f"{one.quiet:,.0f}",
}


# --- many groups ---


def of_groups(design: str, subsets: int) -> dict[str, int]:
    """24 groups of three consumers, two partitions each for a consumer; one of four brokers crashes, which
    coordinates all groups (one subset) or its share. groups: how many had an unread partition; unread_ms:
    partition-milliseconds without an owner from the crash on; links: connections of the broker with most of
    them before."""
    most_links = 0

    def count_links(run: DesignRun) -> None:
        def count() -> None:
            nonlocal most_links
            most_links = max(
                sum(link.is_listener for link in run.world.nodes[f"coordinator-{number}"].links.values())
                for number in range(1, BROKERS + 1)
            )

        run.world.clock.at(FAILOVER_OF_GROUPS_MS - 1, count)

    result = simulate(
        design, members=GROUPS * PER_GROUP, partitions=2 * PER_GROUP, coordinators=BROKERS, groups=GROUPS,
        subsets=subsets, plan=parse_faults(f"{FAILOVER_OF_GROUPS_MS}ms crash coordinator-1"),
        duration_ms=FAILOVER_OF_GROUPS_MS + 25_000, metadata_ms=METADATA_MS, prepare=count_links,
    )  # fmt: skip
    unread = [
        spell for spell in result.observer.spells if spell.began >= FAILOVER_OF_GROUPS_MS and not spell.owners
    ]
    return {
        "groups": len({one.partition[0] for one in unread if isinstance(one.partition, tuple)}),
        "unread_ms": sum(one.ended - one.began for one in unread),
        "links": most_links,
    }


FAILOVER_OF_GROUPS_MS = 30_000

COORDINATED = ("draft-1", "draft-2-overview", "draft-2", "draft-3", "draft-3-loaded")


def ends_table() -> str:
    """A group of ten loses its coordinator by a crash, or by a shutdown in its order."""
    lines = ["| the coordinator of 10 consumers ends | " + " | ".join(COORDINATED) + " |"]
    lines += ["|---|" + "---:|" * len(COORDINATED)]
    for how, label in (("crash", "by a crash"), ("leave", "by a shutdown")):
        cells = [ended_coordinator(design, how) for design in COORDINATED]
        lines.append(f"| {label}: seconds until another is elected | "
                     f"{' | '.join(f'{elected / 1000:.2f}' for elected, _ in cells)} |")  # fmt: skip
        lines.append(f"| {label}: partition-seconds without an owner | "
                     f"{' | '.join(f'{unread / 1000:.2f}' for _, unread in cells)} |")  # fmt: skip
    return "\n".join(lines) + "\n"


def ended_coordinator(design: str, how: str) -> tuple[int, int]:
    """Milliseconds until another coordinator is elected, and partition-milliseconds without an owner."""
    plan = parse_faults(f"{FAILOVER_OF_GROUPS_MS}ms {how} coordinator-1")
    result = simulate(
        design, members=10, partitions=20, plan=plan,
        duration_ms=FAILOVER_OF_GROUPS_MS + 20_000, metadata_ms=METADATA_MS,
    )  # fmt: skip
    elected = next(
        note.time
        for note in result.run.notes()
        if note.name == "Elected" and note.time > FAILOVER_OF_GROUPS_MS
    )
    end = FAILOVER_OF_GROUPS_MS + 20_000
    return elected - FAILOVER_OF_GROUPS_MS, _within(result, FAILOVER_OF_GROUPS_MS, end)


def groups_table(figures: Callable[[str, int], Mapping[str, int]]) -> str:
    rows = []
    for subsets, label in ((1, "one coordinator"), (SUBSETS, f"{SUBSETS} subsets of the groups")):
        cells = {design: figures(design, subsets) for design in MANY_GROUPS}
        rows += [
            (
                f"{label}: connections of the broker with most",
                [f"{cell['links']}" for cell in cells.values()],
            ),
            (f"{label}: groups that stop reading", [f"{cell['groups']}" for cell in cells.values()]),
            (
                f"{label}: partition-seconds without an owner",
                [f"{cell['unread_ms'] / 1000:.1f}" for cell in cells.values()],
            ),
        ]
    lines = [f"| {GROUPS} groups, a broker of {BROKERS} crashes | {' | '.join(MANY_GROUPS)} |"]
    lines += ["|---|" + "---:|" * len(MANY_GROUPS)]
    lines += [f"| {name} | {' | '.join(texts)} |" for name, texts in rows]
    return "\n".join(lines) + "\n"


# --- texts ---


def table(corner: str, rows: Iterable[Row]) -> str:
    lines = [f"| {corner} | {' | '.join(DESIGNS)} |", "|---|" + "---:|" * len(DESIGNS)]
    lines += [
        f"| {name} | {' | '.join(cells.get(design, NONE) for design in DESIGNS)} |" for name, cells in rows
    ]
    return "\n".join(lines) + "\n"


def size_tables(sizes: Sizes) -> Iterator[str]:
    numbers = sorted({number for found in sizes.values() for number in found})
    for title, text in OF_SIZE.items():
        rows = [
            (
                f"{number:,}",
                {design: text(found[number]) for design, found in sizes.items() if number in found},
            )
            for number in numbers
        ]
        yield f"**{title}**\n\n{table('consumers', rows)}"


def plots(found: Mapping[str, PlanFigures], sizes: Sizes) -> dict[str, str]:
    """The plots by their files' names."""

    def by_size(value: Callable[[SizeFigures], float]) -> dict[str, list[tuple[float, float]]]:
        return {
            design: [(float(number), value(row)) for number, row in rows.items()]
            for design, rows in sizes.items()
        }

    return {
        "ownership.svg": bars(
            "Partition-seconds a run, under the same fault plans", ("two owners", "no owner"),
            {design: (one.duplicated_s, one.orphaned_s) for design, one in found.items()},
        ),
        "join-messages.svg": curves(
            "Messages that one more consumer costs", "consumers", by_size(lambda one: one.join)
        ),
        "join-unread.svg": curves(
            "Partition-seconds without an owner, when one more consumer comes", "consumers",
            by_size(lambda one: one.unread_ms / 1000),
        ),
    }  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that the command makes."""

    text: str
    plots: dict[str, str]


def compare(
    plans: int,
    sizes: Sequence[int],
    *,
    designs: Sequence[str] = tuple(DESIGNS),
    progress: Callable[[str], None] = lambda text: None,
    kept: KeptFigures | None = None,
    groups: bool = False,
    seeds: int = 0,
) -> Comparison:
    kept = kept or KeptFigures()
    result: dict[str, PlanFigures] = {}
    by_size: dict[str, dict[int, SizeFigures]] = {design: {} for design in designs}
    for design in designs if plans else ():
        progress(f"{design}: {plans} plans")
        result[design] = kept.of_plans(design, plans)
    for number in sizes:
        for design in designs:
            if number <= MOST.get(design, number):
                progress(f"{design}: {number} consumers")
                by_size[design][number] = kept.of_size(design, number)
    names = next(iter(result.values())).cells if result else ()
    rows = [(name, {design: one.cells[name] for design, one in result.items()}) for name in names]
    parts = [table(f"{plans} fault plans, each with each design", rows), *size_tables(by_size)]
    if groups:
        progress("many groups")
        tables = ends_table, pools_table, batches_table, leaders_table
        parts[1:1] = [groups_table(kept.of_groups), *map(kept.table, tables)]
    if seeds:
        events: dict[str, dict[str, list[Event]]] = {}
        for name, scenario in SCENARIOS.items():
            progress(name)
            concerned = [design for design in designs if design in scenario.designs]
            events[name] = {design: kept.of_scenario(name, design, seeds) for design in concerned}
        parts += scenario_tables(events)
    return Comparison("\n".join(parts), plots(result, by_size))


BEGIN = "<!-- figures: python -m tests.designs.simulator.compare --write -->\n"
END = "<!-- end of figures -->\n"


def write(comparison: Comparison, page: Path = FIGURES, folder: Path = PLOTS) -> None:
    """Put the tables between the marks of the file, and the plots into their folder."""
    before, _, remaining = page.read_text().partition(BEGIN)
    _, mark, after = remaining.partition(END)
    if not mark:
        raise SystemExit(f"{page} lacks the marks {BEGIN!r} and {END!r}")
    page.write_text(f"{before}{BEGIN}\n{comparison.text}\n{END}{after}")
    folder.mkdir(exist_ok=True)
    for name, text in comparison.plots.items():
        (folder / name).write_text(text)


def cells_of(text: str) -> dict[tuple[str, str, str], str]:
    """The cells of tables, by the table's heading or corner, the row's name and the column's."""
    cells: dict[tuple[str, str, str], str] = {}
    heading, columns = "", list[str]()
    for line in text.splitlines():
        parts = [part.strip() for part in line.strip("|").split("|")]
        if line.startswith("**"):
            heading, columns = line, []
        elif not line.startswith("|"):
            columns = []
        elif not columns:
            heading = heading if parts[0] in ("consumers", "scenario") else parts[0]
            columns = parts[1:]
        elif not line.startswith("|---"):
            cells |= {(heading, parts[0], name): cell for name, cell in zip(columns, parts[1:], strict=True)}
    return cells


def differences(text: str, page: str, designs: Sequence[str]) -> list[str]:
    """Where the page has other figures than these tables. designs: those that were run."""
    kept = cells_of(page)
    return [
        f"{' / '.join(place)}: {cell}, the page has {kept.get(place)}"
        for place, cell in cells_of(text).items()
        if (place[2] in designs or place[2] not in DESIGNS) and kept.get(place) != cell
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--plans", type=int, default=50, help="how many fault plans (50)")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="of groups, with commas")
    parser.add_argument("--seeds", type=int, default=25, help="of each scenario (25)")
    parser.add_argument("--write", action="store_true", help="into the file, not to standard output")
    parser.add_argument("--check", action="store_true", help="print where the file has other figures")
    parser.add_argument("--kept", type=Path, metavar="FILE", help="the figures, kept in a file")
    parser.add_argument("--designs", default=",".join(DESIGNS), help="of these, with commas")
    options = parser.parse_args()
    sizes = [int(number) for number in options.sizes.split(",")]
    designs = options.designs.split(",")
    comparison = compare(
        options.plans, sizes, designs=designs, kept=KeptFigures(options.kept), groups=True,
        seeds=options.seeds, progress=lambda text: print(text, file=sys.stderr, flush=True),
    )  # fmt: skip
    if options.write:
        write(comparison)
    elif options.check:
        changed = differences(comparison.text, FIGURES.read_text(), designs)
        sys.stdout.writelines(f"{line}\n" for line in changed)
        print(f"{len(cells_of(comparison.text))} figures, {len(changed)} others in the page")
        raise SystemExit(1 if changed else 0)
    else:
        sys.stdout.write(comparison.text)


if __name__ == "__main__":
    main()
