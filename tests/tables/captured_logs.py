"""Groups of one broker in a capture and in its logs (tests/data/captured_logs), unpacked into a folder."""

from __future__ import annotations

import lzma
from pathlib import Path

from tests.broker_sample import unpack

__all__ = ["CAPTURED_LOGS", "unpack_captured_logs"]

CAPTURED_LOGS = Path(__file__).parents[1] / "data" / "captured_logs"


def unpack_captured_logs(folder: Path) -> None:
    """Put groups.pcap and the folder data, with the logs, there."""
    folder.mkdir(parents=True, exist_ok=True)
    unpack(CAPTURED_LOGS / "logs.tar.xz", folder)
    (folder / "groups.pcap").write_bytes(lzma.decompress((CAPTURED_LOGS / "groups.pcap.xz").read_bytes()))
