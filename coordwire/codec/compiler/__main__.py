"""Print the Python that encodes or decodes a message: `python -m coordwire.codec.compiler NAME VERSION`.

Rule: a command is on top of everything, wherever it is, and nothing imports it: its import of the messages,
which are above the codec, is the only exception from the layers in pyproject.toml.
"""

from __future__ import annotations

import argparse
import sys

from coordwire.codec.compiler import module_text
from coordwire.messages import find_message


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m coordwire.codec.compiler",
        description="Print the Python code that decodes and encodes a message in one version.",
    )
    parser.add_argument("name", help="a message, such as JoinGroupRequest")
    parser.add_argument("version", type=int, help="one of its versions, such as 9")
    parser.add_argument("direction", nargs="?", choices=("decode", "encode"), help="one of the two only")
    options = parser.parse_args(arguments)
    try:
        cls = find_message(options.name)
    except KeyError as error:
        parser.error(error.args[0])
    if options.version not in cls.versions:
        parser.error(f"{options.name} has versions {cls.versions[0]} to {cls.versions[-1]}")
    for direction in ("decode", "encode"):
        if options.direction in (None, direction):
            print(f"# {cls.__name__}.{direction}(version={options.version})")
            print(module_text(cls, options.version, direction))
    return 0


if __name__ == "__main__":
    sys.exit(main())
