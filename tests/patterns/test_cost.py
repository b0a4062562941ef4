"""What patterns cost: work and memory, counted, in proportion to pattern and text; and the bounds."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordwire.cli.selection import conditions
from coordwire.patterns import (
    CACHE_BYTES,
    MAX_DEPTH,
    MAX_INSTRUCTIONS,
    InvalidPattern,
    PatternMatch,
    RegularExpression,
)
from tests.growth import assert_linear, work
from tests.patterns.random_patterns import random_pattern

CHARGES = {"match": lambda found, owner, text, position=0: 1 if found is None else len(found[0]) + 1}
"""A regular expression's match from a position: what it passed."""


def letters(count: int) -> str:
    return "".join(map(chr, range(0x4E00, 0x4E00 + count)))


@pytest.mark.growth
@pytest.mark.parametrize(
    "make",
    [
        lambda n: "y" * n,
        lambda n: "(?i)" + letters(n),
        lambda n: "|".join(["(o.*)"] * n),
        lambda n: r"\x41\d\pL[[:alpha:]]\Qa\E\." * n,
        lambda n: "[[:" * n,
        lambda n: "[[:alpha:]]" + "[[:" * n,
        lambda n: f"[^{letters(n)}]",
        lambda n: f"(?i)[{letters(n)}]",
        lambda n: f"[{''.join(f'{letter}-{letter}' for letter in letters(n))}]",
        lambda n: r"[\pL\PN\d]" * n,
        lambda n: "(?:ab?)" * n,
        lambda n: "(?P<a>b)|" + "(?i:c)" * n,
        lambda n: "a{0}" * n,
        lambda n: "()" * n + "a",
        lambda n: "a{3,5}b*" * n,
        lambda n: "{" * n,
    ],
)
def test_a_pattern_is_read_in_proportion_to_its_length(make: Callable[[int], str]) -> None:
    def read(text: str) -> None:
        with suppress(InvalidPattern):  # "[[:" has no end
            RegularExpression(text)

    assert_linear(make, read, n=500, charges=CHARGES)


@pytest.mark.growth
@pytest.mark.parametrize(
    "make",
    [
        lambda n: "(" * n + "a" + ")" * n,
        lambda n: "(" * n + "(){1000}" + "){1000}" * n,
        lambda n: "(" * n + ")*" * n,
        lambda n: "(a|" * n + "b" * 10_000 + ")" * n,
        lambda n: "(?:x" * n + "a{900}" * 10 + ")" * n,
        lambda n: "(?:" * n + "a{0}" + "){0,9}" * n,
    ],
)
def test_nesting_costs_what_it_adds(make: Callable[[int], str]) -> None:
    def read(text: str) -> None:
        with suppress(InvalidPattern):  # some are refused for what their repetitions come to
            RegularExpression(text)

    assert_linear(make, read, n=120, charges=CHARGES)


@pytest.mark.parametrize(
    "text", ["(){1000}", "((){1000}){300}", "((){1000}){600}", "((){1000}){1000}", "(((){1000}){1000}){4}"]
)
def test_empty_groups_cost_nothing_however_often_they_are_repeated(text: str) -> None:
    RegularExpression(text)
    assert work(lambda: RegularExpression(text), CHARGES) < 100 * len(text)


def test_the_size_of_a_set_does_not_multiply_the_work() -> None:
    """A set of n characters that is repeated, matched with a short name."""
    counts = []
    for n in (250, 500, 1_000, 2_000):
        pattern = RegularExpression(f"(?:[^{letters(n)}]?){{1000}}")
        counts.append(work(lambda pattern=pattern: pattern.matches("abcd")))  # type: ignore[misc]
    assert len(set(counts)) == 1


@pytest.mark.growth
@pytest.mark.parametrize("text", ["(a+)+$", "(a|a)*b", "(a?){20}a{20}$", r"(\w+\s?)*x", ".{0,30}b", "(a*)*b"])
@pytest.mark.parametrize("anywhere", [False, True])
def test_a_text_costs_in_proportion_to_its_length(text: str, anywhere: bool) -> None:
    def read(name: str) -> None:
        RegularExpression(text, anywhere=anywhere).matches(name)

    assert_linear(lambda n: "a" * n + "!", read, n=500)


def test_distinct_characters_cost_in_proportion_to_their_number() -> None:
    assert_linear(letters, lambda name: RegularExpression("(?:[^a]|[^b])*").matches(name), n=500)


def test_names_cost_in_proportion_to_their_number() -> None:
    pattern = "(a|b)*a(a|b){20}"
    rng = random.Random(1)
    names = ["".join(rng.choice("ab") for _ in range(30)) for _ in range(160)]

    def read(some: list[str]) -> None:
        matching = RegularExpression(pattern)
        for name in some:
            matching.matches(name)

    assert_linear(lambda n: names[:n], read, n=40)


MANY_STATES = "(a|b)*a(a|b){300}"
"""A state a character, for random names."""

HOSTILE = [
    ".{0,900}" * 20,
    "(a|b)*a(a|b){900}",
    "(?:[^" + letters(500) + "]?){1000}",
    "|".join(["(o.*)"] * 5_000),
    r"(\b|a)" * 5_000,
    "[" + letters(100) + r"\pL]*",
]


