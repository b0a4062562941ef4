"""`python -m tests.broker.corners record`: write the answers of a real Kafka broker again. `compare`: print
where this broker's differ from those that are kept. Names of cases, or parts of them, may follow."""

from __future__ import annotations

import argparse
import json
import sys

from tests.broker.corners.brokers import kafka, ours
from tests.broker.corners.cases import CASES
from tests.broker.corners.differences import differing
from tests.broker.corners.kept import kafkas_answers, keep, reasons
from tests.broker.corners.runner import answers


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.broker.corners", description=__doc__)
    parser.add_argument("command", choices=("record", "compare"))
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    cases = [
        case
        for case in CASES.values()
        if not arguments.names or any(part in case.name for part in arguments.names)
    ]
    known = kafkas_answers()
    if arguments.command == "record":
        with kafka() as address:
            result = {case.name: answers(case, address) for case in cases}
        changed = [name for name, outcomes in result.items() if known.get(name, outcomes) != outcomes]
        keep({name: result.get(name, known.get(name, [])) for name in CASES})
        print(f"{len(result)} cases recorded; changed: {', '.join(changed) or 'none'}")
        return 0
    differ = 0
    with ours() as address:
        for one in cases:
            mine = answers(one, address)
            places = list(differing(known[one.name], mine))
            if not places:
                continue
            differ += 1
            print(f"{one.name}: {reasons().get(one.name, 'no reason')}")
            for place, theirs, own in places:
                print(f"  {place}: kafka {json.dumps(theirs)}, here {json.dumps(own)}")
    print(f"{differ} of {len(cases)} cases differ")
    return 0


sys.exit(main())
