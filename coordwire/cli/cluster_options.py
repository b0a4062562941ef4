"""The options of commands that connect to a cluster: where it is, and who the command is.

Rule: secrets come from files and the environment, never from the command line.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from coordwire.cli import Failure

if TYPE_CHECKING:
    from coordwire.client import ClientSettings

PASSWORD = "COORDWIRE_PASSWORD"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to",
        required=True,
        metavar="HOST:PORT[,…]",
        help="brokers of the cluster; the others come from its answers",
    )
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="client.properties for the cluster: TLS, and SASL if the tap is to authenticate",
    )
    parser.add_argument(
        "--user",
        metavar="NAME",
        help=f"authenticate as this user, with the password of the environment's {PASSWORD}",
    )
    parser.add_argument(
        "--mechanism",
        choices=("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"),
        default="SCRAM-SHA-512",
        help="of --user (default: SCRAM-SHA-512)",
    )
    parser.add_argument(
        "--max-iterations",
        type=int,
        default=16_384,
        metavar="N",
        help="of SCRAM that a broker may ask --user for (default: 16384, the most that Kafka stores)",
    )


def seconds(text: str) -> float:
    """The value of an option that is a length of time."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"expected seconds above 0, got {text!r}")
    return value


def settings(options: argparse.Namespace) -> ClientSettings:
    """The settings that the options describe. Raises `SettingsError`, `Failure`."""
    from coordwire.client import ClientSettings, Plain, Scram, addresses, read_properties, settings_of

    if options.config is None:
        known = ClientSettings(bootstrap=addresses(options.to))
    else:
        known = settings_of(read_properties(options.config), bootstrap=options.to)
    if options.user is None:
        return known
    password = os.environ.get(PASSWORD)
    if password is None:
        raise Failure(f"{options.command}: --user: expected the password in the environment's {PASSWORD}")
    if options.mechanism == "PLAIN":
        return replace(known, sasl=Plain(options.user, password))
    scram = Scram(options.user, password, options.mechanism, max_iterations=options.max_iterations)
    return replace(known, sasl=scram)
