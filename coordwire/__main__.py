"""`python -m coordwire`: the command line."""

import sys

from coordwire.cli.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
