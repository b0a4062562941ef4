"""The options of the older dialects, for every command that reads frames."""

from __future__ import annotations

import argparse
from typing import Any

from coordwire.designs.dialects.grammar import Dialect


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--dialect",
        choices=[str(name) for name in Dialect],
        default="kafka",
        help="protocol dialect (default: kafka)",
    )
    parser.add_argument(
        "--type-id", type=_type_id, action="append", default=[], metavar="NAME=N",
        help="a request's type id in another dialect",
    )  # fmt: skip
    parser.add_argument(
        "--auto-commit",
        choices=("on", "off"),
        help="how consumers of the drafts registered, if that was not captured",
    )


def capture_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options, as arguments of a `Capture`."""
    return {
        "dialect": options.dialect,
        "type_ids": dict(options.type_id) or None,
        "auto_commit": None if options.auto_commit is None else options.auto_commit == "on",
    }


def _type_id(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    try:
        return name, int(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, got {text!r}") from None
