"""`python -m tests.coordinator.stories SEED COUNT [KIND]`: how the stories of random histories differ.

KIND is one of `scripts.KINDS` or `scripts.NEWER_KINDS`; without it the seed says which. Prints the
differences of each history, with its seed, how many there were of which kind, and how often something was not
asked for, since no frame shows it (`excuses.EXCUSES`). With COUNT 1 both stories are printed, and what was
done.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

from coordwire.timeline import timeline
from coordwire.timeline.events import GroupEvent, LagMeasured, OffsetCommitted
from tests.coordinator.stories.excuses import EXCUSES
from tests.coordinator.stories.scripts import Story, play

_FIELDS = (
    "member_id", "instance_id", "how", "cause", "outcome", "generation", "kind", "members", "inferred",
    "detail", "reason", "api", "error_code",
)  # fmt: skip


def lines(events: Iterable[GroupEvent]) -> Iterable[str]:
    for event in events:
        if isinstance(event, OffsetCommitted | LagMeasured):
            continue
        reported = [
            f"{name}={value}" for name in _FIELDS if (value := getattr(event, name, None)) not in (None, "")
        ]
        began = getattr(event, "began_ns", None)
        since = "" if began is None else f" since {began / 1e9 % 10_000:.3f}"
        yield f"{(event.time_ns or 0) / 1e9 % 10_000:9.3f} {type(event).__name__} {' '.join(reported)}{since}"


def _show(story: Story, reported: list[GroupEvent]) -> None:
    print(story.kind, story.world.config)
    for line in story.steps:
        time, text = line.split(" ", 1)
        print(f"{int(time) / 1e3 % 10_000:9.3f} {text}")
    for name, events in (("coordinator", story.world.events), ("timeline", reported)):
        print(f"--- {name}")
        print("\n".join(lines(events)))


def main(first: int, count: int, kind: str | None = None) -> int:
    kinds: Counter[str] = Counter()
    excused: Counter[str] = Counter()
    without = 0
    wrong = entries = 0
    for seed in range(first, first + count):
        story = play(seed, kind)
        reported = list(timeline(story.world.entries))
        entries += len(story.world.entries)
        compared = story.compare(reported)
        differences = list(compared.differences())
        excused.update(compared.excused)
        without += not differences and not compared.excused
        wrong += bool(differences)
        kinds.update(difference.problem for difference in differences)
        if count == 1:
            _show(story, reported)
        if differences:
            print(f"## {seed} {story.kind}")
            for difference in differences:
                print(f"   {difference.problem}: {difference.text}")
    print(f"{count} histories, {entries} frames, {wrong} with differences: {dict(kinds.most_common())}")
    print(f"{without} histories without a difference and without an excuse; excused:")
    for excuse in EXCUSES:
        print(f"{excused[excuse]:6} {excuse}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:]))
