"""The benchmark's programs in Rust and Go: built, and timed on each message; they prove their bytes first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.cases import cases
from tests.bench.native.__main__ import measure
from tests.bench.native.peers import GO, RUST, NativePeer, built
from tests.interop.conftest import give_up
from tests.interop.maven import Unavailable

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("peer", [RUST, GO])
def test_each_message_is_timed(peer: str, tmp_path: Path) -> None:
    try:
        program = built(peer)
    except Unavailable as error:
        give_up(error)
    for number, case in enumerate(cases()):
        (tmp_path / str(number)).write_bytes(case.wire)
    with NativePeer(program, tmp_path) as native:
        for number in range(len(cases())):
            for work in ("decode", "encode"):
                (spent,) = measure({peer: native.seconds(number, work)}, 1)[peer]
                assert 1e-9 < spent < 1e-2
