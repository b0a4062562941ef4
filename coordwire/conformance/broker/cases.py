"""Cases for brokers: what each is about, and which a broker can be asked.

Rules: an address is never used for another case. A function's docstring is its rule. `needs` names APIs with
the version from which the rule holds ("JoinGroup 4"); a broker without one skips the case.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from coordwire.conformance.broker.stage import Stage

Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class BrokerCase:
    """A case. document: a KIP or a page of Kafka's documentation; question: what is asked; answer: Kafka's;
    rule: what is checked; needs: APIs with versions; recommended: no implementation is wrong without."""

    address: str
    document: str
    question: str
    answer: str
    rule: str
    needs: tuple[str, ...]
    recommended: bool
    play: Play


CASES: list[BrokerCase] = []


def case(
    address: str, document: str, question: str, answer: str, *, needs: str = "", recommended: bool = False
) -> Callable[[Play], Play]:
    """Make a case of a function. needs: APIs with versions, commas between them."""

    def register(play: Play) -> Play:
        rule = " ".join((play.__doc__ or "").split())
        apis = tuple(api.strip() for api in needs.split(",") if api.strip())
        CASES.append(BrokerCase(address, document, question, answer, rule, apis, recommended, play))
        return play

    return register
