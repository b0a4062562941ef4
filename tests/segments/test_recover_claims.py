"""`recover` among headers that claim more bytes than their batch has."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from crc32c import crc32c
from hypothesis import given
from hypothesis import strategies as st

from coordwire.records import Record, encode_batch

from .build import batch, log, write
from .recovering import PARTS, manifest, offsets, saved


def claim(offset: int, length: int, *, magic: int = 2, cut: int = 61) -> bytes:
    """A header with a wrong checksum and such a length."""
    if magic < 2:
        return struct.pack(">qiIbBq", offset, length, 1, magic, 0, 5)[:cut]
    head = struct.pack(">qiibIhiqqqhii", offset, length, 0, 2, 1, 0, 0, 0, 0, -1, -1, -1, 1)
    return head[:cut]


SMALL = log(60, records=1, size=5)
STEP = len(SMALL[0])


@pytest.mark.parametrize("magic", [0, 1, 2])
@pytest.mark.parametrize("cut", [30, 61])
@pytest.mark.parametrize(
    "length",
    [
        lambda n: 100,
        lambda n: 1_000_000,
        lambda n: (60 - n) * STEP // 2,
        lambda n: 3 * STEP,
        lambda n: 1 << 30,
    ],
)
def test_whatever_headers_claim(tmp_path: Path, magic: int, cut: int, length: Callable[[int], int]) -> None:
    parts = [claim(n, length(n), magic=magic, cut=cut) + each for n, each in enumerate(SMALL)]
    (one,) = saved([write(tmp_path, b"".join(parts))], tmp_path / "out")
    assert one.batches == 60


@pytest.mark.parametrize("inside", [1, 20, 59])
@pytest.mark.parametrize("to_the_end", [False, True])
def test_a_claim_that_another_batch_confirms(tmp_path: Path, inside: int, to_the_end: bool) -> None:
    """Up to where a sound one begins, or to the very end."""
    end = len(SMALL) if to_the_end else inside + 1
    size = sum(map(len, SMALL[1:end]))
    data = SMALL[0] + claim(1, 61 - 12 + size) + b"".join(SMALL[1:])
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert (one.batches, one.bad_bytes) == (60, 61)


def test_batches_in_the_value_of_a_bad_one(tmp_path: Path) -> None:
    """They are kept where they fit, and take no other's place, however many there are."""
    forged = b"".join(batch(1000 + n, 1, 0) for n in range(50))
    fitting = batch(4, 1, 0)
    for value, more in ((forged, 0), (fitting, 1), (forged + fitting, 1)):
        outer = bytearray(encode_batch([Record(3, value=value)], base_offset=3, partition_leader_epoch=0))
        outer[-1] ^= 1  # its header count
        path = write(tmp_path, batch(0) + outer + batch(6) + batch(9))
        (one,) = saved([path], tmp_path / str(len(value)))
        assert one.batches == 3 + more


@pytest.mark.parametrize("to_the_end", [False, True])
@pytest.mark.parametrize(("more", "kept"), [(0, [0, 1, 2]), (1, [0, 1, 2]), (2, [0, 1, 3, 4])])
def test_a_wrong_offset_before_a_claim_costs_one_batch(
    tmp_path: Path, to_the_end: bool, more: int, kept: list[int]
) -> None:
    """What is found inside the claim doesn't fit after it: two batches say more than one."""
    made = [batch(0), batch(3), batch(90), *(batch(12 + 3 * n) for n in range(more))]
    last = b"" if to_the_end else batch(93)
    inner = b"".join(made[3:])
    length = (1 << 20) if to_the_end else 61 - 12 + len(inner)
    data = b"".join(made[:3]) + claim(99, length) + inner + last
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made[n] for n in kept) + last


@pytest.mark.parametrize("to_the_end", [False, True])
def test_what_joins_the_line_is_not_given_up_for_what_is_inside_a_claim(
    tmp_path: Path, to_the_end: bool
) -> None:
    """However many there are: the value of a damaged batch may hold anything."""
    made = [batch(0), batch(3), batch(6)]
    last = b"" if to_the_end else batch(60)
    inner = b"".join(batch(4 + n, 1) for n in range(4))
    length = (1 << 20) if to_the_end else 61 - 12 + len(inner)
    data = b"".join(made) + claim(9, length) + inner + last
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made) + last


