"""The hash of the topics that a group subscribes to."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from coordwire.coordinator import TopicImage, TopicsImage
from coordwire.coordinator.topics import group_hash, topic_hash
from coordwire.coordinator.xxh3 import xxh3_64

REFERENCE = [
    (0, 3244421341483603138),
    (1, 14144645293874801883),
    (3, 14071657950584810910),
    (4, 15264401271772237449),
    (8, 13298547473703201152),
    (9, 245602082024904742),
    (16, 11358703017679568414),
    (17, 17531454094280037073),
    (32, 11082121530272980926),
    (33, 13868751852844260574),
    (64, 18081061001821390159),
    (96, 10343093324225898840),
    (97, 10570977683049509292),
    (128, 5504977043647058248),
    (129, 13281716425694820069),
    (160, 8882745838884045215),
    (240, 15483304495985154900),
    (241, 14273253860353198273),
    (512, 10801036700719157631),
    (1024, 17451153734556927978),
    (1025, 4897780765970506805),
    (5000, 14855582504511740924),
]
"""Of bytes i * 7 % 251, by their number: what the reference implementation gives (xxhash 3.5)."""

ORDERS = TopicImage(UUID(int=7), "orders", 3)


@pytest.mark.parametrize(("size", "expected"), REFERENCE)
def test_xxh3_is_the_references(size: int, expected: int) -> None:
    assert xxh3_64(bytes(index * 7 % 251 for index in range(size))) == expected


def test_a_groups_hash_ignores_the_order_and_topics_that_are_missing() -> None:
    image = TopicsImage([ORDERS, TopicImage(UUID(int=8), "audit", 1)])
    assert group_hash(image, ["orders", "audit"]) == group_hash(image, ["audit", "gone", "orders"])
    assert group_hash(image, ["gone"]) == group_hash(image, []) == 0


@pytest.mark.parametrize(
    "other",
    [
        replace(ORDERS, partitions=4),
        replace(ORDERS, id=UUID(int=9)),
        replace(ORDERS, name="order"),
        replace(ORDERS, racks=(("r1", "r2"),)),
    ],
)
def test_a_topics_hash_says_what_changed(other: TopicImage) -> None:
    assert topic_hash(other) != topic_hash(ORDERS)


def test_the_order_of_racks_does_not_matter() -> None:
    first, second = (replace(ORDERS, racks=(racks,)) for racks in (("r1", "r2"), ("r2", "r1")))
    assert topic_hash(first) == topic_hash(second)
