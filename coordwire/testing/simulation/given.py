"""Values that Hypothesis draws, as arguments of a simulated test.

    @kafka_simulation(seeds=200, faults="any", topics={"orders": 4})
    @given(count=st.integers(1, 40))
    async def test_every_order_is_booked_once(kafka, world, count): ...

Strategy: each seed has values of its own, for which Hypothesis is asked with that seed; the first example it
tries, which is the simplest one always, is left out. The values of a seed that has failed are shrunk by
asking in the same way, and letting that example fail. Rules: what is drawn depends on the seed, the
strategies and the version of Hypothesis alone, and not on the constants of modules that happen to be loaded.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase, Verbosity
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

__all__ = ["DrawnValues"]

_Values = dict[str, Any]

_SETTINGS = hypothesis.settings(
    max_examples=2,
    database=None,
    deadline=None,
    derandomize=False,
    phases=(Phase.generate, Phase.shrink),
    print_blob=False,
    report_multiple_bugs=False,
    suppress_health_check=list(HealthCheck),
    verbosity=Verbosity.quiet,
)


class DrawnValues:
    """The values of a test that has `@given`. function: the test itself; names: of its arguments that are
    drawn. Raises `TypeError` for what cannot work."""

    def __init__(self, decorated: Any) -> None:
        self.function = decorated.hypothesis.inner_test
        strategies: Mapping[str, Any] = decorated.hypothesis._given_kwargs
        self.names = frozenset(strategies)
        self._strategy = st.fixed_dictionaries(dict(strategies))
        parameters = inspect.signature(self.function).parameters
        for name, strategy in strategies.items():
            if name not in parameters or name in ("kafka", "world"):
                raise TypeError(f"expected @given to draw arguments of {decorated.__name__}, got {name!r}")
            if type(strategy).__name__ == "DataStrategy":
                raise TypeError(
                    f"expected a strategy for all of {name}, got data(): a world draws no more values"
                )
        if getattr(decorated, "_hypothesis_internal_settings_applied", False):
            raise TypeError(
                "expected no @settings with @kafka_simulation: seeds=… says how many examples there are"
            )
        if getattr(decorated, "hypothesis_explicit_examples", None):
            raise TypeError(
                "expected no @example with @kafka_simulation: write pytest.mark.parametrize instead"
            )

    def draw(self, seed: int) -> _Values:
        """The values of a seed."""
        return self._examples(seed)[-1]

    def shrink(self, seed: int, fails: Callable[[_Values], bool]) -> _Values:
        """The simplest values found with which a seed fails, as it does with those that it draws."""
        passing = len(self._examples(seed)) - 1
        known: dict[str, bool] = {}
        simplest: _Values = {}

        def example(values: _Values) -> None:
            nonlocal passing, simplest
            if passing:
                passing -= 1
                return
            text = repr(values)
            if text not in known:
                known[text] = not known or fails(values)
            if known[text]:
                simplest = values
                raise _Failed

        with suppress(_Failed, hypothesis.errors.HypothesisException):
            self._ask(seed, example)
        return simplest

    def _examples(self, seed: int) -> list[_Values]:
        examples: list[_Values] = []
        self._ask(seed, examples.append)
        return examples

    def _ask(self, seed: int, example: Callable[[_Values], None]) -> None:
        """Let Hypothesis call a function with examples."""

        def test(values: _Values) -> None:
            example(values)

        with _without_constants():
            _SETTINGS(hypothesis.seed(seed)(hypothesis.given(self._strategy)(test)))()


class _Failed(Exception):
    """An example has failed."""


@contextmanager
def _without_constants() -> Iterator[None]:
    """Hypothesis knows no constants of the program's modules, which it likes to try."""
    original = getattr(providers, "_get_local_constants", None)
    if original is None:  # an older version
        yield
        return
    empty = type(original())()
    providers._get_local_constants = lambda: empty
    providers.CONSTANTS_CACHE.cache.clear()
    try:
        yield
    finally:
        providers._get_local_constants = original
        providers.CONSTANTS_CACHE.cache.clear()
