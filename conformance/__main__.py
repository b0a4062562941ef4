"""`python -m conformance --build DIR`: the archive, judged anew by Apache Kafka's classes.

`--unpack DIR` writes the kept one, which needs neither Java nor Maven; `--keep` puts a new one where it is
kept; `--histories KIND FILE` keeps the histories of a file that tests/coordinator wrote, judged anew. Exit
status: 1 if what was built is not what is kept, 2 if it can't be built.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from conformance.archive import DATA, built, keep, manifest, unpacked, with_histories, write
from conformance.histories import KINDS
from tests.interop.maven import Unavailable


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m conformance", description=(__doc__ or "").split("\n\n")[0]
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--build", type=Path, metavar="DIR", help="write the archive, judged anew")
    what.add_argument("--unpack", type=Path, metavar="DIR", help="write the archive that is kept")
    what.add_argument("--keep", action="store_true", help="judge anew, and keep it")
    what.add_argument(
        "--histories", nargs=2, metavar=("KIND", "FILE"), help=f"KIND is one of {', '.join(KINDS)}"
    )
    options = parser.parse_args(arguments)
    if options.histories and options.histories[0] not in KINDS:
        parser.error(f"expected one of {', '.join(KINDS)}, got {options.histories[0]}")
    try:
        if options.histories:
            keep(with_histories(options.histories[0], Path(options.histories[1])))
            return 0
        files = unpacked() if options.unpack else built()
        if options.keep:
            keep(files)
            return 0
        print(write(files, options.build or options.unpack))
    except (OSError, Unavailable) as error:
        print(error, file=sys.stderr)
        return 2
    same = json.loads((DATA / "manifest.json").read_text()) == manifest(files)
    if not same:
        print("the checksums are not those that are kept", file=sys.stderr)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
