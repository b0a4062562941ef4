"""The archive of vectors, judged anew: Kafka's classes say what they said, byte for byte."""

from __future__ import annotations

import json

import pytest

from conformance.archive import DATA, built, manifest
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

pytestmark = pytest.mark.maven


def test_the_archive_is_what_kafka_says_today() -> None:
    try:
        files = built()
    except Unavailable as error:
        give_up(error)
    assert manifest(files) == json.loads((DATA / "manifest.json").read_text())
