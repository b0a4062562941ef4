"""Levels of features raised and lowered: unknown features, odd levels and types, duplicates, deletion.

Rules: a case that changes a level restores it, as all cases share a broker. Whether a level has changed is
asked by an upgrade that is only validated: with a type of downgrade it is refused if the level is lower.
"""

from __future__ import annotations

from typing import Any

from tests.broker.corners.script import Step, ask, case, only_if

GROUP, TRANSACTION, METADATA = "group.version", "transaction.version", "metadata.version"
UPGRADE, SAFE, UNSAFE = 1, 2, 3

_Update = tuple[str, int, int]
"""A feature, its new level and the type of the upgrade."""


def _updated(*updates: _Update, version: int = 2, **more: Any) -> Step:
    return ask(
        "UpdateFeatures",
        version,
        timeout_ms=5000,
        feature_updates=[
            {"feature": name, "max_version_level": level, **only_if(version, upgrade_type=kind)}
            for name, level, kind in updates
        ],
        **more,
    )


def _validated(*updates: _Update, version: int = 2) -> Step:
    return _updated(*updates, version=version, validate_only=True)


for v in (0, 1, 2):
    case(f"features-none-v{v}", _updated(version=v))
    case(f"features-same-v{v}", _updated((TRANSACTION, 2, UPGRADE), (GROUP, 1, UPGRADE), version=v))
    case(f"features-unknown-v{v}", _updated(("no.such.feature", 1, UPGRADE), version=v))
    case(
        f"features-one-of-two-bad-v{v}",
        _updated((TRANSACTION, 2, UPGRADE), ("no.such.feature", 1, UPGRADE), version=v),
    )
for number, update in enumerate(
    [
        ("", 1, UPGRADE),
        ("no.such.feature", 0, UNSAFE),
        ("no.such.feature", -1, UPGRADE),
        ("no.such.feature", 1, 9),
        (GROUP, 1, SAFE),
        (GROUP, 1, UNSAFE),
        (GROUP, 1, 0),
        (GROUP, 1, 4),
        (GROUP, 1, -1),
        (GROUP, -1, UPGRADE),
        (GROUP, -1, SAFE),
        (GROUP, 2, UPGRADE),
        (GROUP, 2, SAFE),
        (GROUP, 0, UPGRADE),
        (TRANSACTION, 3, UPGRADE),
        (TRANSACTION, 32_767, UNSAFE),
        (TRANSACTION, 1, UPGRADE),
        (TRANSACTION, -32_768, UNSAFE),
    ]
):
    case(f"features-update-{number:02}", _validated(update), _validated(update, version=1))
case(
    "features-twice",
    _validated((GROUP, 1, UPGRADE), (GROUP, 2, UPGRADE)),
    _validated((GROUP, 2, UPGRADE), (GROUP, 1, UPGRADE)),
    _validated((GROUP, 1, UPGRADE), (GROUP, 1, UPGRADE), version=1),
)
case(
    "features-downgrade-v0",
    _updated((TRANSACTION, 1, UPGRADE), version=0),
    ask(
        "UpdateFeatures",
        0,
        feature_updates=[{"feature": TRANSACTION, "max_version_level": 1, "allow_downgrade": True}],
    ),
    _validated((TRANSACTION, 2, SAFE)),
    _updated((TRANSACTION, 2, UPGRADE)),
)
for kind, label in ((SAFE, "safe"), (UNSAFE, "unsafe")):
    case(
        f"features-downgrade-{label}",
        _validated((TRANSACTION, 1, kind)),
        _validated((TRANSACTION, 2, kind)),
        _updated((TRANSACTION, 1, kind)),
        _validated((TRANSACTION, 2, kind)),
        _updated((TRANSACTION, 2, UPGRADE)),
    )
case(
    "features-delete",
    _updated((TRANSACTION, 0, UPGRADE)),
    _updated((TRANSACTION, 0, SAFE)),
    _updated((TRANSACTION, 0, SAFE)),
    _validated((TRANSACTION, 1, UNSAFE)),
    _updated((TRANSACTION, 2, UPGRADE)),
)
case(
    "features-nothing-of-a-refused-request",
    _updated((TRANSACTION, 1, SAFE), (GROUP, 7, UPGRADE)),
    _updated((TRANSACTION, 1, SAFE), ("no.such.feature", 1, UPGRADE)),
    _validated((TRANSACTION, 2, SAFE)),
)
for number, (level, kind) in enumerate(
    [(29, UPGRADE), (29, SAFE), (29, UNSAFE), (7, SAFE), (7, UNSAFE), (0, UNSAFE), (6, SAFE), (100, UPGRADE),
     (-1, UPGRADE), (29, 9)]
):  # fmt: skip
    case(f"features-metadata-{number}", _validated((METADATA, level, kind)))
for name, level in (
    ("eligible.leader.replicas.version", 0),
    ("eligible.leader.replicas.version", 1),
    ("eligible.leader.replicas.version", 2),
    ("kraft.version", 2),
    ("share.version", 1),
    ("share.version", 2),
    ("share.version", 3),
):
    case(f"features-{name}-{level}", _validated((name, level, UPGRADE)))
