"""A file of handlers opens with the API keys and the versions that it answers."""

from __future__ import annotations

import sys
from collections import defaultdict

from coordwire.broker.handlers import APIS
from coordwire.versions import api_name


def test_the_heads_are_those_of_the_table() -> None:
    lists: dict[str, list[str]] = defaultdict(list)
    for key, api in sorted(APIS.items()):
        last = f"-{api.last}" if api.last > api.first else ""
        lists[api.handler.__module__].append(f"{api_name(key)} {int(key)} v{api.first}{last}")
    del lists["coordwire.broker.handlers"]  # of the table itself
    assert len(lists) > 10
    for module, apis in lists.items():
        text = " ".join((sys.modules[module].__doc__ or "").split())
        assert f"API keys and versions: {', '.join(apis)}." in text, module
