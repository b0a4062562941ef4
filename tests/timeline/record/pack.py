"""`python -m tests.timeline.record.pack FOLDER OUT`: what was recorded becomes tests/data/stories.

NAME.pcap.xz, and NAME.json: what was done to whom, what the clients said that they have, and the log's facts
of each group that has members in the recording; what comes after the recording's end is left out.
"""

from __future__ import annotations

import json
import lzma
import re
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.timeline.record.judge import facts

__all__ = ["pack"]

_NAMED = re.compile(r"for partition ([\w-]{22})-(.+)-\d+ from member")


def pack(folder: Path, out: Path) -> None:
    for log in sorted(folder.glob("*.log")):
        pcap = log.with_suffix(".pcap")
        if not pcap.exists():
            continue
        did: dict[str, Any] = json.loads(log.with_suffix(".did.json").read_text())
        lines = log.read_text().splitlines()
        # A topic that was made anew, or by the broker itself, has its name where its offsets are committed.
        named = filter(None, map(_NAMED.search, lines))
        groups = facts(lines, {**{found[1]: found[2] for found in named}, **did["topics"]})
        end = round(datetime.fromisoformat(did["did"][-1]["time"]).timestamp() * 1000)
        groups = {name: _until(group, end) for name, group in groups.items() if group["joined"]}
        (out / f"{log.stem}.pcap.xz").write_bytes(
            lzma.compress(pcap.read_bytes(), preset=9 | lzma.PRESET_EXTREME)
        )
        parts = [f' "{key}": {_rows(did[key], 2)}' for key in ("did", "assigned")]
        parts.append(' "groups": {\n' + ",\n".join(_group(*one) for one in groups.items()) + "\n }")
        (out / f"{log.stem}.json").write_text("{\n" + ",\n".join(parts) + "\n}\n")


def _until(group: dict[str, Any], end: int) -> dict[str, Any]:
    """What is of the recording; the log goes on for a moment."""
    late = [departure for departure in group["left"] if departure["time"] > end + 1000]
    for one in late:
        group["left"].remove(one)
        group["members"] = sorted([*group["members"], one["member"]])
    group["generations"] = [one for one in group["generations"] if one["began"] <= end + 1000]
    return group


def _group(name: str, group: dict[str, Any]) -> str:
    parts = [f'   "{key}": {_rows(value, 4)}' for key, value in group.items()]
    return f'  "{name}": {{\n' + ",\n".join(parts) + "\n  }"


def _rows(value: Any, indent: int) -> str:
    """JSON with one row a line."""
    if not isinstance(value, list) or not value or isinstance(value[0], str):
        return json.dumps(value)
    space = "\n" + " " * indent
    return "[" + space + ("," + space).join(map(json.dumps, value)) + "]"


if __name__ == "__main__":
    pack(Path(sys.argv[1]), Path(sys.argv[2]))
