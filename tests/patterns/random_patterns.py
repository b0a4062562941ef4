"""Random patterns, valid and not, of all that RE2's syntax has; by seed."""

from __future__ import annotations

import random

_ATOMS = [
    *("a", "b", "c", "Z", "k", "s", "0", "_", "-", ".", "é", "ß", "K", "ſ", "Σ", "日", "}", "]", " ", "\n"),
    *(r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", r"\pL", r"\PL", r"\p{Lu}", r"\p{^Ll}", r"\p{Greek}", r"\pN"),
    *(r"\A", r"\z", r"\b", r"\B", "^", "$", r"\.", r"\\", r"\x41", r"\x{3a3}", r"\101", r"\Qa.b\E", r"\n"),
    *(
        "[abc]",
        "[^abc]",
        "[a-f0-9]",
        "[^a-f]",
        "[[:alpha:]_]",
        "[^[:^digit:]]",
        r"[\dx]",
        r"[^\W]",
        r"[\pL-]",
    ),
    *(
        "[]a]",
        "[^]]",
        "[a-]",
        "[k-s]",
        r"[\x00-\x{10FFFF}]",
        r"[^\D\d]",
        "()",
        "(?:)",
        "(?i)",
        "(?-i)",
        "(?s)",
    ),
]
_WRONG = [
    "(",
    ")",
    "[",
    "*",
    "{2}",
    "\\",
    "(?=a)",
    r"\1",
    "[b-a]",
    r"\p{Nope}",
    "(?P<a",
    "[[:nope:]]",
    "**",
    "(?z)",
]
_TIMES = ["*", "+", "?", "*?", "+?", "??", "{2}", "{0,2}", "{1,}", "{0}", "{,2}", "{3,1}", "{1001}", "{2"]
_GROUPS = ["(", "(?:", "(?i:", "(?m:", "(?s:", "(?-s:", "(?U:", "(?ims:"]


def random_pattern(rng: random.Random, depth: int = 0) -> str:
    pieces = []
    for _ in range(rng.choice((1, 1, 2, 3, 4))):
        kind = rng.random()
        if depth < 4 and kind < 0.25:
            content = "|".join(random_pattern(rng, depth + 1) for _ in range(rng.choice((1, 2, 3))))
            pieces.append(f"{rng.choice(_GROUPS)}{content})")
        elif kind < 0.985:
            pieces.append(rng.choice(_ATOMS))
        else:
            pieces.append(rng.choice(_WRONG))
        if rng.random() < 0.3:
            pieces.append(rng.choice(_TIMES))
    return "".join(pieces)


def random_name(rng: random.Random) -> str:
    return "".join(rng.choice("aabbckszAKSZ0_-.éßẞKſΣσς日\n") for _ in range(rng.randrange(7)))
