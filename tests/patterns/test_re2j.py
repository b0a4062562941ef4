"""Random patterns: acceptance, description and matches are RE2/J's, which Kafka uses."""

from __future__ import annotations

import base64
import random
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from coordwire.patterns import InvalidPattern, RegularExpression
from tests.interop.conftest import give_up
from tests.interop.maven import COMPLETE, Unavailable, jars
from tests.patterns.random_patterns import random_name, random_pattern

pytestmark = pytest.mark.maven

SOURCE = Path(__file__).parent / "java" / "Re2.java"
PATTERNS = 20_000


def re2j(questions: Sequence[Sequence[str]]) -> list[str]:
    java = shutil.which("java")
    if java is None:
        raise Unavailable("java isn't installed")
    classes = f"{jars(COMPLETE, 'coordinator')}/*"
    lines = [" ".join(base64.b64encode(text.encode()).decode() for text in texts) for texts in questions]
    run = subprocess.run(
        [java, "-XX:+UseSerialGC", "-Xss8m", "-cp", classes, str(SOURCE)],
        input="\n".join(lines) + "\n", capture_output=True, encoding="utf-8", timeout=300, check=True,
    )  # fmt: skip
    return run.stdout.splitlines()


def ours(texts: Sequence[str]) -> str:
    try:
        regular_expression, anywhere = RegularExpression(texts[0]), RegularExpression(texts[0], anywhere=True)
    except InvalidPattern as error:
        return f"E {error.description}"
    return "".join(f"{regular_expression.matches(name):d}{anywhere.matches(name):d}" for name in texts[1:])


def test_random_patterns_are_taken_and_match_as_re2j_says() -> None:
    rng = random.Random(26)
    questions = [
        [random_pattern(rng), *(random_name(rng) for _ in range(12))] for _ in range(PATTERNS)
    ]  # fmt: skip
    try:
        answers = re2j(questions)
    except Unavailable as error:
        give_up(error)
    assert len(answers) == len(questions)
    accepted = sum(answer[0] in "01" for answer in answers)
    assert PATTERNS // 4 < accepted < PATTERNS
    differences = [
        (texts, answer, ours(texts))
        for texts, answer in zip(questions, answers, strict=True)
        if ours(texts) != answer
    ]
    assert differences == []
