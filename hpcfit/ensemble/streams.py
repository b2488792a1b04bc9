"""Many of numpy's random streams at once: the seeds of all of them are mixed together, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from operator import index
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from hpcfit.records import InputError

Words = NDArray[np.uint32]

# The constants of numpy's SeedSequence, after M. E. O'Neill, "Developing a seed_seq alternative" (2015).
POOL_SIZE = 4
INIT_A, MULT_A = 0x43B0D7E5, 0x931E8875
INIT_B, MULT_B = 0x8B51F9DD, 0x58F38DED
MIX_L, MIX_R = np.uint32(0xCA01F9DD), np.uint32(0x4973F715)
HALF, WORD = np.uint32(16), np.uint64(32)


def generators(seed: int, *keys: Sequence[int]) -> list[np.random.Generator]:
    """default_rng(SeedSequence(seed, spawn_key=(a[i], b[i], ...))) for all i of the keys a, b, ... (n,).

    The mixing of SeedSequence is repeated here: NEP 19 promises that its words, and the bits of PCG64, stay
    the same in every version of numpy. The seeding of PCG64 and all distributions are numpy's own.
    """
    return [_generator(words) for words in seed_words(seed, *keys)]


def seed_words(seed: int, *keys: Sequence[int]) -> NDArray[np.uint64]:
    """SeedSequence(seed, spawn_key=(a[i], b[i], ...)).generate_state(4, uint64) for all i (n, 4)."""
    n_streams = len(keys[0])
    # A seed shorter than the pool is filled with zeros, so that its pool is the same without a spawn key.
    n_seed_words = max(POOL_SIZE, -(-index(seed).bit_length() // 32))
    pool = np.repeat(np.random.SeedSequence(seed).pool[None], n_streams, axis=0)
    # Each word takes one constant per place of the pool; streams with more words are further on.
    constant = np.repeat(_geometric(INIT_A, MULT_A, POOL_SIZE * n_seed_words, 1)[None], n_streams, axis=0)
    for numbers in keys:
        for word, places in _words(numbers):
            pool[places] = _absorb(pool[places], constant[places], word)
            constant[places] *= _geometric(1, MULT_A, POOL_SIZE, 1)
    output = _geometric(INIT_B, MULT_B, 0, 2 * POOL_SIZE)
    halves = _hash(np.concatenate([pool, pool], axis=1), output, MULT_B).astype(np.uint64)
    return np.ascontiguousarray(halves[:, ::2] | halves[:, 1::2] << WORD)  # _Seed hands out its rows


class _Seed(ISeedSequence):
    """A seed whose four words (4,) are known; numpy's generators take any ISeedSequence."""

    def __init__(self, words: NDArray[np.uint64]) -> None:
        self.words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> NDArray[Any]:
        if n_words != len(self.words) or dtype is not np.uint64:  # numpy reads the bytes unchecked
            raise NotImplementedError(f"numpy asks for {n_words} words of {dtype} instead of 4 of uint64")
        return self.words


def _generator(words: NDArray[np.uint64]) -> np.random.Generator:
    seed: Any = _Seed(words)  # the stubs of PCG64 do not know ISeedSequence
    return np.random.Generator(np.random.PCG64(seed))


def _words(numbers: Sequence[int]) -> Iterator[tuple[Words, NDArray[np.intp]]]:
    """The 32-bit words of the numbers, lowest first (m, 1), and the places (m,) of those that have one."""
    rest = np.array([index(number) for number in numbers], dtype=object)
    if (rest < 0).any():
        raise InputError(f"the key of a random stream holds {rest.min()}; give numbers from 0")
    places = np.arange(len(rest))
    while len(places):
        yield (rest & 0xFFFFFFFF).astype(np.uint32)[:, None], places
        rest = rest >> 32
        places, rest = places[rest > 0], rest[rest > 0]


def _absorb(pool: Words, constant: Words, word: Words) -> Words:
    """The pools (m, 4) after one more word each (m, 1)."""
    hashed = _hash(word, constant * _geometric(1, MULT_A, 0, POOL_SIZE), MULT_A)
    return _fold(MIX_L * pool - MIX_R * hashed)


def _hash(value: Words, constants: Words, multiplier: int) -> Words:
    return _fold((value ^ constants) * (constants * np.uint32(multiplier)))


def _fold(value: Words) -> Words:
    return value ^ value >> HALF


def _geometric(first: int, multiplier: int, begin: int, count: int) -> Words:
    """first * multiplier**k modulo 2**32 for `count` numbers k from `begin` (count,)."""
    powers = [first * pow(multiplier, begin + k, 2**32) % 2**32 for k in range(count)]
    return np.array(powers, dtype=np.uint32)
