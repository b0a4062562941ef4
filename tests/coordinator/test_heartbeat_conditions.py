"""Each condition of the fast paths of heartbeats is needed: without it an answer differs from Kafka's.

Strategy: the conditions are read from the source of the fast paths: the operands of `and` and `or`, the
links of a chain of comparisons, the tests of `if`, the elements of a tuple of marks. One at a time is
evaluated and its result ignored, or the element left out. The changed function takes the place of the
original, for the slow path too where that uses it, and the histories of rules run until an outcome is not
Kafka's.

Rules: the list is made from the code, so that a new condition is in it. One that no history misses is not
needed, or lacks a history: add one to `rule_histories.py`.
"""

from __future__ import annotations

import ast
import copy
import inspect
import itertools
import textwrap
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest

from coordwire.coordinator.classic import requests as classic
from coordwire.coordinator.consumer import heartbeat as consumer
from coordwire.coordinator.model.consumer_group import ConsumerGroupModel
from coordwire.coordinator.model.share_group import ShareGroupModel
from coordwire.coordinator.model.streams_group import StreamsGroupModel
from coordwire.coordinator.requests import STEADY
from coordwire.coordinator.share import heartbeat as share
from coordwire.coordinator.streams import heartbeat as streams
from coordwire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    ShareGroupHeartbeatRequest,
    StreamsGroupHeartbeatRequest,
)
from tests.coordinator.archived_histories import archived
from tests.coordinator.planted_bugs import differing
from tests.coordinator.recorded_histories import RecordedHistory

_PATHS: dict[str, tuple[Any, Any, int]] = {
    "classic": (classic.steady_heartbeat, HeartbeatRequest, 7),
    "consumer": (consumer.steady_heartbeat, ConsumerGroupHeartbeatRequest, 19),
    "streams": (streams.steady_heartbeat, StreamsGroupHeartbeatRequest, 25),
    "share": (share.steady_heartbeat, ShareGroupHeartbeatRequest, 11),
    "consumer group": (ConsumerGroupModel.is_settled, ConsumerGroupModel, 5),
    "streams group": (StreamsGroupModel.is_settled, StreamsGroupModel, 9),
    "streams group's target": (StreamsGroupModel._is_ready, StreamsGroupModel, 5),
    "share group": (ShareGroupModel.is_settled, ShareGroupModel, 5),
}
"""The functions of the fast paths; where each is looked up, by a type of requests or in its own class; and
how many conditions it has."""


class _Dropping(ast.NodeTransformer):
    """Drops one condition of a function, by its number in the order of the text, and keeps its text."""

    def __init__(self, number: int) -> None:
        self._numbers = itertools.count()
        self._number = number
        self.dropped: str | None = None

    def _drops(self, node: ast.expr) -> bool:
        drops = next(self._numbers) == self._number
        if drops:
            self.dropped = ast.unparse(node)
        return drops

    def _operand(self, node: ast.expr, neutral: bool) -> ast.expr:
        is_part = neutral and isinstance(node, ast.BoolOp)  # an `or` among those of `and` is one condition
        operand: ast.expr = node if is_part else self.visit(node)
        if (isinstance(operand, ast.BoolOp) and not is_part) or not self._drops(operand):
            return operand
        operation: ast.boolop = ast.Or() if neutral else ast.And()
        return ast.BoolOp(operation, [operand, ast.Constant(neutral)])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.expr:
        node.values = [self._operand(value, isinstance(node.op, ast.And)) for value in node.values]
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        if len(node.ops) < 2:
            return node
        terms = [node.left, *node.comparators]
        pairs = zip(terms, node.ops, terms[1:], strict=False)
        links: list[ast.expr] = [ast.Compare(left, [operation], [right]) for left, operation, right in pairs]
        return self.visit_BoolOp(ast.BoolOp(ast.And(), links))

    def visit_If(self, node: ast.If) -> ast.If:
        node.test = self._operand(node.test, neutral=False)
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        if ast.unparse(node.targets[0]) == "marks" and isinstance(node.value, ast.Tuple):
            node.value.elts = [element for element in node.value.elts if not self._drops(element)]
        return node


def _without_each_condition(function: Any) -> Iterator[tuple[str, Any]]:
    """Each condition's text, and the function without it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    for number in itertools.count():
        dropping = _Dropping(number)
        changed = ast.fix_missing_locations(dropping.visit(copy.deepcopy(tree)))
        if dropping.dropped is None:
            return
        made: dict[str, Any] = {}
        exec(compile(changed, "changed", "exec", dont_inherit=True), function.__globals__, made)
        yield dropping.dropped, made[function.__name__]


@cache
def _histories() -> list[RecordedHistory]:
    return list(archived("rules"))


@pytest.mark.slow
@pytest.mark.parametrize("path", _PATHS)
def test_every_condition_is_needed(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    function, place, expected = _PATHS[path]
    missed = []
    count = 0
    for text, changed in _without_each_condition(function):
        count += 1
        with monkeypatch.context() as patch:
            if place in STEADY:
                patch.setitem(STEADY, place, dict.fromkeys(STEADY[place], changed))
            else:
                patch.setattr(place, function.__name__, changed)
            if not any(differing(_histories())):
                missed.append(text)
    assert missed == []
    assert count == expected
