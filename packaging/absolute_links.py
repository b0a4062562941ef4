"""Makes the links of README.md absolute, for the page of the package index, which has no files beside it:
`python packaging/absolute_links.py`, in a checkout that is about to be built for a release.
"""

from __future__ import annotations

import re
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
FILES = "https://github.com/coordwire/coordwire/blob/main/"


def absolute(text: str) -> str:
    """The text with each link to a file of the project as one to the forge."""
    return re.sub(r"\]\((?![a-z]+:|#)", f"]({FILES}", text)


if __name__ == "__main__":
    README.write_text(absolute(README.read_text("utf-8")), "utf-8")
