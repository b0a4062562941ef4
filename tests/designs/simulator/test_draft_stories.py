"""Timelines of simulated drafts' captures against what their coordinators knew, over random histories."""

from __future__ import annotations

import pytest

from tests.designs.simulator.draft_stories import DESIGNS_WITH_STORIES, differences, run_history

SAMPLE = {
    "draft-1": (
        2, 3, 18, 26, 31, 53, 99, 131, 132, 209, 230, 650, 950, 2168, 2600, 3295, 3422, 5120, 5422, 7275,
        20276, 900955, 901030, 902195,
    ),
    "draft-2-overview": (7, 27, 75, 310, 441, 485, 652, 678, 819, 5136, 900343),
    "draft-2": (0, 54, 9058, 500038, 900057, 900215),
    "draft-3": (9, 14, 195, 435, 512, 622, 1193, 1315, 2313, 3732, 5293, 7059, 7540, 20361, 900662),
    "draft-3-loaded": (12, 63, 240, 580, 1704, 3732, 5293, 5334, 6345, 20361, 1000197),
}  # fmt: skip
"""Seeds with crashes of consumers and coordinators, frozen ones, and attempts that failed."""

MANY = 400


def test_each_design_with_a_dialect_has_a_sample() -> None:
    assert list(SAMPLE) == list(DESIGNS_WITH_STORIES)


@pytest.mark.parametrize(("design", "seed"), [(design, seed) for design in SAMPLE for seed in SAMPLE[design]])
def test_a_timeline_says_what_the_coordinators_knew(design: str, seed: int) -> None:
    story = run_history(design, seed)
    assert len(story.truth.ended) > 2
    assert not differences(story)


@pytest.mark.long
@pytest.mark.parametrize("first", range(0, MANY, 50))
@pytest.mark.parametrize("design", DESIGNS_WITH_STORIES)
def test_timelines_of_many_histories(design: str, first: int) -> None:
    wrong = {
        seed: reasons
        for seed in range(first, first + 50)
        if (reasons := differences(run_history(design, seed)))
    }
    assert not wrong