@pytest.mark.parametrize(("gap", "kept"), [(0, [0, 1]), (1, [0, 2, 3])])
def test_a_gap_of_one_offset_is_a_gap(tmp_path: Path, gap: int, kept: list[int]) -> None:
    made = [batch(0), batch(3 + gap, 9), batch(3, 1), batch(4, 1)]
    data = b"".join(made[:2]) + claim(99, 1 << 20) + b"".join(made[2:])
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made[n] for n in kept)


def test_one_batch_twice_does_not_make_an_offset_wrong(tmp_path: Path) -> None:
    made = [batch(0), batch(90), batch(3, partition_leader_epoch=-1)]
    data = b"".join(made[:2]) + claim(99, 1 << 20) + made[2] + batch(3)
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == made[0] + made[1]


def test_what_joins_what_was_inside_a_claim_is_kept(tmp_path: Path) -> None:
    """The next claim is judged by all that is kept before it."""
    made = [batch(0), batch(3), batch(6)]
    data = made[0] + claim(2, 49 + len(made[1])) + made[1] + made[2] + claim(9, 1 << 20)
    (one,) = saved([write(tmp_path, data + batch(3, 1) + batch(4, 1))], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made)


def test_the_reason_is_that_of_the_line_that_is_kept(tmp_path: Path) -> None:
    """Not that of the one without its last batch."""
    made = [batch(0, partition_leader_epoch=1), batch(90, partition_leader_epoch=1)]
    data = b"".join(made) + claim(99, 1 << 20) + batch(12) * 2
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join(made)
    assert [line["reason"] for line in manifest(one)][1:] == ["offsets 12 to 14 are out of order"] * 2


def test_epochs_of_what_replaces_a_wrong_offset(tmp_path: Path) -> None:
    """They are compared with those before the batch that is given up."""
    made = [batch(3 * n, partition_leader_epoch=epoch) for n, epoch in enumerate([2, 2])]
    wrong = batch(90, partition_leader_epoch=7)
    inner = [batch(9 + 3 * n, partition_leader_epoch=epoch) for n, epoch in enumerate([2, 1, 3])]
    data = b"".join(made) + wrong + claim(99, 1 << 20) + b"".join(inner)
    (one,) = saved([write(tmp_path, data)], tmp_path / "out")
    assert one.log.read_bytes() == b"".join([*made, inner[0], inner[2]])
    assert [line["reason"] for line in manifest(one)][-1].endswith("have leader epoch 1, out of order")


def test_a_right_checksum_speaks_for_all_that_it_covers(tmp_path: Path) -> None:
    outer = bytearray(encode_batch([Record(3, value=batch(4, 1, 0))], base_offset=3))
    outer[60] = 9  # records, of which there is one
    outer[17:21] = crc32c(outer[21:]).to_bytes(4)
    (one,) = saved([write(tmp_path, batch(0) + outer + batch(6))], tmp_path / "out")
    assert (one.batches, one.ranges, one.bad_bytes) == (2, 1, len(outer))


@given(st.data())
def test_any_damage_leaves_a_sound_copy(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """And no sound batch is lost whose offsets fit, whatever is written between batches."""
    junk = st.one_of(
        st.builds(
            claim, st.integers(0, 99), st.integers(0, 3000), magic=st.integers(0, 2), cut=st.integers(17, 61)
        ),
        st.binary(max_size=40),
        st.integers(0, 200).map(bytes),
    )  # fmt: skip
    between = data.draw(st.lists(junk, max_size=13))
    parts = [each for n, part in enumerate(PARTS) for each in (b"".join(between[n : n + 1]), part)]
    folder = tmp_path_factory.mktemp("between")
    (one,) = saved([write(folder, b"".join(parts))], folder / "out")
    assert set(offsets(one.log)) == set(range(12))
