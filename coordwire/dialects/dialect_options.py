"""The options of dialects, for every command that reads frames."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from coordwire.dialects import Dialect, find_alternative

if TYPE_CHECKING:
    from coordwire.dialects import AlternativeDialect, ConnectionDialect


def configure_name(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the option of the name alone, in a group of its own, which comes last in the help where this is
    called last."""
    group = parser.add_argument_group("other protocols", "Kafka 0.7, the drafts of coordinators, ZooKeeper")
    group.add_argument(
        "--dialect",
        choices=[str(name) for name in Dialect],
        default="kafka",
        help="protocol dialect (default: kafka)",
    )
    return group


def configure(parser: argparse.ArgumentParser) -> None:
    """Add all of these options."""
    group = configure_name(parser)
    group.add_argument(
        "--type-id", type=_type_id, action="append", default=[], metavar="NAME=N",
        help="a request's type id in another dialect",
    )  # fmt: skip
    group.add_argument(
        "--auto-commit",
        choices=("on", "off"),
        help="how consumers registered with the drafts, if that was not captured",
    )


def dialect_of(options: argparse.Namespace) -> ConnectionDialect | None:
    """The dialect that the options name, None for Kafka's protocol. Raises `ValueError` for type ids that are
    invalid."""
    if options.dialect == "kafka" and not options.type_id and options.auto_commit is None:
        return None
    from coordwire.dialects import find_dialect

    return find_dialect(
        options.dialect,
        type_ids=dict(options.type_id) or None,
        auto_commit=None if options.auto_commit is None else options.auto_commit == "on",
    )


def alternative_of(options: argparse.Namespace) -> AlternativeDialect | None:
    """The dialect that connections of a capture may speak beside Kafka's protocol, by their content; None
    where another is named."""
    return find_alternative(options.dialect)


def _type_id(text: str) -> tuple[str, int]:
    name, _, number = text.partition("=")
    try:
        return name, int(number)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected NAME=NUMBER, got {text!r}") from None
