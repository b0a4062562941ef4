"""`python -m tests.timeline.histories COUNT [--seed S] [--kind KIND]`: histories whose truth is known.

Prints what differs in each, by its seed, how many there were of which kind, and what was excused, since no
frame shows it. With COUNT 1 what was done, and both stories are printed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable

from coordwire.timeline.events import GroupEvent
from tests.coordinator.stories.__main__ import lines
from tests.timeline.histories.comparison import Compared
from tests.timeline.histories.script import EVERY_KIND, History, play


def _show(history: History, told: Iterable[GroupEvent]) -> None:
    print(history.kind, history.world.config)
    print("\n".join(history.steps))
    for name, events in (("coordinator", history.world.events), ("timeline", told)):
        print(f"--- {name}")
        print("\n".join(lines(events)))


def main(count: int, seed: int, kind: str | None) -> int:
    kinds: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    happened: Counter[str] = Counter()
    wrong = differences = 0
    for number in range(seed, seed + count):
        history = play(number, kind)
        compared = Compared(history)
        found = list(compared.differences())
        world = history.world
        happened.update(
            frames=len(world.entries), stalls=len(world.stalls), moves=len(world.loaded),
            brokers_killed=len(world.kills), groups_deleted=len(history.deleted),
            topics_made_anew=sum(topic_id is None for _, _, topic_id in world.lives),
            clients_dead=len(world.deaths),
        )  # fmt: skip
        happened.update(Counter(type(event).__name__ for event in compared.told))
        excused.update(compared.excused)
        kinds.update(difference.problem for difference in found)
        wrong += bool(found)
        differences += len(found)
        if count == 1:
            _show(history, compared.told)
        if found:
            print(f"## {number} {history.kind}")
            for difference in found:
                print(f"   {difference.problem}: {difference.text}")
    print(f"{count} histories, {wrong} with differences, {differences} in all: {dict(kinds.most_common())}")
    print(f"happened: {dict(happened.most_common())}")
    print(f"excused: {dict(excused.most_common())}")
    return 1 if wrong else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kind", choices=EVERY_KIND)
    chosen = parser.parse_args()
    sys.exit(main(chosen.count, chosen.seed, chosen.kind))
