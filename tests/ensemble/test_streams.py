"""Streams that are seeded together are those that numpy seeds one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hpcfit.ensemble.streams import generators, seed_words
from hpcfit.records import InputError

# Numbers of one to seven words of 32 bits, with the edges between them.
EDGES = [2**bits + step for bits in (32, 64, 96, 128, 160) for step in (-1, 0, 1)]
NUMBERS = st.one_of(st.integers(0, 100), st.integers(0, 2**200), st.sampled_from(EDGES))
KEYS = st.lists(st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=12)


def sequence(seed: int, key: tuple[int, ...]) -> np.random.SeedSequence:
    return np.random.SeedSequence(seed, spawn_key=key)


@given(NUMBERS, KEYS)
@example(0, [(0, 0)])
@example(2**128, [(2**32, 1), (1, 2**32), (2**32 - 1, 0), (2**64, 2**64)])
@settings(max_examples=200, deadline=None)
def test_seeds_are_those_of_numpy(seed: int, keys: list[tuple[int, int]]) -> None:
    words = seed_words(seed, *zip(*keys, strict=True))
    expected = [sequence(seed, key).generate_state(4, np.uint64) for key in keys]
    np.testing.assert_array_equal(words, np.array(expected))


@given(NUMBERS, KEYS)
@settings(max_examples=50, deadline=None)
def test_generators_are_those_of_numpy(seed: int, keys: list[tuple[int, int]]) -> None:
    for rng, key in zip(generators(seed, *zip(*keys, strict=True)), keys, strict=True):
        expected = np.random.default_rng(sequence(seed, key))
        assert rng.bit_generator.state == expected.bit_generator.state
        np.testing.assert_array_equal(rng.standard_normal(20), expected.standard_normal(20))


@given(NUMBERS, st.lists(NUMBERS, min_size=1, max_size=5))
@settings(max_examples=50, deadline=None)
def test_a_key_may_have_any_length(seed: int, key: list[int]) -> None:
    words = seed_words(seed, *([number] for number in key))
    np.testing.assert_array_equal(words[0], sequence(seed, tuple(key)).generate_state(4, np.uint64))


def test_thousands_of_members_in_one_call() -> None:
    members, quantities = np.divmod(np.arange(6000), 3)
    words = seed_words(2024, members, quantities)
    expected = [
        sequence(2024, (int(m), int(q))).generate_state(4, np.uint64)
        for m, q in zip(members, quantities, strict=True)
    ]
    np.testing.assert_array_equal(words, np.array(expected))


def test_negative_numbers_are_refused() -> None:
    with pytest.raises(InputError, match="holds -3"):
        seed_words(1, [0, -3], [1, 1])
    with pytest.raises(ValueError, match="non-negative"):
        seed_words(-1, [0], [1])
