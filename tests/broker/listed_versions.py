"""What real brokers list in ApiVersions, release by release: APIs with their versions, features with levels.

`python -m tests.broker.listed_versions` asks a broker of each release again and writes tests/data/releases.
Rules: the brokers are as this project's, with static voters and without eligible leader replicas.
"""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from coordwire.messages import ApiVersionsRequest
from tests.interop.broker import Broker, Java, ask

RELEASES = ("4.0.0", "4.1.0", "4.2.0", "4.3.0", "4.3.1", "4.4.0")
_FOLDER = Path(__file__).parents[1] / "data" / "releases"
_FEATURES = {"eligible.leader.replicas.version": 0}
_CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"
_VERSION = 4


class Listed(NamedTuple):
    """By API key and by name of a feature the first and the last; finalized: levels."""

    apis: dict[int, tuple[int, int]]
    supported: dict[str, tuple[int, int]]
    finalized: dict[str, int]


def listed(response: Any) -> Listed:
    """What an answer to ApiVersions lists, in order."""
    return Listed(
        {api.api_key: (api.min_version, api.max_version) for api in response.api_keys},
        {one.name: (one.min_version, one.max_version) for one in response.supported_features},
        {one.name: one.max_version_level for one in response.finalized_features},
    )


def kept_lists(release: str) -> Listed:
    """What a broker of this release listed."""
    kept = json.loads((_FOLDER / f"kafka-{release}.json").read_text(encoding="utf-8"))
    return Listed(
        {int(key): tuple(versions) for key, versions in kept["apis"].items()},
        {name: tuple(levels) for name, levels in kept["supported"].items()},
        kept["finalized"],
    )


def asked(release: str) -> Listed:
    """What a real broker, begun for this, lists. Raises `Unavailable`."""
    request = ApiVersionsRequest(client_software_name="coordwire", client_software_version="1")
    with TemporaryDirectory() as place:
        folder = Path(place) / "logs"
        folder.mkdir()
        java = Java(release, "recording")
        with Broker(java, folder, voters=True, features=_FEATURES, cluster=_CLUSTER) as broker:
            return listed(ask(broker.port, request, version=_VERSION))


def main() -> None:
    _FOLDER.mkdir(exist_ok=True)
    for release in RELEASES:
        lists = {name: dict(sorted(found.items())) for name, found in asked(release)._asdict().items()}
        text = "{\n" + ",\n".join(f"{json.dumps(n)}: {json.dumps(one)}" for n, one in lists.items()) + "\n}\n"
        (_FOLDER / f"kafka-{release}.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
