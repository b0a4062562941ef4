"""Topic patterns: what RE2/J says of them, and what they cost."""

from __future__ import annotations

from pathlib import Path

import pytest

from coordwire.patterns import InvalidPattern, RegularExpression

KEPT = Path(__file__).parents[1] / "data" / "coordinator" / "patterns.txt"


def matches_of(text: str, names: list[str]) -> str:
    """A pattern's matches in names, one digit each, or why it is refused."""
    try:
        pattern = RegularExpression(text)
    except InvalidPattern as error:
        return f"E {error.description}"
    return "".join("01"[pattern.matches(name)] for name in names)


def test_patterns_mean_what_they_mean_to_kafka() -> None:
    _, header, *lines = KEPT.read_text(encoding="utf-8").split("\n")
    names = header.split(" ")[1:]
    results = [line.split("\t", 1) for line in lines if line]
    assert len(results) == 1_500
    assert [
        (text, matches_of(text, names)) for expected, text in results if matches_of(text, names) != expected
    ] == []


@pytest.mark.parametrize(
    ("text", "name", "matches"),
    [
        ("orders-[a-z]+", "orders-eu", True),
        ("orders", "orders-eu", False),
        (r"\Qa.b\E", "a.b", True),
        ("(?i)ORDERS", "orders", True),
        (r"\bpay\b", "pay", True),
        ("a|b|", "", True),
        (r"\p{Lu}.*", "Orders", True),
        ("y" * 32_767, "orders", False),
        ("(?:abcdefghijklmnop){1000}", "abcdefghijklmnop" * 1_000, True),
        ("|".join(["(o.*)"] * 5_000), "orders", True),
    ],
)
def test_a_pattern_matches_whole_names(text: str, name: str, matches: bool) -> None:
    assert RegularExpression(text).matches(name) is matches


@pytest.mark.parametrize("text", ["(" * 2_000 + ")" * 2_000, "(((a{100}){100}){100}){100}", "a{999}" * 99])
def test_a_pattern_that_would_cost_too_much_is_refused(text: str) -> None:
    with pytest.raises(InvalidPattern):
        RegularExpression(text)


class Counted(RegularExpression):
    """Counts the steps of the search."""

    steps = 0

    def _step(self, number: int, character: str) -> tuple[int, int]:
        self.steps += 1
        return super()._step(number, character)


@pytest.mark.parametrize("text", ["(a*)*b", "(a|a)*b", "(a|aa)+$b", "(.*)(.*)(.*)x"])
def test_a_search_takes_at_most_one_step_a_character(text: str) -> None:
    """Patterns on which a backtracking engine takes exponential time."""
    for size in (50, 100, 200):
        pattern = Counted(text)
        pattern.matches("a" * size)
        assert pattern.steps <= size
