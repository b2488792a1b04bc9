"""Checksums of rows: those of parts add up, and no changed bit escapes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hpcfit.files.checksums import added, checksums
from hpcfit.files.joining import Seats


def rows(count: int, seed: int = 1) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "estimates": rng.standard_normal((count, 3)),
        "iterations": rng.integers(0, 50, count),
        "outcomes": rng.integers(0, 11, count).astype(np.int8),
    }


@given(st.integers(0, 30), st.integers(0, 30))
def test_parts_in_any_order_add_up(first: int, second: int) -> None:
    whole, places = rows(first + second), np.arange(100, 100 + first + second)
    parts = [
        checksums(places[part], {name: values[part] for name, values in whole.items()})
        for part in (slice(first, None), slice(0, first))
    ]
    assert added(*parts) == checksums(places, whole)


@given(st.integers(0, 19), st.integers(0, 2), st.integers(0, 63))
def test_a_changed_bit_is_found(row: int, column: int, bit: int) -> None:
    good = rows(20)
    bad = {name: values.copy() for name, values in good.items()}
    bad["estimates"].view(np.uint64)[row, column] ^= np.uint64(1 << bit)
    found, other = (checksums(np.arange(20), each) for each in (good, bad))
    assert found["estimates"] != other["estimates"]
    assert found["iterations"] == other["iterations"]


@given(st.permutations(range(6)))
def test_rows_in_wrong_places_are_found(order: list[int]) -> None:
    good = rows(6)
    mixed = {name: values[order] for name, values in good.items()}
    same = checksums(np.arange(6), good)["estimates"] == checksums(np.arange(6), mixed)["estimates"]
    assert same == (order == list(range(6)))
    assert checksums(np.array(order), mixed) == checksums(np.arange(6), good)


@given(st.lists(st.integers(1, 5), min_size=1, max_size=6))
def test_seats_are_the_places_in_their_order(sizes: list[int]) -> None:
    """Intervals with gaps between them."""
    intervals, at = [], 3
    for size in sizes:
        intervals.append((at, at + size))
        at += size + 2
    places = np.concatenate([np.arange(*interval) for interval in intervals])
    seats = Seats(intervals)
    assert len(seats) == len(places)
    np.testing.assert_array_equal(seats.of(places), np.arange(len(places)))
    np.testing.assert_array_equal(seats.places(0, len(places)), places)
    np.testing.assert_array_equal(seats.places(1, len(places) - 1), places[1:])