@pytest.mark.growth
@pytest.mark.parametrize("text", [*HOSTILE, MANY_STATES])
def test_what_is_kept_takes_no_more_memory_than_it_may(text: str) -> None:
    tracemalloc = pytest.importorskip("tracemalloc", reason="PyPy does not trace memory")
    rng = random.Random(2)
    length = 1_000 if text == MANY_STATES else 40
    names = ["".join(rng.choice("ab") for _ in range(length)) for _ in range(2)] + [letters(20)]
    pattern = RegularExpression(text)
    tracemalloc.start()
    try:
        for name in names:
            pattern.matches(name)
            assert pattern.kept_bytes <= CACHE_BYTES
            # `memoryview` and sets of a step are given back; what is left is what is kept.
            assert tracemalloc.get_traced_memory()[0] <= CACHE_BYTES + (64 << 10)
    finally:
        tracemalloc.stop()


def test_what_is_dropped_is_computed_again() -> None:
    rng = random.Random(3)
    pattern = RegularExpression("(a|b)*a(a|b){300}")
    dropped = kept = 0
    for _ in range(4):
        name = "".join(rng.choice("ab") for _ in range(700))
        assert pattern.matches(name) == (name[-301] == "a")
        dropped += pattern.kept_bytes < kept
        kept = pattern.kept_bytes
    assert dropped


@pytest.mark.parametrize("text", HOSTILE)
def test_a_match_can_be_interrupted_and_goes_on(text: str) -> None:
    rng = random.Random(4)
    pattern = RegularExpression(text)
    for length in (0, 1, 12):
        name = "".join(rng.choice("abo") for _ in range(length))
        match, pattern_match = PatternMatch(pattern, name), PatternMatch(pattern, name[::-1])
        turns = 0
        while match.result is None:
            assert 0 < match.advance(1) <= pattern.max_work
            pattern_match.advance(1)  # of the same pattern, between
            turns += 1
        assert turns <= length + 1
        assert match.result == RegularExpression(text).matches(name)


@pytest.mark.parametrize(
    ("text", "description"),
    [
        ("(" * 2_000 + ")" * 2_000, "expression nests too deeply"),
        ("(" * (MAX_DEPTH + 1) + ")" * (MAX_DEPTH + 1), "expression nests too deeply"),
        ("(((a{100}){100}){100}){100}", "expression too large"),
        ("a{999}" * 99, "expression too large"),
        ("(?:" + "a{999}" * 50 + "|b)", "expression too large"),
        ("a" * (MAX_INSTRUCTIONS + 1), "expression too large"),
    ],
)
def test_a_pattern_that_exceeds_a_bound_is_refused(text: str, description: str) -> None:
    with pytest.raises(InvalidPattern) as refusal:
        RegularExpression(text)
    assert refusal.value.description == description


def test_what_is_at_a_bound_is_taken() -> None:
    assert RegularExpression("(" * MAX_DEPTH + ")" * MAX_DEPTH).matches("")
    assert RegularExpression("a" * MAX_INSTRUCTIONS).matches("a" * MAX_INSTRUCTIONS)


def test_a_caller_may_take_less() -> None:
    assert RegularExpression("a{99}", max_instructions=99).matches("a" * 99)
    with pytest.raises(InvalidPattern):
        RegularExpression("a{100}", max_instructions=99)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32), st.text("ab\nkK_-é日", max_size=40), st.booleans())
def test_no_pattern_costs_more_than_stated(seed: int, name: str, anywhere: bool) -> None:
    text = random_pattern(random.Random(seed))
    try:
        pattern = RegularExpression(text, anywhere=anywhere)
    except InvalidPattern as refusal:
        assert 0 <= refusal.position <= len(text)  # noqa: PT017
        return
    assert pattern.max_work <= 8 * MAX_INSTRUCTIONS + len(text)
    match = PatternMatch(pattern, name)
    total = match.advance(sys.maxsize)
    assert match.result is pattern.matches(name)
    assert 0 < total <= (len(name) + 1) * pattern.max_work
    assert pattern.kept_bytes <= CACHE_BYTES


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.sampled_from(["a", ".", "", "[^ab]", r"\b", "a{9}", "(?i)k", "b?"]),
        lambda inner: st.one_of(
            st.tuples(inner, st.sampled_from(["*", "+", "?", "{0,9}", "{30}", "{2,}"])).map(
                lambda pair: f"(?:{pair[0]}){pair[1]}"
            ),
            st.lists(inner, max_size=4).map(lambda parts: f"({'|'.join(parts)})"),
            st.lists(inner, max_size=4).map("".join),
        ),
        max_leaves=12,
    )
)
def test_an_adversarial_pattern_costs_no_more_than_stated(text: str) -> None:
    try:
        pattern = RegularExpression(text)
    except InvalidPattern as refusal:
        assert refusal.description == "expression too large"  # noqa: PT017
        return
    for name in ("a" * 40, "ab" * 20 + "\n"):
        match = PatternMatch(pattern, name)
        assert match.advance(sys.maxsize) <= (len(name) + 1) * pattern.max_work
        assert pattern.kept_bytes <= CACHE_BYTES


def test_the_page_of_limits_states_the_bounds() -> None:
    page = (Path(__file__).parents[2] / "docs" / "reference" / "limits.md").read_text(encoding="utf-8")
    section = page.partition("## Regular expressions")[2]
    filters = conditions.MAX_INSTRUCTIONS
    for bound in (
        f"{MAX_INSTRUCTIONS:,}; {filters:,} in a filter", f"{MAX_DEPTH:,} |", f"{CACHE_BYTES >> 20} MB"
    ):  # fmt: skip
        assert bound in section


def test_a_set_is_asked_once_a_character_however_often_it_is_repeated() -> None:
    counts = []
    for text in ("[b]", r"[\pN\pS\pP\pZ]"):
        pattern = RegularExpression(f"(?:{text}?){{900}}b")
        match = PatternMatch(pattern, "\u3042")
        counts.append(match.advance(sys.maxsize))
    assert counts[1] == counts[0] + 4
