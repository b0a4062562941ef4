"""Puts the site of a release beside those of earlier ones.

    python packaging/site_versions.py SITE PUBLISHED VERSION

Strategy: PUBLISHED, a checkout of what is published, has a folder for each version; its `index.html` leads to
the newest release, and `versions.html` lists all, the newest first. Rules: a version is published once: one
that is there is refused, and nothing is removed.
"""

from __future__ import annotations

import html
import re
import shutil
import sys
from pathlib import Path

VERSION = re.compile(r"(\d+(?:\.\d+)*)(?:(a|b|rc)(\d+))?")
TO_NEWEST = """<!doctype html>
<meta charset="utf-8">
<title>coordwire</title>
<meta http-equiv="refresh" content="0; url={version}/">
<a href="{version}/">coordwire {version}</a> · <a href="versions.html">all versions</a>
"""
LIST = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>coordwire: versions</title>
<h1>Versions of coordwire</h1>
<ul>
{rows}
</ul>
"""

Order = tuple[tuple[int, ...], str, int]


def order(version: str) -> Order | None:
    """What versions are sorted by; None for a name that isn't one. A final release follows its candidates."""
    match = VERSION.fullmatch(version)
    if match is None:
        return None
    numbers, stage, number = match.groups()
    return tuple(map(int, numbers.split("."))), stage or "~", int(number or 0)


def publish(site: Path, published: Path, version: str) -> None:
    """Copy a site to its place and list it. Raises `ValueError` where that must not be."""
    if order(version) is None:
        raise ValueError(f"{version!r} is no version")
    if not (site / "index.html").is_file():
        raise ValueError(f"{site} has no index.html")
    if (published / version).exists():
        raise ValueError(f"{version} is published already")
    shutil.copytree(site, published / version)
    known = [path.name for path in published.iterdir() if path.is_dir() and order(path.name)]
    newest_first = sorted(known, key=lambda name: order(name) or ((), "", 0), reverse=True)
    finals = [name for name in newest_first if name.replace(".", "").isdecimal()]
    (published / "index.html").write_text(TO_NEWEST.format(version=(finals or newest_first)[0]), "utf-8")
    rows = "\n".join(f'<li><a href="{name}/">{html.escape(name)}</a></li>' for name in newest_first)
    (published / "versions.html").write_text(LIST.format(rows=rows), "utf-8")


if __name__ == "__main__":
    try:
        publish(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    except ValueError as error:
        sys.exit(str(error))
