"""The rhythm of a run: frames stay in shape, blocks are neither too many nor too few."""

from __future__ import annotations

import numpy as np
import pytest

from hpcfit.flow.propagate import propagate
from hpcfit.lyapunov.intervals import FEWEST_BLOCKS, MODEST, MOST_BLOCKS, MOST_NUMBERS, rhythm
from hpcfit.models.catalogue import find

CASES = {
    "lorenz": ([1.0, 1.0, 20.0], [10.0, 28.0, 8 / 3]),
    "rossler": ([1.0, -1.7, 0.02], [0.15, 0.2, 10.0]),
    "henon_heiles": ([0.0, 0.0, 0.3, -0.41], [1.0, 1.0, -1.0]),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("duration", [1.0, 1e3, 1e6])
def test_flows(name: str, duration: float) -> None:
    start, parameters = (np.array(values) for values in CASES[name])
    found = rhythm(find(name), start, parameters, duration=duration)
    assert FEWEST_BLOCKS <= found.blocks <= MOST_BLOCKS
    assert found.blocks * found.block == pytest.approx(duration, rel=1e-14)
    assert 0.0 < found.interval <= found.block
    assert found == rhythm(find(name), start, parameters, duration=duration)


@pytest.mark.parametrize("name", CASES)
def test_frames_stay_in_shape(name: str) -> None:
    """Wherever they start on an orbit, their axes grow apart by e^5 at most, or not much more."""
    start, parameters = (np.array(values) for values in CASES[name])
    interval = rhythm(find(name), start, parameters, duration=1e5).interval
    orbit = propagate(find(name), np.linspace(0.0, 300.0, 200), start, parameters).states[0]
    lanes = propagate(find(name), [0.0, interval], orbit, parameters, sensitivities=True)
    assert lanes.by_start is not None
    axes = np.linalg.svd(lanes.by_start[:, -1], compute_uv=False)
    assert np.log(axes[:, 0] / axes[:, -1]).max() < 3.0 * MODEST


def test_many_trajectories_keep_fewer_blocks() -> None:
    start, parameters = (np.array(values) for values in CASES["lorenz"])
    found = rhythm(find("lorenz"), start, parameters, duration=1e6, trajectories=5000)
    assert found.blocks * 5000 * 3 <= MOST_NUMBERS
    assert found.blocks >= FEWEST_BLOCKS


@pytest.mark.parametrize(
    ("duration", "blocks", "block"), [(7, 7, 1.0), (10_000, 10_000, 1.0), (10_001, 5001, 2.0)]
)
def test_maps_take_whole_iterations(duration: int, blocks: int, block: float) -> None:
    start, parameters = np.array([0.1, 0.1]), np.array([1.4, 0.3])
    found = rhythm(find("henon_map"), start, parameters, duration=duration)
    assert (found.blocks, found.block) == (blocks, block)
    assert found.interval == 1.0


def test_an_orbit_that_escapes_has_a_rhythm_too() -> None:
    start, parameters = np.array([0.0, 0.5, 0.9, 0.5]), np.array([1.0, 1.0, -1.0])
    found = rhythm(find("henon_heiles"), start, parameters, duration=1e4)
    assert found.interval > 0.0
    assert found.blocks >= FEWEST_BLOCKS
