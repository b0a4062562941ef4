"""`python -m tests.broker.authorized record`: write the answers of a real Kafka broker again. `compare`:
print where this broker's differ from them."""

from __future__ import annotations

import argparse

from tests.broker.authorized.brokers import kafka, ours
from tests.broker.authorized.kept import keep, kept
from tests.broker.authorized.run import answers
from tests.broker.corners.differences import differing


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.broker.authorized", description=__doc__)
    parser.add_argument("command", choices=("record", "compare"))
    if parser.parse_args().command == "record":
        with kafka() as address:
            keep(answers(address))
        return
    with ours() as address:
        own = answers(address)
    for name, outcomes in kept().items():
        for kafkas, mine in zip(outcomes, own[name], strict=True):
            for place, theirs, here in differing(kafkas, mine):
                print(f"{name}: {kafkas[0]} v{kafkas[1]}{place}: Kafka {theirs}, this broker {here}")


if __name__ == "__main__":
    main()
