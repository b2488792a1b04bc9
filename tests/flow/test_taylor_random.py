"""200 random right-hand sides, joined into a few block-diagonal models so that few kernels are compiled."""

import importlib

import numpy as np
import pytest

from hpcfit.flow.propagate import propagate
from hpcfit.models.define import model
from tests.models import random_expressions

pytest.importorskip("heyoka", reason="the independent integrator is not installed")
heyoka_long = importlib.import_module("tests.flow.heyoka_long")

KINKS = {"abs", "sign", "min", "max", "less", "less_equal"}
UNARY = [body for name, body in random_expressions._UNARY.items() if name not in KINKS]
BINARY = [body for name, body in random_expressions._BINARY.items() if name not in KINKS]
N_MODELS, N_BLOCKS, SIZE = 8, 25, 4


def random_body(rng, leaves):
    """One smooth expression of SIZE random operations on the leaves."""
    pool = list(leaves)
    for _ in range(SIZE):
        newest = pool[-1] if rng.random() < 0.5 else pool[rng.integers(len(pool))]
        if rng.random() < 0.45:
            pool.append(UNARY[rng.integers(len(UNARY))](newest))
        else:
            others = [symbol for symbol in pool if symbol.index != newest.index]
            pool.append(BINARY[rng.integers(len(BINARY))](newest, others[rng.integers(len(others))]))
    return pool[-1] / (1 + 0.1 * pool[-1] ** 2) + 0.1 * leaves[1]  # bounded: no blow-up


def random_model(number):
    """Blocks with seeds 25 (number - 1) + 1 .. 25 number; every fifth has two states, every twelfth three."""
    seeds = range((number - 1) * N_BLOCKS + 1, number * N_BLOCKS + 1)
    sizes = [3 if seed % 12 == 0 else 2 if seed % 5 == 0 else 1 for seed in seeds]
    names = [f"x{i}" for i in range(sum(sizes))]

    def equations(t, u, p):
        bodies, first = [], 0
        for seed, size in zip(seeds, sizes, strict=True):
            rng = np.random.default_rng(seed)
            states = [u[first + i] for i in range(size)]
            for i in range(size):
                bodies.append(random_body(rng, [t, states[i], p.a, p.b, *states[:i], *states[i + 1 :]]))
            first += size
        return tuple(bodies)

    return model(states=" ".join(names), parameters="a b", name=f"random{number}")(equations)


@pytest.mark.parametrize("number", range(1, N_MODELS + 1))
def test_random_right_hand_sides(number):
    """States to 1e-14 and tangents to 1e-13, times growth, each relative to its maximum along the path."""
    made, times = random_model(number), np.linspace(0.1, 0.7, 4)
    start = np.random.default_rng(number).uniform(-0.9, 0.9, len(made.states))
    parameters = [0.6, -0.4]
    lanes = propagate(made, times, start, parameters, sensitivities=True)
    assert lanes.failures == ()
    oracle = heyoka_long.Oracle(made, start, parameters, times)
    for i in range(len(start)):
        growth = max(1.0, float(np.abs(oracle.by_start[:, i]).max()))
        error = np.abs(lanes.states[0, :, i] - oracle.states[:, i]).max()
        assert error <= 1e-14 * growth * np.abs(oracle.states[:, i]).max(), made.states[i]
        for ours, exact in (
            (lanes.by_start[0, :, i], oracle.by_start[:, i]),
            (lanes.by_parameters[0, :, i], oracle.by_parameters[:, i]),
        ):
            scale = np.maximum(np.abs(exact).max(axis=0), 1e-2)
            assert (np.abs(ours - exact).max(axis=0) <= 1e-13 * growth * scale).all(), made.states[i]
