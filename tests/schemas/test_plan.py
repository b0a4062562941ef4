"""The generator's least sizes and costs are the field tables', by which budgets are charged."""

from __future__ import annotations

from importlib import import_module

import pytest

from coordwire.layout import Struct
from schemas._generate.plan import plan
from schemas._generate.walk import ModuleRow, StructRow, modules


def versions_of(module: ModuleRow) -> range:
    """All versions in which a struct of this module may be on the wire."""
    ranges = [row.message.versions for row in module.messages if row.message]
    return range(min(r[0] for r in ranges), max(r[-1] for r in ranges) + 1)


def check(cls: type[Struct], row: StructRow, version: int) -> None:
    shape, planned = cls._layout_.at(version), plan(row, version)
    assert (planned.least, planned.cost, planned.flexible) == (shape.least, shape.cost, shape.flexible)
    assert [node.row.name for node in planned.inline] == [field.name for field in shape.inline]
    assert [node.row.tag for node in planned.tagged] == sorted(shape.tagged)
    assert [row.name for row in planned.absent] == [field.name for field in shape.absent]
    for node, field in zip(planned.inline, shape.inline, strict=True):
        assert node.least == shape.least_of(field)
        if field.array:
            assert node.element_least == shape.element_least(field)
            assert node.element_cost == shape.element_cost(field)


@pytest.mark.parametrize("module", modules(), ids=lambda module: module.name)
def test_least_sizes_and_costs_agree(module: ModuleRow) -> None:
    generated = import_module(f"coordwire.messages.{module.name}")
    for row in module.structs:
        for version in versions_of(module):
            check(getattr(generated, row.name), row, version)
